//! A trial of a server: what it consists of are services of a [`prony_runtime`], on one
//! loop of one thread on the generator's cores.
//!
//! ```text
//! children <- sampling <- subject <- ready <- load        (an arrow: is required by)
//! ```
//!
//! Each starts when what it requires runs, and the trial goes from phase to phase as they
//! come up; in the end, however that comes about, they stop in reverse order. A process
//! that ends too early fails the step that the trial is in. Only the edges of the window
//! are waited for outside of the loop, so that the clocks are read on time.
//!
//! Not for: programs ([`super::program`]).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use prony_base::{Instant, Nanos, clock};
use prony_engine::Handle;
use prony_record::{Histogram, Isolation, Phase, Role, Source, Trial};
use prony_runtime::services::Definition;
use rustix::process::Signal;
use rustix::thread::ClockId;

use super::Halt;
use super::children::Farewell;
use super::drive::{self, Window};
use super::generator::Load;
use super::process::{Part, Ready};
use super::sampling::Sampling;
use super::scene::{self, STUCK, Scene};
use super::stage::Stage;
use super::start::{self, Place};
use crate::network::Network;
use crate::sample::machine;
use crate::sample::parse::CoreTimes;
use crate::supervise::{Interrupt, TrialOrder};
use crate::{launch, verify};

/// How long before the window the memory marks are reset, and before its end the last look is.
const SHORTLY: Nanos = Nanos::from_millis(10);
/// Runs a trial to its end. `began` is told of each phase.
pub fn run(
    order: &TrialOrder,
    isolation: Isolation,
    interrupt: &Interrupt,
    began: &mut dyn FnMut(Phase),
) -> (Trial, Option<Histogram>) {
    let ran = prony_engine::run(&scene::config(), |handle| async move {
        let stage = Stage::new(order.clone(), isolation, interrupt, handle.clone());
        let mut running = Running::new(stage, &handle, began);
        let end = running.until_drained().await;
        let failed_in = running.scene.stage.phase();
        running.scene.stop().await;
        running.finish(end, failed_in)
    });
    ran.unwrap_or_else(|error| (scene::without_loop(order, isolation, &error), None))
}

struct Running<'a> {
    scene: Scene<'a>,
    stage: Rc<Stage>,
    subject: Rc<Part>,
    histogram: Option<Histogram>,
}

impl<'a> Running<'a> {
    fn new(stage: Rc<Stage>, handle: &Handle, began: &'a mut dyn FnMut(Phase)) -> Running<'a> {
        let rule = &stage.order.subject.stop;
        let subject = Part {
            role: Role::Subject,
            resolved: start::Resolved::default(),
            cores: stage.order.cores.subject.clone(),
            farewell: Farewell {
                signal: launch::signal_named(&rule.signal).unwrap_or(Signal::TERM),
                timeout: Nanos(rule.timeout_ns),
            },
            log_name: "",
            network: Rc::new(Network::loopback()),
            log: Rc::default(),
            child: RefCell::default(),
        };
        Running {
            subject: Rc::new(subject),
            scene: Scene::new(stage.clone(), handle, began),
            stage,
            histogram: None,
        }
    }

    /// All phases but the last.
    async fn until_drained(&mut self) -> Result<(), Halt> {
        self.scene.prepare()?;
        let place = Place::find(&self.stage.order, &self.stage.trial.borrow())
            .map_err(Halt::io("there is no place to listen"))?;
        self.scene.enter(Phase::Start);
        self.scene.watch_over().await?;
        self.start_subject(&place).await?;
        self.scene.enter(Phase::Ready);
        self.wait_ready(&place).await?;
        self.scene.enter(Phase::Verify);
        self.verify(&place)?;
        self.scene.enter(Phase::WarmUp);
        let (load, window) = self.start_load(&place).await?;
        // A generator that fills its core would keep the clocks from being read in time.
        // An ordinary user may not be urgent; the record says when they were read late.
        let _ = launch::urgent(true);
        let lived = self.warm_up_and_measure(window).await;
        let _ = launch::urgent(false);
        let lived = lived?;
        self.scene.enter(Phase::Drain);
        let drained = self.drain(&load).await;
        if let Err(failed) = lived {
            // What was measured until then is kept; the failure is that of the window.
            self.stage.leave();
            self.stage.blame(Phase::Measure);
            return Err(failed);
        }
        drained
    }

    fn is_url(&self) -> bool {
        matches!(self.stage.order.subject.source, Source::Url { .. })
    }

    async fn start_subject(&mut self, place: &Place) -> Result<(), Halt> {
        if self.is_url() {
            return Ok(());
        }
        let resolved = start::resolve(&self.stage.order, place);
        if let Some(part) = Rc::get_mut(&mut self.subject) {
            part.resolved = resolved;
        }
        self.scene.start("subject", &self.subject).await
    }

    async fn wait_ready(&self, place: &Place) -> Result<(), Halt> {
        if self.is_url() {
            return Ok(());
        }
        let sign = &self.stage.order.subject.ready;
        self.scene.wait_ready(&self.subject, sign, place).await
    }

    fn verify(&self, place: &Place) -> Result<(), Halt> {
        let order = &self.stage.order;
        let subject = verify::Subject {
            workload: &order.workload,
            address: place.address,
            host: &place.authority,
        };
        let checks = verify::verify(&subject, order.seed);
        let failed = verify::failed_must(&checks);
        self.stage.trial.borrow_mut().verification = checks;
        self.scene.children.collect();
        match failed {
            Some(failed) => Err(Halt::Failed(failed)),
            None => self.subject.lives("its answers were checked"),
        }
    }

    async fn start_load(&self, place: &Place) -> Result<(Rc<Load>, Window), Halt> {
        let spec = drive::spec(&self.stage.order, place);
        let load = Load::new(self.stage.clone(), self.scene.children.clone(), spec);
        let mut definition = Definition::shared("load", load.clone())
            .requires::<Rc<Sampling>>(|_, _, _| {}, |_, _| {})
            .start_timeout(load.start_timeout())
            .stop_timeout(STUCK);
        if !self.is_url() {
            definition = definition.requires::<Rc<Ready>>(|_, _, _| {}, |_, _| {});
        }
        let up = self
            .subject
            .while_alive("the window", self.scene.up(definition));
        up.await??;
        match load.window() {
            Some(window) => Ok((load, window)),
            None => Err(Halt::Failed("the generator has no window".to_owned())),
        }
    }

    async fn warm_up_and_measure(&mut self, window: Window) -> Result<Result<(), Halt>, Halt> {
        self.warm_up(window).await?;
        self.scene.enter(Phase::Measure);
        self.measure(window).await
    }

    /// Until the start of the window, where the memory marks are reset.
    async fn warm_up(&self, window: Window) -> Result<(), Halt> {
        let shortly = Instant(window.start.0.saturating_sub(SHORTLY.0));
        let sleeping = self.stage.handle.sleep_until(shortly);
        let living = self.subject.while_alive("the window", sleeping);
        self.stage.unless_interrupted(living).await??;
        self.stage.sampler.borrow_mut().reset_peaks();
        Ok(())
    }

    /// The window. The inner result says whether the subject lived through it: what
    /// was measured is kept either way.
    async fn measure(&self, window: Window) -> Result<Result<(), Halt>, Halt> {
        sleep_until(window.start);
        let start = clock::monotonic();
        self.stage.sampler.borrow_mut().begin();
        let cores = machine::core_times();
        self.scene.watched.in_window.set(Some(0));
        let shortly = Instant(window.end.0.saturating_sub(SHORTLY.0));
        let sleeping = self.stage.handle.sleep_until(shortly);
        let watched = self.stage.unless_interrupted(sleeping).await;
        self.scene.watched.in_window.set(None);
        self.stage.sampler.borrow_mut().look();
        if watched.is_ok() {
            sleep_until(window.end);
        }
        let end = clock::monotonic();
        self.stage.sampler.borrow_mut().end();
        self.note_window(start, end, &cores, window);
        watched?;
        self.scene.children.collect();
        Ok(self.subject.lives("the window ended"))
    }

    fn note_window(
        &self,
        start: Instant,
        end: Instant,
        cores: &BTreeMap<u32, CoreTimes>,
        window: Window,
    ) {
        let used = machine::core_use(cores, &machine::core_times(), &self.stage.order.cores);
        let measured = window.end.since(window.start).0;
        let mut trial = self.stage.trial.borrow_mut();
        trial.cores = used;
        trial.sampled_ns = end.since(start).0;
        trial.window_ns = measured.min(end.since(window.start).0);
        let late = start.since(window.start).max(end.since(window.end));
        if late > Nanos::from_millis(1) {
            let sentence = format!("the processes' clocks were read up to {late} late");
            trial.notes.push(sentence);
        }
    }

    async fn drain(&mut self, load: &Load) -> Result<(), Halt> {
        let driven = self.stage.unless_interrupted(load.result()).await?;
        let (report, histogram) = driven?;
        let mut trial = self.stage.trial.borrow_mut();
        if trial.generator == "prony" {
            trial.window_ns = report.window_ns;
        }
        trial.load = Some(report);
        self.histogram = histogram;
        Ok(())
    }

    fn finish(self, end: Result<(), Halt>, failed_in: Phase) -> (Trial, Option<Histogram>) {
        let mut trial = self.scene.finish(end, failed_in);
        if let Some(log) = self.subject.log.take() {
            trial.log_tail = log.tail();
            scene::close(log, "subject", &mut trial);
        }
        let sampler = self.stage.sampler.take();
        if sampler.is_full() {
            let full = "not all processes and threads were followed: there were too many";
            trial.notes.push(full.to_owned());
        }
        trial.processes = sampler.records();
        (trial, self.histogram)
    }
}

/// Sleeps until a moment of `CLOCK_MONOTONIC`; at once when it has passed.
fn sleep_until(moment: Instant) {
    let request = rustix::thread::Timespec {
        tv_sec: (moment.0 / 1_000_000_000) as i64,
        tv_nsec: (moment.0 % 1_000_000_000) as _,
    };
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &request)
        == Err(rustix::io::Errno::INTR)
    {}
}
