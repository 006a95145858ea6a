//! P018 to P022, and what P005, P006 and P012 say of clients: do both sides tell the same, was it
//! the client that was measured, and is its latency that of all its answers?

use prony_record::{LatencyNs, ProgramLine, ProgramReport, REQUESTS, Trial};

use super::answers::by_share;
use super::seen::{Seen, worst};
use crate::client::{self, Busy, Limit};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Severity, Unit};
use crate::limits;
use crate::measure;
use crate::records::Case;

/// [`worst`] over the runs of a client; nothing for other subjects.
fn worst_run(
    case: &Case<'_>,
    code: Code,
    look: impl Fn(&Trial, &ProgramReport, &ProgramLine) -> Option<Seen>,
) -> Vec<Finding> {
    let is_client = case.is_client();
    let runs = case.runs().filter(|_| is_client);
    worst(case, code, runs.map(|(trial, _)| trial), |trial| {
        let program = trial.program.as_ref()?;
        look(trial, program, measure::line(program)?)
    })
}

const DISAGREE: (&str, &str) = (
    "The peer's count of requests and the client's differ by more than what was in flight at the end explains: at \
     least one of the two is wrong, and the rate with it.",
    "Check what the tool counts (a cap on recorded answers, retries, requests before its clock starts) and whether \
     anything else sent requests to the peer; until then do not use its rate.",
);

/// P018: requests counted by the peer less those answered and failed by the client's count are not
/// those in flight; or bytes of downloads differ.
pub(super) fn counts_disagree(case: &Case<'_>) -> Vec<Finding> {
    worst_run(case, Code::P018, |trial, _, line| {
        let found = client::agrees(trial, case.cell.connections)?;
        if found.holds() {
            return None;
        }
        let figures = client::figures(trial)?;
        let peer = &trial.client.as_ref()?.peer;
        let mut evidence = vec![
            Evidence::count("answered, by the client", line.count),
            Evidence::count("failed, by the client", figures.failed),
            match figures.in_flight {
                Some(in_flight) => Evidence::count("in flight, by the client", in_flight),
                None => Evidence::count("in flight, at the most", found.unanswered_max),
            },
        ];
        let counted = [
            ("requests, by the peer", peer.requests),
            (
                "requests that the peer never saw",
                positive(found.missing.into()),
            ),
            (
                "requests that the client does not account for",
                positive(found.extra.into()),
            ),
        ];
        let counted = counted.into_iter();
        evidence.extend(counted.filter_map(|(what, n)| Some(Evidence::count(what, n?))));
        let off = found.bytes_off.unwrap_or(0);
        if off != 0 {
            evidence.push(Evidence::count("bytes, by the client", line.bytes));
            evidence.push(Evidence::number(
                "bytes that the peer sent beyond these",
                off as f64,
                Unit::Count,
            ));
        }
        let badness = found.missing as f64 + found.extra as f64 + (off as f64).abs();
        Some(Seen::note(badness, DISAGREE, evidence).severity(Severity::Invalid))
    })
}

fn positive(number: i128) -> Option<u64> {
    u64::try_from(number).ok().filter(|n| *n > 0)
}

const CLOCK: (&str, &str) = (
    "The client's own figures contradict each other, or the time for which it ran: its rate or its latency is not what \
     it seems.",
    "Check how the tool measures time and what it counts: where it starts its clock, whether it caps or drops answers, \
     whether it stopped early. Until then do not rank by it.",
);

/// P019: the whole run is much longer than elapsed, or shorter; it did not ask for the time that it
/// was told to; the rate that it gives is not count ÷ elapsed; its latencies contradict each other.
pub(super) fn own_clock(case: &Case<'_>) -> Vec<Finding> {
    let requested = case.records.plan.duration_ns.max(1_000_000_000) as f64;
    worst_run(case, Code::P019, |trial, program, line| {
        let (elapsed, wall) = (line.elapsed_ns as f64, program.wall_ns as f64);
        let time = |what: &str, ns: f64| Evidence::number(what, ns, Unit::Nanoseconds);
        let mut evidence = Vec::new();
        let mut impossible = false;
        let beside = limits::BESIDE_NS + limits::BESIDE_SHARE * elapsed;
        if wall > 0.0 && (wall - elapsed > beside || elapsed > wall * limits::ELAPSED_OVER) {
            impossible = elapsed > wall;
            evidence.extend([time("elapsed", elapsed), time("whole run", wall)]);
        }
        let requests = case.client().is_some_and(|c| c.work == REQUESTS);
        let off = (elapsed - requested).abs();
        if requests && off > limits::DURATION_SHARE * requested && off > limits::DURATION_NS {
            evidence.extend([
                time("time that it was told to ask for", requested),
                time("elapsed, by its clock", elapsed),
            ]);
        }
        evidence.extend(rate_contradicts(program, line));
        if let Some(latency) = client::latency(trial) {
            let wrong = latency_contradicts(latency);
            impossible |= wrong.is_some();
            evidence.extend(wrong.into_iter().flatten());
        }
        let severity = match impossible {
            true => Severity::Invalid,
            false => Severity::Note,
        };
        (!evidence.is_empty())
            .then(|| Seen::note(evidence.len() as f64, CLOCK, evidence).severity(severity))
    })
}

/// A client may give its rate as a figure of its own.
fn rate_contradicts(program: &ProgramReport, line: &ProgramLine) -> Vec<Evidence> {
    let Some(given) = line.figures.get("requests_per_s").map(|s| s.mean) else {
        return Vec::new();
    };
    let Some(rate) = measure::program_rate(program).map(|rate| rate.0) else {
        return Vec::new();
    };
    if !given.is_finite() || (given / rate - 1.0).abs() <= limits::RATE_OFF {
        return Vec::new();
    }
    vec![
        Evidence::number("rate that it gives", given, Unit::PerSecond),
        Evidence::number("count ÷ elapsed", rate, Unit::PerSecond),
    ]
}

/// Percentiles that fall, or a mean outside smallest and largest. 0 is one that is not given.
fn latency_contradicts(latency: &LatencyNs) -> Option<Vec<Evidence>> {
    let named = [
        ("min", latency.min),
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p99_9),
        ("max", latency.max),
    ];
    let time = |what: &str, ns: f64| Evidence::number(what, ns, Unit::Nanoseconds);
    let given: Vec<(&str, u64)> = named.into_iter().filter(|(_, ns)| *ns > 0).collect();
    // Tools round what they print: a mean of a single value need not be that value to the digit.
    let over = |a: f64, b: f64| a > b * limits::ROUNDED;
    let falls = given.windows(2).find(|pair| {
        let [first, second] = pair else { return false };
        over(first.1 as f64, second.1 as f64)
    });
    if let Some([first, second]) = falls {
        return Some(vec![
            time(first.0, first.1 as f64),
            time(second.0, second.1 as f64),
        ]);
    }
    let (min, max) = (latency.min as f64, latency.max as f64);
    let mean = latency.mean;
    let outside = max > 0.0 && over(mean, max) || mean > 0.0 && over(min, mean);
    outside.then(|| vec![time("min", min), time("mean", mean), time("max", max)])
}

const PEER_FULL: (&str, &str) = (
    "The peer was saturated and the client was not: the client is at least this fast, and no other client that \
     saturates the peer can come out faster. Their CPU time a request still separates them.",
    "Give the peer more cores or threads, or a client one core of several; until then rank by CPU time a \
     request.",
);

/// P020: the peer's busiest core or thread was busy for 95 % of the time and the client's was not.
pub(super) fn peer_saturated(case: &Case<'_>) -> Vec<Finding> {
    worst_run(case, Code::P020, |trial, _, _| {
        let busy = Busy::new(trial, &case.records.plan.cores);
        let (client, peer) = (busy.client?.0, busy.peer?.0);
        let evidence = vec![
            Evidence::number("peer's busiest core or thread", peer, Unit::Share),
            Evidence::number("client's busiest core or thread", client, Unit::Share),
        ];
        (busy.limit() == Some(Limit::Peer))
            .then(|| Seen::note(peer, PEER_FULL, evidence).severity(Severity::Bound))
    })
}

const CROWDED: (&str, &str) = (
    "There are more threads than cores for them: they share the cores, and more threads do no more work at the same \
     time.",
    "Read the row as one with a thread for each core, or use a machine with more cores.",
);

/// P021: more threads of the client, or of the peer, than cores that they are pinned to.
pub(super) fn crowded(case: &Case<'_>) -> Vec<Finding> {
    let cores = &case.records.plan.cores;
    worst_run(case, Code::P021, |_, _, line| {
        let peer_threads = case.client().map_or(0, |client| client.peer_threads);
        let sides = [
            ("client", u64::from(line.threads), cores.subject.len()),
            ("peer", u64::from(peer_threads), cores.generator.len()),
        ];
        let over = |side: &&(&str, u64, usize)| side.2 > 0 && side.1 > side.2 as u64;
        let evidence: Vec<Evidence> = sides
            .iter()
            .filter(over)
            .flat_map(|(side, threads, cores)| {
                [
                    Evidence::count(format!("threads of the {side}"), *threads),
                    Evidence::count(format!("cores of the {side}"), *cores as u64),
                ]
            })
            .collect();
        (!evidence.is_empty()).then(|| Seen::note(0.0, CROWDED, evidence))
    })
}

const NO_LATENCY: (&str, &str) = (
    "The tool does not report all of these percentiles: nothing is known about its tail latency.",
    "Nothing, unless you need them: then use a client that records every latency.",
);
const PART_LATENCY: (&str, &str) = (
    "Latencies were recorded for only part of the answers: the percentiles of the rest are unknown.",
    "Check whether the tool caps what it records; send fewer requests, or measure for a shorter time.",
);

/// P022: percentiles are missing (for information), or rest on fewer or more answers than were counted.
pub(super) fn latency_incomplete(case: &Case<'_>) -> Vec<Finding> {
    let requests = case.client().is_some_and(|c| c.work == REQUESTS);
    worst_run(case, Code::P022, |trial, _, line| {
        let unknown = LatencyNs::default();
        let latency = client::latency(trial).unwrap_or(&unknown);
        let slack = f64::from(case.cell.connections) + limits::LATENCY_OFF * line.count as f64;
        if latency.count > 0 && (latency.count as f64 - line.count as f64).abs() > slack {
            let evidence = vec![
                Evidence::count("latencies recorded", latency.count),
                Evidence::count("answers counted", line.count),
            ];
            return Some(Seen::note(1.0, PART_LATENCY, evidence));
        }
        let named = [
            ("p50", latency.p50),
            ("p90", latency.p90),
            ("p99", latency.p99),
            ("max", latency.max),
        ];
        let missing = named
            .iter()
            .filter(|(_, ns)| *ns == 0)
            .map(|(name, _)| *name);
        let missing: Vec<&str> = missing.collect();
        if missing.is_empty() || !requests {
            return None;
        }
        let evidence = vec![Evidence::text("not given", missing.join(", "))];
        let badness = missing.len() as f64;
        Some(Seen::note(badness, NO_LATENCY, evidence))
    })
}

const FAILED: (&str, &str) = (
    "Some of the client's requests failed. They are excluded from its rate and its latencies.",
    "Compare its log of this trial with the peer's: which side gave up, and why?",
);

/// P006 of a client: its requests that failed, by its own names; invalid from 1 % of them on.
pub(super) fn failed(case: &Case<'_>) -> Vec<Finding> {
    worst_run(case, Code::P006, |trial, _, line| {
        let figures = client::figures(trial)?;
        let unconnected = line.tallies.get("connect_failed").copied().unwrap_or(0);
        if figures.failed == 0 && unconnected == 0 {
            return None;
        }
        let mut evidence = vec![Evidence::count("failed", figures.failed)];
        let kinds = figures
            .failed_by_kind
            .iter()
            .filter(|(_, count)| **count > 0);
        let named = kinds.take(limits::KINDS_NAMED_MAX);
        evidence.extend(named.map(|(kind, count)| Evidence::count(kind.clone(), *count)));
        if unconnected > 0 {
            evidence.push(Evidence::count("failed attempts to connect", unconnected));
        }
        evidence.push(Evidence::count("answered", line.count));
        let badness = figures.failed as f64 + unconnected as f64;
        let share =
            figures.failed as f64 / (figures.failed.saturating_add(line.count)).max(1) as f64;
        Some(Seen::note(badness, FAILED, evidence).severity(by_share(share)))
    })
}

const FEW_IN_FLIGHT: (&str, &str) = (
    "Count × mean latency ÷ elapsed is the mean number of requests in flight (Little's law). It is well below the \
     number of connections, and the client's cores were not saturated: some connections were idle, or the latency \
     omits part of the time.",
    "Check where the tool starts and stops each latency, whether it opens all its connections, and how it distributes \
     them over its threads.",
);
const MORE_IN_FLIGHT: (&str, &str) = (
    "Count × mean latency ÷ elapsed gives more requests in flight than there were connections, which is impossible, \
     and nothing confirms the count: rate or latency is wrong.",
    "Do not use the figures of this cell; check how the tool measures its times.",
);
const LATENCY_TOO_LONG: (&str, &str) = (
    "Count × mean latency ÷ elapsed gives more requests in flight than there were connections, which is impossible. \
     The peer confirms the count and the clock the length of the run, so the latency is wrong: it is not that of \
     the requests that were sent (some tools add synthetic ones). The rate stands.",
    "Do not use its latency; take it from a client whose figures satisfy Little's law.",
);

/// P005 of a client: over 1.02 × the connections, or under 80 % of them without full cores.
pub(super) fn not_in_flight(case: &Case<'_>) -> Vec<Finding> {
    let requests = case.client().is_some_and(|c| c.work == REQUESTS);
    worst_run(case, Code::P005, |trial, program, _| {
        let little = client::little(trial)?;
        let requested = f64::from(case.cell.connections);
        let busy = Busy::new(trial, &case.records.plan.cores).client;
        let mut evidence = vec![
            Evidence::count("connections", case.cell.connections.into()),
            Evidence::number("in flight by Little's law", little, Unit::Count),
        ];
        if little > requested * (1.0 + limits::IN_FLIGHT_OVER) {
            let counted = client::agrees(trial, case.cell.connections);
            let confirmed = counted.is_some_and(|found| found.compared && found.holds());
            let elapsed = measure::elapsed(program)?.0;
            let ran = (program.wall_ns as f64 - elapsed).abs()
                <= limits::BESIDE_NS + limits::BESIDE_SHARE * elapsed;
            let seen = match confirmed && ran {
                true => Seen::note(little, LATENCY_TOO_LONG, evidence),
                false => Seen::note(little, MORE_IN_FLIGHT, evidence).severity(Severity::Invalid),
            };
            return Some(seen);
        }
        let full = busy.is_some_and(|busy| busy.0 >= limits::SATURATED_SHARE);
        if !requests || full || little >= limits::IN_FLIGHT_SHARE * requested {
            return None;
        }
        evidence.extend(
            busy.map(|busy| {
                Evidence::number("client's busiest core or thread", busy.0, Unit::Share)
            }),
        );
        Some(Seen::note(
            1.0 - little / requested,
            FEW_IN_FLIGHT,
            evidence,
        ))
    })
}

const OTHER_PAGE: (&str, &str) = (
    "The answers that this client read differ in length from the page: it requests something else (a compressed form, \
     say), counts more than bodies, or did not read them to the end.",
    "Check what it requests and what it counts, and make the requests of all clients alike.",
);

/// P012 of a client: bytes of bodies for each answer are off those of the page by over 1 %, or, where it
/// counts them with the heads only, off the whole answer by over 20 %.
pub(super) fn other_page(case: &Case<'_>) -> Vec<Finding> {
    worst_run(case, Code::P012, |trial, _, line| {
        let page = trial
            .client
            .as_ref()
            .filter(|page| page.page_body_bytes > 0)?;
        let page_bytes = page.page_head_bytes.saturating_add(page.page_body_bytes);
        let with_heads = line.tallies.get("bytes_with_heads").copied().unwrap_or(0);
        let (what, bytes, expected, off) = match (line.bytes, with_heads) {
            (0, 0) => return None,
            (0, all) => ("an answer", all, page_bytes, limits::BYTES_RATIO - 1.0),
            (bodies, _) => ("a body", bodies, page.page_body_bytes, limits::PAGE_OFF),
        };
        let each = bytes as f64 / line.count as f64;
        let badness = (each / expected as f64 - 1.0).abs();
        if !badness.is_finite() || badness <= off {
            return None;
        }
        let evidence = vec![
            Evidence::number(format!("bytes of {what}, by the client"), each, Unit::Bytes),
            Evidence::number("as Prony read it", expected as f64, Unit::Bytes),
        ];
        Some(Seen::note(badness, OTHER_PAGE, evidence))
    })
}
