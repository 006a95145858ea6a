//! One trial of a program: start it fresh, let it run to its end, read what it printed
//! and what the kernel says that it used.
//!
//! Nothing of Prony runs on the program's cores meanwhile, where there are others: its
//! parent sleeps until it ends ([`crate::supervise`] says why there is one), and it is not
//! sampled.
//!
//! Not for: servers ([`super`]), or what the lines mean ([`crate::printed`]).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use prony_base::{Instant, Nanos, clock};
use prony_record::{
    Canary, CanaryPair, CheckLevel, CheckResult, Cores, Exit, Isolation, MemoryMarks, Outcome,
    Phase, PhaseSpan, PlannedProgram, ProcessRecord, ProgramReport, Role, Trial, layout,
};
use rustix::process::Signal;

use super::context::{Halt, in_words};
use super::log::Log;
use super::profiling::WholeRun;
use super::start::{self, Resolved};
use crate::canary;
use crate::experiment::THREADS;
use crate::launch::{self, Wanted};
use crate::printed::{self, Asked, Pattern};
use crate::sample::machine;
use crate::supervise::{Interrupt, Order, ProgramOrder, Report, Supervisor, TrialOrder};

/// Bytes that a program may print on its standard output.
pub const OUTPUT_BYTES_MAX: u64 = 16 << 20;
/// How often a time-out, an interruption and the size of the output are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long the parent has to start the program and say so.
const START_TIMEOUT: Nanos = Nanos::from_secs(30);
/// How long what the program started has to end after it.
const GRACE: Nanos = Nanos::from_millis(500);
/// How long a killed program has to be gone.
const KILL_TIMEOUT: Nanos = Nanos::from_secs(5);
/// Looks of 1 ms at what is left, before it is left to the kernel.
const KILL_ROUNDS_MAX: u32 = 5_000;
/// What the loader reports of a library that it could not preload: it then continues
/// without, and another program would be measured than the one that was named.
const NOT_PRELOADED: &str = "cannot be preloaded";
/// What a program prints beside its measurement when it was refused a realtime priority.
const NOT_REALTIME: &str = "\"realtime\":false";

/// Runs a trial to its end. `began` is told of each phase.
///
/// For a supervisor, whose only task this is: in the end all descendants of the calling
/// process are killed.
pub fn run(
    order: &TrialOrder,
    asked: &PlannedProgram,
    isolation: Isolation,
    interrupt: &Interrupt,
    began: &mut dyn FnMut(Report),
) -> Trial {
    let mut running = Running::new(order, asked, isolation, interrupt, began);
    let end = running.until_read();
    let failed_in = running.phase;
    running.stop();
    running.finish(end, failed_in)
}

/// The program's cores and those of the supervisor: as many as it is told threads, and
/// the lab's own, or else the others, if there are any.
fn split(cores: &Cores, threads: u32) -> Cores {
    let mut all: Vec<u32> = Vec::new();
    for &core in cores.subject.iter().chain(&cores.generator) {
        if !all.contains(&core) {
            all.push(core);
        }
    }
    let own = all.split_off(all.len().min(threads.max(1) as usize));
    Cores {
        subject: all,
        generator: own,
        lab: cores.lab.clone(),
    }
}

/// Threads that the program is told to use.
fn threads(order: &TrialOrder) -> u32 {
    let setting = order.cell.settings.get(THREADS);
    let threads = setting.and_then(|value| value.parse().ok());
    threads.unwrap_or(order.subject.program_threads).max(1)
}

/// How the program ended and what it used.
pub(super) struct Ran {
    /// How it ended.
    pub exit: Exit,
    /// What the kernel says of it; no lines yet.
    pub usage: ProgramReport,
    /// Context switches, voluntary and not.
    switches: (u64, u64),
}

impl Ran {
    /// What its parent reports at its end; `None`: another report.
    pub fn of(report: Report) -> Option<Ran> {
        let Report::Ran {
            exit,
            wall_ns,
            user_ns,
            system_ns,
            peak_bytes,
            switches_voluntary,
            switches_involuntary,
        } = report
        else {
            return None;
        };
        let usage = ProgramReport {
            wall_ns,
            user_ns,
            system_ns,
            peak_bytes,
            lines: Vec::new(),
        };
        Some(Ran {
            exit,
            usage,
            switches: (switches_voluntary, switches_involuntary),
        })
    }

    /// The program as a process of the trial. `stopped`: it was asked to end.
    pub fn record(&self, command: Vec<String>, pid: Option<u32>, stopped: bool) -> ProcessRecord {
        let program = command.first().map_or("", String::as_str);
        let exit = match self.exit {
            Exit::Signal { signal, .. } => Exit::Signal {
                signal,
                asked: stopped,
            },
            Exit::Code { code } => Exit::Code { code },
        };
        ProcessRecord {
            role: Role::Subject,
            name: program.rsplit('/').next().unwrap_or_default().to_owned(),
            pid: pid.unwrap_or(0),
            parent_pid: std::process::id(),
            cpu_ns: self.usage.user_ns + self.usage.system_ns,
            memory: MemoryMarks {
                peak_bytes: Some(self.usage.peak_bytes),
                ..MemoryMarks::default()
            },
            threads: Vec::new(),
            switches_voluntary: self.switches.0,
            switches_involuntary: self.switches.1,
            exit: Some(exit),
            command,
        }
    }
}

/// The failure that the loader left out what was to be preloaded, if a line says so.
pub(super) fn all_preloaded(tail: &[String]) -> Result<(), Halt> {
    match tail.iter().find(|line| line.contains(NOT_PRELOADED)) {
        Some(line) => Err(Halt::Failed(format!(
            "what the experiment preloads was left out: {}",
            line.trim()
        ))),
        None => Ok(()),
    }
}

struct Running<'a> {
    order: &'a TrialOrder,
    asked: &'a PlannedProgram,
    interrupt: &'a Interrupt,
    began: &'a mut dyn FnMut(Report),
    origin: Instant,
    phase: Phase,
    phase_start: Instant,
    threads: u32,
    cores: Cores,
    trial: Trial,
    resolved: Resolved,
    output: PathBuf,
    log: Option<Log>,
    parent: Option<Supervisor>,
    pid: Option<u32>,
    /// Whether it was asked to end.
    stopped: bool,
    ran: Option<Ran>,
    profile: Option<WholeRun>,
    canary_before: Option<Canary>,
}

impl<'a> Running<'a> {
    fn new(
        order: &'a TrialOrder,
        asked: &'a PlannedProgram,
        isolation: Isolation,
        interrupt: &'a Interrupt,
        began: &'a mut dyn FnMut(Report),
    ) -> Running<'a> {
        let now = clock::monotonic();
        let threads = threads(order);
        let file = |ending: &str| {
            let name = format!("{}{ending}", order.file_stem);
            order.run_dir.join(layout::LOGS).join(name)
        };
        Running {
            order,
            asked,
            interrupt,
            began,
            origin: now,
            phase: Phase::Prepare,
            phase_start: now,
            threads,
            cores: split(&order.cores, threads),
            trial: Trial {
                schema: prony_record::SCHEMA,
                cell: order.cell.id.clone(),
                block: order.block,
                position: order.position,
                seed: order.seed,
                generator: order.generator.name().to_owned(),
                started_unix_ms: clock::unix_nanos() / 1_000_000,
                isolation,
                ..Trial::default()
            },
            resolved: Resolved::default(),
            output: file(".output.log"),
            log: None,
            parent: None,
            pid: None,
            stopped: false,
            ran: None,
            profile: None,
            canary_before: None,
        }
    }

    /// All phases but the last.
    fn until_read(&mut self) -> Result<(), Halt> {
        (self.began)(Report::Phase {
            phase: Phase::Prepare,
        });
        self.prepare()?;
        self.enter(Phase::Start);
        self.start()?;
        self.enter(Phase::Measure);
        self.measure()?;
        self.enter(Phase::Verify);
        self.read()
    }

    fn enter(&mut self, phase: Phase) {
        self.leave();
        self.phase = phase;
        (self.began)(Report::Phase { phase });
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

    fn prepare(&mut self) -> Result<(), Halt> {
        let order = self.order;
        std::fs::create_dir_all(&order.work_dir)
            .map_err(Halt::io("the trial's folder cannot be made"))?;
        let own = self.cores.of_sampler();
        if !own.is_empty() {
            launch::pin(own).map_err(Halt::io("the supervisor's cores cannot be had"))?;
        }
        self.trial.isolation.pinned = !self.cores.subject.is_empty();
        self.canary_before = Some(canary::run(&self.cores.subject));
        let io = Halt::io("a log cannot be written");
        let path = self
            .output
            .with_file_name(format!("{}.log", order.file_stem));
        let log = Log::create(&path).and_then(|log| {
            File::create(&self.output)?;
            Ok(log)
        });
        self.log = Some(log.map_err(io)?);
        self.resolved = start::resolve_program(order, self.asked, self.threads);
        if self.resolved.command.is_empty() {
            let reason = "the subject has no command that runs it as a program";
            return Err(Halt::Failed(reason.to_owned()));
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), Halt> {
        let log = self
            .output
            .with_file_name(format!("{}.log", self.order.file_stem));
        let order = ProgramOrder {
            command: self.resolved.command.clone(),
            env: self.resolved.env.clone(),
            dir: self.resolved.dir.clone().into(),
            root: self.resolved.root.clone().into(),
            capabilities: self.resolved.capabilities.clone(),
            output: self.output.clone(),
            log,
        };
        let prony = &self.order.prony;
        let started = launch::on_cores(&self.cores.subject, || {
            Supervisor::start(prony, Wanted::default(), Order::Program(order))
        });
        let started = started.map_err(Halt::io("the program's cores cannot be had"))?;
        self.parent = Some(started.map_err(|error| Halt::Failed(error.to_string()))?);
        let deadline = clock::monotonic() + START_TIMEOUT;
        loop {
            match self.next()? {
                Some(Report::Began { pid }) => {
                    self.pid = Some(pid);
                    self.profile = WholeRun::begin(self.order, pid, &self.cores.subject);
                    return Ok(());
                }
                Some(Report::Exited { error, .. }) => {
                    let program = &self.resolved.command[0];
                    let why = error.unwrap_or_default();
                    return Err(Halt::Failed(format!(
                        "`{program}` cannot be started: {why}"
                    )));
                }
                Some(_) => return Err(Halt::Failed("its parent lost its way".to_owned())),
                None if clock::monotonic() > deadline => {
                    let reason = format!("it was not started within {START_TIMEOUT}");
                    return Err(Halt::Failed(reason));
                }
                None => {}
            }
        }
    }

    /// The next report of the parent; `None`: none yet.
    fn next(&mut self) -> Result<Option<Report>, Halt> {
        if self.interrupt.is_raised() && !self.stopped {
            return Err(Halt::Interrupted);
        }
        let Some(parent) = &mut self.parent else {
            return Ok(None);
        };
        let lost = |error| Halt::Failed(format!("the parent of the program was lost: {error}"));
        parent.next(LOOK).map_err(lost)
    }

    /// Waits for the end of the program.
    fn measure(&mut self) -> Result<(), Halt> {
        let before = machine::core_times();
        let timeout = Nanos(self.order.workload.timeout_ns);
        let deadline = clock::monotonic() + timeout;
        while !self.hear()? {
            if let Some(profile) = &mut self.profile {
                profile.look();
            }
            if let Some(log) = &mut self.log {
                log.bound();
            }
            if self.output_bytes() > OUTPUT_BYTES_MAX {
                return Err(Halt::Failed(format!(
                    "it printed more than {} MiB",
                    OUTPUT_BYTES_MAX >> 20
                )));
            }
            if clock::monotonic() > deadline {
                let reason = format!("it had not ended after {timeout}");
                return Err(Halt::Failed(self.with_last_line(reason)));
            }
        }
        let used = machine::core_use(&before, &machine::core_times(), &self.cores);
        self.trial.cores = used;
        match self.ran.as_ref().map(|ran| &ran.exit) {
            Some(Exit::Code { code: 0 }) => Ok(()),
            Some(exit) => {
                let reason = format!("it {}", in_words(exit));
                Err(Halt::Failed(self.with_last_line(reason)))
            }
            None => Ok(()),
        }
    }

    /// Hears the parent once; true when the program has ended.
    fn hear(&mut self) -> Result<bool, Halt> {
        let Some(report) = self.next()? else {
            return Ok(false);
        };
        let lost = || Halt::Failed("its parent lost its way".to_owned());
        self.ran = Some(Ran::of(report).ok_or_else(lost)?);
        Ok(true)
    }

    fn output_bytes(&self) -> u64 {
        std::fs::metadata(&self.output).map_or(0, |metadata| metadata.len())
    }

    /// Reads what it printed.
    fn read(&mut self) -> Result<(), Halt> {
        let tail = self.log.as_ref().map(Log::tail).unwrap_or_default();
        all_preloaded(&tail)?;
        let text = read(&self.output).map_err(Halt::io("its output cannot be read"))?;
        let pattern = self.order.subject.program_output.as_deref();
        let pattern = pattern
            .map(Pattern::new)
            .transpose()
            .map_err(Halt::Failed)?;
        let subject = &self.order.subject;
        let mut texts = subject.program.iter().chain(subject.program_env.values());
        let asked = Asked {
            count: self.order.cell.count.unwrap_or(0),
            threads: self.threads,
            told_threads: texts.any(|text| text.contains("{threads}")),
        };
        let lines = printed::read(&text, pattern.as_ref(), &asked);
        self.trial.verification.push(CheckResult {
            name: "output".to_owned(),
            level: CheckLevel::Must,
            passed: lines.is_ok(),
            detail: lines.as_ref().err().cloned().unwrap_or_default(),
        });
        let lines = lines.map_err(Halt::Failed)?;
        if text.contains(NOT_REALTIME) {
            let note = "the program says that it was not allowed to be scheduled in real time";
            self.trial.notes.push(note.to_owned());
        }
        if let Some(ran) = &mut self.ran {
            ran.usage.lines = lines;
            self.trial.window_ns = ran.usage.wall_ns;
            self.trial.sampled_ns = ran.usage.wall_ns;
        }
        Ok(())
    }

    fn with_last_line(&self, reason: String) -> String {
        match self.tail().iter().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{reason}; its last line: {}", line.trim()),
            None => format!("{reason}; it printed nothing"),
        }
    }

    /// The last lines of standard error; of standard output where there are none.
    fn tail(&self) -> Vec<String> {
        let errors = self.log.as_ref().map(Log::tail).unwrap_or_default();
        if !errors.is_empty() {
            return errors;
        }
        super::log::tail_of(&self.output)
    }

    /// Ends the program if it still runs, then whatever is left of it.
    fn stop(&mut self) {
        self.enter(Phase::Stop);
        if self.ran.is_none() && self.pid.is_some() {
            let rule = &self.order.subject.stop;
            let signal = launch::signal_named(&rule.signal).unwrap_or(Signal::TERM);
            self.ask_and_wait(signal, Nanos(rule.timeout_ns));
        }
        self.name_leftovers();
        launch::kill_descendants(KILL_ROUNDS_MAX);
        self.parent = None;
        if let (Some(before), true) = (self.canary_before, self.trial.window_ns > 0) {
            let after = canary::run(&self.cores.subject);
            self.trial.canary = Some(CanaryPair { before, after });
        }
        self.leave();
    }

    /// Asks the program to end, and kills it when it does not in time.
    fn ask_and_wait(&mut self, signal: Signal, timeout: Nanos) {
        self.stopped = true;
        for (signal, timeout) in [(signal, timeout), (Signal::KILL, KILL_TIMEOUT)] {
            if let Some(pid) = self.pid {
                launch::signal(pid, signal);
            }
            let deadline = clock::monotonic() + timeout;
            while clock::monotonic() < deadline {
                match self.hear() {
                    Ok(false) => {}
                    // One whose parent is lost is killed with the rest.
                    Ok(true) | Err(_) => return,
                }
            }
        }
    }

    /// Notes what is still there after a moment's grace, without the program's parent.
    fn name_leftovers(&mut self) {
        if self.pid.is_none() {
            return;
        }
        if self.ran.is_some() {
            // It has nothing left to do and ends with its input.
            self.parent = None;
        }
        let own = std::process::id();
        let deadline = clock::monotonic() + GRACE;
        loop {
            while launch::reap().is_some() {}
            let left = launch::descendants(own);
            if left.is_empty() {
                return;
            }
            if clock::monotonic() > deadline {
                self.trial.left_behind = left.into_iter().map(named).collect();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn finish(mut self, end: Result<(), Halt>, failed_in: Phase) -> Trial {
        self.trial.outcome = match end {
            Ok(()) => Outcome::Measured,
            Err(Halt::Interrupted) => Outcome::Interrupted,
            Err(Halt::Failed(reason)) => Outcome::Failed {
                phase: failed_in,
                reason,
            },
        };
        self.trial.log_tail = self.tail();
        if let Some(profile) = self.profile.take() {
            profile.keep(self.order, &mut self.trial);
        }
        if let Some(ran) = self.ran.take() {
            let command = self.resolved.command.clone();
            let record = ran.record(command, self.pid, self.stopped);
            self.trial.processes.push(record);
            self.trial.program = Some(ran.usage);
        }
        if let Some(log) = self.log {
            if log.was_cut() {
                let cut = format!(
                    "the program's standard error passed {} MiB and was emptied",
                    super::log::LOG_BYTES_MAX >> 20
                );
                self.trial.notes.push(cut);
            }
            log.close();
        }
        if std::fs::metadata(&self.output).is_ok_and(|metadata| metadata.len() == 0) {
            let _ = std::fs::remove_file(&self.output);
        }
        self.trial
    }
}

/// The whole of what was printed, as text.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > OUTPUT_BYTES_MAX {
        let limit = OUTPUT_BYTES_MAX >> 20;
        return Err(io::Error::other(format!("it is more than {limit} MiB")));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Name and number of a process: `sleep (7)`.
fn named(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match name.trim_end() {
        "" => format!("? ({pid})"),
        name => format!("{name} ({pid})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_as_many_cores_as_threads_and_the_supervisor_the_others() {
        let cores = |subject: &[u32], generator: &[u32]| Cores {
            subject: subject.to_vec(),
            generator: generator.to_vec(),
            lab: Vec::new(),
        };
        let all = cores(&[0, 2], &[1, 2, 3]);
        assert_eq!(split(&all, 1), cores(&[0], &[2, 1, 3]));
        assert_eq!(split(&all, 0), cores(&[0], &[2, 1, 3]));
        assert_eq!(split(&all, 3), cores(&[0, 2, 1], &[3]));
        assert_eq!(split(&all, 99), cores(&[0, 2, 1, 3], &[]));
        assert_eq!(split(&Cores::default(), 2), Cores::default());
        let with_lab = Cores {
            lab: vec![4],
            ..cores(&[0], &[1, 2])
        };
        let whole = split(&with_lab, 9);
        assert_eq!((whole.subject, whole.lab), (vec![0, 1, 2], vec![4]));
        assert_eq!(split(&with_lab, 1).of_sampler(), [4]);
        assert_eq!(split(&all, 1).of_sampler(), [2, 1, 3]);
    }
}
