//! `prony load --find-max`: the highest rate that keeps an objective, and latency against rate on the way there.

use std::fmt::Write as _;
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use prony_base::{Nanos, counted};
use prony_load::{LoadSpec, Objective, find_max};
use prony_record::{NEVER, Pace, RateSearch, RateStep, SpreadKind, StepOutcome};

use super::summary::format_latency;
use crate::signals::interruption;
use crate::{Ending, Streams};

/// Length of a step where none is given.
pub const STEP: Nanos = Nanos::from_secs(2);
/// Steps whose rates lie no farther apart are one line.
const LINE_MAX: f64 = 1.025;
/// Characters of the longest bar.
const BAR: f64 = 24.0;

/// Runs the search.
pub fn run(
    spec: &LoadSpec,
    objective: &Objective,
    json: Option<&Path>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Ending> {
    let to_stdout = json == Some(Path::new("-"));
    if !to_stdout {
        write!(streams.out, "{}", heading(spec, objective))?;
        streams.out.flush()?;
    }
    let bar = progress()?;
    let mut hear = |step: &RateStep, left: usize| {
        bar.set_message(format!(
            "{:.0} requests/s: {} {}, {}; about {} to go",
            step.rate_per_s,
            objective.figure(),
            format_latency(step.objective_ns),
            step.outcome.word(),
            counted(left, "step"),
        ));
        bar.tick();
    };
    let search = find_max(spec, objective, &mut interruption()?, &mut hear);
    bar.finish_and_clear();
    let search = search?;
    if let Some(file) = json {
        super::write_json(file, &search, streams)?;
    }
    if !to_stdout {
        write!(streams.out, "{}", text(&search, objective))?;
    }
    Ok(match search.highest {
        _ if search.interrupted => Ending::Interrupted,
        Some(_) => Ending::Done,
        None if is_by_generator(&search) => Ending::Invalid,
        None => Ending::Failed,
    })
}

fn progress() -> anyhow::Result<ProgressBar> {
    let bar = ProgressBar::no_length();
    bar.set_style(ProgressStyle::with_template("  {msg}")?);
    bar.set_message("closed loop, for a first rate");
    Ok(bar)
}

fn heading(spec: &LoadSpec, objective: &Objective) -> String {
    let spaced = match spec.pace {
        Pace::Poisson { .. } => "Poisson",
        _ => "evenly spaced",
    };
    format!(
        "Looking for the highest rate with {objective} @ {}\n  {} and {}, {spaced}; about 30 steps of {} and as many pauses\n",
        spec.target.url,
        counted(spec.threads, "thread"),
        counted(spec.connections, "connection"),
        Nanos(spec.duration_ns),
    )
}

/// The text at the end.
fn text(search: &RateSearch, objective: &Objective) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = curve(&mut text, search, objective);
    let _ = outcome(&mut text, search, objective);
    text
}

/// Steps of about one rate, as one line.
struct Line {
    rate_per_s: f64,
    p50_ns: u64,
    figure_ns: u64,
    steps_kept: usize,
    steps: usize,
    by_generator: bool,
}

fn lines(steps: &[RateStep]) -> Vec<Line> {
    let mut sorted: Vec<&RateStep> = steps.iter().collect();
    sorted.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let near = |first: &&RateStep, next: &&RateStep| next.rate_per_s <= first.rate_per_s * LINE_MAX;
    let mut lines = Vec::new();
    let mut rest = &sorted[..];
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|next| near(first, next)).count();
        let (alike, others) = rest.split_at(count);
        lines.push(Line::new(alike));
        rest = others;
    }
    lines
}

impl Line {
    /// INVARIANT of the caller: there is a step.
    fn new(steps: &[&RateStep]) -> Line {
        let middle = |of: fn(&RateStep) -> u64| {
            let mut values: Vec<u64> = steps.iter().map(|step| of(step)).collect();
            values.sort_unstable();
            values[(values.len() - 1) / 2]
        };
        Line {
            rate_per_s: steps[steps.len() / 2].rate_per_s,
            p50_ns: middle(|step| step.p50_ns),
            figure_ns: middle(|step| step.objective_ns),
            steps_kept: steps
                .iter()
                .filter(|step| step.outcome == StepOutcome::Kept)
                .count(),
            steps: steps.len(),
            by_generator: steps
                .iter()
                .any(|step| step.outcome == StepOutcome::GeneratorShort),
        }
    }
}

/// Latency against rate, the edge between what is kept and what is not.
fn curve(text: &mut String, search: &RateSearch, objective: &Objective) -> std::fmt::Result {
    let lines = lines(&search.steps);
    let bar = bars(&lines);
    writeln!(
        text,
        "  {:>11}  {:>8}  {:>8}  {:<7}  {} on a logarithmic scale",
        "requests/s",
        "p50",
        objective.figure(),
        "kept",
        objective.figure()
    )?;
    let edge = search.highest.as_ref();
    let mut before = 0.0;
    for line in &lines {
        if let Some(highest) =
            edge.filter(|at| before < at.rate_per_s && at.rate_per_s <= line.rate_per_s)
        {
            writeln!(
                text,
                "  {:>11.0}  {:-<60}",
                highest.rate_per_s, "-- the highest "
            )?;
        }
        before = line.rate_per_s;
        let share = format!("{} of {}", line.steps_kept, line.steps);
        let by_generator = match line.by_generator {
            true => " (the generator was the limit)",
            false => "",
        };
        let row = format!(
            "  {:>11.0}  {:>8}  {:>8}  {share:<7}  {}{by_generator}",
            line.rate_per_s,
            format_latency(line.p50_ns),
            format_latency(line.figure_ns),
            bar(line.figure_ns),
        );
        writeln!(text, "{}", row.trim_end())?;
    }
    Ok(())
}

/// The bar of a latency, of the longest finite one the longest.
fn bars(lines: &[Line]) -> impl Fn(u64) -> String {
    let finite = || {
        lines
            .iter()
            .map(|line| line.figure_ns.max(1))
            .filter(|ns| *ns != NEVER)
    };
    let least = finite().min().unwrap_or(1) as f64;
    let most = finite().max().unwrap_or(1) as f64;
    move |ns| {
        let part = match ns {
            NEVER => 1.0,
            ns => (ns.max(1) as f64 / least).ln() / (most / least).ln().max(f64::MIN_POSITIVE),
        };
        let length = (part.clamp(0.0, 1.0) * (BAR - 1.0)).round() as usize + 1;
        format!(
            "{}{}",
            "#".repeat(length),
            if ns == NEVER { " ∞" } else { "" }
        )
    }
}

fn outcome(text: &mut String, search: &RateSearch, objective: &Objective) -> std::fmt::Result {
    let rounds = counted(search.rounds.len(), "round");
    writeln!(
        text,
        "Closed loop: {:.0} requests/s",
        search.closed_loop_per_s
    )?;
    let Some(highest) = search.highest else {
        return match search.interrupted {
            true => writeln!(text, "Interrupted: the highest rate is not known."),
            false => nowhere(text, search, objective),
        };
    };
    let (rate, low, high) = (highest.rate_per_s, highest.low, highest.high);
    write!(text, "Highest rate with {objective}: ")?;
    match highest.spread {
        _ if highest.at_least => writeln!(
            text,
            "at least {low:.0} requests/s, where the generator was the limit (median of {rounds}: {rate:.0}); more threads (-t) may help"
        ),
        SpreadKind::Interval => writeln!(
            text,
            "{rate:.0} requests/s (95 % interval {low:.0} to {high:.0}, {rounds})"
        ),
        SpreadKind::Range => writeln!(
            text,
            "{rate:.0} requests/s, but the rounds form two groups between {low:.0} and {high:.0}: the machine or the server did not \
             stay the same"
        ),
    }
}

fn nowhere(text: &mut String, search: &RateSearch, objective: &Objective) -> std::fmt::Result {
    let by_rate = |a: &&RateStep, b: &&RateStep| a.rate_per_s.total_cmp(&b.rate_per_s);
    let lowest = search.steps.iter().min_by(by_rate);
    let rate = lowest.map_or(0.0, |step| step.rate_per_s);
    if is_by_generator(search) {
        return writeln!(
            text,
            "Whether {objective} is kept at any rate is not known: even at {rate:.1} requests/s the generator itself was \
             late by more than half of that; a quieter machine, or --spin, may help"
        );
    }
    writeln!(
        text,
        "{objective} is not kept at {rate:.1} requests/s, the lowest rate at which a step of {} has enough requests to decide; \
         relax the objective, or use longer steps (-d)",
        Nanos(search.step_ns)
    )
}

/// Whether nothing was found for the generator's own delay.
fn is_by_generator(search: &RateSearch) -> bool {
    let last = search.steps.last();
    search.highest.is_none() && last.is_some_and(|step| step.outcome == StepOutcome::GeneratorShort)
}

#[cfg(test)]
mod tests {
    use prony_record::HighestRate;

    use super::*;

    fn step(rate_per_s: f64, p99_ns: u64, outcome: StepOutcome) -> RateStep {
        RateStep {
            round: 1,
            rate_per_s,
            completed_per_s: rate_per_s,
            p50_ns: 100_000,
            p99_ns,
            objective_ns: p99_ns,
            lateness_ns: 1_000,
            growth: 0,
            failed: 0,
            outcome,
            ..RateStep::default()
        }
    }

    fn search() -> RateSearch {
        RateSearch {
            schema: 1,
            generator: "prony".to_owned(),
            target: prony_record::LoadTarget::default(),
            threads: 1,
            connections: 10,
            objective: "p99 < 10ms".to_owned(),
            step_ns: STEP.0,
            closed_loop_per_s: 3_000.0,
            steps: vec![
                step(1_500.0, 300_000, StepOutcome::Kept),
                step(3_000.0, NEVER, StepOutcome::Missed),
                step(2_100.0, 2_000_000, StepOutcome::Kept),
                step(2_120.0, 3_000_000, StepOutcome::Kept),
                step(2_400.0, 90_000_000, StepOutcome::Missed),
            ],
            rounds: vec![2_200.0; 6],
            highest: Some(HighestRate {
                rate_per_s: 2_200.0,
                low: 2_150.0,
                high: 2_250.0,
                spread: SpreadKind::Interval,
                at_least: false,
            }),
            interrupted: false,
        }
    }

    fn said(change: impl FnOnce(&mut RateSearch)) -> String {
        let mut search = search();
        change(&mut search);
        text(&search, &"p99<10ms".parse().expect("an objective"))
    }

    #[test]
    fn the_curve_has_its_edge_and_the_last_line_is_the_answer() {
        assert_eq!(
            said(|_| {}),
            "   requests/s       p50       p99  kept     p99 on a logarithmic scale
         1500     100us     300us  1 of 1   #
         2120     100us    2.00ms  2 of 2   #########
         2200  -- the highest ---------------------------------------------
         2400     100us    90.0ms  0 of 1   ########################
         3000     100us         ∞  0 of 1   ######################## ∞
Closed loop: 3000 requests/s
Highest rate with p99 < 10ms: 2200 requests/s (95 % interval 2150 to 2250, 6 rounds)
"
        );
    }

    #[test]
    fn what_the_search_could_not_tell_is_said() {
        let with = |highest: HighestRate| said(|search| search.highest = Some(highest));
        let highest = search().highest.expect("one");
        let at_least = with(HighestRate {
            at_least: true,
            ..highest
        });
        assert!(
            at_least.contains("at least 2150 requests/s, where the generator was the limit"),
            "{at_least}"
        );
        let groups = with(HighestRate {
            spread: SpreadKind::Range,
            ..highest
        });
        assert!(
            groups.contains("form two groups between 2150 and 2250"),
            "{groups}"
        );
        let none = said(|search| search.highest = None);
        assert!(
            none.contains("p99 < 10ms is not kept at 1500.0 requests/s, the lowest rate at which a step of 2.00s has"),
            "{none}"
        );
        let by_generator = said(|search| {
            search.highest = None;
            search
                .steps
                .push(step(750.0, 20_000_000, StepOutcome::GeneratorShort));
        });
        assert!(
            by_generator
                .contains("is not known: even at 750.0 requests/s the generator itself was late"),
            "{by_generator}"
        );
        let interrupted = said(|search| {
            search.interrupted = true;
            search.highest = None;
        });
        assert!(
            interrupted.ends_with("Interrupted: the highest rate is not known.\n"),
            "{interrupted}"
        );
    }
}
