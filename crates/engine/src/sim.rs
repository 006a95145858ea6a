//! A simulated network under the same loops: one clock, all links, many loops
//! stepped on one OS thread in an order that a seed decides.
//!
//! Reads and writes come up short, bytes are late, links overtake each other,
//! connections are reset and refused, loops are slow; time jumps to the next
//! event. The same seed gives the same run, event by event ([`World::trace_hash`]).
//! Not for: measuring. And mailboxes between loops work, but a real thread that
//! wakes a simulated loop breaks reproducibility.
//!
//! ```
//! use prony_base::Nanos;
//! use prony_engine::sim::{SimOptions, World};
//! use prony_engine::{Config, ListenOptions};
//!
//! let mut world = World::new(7, SimOptions::default());
//! let address = "10.0.0.1:80".parse().unwrap();
//! let server = world.spawn_loop(&Config::default(), async move |handle| {
//!     let listener = handle.listen(address, &ListenOptions::default()).unwrap();
//!     let (stream, _) = listener.accept().await.unwrap();
//!     stream.post("hello").unwrap();
//! });
//! let client = world.spawn_loop(&Config::default(), async move |handle| {
//!     handle.sleep(Nanos::from_secs(1)).await;
//!     let stream = handle.connect(address).await.unwrap();
//!     let mut got = Vec::new();
//!     while got.len() < 5 {
//!         got.extend_from_slice(&stream.recv().await.unwrap());
//!     }
//!     got
//! });
//! world.run(Nanos::from_secs(60)).unwrap();
//! assert_eq!(client.take().unwrap(), b"hello");
//! assert!(server.take().is_some());
//! ```

mod driver;
mod network;
mod options;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use prony_base::{Instant, Nanos, Random};

use self::driver::SimDriver;
use self::network::Network;
pub use self::options::SimOptions;
use crate::buffers::Pool;
use crate::config::{Config, Error};
use crate::driver::Wait;
use crate::handle::Handle;
use crate::remote::Remote;
use crate::tasks::Main;
use crate::turn::{Core, Running};

/// The reason why a simulated world stopped before its loops had finished.
#[derive(Debug)]
pub enum SimError {
    /// Loops wait for what no event or timer will bring.
    Deadlock {
        /// The loops that have not finished, by order of spawning.
        waiting: Vec<usize>,
        /// Virtual time at which nothing was left to happen.
        at: Instant,
    },
    /// The loops had not finished when the time allowed was over.
    TimeLimit {
        /// The loops that have not finished, by order of spawning.
        waiting: Vec<usize>,
    },
    /// A loop could not go on.
    Loop(Error),
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Deadlock { waiting, at } => write!(
                f,
                "deadlock at {}: loops {waiting:?} wait, and nothing is left to happen",
                Nanos(at.0)
            ),
            SimError::TimeLimit { waiting } => {
                write!(f, "loops {waiting:?} had not finished in the time allowed")
            }
            SimError::Loop(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for SimError {}

/// The value of a simulated loop's main future, once it has finished.
pub struct MainValue<T>(Rc<Cell<Option<T>>>);

impl<T> MainValue<T> {
    /// The value; None before the loop has finished, and the second time.
    pub fn take(&self) -> Option<T> {
        self.0.take()
    }
}

enum LoopState {
    Running(Pin<Box<dyn Future<Output = ()>>>),
    /// The main future is done; posted bytes may still go out until then.
    Draining(Instant),
    Finished,
}

struct SimLoop {
    state: LoopState,
    running: Running,
    index: usize,
}

/// Simulated loops, the links between them, and their clock.
pub struct World {
    loops: Vec<SimLoop>,
    network: Rc<RefCell<Network>>,
    random: Random,
    slow_loops_one_in: u32,
}

impl World {
    /// A world at time zero, wholly determined by its seed and what runs in it.
    pub fn new(seed: u64, options: SimOptions) -> World {
        World {
            loops: Vec::new(),
            slow_loops_one_in: options.slow_loops_one_in,
            network: Rc::new(RefCell::new(Network::new(seed, options))),
            random: Random::of(seed, "order of loops"),
        }
    }

    /// Adds a loop, to be run by [`run`](World::run). Of the settings, `driver`,
    /// `submissions_max`, `connections_hint` and `spin` mean nothing here.
    ///
    /// # Panics
    /// When a setting is outside its limit.
    pub fn spawn_loop<T, F>(
        &mut self,
        config: &Config,
        main: impl FnOnce(Handle) -> F,
    ) -> MainValue<T>
    where
        T: 'static,
        F: Future<Output = T> + 'static,
    {
        let pool = Pool::new(config.recv_buffer_bytes, config.recv_buffers);
        let index = self.network.borrow_mut().add_loop(config.recv_buffer_bytes);
        let driver = SimDriver::new(self.network.clone(), pool.clone(), index);
        let chosen = (Box::new(driver) as Box<_>, None);
        let core = config
            .check()
            .and_then(|()| Core::with_driver(config, pool, Remote::without_event(), chosen))
            .unwrap_or_else(|error| panic!("a simulated loop cannot start: {error}"));
        let value = Rc::new(Cell::new(None));
        let (work, theirs) = (main(Handle::new(core.clone())), value.clone());
        self.loops.push(SimLoop {
            state: LoopState::Running(Box::pin(async move { theirs.set(Some(work.await)) })),
            running: Running(core),
            index,
        });
        MainValue(value)
    }

    /// Runs until every loop's main future has finished.
    ///
    /// # Errors
    /// [`SimError`]: a deadlock, loops that have not finished after `limit` of
    /// virtual time, or a loop that failed.
    pub fn run(&mut self, limit: Nanos) -> Result<(), SimError> {
        let end = self.now() + limit;
        while !self.loops.iter().all(SimLoop::is_finished) {
            let due: Vec<usize> = (0..self.loops.len()).filter(|&l| self.is_due(l)).collect();
            let one_in = u64::from(self.slow_loops_one_in);
            let slow = one_in > 0 && self.random.chance(1, one_in);
            if !due.is_empty() && !slow {
                let chosen = due[self.random.below(due.len() as u64) as usize];
                self.loops[chosen].step().map_err(SimError::Loop)?;
                continue;
            }
            // A slow loop lets messages pass, but no time without events.
            let next = if due.is_empty() {
                self.next_time()
            } else {
                self.network.borrow().next_event()
            };
            match next {
                Some(time) if time > end => {
                    let waiting = self.waiting();
                    return Err(SimError::TimeLimit { waiting });
                }
                Some(time) => self.network.borrow_mut().advance(time),
                None if due.is_empty() => {
                    let (waiting, at) = (self.waiting(), self.now());
                    return Err(SimError::Deadlock { waiting, at });
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Virtual time.
    pub fn now(&self) -> Instant {
        self.network.borrow().now
    }

    /// A hash over every operation and event so far: equal for equal runs.
    pub fn trace_hash(&self) -> u64 {
        self.network.borrow().trace
    }

    fn is_due(&self, index: usize) -> bool {
        let one = &self.loops[index];
        let core = &one.running.0;
        !one.is_finished()
            && (core.is_due()
                || self.network.borrow().has_completions(one.index)
                || one.next_timer().is_some_and(|due| due <= self.now()))
    }

    /// The time of the next event or timer, not before now.
    fn next_time(&self) -> Option<Instant> {
        let network = self.network.borrow();
        let unfinished = self.loops.iter().filter(|one| !one.is_finished());
        let timers = unfinished.filter_map(SimLoop::next_timer);
        let next = timers.chain(network.next_event()).min()?;
        Some(next.max(network.now))
    }

    fn waiting(&self) -> Vec<usize> {
        let unfinished = |index: &usize| !self.loops[*index].is_finished();
        (0..self.loops.len()).filter(unfinished).collect()
    }
}

impl SimLoop {
    fn is_finished(&self) -> bool {
        matches!(self.state, LoopState::Finished)
    }

    fn next_timer(&self) -> Option<Instant> {
        let timer = self.running.0.next_timer();
        match self.state {
            LoopState::Draining(deadline) => timer.into_iter().chain([deadline]).min(),
            _ => timer,
        }
    }

    /// One turn, which never waits.
    fn step(&mut self) -> Result<(), Error> {
        let core = &self.running.0;
        match &mut self.state {
            LoopState::Running(work) => {
                let mut main = Main::new(work.as_mut());
                core.turn(&mut main, Wait::Not)?;
                if main.is_finished() {
                    self.state = LoopState::Draining(core.begin_finish());
                    return self.step();
                }
            }
            LoopState::Draining(deadline) => {
                if core.try_finish(*deadline)? {
                    // As a process's end does: what was accepted and never taken is reset.
                    core.driver.borrow_mut().quiesce();
                    self.state = LoopState::Finished;
                }
            }
            LoopState::Finished => {}
        }
        Ok(())
    }
}
