//! The trials that profile a cell, taken together.

use prony_record::{Outcome, PROFILE, ProfileReport, Trial};

use super::shares;
use crate::Run;

/// All trials of a cell that profile it: what one did not see, another did.
pub(crate) struct Seen<'a> {
    /// The cell.
    pub(crate) cell: &'a str,
    /// The trial with samples and clocks.
    pub(crate) main: Option<(&'a Trial, &'a ProfileReport)>,
    /// The trial by strace.
    pub(crate) strace: Option<(&'a Trial, &'a ProfileReport)>,
}

/// What was seen of a cell; `None`: nothing.
pub(crate) fn seen<'a>(cell: &'a str, trials: &[&'a Trial]) -> Option<Seen<'a>> {
    let own = |is_main: bool| {
        // Of one that was done again after an interruption the last record counts.
        let mut own = trials.iter().rev().filter(|trial| {
            trial.cell == cell
                && trial.outcome == Outcome::Measured
                && (trial.generator == PROFILE) == is_main
        });
        own.find_map(|trial| Some((*trial, trial.profile.as_ref()?)))
    };
    let (main, strace) = (own(true), own(false));
    (main.is_some() || strace.is_some()).then_some(Seen { cell, main, strace })
}

impl Seen<'_> {
    /// The folded stacks, where there are any.
    pub(crate) fn folded<'r>(&self, run: &'r Run) -> Option<&'r str> {
        let name = self.main?.1.folded.as_ref()?;
        let text = run.profiles.get(name)?;
        (shares::total(text) > 0).then_some(text)
    }
}
