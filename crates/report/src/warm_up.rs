//! How long a warm-up must be, by trials that had none: their slices begin with the first request of a process.

use prony_base::Nanos;
use prony_findings::{Case, Records};
use prony_record::Trial;
use prony_stats::settling;

use crate::Run;

/// Requests before which no server counts as warm: what compiles while it runs does so after thousands of them.
const REQUESTS: u64 = 5_000;

/// The warm-up that the slowest cell needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// How long.
    pub length: Nanos,
    /// The cell that needs so long.
    pub cell: String,
    /// Why it does.
    pub cause: WarmUpCause,
    /// Seconds that finding out took.
    pub spent: Nanos,
}

/// Why a cell needs its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUpCause {
    /// Its rate reached its later level then.
    Settled,
    /// Its rate still rose when its window ended.
    Rising,
    /// It had answered as many requests as are waited for.
    Requests,
}

/// What the trials of `run`, which had no warm-up, tell of the longest one that is needed. A server warms up after each of its
/// starts, and what disturbs it comes once: of a cell's trials the one that was warm first counts. `None` where none of them
/// has enough slices.
pub fn warm_up(run: &Run) -> Option<WarmUp> {
    let records = Records::new(&run.plan, &run.trials);
    let of_case = |case: Case<'_>| {
        let of_trial = |trial: &Trial| {
            let slices = &trial.load.as_ref()?.slices;
            let (count, cause) = of_slices(&slices.completed)?;
            Some((Nanos(slices.slice_ns) * count as u64, cause))
        };
        let (length, cause) = case.measured().filter_map(of_trial).min_by_key(|of| of.0)?;
        Some(WarmUp {
            length,
            cell: case.cell.id.clone(),
            cause,
            spent: Nanos::ZERO,
        })
    };
    // The first of equally slow ones is named.
    let slower = |one: WarmUp, other: WarmUp| match other.length > one.length {
        true => other,
        false => one,
    };
    let longest = records.cases().filter_map(of_case).reduce(slower);
    let starts = || run.trials.iter().map(|trial| trial.started_unix_ms);
    let spent_ms = starts().max()?.saturating_sub(starts().min()?);
    // From the first start to the last one, and as much again as a trial takes.
    let trials = run.trials.len() as u64;
    let one_ms = spent_ms / trials.saturating_sub(1).max(1);
    let spent = Nanos::from_millis(spent_ms.saturating_add(one_ms));
    longest.map(|warm_up| WarmUp { spent, ..warm_up })
}

/// Slices before a server is warm, and why.
fn of_slices(completed: &[u64]) -> Option<(usize, WarmUpCause)> {
    let settled = settling(completed)?;
    let mut sum = 0_u64;
    let enough = completed.iter().position(|&count| {
        sum = sum.saturating_add(count);
        sum >= REQUESTS
    });
    // A server so slow that it never answers as many is not waited for any longer: what it does then is not known.
    let by_requests = enough.map_or(completed.len(), |at| at + 1);
    Some(if settled.is_rising {
        (completed.len(), WarmUpCause::Rising)
    } else if settled.slices >= by_requests {
        (settled.slices, WarmUpCause::Settled)
    } else {
        (by_requests, WarmUpCause::Requests)
    })
}

#[cfg(test)]
mod tests {
    use prony_record::{Cell, LoadReport, Outcome, Plan, PlannedWorkload, Slices};

    use super::*;

    fn run_of(cells: &[(&str, &[u64])]) -> Run {
        let mut run = Run {
            plan: Plan {
                workloads: vec![PlannedWorkload {
                    name: "hello".into(),
                    ..PlannedWorkload::default()
                }],
                ..Plan::default()
            },
            ..Run::default()
        };
        for (at, (id, completed)) in cells.iter().enumerate() {
            if run.plan.cells.iter().all(|cell| cell.id != *id) {
                run.plan.cells.push(Cell {
                    id: (*id).to_owned(),
                    workload: "hello".into(),
                    ..Cell::default()
                });
            }
            run.trials.push(Trial {
                cell: (*id).to_owned(),
                generator: prony_record::GeneratorKind::Prony,
                outcome: Outcome::Measured,
                started_unix_ms: 4_000 * at as u64,
                load: Some(LoadReport {
                    slices: Slices {
                        slice_ns: 100_000_000,
                        completed: completed.to_vec(),
                    },
                    ..LoadReport::default()
                }),
                ..Trial::default()
            });
        }
        run
    }

    #[test]
    fn the_slowest_to_warm_up_decides() {
        let at_once = [10_000; 30];
        let mut later = [10_000; 30];
        later[..12].fill(4_000);
        let found = warm_up(&run_of(&[("a", &at_once), ("b", &later)])).expect("slices");
        assert_eq!(found.length, Nanos::from_millis(1_200));
        assert_eq!((&*found.cell, found.cause), ("b", WarmUpCause::Settled));
        assert_eq!(found.spent, Nanos::from_secs(8));
    }

    /// One and the same server in Go was found to take 100 to 1,300 ms, by what else the machine did.
    #[test]
    fn what_disturbed_one_trial_was_taken_for_a_warm_up() {
        let (mut later, mut disturbed) = ([10_000; 30], [10_000; 30]);
        later[..12].fill(4_000);
        disturbed[..20].fill(8_000);
        let found = warm_up(&run_of(&[("a", &disturbed), ("a", &later)])).expect("slices");
        assert_eq!(found.length, Nanos::from_millis(1_200));
        let others = [("a", &disturbed), ("a", &[10_000; 30]), ("b", &later)];
        let others = others.map(|(id, slices)| (id, &slices[..]));
        let found = warm_up(&run_of(&others)).expect("slices");
        assert_eq!(
            (found.length, &*found.cell),
            (Nanos::from_millis(1_200), "b")
        );
    }

    #[test]
    fn thousands_of_requests_are_waited_for_as_long_as_was_looked() {
        let slow = [500; 30];
        let found = warm_up(&run_of(&[("a", &slow)])).expect("slices");
        assert_eq!(
            (found.length, found.cause),
            (Nanos::from_secs(1), WarmUpCause::Requests)
        );
        let slower = [50; 30];
        let found = warm_up(&run_of(&[("a", &slower)])).expect("slices");
        assert_eq!(
            (found.length, found.cause),
            (Nanos::from_secs(3), WarmUpCause::Requests)
        );
    }

    #[test]
    fn a_rate_that_still_rises_takes_all_the_time_there_was() {
        let rising: Vec<u64> = (0..30).map(|at| 10_000 + 500 * at).collect();
        let found = warm_up(&run_of(&[("a", &rising)])).expect("slices");
        assert_eq!(
            (found.length, found.cause),
            (Nanos::from_secs(3), WarmUpCause::Rising)
        );
        assert_eq!(warm_up(&run_of(&[("a", &[1; 5])])), None);
    }
}
