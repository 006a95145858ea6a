//! P001, P005 and P030: was it the subject that was measured, by all connections, and does another generator agree?

use prony_base::Nanos;
use prony_record::{LoadReport, Outcome, Pace, Role, Trial};
use prony_stats::{Share, Time, in_flight};

use super::seen::{Seen, finding, worst};
use super::{clients, search};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Severity, Unit};
use crate::limits;
use crate::measure;
use crate::records::Case;

const SATURATED: (&str, &str) = (
    "The generator was saturated and the subject was not: the subject is at least this fast, and its latency includes \
     waiting for the generator.",
    "Give the generator more cores, or drive the subject with fewer connections; until then read \
     the rate as a lower bound and leave it out of comparisons.",
);

const OWN_LATENCY: (&str, &str) = (
    "Part of the latencies is the generator's own: answers waited in the kernel until it received them, or requests \
     were submitted late. Read them as \"at most\"; ratios between subjects are closer to 1 than they should be.",
    "Drive the subject with fewer connections a thread, or give the generator more cores; `prony load --timestamps \
     kernel` reports when answers arrived.",
);
const OWN_TIME: (&str, &str) = (
    "Each connection was idle in the generator between an answer and the next request for a good part of its time: \
     with a faster generator the same connections would send more requests, so the subject is at least this fast.",
    "Give the generator more cores, or use more connections if the subject's cores are not saturated.",
);
const IN_FEW: &str = "In a few of the blocks the generator was saturated, or a good part of the latencies was its own, \
and the subject was not saturated. The figures are those of all blocks, and would hardly differ without these.";
const SHORT: (&str, &str) = (
    "The generator did not keep up with its own schedule: fewer requests were completed than scheduled, and its own \
     threads were saturated. Rate and latency are the generator's, and say nothing about the subject.",
    "Request a lower rate, or give the generator more cores.",
);

/// P001: the generator did not keep up with a schedule (invalid); in a closed loop, its core or thread was busy for 95 % of the window and no core or
/// thread of the subject was; or what it added is a large part of the latencies, or of the connections' time. A core counts only where the generator's own threads used half
/// of the window: what else keeps it busy says nothing about the generator (that is P009's).
pub(super) fn generator_saturated(case: &Case<'_>) -> Vec<Finding> {
    if case.is_search() {
        return search::generator_short(case);
    }
    let mut found = worst(case, Code::P001, case.measured(), |trial| {
        let load = trial.load.as_ref()?;
        short(load)
            .or_else(|| busy(trial, load))
            .or_else(|| own_delay(trial, load))
    });
    let few = limits::BOUND_BLOCKS_SHARE * case.measured().count() as f64;
    for finding in &mut found {
        if finding.severity == Severity::Bound && finding.blocks.len() as f64 <= few {
            finding.severity = Severity::Note;
            finding.meaning = IN_FEW;
        }
    }
    found
}

const WAKE_UPS: (&str, &str) = (
    "Subject and generator both sleep until the other has done its part: the rate is how fast this machine wakes them, \
     and not how much work a request is. A subject that never has time to sleep can be faster although it needs more CPU \
     time a request.",
    "Rank these by CPU time a request, or measure with more connections, so that one side always has something to do.",
);

/// P032: in a closed loop of short latencies both sides slept once in five requests or more often, and neither was full.
pub(super) fn both_sleep(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P032, case.measured(), |trial| {
        let load = trial.load.as_ref()?;
        let full = |share: Option<Share>| share.is_some_and(|s| s.0 >= limits::SATURATED_SHARE);
        let is_full =
            full(measure::subject_busy(trial)) || full(measure::generator_busy(trial, load));
        let is_waited_for = load.latency_ns.p50 > limits::WAKE_UPS_NS;
        let thinks = load.pace != Pace::default() || load.scenario.is_some() || case.is_search();
        if is_full || is_waited_for || thinks {
            return None;
        }
        let sleeps = |role| measure::sleeps_a_request(trial, load, role);
        let (subject, generator) = (sleeps(Role::Subject)?, sleeps(Role::Generator)?);
        let both = subject.min(generator);
        let number = |what: &str, sleeps| Evidence::number(what, sleeps, Unit::Count);
        let evidence = vec![
            number("sleeps of the subject a request", subject),
            number("sleeps of the generator a request", generator),
        ];
        (both >= limits::SLEEPS_A_REQUEST).then(|| Seen::note(both, WAKE_UPS, evidence))
    })
}

fn short(load: &LoadReport) -> Option<Seen> {
    let arrivals = load.arrivals.filter(|arrivals| arrivals.generator_short)?;
    let achieved = measure::kept_up(load, &arrivals)?.0;
    let (drawn, words) = (
        measure::drawn(load, &arrivals)?.0,
        measure::kept_up_words(load),
    );
    let mut evidence = vec![
        Evidence::number(words[0], drawn, Unit::PerSecond),
        Evidence::number(words[1], achieved, Unit::PerSecond),
    ];
    evidence.extend(load.delay.map(|delay| {
        let late = delay.lateness_ns.p99 as f64;
        Evidence::number("sent late, 99th percentile", late, Unit::Nanoseconds)
    }));
    let missing = 1.0 - achieved / drawn;
    Some(Seen::note(missing, SHORT, evidence).severity(Severity::Invalid))
}

fn busy(trial: &Trial, load: &LoadReport) -> Option<Seen> {
    // In an open loop a busy generator that keeps up asks for as much as an idle one.
    let generator = measure::generator_busy(trial, load)
        .filter(|_| !load.pace.is_open())?
        .0;
    let subject = measure::subject_busy(trial).map(|share| share.0);
    let free = subject.is_none_or(|share| share < limits::SATURATED_SHARE);
    if generator < limits::SATURATED_SHARE || !free {
        return None;
    }
    let mut evidence = vec![Evidence::number(
        "generator's busiest core or thread",
        generator,
        Unit::Share,
    )];
    evidence.push(match subject {
        Some(share) => Evidence::number("subject's busiest core or thread", share, Unit::Share),
        None => Evidence::text("subject's busiest core or thread", "not known"),
    });
    // Before what it adds alone, which may come from one full turn in a hundred.
    Some(Seen::note(1.0 + generator, SATURATED, evidence).severity(Severity::Bound))
}

fn own_delay(trial: &Trial, load: &LoadReport) -> Option<Seen> {
    let added = measure::added(load)?;
    let number = |what: &str, time: Time| Evidence::number(what, time.0, Unit::Nanoseconds);
    let evidence = || {
        vec![
            number("mean latency", added.latency),
            number(
                "of it in the kernel before it was taken, at most",
                added.pick_up,
            ),
            number("sent late", added.lateness),
            number("handling", added.handling),
        ]
    };
    let (late, all) = (added.late_share().0, added.of_latency().0);
    if late >= limits::GENERATOR_SHARE || all >= limits::GENERATOR_BOUND_SHARE {
        let share = Evidence::number(
            "generator's part of the latencies, at most",
            late.max(all),
            Unit::Share,
        );
        let evidence = std::iter::once(share).chain(evidence()).collect();
        return Some(Seen::note(late.max(all), OWN_LATENCY, evidence).severity(Severity::Bound));
    }
    // A subject that is full has a request to work on whatever the generator does with the others.
    let is_full = measure::subject_busy(trial).is_some_and(|s| s.0 >= limits::SATURATED_SHARE);
    let of_time = added
        .of_time(load)
        .filter(|share| share.0 >= limits::GENERATOR_SHARE && !is_full)?;
    let share = Evidence::number(
        "generator's part of the connections' time",
        of_time.0,
        Unit::Share,
    );
    let evidence = std::iter::once(share).chain(evidence()).collect();
    Some(Seen::note(of_time.0, OWN_TIME, evidence).severity(Severity::Bound))
}

const GAP: (&str, &str) = (
    "Rate × the mean time of a request, from one turn of the generator to the next, is the number of connections in \
     use (Little's law). It is well below the number requested, and neither time-outs nor requests cut off by the \
     end of the window explain the gap: rate and latency are those of fewer connections than the table says.",
    "Check whether the subject accepts and keeps all connections (findings P002, P003 and P004), and whether it serves \
     some of them only rarely.",
);
const EXCESS: (&str, &str) = (
    "Rate × the mean time of a request gives more requests than there were connections, which is impossible: the rate \
     or a time is wrong.",
    "Do not use the figures of this cell, and report it together with its line of trials.jsonl.",
);

/// P005: Little's law gives under 80 % of the connections, after adding what time-outs and the
/// end of the window can explain; or more than all, beyond what the start of the window explains. The times that it
/// adds up are taken at different places by different clocks' readings, so that a piece that is missing, or counted
/// twice, shows. In an open loop, and where users think, connections may idle, and only too many can be told.
pub(super) fn not_in_flight(case: &Case<'_>) -> Vec<Finding> {
    if case.is_client() {
        return clients::not_in_flight(case);
    }
    worst(case, Code::P005, case.measured(), |trial| {
        let load = trial.load.as_ref()?;
        let timeout = Nanos(case.workload.map_or(0, |workload| workload.timeout_ns));
        let flight = InFlight::new(load, timeout, trial.visits.len().max(1))?;
        let places = measure::places(load);
        let asked_for = match load.depth > 1 {
            true => "requests at once asked for",
            false => "connections asked for",
        };
        let evidence = || {
            let mut all = vec![
                Evidence::number(asked_for, places, Unit::Count),
                Evidence::number("in flight by Little's law", flight.waiting, Unit::Count),
                Evidence::number("in the generator's hands", flight.held, Unit::Count),
                Evidence::number("explained by time-outs", flight.timed_out, Unit::Count),
                Evidence::number(
                    "explained by the edges of the window",
                    flight.edge,
                    Unit::Count,
                ),
                Evidence::count("in flight when the window ended", load.counts.in_flight),
            ];
            if flight.opening > 0.0 {
                let opening = "explained by opening connections";
                all.insert(3, Evidence::number(opening, flight.opening, Unit::Count));
            }
            all
        };
        let little = flight.waiting + flight.held;
        let explained = little + flight.opening + flight.timed_out + flight.edge.min(places);
        // Users think, for as long as their steps say.
        let may_idle = load.pace.is_open() || load.scenario.is_some();
        if !may_idle && explained < limits::IN_FLIGHT_SHARE * places {
            return Some(Seen::note(1.0 - little / places, GAP, evidence()));
        }
        let most = places * (1.0 + limits::IN_FLIGHT_OVER) + flight.edge;
        let seen = Seen::note(little / places, EXCESS, evidence());
        (little * flight.begun > most).then(|| seen.severity(Severity::Invalid))
    })
}

/// Connections that were in use, by Little's law, and those that the mean times cannot tell of.
struct InFlight {
    /// With a request that the server had.
    waiting: f64,
    /// Between an answer and the next request: handling, think time, lateness. Not known of older records.
    held: f64,
    /// Being opened: connecting, and TLS's handshake.
    opening: f64,
    /// Waiting for answers that came too late to count.
    timed_out: f64,
    /// At the end of a window a request may have waited as long as the slowest one did, and at its start one may be
    /// counted that began as long before.
    edge: f64,
    /// Part of the requests answered in the window that times are of: those that began in it. In a short window of a busy
    /// generator others were answered, too.
    begun: f64,
}

impl InFlight {
    /// `windows`: what the window is made of, each piece with a start and an end of its own.
    fn new(load: &LoadReport, timeout: Nanos, windows: usize) -> Option<InFlight> {
        let rate = measure::rate(load)?;
        if load.completed == 0 || load.connections == 0 || !load.latency_ns.mean.is_finite() {
            return None;
        }
        let window = load.window_ns as f64;
        let places = measure::places(load);
        let timeouts = load.counts.failed.timeout as f64;
        // Abandoned requests were in flight at the end of the window, for up to all of it.
        let abandoned = load.counts.abandoned as f64 * window.min(timeout.0 as f64);
        // One that never ended was in flight until the window's end.
        let longest = load.latency_ns.max.min(load.window_ns) as f64;
        // Turns of the warm-up leave some, too, and in an open loop what waits for a connection is in none.
        let drained = (load.counts.drained as f64).min(places * windows as f64);
        let (latency, held) = match measure::added(load) {
            Some(added) => (added.from_submitted, added.held(load)),
            None => (Time(load.latency_ns.mean), Time(0.0)),
        };
        Some(InFlight {
            waiting: in_flight(rate, latency).0,
            held: in_flight(rate, held).0,
            opening: measure::opening(load)
                .map_or(0.0, |share| share * places)
                .min(places),
            timed_out: ((timeouts * timeout.0 as f64 + abandoned) / window).min(places),
            edge: drained * longest / window,
            begun: (load.latency_ns.count as f64 / load.completed as f64).min(1.0),
        })
    }
}

const GENERATORS_APART: (&str, &str) = (
    "wrk, which also measured this cell once, got a different rate than Prony's generator. A rate depends on both \
     sides: one of the two generators was the limit, or their requests differ.",
    "Check whether the generator was the limit; run wrk a few times by hand. Within this document all cells are \
     measured by the same generator; do not compare its rates with wrk's from elsewhere.",
);

/// P030: the rate by another generator lies by over 10 % outside of what the blocks span.
pub(super) fn other_generator(case: &Case<'_>) -> Vec<Finding> {
    let rates = case.rates();
    let rates = || rates.iter().map(|&(_, rate)| rate);
    let (Some(least), Some(most)) = (rates().reduce(f64::min), rates().reduce(f64::max)) else {
        return Vec::new();
    };
    let trials = case.records.by_others(&case.cell.id).iter();
    let measured = trials.filter(|trial| trial.outcome == Outcome::Measured);
    let theirs = measured.filter_map(|trial| Some(trial.load.as_ref()?.rate_per_s));
    let beyond = |rate: &f64| {
        *rate > most * (1.0 + limits::GENERATORS_APART)
            || *rate < least * (1.0 - limits::GENERATORS_APART)
    };
    let Some(rate) = theirs.filter(|rate| *rate > 0.0).find(beyond) else {
        return Vec::new();
    };
    let evidence = vec![
        Evidence::number("wrk", rate, Unit::PerSecond),
        Evidence::number("Prony, slowest block", least, Unit::PerSecond),
        Evidence::number("Prony, fastest block", most, Unit::PerSecond),
    ];
    let blocks = case.measured().map(|trial| trial.block).collect();
    let seen = Seen::note(0.0, GENERATORS_APART, evidence);
    vec![finding(case, Code::P030, blocks, seen)]
}
