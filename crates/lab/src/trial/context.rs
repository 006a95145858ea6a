//! The state that the services of a trial share: the order, the record so far, the sampler, the current phase, and
//! waits on the event loop that they all run on.
//!
//! Not for: starting or stopping anything ([`super::lifecycle`]).

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use prony_base::{Instant, Nanos, clock};
use prony_engine::Handle;
use prony_record::{
    CheckLevel, CheckResult, Exit, Isolation, Phase, PhaseSpan, Trial, Work, layout,
};
use prony_runtime::coroutines::ManualEvent;

use super::log::Log;
use crate::profile::Profiler;
use crate::sample::Sampler;
use crate::supervise::{Generator, Interrupt, TrialOrder};

/// Longest pause between two looks for a ready sign.
pub const POLL_MAX: Nanos = Nanos::from_millis(20);
/// Interval at which an interruption is looked for.
const INTERRUPT_LOOK: Nanos = Nanos::from_millis(100);

/// Why a trial ends early.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// It failed; the reason, in one sentence.
    #[error("{0}")]
    Failed(String),
    /// The user ended the run.
    #[error("the run was interrupted")]
    Interrupted,
}

impl Halt {
    /// The failure that `what` could not be done, with the system's reason.
    pub fn io(what: &'static str) -> impl FnOnce(io::Error) -> Halt {
        move |error| Halt::Failed(format!("{what}: {error}"))
    }
}

/// How a process ended, after its name: `exited with status 1`.
pub fn in_words(exit: &Exit) -> String {
    match exit {
        Exit::Code { code } => format!("exited with status {code}"),
        Exit::Signal { signal, .. } => format!("was ended by signal {signal}"),
    }
}

/// The state that all services of a trial share.
pub struct TrialContext {
    /// The order of this trial.
    pub order: TrialOrder,
    /// The event loop.
    pub handle: Handle,
    /// The record so far.
    pub trial: RefCell<Trial>,
    /// Samples the processes.
    pub sampler: RefCell<Sampler>,
    /// Profiles the subject, in a trial of a server that does.
    pub profiler: RefCell<Option<Profiler>>,
    /// Reset while the processes are stopped between turns: they are not sampled then.
    pub awake: ManualEvent,
    interrupt: Interrupt,
    /// Set once the trial stops: starts under way are abandoned.
    stopping: ManualEvent,
    origin: Instant,
    phase: Cell<(Phase, Instant)>,
}

impl TrialContext {
    /// The state of a trial that has not begun.
    pub fn new(
        order: TrialOrder,
        isolation: Isolation,
        interrupt: &Interrupt,
        handle: Handle,
    ) -> Rc<TrialContext> {
        let now = clock::monotonic();
        let profiler = match (&order.generator, order.workload.work()) {
            (Generator::Profile { pass }, Work::Server) => Some(Profiler::new(pass.clone())),
            _ => None,
        };
        let trial = Trial {
            isolation,
            ..order.unfinished()
        };
        let awake = ManualEvent::new();
        awake.set();
        Rc::new(TrialContext {
            order,
            awake,
            handle,
            trial: RefCell::new(trial),
            profiler: RefCell::new(profiler),
            sampler: RefCell::new(Sampler::new(isolation.process_namespace)),
            interrupt: interrupt.clone(),
            stopping: ManualEvent::new(),
            origin: now,
            phase: Cell::new((Phase::Prepare, now)),
        })
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        self.phase.get().0
    }

    /// Ends the current phase and begins the next one.
    pub fn enter(&self, phase: Phase) {
        self.leave();
        self.phase.set((phase, self.phase.get().1));
    }

    /// Records the end of the current phase.
    pub fn leave(&self) {
        let now = clock::monotonic();
        let (phase, start) = self.phase.get();
        self.trial.borrow_mut().phases.push(PhaseSpan {
            phase,
            start_ns: start.since(self.origin).0,
            length_ns: now.since(start).0,
        });
        self.phase.set((phase, now));
    }

    /// Attributes a failure to `phase`, whatever the current phase is.
    pub fn blame(&self, phase: Phase) {
        self.phase.set((phase, self.phase.get().1));
    }

    /// Adds a sentence to the notes of the record.
    pub fn note(&self, sentence: String) {
        self.trial.borrow_mut().notes.push(sentence);
    }

    /// Records a check that must pass. Errors: it did not.
    pub fn check(&self, name: &str, result: Result<(), String>) -> Result<(), Halt> {
        let checked = CheckResult::new(name, CheckLevel::Must, result.clone());
        self.trial.borrow_mut().verification.push(checked);
        result.map_err(Halt::Failed)
    }

    /// Creates the log of a process; `of` follows the stem of the trial's files in its name.
    pub fn log(&self, of: &str) -> Result<Log, Halt> {
        let name = format!("{}{of}.log", self.order.file_stem);
        let path = self.order.run_dir.join(layout::LOGS).join(name);
        Log::create(&path).map_err(Halt::io("a log cannot be written"))
    }

    /// Awaits `work`, and drops it if the user ends the run first.
    pub async fn unless_interrupted<T>(&self, work: impl Future<Output = T>) -> Result<T, Halt> {
        match first(work, self.interrupted()).await {
            First::One(done) => Ok(done),
            First::Other(()) => Err(Halt::Interrupted),
        }
    }

    /// Marks the trial as stopping, which ends all [`TrialContext::unless_stopping`].
    pub fn stop(&self) {
        self.stopping.set();
    }

    /// Awaits `work`, a part of a service's start, unless the trial stops first: a service
    /// can only be stopped once its start has ended.
    pub async fn unless_stopping<T>(
        &self,
        work: impl Future<Output = Result<T, Halt>>,
    ) -> Result<T, Halt> {
        match first(work, self.stopping.wait()).await {
            First::One(done) => done,
            First::Other(()) => Err(Halt::Failed("the trial was stopped".to_owned())),
        }
    }

    async fn interrupted(&self) {
        while !self.interrupt.is_raised() {
            self.handle.sleep(INTERRUPT_LOOK).await;
        }
    }

    /// Awaits `work`; fails with the sentence `late` after `limit`.
    pub async fn within<T>(
        &self,
        limit: Nanos,
        work: impl Future<Output = Result<T, Halt>>,
        late: impl FnOnce() -> String,
    ) -> Result<T, Halt> {
        match self.handle.timeout(limit, work).await {
            Ok(done) => done,
            Err(_) => Err(Halt::Failed(late())),
        }
    }
}

/// The one of two futures that was ready first.
pub enum First<A, B> {
    /// The first argument.
    One(A),
    /// The second argument.
    Other(B),
}

/// Awaits the first of two futures to be ready; `one` where both are.
pub async fn first<A, B>(
    one: impl Future<Output = A>,
    other: impl Future<Output = B>,
) -> First<A, B> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| {
        if let Poll::Ready(done) = one.as_mut().poll(cx) {
            return Poll::Ready(First::One(done));
        }
        other.as_mut().poll(cx).map(First::Other)
    })
    .await
}
