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
use prony_engine::{Config, DriverChoice, Handle};
use prony_record::{Canary, CanaryPair, Histogram, Isolation, Outcome, Phase, Role, Source, Trial};
use prony_runtime::services::{
    Definition, Options, Reason, Service, ServiceError, ServiceId, Services,
};
use rustix::process::Signal;
use rustix::thread::ClockId;

use super::children::{Children, Farewell};
use super::drive::{self, Window};
use super::generator::Load;
use super::process::{Part, Process, Ready};
use super::sampling::{Sampling, Watched};
use super::stage::Stage;
use super::start::{self, Place};
use super::{Halt, log};
use crate::sample::machine;
use crate::sample::parse::CoreTimes;
use crate::supervise::{Interrupt, TrialOrder};
use crate::{canary, launch, verify};

/// How long before the window the memory marks are reset, and before its end the last look is.
const SHORTLY: Nanos = Nanos::from_millis(10);
/// How long what the subject started has to end after it.
const GRACE: Nanos = Nanos::from_millis(500);
/// How long a killed process has to be gone.
const KILL_TIMEOUT: Nanos = Nanos::from_secs(5);
/// What a service may take beyond the time-outs that it keeps itself, before it counts as stuck.
const STUCK: Nanos = Nanos::from_secs(30);
/// Pause between two looks at what is left of the processes.
const PAUSE: Nanos = Nanos::from_millis(2);

/// Runs a trial to its end. `began` is told of each phase.
pub fn run(
    order: &TrialOrder,
    isolation: Isolation,
    interrupt: &Interrupt,
    began: &mut dyn FnMut(Phase),
) -> (Trial, Option<Histogram>) {
    // A few timers and descriptors: nothing that a ring would be better at.
    let config = Config {
        driver: DriverChoice::Epoll,
        recv_buffers: 1,
        ..Config::default()
    };
    let ran = prony_engine::run(&config, |handle| async move {
        let stage = Stage::new(order.clone(), isolation, interrupt, handle.clone());
        let mut running = Running::new(stage, &handle, began);
        let end = running.until_drained().await;
        let failed_in = running.stage.phase();
        running.stop().await;
        running.finish(end, failed_in)
    });
    ran.unwrap_or_else(|error| {
        let reason = format!("the event loop of the trial cannot run: {error}");
        let phase = Phase::Prepare;
        let trial = Trial {
            schema: prony_record::SCHEMA,
            cell: order.cell.id.clone(),
            block: order.block,
            position: order.position,
            seed: order.seed,
            isolation,
            outcome: Outcome::Failed { phase, reason },
            ..Trial::default()
        };
        (trial, None)
    })
}

struct Running<'a> {
    stage: Rc<Stage>,
    services: Services,
    children: Rc<Children>,
    watched: Rc<Watched>,
    subject: Rc<Part>,
    began: &'a mut dyn FnMut(Phase),
    histogram: Option<Histogram>,
    canary_before: Option<Canary>,
    counters_before: BTreeMap<String, u64>,
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
            log: Rc::default(),
            child: RefCell::default(),
        };
        Running {
            services: Services::new(handle, Options::default()),
            children: Children::new(stage.clone()),
            watched: Rc::default(),
            subject: Rc::new(subject),
            stage,
            began,
            histogram: None,
            canary_before: None,
            counters_before: BTreeMap::new(),
        }
    }

    /// All phases but the last.
    async fn until_drained(&mut self) -> Result<(), Halt> {
        (self.began)(Phase::Prepare);
        let place = self.prepare()?;
        self.enter(Phase::Start);
        self.watch_over().await?;
        self.start_subject(&place).await?;
        self.enter(Phase::Ready);
        self.wait_ready(&place).await?;
        self.enter(Phase::Verify);
        self.verify(&place)?;
        self.enter(Phase::WarmUp);
        let (load, window) = self.start_load(&place).await?;
        // A generator that fills its core would keep the clocks from being read in time.
        // An ordinary user may not be urgent; the record says when they were read late.
        let _ = launch::urgent(true);
        let lived = self.warm_up_and_measure(window).await;
        let _ = launch::urgent(false);
        let lived = lived?;
        self.enter(Phase::Drain);
        let drained = self.drain(&load).await;
        if let Err(failed) = lived {
            // What was measured until then is kept; the failure is that of the window.
            self.stage.leave();
            self.stage.blame(Phase::Measure);
            return Err(failed);
        }
        drained
    }

    fn enter(&mut self, phase: Phase) {
        self.stage.enter(phase);
        (self.began)(phase);
    }

    fn prepare(&mut self) -> Result<Place, Halt> {
        let stage = self.stage.clone();
        let order = &stage.order;
        std::fs::create_dir_all(&order.work_dir)
            .map_err(Halt::io("the trial's folder cannot be made"))?;
        if !order.cores.generator.is_empty() {
            launch::pin(&order.cores.generator)
                .map_err(Halt::io("the generator's cores cannot be had"))?;
        }
        stage.trial.borrow_mut().isolation.pinned = !order.cores.subject.is_empty();
        self.canary_before = Some(canary::sing(&order.cores.subject));
        let place = Place::find(order, &stage.trial.borrow())
            .map_err(Halt::io("there is no place to listen"))?;
        self.counters_before = machine::network_counters();
        Ok(place)
    }

    /// Adds a service and waits until it runs, or says why it does not.
    async fn up<S: Service>(&self, definition: Definition<S>) -> Result<(), Halt> {
        let added = self.services.add(definition);
        let id = added.map_err(|error| Halt::Failed(error.to_string()))?;
        let started = self.stage.unless_interrupted(self.services.start(id));
        started.await?.map_err(|error| self.halt(id, &error))
    }

    fn halt(&self, id: ServiceId, error: &ServiceError) -> Halt {
        match self.services.reason(id) {
            Some(Reason::StartFailed(why)) => Halt::Failed(why),
            _ => Halt::Failed(error.to_string()),
        }
    }

    /// Children and sampling, which every process requires.
    async fn watch_over(&self) -> Result<(), Halt> {
        let logs = &self.watched.logs;
        logs.borrow_mut().push(self.subject.log.clone());
        let children = Definition::shared("children", self.children.clone())
            .provides::<Rc<Children>>(|children| children)
            .stop_timeout(STUCK);
        self.up(children).await?;
        let (stage, watched) = (self.stage.clone(), self.watched.clone());
        let made =
            move |children: Rc<Children>| Sampling::new(stage.clone(), children, watched.clone());
        let sampling =
            Definition::construct("sampling", made).provides::<Rc<Sampling>>(|sampling| sampling);
        self.up(sampling).await
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
        let (stage, part) = (self.stage.clone(), self.subject.clone());
        let made = move |children: Rc<Children>, _: Rc<Sampling>| {
            Process::new(stage.clone(), part.clone(), children)
        };
        let process = Definition::construct("subject", made)
            .provides::<Rc<Process>>(|process| process)
            .stop_timeout(self.subject.farewell.timeout + STUCK);
        self.up(process).await
    }

    async fn wait_ready(&self, place: &Place) -> Result<(), Halt> {
        if self.is_url() {
            return Ok(());
        }
        let (stage, part, place) = (self.stage.clone(), self.subject.clone(), place.clone());
        let sign = self.stage.order.subject.ready.clone();
        let timeout = Nanos(sign.timeout_ns) + STUCK;
        let made = move |children: Rc<Children>, _: Rc<Process>| {
            let (stage, part) = (stage.clone(), part.clone());
            Ready::new(stage, part, children, sign.clone(), place.clone())
        };
        let ready = Definition::construct("ready", made)
            .provides::<Rc<Ready>>(|ready| ready)
            .start_timeout(timeout);
        self.up(ready).await
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
        self.children.collect();
        match failed {
            Some(failed) => Err(Halt::Failed(failed)),
            None => self.subject.lives("its answers were checked"),
        }
    }

    async fn start_load(&self, place: &Place) -> Result<(Rc<Load>, Window), Halt> {
        let spec = drive::spec(&self.stage.order, place);
        let load = Load::new(self.stage.clone(), self.children.clone(), spec);
        let mut definition = Definition::shared("load", load.clone())
            .requires::<Rc<Sampling>>(|_, _, _| {}, |_, _| {})
            .start_timeout(load.start_timeout())
            .stop_timeout(STUCK);
        if !self.is_url() {
            definition = definition.requires::<Rc<Ready>>(|_, _, _| {}, |_, _| {});
        }
        let up = self.subject.while_alive("the window", self.up(definition));
        up.await??;
        match load.window() {
            Some(window) => Ok((load, window)),
            None => Err(Halt::Failed("the generator has no window".to_owned())),
        }
    }

    async fn warm_up_and_measure(&mut self, window: Window) -> Result<Result<(), Halt>, Halt> {
        self.warm_up(window).await?;
        self.enter(Phase::Measure);
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
        self.watched.in_window.set(Some(0));
        let shortly = Instant(window.end.0.saturating_sub(SHORTLY.0));
        let sleeping = self.stage.handle.sleep_until(shortly);
        let watched = self.stage.unless_interrupted(sleeping).await;
        self.watched.in_window.set(None);
        self.stage.sampler.borrow_mut().look();
        if watched.is_ok() {
            sleep_until(window.end);
        }
        let end = clock::monotonic();
        self.stage.sampler.borrow_mut().end();
        self.note_window(start, end, &cores, window);
        watched?;
        self.children.collect();
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

    /// Ends the generator, then the subject, then whatever is left.
    async fn stop(&mut self) {
        self.stage.stop();
        self.counters_after();
        self.canary_after();
        self.enter(Phase::Stop);
        self.services.stop_all().await;
        self.name_leftovers().await;
        self.kill_leftovers().await;
        self.stage.leave();
    }

    fn counters_after(&mut self) {
        let before = std::mem::take(&mut self.counters_before);
        let mut trial = self.stage.trial.borrow_mut();
        let own = trial.isolation.network_namespace;
        trial.kernel = machine::kernel_counters(own, before, machine::network_counters());
    }

    /// Only where a window was measured: nothing else is judged by the machine's speed.
    fn canary_after(&mut self) {
        let measured = self.stage.trial.borrow().load.is_some();
        if let (Some(before), true) = (self.canary_before, measured) {
            let after = canary::sing(&self.stage.order.cores.subject);
            self.stage.trial.borrow_mut().canary = Some(CanaryPair { before, after });
        }
    }

    /// Notes what is still there after a moment's grace.
    async fn name_leftovers(&self) {
        let own = std::process::id();
        let deadline = clock::monotonic() + GRACE;
        loop {
            self.children.collect();
            let left = launch::descendants(own);
            if left.is_empty() {
                return;
            }
            if clock::monotonic() > deadline {
                let mut sampler = self.stage.sampler.borrow_mut();
                sampler.look();
                let names = left.iter().map(|&pid| sampler.name_of(pid)).collect();
                self.stage.trial.borrow_mut().left_behind = names;
                return;
            }
            self.stage.handle.sleep(PAUSE).await;
        }
    }

    async fn kill_leftovers(&self) {
        let own = std::process::id();
        let deadline = clock::monotonic() + KILL_TIMEOUT;
        while clock::monotonic() < deadline {
            self.children.collect();
            let left = launch::descendants(own);
            if left.is_empty() {
                return;
            }
            for pid in left {
                launch::signal(pid, Signal::KILL);
            }
            self.stage.handle.sleep(PAUSE).await;
        }
        self.stage.note("a process could not be killed".to_owned());
    }

    fn finish(self, end: Result<(), Halt>, failed_in: Phase) -> (Trial, Option<Histogram>) {
        let mut trial = self.stage.trial.take();
        trial.outcome = match end {
            Ok(()) => Outcome::Measured,
            Err(Halt::Interrupted) => Outcome::Interrupted,
            Err(Halt::Failed(reason)) => Outcome::Failed {
                phase: failed_in,
                reason,
            },
        };
        if let Some(log) = self.subject.log.take() {
            trial.log_tail = log.tail();
            if log.was_cut() {
                let cut = format!(
                    "the subject's log passed {} MiB and was emptied",
                    log::LOG_BYTES_MAX >> 20
                );
                trial.notes.push(cut);
            }
            log.close();
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
