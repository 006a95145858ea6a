//! The services for a server of a trial: one whose start is the start of its process and
//! whose stop is its end, and one that runs once the process is ready, by the sign that it declares.
//!
//! What logging costs is measured with what it takes: a pipe and a terminal have a real
//! reader, the same for both, a process on the subject's cores whose time is part of the
//! subject's. On the generator's cores it would be free, and a terminal, which is read in
//! far smaller pieces than a pipe, would look the cheaper of the two. What it reads ends in
//! the log of the trial, as what is printed to a file does; standard error always does.
//!
//! Not for: the generator ([`super::generator`]).

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use prony_base::{Nanos, clock};
use prony_record::{Output, ReadySign, Role};
use prony_runtime::services::{Context, Failure, Service};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use rustix::thread::CapabilitySet;

use super::children::{Child, Children, StopSignal};
use super::context::{First, Halt, POLL_MAX, TrialContext, first, in_words};
use super::log::Log;
use super::start::{Place, Resolved};
use crate::network::Network;
use crate::{launch, verify};

/// `TERM` of a server whose output is a terminal.
const TERMINAL_KIND: &str = "xterm-256color";
/// First interval at which readiness is probed; it doubles each time.
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
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

/// A server of a trial: how it is started, its process and its log. Outlives its services.
pub struct Participant {
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
    /// Where its standard output goes.
    pub output: Output,
    /// The process that reads it, if any.
    pub reader: RefCell<Reader>,
    /// The network on whose far side it is started.
    pub network: Rc<Network>,
    /// Its log, once it was started.
    pub log: Rc<RefCell<Option<Log>>>,
    /// Its process, once it was started.
    pub child: RefCell<Option<Rc<Child>>>,
}

impl Participant {
    /// `reason` with the last line that it printed.
    pub fn with_last_line(&self, reason: String) -> String {
        let tail = self.tail();
        match tail.iter().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{reason}; its last line: {}", line.trim()),
            None => format!("{reason}; it printed nothing"),
        }
    }

    /// The last lines that it printed.
    pub fn tail(&self) -> Vec<String> {
        self.log
            .borrow()
            .as_ref()
            .map(Log::tail)
            .unwrap_or_default()
    }

    /// Checks that it and its reader are alive. Errors: which one ended before `before`, and how.
    pub fn lives(&self, before: &str) -> Result<(), Halt> {
        let ended = |of: &str, exit| {
            let (title, how) = (&self.title, in_words(&exit));
            let reason = format!("the {title}{of} {how} before {before}");
            Halt::Failed(self.with_last_line(reason))
        };
        let child = self.child.borrow().clone();
        if let Some(exit) = child.and_then(|child| child.exit()) {
            return Err(ended("", exit));
        }
        let reader = self.reader.borrow().child();
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
        match first(any_ended(&self.children()), work).await {
            First::One(()) => match self.lives(before) {
                Err(ended) => Err(ended),
                Ok(()) => Err(Halt::Failed(format!("the {} is gone", self.title))),
            },
            First::Other(done) => Ok(done),
        }
    }

    /// Its process and its reader's, where they were started.
    pub fn children(&self) -> Vec<Rc<Child>> {
        let own = self.child.borrow().clone();
        own.into_iter()
            .chain(self.reader.borrow().child())
            .collect()
    }

    /// Its process id, if it was started.
    pub fn pid(&self) -> Option<u32> {
        self.child.borrow().as_ref().map(|child| child.pid())
    }

    fn command(&self, log: &Log, output: Stdio) -> Result<(String, Command), Halt> {
        let Some((program, arguments)) = self.resolved.command.split_first() else {
            let reason = format!("the {} has no command to start it", self.title);
            return Err(Halt::Failed(reason));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(&self.resolved.env)
            .stdin(Stdio::null());
        let (root, dir) = (
            Path::new(&self.resolved.root),
            Path::new(&self.resolved.dir),
        );
        let placed = launch::place(&mut command, launch::root_of(root), dir);
        placed.map_err(Halt::io("its folder cannot be entered"))?;
        let errors = log.writer().map_err(Halt::io("a log cannot be shared"))?;
        command.stdout(output).stderr(errors);
        if self.output == Output::Terminal && !self.resolved.env.contains_key("TERM") {
            // The type of this terminal, not of the user's.
            command.env("TERM", TERMINAL_KIND);
        }
        let kept = launch::capabilities_named(&self.resolved.capabilities);
        launch::without_capabilities(&mut command, kept);
        Ok((program.clone(), command))
    }
}

/// Waits until one of `children` has ended; forever where there are none.
pub async fn any_ended(children: &[Rc<Child>]) {
    let mut ends: Vec<_> = children
        .iter()
        .map(|child| Box::pin(child.ended()))
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

/// A service in the start order of a trial, which the next one requires.
pub trait Step {}

impl Step for Process {}

impl Step for Ready {}

/// The service that starts and stops a server's process.
pub struct Process {
    context: Rc<TrialContext>,
    participant: Rc<Participant>,
    children: Rc<Children>,
}

impl Process {
    /// A process that has not been started.
    pub fn new(
        context: Rc<TrialContext>,
        participant: Rc<Participant>,
        children: Rc<Children>,
    ) -> Process {
        Process {
            context,
            participant,
            children,
        }
    }

    fn spawn(&self) -> Result<(), Halt> {
        let participant = &self.participant;
        let log = self.context.log(&participant.log_name)?;
        let reader = Reader::start(participant, &log, &self.children);
        let (output, reader) = reader.map_err(Halt::io("its output has nowhere to go"))?;
        *participant.reader.borrow_mut() = reader;
        let (program, mut command) = participant.command(&log, output)?;
        let cores = participant.cores.clone();
        let start = move || launch::on_cores(&cores, || launch::start(&mut command));
        let started = participant.network.on_peers_side(start);
        let child = started
            .map_err(Halt::io("its network cannot be entered"))?
            .map_err(Halt::io("its cores cannot be had"))?
            .map_err(|error| Halt::Failed(format!("`{program}` cannot be started: {error}")))?;
        *participant.log.borrow_mut() = Some(log);
        let followed = self
            .children
            .follow(child.id(), participant.role, participant.stop_signal);
        *participant.child.borrow_mut() = Some(followed);
        Ok(())
    }
}

impl Service for Process {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        self.spawn().map_err(Failure::from)
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        let child = self.participant.child.borrow().clone();
        if let Some(child) = child {
            self.children.end(&child).await;
        }
        let reader = self.participant.reader.take();
        reader.end(&self.context, &self.children).await;
        Ok(())
    }
}

/// The service that runs once a server is ready.
pub struct Ready {
    context: Rc<TrialContext>,
    participant: Rc<Participant>,
    children: Rc<Children>,
    sign: ReadySign,
    place: Place,
}

impl Ready {
    /// Waits for `sign` when it is started.
    pub fn new(
        context: Rc<TrialContext>,
        participant: Rc<Participant>,
        children: Rc<Children>,
        sign: ReadySign,
        place: Place,
    ) -> Ready {
        Ready {
            context,
            participant,
            children,
            sign,
            place,
        }
    }

    async fn wait(&self) -> Result<(), Halt> {
        let timeout = Nanos(self.sign.timeout_ns);
        let deadline = clock::monotonic() + timeout;
        let mut pause = PAUSE_MIN;
        while !self.given()? {
            if clock::monotonic() > deadline {
                let missed = sign_in_words(&self.sign);
                let who = match self.participant.role {
                    Role::Backing | Role::Front => format!("the {} was ", self.participant.title),
                    _ => String::new(),
                };
                let reason = format!("{who}not ready after {timeout}: waited for {missed}");
                return Err(Halt::Failed(self.participant.with_last_line(reason)));
            }
            let pausing = self.context.handle.sleep(pause);
            self.participant
                .while_alive("it was ready", pausing)
                .await?;
            pause = (pause * 2).min(POLL_MAX);
        }
        // Another process may have answered on the same port.
        self.children.collect();
        self.participant.lives("it was ready")
    }

    fn given(&self) -> Result<bool, Halt> {
        let log = self.participant.log.borrow();
        match &*log {
            Some(log) => is_ready(&self.sign, &self.place, log).map_err(Halt::Failed),
            None => Ok(false),
        }
    }
}

impl Service for Ready {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        let waited = self.context.unless_stopping(self.wait()).await;
        waited.map_err(Failure::from)
    }
}

/// Probes once for the ready sign. Errors: the sign is unknown.
fn is_ready(sign: &ReadySign, place: &Place, log: &Log) -> Result<bool, String> {
    match sign.sign.as_str() {
        "port" => Ok(TcpStream::connect_timeout(&place.address, ATTEMPT_TIMEOUT).is_ok()),
        "line" => Ok(log.has_line(&sign.text)),
        "http" => Ok(verify::answers_ok(
            place.address,
            &place.authority,
            &sign.text,
            ATTEMPT_TIMEOUT,
        )),
        other => Err(format!("`{other}` is no sign of readiness")),
    }
}

/// The ready sign as a noun for a message: `a port that accepts connections`.
fn sign_in_words(sign: &ReadySign) -> String {
    match sign.sign.as_str() {
        "line" => format!("a line with `{}` in its output", sign.text),
        "http" => format!("status 200 for `GET {}`", sign.text),
        _ => "a port that accepts connections".to_owned(),
    }
}

/// The reader of a server's standard output.
#[derive(Default)]
pub enum Reader {
    /// None: the output goes to a file or to `/dev/null`.
    #[default]
    Nobody,
    /// A process at the other end of a pipe or a terminal.
    Process(Rc<Child>),
}

impl Reader {
    /// Starts the reader that the participant needs, and returns the standard output for its process.
    pub fn start(
        participant: &Participant,
        log: &Log,
        children: &Rc<Children>,
    ) -> io::Result<(Stdio, Reader)> {
        match participant.output {
            Output::File => Ok((log.writer()?, Reader::Nobody)),
            Output::Null => Ok((Stdio::null(), Reader::Nobody)),
            Output::Pipe => {
                let (from, to) = io::pipe()?;
                let reader = Reader::read(from.into(), log.writer()?, participant, log, children)?;
                Ok((to.into(), reader))
            }
            Output::Terminal => {
                let (from, to) = terminal()?;
                // The end of a terminal is an I/O error, which the reader would print.
                let reader = Reader::read(from.into(), Stdio::null(), participant, log, children)?;
                Ok((to.into(), reader))
            }
        }
    }

    /// Starts the process that reads `from`.
    fn read(
        from: Stdio,
        errors: Stdio,
        participant: &Participant,
        log: &Log,
        children: &Rc<Children>,
    ) -> io::Result<Reader> {
        let mut command = Command::new(READER);
        command.stdin(from).stdout(log.writer()?).stderr(errors);
        launch::without_capabilities(&mut command, CapabilitySet::empty());
        let start = || launch::start(&mut command);
        let child = launch::on_cores(&participant.cores, start)??;
        let child = children.follow(child.id(), participant.role, READER_STOP_SIGNAL);
        Ok(Reader::Process(child))
    }

    /// Its process, where it is one.
    pub fn child(&self) -> Option<Rc<Child>> {
        match self {
            Reader::Process(child) => Some(child.clone()),
            Reader::Nobody => None,
        }
    }

    /// Waits until everything printed has been read, once the writer has ended.
    pub async fn end(self, context: &TrialContext, children: &Children) {
        match self {
            Reader::Nobody => {}
            Reader::Process(child) => {
                let _ = context.handle.timeout(READER_TIMEOUT, child.ended()).await;
                children.end(&child).await;
            }
        }
    }
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
