//! The lines of `prony load` on users and their steps.

use std::fmt::{self, Write as _};

use prony_base::{Nanos, PerSecond};
use prony_load::{LoadReport, pace};
use prony_record::{IterationCounts, LatencyNs, ScenarioReport, StepReport};

use super::format_latency;

/// Width of the names of steps at the most; a longer one moves its line.
const NAME_MAX: usize = 30;

/// A pace in words, of users in place of requests.
pub fn of_users(pace: &str) -> String {
    pace.replace("requests/s", "users/s")
        .replace("request/s", "user/s")
}

/// The fate of the schedule of users, of which `drawn` a second were drawn.
pub fn arrivals(
    text: &mut String,
    report: &LoadReport,
    scenario: &ScenarioReport,
    drawn: f64,
) -> fmt::Result {
    let pace_text = of_users(&pace::described(&report.pace).unwrap_or_default());
    let window = Nanos(report.window_ns);
    let completed = PerSecond::of(scenario.iterations().completed_in_window, window).0;
    writeln!(
        text,
        "  Asked for {pace_text}; drawn {drawn:.2}/s, iterations completed {completed:.2}/s"
    )?;
    let Some(arrivals) = &report.arrivals else {
        return Ok(());
    };
    let late = arrivals.waiting + arrivals.dropped_in_window + report.counts.sent_in_drain;
    if arrivals.generator_short {
        writeln!(
            text,
            "  INVALID: this generator was at its limit: {late} users of {} could not begin in the window. Give it more threads (-t) or\n  \
             processors",
            arrivals.in_window
        )?;
    } else if arrivals.overloaded {
        writeln!(
            text,
            "  OVERLOADED: {late} users of {} could not begin in the window, with a user on each connection: latencies of first steps\n  \
             grow for as long as that goes on. Users take too long, or there are too few connections (-c)",
            arrivals.in_window
        )?;
    }
    Ok(())
}

/// A line on the iterations, and one for each step; empty without a scenario.
pub fn table(report: &LoadReport) -> String {
    let mut text = String::new();
    let Some(scenario) = &report.scenario else {
        return text;
    };
    let has_several = scenario.flows.len() > 1;
    for flow in &scenario.flows {
        let name = match has_several {
            true => format!("{}: ", flow.name),
            false => String::new(),
        };
        text.push_str(&iterations(
            &name,
            &flow.iterations,
            flow.rate_per_s,
            &flow.duration_ns,
        ));
    }
    let name_of = |step: &StepReport| match has_several {
        true => format!("{}: {}", step.flow, step.name),
        false => step.name.clone(),
    };
    let widths = scenario
        .steps
        .iter()
        .map(|step| name_of(step).chars().count());
    let width = widths.max().unwrap_or_default().clamp(8, NAME_MAX);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "  {:<width$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  Failed",
        "Step", "Sent", "Completed", "In flight", "Per sec", "50%", "99%", "Max"
    );
    for step in &scenario.steps {
        let (of, latency) = (&step.counts, &step.latency_ns);
        let times = match latency.count {
            0 => [(); 3].map(|()| "-".to_owned()),
            _ => [latency.p50, latency.p99, latency.max].map(format_latency),
        };
        let [p50, p99, max] = times;
        let _ = writeln!(
            text,
            "  {:<width$} {:>9} {:>9} {:>9} {:>9.2} {p50:>9} {p99:>9} {max:>9}  {}",
            name_of(step),
            of.sent,
            of.completed,
            of.in_flight,
            step.rate_per_s,
            failed(step)
        );
    }
    text
}

fn iterations(name: &str, of: &IterationCounts, rate: f64, duration: &LatencyNs) -> String {
    let took = match duration.count {
        0 => String::new(),
        _ => format!(
            "; 50% {}, 99% {}",
            format_latency(duration.p50),
            format_latency(duration.p99)
        ),
    };
    format!(
        "Iterations:   {name}started {} = completed {} + abandoned {} + unfinished {}; {rate:.2}/s{took}\n",
        of.started, of.completed, of.abandoned, of.unfinished
    )
}

/// The failures of a step.
fn failed(step: &StepReport) -> String {
    let of = &step.counts;
    let kinds = step.errors.iter();
    let mut all: Vec<String> = kinds
        .map(|(kind, count)| format!("{} {count}", kind.replace('_', " ")))
        .collect();
    for (what, count) in [
        ("unexpected status", of.unexpected_status),
        ("not sent for want of a value", of.lacking),
        ("warm-up", of.warmup_failed),
    ] {
        if count > 0 {
            all.push(format!("{what} {count}"));
        }
    }
    match all.is_empty() {
        true => "0".to_owned(),
        false => all.join(", "),
    }
}
