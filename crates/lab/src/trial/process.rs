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

/// What a server is told that its terminal is.
const TERMINAL_KIND: &str = "xterm-256color";
/// The first pause between two looks for the sign; each one is twice the last.
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
/// What reads a pipe or a terminal: it copies its input to its output.
const READER: &str = "cat";
/// How long a reader has to come to the end after the last writer has gone.
const READER_TIMEOUT: Nanos = Nanos::from_secs(1);
/// How a reader that does not is asked to end.
const READER_STOP_SIGNAL: StopSignal = StopSignal {
    signal: Signal::TERM,
    timeout: Nanos::from_secs(1),
};
/// The size of the terminal that programs are told.
const TERMINAL: Winsize = Winsize {
    ws_row: 24,
    ws_col: 80,
    ws_xpixel: 0,
    ws_ypixel: 0,
};
/// How long one attempt to connect, or one request, may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// A server of a trial, and what is known of it: kept when its services have stopped.
pub struct Participant {
    /// What it is in the trial.
    pub role: Role,
    /// What sentences call it, after `the`: `subject`, `backing backing/redis`.
    pub title: String,
    /// How it is started.
    pub resolved: Resolved,
    /// Its cores.
    pub cores: Vec<u32>,
    /// How it is asked to end.
    pub stop_signal: StopSignal,
    /// What follows the stem of the trial's files in the name of its log.
    pub log_name: String,
    /// Where its standard output goes.
    pub output: Output,
    /// What reads it there.
    pub reader: RefCell<Reader>,
    /// The network on whose far side it is started.
    pub network: Rc<Network>,
    /// What it prints.
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

    /// The failure that it, or what reads what it prints, ended too early, if it did.
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

    /// Does `work` while the process lives; the failure that it ended before that otherwise.
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

    /// Its process and that of its reader, as far as they were started.
    pub fn children(&self) -> Vec<Rc<Child>> {
        let own = self.child.borrow().clone();
        own.into_iter()
            .chain(self.reader.borrow().child())
            .collect()
    }

    /// The number of its process, if it was started.
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
        if !self.resolved.dir.is_empty() {
            command.current_dir(&self.resolved.dir);
        }
        let errors = log.writer().map_err(Halt::io("a log cannot be shared"))?;
        command.stdout(output).stderr(errors);
        if self.output == Output::Terminal && !self.resolved.env.contains_key("TERM") {
            // The kind of this terminal, not of the one that the user sits at.
            command.env("TERM", TERMINAL_KIND);
        }
        let kept = launch::capabilities_named(&self.resolved.capabilities);
        launch::without_capabilities(&mut command, kept);
        Ok((program.clone(), command))
    }
}

/// Waits until one of `children` has ended; for ever where there are none.
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

/// One of the services that follow each other in a trial: what the next one requires.
pub trait Step {}

impl Step for Process {}

impl Step for Ready {}

/// A server's process.
pub struct Process {
    context: Rc<TrialContext>,
    participant: Rc<Participant>,
    children: Rc<Children>,
}

impl Process {
    /// One that is to be started.
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

/// That a server has given its sign: where it can be asked.
pub struct Ready {
    context: Rc<TrialContext>,
    participant: Rc<Participant>,
    children: Rc<Children>,
    sign: ReadySign,
    place: Place,
}

impl Ready {
    /// One that waits for `sign`.
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
        // The sign may have come from another process on the same port.
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

/// Looks for the sign once. An unknown sign is an error, in words.
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

/// The sign in words, as it is missed: `its port accepts connections`.
fn sign_in_words(sign: &ReadySign) -> String {
    match sign.sign.as_str() {
        "line" => format!("a line with `{}` in its output", sign.text),
        "http" => format!("status 200 for `GET {}`", sign.text),
        _ => "a port that accepts connections".to_owned(),
    }
}

/// What reads what a server prints.
#[derive(Default)]
pub enum Reader {
    /// Nobody: it goes to a file or nowhere.
    #[default]
    Nobody,
    /// A process at the other end of a pipe or a terminal.
    Process(Rc<Child>),
}

impl Reader {
    /// Starts what `part` needs, and gives what its process is to print to.
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
                // That a terminal has come to its end the kernel says by an error, of which the reader would tell.
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

    /// Waits until all that was printed has been read, once its writer has ended.
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

/// A new terminal: its reading end, and the one that programs print to.
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
