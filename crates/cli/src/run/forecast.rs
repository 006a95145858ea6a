//! How small a difference a run that was given a time will tell, printed once, when its first blocks have shown how its figures vary.
//!
//! Nothing follows from it for the run: its blocks and windows are fixed. It is worked out between two blocks, while no process of
//! a trial is alive.
//!
//! Not for: what the run could tell in the end, which its document says.

use std::path::{Path, PathBuf};

use prony_base::counted;
use prony_lab::run::Event;
use prony_record::{GeneratorKind, Plan};
use prony_stats::BLOCKS_INTERVAL_MIN;

use super::progress::Bar;
use super::words::percent;
use crate::report;

/// The part of the blocks after which it is printed, in percent: then its upper end is about twice the lower one at the most where a server, its
/// other state and its copy are compared.
const SEEN_PERCENT: u32 = 60;

/// A forecast that is still to be printed.
pub struct Forecast {
    dir: PathBuf,
    blocks: u32,
    /// Trials of the load generator's that are to end before that.
    left: u32,
}

/// Blocks of `planned` after which it is printed. `None`: then the run is over.
pub fn after(planned: u32) -> Option<u32> {
    let seen = (planned * SEEN_PERCENT).div_ceil(100);
    let seen = seen.max(BLOCKS_INTERVAL_MIN as u32);
    (seen < planned).then_some(seen)
}

impl Forecast {
    /// Of the run of `plan` in `dir`; `None`: it is too short.
    pub fn new(plan: &Plan, dir: &Path) -> Option<Forecast> {
        let blocks = after(plan.blocks)?;
        Some(Forecast {
            dir: dir.to_owned(),
            left: blocks * plan.cells.len() as u32,
            blocks,
        })
    }

    /// Whether this event is the one after which it is printed.
    pub fn is_due(&mut self, event: &Event<'_>) -> bool {
        let ended = match event {
            Event::Begun { reused, .. } => *reused,
            // wrk's come between them.
            Event::Ended { trial, .. } => u32::from(trial.generator == GeneratorKind::Prony),
            Event::LeftOut { .. } => 1,
            Event::Started { .. } | Event::Phase(_) => 0,
        };
        self.left = self.left.saturating_sub(ended);
        self.left == 0
    }

    /// Says it. What cannot be read yet, or tells nothing, is no reason to end the run.
    pub fn say(&self, bar: &mut Bar<'_>) {
        let Ok((run, _)) = report::read(&self.dir) else {
            return;
        };
        if let Some((low, high)) = prony_report::pilot::forecast(&run) {
            bar.say(&format!(
                "after {} of {}: in the end this run will tell rates apart that differ by about {:.1} to {}",
                self.blocks,
                counted(run.plan.blocks as usize, "block"),
                100.0 * low.0,
                percent(high.0)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wrk_measures_between_blocks_is_none_of_them() {
        let plan = Plan {
            blocks: 13,
            cells: vec![prony_record::Cell::default(); 2],
            ..Plan::default()
        };
        let mut forecast = Forecast::new(&plan, Path::new("")).expect("blocks to come");
        let mut is_due = |generator: GeneratorKind| {
            let trial = prony_record::Trial {
                generator,
                ..prony_record::Trial::default()
            };
            forecast.is_due(&Event::Ended {
                trial: &trial,
                done: 0,
                total: 0,
                left: prony_base::Nanos::ZERO,
            })
        };
        assert!((1..16).all(|_| !is_due(GeneratorKind::Prony)));
        assert!(!is_due(GeneratorKind::Wrk));
        assert!(is_due(GeneratorKind::Prony));
    }

    #[test]
    fn it_is_said_after_three_fifths_and_not_of_fewer_blocks_than_an_interval_has() {
        let after = [6, 7, 13, 20, 100].map(after);
        assert_eq!(after, [None, Some(6), Some(8), Some(12), Some(60)]);
    }
}
