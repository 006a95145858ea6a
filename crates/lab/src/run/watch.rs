//! A supervisor under way, as the run sees it: what it reports, and when it counts as hung.
//!
//! Not for: starting one ([`crate::supervise`]).

use prony_base::{Instant, Nanos, clock};
use prony_record::{Histogram, Phase, Trial, Turned};

use super::options::{Event, INTERRUPT_SLACK, POLL, Progress};
use crate::supervise::{Interrupt, Report, Supervisor};

/// A supervisor under way.
pub struct Watch {
    /// It.
    pub supervisor: Supervisor,
    /// Raised when the run is to end.
    pub interrupt: Interrupt,
    /// When it counts as hung.
    pub deadline: Instant,
    /// Whether it was told to end.
    pub interrupted: bool,
    /// The phase that its trial is in.
    pub phase: Phase,
}

impl Watch {
    /// Waits for the trial's record; an error says why there is none.
    pub fn result(
        &mut self,
        stop: Nanos,
        progress: &mut dyn Progress,
    ) -> Result<(Trial, Option<Histogram>), String> {
        match self.receive(stop, progress)? {
            Reported::Ended(result) => Ok(*result),
            Reported::Waiting | Reported::Turned(_) => {
                Err("the supervisor did not report a trial".to_owned())
            }
        }
    }

    /// Waits for the next report that is no phase; an error says why there is none.
    pub fn receive(
        &mut self,
        stop: Nanos,
        progress: &mut dyn Progress,
    ) -> Result<Reported, String> {
        loop {
            match self
                .supervisor
                .next(POLL)
                .map_err(|error| error.to_string())?
            {
                Some(Report::Phase { phase }) => {
                    self.phase = phase;
                    progress.event(Event::Phase(phase));
                }
                Some(Report::Trial { trial, histogram }) => {
                    return Ok(Reported::Ended(Box::new((trial, histogram))));
                }
                Some(Report::Waiting) => return Ok(Reported::Waiting),
                Some(Report::Turned(turned)) => return Ok(Reported::Turned(turned)),
                Some(_) => return Err("the supervisor did not report a trial".to_owned()),
                None => {}
            }
            let now = clock::monotonic();
            if self.interrupt.is_raised() {
                self.interrupt(stop);
            }
            if now > self.deadline {
                return Err("the trial hung and was ended".to_owned());
            }
        }
    }

    /// Asks for an end in good order, once.
    pub fn interrupt(&mut self, stop: Nanos) {
        if !self.interrupted {
            self.interrupted = true;
            let soon = clock::monotonic() + stop + INTERRUPT_SLACK;
            self.deadline = self.deadline.min(soon);
            self.supervisor.interrupt();
        }
    }
}

/// What a supervisor reported.
pub enum Reported {
    /// The trial waits for its first turn.
    Waiting,
    /// A turn of it is over.
    Turned(Turned),
    /// It has ended.
    Ended(Box<(Trial, Option<Histogram>)>),
}
