//! One trial, inside its supervisor: prepare, start, ready, verify, warm up,
//! measure, drain, stop. Whatever happens, the outcome is a [`Trial`], with
//! everything that was measured until then.
//!
//! One thread does all of it, on the generator's cores: it starts processes,
//! collects ended ones and samples in turn, at times that it sleeps for on the
//! clock that the generator's window is given on.
//!
//! A program that runs to its end is another kind of trial, with a module of its own.
//!
//! Not for: namespaces ([`crate::supervise`]) or what trials there are ([`crate::run`]).

mod drive;
mod log;
mod program;
mod ready;
mod start;
mod wrk;

pub(crate) use start::fill;

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use prony_base::{Instant, Nanos, clock};
use prony_record::{
    Canary, CanaryPair, Exit, Histogram, Isolation, LoadSpec, Outcome, Phase, PhaseSpan, Role,
    Source, Trial, layout,
};
use rustix::process::Signal;
use rustix::thread::ClockId;

use crate::sample::parse::CoreTimes;
use crate::sample::{Sampler, machine};
use crate::supervise::{Generator, Interrupt, TrialOrder};
use crate::{canary, launch, verify};
use drive::{Driver, Window};
use log::Log;
use start::Place;

/// How often the processes are looked at.
const LOOK: Nanos = Nanos::from_millis(100);
/// Longest sleep between two looks for an end, an answer or an interruption.
const POLL_MAX: Nanos = Nanos::from_millis(20);
/// How long before the window the memory marks are reset, and before its end the last look is.
const SHORTLY: Nanos = Nanos::from_millis(10);
/// What connecting and draining may take beyond the time-out of a request.
const SLACK: Nanos = Nanos::from_secs(15);
/// How long what the subject started has to end after it.
const GRACE: Nanos = Nanos::from_millis(500);
/// How long a killed process has to be gone.
const KILL_TIMEOUT: Nanos = Nanos::from_secs(5);
/// How long a generator that is not needed any more has to end.
const GENERATOR_STOP: Nanos = Nanos::from_secs(1);

/// Why a trial does not go on.
#[derive(Debug)]
enum Halt {
    /// In one sentence.
    Failed(String),
    Interrupted,
}

impl Halt {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Halt {
        move |error| Halt::Failed(format!("{what}: {error}"))
    }
}

/// A process that the trial started.
#[derive(Debug)]
struct Started {
    pid: u32,
    exit: Option<Exit>,
    asked: bool,
}

impl Started {
    fn new(pid: u32) -> Started {
        Started {
            pid,
            exit: None,
            asked: false,
        }
    }
}

/// Runs a trial to its end. `began` is told of each phase.
///
/// For a supervisor, whose only task this is: children of the calling process are
/// collected, all its descendants are taken for processes of the trial, and in the
/// end all of them are killed.
pub fn run(
    order: &TrialOrder,
    isolation: Isolation,
    interrupt: &Interrupt,
    began: &mut dyn FnMut(Phase),
) -> (Trial, Option<Histogram>) {
    if let Some(asked) = &order.workload.program {
        let trial = program::run(order, asked, isolation, interrupt, began);
        return (trial, None);
    }
    let mut running = Running::new(order, isolation, interrupt, began);
    let end = running.until_drained();
    let failed_in = running.phase;
    running.stop();
    running.finish(end, failed_in)
}

struct Running<'a> {
    order: &'a TrialOrder,
    interrupt: &'a Interrupt,
    began: &'a mut dyn FnMut(Phase),
    origin: Instant,
    phase: Phase,
    phase_start: Instant,
    trial: Trial,
    histogram: Option<Histogram>,
    sampler: Sampler,
    next_look: Instant,
    subject: Option<Started>,
    subject_log: Option<Log>,
    generator: Option<Started>,
    canary_before: Option<Canary>,
    counters_before: BTreeMap<String, u64>,
}

impl<'a> Running<'a> {
    fn new(
        order: &'a TrialOrder,
        isolation: Isolation,
        interrupt: &'a Interrupt,
        began: &'a mut dyn FnMut(Phase),
    ) -> Running<'a> {
        let now = clock::monotonic();
        let generator = match order.generator {
            Generator::Prony => "prony",
            Generator::Wrk { .. } => "wrk",
        };
        Running {
            order,
            interrupt,
            began,
            origin: now,
            phase: Phase::Prepare,
            phase_start: now,
            trial: Trial {
                schema: prony_record::SCHEMA,
                cell: order.cell.id.clone(),
                block: order.block,
                position: order.position,
                seed: order.seed,
                generator: generator.to_owned(),
                started_unix_ms: clock::unix_nanos() / 1_000_000,
                isolation,
                ..Trial::default()
            },
            histogram: None,
            sampler: Sampler::new(isolation.process_namespace),
            next_look: now,
            subject: None,
            subject_log: None,
            generator: None,
            canary_before: None,
            counters_before: BTreeMap::new(),
        }
    }

    /// All phases but the last.
    fn until_drained(&mut self) -> Result<(), Halt> {
        (self.began)(Phase::Prepare);
        let place = self.prepare()?;
        self.enter(Phase::Start);
        self.start_subject(&place)?;
        self.enter(Phase::Ready);
        self.wait_ready(&place)?;
        self.enter(Phase::Verify);
        self.verify(&place)?;
        self.enter(Phase::WarmUp);
        let spec = drive::spec(self.order, &place);
        let mut driver = self.start_generator(&spec)?;
        let window = self.wait_window(&mut driver, &spec)?;
        // A generator that fills its core would keep the clocks from being read in time.
        // An ordinary user may not be urgent; the record says when they were read late.
        let _ = launch::urgent(true);
        let lived = self.warm_up_and_measure(window);
        let _ = launch::urgent(false);
        let lived = lived?;
        self.enter(Phase::Drain);
        let drained = self.drain(&mut driver, &spec);
        driver.log.close();
        if let Err(failed) = lived {
            // What was measured until then is kept; the failure is that of the window.
            self.leave();
            self.phase = Phase::Measure;
            return Err(failed);
        }
        drained
    }

    fn enter(&mut self, phase: Phase) {
        self.leave();
        self.phase = phase;
        (self.began)(phase);
    }

    /// Notes the end of the current phase.
    fn leave(&mut self) {
        let now = clock::monotonic();
        self.trial.phases.push(PhaseSpan {
            phase: self.phase,
            start_ns: self.phase_start.since(self.origin).0,
            length_ns: now.since(self.phase_start).0,
        });
        self.phase_start = now;
    }

    fn prepare(&mut self) -> Result<Place, Halt> {
        let order = self.order;
        std::fs::create_dir_all(&order.work_dir)
            .map_err(Halt::io("the trial's folder cannot be made"))?;
        if !order.cores.generator.is_empty() {
            launch::pin(&order.cores.generator)
                .map_err(Halt::io("the generator's cores cannot be had"))?;
        }
        self.trial.isolation.pinned = !order.cores.subject.is_empty();
        self.canary_before = Some(canary::sing(&order.cores.subject));
        let place =
            Place::find(order, &self.trial).map_err(Halt::io("there is no place to listen"))?;
        self.counters_before = machine::network_counters();
        Ok(place)
    }

    fn log(&self, of: &str) -> Result<Log, Halt> {
        let name = format!("{}{of}.log", self.order.file_stem);
        let path = self.order.run_dir.join(layout::LOGS).join(name);
        Log::create(&path).map_err(Halt::io("a log cannot be written"))
    }

    fn is_url(&self) -> bool {
        matches!(self.order.subject.source, Source::Url { .. })
    }

    fn start_subject(&mut self, place: &Place) -> Result<(), Halt> {
        if self.is_url() {
            return Ok(());
        }
        let resolved = start::resolve(self.order, place);
        let Some((program, arguments)) = resolved.command.split_first() else {
            return Err(Halt::Failed(
                "the subject has no command to start it".to_owned(),
            ));
        };
        let log = self.log("")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(&resolved.env)
            .stdin(Stdio::null());
        if !resolved.dir.is_empty() {
            command.current_dir(&resolved.dir);
        }
        let io = Halt::io("the subject's log cannot be shared");
        let (out, err) = log
            .writer()
            .and_then(|out| Ok((out, log.writer()?)))
            .map_err(io)?;
        command.stdout(out).stderr(err);
        let spawned = launch::on_cores(&self.order.cores.subject, || command.spawn());
        let child = spawned
            .map_err(Halt::io("the subject's cores cannot be had"))?
            .map_err(|error| Halt::Failed(format!("`{program}` cannot be started: {error}")))?;
        self.subject_log = Some(log);
        self.subject = Some(Started::new(child.id()));
        self.sampler.started(child.id(), Role::Subject);
        Ok(())
    }

    fn wait_ready(&mut self, place: &Place) -> Result<(), Halt> {
        let sign = &self.order.subject.ready;
        let deadline = clock::monotonic() + Nanos(sign.timeout_ns);
        let mut pause = Nanos::from_millis(1);
        while let Some(log) = &self.subject_log {
            if ready::is_ready(sign, place, log).map_err(Halt::Failed)? {
                // The sign may have come from another process on the same port.
                self.turn()?;
                return self.subject_lives("it was ready");
            }
            self.turn()?;
            self.subject_lives("it was ready")?;
            if clock::monotonic() > deadline {
                let waited = Nanos(sign.timeout_ns);
                let missed = ready::in_words(sign);
                return Err(Halt::Failed(self.with_last_line(format!(
                    "not ready after {waited}: waited for {missed}"
                ))));
            }
            std::thread::sleep(pause.into());
            pause = (pause * 2).min(POLL_MAX);
        }
        Ok(())
    }

    fn with_last_line(&self, reason: String) -> String {
        let tail = self.subject_log.as_ref().map(Log::tail).unwrap_or_default();
        match tail.iter().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{reason}; its last line: {}", line.trim()),
            None => format!("{reason}; it printed nothing"),
        }
    }

    fn subject_lives(&self, before: &str) -> Result<(), Halt> {
        match self
            .subject
            .as_ref()
            .and_then(|subject| subject.exit.as_ref())
        {
            None => Ok(()),
            Some(exit) => {
                let how = in_words(exit);
                Err(Halt::Failed(self.with_last_line(format!(
                    "the subject {how} before {before}"
                ))))
            }
        }
    }

    fn verify(&mut self, place: &Place) -> Result<(), Halt> {
        let subject = verify::Subject {
            workload: &self.order.workload,
            address: place.address,
            host: &place.authority,
        };
        self.trial.verification = verify::verify(&subject, self.order.seed);
        self.turn()?;
        match verify::failed_must(&self.trial.verification) {
            Some(failed) => Err(Halt::Failed(failed)),
            None => self.subject_lives("its answers were checked"),
        }
    }

    fn start_generator(&mut self, spec: &LoadSpec) -> Result<Driver, Halt> {
        let io = Halt::io("the generator cannot be started");
        let driver = match &self.order.generator {
            Generator::Prony => {
                Driver::prony(self.order, spec, self.log(".generator")?).map_err(io)?
            }
            Generator::Wrk { path, version } => {
                let wrk = (path.as_path(), version.as_str());
                let seconds = |ns: u64| ns.div_ceil(1_000_000_000).max(1);
                let warmup = Driver::wrk(
                    self.order,
                    spec,
                    wrk,
                    seconds(spec.warmup_ns),
                    self.log(".generator")?,
                );
                let warmup = warmup.map_err(io)?;
                self.follow_generator(warmup.pid);
                self.wait_generator_exit(Nanos(spec.warmup_ns) + Nanos(spec.timeout_ns) + SLACK)?;
                let io = Halt::io("wrk cannot be started");
                let seconds = seconds(spec.duration_ns);
                Driver::wrk(self.order, spec, wrk, seconds, self.log(".generator")?).map_err(io)?
            }
        };
        self.follow_generator(driver.pid);
        Ok(driver)
    }

    fn follow_generator(&mut self, pid: u32) {
        self.generator = Some(Started::new(pid));
        self.sampler.started(pid, Role::Generator);
    }

    fn wait_generator_exit(&mut self, timeout: Nanos) -> Result<(), Halt> {
        let deadline = clock::monotonic() + timeout;
        while self
            .generator
            .as_ref()
            .is_some_and(|generator| generator.exit.is_none())
        {
            self.turn()?;
            if clock::monotonic() > deadline {
                return Err(Halt::Failed(format!(
                    "the generator did not end within {timeout}"
                )));
            }
            std::thread::sleep(POLL_MAX.into());
        }
        Ok(())
    }

    fn wait_window(&mut self, driver: &mut Driver, spec: &LoadSpec) -> Result<Window, Halt> {
        let timeout = Nanos(spec.timeout_ns) + Nanos(spec.warmup_ns) + SLACK;
        let deadline = clock::monotonic() + timeout;
        loop {
            if let Some(window) = driver.window(spec).map_err(Halt::Failed)? {
                return Ok(window);
            }
            self.turn()?;
            self.subject_lives("the window")?;
            if clock::monotonic() > deadline {
                return Err(Halt::Failed(format!(
                    "the generator had not connected after {timeout}"
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn warm_up_and_measure(&mut self, window: Window) -> Result<Result<(), Halt>, Halt> {
        self.warm_up(window)?;
        self.enter(Phase::Measure);
        self.measure(window)
    }

    /// Until the start of the window, where the memory marks are reset.
    fn warm_up(&mut self, window: Window) -> Result<(), Halt> {
        let shortly = Instant(window.start.0.saturating_sub(SHORTLY.0));
        while clock::monotonic() < shortly {
            self.turn()?;
            self.subject_lives("the window")?;
            sleep_until(shortly.min(clock::monotonic() + POLL_MAX));
        }
        self.sampler.reset_peaks();
        Ok(())
    }

    /// The window. The inner result says whether the subject lived through it: what
    /// was measured is kept either way.
    fn measure(&mut self, window: Window) -> Result<Result<(), Halt>, Halt> {
        sleep_until(window.start);
        let start = clock::monotonic();
        self.sampler.begin();
        let cores = machine::core_times();
        let watched = self.watch_window(window);
        if watched.is_ok() {
            sleep_until(window.end);
        }
        let end = clock::monotonic();
        self.sampler.end();
        self.note_window(start, end, &cores, window);
        watched?;
        self.collect();
        Ok(self.subject_lives("the window ended"))
    }

    fn note_window(
        &mut self,
        start: Instant,
        end: Instant,
        cores: &BTreeMap<u32, CoreTimes>,
        window: Window,
    ) {
        let used = machine::core_use(cores, &machine::core_times(), &self.order.cores);
        self.trial.cores = used;
        self.trial.sampled_ns = end.since(start).0;
        self.trial.window_ns = window
            .end
            .since(window.start)
            .0
            .min(end.since(window.start).0);
        let late = start.since(window.start).max(end.since(window.end));
        if late > Nanos::from_millis(1) {
            self.trial
                .notes
                .push(format!("the processes' clocks were read up to {late} late"));
        }
    }

    /// Looks at the processes until shortly before the end of the window.
    fn watch_window(&mut self, window: Window) -> Result<(), Halt> {
        let shortly = Instant(window.end.0.saturating_sub(SHORTLY.0));
        let mut looks = 0_u32;
        loop {
            let now = clock::monotonic();
            let next = (now + LOOK).min(shortly);
            if next <= now {
                break;
            }
            sleep_until(next);
            self.turn()?;
            looks += 1;
            // Memory costs ten times what the rest does, and is needed here only for
            // processes that do not see the end of the window.
            if looks % 10 == 1 {
                self.sampler.note_memory();
            }
        }
        self.sampler.look();
        Ok(())
    }

    fn drain(&mut self, driver: &mut Driver, spec: &LoadSpec) -> Result<(), Halt> {
        let timeout = Nanos(spec.timeout_ns) + SLACK;
        let deadline = clock::monotonic() + timeout;
        let (load, histogram) = loop {
            if let Some(result) = driver.result(spec).map_err(Halt::Failed)? {
                break result;
            }
            self.turn()?;
            if clock::monotonic() > deadline {
                return Err(Halt::Failed(format!(
                    "the generator had no result {timeout} after the window"
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        if self.trial.generator == "prony" {
            self.trial.window_ns = load.window_ns;
        }
        self.trial.load = Some(load);
        self.histogram = histogram;
        self.wait_generator_exit(Nanos::from_secs(5))
    }

    /// One turn of waiting: collects ended children, looks at the processes when it
    /// is time, keeps logs bounded, and notices an interruption.
    fn turn(&mut self) -> Result<(), Halt> {
        self.collect();
        let now = clock::monotonic();
        if now >= self.next_look {
            self.sampler.look();
            self.next_look = now + LOOK;
            if let Some(log) = &mut self.subject_log {
                log.bound();
            }
        }
        if self.interrupt.is_raised() {
            return Err(Halt::Interrupted);
        }
        Ok(())
    }

    fn collect(&mut self) {
        while let Some(ended) = launch::reap() {
            let mut asked = false;
            for started in [&mut self.subject, &mut self.generator]
                .into_iter()
                .flatten()
            {
                if started.pid == ended.pid {
                    started.exit = Some(ended.exit.clone());
                    asked = started.asked;
                }
            }
            let stopping = self.phase == Phase::Stop;
            self.sampler.ended(&ended, asked || stopping);
        }
    }

    /// Ends the generator, then the subject, then whatever is left.
    fn stop(&mut self) {
        self.counters_after();
        self.canary_after();
        self.enter(Phase::Stop);
        if let Some(pid) = self.generator.as_ref().and_then(alive) {
            self.ask_and_wait(pid, Signal::TERM, GENERATOR_STOP, |running| {
                &mut running.generator
            });
        }
        if let Some(pid) = self.subject.as_ref().and_then(alive) {
            let rule = &self.order.subject.stop;
            let signal = launch::signal_named(&rule.signal).unwrap_or(Signal::TERM);
            self.ask_and_wait(pid, signal, Nanos(rule.timeout_ns), |running| {
                &mut running.subject
            });
        }
        self.name_leftovers();
        self.kill_leftovers();
        self.leave();
    }

    fn counters_after(&mut self) {
        let before = std::mem::take(&mut self.counters_before);
        let own = self.trial.isolation.network_namespace;
        self.trial.kernel = machine::kernel_counters(own, before, machine::network_counters());
    }

    /// Only where a window was measured: nothing else is judged by the machine's speed.
    fn canary_after(&mut self) {
        if let (Some(before), true) = (self.canary_before, self.trial.load.is_some()) {
            let after = canary::sing(&self.order.cores.subject);
            self.trial.canary = Some(CanaryPair { before, after });
        }
    }

    /// Asks a process to end, and kills it when it does not in time.
    fn ask_and_wait(
        &mut self,
        pid: u32,
        signal: Signal,
        timeout: Nanos,
        of: fn(&mut Self) -> &mut Option<Started>,
    ) {
        for (signal, timeout) in [(signal, timeout), (Signal::KILL, KILL_TIMEOUT)] {
            if let Some(started) = of(self) {
                started.asked = true;
            }
            launch::signal(pid, signal);
            let deadline = clock::monotonic() + timeout;
            while clock::monotonic() < deadline {
                self.collect();
                if of(self).as_ref().and_then(alive).is_none() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Notes what is still there after a moment's grace.
    fn name_leftovers(&mut self) {
        let own = std::process::id();
        let deadline = clock::monotonic() + GRACE;
        loop {
            self.collect();
            let left = launch::descendants(own);
            if left.is_empty() {
                return;
            }
            if clock::monotonic() > deadline {
                self.sampler.look();
                self.trial.left_behind =
                    left.iter().map(|&pid| self.sampler.name_of(pid)).collect();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn kill_leftovers(&mut self) {
        let own = std::process::id();
        let deadline = clock::monotonic() + KILL_TIMEOUT;
        while clock::monotonic() < deadline {
            self.collect();
            let left = launch::descendants(own);
            if left.is_empty() {
                return;
            }
            for pid in left {
                launch::signal(pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.trial
            .notes
            .push("a process could not be killed".to_owned());
    }

    fn finish(mut self, end: Result<(), Halt>, failed_in: Phase) -> (Trial, Option<Histogram>) {
        self.trial.outcome = match end {
            Ok(()) => Outcome::Measured,
            Err(Halt::Interrupted) => Outcome::Interrupted,
            Err(Halt::Failed(reason)) => Outcome::Failed {
                phase: failed_in,
                reason,
            },
        };
        if let Some(log) = self.subject_log {
            self.trial.log_tail = log.tail();
            if log.was_cut() {
                let cut = format!(
                    "the subject's log passed {} MiB and was emptied",
                    log::LOG_BYTES_MAX >> 20
                );
                self.trial.notes.push(cut);
            }
            log.close();
        }
        if self.sampler.is_full() {
            self.trial.notes.push(
                "not all processes and threads were followed: there were too many".to_owned(),
            );
        }
        self.trial.processes = self.sampler.records();
        (self.trial, self.histogram)
    }
}

/// The process id of one that has not been seen to end.
fn alive(started: &Started) -> Option<u32> {
    started.exit.is_none().then_some(started.pid)
}

fn in_words(exit: &Exit) -> String {
    match exit {
        Exit::Code { code } => format!("exited with status {code}"),
        Exit::Signal { signal, .. } => format!("was ended by signal {signal}"),
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
