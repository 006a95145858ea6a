//! The service that drives the subject: it runs once its window is known.
//!
//! Not for: what it says and how ([`super::drive`]).

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::rc::Rc;

use prony_base::Nanos;
use prony_record::{LoadSpec, Role, Turn, Turned};
use prony_runtime::services::{Context, Failure, Service};
use rustix::process::Signal;

use super::Halt;
use super::children::{Child, Children, Farewell};
use super::drive::{Driven, Driver, Window};
use super::log::Log;
use super::stage::Stage;
use crate::plan;
use crate::supervise::Generator;

/// What connecting and draining may take beyond the time-out of a request.
const SLACK: Nanos = Nanos::from_secs(15);
/// How long a generator that has said its result has to end.
const EXIT_TIMEOUT: Nanos = Nanos::from_secs(5);
/// How a generator that is not needed any more is asked to end.
const FAREWELL: Farewell = Farewell {
    signal: Signal::TERM,
    timeout: Nanos::from_secs(1),
};

/// Drives the subject.
pub struct Load {
    stage: Rc<Stage>,
    children: Rc<Children>,
    spec: LoadSpec,
    window: Cell<Option<Window>>,
    driver: RefCell<Option<Driver>>,
    child: RefCell<Option<Rc<Child>>>,
}

impl Load {
    /// One that is to drive what `spec` says.
    pub fn new(stage: Rc<Stage>, children: Rc<Children>, spec: LoadSpec) -> Rc<Load> {
        Rc::new(Load {
            stage,
            children,
            spec,
            window: Cell::new(None),
            driver: RefCell::default(),
            child: RefCell::default(),
        })
    }

    /// The measured window; `None` before it is known.
    pub fn window(&self) -> Option<Window> {
        self.window.get()
    }

    /// What it measured, when it has said so and ended.
    pub async fn result(&self) -> Result<Driven, Halt> {
        let Some(mut driver) = self.driver.take() else {
            return Err(Halt::Failed("the generator was not started".to_owned()));
        };
        let search = plan::longest_search(&self.stage.order.workload);
        let timeout = Nanos(self.spec.timeout_ns) + SLACK + search;
        let late = || format!("the generator had no result {timeout} after the window");
        driver.no_more_turns();
        let said = async { driver.result(&self.spec).await.map_err(Halt::Failed) };
        let driven = self.stage.within(timeout, said, late).await?;
        self.exited(EXIT_TIMEOUT).await?;
        driver.log.close();
        Ok(driven)
    }

    /// The generator's process, while it is there.
    pub fn pid(&self) -> Option<u32> {
        let child = self.child.borrow();
        child.as_ref().map(|child| child.pid())
    }

    /// Gives it a turn, of a load in turns.
    pub fn turn(&self, turn: &Turn) -> Result<(), Halt> {
        let mut driver = self.driver.borrow_mut();
        let told = driver.as_mut().map(|driver| driver.turn(turn));
        told.unwrap_or_else(not_there)
            .map_err(Halt::io("the generator cannot be given its turn"))
    }

    /// What came of its turn, which is so long, when it is over.
    pub async fn turned(&self, length: Nanos) -> Result<Turned, Halt> {
        let Some(mut driver) = self.driver.take() else {
            return Err(Halt::Failed("the generator was not started".to_owned()));
        };
        let timeout = Nanos(self.spec.timeout_ns) + length + SLACK;
        let late = || format!("the generator had not ended its turn after {timeout}");
        let said = async { driver.turned().await.map_err(Halt::Failed) };
        let turned = self.stage.within(timeout, said, late).await;
        *self.driver.borrow_mut() = Some(driver);
        turned
    }

    /// Longest that it may take until its window is known.
    pub fn start_timeout(&self) -> Nanos {
        (Nanos(self.spec.timeout_ns) + Nanos(self.spec.warmup_ns) + SLACK) * 2
    }

    async fn begin(&self) -> Result<(), Halt> {
        let io = Halt::io("the generator cannot be started");
        let mut driver = match &self.stage.order.generator {
            Generator::Prony | Generator::Profile { .. } => {
                Driver::prony(&self.stage.order, &self.spec, self.log()?).map_err(io)?
            }
            Generator::Wrk { .. } => {
                let warmup = self.wrk(self.spec.warmup_ns)?;
                self.follow(&warmup);
                let limit = Nanos(self.spec.warmup_ns) + Nanos(self.spec.timeout_ns) + SLACK;
                self.exited(limit).await?;
                self.wrk(self.spec.duration_ns)?
            }
        };
        self.follow(&driver);
        let timeout = Nanos(self.spec.timeout_ns) + Nanos(self.spec.warmup_ns) + SLACK;
        let late = || format!("the generator had not connected after {timeout}");
        let known = async { driver.window(&self.spec).await.map_err(Halt::Failed) };
        let window = self.stage.within(timeout, known, late).await?;
        self.window.set(Some(window));
        *self.driver.borrow_mut() = Some(driver);
        Ok(())
    }

    fn wrk(&self, length_ns: u64) -> Result<Driver, Halt> {
        let Generator::Wrk { path, version } = &self.stage.order.generator else {
            return Err(Halt::Failed("the generator is not wrk".to_owned()));
        };
        let seconds = length_ns.div_ceil(1_000_000_000).max(1);
        let wrk = (path.as_path(), version.as_str());
        Driver::wrk(&self.stage.order, &self.spec, wrk, seconds, self.log()?)
            .map_err(Halt::io("wrk cannot be started"))
    }

    fn log(&self) -> Result<Log, Halt> {
        self.stage.log(".generator")
    }

    fn follow(&self, driver: &Driver) {
        let child = self.children.follow(driver.pid, Role::Generator, FAREWELL);
        *self.child.borrow_mut() = Some(child);
    }

    fn exited(&self, timeout: Nanos) -> impl Future<Output = Result<(), Halt>> {
        let (stage, child) = (self.stage.clone(), self.child.borrow().clone());
        async move {
            let late = || format!("the generator did not end within {timeout}");
            let ended = async {
                if let Some(child) = &child {
                    child.ended().await;
                }
                Ok(())
            };
            stage.within(timeout, ended, late).await
        }
    }
}

fn not_there() -> io::Result<()> {
    Err(io::Error::other("it was not started"))
}

impl Service for Load {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        let begun = self.stage.unless_stopping(self.begin()).await;
        if begun.is_err()
            && let Some(child) = self.child.take()
        {
            // A start that failed is not followed by a stop.
            self.children.end(&child).await;
        }
        begun.map_err(Failure::from)
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        if let Some(driver) = &mut *self.driver.borrow_mut() {
            driver.no_more_turns();
        }
        let child = self.child.borrow().clone();
        if let Some(child) = child {
            self.children.end(&child).await;
        }
        Ok(())
    }
}
