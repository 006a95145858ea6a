//! The observers of a load: the line or screen that shows it, its outputs, and its requirements.

use prony_base::Instant;
use prony_base::typed::requirement::RequiredFigure;
use prony_load::{LoadInterval, LoadResult, Observer, Requirements, StopConditions};
use prony_record::RequirementOutcome;
use prony_script::Scripted;

use super::outputs::Outputs;
use super::require::JudgedWords;
use crate::Ending;

/// All of them.
pub struct LoadWatch<'a> {
    shown: &'a mut dyn Observer,
    scripted: Option<&'a Scripted>,
    outputs: Outputs,
    requirements: Requirements,
    conditions: StopConditions,
    stopped: Option<String>,
}

/// The outcomes of the requirements.
pub struct JudgedLoad {
    /// Of each requirement.
    pub requirements: Vec<RequirementOutcome>,
    /// Why the run was ended before its time.
    pub stopped: Option<String>,
    /// A requirement is about errors, so that it decides how many may be.
    pub errors_are_judged: bool,
}

impl<'a> LoadWatch<'a> {
    /// With what `words` require; the run ends where `scripted` fails, whatever its threads wait for.
    pub fn new(
        shown: &'a mut dyn Observer,
        scripted: Option<&'a Scripted>,
        words: &JudgedWords,
        outputs: Outputs,
    ) -> LoadWatch<'a> {
        LoadWatch {
            shown,
            scripted,
            outputs,
            requirements: Requirements::new(words.require.clone()),
            conditions: StopConditions(words.stop_on.clone()),
            stopped: None,
        }
    }

    /// The outcomes of a run, and its outputs, which are to be ended. A run that a condition ended was not interrupted.
    pub fn judged(self, words: &JudgedWords, outcome: &mut LoadResult) -> (JudgedLoad, Outputs) {
        if self.stopped.is_some() {
            outcome.interrupted = false;
        }
        let of_all = words.require.iter().filter(|of| of.step.is_none());
        let mut figures = of_all.map(|of| of.what.figure);
        let judged = JudgedLoad {
            requirements: self.requirements.outcomes(outcome),
            stopped: self.stopped,
            errors_are_judged: figures.any(|figure| figure == RequiredFigure::Errors),
        };
        (judged, self.outputs)
    }
}

impl JudgedLoad {
    /// How a run ends that without requirements would end as `ending`.
    pub fn ending(&self, ending: Ending) -> Ending {
        let missed = self.requirements.iter().any(|of| !of.held);
        match ending {
            Ending::Done if missed || self.stopped.is_some() => Ending::Failed,
            ending => ending,
        }
    }
}

impl Observer for LoadWatch<'_> {
    fn connected(&mut self, start: Instant, end: Instant) {
        self.shown.connected(start, end);
    }

    fn progress(&mut self, completed: u64, failed: u64) -> bool {
        let has_failed = self.scripted.is_some_and(Scripted::has_failed);
        self.shown.progress(completed, failed) && self.stopped.is_none() && !has_failed
    }

    fn wants_intervals(&self) -> bool {
        let judged = !self.requirements.is_empty() || !self.conditions.0.is_empty();
        judged || !self.outputs.is_empty() || self.shown.wants_intervals()
    }

    fn interval(&mut self, interval: &LoadInterval) {
        self.outputs.interval(interval);
        self.requirements.interval(interval);
        if self.stopped.is_none() {
            self.stopped = self.conditions.reached(interval);
        }
        self.shown.interval(interval);
    }

    fn rate(&mut self) -> Option<f64> {
        self.shown.rate()
    }
}
