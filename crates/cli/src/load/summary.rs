//! What `prony load` prints for a person: laid out so that a wrk user reads it
//! at once, and so that what reads wrk's `Requests/sec:` line reads ours.

use std::fmt::Write as _;

use prony_base::{Nanos, counted};
use prony_load::{LoadReport, LoadSpec, Outcome};
use prony_record::LatencyNs;

/// The two lines before a run.
pub fn heading(spec: &LoadSpec) -> String {
    let what = match spec.requests_max {
        Some(requests) => counted(requests, "request"),
        None => format!("{} test", Nanos(spec.duration_ns)),
    };
    let (threads, connections) = (
        counted(spec.threads, "thread"),
        counted(spec.connections, "connection"),
    );
    format!(
        "Running {what} @ {}\n  {threads} and {connections}\n",
        spec.target.url
    )
}

/// The lines after a run.
pub fn text(outcome: &Outcome, whole_latency: bool) -> String {
    let report = &outcome.report;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = latency(&mut text, &report.latency_ns, whole_latency);
    let _ = totals(&mut text, report);
    let _ = accounts(&mut text, report);
    if outcome.interrupted {
        let _ = writeln!(
            text,
            "Interrupted: these figures are of the time until then."
        );
    }
    text
}

fn latency(text: &mut String, latency: &LatencyNs, whole: bool) -> std::fmt::Result {
    let shown = |ns: u64| Nanos(ns).to_string();
    let (mean, stdev) = (Nanos(latency.mean as u64), Nanos(latency.stdev as u64));
    writeln!(text, "  Latency      Mean     Stdev       Min       Max")?;
    let (mean, stdev) = (mean.to_string(), stdev.to_string());
    writeln!(
        text,
        "         {mean:>8}  {stdev:>8}  {:>8}  {:>8}",
        shown(latency.min),
        shown(latency.max)
    )?;
    writeln!(text, "  Latency distribution")?;
    let usual = [
        ("50%", latency.p50),
        ("75%", latency.p75),
        ("90%", latency.p90),
        ("99%", latency.p99),
    ];
    let rest = [("99.9%", latency.p99_9), ("99.99%", latency.p99_99)];
    for (name, value) in usual.into_iter().chain(rest.into_iter().filter(|_| whole)) {
        writeln!(text, "    {name:>6} {:>9}", shown(value))?;
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
        writeln!(
            text,
            "  Non-2xx or 3xx responses: {} (status: {})",
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
    if report.connections_closed_by_server > 0 {
        writeln!(
            text,
            "  The server closed {} after an answer",
            counted(report.connections_closed_by_server, "connection")
        )?;
    }
    let transfer = if seconds > 0.0 {
        report.received_bytes as f64 / seconds
    } else {
        0.0
    };
    writeln!(text, "Requests/sec: {:>12.2}", report.rate_per_s)?;
    writeln!(text, "Transfer/sec: {:>12}", bytes(transfer))
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
        let each = report.cpu_ns as f64 / report.completed as f64 / 1e3;
        let busy = report.cpu_ns as f64 / report.window_ns.max(1) as f64;
        writeln!(
            text,
            "Client CPU:   {each:>10.2}us per request ({busy:.2} of a core, {})",
            report.driver
        )?;
    }
    let warmup = counts.warmup_completed + counts.warmup_failed;
    let warmup = if warmup > 0 {
        format!("{warmup} in the warm-up + ")
    } else {
        String::new()
    };
    writeln!(
        text,
        "Accounted:    sent {} = {warmup}completed {} + failed {} + in flight at the end {}",
        counts.sent,
        counts.completed,
        counts.failed.total(),
        counts.in_flight
    )
}

/// Bytes as wrk writes them: powers of 1024, two decimals.
fn bytes(count: f64) -> String {
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
    use prony_record::{Counts, Failures, Histogram};

    use super::*;

    fn outcome() -> Outcome {
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
        Outcome {
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
        let nothing = Outcome {
            report: LoadReport::default(),
            ..outcome()
        };
        insta::assert_snapshot!(text(&nothing, false));
    }
}
