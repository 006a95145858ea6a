//! The warm-up of a run that is given a time or a precision: as long as the slowest of its cells needs, the same for all,
//! fixed before the pilot.
//!
//! Each cell is looked at from its first request on, without a warm-up and without visits; the slices of that window show when
//! its rate reached its later level. A second look, where there is time for it, tells a warm-up from what else the machine did. A warm-up that the experiment asks for is the least: what its author knows, three seconds do not
//! disprove.

use std::path::Path;

use prony_base::{Nanos, counted};
use prony_lab::experiment::{Aim, Run};
use prony_record::{Plan, layout};
use prony_report::pilot::Pilot;
use prony_report::warm_up::{WarmUp, WarmUpCause};

use super::words::{ByWrk, RunWords, describe};

/// Window of each of these trials, and so the longest warm-up that follows from them.
const WINDOW: Nanos = Nanos::from_secs(3);
/// The shortest one that tells anything: twelve slices.
const WINDOW_MIN: Nanos = Nanos::from_millis(1_200);
/// They take at most this part of a budget: one in so many.
const PART_OF_BUDGET: u64 = 12;
/// Looks at each cell; one where a budget has no time for more.
const LOOKS: u32 = 2;

/// Where nothing is looked at and the experiment asks for none, at the most.
const UNSEEN: Nanos = Nanos::from_millis(500);

/// The warm-up that was chosen, and how long choosing took.
#[derive(Default)]
pub struct ChosenWarmUp {
    /// The warm-up; `None`: the experiment's.
    pub length: Option<Nanos>,
    /// The reason; empty where nothing was tried.
    pub note: String,
    /// Seconds that it took.
    pub spent_s: f64,
    /// The cost of a run by the same trials.
    pub pilot: Option<Box<Pilot>>,
}

/// The warm-up that the command line or the experiment asks for.
pub fn requested(words: &RunWords, of_experiment: &Run, planned: &Plan) -> Option<Nanos> {
    let is_requested = words.warmup.is_some() || of_experiment.is_warmup_said;
    is_requested.then_some(Nanos(planned.warmup_ns))
}

/// The words of the run that looks at each cell of `planned`, in `dir`; `Err`: nothing is looked at, and what is chosen
/// then. `requested`: the warm-up that is asked for.
pub fn trials(
    words: &RunWords,
    aim: Aim,
    planned: &Plan,
    requested: Option<Nanos>,
    dir: &Path,
) -> Result<RunWords, ChosenWarmUp> {
    // Programs and clients have windows of their own, or none.
    if planned.duration_ns == 0 || planned.warmup_ns == 0 {
        return Err(ChosenWarmUp::default());
    }
    // A copy is measured by runs of more blocks only.
    let cells = planned.cells.iter().filter(|cell| !planned.is_copy(cell));
    let Some((looks, window)) = looks(aim, cells.count() as u64) else {
        let length = requested.unwrap_or(UNSEEN.min(Nanos(planned.warmup_ns)));
        let by = requested.map_or("", |_| ", as asked for");
        let note = format!(
            "Warm-up: {length}{by}; looking at each of {} from its first request on would take too much of {}.",
            counted(planned.cells.len(), "cell"),
            describe(aim)
        );
        return Err(ChosenWarmUp {
            length: Some(length),
            note,
            ..ChosenWarmUp::default()
        });
    };
    Ok(RunWords {
        blocks: Some(looks),
        duration: Some(window),
        warmup: Some(Nanos::ZERO),
        visits: Some(Nanos::ZERO),
        budget: None,
        precision: None,
        profile: false,
        cross_check: Some(ByWrk::No),
        out: Some(dir.join(layout::WARM_UP)),
        json: false,
        ..words.clone()
    })
}

/// How often and how long each cell is looked at; `None`: there is no time for it.
fn looks(aim: Aim, cells: u64) -> Option<(u32, Nanos)> {
    let Aim::Budget(time) = aim else {
        return Some((LOOKS, WINDOW));
    };
    let of = |looks: u32| {
        let each = time.0 / PART_OF_BUDGET / cells.max(1) / u64::from(looks);
        let window = Nanos(each).min(WINDOW);
        (window >= WINDOW_MIN).then_some((looks, window))
    };
    of(LOOKS).or_else(|| of(1))
}

/// The warm-up that follows from `found`, where the experiment asks for `requested`.
pub fn decided(found: &WarmUp, requested: Option<Nanos>) -> ChosenWarmUp {
    let requested = requested.unwrap_or_default();
    let (length, cell) = (found.length, &found.cell);
    let cause = match found.cause {
        WarmUpCause::Settled => format!("{cell} reached its later rate after {length}"),
        WarmUpCause::Rising => format!("the rate of {cell} still rose after {length}"),
        WarmUpCause::Requests => {
            format!("{cell} had answered thousands of requests, or had had {length}")
        }
    };
    let length = found.length.max(requested);
    let requested = match requested >= found.length {
        true => format!("; {requested} is asked for"),
        false => String::new(),
    };
    ChosenWarmUp {
        length: Some(length),
        note: format!("Warm-up: {length}. The slowest: {cause}{requested}."),
        spent_s: found.spent.as_secs_f64(),
        pilot: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(millis: u64, cause: WarmUpCause) -> WarmUp {
        WarmUp {
            length: Nanos::from_millis(millis),
            cell: "node/http hello".into(),
            cause,
            spent: Nanos::from_secs(9),
        }
    }

    #[test]
    fn the_slowest_cell_decides_and_the_experiment_never_gets_less() {
        let second = Nanos::from_secs(1);
        let longer = decided(&found(1_700, WarmUpCause::Settled), Some(second));
        assert_eq!(longer.length, Some(Nanos::from_millis(1_700)));
        assert_eq!(
            longer.note,
            "Warm-up: 1.70s. The slowest: node/http hello reached its later rate after 1.70s."
        );
        let shorter = decided(&found(200, WarmUpCause::Settled), Some(second));
        assert_eq!(shorter.length, Some(second));
        assert!(
            shorter.note.ends_with("after 200ms; 1.00s is asked for."),
            "{}",
            shorter.note
        );
        let unasked = decided(&found(200, WarmUpCause::Settled), None);
        assert_eq!(unasked.length, Some(Nanos::from_millis(200)));
    }

    #[test]
    fn a_budget_is_not_spent_on_warming_up() {
        let budget = |minutes: u64| Aim::Budget(Nanos::from_secs(60 * minutes));
        assert_eq!(looks(budget(5), 2), Some((2, WINDOW)));
        assert_eq!(looks(budget(1), 2), Some((2, Nanos::from_millis(1_250))));
        assert_eq!(looks(budget(1), 3), Some((1, Nanos(1_666_666_666))));
        assert_eq!(looks(budget(1), 12), None);
        assert_eq!(looks(Aim::Precision(0.02), 500), Some((2, WINDOW)));
    }
}
