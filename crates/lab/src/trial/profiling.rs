//! The profile of a trial: the subject's threads are sampled and their system calls counted in the window, or
//! strace is attached from before the load until after it; a program and a client are profiled from start to exit.
//!
//! Not for: how samples are taken ([`crate::profile`]).

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use prony_base::{Instant, Nanos, clock};
use prony_record::{ProfileReport, ProfiledThread, Role, Trial, layout};
use rustix::process::Signal;

use super::context::{Halt, TrialContext};
use super::process::{Child, Children, StopSignal};
use crate::launch::numbered;
use crate::profile::Profiler;
use crate::sample::{Sampler, parse};
use crate::supervise::{Generator, TrialOrder};
use crate::{launch, profile};

/// How long strace may take to attach to all threads.
const ATTACH: Nanos = Nanos::from_secs(5);
/// Interval at which that is polled.
const PAUSE: Nanos = Nanos::from_millis(5);
/// How long a process may take to stop while its profile begins.
const STOPPED: Nanos = Nanos::from_millis(200);
/// How strace is made to detach from the subject and to write its table.
const STOP_SIGNAL: StopSignal = StopSignal {
    signal: Signal::INT,
    timeout: Nanos::from_secs(5),
};

/// A running strace.
pub struct Strace {
    child: Rc<Child>,
    table: PathBuf,
}

impl TrialContext {
    /// Opens the samplers and counters, shortly before the window.
    pub fn open_profile(&self) {
        if let Some(profiler) = &mut *self.profiler.borrow_mut() {
            let mut cores = self.order.cores.subject.clone();
            if cores.is_empty() {
                cores = online();
            }
            profiler.open(&self.subjects_threads(), &cores);
        }
    }

    /// Begins the profile at the start of the window.
    pub fn begin_profile(&self) {
        if let Some(profiler) = &mut *self.profiler.borrow_mut() {
            profiler.begin();
        }
    }

    /// Ends the profile at the end of the window.
    pub fn end_profile(&self) {
        if let Some(profiler) = &mut *self.profiler.borrow_mut() {
            profiler.end(&self.subjects_threads());
        }
    }

    fn subjects_threads(&self) -> Vec<(u32, u32)> {
        self.sampler.borrow().threads_of(Role::Subject)
    }

    fn refuse_profile(&self, sentence: String) {
        if let Some(profiler) = &mut *self.profiler.borrow_mut() {
            profiler.refuse(sentence);
        }
    }
}

/// Attaches strace in a trial for it. Where that fails, the trial continues and records why.
pub async fn attach(
    context: &TrialContext,
    children: &Rc<Children>,
) -> Result<Option<Strace>, Halt> {
    let strace = {
        let profiler = context.profiler.borrow();
        profiler.as_ref().and_then(|own| own.pass().strace.clone())
    };
    let Some(strace) = strace else {
        return Ok(None);
    };
    let threads = context.subjects_threads();
    let (mut pids, tids): (Vec<u32>, Vec<u32>) = threads.into_iter().unzip();
    pids.dedup();
    let table = context.order.work_dir.join("strace");
    let log = context.log(".strace")?;
    let mut command = Command::new(strace);
    command
        .args(profile::strace_arguments(&pids, &table))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.writer().map_err(Halt::io("a log cannot be written"))?);
    let child = match launch::start(&mut command) {
        Ok(child) => children.follow(child.id(), Role::Generator, STOP_SIGNAL),
        Err(error) => {
            context.refuse_profile(format!("strace cannot be started: {error}"));
            return Ok(None);
        }
    };
    let deadline = clock::monotonic() + ATTACH;
    while !tids.iter().all(|&tid| is_traced(tid)) {
        children.collect();
        if child.exit().is_some() || clock::monotonic() > deadline {
            children.end(&child).await;
            let why = log.tail().pop().unwrap_or_default();
            context.refuse_profile(format!("strace cannot attach itself to the subject: {why}"));
            return Ok(None);
        }
        context
            .unless_interrupted(context.handle.sleep(PAUSE))
            .await?;
    }
    Ok(Some(Strace { child, table }))
}

/// Detaches strace and reads its counts.
pub async fn detach(context: &TrialContext, children: &Children, strace: Strace) {
    children.end(&strace.child).await;
    let text = std::fs::read(&strace.table).unwrap_or_default();
    let counts = profile::strace_counts(&String::from_utf8_lossy(&text));
    if let Some(profiler) = &mut *context.profiler.borrow_mut() {
        if counts.is_empty() {
            profiler.refuse("strace wrote no table".to_owned());
        }
        profiler.counted_by_strace(counts);
    }
}

/// Whether this thread is traced, or has ended.
fn is_traced(tid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{tid}/status")) else {
        return true;
    };
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

/// The cores that are online.
fn online() -> Vec<u32> {
    crate::sample::machine::core_times().into_keys().collect()
}

/// A process that is profiled from its start to its end: a program, a client.
pub struct WholeRun {
    profiler: Profiler,
    pid: u32,
    start: Instant,
    /// When it was last sampled.
    last: Instant,
    /// The totals of each thread at that time.
    threads: BTreeMap<u32, ProfiledThread>,
}

impl WholeRun {
    /// Begins the profile of a process that has just started; `None`: not a profile trial. `cores`: where it runs.
    pub fn begin(order: &TrialOrder, pid: u32, cores: &[u32]) -> Option<WholeRun> {
        let Generator::Profile { pass } = &order.generator else {
            return None;
        };
        let mut profiler = Profiler::new(pass.clone());
        // A thread that started between listing and opening would be missed.
        launch::signal(pid, Signal::STOP);
        wait_until_stopped(pid);
        let threads = threads_of(&launch::family(pid));
        let cores = match cores {
            [] => online(),
            own => own.to_vec(),
        };
        profiler.open(&threads, &cores);
        profiler.begin();
        let start = clock::monotonic();
        launch::signal(pid, Signal::CONT);
        Some(WholeRun {
            profiler,
            pid,
            start,
            last: start,
            threads: BTreeMap::new(),
        })
    }

    /// Drains the samples and reads the clocks of its threads; to be called several times a second.
    pub fn look(&mut self) {
        let pids = launch::family(self.pid);
        for (pid, tid) in threads_of(&pids) {
            if let Some(thread) = thread(pid, tid) {
                self.threads.insert(tid, thread);
                self.last = clock::monotonic();
            }
        }
        self.profiler.remember(&pids);
        self.profiler.drain();
    }

    /// Puts the profile into the record once the process has ended.
    pub fn keep(mut self, order: &TrialOrder, trial: &mut Trial) {
        self.profiler.end(&[]);
        let length = self.last.since(self.start).0;
        let threads = self.threads.into_values().collect();
        keep_report(self.profiler.report(threads, length), order, trial);
    }
}

/// The threads of processes: process and thread.
fn threads_of(pids: &[u32]) -> Vec<(u32, u32)> {
    let of = |&pid: &u32| {
        let threads = numbered(&format!("/proc/{pid}/task")).into_iter();
        threads.map(move |tid| (pid, tid))
    };
    pids.iter().flat_map(of).collect()
}

/// Waits until a process that was sent SIGSTOP has stopped, so that it starts no thread.
fn wait_until_stopped(pid: u32) {
    let deadline = clock::monotonic() + STOPPED;
    while launch::moves(pid) && clock::monotonic() < deadline {
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
}

/// The totals of a thread since it started.
fn thread(pid: u32, tid: u32) -> Option<ProfiledThread> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/{name}")).ok();
    let (cpu_ns, delay_ns) = parse::schedstat(&read("schedstat")?)?;
    let status = parse::status(&read("status")?);
    Some(ProfiledThread {
        pid,
        tid,
        name: read("comm")?.trim_end().to_owned(),
        cpu_ns,
        delay_ns,
        switches_voluntary: status.voluntary,
        switches_involuntary: status.involuntary,
        ..ProfiledThread::default()
    })
}

/// Puts the profile of a server into the record.
pub fn keep(profiler: Profiler, sampler: &Sampler, context: &TrialContext, trial: &mut Trial) {
    let threads = sampler.profiled(Role::Subject);
    keep_report(
        profiler.report(threads, trial.sampled_ns),
        &context.order,
        trial,
    );
}

/// Puts a profile into the record, and its folded stacks into the run directory.
fn keep_report(
    (mut report, folded): (ProfileReport, String),
    order: &TrialOrder,
    trial: &mut Trial,
) {
    if !folded.is_empty() {
        let name = format!("{}/{}.folded", layout::PROFILES, order.file_stem);
        match write(&order.run_dir, &name, &folded) {
            Ok(()) => report.folded = Some(name),
            Err(error) => report
                .refused
                .push(format!("{name} cannot be written: {error}")),
        }
    }
    trial.profile = Some(report);
}

fn write(dir: &Path, name: &str, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(dir.join(layout::PROFILES))?;
    let mut file = std::fs::File::create(dir.join(name))?;
    file.write_all(text.as_bytes())?;
    file.sync_data()
}
