//! How far a run has come: a bar on a terminal, a line a trial elsewhere.

use std::io::{self, IsTerminal as _, Write};

use indicatif::{ProgressBar, ProgressStyle};
use prony_base::{Nanos, PerSecond, Untrusted};
use prony_lab::run::Event;
use prony_record::{GeneratorKind, Outcome, Phase, Plan, Trial};

/// Shows the events of a run.
pub struct Bar<'a> {
    bar: ProgressBar,
    /// Where lines go when there is no terminal.
    lines: Option<&'a mut dyn Write>,
    what: String,
    left: Nanos,
}

impl<'a> Bar<'a> {
    /// A bar for the trials of `plan`.
    pub fn new(plan: &Plan, err: &'a mut dyn Write) -> anyhow::Result<Bar<'a>> {
        let terminal = io::stderr().is_terminal();
        let total = plan.cells.len() as u64 * u64::from(plan.blocks);
        let bar = ProgressBar::new(total);
        bar.set_style(ProgressStyle::with_template(
            "  {bar:24} {pos}/{len}  {prefix}  {wide_msg}",
        )?);
        Ok(Bar {
            bar,
            lines: (!terminal).then_some(err),
            what: String::new(),
            left: Nanos::ZERO,
        })
    }

    /// Something happened.
    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Begun {
                reused,
                total,
                left,
            } => {
                self.bar.set_length(u64::from(*total));
                self.bar.set_position(u64::from(*reused));
                self.left = *left;
            }
            Event::Started {
                cell,
                block,
                generator,
            } => self.what = title(&cell.id, *block, *generator),
            Event::Phase(phase) => {
                self.bar
                    .set_message(format!("{}: {}", Untrusted(&self.what), verb(*phase)))
            }
            Event::Ended {
                trial,
                done,
                total,
                left,
            } => self.ended(trial, *done, *total, *left),
            Event::LeftOut {
                cell,
                block,
                done,
                total,
            } => {
                self.count(*done, *total);
                self.line(&format!(
                    "{done}/{total}  {}: left out, it has failed before",
                    title(&cell.id, *block, GeneratorKind::Prony)
                ));
            }
        }
        self.bar.set_prefix(format!("{} left", minutes(self.left)));
    }

    fn ended(&mut self, trial: &Trial, done: u32, total: u32, left: Nanos) {
        self.left = left;
        // Of several that are alive together, another one may have been told of last.
        self.what = title(&trial.cell, trial.block, trial.generator);
        self.count(done, total);
        let figure = match (&trial.outcome, &trial.load) {
            (Outcome::Measured, Some(_)) if trial.search.is_some() => highest(trial),
            (Outcome::Measured, Some(load)) => format!("{:.0} requests/s", load.rate_per_s),
            (Outcome::Measured, None) => speed(trial),
            (Outcome::Failed { reason, .. }, _) => format!("failed: {reason}"),
            _ => "interrupted".to_owned(),
        };
        if let (Outcome::Failed { .. }, None) = (&trial.outcome, &self.lines) {
            let line = format!("{}: {figure}", self.what);
            self.bar.println(format!("  {}", Untrusted(line)));
        }
        self.line(&format!(
            "{done}/{total}  {}: {figure}, {} left",
            self.what,
            minutes(left)
        ));
    }

    fn count(&self, done: u32, total: u32) {
        self.bar.set_length(u64::from(total));
        self.bar.set_position(u64::from(done));
    }

    fn line(&mut self, text: &str) {
        if let Some(lines) = &mut self.lines {
            // A standard error without a reader must not end a run.
            let _ = writeln!(lines, "  {}", Untrusted(text));
        }
    }

    /// Says something about the whole run.
    pub fn say(&mut self, text: &str) {
        self.bar.println(format!("  {}", Untrusted(text)));
        self.line(text);
    }

    /// Takes the bar off the terminal.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The result of a search.
fn highest(trial: &Trial) -> String {
    let Some(search) = &trial.search else {
        return String::new();
    };
    match search.highest {
        Some(highest) => {
            let least = if highest.at_least { "at least " } else { "" };
            let (objective, rate) = (&search.objective, highest.rate_per_s);
            format!("{objective} up to {least}{rate:.0} requests/s")
        }
        None => format!("no rate found that keeps {}", search.objective),
    }
}

/// The rate of a program, by its first line: `2.000e7 coroutines/s in 0.250 s`.
fn speed(trial: &Trial) -> String {
    let line = trial.program.as_ref().and_then(|p| p.lines.first());
    let Some(line) = line.filter(|line| line.elapsed_ns > 0) else {
        return "done".to_owned();
    };
    let elapsed = Nanos(line.elapsed_ns);
    let (rate, seconds) = (PerSecond::of(line.count, elapsed).0, elapsed.as_secs_f64());
    format!("{rate:.3e} {}/s in {seconds:.3} s", line.measure)
}

fn title(cell: &str, block: u32, generator: GeneratorKind) -> String {
    match generator {
        GeneratorKind::Prony => format!("block {} {cell}", block + 1),
        profile if profile.is_profile() => format!("{} {cell}", profile.name()),
        other => format!("block {} {cell} ({})", block + 1, other.name()),
    }
}

fn verb(phase: Phase) -> &'static str {
    match phase {
        Phase::Prepare => "preparing",
        Phase::Start => "starting",
        Phase::Ready => "waiting until it is ready",
        Phase::Verify => "verifying",
        Phase::WarmUp => "warming up",
        Phase::Measure => "measuring",
        Phase::Search => "looking for the highest rate",
        Phase::Drain => "draining",
        Phase::Stop => "stopping",
    }
}

/// `45 s`, `3 min 20 s`, `1 h 5 min`.
pub fn minutes(length: Nanos) -> String {
    let seconds = length.0.div_ceil(1_000_000_000);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use prony_record::{ProgramLine, ProgramReport};

    use super::*;

    #[test]
    fn a_program_is_told_by_its_rate() {
        let mut trial = Trial::default();
        assert_eq!(speed(&trial), "done");
        trial.program = Some(ProgramReport {
            lines: vec![ProgramLine {
                measure: "coroutines".to_owned(),
                count: 5_000_000,
                elapsed_ns: 250_000_000,
                ..ProgramLine::default()
            }],
            ..ProgramReport::default()
        });
        assert_eq!(speed(&trial), "2.000e7 coroutines/s in 0.250 s");
    }

    #[test]
    fn time_left_reads_as_people_say_it() {
        let said = [1, 59, 60, 200, 3_600, 7_500].map(|seconds| minutes(Nanos::from_secs(seconds)));
        assert_eq!(
            said,
            [
                "1 s",
                "59 s",
                "1 min 0 s",
                "3 min 20 s",
                "1 h 0 min",
                "2 h 5 min"
            ]
        );
    }
}
