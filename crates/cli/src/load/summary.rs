//! The summary that `prony load` prints: laid out so that a wrk user reads it
//! at once, and so that what reads wrk's `Requests/sec:` line reads ours.

mod steps;

use std::fmt::Write as _;

use prony_base::{Nanos, PerSecond, counted};
use prony_load::{LoadReport, LoadResult, LoadSpec, pace};
use prony_record::{HttpProtocol, LatencyNs, LatencyOrigin, NEVER, RequestOrder};

/// The two lines before a run.
pub fn heading(spec: &LoadSpec) -> String {
    let what = match spec.requests_max {
        Some(iterations) if spec.scenario.is_some() => counted(iterations, "iteration"),
        Some(requests) => counted(requests, "request"),
        None => format!("{} test", Nanos(spec.duration_ns)),
    };
    let (threads, connections) = (
        counted(spec.threads, "thread"),
        counted(spec.connections, "connection"),
    );
    let users = if spec.scenario.is_some() {
        " of users"
    } else {
        ""
    };
    let pace_text = pace::described(&spec.pace);
    let pace_text = pace_text.map_or_else(String::new, |pace_text| format!(", {pace_text}{users}"));
    let depth = match (spec.protocol, spec.depth) {
        (HttpProtocol::Http2, depth) => {
            format!(" of HTTP/2, {} each", counted(depth.max(1), "stream"))
        }
        (HttpProtocol::Http1, 0..=1) => String::new(),
        (HttpProtocol::Http1, depth) => {
            format!(", {} outstanding on each", counted(depth, "request"))
        }
    };
    format!(
        "Running {what} @ {}{}\n  {threads} and {connections}{depth}{pace_text}\n",
        spec.target.url,
        several(spec)
    )
}

/// How many requests are sent, and in which order, where it is more than one.
fn several(spec: &LoadSpec) -> String {
    let requests = match spec.sequence.len() {
        0 => spec.requests.len(),
        length => length,
    };
    if let Some(scenario) = &spec.scenario {
        let steps = counted(requests, "step");
        return match scenario.flows.len() {
            1 => format!(", a scenario of {steps}"),
            flows => format!(", {flows} scenarios of {steps}"),
        };
    }
    match spec.order {
        _ if spec.requests.len() == 1 => String::new(),
        RequestOrder::Random => format!(", any of {requests} requests"),
        RequestOrder::InTurn | RequestOrder::BySlot => format!(", {requests} requests in turn"),
    }
}

/// The lines after a run.
pub fn text(outcome: &LoadResult, is_detailed: bool) -> String {
    let report = &outcome.report;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = latency(&mut text, report, is_detailed);
    let _ = delays(&mut text, report, is_detailed);
    let _ = hidden(&mut text, report, is_detailed);
    let _ = open_loop(&mut text, report);
    let _ = sources(&mut text, report);
    let _ = totals(&mut text, report);
    let _ = streams(&mut text, report);
    let _ = continued(&mut text, report);
    let _ = handshakes(&mut text, report);
    let _ = broken(&mut text, report);
    let _ = accounts(&mut text, report);
    text.push_str(&steps::table(report));
    if outcome.interrupted {
        let _ = writeln!(
            text,
            "Interrupted: these figures are of the time until then."
        );
    }
    text
}

/// A latency as it is read; one that never ended is infinite.
pub fn format_latency(ns: u64) -> String {
    match ns {
        NEVER => "∞".to_owned(),
        ns => Nanos(ns).to_string(),
    }
}

fn latency(text: &mut String, report: &LoadReport, is_detailed: bool) -> std::fmt::Result {
    let latency = &report.latency_ns;
    if latency.count == latency.infinite {
        let failed = &report.counts.failed;
        let why = match failed.check + failed.wrong_answer {
            0 => "No answers",
            _ => "No expected answers",
        };
        return writeln!(text, "  {why}: there is no latency");
    }
    let (mean, stdev) = (Nanos(latency.mean as u64), Nanos(latency.stdev as u64));
    writeln!(text, "  Latency      Mean     Stdev       Min       Max")?;
    let (mean, stdev) = (mean.to_string(), stdev.to_string());
    writeln!(
        text,
        "         {mean:>8}  {stdev:>8}  {:>8}  {:>8}",
        format_latency(latency.min),
        format_latency(latency.max)
    )?;
    let from = match (report.pace.is_open(), report.latency_from) {
        (true, LatencyOrigin::Intended) => " from when it was to start",
        (true, LatencyOrigin::Submitted) => " from when it was sent",
        (false, _) => "",
    };
    let at_most = report.delay.is_some_and(|delay| delay.at_most);
    let at_most = if at_most { ", at most" } else { "" };
    writeln!(text, "  Latency distribution{from}{at_most}")?;
    percentiles(
        text,
        latency,
        is_detailed,
        if report.drain_cut { "≥ " } else { "" },
    )?;
    if report.drain_cut {
        writeln!(
            text,
            "  ≥: the end of some requests was not waited for, so that these are at least as long"
        )?;
    }
    if latency.infinite > 0 {
        writeln!(
            text,
            "  ∞: {} of {} failed or had no answer; mean and deviation are of the others",
            latency.infinite,
            counted(latency.count, "request")
        )?;
    }
    Ok(())
}

fn percentiles(
    text: &mut String,
    latency: &LatencyNs,
    is_detailed: bool,
    before: &str,
) -> std::fmt::Result {
    let usual = [
        ("50%", latency.p50),
        ("75%", latency.p75),
        ("90%", latency.p90),
        ("99%", latency.p99),
    ];
    let rest = [("99.9%", latency.p99_9), ("99.99%", latency.p99_99)];
    for (name, value) in usual
        .into_iter()
        .chain(rest.into_iter().filter(|_| is_detailed))
    {
        let value = match value {
            NEVER => format_latency(value),
            ended => format!("{before}{}", format_latency(ended)),
        };
        writeln!(text, "    {name:>6} {value:>9}")?;
    }
    Ok(())
}

/// The delays between the server and the figures: of the generator, and of its slots.
fn delays(text: &mut String, report: &LoadReport, is_detailed: bool) -> std::fmt::Result {
    let Some(delay) = report.delay.filter(|delay| delay.handling_ns.count > 0) else {
        return Ok(());
    };
    let exact = delay.pick_up_exact == delay.pick_up_ns.count;
    let pick_up = match (delay.pick_up_ns.count, exact) {
        (0, _) => "not known".to_owned(),
        (_, true) => format_latency(delay.pick_up_ns.p99),
        (_, false) => format!("≤ {}", format_latency(delay.pick_up_ns.p99)),
    };
    if !is_detailed {
        let waited = match delay.slot_wait_ns.count {
            0 => String::new(),
            count => format!(
                "slot wait {} ({count} waited), ",
                format_latency(delay.slot_wait_ns.p99)
            ),
        };
        return writeln!(
            text,
            "  Delays (99%): sent late {}, {waited}pick-up {pick_up}, handling {}",
            format_latency(delay.lateness_ns.p99),
            format_latency(delay.handling_ns.p99)
        );
    }
    writeln!(
        text,
        "  Delays              50%       99%     99.9%       Max     Count"
    )?;
    let pick_up = if exact { "pick-up" } else { "pick-up, ≤" };
    for (name, of) in [
        ("sent late", &delay.lateness_ns),
        ("slot wait", &delay.slot_wait_ns),
        (pick_up, &delay.pick_up_ns),
        ("handling", &delay.handling_ns),
        ("send bracket", &delay.send_bracket_ns),
    ] {
        let values = [of.p50, of.p99, of.p99_9, of.max].map(format_latency);
        let [p50, p99, p99_9, max] = match of.count {
            0 => [(); 4].map(|()| "-".to_owned()),
            _ => values,
        };
        writeln!(
            text,
            "    {name:<12} {p50:>9} {p99:>9} {p99_9:>9} {max:>9} {:>9}",
            of.count
        )?;
    }
    if delay.woken > 0 {
        writeln!(
            text,
            "    {} woke a sleeping thread and have no pick-up to report",
            counted(delay.woken, "answer")
        )?;
    }
    Ok(())
}

/// A stall from this many times the 99th percentile on is far above it.
const STALL: u64 = 10;
/// And hides something where this part of all requests was not sent for it: what p99.9 would rest on.
const HIDDEN_SHARE: f64 = 0.001;

/// The requests that a closed loop did not send while it waited, and so does not show.
fn hidden(text: &mut String, report: &LoadReport, is_detailed: bool) -> std::fmt::Result {
    let (latency, Some(corrected)) = (&report.latency_ns, &report.corrected_ns) else {
        return Ok(());
    };
    if report.pace.is_open() {
        return Ok(());
    }
    let unsent = corrected.count.saturating_sub(latency.count);
    let far = latency.max > latency.p99.saturating_mul(STALL);
    if far && unsent as f64 >= HIDDEN_SHARE * corrected.count as f64 && unsent > 0 {
        writeln!(
            text,
            "  Hidden: requests wait for answers here, so that about {unsent} were not sent while others took up to {};\n          \
             at a steady rate 99% might be {} (--rate measures it)",
            format_latency(latency.max),
            format_latency(corrected.p99)
        )?;
    }
    if is_detailed {
        writeln!(
            text,
            "  Latency distribution, hypothetical: with {unsent} requests made up that were not sent, by wrk's rule"
        )?;
        percentiles(text, corrected, true, "")?;
    }
    Ok(())
}

/// The end of the data, compressed answers and redirects.
fn sources(text: &mut String, report: &LoadReport) -> std::fmt::Result {
    if report.data_ended {
        let why = "The data ended: each of its rows was used once, and the run ended with the last";
        writeln!(text, "  {why}")?;
    }
    if let Some(coded) = &report.coded {
        let answers = counted(coded.answers, "answer");
        writeln!(
            text,
            "  Compressed: {} of {answers}; bodies of {} stand for {}",
            coded.coded,
            bytes(coded.wire_bytes as f64),
            bytes(coded.decoded_bytes as f64)
        )?;
    }
    if let Some(redirects) = &report.redirects {
        let times = &redirects.whole_ns;
        let unfinished = match redirects.unfinished {
            0 => String::new(),
            count => format!(", {count} not sent before the end"),
        };
        return writeln!(
            text,
            "  Redirects: {} followed{unfinished}; with them a request took 50% {}, 99% {}",
            redirects.followed,
            format_latency(times.p50),
            format_latency(times.p99)
        );
    }
    let redirects = ["301", "302", "303", "307", "308"];
    let redirected = redirects.iter().filter_map(|code| report.status.get(*code));
    match redirected.sum::<u64>() {
        0 => Ok(()),
        count => writeln!(
            text,
            "  Redirects: {count}, counted as answers and not followed"
        ),
    }
}

/// The fate of a schedule.
fn open_loop(text: &mut String, report: &LoadReport) -> std::fmt::Result {
    let what = match report.scenario {
        None => "request",
        Some(_) => "iteration",
    };
    if report.unsent > 0 {
        writeln!(
            text,
            "  Not sent: {} of -n: the server could not be reached any more",
            counted(report.unsent, what)
        )?;
    }
    let Some(arrivals) = &report.arrivals else {
        return Ok(());
    };
    let drawn = PerSecond::of(arrivals.in_window, Nanos(report.window_ns)).0;
    let pace_text = pace::described(&report.pace).unwrap_or_default();
    if let Some(scenario) = &report.scenario {
        return steps::arrivals(text, report, scenario, drawn);
    }
    let completed = report.rate_per_s;
    writeln!(
        text,
        "  Asked for {pace_text}; drawn {drawn:.2}/s, completed {completed:.2}/s"
    )?;
    if arrivals.generator_short {
        writeln!(
            text,
            "  INVALID: this generator was at its limit: {completed:.2}/s of {drawn:.2}/s drawn. The server may do more: give \
             it\n  more threads (-t) or processors"
        )?;
    } else if arrivals.overloaded && report.counts.connect_failed.refused > 0 {
        writeln!(
            text,
            "  OVERLOADED: the server refused {} and completed {completed:.2}/s of {drawn:.2}/s drawn: it was down, or \
             has\n  too much to do",
            counted(report.counts.connect_failed.refused, "connection")
        )?;
    } else if arrivals.overloaded {
        writeln!(
            text,
            "  OVERLOADED: the server completed {completed:.2}/s of {drawn:.2}/s drawn, with all connections busy: latencies \
             grow for as\n  long as that goes on, and say how long the run was"
        )?;
    }
    Ok(())
}

fn totals(text: &mut String, report: &LoadReport) -> std::fmt::Result {
    let seconds = Nanos(report.window_ns).as_secs_f64();
    writeln!(
        text,
        "  {} in {seconds:.2}s, {} read",
        counted(report.completed, "request"),
        bytes(report.received_bytes as f64)
    )?;
    if report.counts.unexpected_status > 0 {
        let codes: Vec<String> = report
            .status
            .iter()
            .map(|(code, count)| format!("{code} × {count}"))
            .collect();
        // Of the statuses that --expect-status names, wrk's words may not be true.
        let is_usual = |code: &&String| code.starts_with('2') || code.starts_with('3');
        let usual = report.status.keys().filter(is_usual);
        let usual: u64 = usual.map(|code| report.status[code]).sum();
        let name = match report.completed - usual == report.counts.unexpected_status {
            true => "Non-2xx or 3xx responses",
            false => "Unexpected status",
        };
        writeln!(
            text,
            "  {name}: {} (status: {})",
            report.counts.unexpected_status,
            codes.join(", ")
        )?;
    }
    let (failed, connects) = (report.counts.failed, report.counts.connect_failed);
    if failed.total() + connects.total() > 0 {
        writeln!(
            text,
            "  Errors: {}{}",
            kinds("", &failed.by_kind()),
            kinds("connect ", &connects.by_kind())
        )?;
    }
    for of in report.checks.iter().filter(|of| of.failed > 0) {
        let answers = counted(of.failed, "answer");
        writeln!(text, "  Check failed: {} ({answers})", of.check)?;
    }
    if connects.system > 0 {
        let cause = "The system refused connections: is the limit on open files (`ulimit -n`) or on local ports reached?";
        writeln!(text, "  {cause}")?;
    }
    if report.connections_closed_by_server > 0 {
        writeln!(
            text,
            "  The server closed {} after an answer, or before the one that followed",
            counted(report.connections_closed_by_server, "connection")
        )?;
    }
    if report.connections_stray > 0 {
        writeln!(
            text,
            "  {} ended because of bytes that were not requested",
            counted(report.connections_stray, "connection")
        )?;
    }
    let transfer = PerSecond::of(report.received_bytes, Nanos(report.window_ns)).0;
    writeln!(text, "Requests/sec: {:>12.2}", report.rate_per_s)?;
    writeln!(text, "Transfer/sec: {:>12}", bytes(transfer))
}

/// Bodies that waited for a 100.
fn continued(text: &mut String, report: &LoadReport) -> std::fmt::Result {
    match report.continued {
        None => Ok(()),
        Some(count) => writeln!(
            text,
            "Continued:    {} sent after a 100",
            match count {
                1 => "1 body".to_owned(),
                _ => format!("{count} bodies"),
            }
        ),
    }
}

/// A limit on streams by a server of HTTP/2.
fn streams(text: &mut String, report: &LoadReport) -> std::fmt::Result {
    let Some(allowed) = report.http2.and_then(|http2| http2.streams_max) else {
        return Ok(());
    };
    if allowed >= u64::from(report.depth.max(1)) {
        return Ok(());
    }
    let allowed = counted(allowed, "stream");
    writeln!(
        text,
        "HTTP/2:       the server allowed {allowed} on a connection; {} were asked for",
        report.depth
    )
}

/// What TLS took, and what it said where it failed.
fn handshakes(text: &mut String, report: &LoadReport) -> std::fmt::Result {
    let Some(tls) = &report.tls else {
        return Ok(());
    };
    if tls.full + tls.resumed > 0 {
        let protocol = match tls.protocol.as_str() {
            "" => String::new(),
            protocol => format!(", {protocol}"),
        };
        writeln!(
            text,
            "TLS:          {}, {}{protocol}",
            tls.version, tls.cipher
        )?;
        write!(
            text,
            "Handshakes:   {} full, {} resumed; 50% {}, 99% {}, after a connect of 50% {}, 99% {}",
            tls.full,
            tls.resumed,
            format_latency(tls.handshake_ns.p50),
            format_latency(tls.handshake_ns.p99),
            format_latency(report.connect_ns.p50),
            format_latency(report.connect_ns.p99)
        )?;
        match tls.in_window {
            0 => writeln!(text)?,
            _ => writeln!(text, "; {:.2}/s in the window", tls.rate_per_s)?,
        }
    }
    match &tls.failure {
        Some(failure) => writeln!(text, "TLS failed:   {failure} (the first failure)"),
        None => Ok(()),
    }
}

/// The rule of its protocol that the server broke.
fn broken(text: &mut String, report: &LoadReport) -> std::fmt::Result {
    match &report.protocol_failure {
        Some(rule) => writeln!(text, "Protocol:     {rule} (the first failure)"),
        None => Ok(()),
    }
}

fn kinds(before: &str, failures: &[(&str, u64)]) -> String {
    let happened = failures.iter().filter(|&&(_, count)| count > 0);
    happened
        .map(|(kind, count)| format!("{before}{} {count}  ", kind.replace('_', " ")))
        .collect()
}

fn accounts(text: &mut String, report: &LoadReport) -> std::fmt::Result {
    let counts = &report.counts;
    if report.completed > 0 {
        let worked_ns = (report.cpu_ns - report.spun_ns) as f64;
        let each = worked_ns / report.completed as f64 / 1e3;
        let of_a_core = |cpu_ns: f64| cpu_ns / report.window_ns.max(1) as f64;
        let (busy, spun) = (of_a_core(worked_ns), of_a_core(report.spun_ns as f64));
        let looked = match spun >= 0.005 {
            true => format!("; looking for answers: {spun:.2}"),
            false => String::new(),
        };
        writeln!(
            text,
            "Client CPU:   {each:>10.2}us per request ({busy:.2} of a core{looked}, {})",
            report.driver
        )?;
    }
    let warmup = counts.warmup_completed + counts.warmup_failed;
    let warmup = if warmup > 0 {
        format!("{warmup} in the warm-up + ")
    } else {
        String::new()
    };
    // What waited for a slot at the end was not on its way to the server: it was sent after it.
    let late = match counts.sent_in_drain {
        0 => String::new(),
        late => format!(" + waiting then, and sent later {late}"),
    };
    writeln!(
        text,
        "Accounted:    sent {} = {warmup}completed {} + failed {} + in flight at the end {}{late}",
        counts.sent,
        counts.completed,
        counts.failed.total(),
        counts.in_flight.saturating_sub(counts.sent_in_drain)
    )?;
    let Some(arrivals) = &report.arrivals else {
        return Ok(());
    };
    writeln!(
        text,
        "Scheduled:    {} = sent {} + still waiting {} + dropped {} (queue: {} of {} at the most)",
        arrivals.scheduled,
        arrivals.sent,
        arrivals.waiting,
        arrivals.dropped,
        arrivals.waiting_max,
        arrivals.queue_max
    )
}

/// Bytes as wrk writes them: powers of 1024, two decimals.
pub fn bytes(count: f64) -> String {
    let mut value = count;
    for unit in ["B", "KB", "MB", "GB"] {
        if value < 1024.0 {
            return format!("{value:.2}{unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.2}TB")
}

#[cfg(test)]
mod tests {
    use prony_record::{Arrivals, Counts, Failures, GeneratorDelay, Histogram, Pace};

    use super::*;

    fn outcome() -> LoadResult {
        let counts = Counts {
            sent: 1_234_767,
            completed: 1_234_567,
            unexpected_status: 3,
            failed: Failures {
                timeout: 100,
                ..Failures::default()
            },
            in_flight: 100,
            drained: 100,
            connect_failed: Failures {
                refused: 2,
                ..Failures::default()
            },
            ..Counts::default()
        };
        let latency_ns = LatencyNs {
            count: 1_234_567,
            min: 80_100,
            mean: 810_250.0,
            stdev: 92_000.0,
            p50: 800_000,
            p75: 850_000,
            p90: 900_000,
            p99: 1_200_000,
            p99_9: 4_590_000,
            p99_99: 12_000_000,
            max: 1_070_000_000,
            infinite: 0,
        };
        let report = LoadReport {
            driver: "ring".to_owned(),
            window_ns: 10_000_000_000,
            completed: 1_234_567,
            rate_per_s: 123_456.7,
            counts,
            status: [("200".to_owned(), 1_234_564), ("503".to_owned(), 3)].into(),
            received_bytes: 189_000_000,
            latency_ns,
            cpu_ns: 5_061_000_000,
            connections_closed_by_server: 7,
            ..LoadReport::default()
        };
        LoadResult {
            failed_answers: Vec::new(),
            observed: Vec::new(),
            report,
            histogram: Histogram::default(),
            trace: Vec::new(),
            fallback: None,
            interrupted: false,
        }
    }

    #[test]
    fn a_wrk_user_reads_it_at_once() {
        insta::assert_snapshot!(text(&outcome(), true));
    }

    #[test]
    fn a_run_without_any_answer_divides_by_nothing() {
        let nothing = LoadResult {
            report: LoadReport::default(),
            ..outcome()
        };
        insta::assert_snapshot!(text(&nothing, false));
    }

    fn about(p50: u64) -> LatencyNs {
        LatencyNs {
            count: 10_000,
            min: p50 / 2,
            mean: p50 as f64,
            stdev: p50 as f64 / 10.0,
            p50,
            p75: p50 + p50 / 8,
            p90: p50 + p50 / 4,
            p99: 2 * p50,
            p99_9: 3 * p50,
            p99_99: 4 * p50,
            max: 5 * p50,
            infinite: 0,
        }
    }

    fn delay() -> GeneratorDelay {
        GeneratorDelay {
            lateness_ns: about(1_000),
            slot_wait_ns: LatencyNs::default(),
            pick_up_ns: about(3_000),
            pick_up_exact: 0,
            woken: 17,
            handling_ns: about(2_000),
            send_bracket_ns: about(4_000),
            at_most: false,
        }
    }

    /// 1,000 a second for ten seconds, of which the server does 800.
    fn open() -> LoadResult {
        let mut outcome = outcome();
        let report = &mut outcome.report;
        report.pace = Pace::Poisson {
            rate_per_s: 1_000.0,
        };
        report.latency_from = LatencyOrigin::Intended;
        (report.completed, report.rate_per_s) = (8_000, 800.0);
        report.latency_ns = LatencyNs {
            p99: NEVER,
            p99_9: NEVER,
            p99_99: NEVER,
            max: NEVER,
            infinite: 120,
            ..about(900_000_000)
        };
        let slot_wait_ns = LatencyNs {
            count: 9_900,
            ..about(890_000_000)
        };
        report.delay = Some(GeneratorDelay {
            slot_wait_ns,
            at_most: true,
            ..delay()
        });
        report.counts = Counts {
            sent: 10_020,
            completed: 8_000,
            in_flight: 2_020,
            drained: 2_020,
            sent_in_drain: 2_000,
            ..Counts::default()
        };
        report.arrivals = Some(Arrivals {
            scheduled: 10_140,
            sent: 10_020,
            waiting: 100,
            dropped: 20,
            dropped_in_window: 20,
            in_window: 10_140,
            waiting_max: 2_000,
            queue_max: 2_000,
            overloaded: true,
            generator_short: false,
        });
        report.drain_cut = true;
        outcome
    }

    #[test]
    fn an_open_loop_says_what_became_of_its_schedule() {
        insta::assert_snapshot!(text(&open(), false));
    }

    #[test]
    fn a_generator_that_is_too_slow_is_not_taken_for_a_slow_server() {
        let mut short = open();
        let arrivals = short.report.arrivals.as_mut().expect("a schedule");
        (arrivals.overloaded, arrivals.generator_short) = (false, true);
        let said = text(&short, false);
        assert!(
            said.contains("this generator was at its limit: 800.00/s of 1014.00/s"),
            "{said}"
        );
        assert!(!said.contains("OVERLOADED"), "{said}");
    }

    /// 1 ms answers that were frozen once for 500 ms.
    #[test]
    fn a_closed_loop_says_what_it_hides() {
        let mut frozen = outcome();
        let report = &mut frozen.report;
        report.delay = Some(delay());
        report.latency_ns = LatencyNs {
            max: 500_000_000,
            ..about(1_000_000)
        };
        report.corrected_ns = Some(LatencyNs {
            count: 10_499,
            p99: 398_000_000,
            max: 500_000_000,
            ..about(1_000_000)
        });
        insta::assert_snapshot!(text(&frozen, true));
        assert!(
            text(&frozen, false).contains("about 499 were not sent while others took up to 500ms")
        );
        let few = frozen.report.corrected_ns.as_mut().expect("some");
        few.count = 10_005;
        assert!(
            !text(&frozen, false).contains("Hidden"),
            "five hide nothing"
        );
    }

    #[test]
    fn requests_that_were_never_sent_are_named() {
        let mut died = outcome();
        died.report.unsent = 88;
        let said = text(&died, false);
        assert!(said.contains("Not sent: 88 requests of -n"), "{said}");
    }
}
