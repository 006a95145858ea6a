//! A trial of a server whose window is made of turns: between them all of its processes are stopped and its generator
//! waits, so that the servers that it is compared with have their turns on the same cores.
//!
//! ```text
//! verified ──> stopped ──> [go on ──> lead-in ──> window ──> all answered ──> stopped] … ──> go on ──> drain
//! ```
//!
//! [`crate::run`] schedules the turns, one at a time. No request is outstanding while the
//! processes are stopped, so that no latency includes a pause. The clocks of processes and cores are read at the edges of
//! each window and added up.
//!
//! Not for: the trial before its first turn and after its last ([`super::server`]).

use std::rc::Rc;

use prony_base::{Instant, Nanos, clock};
use prony_engine::Handle;
use prony_record::{Phase, Role, Turn, Turned, Visit};
use rustix::process::Signal;

use super::context::Halt;
use super::generator::{Load, Window};
use super::server::{ServerTrial, shortly_before};
use super::start::Places;
use crate::launch;
use crate::supervise::{Report, TurnOrder};

/// How long processes may take to stop; one in uninterruptible sleep takes as long as that lasts.
const STOP_TIMEOUT: Nanos = Nanos::from_secs(5);
/// Interval at which stopping processes are polled.
const LOOK: Nanos = Nanos::from_micros(100);

/// The visits so far.
#[derive(Default)]
pub struct Visited {
    load: Option<Rc<Load>>,
    /// Start of the first window.
    first: Option<Instant>,
    /// Largest delay between an edge of a window and the reading of the clocks.
    late: Nanos,
}

impl ServerTrial<'_> {
    /// Runs all turns, and the drain after the last. What was measured is kept however it ends.
    pub(super) async fn run_turns(&mut self, places: &Places) -> Result<(), Halt> {
        let mut visited = Visited::default();
        // As in a trial with a single window.
        let _ = launch::urgent(true);
        let ended = self.follow_turns(places, &mut visited).await;
        let _ = launch::urgent(false);
        self.resume(&visited);
        self.note_late(visited.late);
        let Some(load) = &visited.load else {
            return ended;
        };
        match ended {
            Err(Halt::Failed(reason)) => {
                let failed_in = self.context.phase();
                self.lifecycle.enter(Phase::Drain);
                let _ = self.drain(load).await;
                self.context.leave();
                self.context.blame(failed_in);
                Err(Halt::Failed(reason))
            }
            Err(Halt::Interrupted) => Err(Halt::Interrupted),
            Ok(()) => {
                self.lifecycle.enter(Phase::Drain);
                self.drain(load).await
            }
        }
    }

    async fn follow_turns(&mut self, places: &Places, visited: &mut Visited) -> Result<(), Halt> {
        self.pause(visited).await?;
        self.lifecycle.report(Report::Waiting);
        loop {
            let Some(turn) = self.turns.next().await else {
                return Err(Halt::Interrupted);
            };
            self.resume(visited);
            self.lifecycle.children.collect();
            self.participants.check_alive("its turn")?;
            let turned = match turn {
                TurnOrder::Finish => return Ok(()),
                TurnOrder::WarmUp { length_ns } => {
                    self.warm_up_turn(places, visited, Nanos(length_ns)).await?
                }
                TurnOrder::Visit {
                    lead_in_ns,
                    window_ns,
                } => {
                    let lengths = (Nanos(lead_in_ns), Nanos(window_ns));
                    self.visit(places, visited, lengths).await?
                }
            };
            self.pause(visited).await?;
            self.lifecycle.report(Report::Turned(turned));
        }
    }

    /// Stops all processes of the trial and its sampling.
    async fn pause(&self, visited: &Visited) -> Result<(), Halt> {
        self.context.awake.reset();
        stop_processes(&self.context.handle, generator(visited)).await
    }

    fn resume(&self, visited: &Visited) {
        continue_processes(generator(visited));
        self.context.awake.set();
    }

    /// The load, which is started, and connects, in the first turn.
    async fn load(&self, places: &Places, visited: &mut Visited) -> Result<Rc<Load>, Halt> {
        if let Some(load) = &visited.load {
            return Ok(load.clone());
        }
        let (load, _) = self.start_load(places).await?;
        visited.load = Some(load.clone());
        Ok(load)
    }

    async fn warm_up_turn(
        &self,
        places: &Places,
        visited: &mut Visited,
        length: Nanos,
    ) -> Result<Turned, Halt> {
        let load = self.load(places, visited).await?;
        let end = clock::monotonic() + length;
        load.turn(&Turn {
            window_start_ns: end.0,
            window_end_ns: end.0,
        })?;
        self.await_turn(&load, length).await
    }

    async fn await_turn(&self, load: &Load, length: Nanos) -> Result<Turned, Halt> {
        let turned = self
            .participants
            .while_alive("its turn was over", load.await_turn(length));
        self.context.unless_interrupted(turned).await??
    }

    /// Runs one lead-in and one measured window.
    async fn visit(
        &mut self,
        places: &Places,
        visited: &mut Visited,
        (lead_in, length): (Nanos, Nanos),
    ) -> Result<Turned, Halt> {
        let load = self.load(places, visited).await?;
        let start = clock::monotonic() + lead_in;
        let end = start + length;
        load.turn(&Turn {
            window_start_ns: start.0,
            window_end_ns: end.0,
        })?;
        let is_first = visited.first.is_none();
        if is_first {
            self.lifecycle.enter(Phase::Measure);
        }
        self.sleep_until(start).await?;
        let cpu_before = self.subject_cpu();
        match is_first {
            true => self.context.sampler.borrow_mut().reset_peaks(),
            false => self.context.sampler.borrow_mut().again(),
        }
        // The memory marks are read at the end of each visit.
        let (slept, late, _) =
            (self.pass_window(Window { start, end }, 1, self.sleep_until(end))).await;
        slept?;
        self.participants.check_alive("its visit ended")?;
        visited.late = visited.late.max(late);
        let turned = self.await_turn(&load, lead_in + length).await?;
        let first = *visited.first.get_or_insert(start);
        self.context.trial.borrow_mut().visits.push(Visit {
            start_ns: start.since(first).0,
            window_ns: length.0,
            completed: turned.completed,
            failed: turned.failed,
            subject_cpu_ns: self.subject_cpu().saturating_sub(cpu_before),
        });
        Ok(turned)
    }

    /// Sleeps until shortly before a moment.
    async fn sleep_until(&self, moment: Instant) -> Result<(), Halt> {
        let sleeping = self.context.handle.sleep_until(shortly_before(moment));
        let living = self.participants.while_alive("its visit ended", sleeping);
        self.context.unless_interrupted(living).await?
    }

    fn subject_cpu(&self) -> u64 {
        let sampler = self.context.sampler.borrow();
        sampler.cpu_in_windows_ns(Role::Subject)
    }
}

fn generator(visited: &Visited) -> Option<u32> {
    visited.load.as_ref().and_then(|load| load.pid())
}

/// Sends SIGSTOP to every descendant except `kept`, including those forked meanwhile, and waits until all their threads
/// are stopped.
async fn stop_processes(handle: &Handle, spared: Option<u32>) -> Result<(), Halt> {
    let deadline = clock::monotonic() + STOP_TIMEOUT;
    loop {
        // A stopped process cannot fork: once all that are found are stopped, all have been found.
        let moving: Vec<u32> = others(spared)
            .into_iter()
            .filter(|&pid| launch::moves(pid))
            .collect();
        if moving.is_empty() {
            return Ok(());
        }
        if clock::monotonic() > deadline {
            let reason = format!("processes {moving:?} could not be stopped within {STOP_TIMEOUT}");
            return Err(Halt::Failed(reason));
        }
        for pid in moving {
            launch::signal(pid, Signal::STOP);
        }
        handle.sleep(LOOK).await;
    }
}

/// Sends SIGCONT to every descendant except `kept`.
fn continue_processes(spared: Option<u32>) {
    for pid in others(spared) {
        launch::signal(pid, Signal::CONT);
    }
}

fn others(spared: Option<u32>) -> Vec<u32> {
    let mut all = launch::descendants(std::process::id());
    all.retain(|&pid| Some(pid) != spared);
    all
}
