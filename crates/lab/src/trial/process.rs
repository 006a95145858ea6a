//! The processes of a trial as services: one that tracks all that were started, notices at once when one ends, reaps
//! orphans, and stops processes by signal and time-out; and for each server one whose start is the start of its process
//! and whose stop is its end. A server that was started is waited for until it is ready, by the sign that it declares.
//!
//! What logging costs is measured with what it takes: a pipe and a terminal have a real
//! reader, the same for both, a process on the subject's cores whose time is part of the
//! subject's. On the generator's cores it would be free, and a terminal, which is read in
//! far smaller pieces than a pipe, would look the cheaper of the two. What it reads ends in
//! the log of the trial, as what is printed to a file does; standard error always does.
//!
//! Not for: the generator ([`super::generator`]).

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use prony_base::{Instant, Nanos, clock};
use prony_engine::Task;
use prony_record::{Exit, Output, Phase, ReadyKind, ReadySign, Role, StopRule};
use prony_runtime::coroutines::ManualEvent;
use prony_runtime::services::{Context, Failure, Service};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use rustix::thread::CapabilitySet;

use super::context::{First, Halt, POLL_MAX, TrialContext, first, in_words};
use super::log::{Log, with_last_line};
use super::start::Place;
use crate::launch::{self, Resolved};
use crate::network::Network;
use crate::verify;

/// How long a killed process may take to end.
const KILL_TIMEOUT: Nanos = Nanos::from_secs(5);
/// Interval at which orphans are reaped, and all children where the kernel has no process descriptors.
const COLLECT: Nanos = Nanos::from_millis(20);
/// `TERM` of a server whose output is a terminal.
const TERMINAL_KIND: &str = "xterm-256color";
/// Shortest interval at which readiness is probed.
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
/// A server that takes longer is probed at this part of the time it has taken, so that the time to ready is at most 2 % too long.
const PROBES: u64 = 50;
/// The command that reads a pipe or a terminal: it copies its input to its output.
const READER: &str = "cat";
/// How long a reader may take to reach the end of its input once the last writer is gone.
const READER_TIMEOUT: Nanos = Nanos::from_secs(1);
/// How a reader that takes longer is stopped.
const READER_STOP_SIGNAL: StopSignal = StopSignal {
    signal: Signal::TERM,
    timeout: Nanos::from_secs(1),
};
/// The window size of the terminal.
const TERMINAL: Winsize = Winsize {
    ws_row: 24,
    ws_col: 80,
    ws_xpixel: 0,
    ws_ypixel: 0,
};
/// How long one attempt to connect, or one request, may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// How a process is stopped.
#[derive(Clone, Copy, Debug)]
pub struct StopSignal {
    /// The signal.
    pub signal: Signal,
    /// After this it is killed.
    pub timeout: Nanos,
}

impl StopSignal {
    /// The stop signal of a rule.
    pub fn from_rule(rule: &StopRule) -> StopSignal {
        StopSignal {
            signal: launch::signal_named(&rule.signal).unwrap_or(Signal::TERM),
            timeout: Nanos(rule.timeout_ns),
        }
    }
}

/// A process that the trial started.
pub struct Child {
    pid: u32,
    stop_signal: StopSignal,
    stop_requested: Cell<bool>,
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
    pub async fn await_end(&self) {
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
            stop_requested: Cell::new(false),
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
            let mut stop_requested = self.context.phase() == Phase::Stop || self.expected.get();
            for child in self.started.borrow().iter() {
                if child.pid == ended.pid && child.exit.borrow().is_none() {
                    stop_requested |= child.stop_requested.get();
                    *child.exit.borrow_mut() = Some(ended.exit.clone());
                    child.over.set();
                }
            }
            self.context
                .sampler
                .borrow_mut()
                .ended(&ended, stop_requested);
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
            child.stop_requested.set(true);
            launch::signal(child.pid, signal);
            let _ = self
                .context
                .handle
                .timeout(timeout, child.await_end())
                .await;
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

/// A server of a trial: how it is started, its process and its log. Outlives its services.
pub struct Participant {
    /// All processes of the trial.
    pub children: Rc<Children>,
    /// Its role in the trial.
    pub role: Role,
    /// Its name in messages, after `the`: `subject`, `backing backing/redis`.
    pub title: String,
    /// How it is started.
    pub resolved: Resolved,
    /// Its cores.
    pub cores: Vec<u32>,
    /// How it is stopped.
    pub stop_signal: StopSignal,
    /// Suffix of its log's name, after the stem of the trial's files.
    pub log_name: String,
    /// The destination of its standard output.
    pub output: Output,
    /// The process that reads it, if any.
    pub reader: RefCell<Option<Rc<Child>>>,
    /// The network on whose far side it is started.
    pub network: Rc<Network>,
    /// Its log, once it was started.
    pub log: Rc<RefCell<Option<Log>>>,
    /// Its process, once it was started.
    pub child: RefCell<Option<Rc<Child>>>,
    /// When that was.
    pub started: Cell<Option<Instant>>,
}

impl Participant {
    /// One that has not been started, on the far side of `network`; its output goes to its log.
    pub fn new(children: Rc<Children>, network: Rc<Network>, stop: &StopRule) -> Participant {
        Participant {
            children,
            role: Role::Subject,
            title: String::new(),
            resolved: Resolved::default(),
            cores: Vec::new(),
            stop_signal: StopSignal::from_rule(stop),
            log_name: String::new(),
            output: Output::File,
            reader: RefCell::default(),
            network,
            log: Rc::default(),
            child: RefCell::default(),
            started: Cell::default(),
        }
    }

    /// `reason` with the last line that it printed.
    pub fn with_last_line(&self, reason: String) -> String {
        let log = self.log.borrow();
        let tail = log.as_ref().map(Log::tail).unwrap_or_default();
        with_last_line(&tail, reason)
    }

    /// Checks that it and its reader are alive. Errors: which one ended before `before`, and how.
    pub fn check_alive(&self, before: &str) -> Result<(), Halt> {
        let ended = |of: &str, exit| {
            let (title, how) = (&self.title, in_words(&exit));
            let reason = format!("the {title}{of} {how} before {before}");
            Halt::Failed(self.with_last_line(reason))
        };
        let child = self.child.borrow().clone();
        if let Some(exit) = child.and_then(|child| child.exit()) {
            return Err(ended("", exit));
        }
        let reader = self.reader.borrow().clone();
        match reader.and_then(|child| child.exit()) {
            Some(exit) => Err(ended("'s reader", exit)),
            None => Ok(()),
        }
    }

    /// Awaits `work`; fails if the process ends before it is done.
    pub async fn while_alive<T>(
        &self,
        before: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, Halt> {
        while_alive(std::iter::once(self), before, work).await
    }

    /// Its process and its reader's, where they were started.
    pub fn processes(&self) -> Vec<Rc<Child>> {
        let child = self.child.borrow().clone();
        child
            .into_iter()
            .chain(self.reader.borrow().clone())
            .collect()
    }

    /// Its process id, if it was started.
    pub fn pid(&self) -> Option<u32> {
        self.child.borrow().as_ref().map(|child| child.pid())
    }

    fn command(&self, log: &Log, output: Stdio) -> Result<(String, Command), Halt> {
        let Some(program) = self.resolved.command.first() else {
            let reason = format!("the {} has no command to start it", self.title);
            return Err(Halt::Failed(reason));
        };
        let errors = log.writer().map_err(Halt::io("a log cannot be shared"))?;
        let command = self.resolved.command(output, errors);
        let mut command = command.map_err(Halt::io("its folder cannot be entered"))?;
        if self.output == Output::Terminal && !self.resolved.env.contains_key("TERM") {
            // The type of this terminal, not of the user's.
            command.env("TERM", TERMINAL_KIND);
        }
        Ok((program.clone(), command))
    }

    fn spawn(&self) -> Result<(), Halt> {
        let log = self.children.context.log(&self.log_name)?;
        let reader = start_reader(self, &log);
        let (output, reader) = reader.map_err(Halt::io("its output has nowhere to go"))?;
        *self.reader.borrow_mut() = reader;
        let (program, mut command) = self.command(&log, output)?;
        let cores = self.cores.clone();
        self.started.set(Some(clock::monotonic()));
        let start = move || launch::on_cores(&cores, || launch::start(&mut command));
        let child = (self.network.on_peers_side(start))
            .map_err(Halt::io("its network cannot be entered"))?
            .map_err(Halt::io("its cores cannot be had"))?
            .map_err(|error| Halt::Failed(format!("`{program}` cannot be started: {error}")))?;
        *self.log.borrow_mut() = Some(log);
        let followed = (self.children).follow(child.id(), self.role, self.stop_signal);
        *self.child.borrow_mut() = Some(followed);
        Ok(())
    }

    /// Waits until it gives the sign that it is ready. Errors: it does not in time, or ends before.
    pub async fn ready(&self, sign: &ReadySign, place: &Place) -> Result<(), Halt> {
        let timeout = Nanos(sign.timeout_ns);
        let began = clock::monotonic();
        let deadline = began + timeout;
        while !self.is_ready(sign, place) {
            let now = clock::monotonic();
            if now > deadline {
                let missed = sign_in_words(sign);
                let who = match self.role {
                    Role::Backing | Role::Front => format!("the {} was ", self.title),
                    _ => String::new(),
                };
                let reason = format!("{who}not ready after {timeout}: waited for {missed}");
                return Err(Halt::Failed(self.with_last_line(reason)));
            }
            let pause = Nanos(now.since(began).0 / PROBES).clamp(PAUSE_MIN, POLL_MAX);
            let pausing = self.children.context.handle.sleep(pause);
            self.while_alive("it was ready", pausing).await?;
        }
        self.note_time();
        // Another process may have answered on the same port.
        self.children.collect();
        self.check_alive("it was ready")
    }

    /// Records how long the subject took, its slowest instance.
    fn note_time(&self) {
        if let (Role::Subject, Some(started)) = (self.role, self.started.get()) {
            let took = clock::monotonic().since(started).0;
            let recorded = &mut self.children.context.trial.borrow_mut().ready_ns;
            *recorded = (*recorded).max(Some(took));
        }
    }

    /// Probes once for the ready sign.
    fn is_ready(&self, sign: &ReadySign, place: &Place) -> bool {
        let log = self.log.borrow();
        let Some(log) = &*log else { return false };
        let to = place.destination();
        match sign.sign {
            ReadyKind::Port => TcpStream::connect_timeout(&to.address, ATTEMPT_TIMEOUT).is_ok(),
            ReadyKind::Line => log.has_line(&sign.text),
            ReadyKind::Http => verify::answers_ok(&to, &sign.text, ATTEMPT_TIMEOUT),
        }
    }
}

/// Awaits `work`; fails if one of `servers` ends before it is done.
pub async fn while_alive<'a, T>(
    mut servers: impl Iterator<Item = &'a Participant> + Clone,
    before: &str,
    work: impl Future<Output = T>,
) -> Result<T, Halt> {
    let processes = servers.clone().flat_map(|one| one.processes());
    let processes: Vec<_> = processes.collect();
    match first(any_ended(&processes), work).await {
        First::Other(done) => Ok(done),
        First::One(()) => {
            servers.try_for_each(|one| one.check_alive(before))?;
            Err(Halt::Failed(format!("a process ended before {before}")))
        }
    }
}

/// Waits until one of `children` has ended; forever where there are none.
async fn any_ended(children: &[Rc<Child>]) {
    let mut ends: Vec<_> = children
        .iter()
        .map(|child| Box::pin(child.await_end()))
        .collect();
    poll_fn(|cx| {
        for end in &mut ends {
            if end.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    })
    .await;
}

impl Service for Participant {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        self.spawn().map_err(Failure::from)
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        let child = self.child.borrow().clone();
        if let Some(child) = child {
            self.children.end(&child).await;
        }
        if let Some(reader) = self.reader.take() {
            // It ends once all that was printed has been read.
            let handle = &self.children.context.handle;
            let _ = handle.timeout(READER_TIMEOUT, reader.await_end()).await;
            self.children.end(&reader).await;
        }
        Ok(())
    }
}

/// The ready sign as a noun for a message: `a port that accepts connections`.
fn sign_in_words(sign: &ReadySign) -> String {
    match sign.sign {
        ReadyKind::Line => format!("a line with `{}` in its output", sign.text),
        ReadyKind::Http => format!("status 200 for `GET {}`", sign.text),
        ReadyKind::Port => "a port that accepts connections".to_owned(),
    }
}

/// Starts the process that reads a server's standard output, if there is to be one, and returns that output for the server.
fn start_reader(server: &Participant, log: &Log) -> io::Result<(Stdio, Option<Rc<Child>>)> {
    match server.output {
        Output::File => Ok((log.writer()?, None)),
        Output::Null => Ok((Stdio::null(), None)),
        Output::Pipe => {
            let (from, to) = io::pipe()?;
            let reader = read_from(from.into(), log.writer()?, server, log)?;
            Ok((to.into(), Some(reader)))
        }
        Output::Terminal => {
            let (from, to) = terminal()?;
            // The end of a terminal is an I/O error, which the reader would print.
            let reader = read_from(from.into(), Stdio::null(), server, log)?;
            Ok((to.into(), Some(reader)))
        }
    }
}

/// Starts a process that reads `from`.
fn read_from(from: Stdio, errors: Stdio, server: &Participant, log: &Log) -> io::Result<Rc<Child>> {
    let mut command = Command::new(READER);
    command.stdin(from).stdout(log.writer()?).stderr(errors);
    launch::without_capabilities(&mut command, CapabilitySet::empty(), false);
    let start = || launch::start(&mut command);
    let child = launch::on_cores(&server.cores, start)??;
    let children = &server.children;
    Ok(children.follow(child.id(), server.role, READER_STOP_SIGNAL))
}

/// Opens a pseudoterminal: the end that is read, and the end that programs print to.
fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let name = rustix::pty::ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name, flags, Mode::empty())?;
    rustix::termios::tcsetwinsize(&theirs, TERMINAL)?;
    Ok((ours, theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_one_and_has_a_size() {
        let (_ours, theirs) = terminal().expect("a terminal");
        assert!(rustix::termios::isatty(&theirs));
        let size = rustix::termios::tcgetwinsize(&theirs).expect("a size");
        assert_eq!((size.ws_row, size.ws_col), (24, 80));
    }
}
