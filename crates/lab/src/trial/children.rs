//! The service that tracks the processes that a trial started: notices at once when one ends, reaps orphans, and stops
//! processes by signal and time-out.
//!
//! Not for: starting them ([`super::process`], [`super::generator`]).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use prony_base::Nanos;
use prony_engine::Task;
use prony_record::{Exit, Phase, Role};
use prony_runtime::coroutines::ManualEvent;
use prony_runtime::services::{Context, Failure, Service};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::context::TrialContext;
use crate::launch;

/// How long a killed process may take to end.
const KILL_TIMEOUT: Nanos = Nanos::from_secs(5);
/// Interval at which orphans are reaped, and all children where the kernel has no process descriptors.
const COLLECT: Nanos = Nanos::from_millis(20);

/// How a process is stopped.
#[derive(Clone, Copy, Debug)]
pub struct StopSignal {
    /// The signal.
    pub signal: Signal,
    /// After this it is killed.
    pub timeout: Nanos,
}

/// A process that the trial started.
pub struct Child {
    pid: u32,
    stop_signal: StopSignal,
    asked: Cell<bool>,
    exit: RefCell<Option<Exit>>,
    over: ManualEvent,
}

impl Child {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its exit status; `None`: it has not been reaped.
    pub fn exit(&self) -> Option<Exit> {
        self.exit.borrow().clone()
    }

    /// Waits until it has ended.
    pub async fn ended(&self) {
        self.over.wait().await;
    }
}

/// Tracks the processes of a trial.
pub struct Children {
    context: Rc<TrialContext>,
    started: RefCell<Vec<Rc<Child>>>,
    watches: RefCell<Vec<Task<()>>>,
    /// Processes that end from now on were stopped by the trial.
    expected: Cell<bool>,
}

impl Children {
    /// No processes yet.
    pub fn new(context: Rc<TrialContext>) -> Rc<Children> {
        Rc::new(Children {
            context,
            started: RefCell::default(),
            watches: RefCell::default(),
            expected: Cell::new(false),
        })
    }

    /// Tracks a process that was just started.
    pub fn follow(self: &Rc<Children>, pid: u32, role: Role, stop_signal: StopSignal) -> Rc<Child> {
        let child = Rc::new(Child {
            pid,
            stop_signal,
            asked: Cell::new(false),
            exit: RefCell::default(),
            over: ManualEvent::new(),
        });
        self.started.borrow_mut().push(child.clone());
        self.context.sampler.borrow_mut().started(pid, role);
        // Where the kernel has no process descriptors, its end is noticed at the next interval.
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let end = number.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
        if let Some(end) = end {
            let (theirs, handle) = (self.clone(), self.context.handle.clone());
            let watch = async move {
                if handle.readable(&end).await.is_ok() {
                    theirs.collect();
                }
            };
            let watch = self.context.handle.spawn(watch);
            self.watches.borrow_mut().push(watch);
        }
        child
    }

    /// Counts processes that end from now on, and their descendants, as stopped by the trial.
    pub fn expect_ends(&self) {
        self.expected.set(true);
    }

    /// Reaps children that have ended, orphans of the trial's processes among them.
    pub fn collect(&self) {
        while let Some(ended) = launch::reap() {
            let mut asked = self.context.phase() == Phase::Stop || self.expected.get();
            for child in self.started.borrow().iter() {
                if child.pid == ended.pid && child.exit.borrow().is_none() {
                    asked |= child.asked.get();
                    *child.exit.borrow_mut() = Some(ended.exit.clone());
                    child.over.set();
                }
            }
            self.context.sampler.borrow_mut().ended(&ended, asked);
        }
    }

    /// Sends a process its stop signal, and kills it after its time-out.
    pub async fn end(&self, child: &Child) {
        let StopSignal { signal, timeout } = child.stop_signal;
        for (signal, timeout) in [(signal, timeout), (Signal::KILL, KILL_TIMEOUT)] {
            self.collect();
            if child.exit.borrow().is_some() {
                return;
            }
            child.asked.set(true);
            launch::signal(child.pid, signal);
            let _ = self.context.handle.timeout(timeout, child.ended()).await;
        }
    }
}

impl Service for Children {
    async fn start(&self, context: &Context) -> Result<(), Failure> {
        let services = context.services();
        let me = services.and_then(|services| services.instance::<Children>(context.id()));
        let Some(me) = me else {
            return Ok(());
        };
        let handle = self.context.handle.clone();
        let collecting = self.context.handle.spawn(async move {
            loop {
                handle.sleep(COLLECT).await;
                me.context.awake.wait().await;
                me.collect();
            }
        });
        self.watches.borrow_mut().push(collecting);
        Ok(())
    }

    /// Stops the processes that are still running, the last started first.
    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        let started = self.started.borrow().clone();
        for child in started.iter().rev() {
            self.end(child).await;
        }
        let watches = self.watches.take();
        drop(watches);
        Ok(())
    }
}
