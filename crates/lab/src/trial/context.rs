//! What the services of a trial share: the order, the record under way, the sampler, and
//! ways to wait on the loop that they all run on.
//!
//! Not for: anything that starts or stops.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use prony_base::{Instant, Nanos, clock};
use prony_engine::Handle;
use prony_record::{Exit, Isolation, Phase, PhaseSpan, Trial, layout};
use prony_runtime::coroutines::ManualEvent;

use super::log::Log;
use crate::profile::Profiler;
use crate::sample::Sampler;
use crate::supervise::{Generator, Interrupt, TrialOrder};

/// Longest pause between two looks for a ready sign or an interruption.
pub const POLL_MAX: Nanos = Nanos::from_millis(20);

/// Why a trial does not go on.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// In one sentence.
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

/// What all services of a trial share.
pub struct TrialContext {
    /// What is to be done.
    pub order: TrialOrder,
    /// The loop.
    pub handle: Handle,
    /// The record under way.
    pub trial: RefCell<Trial>,
    /// What follows the processes.
    pub sampler: RefCell<Sampler>,
    /// What looks into the subject, of a trial that profiles it.
    pub profiler: RefCell<Option<Profiler>>,
    /// Set but while the processes are stopped: then nobody looks at them.
    pub awake: ManualEvent,
    interrupt: Interrupt,
    /// The trial stops: no start is worth going on with.
    stopping: ManualEvent,
    origin: Instant,
    phase: Cell<(Phase, Instant)>,
}

impl TrialContext {
    /// A stage on which nothing has happened.
    pub fn new(
        order: TrialOrder,
        isolation: Isolation,
        interrupt: &Interrupt,
        handle: Handle,
    ) -> Rc<TrialContext> {
        let now = clock::monotonic();
        let profiler = match &order.generator {
            Generator::Profile { pass } => Some(Profiler::new(pass.clone())),
            _ => None,
        };
        let trial = Trial {
            schema: prony_record::SCHEMA,
            cell: order.cell.id.clone(),
            block: order.block,
            position: order.position,
            seed: order.seed,
            generator: order.generator.name().to_owned(),
            started_unix_ms: clock::unix_nanos() / 1_000_000,
            isolation,
            ..Trial::default()
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

    /// The phase that the trial is in.
    pub fn phase(&self) -> Phase {
        self.phase.get().0
    }

    /// Goes on to the next phase.
    pub fn enter(&self, phase: Phase) {
        self.leave();
        self.phase.set((phase, self.phase.get().1));
    }

    /// Notes the end of the current phase.
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

    /// Says of which phase a failure is, whatever phase the trial is in.
    pub fn blame(&self, phase: Phase) {
        self.phase.set((phase, self.phase.get().1));
    }

    /// A sentence for the record.
    pub fn note(&self, sentence: String) {
        self.trial.borrow_mut().notes.push(sentence);
    }

    /// The file that a process prints to: `of` follows the stem of the trial's files.
    pub fn log(&self, of: &str) -> Result<Log, Halt> {
        let name = format!("{}{of}.log", self.order.file_stem);
        let path = self.order.run_dir.join(layout::LOGS).join(name);
        Log::create(&path).map_err(Halt::io("a log cannot be written"))
    }

    /// Does `work` unless the user ends the run first; `work` is then dropped.
    pub async fn unless_interrupted<T>(&self, work: impl Future<Output = T>) -> Result<T, Halt> {
        match first(work, self.interrupted()).await {
            First::One(done) => Ok(done),
            First::Other(()) => Err(Halt::Interrupted),
        }
    }

    /// From now on the trial stops, and what [`TrialContext::unless_stopping`] does ends.
    pub fn stop(&self) {
        self.stopping.set();
    }

    /// Does `work`, a part of a service's start, unless the trial stops first: a service
    /// that starts is only stopped once its start has ended.
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
            self.handle.sleep(POLL_MAX).await;
        }
    }

    /// `work`, or the failure that it took longer than `limit`.
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

/// Which of two was ready first.
pub enum First<A, B> {
    /// The one.
    One(A),
    /// The other.
    Other(B),
}

/// The first of two to be ready; the one where both are.
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
