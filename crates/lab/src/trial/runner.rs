//! The service that runs a client: it runs once the client has been started, and stopping
//! it ends the client.
//!
//! The client is started by a fresh parent process that only waits ([`crate::supervise`] explains why).
//!
//! The command that translates the output of a tool into a line of JSON runs after the client has ended, unmeasured.
//!
//! Not for: its peer, or what it prints ([`super::client`]).

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use prony_base::{Nanos, clock};
use prony_record::{Exit, ProcessRecord, ProgramReport, Role, Trial};
use prony_runtime::services::{Context, Failure, Service};
use rustix::process::Signal;

use super::context::{Halt, POLL_MAX, TrialContext, in_words};
use super::lifecycle;
use super::log::{self, Log};
use super::process::{Children, StopSignal};
use super::program::{OUTPUT_BYTES_MAX, Ran};
use super::start::Resolved;
use crate::launch::{self, Wanted};
use crate::supervise::{Order, ProgramOrder, Report, Supervisor};

/// How long the parent may take to start the client and report it.
const START_TIMEOUT: Nanos = Nanos::from_secs(20);
/// First interval at which that is polled; it doubles each time.
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
/// How long a killed client may take to end.
const KILL_TIMEOUT: Nanos = Nanos::from_secs(5);
/// How long the translation of its output may take.
const TRANSLATE_TIMEOUT: Nanos = Nanos::from_secs(30);
/// How a translation that takes longer is stopped.
const TRANSLATE_STOP_SIGNAL: StopSignal = StopSignal {
    signal: Signal::TERM,
    timeout: Nanos::from_secs(1),
};

/// Runs a client.
pub struct Runner {
    context: Rc<TrialContext>,
    resolved: Resolved,
    /// Where its standard output goes.
    output: PathBuf,
    /// Where its standard error goes.
    errors: PathBuf,
    log: Rc<RefCell<Option<Log>>>,
    parent: RefCell<Option<Supervisor>>,
    pid: Cell<Option<u32>>,
    /// It was asked to end.
    stopped: Cell<bool>,
    ran: RefCell<Option<Ran>>,
}

impl Runner {
    /// A client that has not been started. `output` is an empty file, `errors` that of `log`.
    pub fn new(
        context: Rc<TrialContext>,
        resolved: Resolved,
        output: PathBuf,
        errors: PathBuf,
        log: Rc<RefCell<Option<Log>>>,
    ) -> Rc<Runner> {
        Rc::new(Runner {
            context,
            resolved,
            output,
            errors,
            log,
            parent: RefCell::default(),
            pid: Cell::new(None),
            stopped: Cell::new(false),
            ran: RefCell::default(),
        })
    }

    /// Its process; `None`: it was not started.
    pub fn pid(&self) -> Option<u32> {
        self.pid.get()
    }

    /// The file with what it printed.
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// The last lines of its standard error.
    pub fn errors(&self) -> Vec<String> {
        let log = self.log.borrow();
        log.as_ref().map(Log::tail).unwrap_or_default()
    }

    /// The last lines of standard error; of standard output where there are none.
    pub fn tail(&self) -> Vec<String> {
        let errors = self.errors();
        if !errors.is_empty() {
            return errors;
        }
        log::tail_of(&self.output)
    }

    /// `reason` with the last line that it printed.
    pub fn with_last_line(&self, reason: String) -> String {
        match self.tail().iter().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{reason}; its last line: {}", line.trim()),
            None => format!("{reason}; it printed nothing"),
        }
    }

    /// How it ended; `None`: it has not.
    pub fn exit(&self) -> Option<Exit> {
        self.ran.borrow().as_ref().map(|ran| ran.exit.clone())
    }

    /// What the kernel says of it; `None`: it has not ended.
    pub fn usage(&self) -> Option<ProgramReport> {
        self.ran.borrow().as_ref().map(|ran| ran.usage.clone())
    }

    /// Its record as a process of the trial; `None`: it has not been reaped.
    pub fn record(&self) -> Option<ProcessRecord> {
        let command = self.resolved.command.clone();
        let ran = self.ran.borrow();
        let ran = ran.as_ref()?;
        Some(ran.record(command, self.pid.get(), self.stopped.get()))
    }

    /// Closes its log, and removes an output that is empty.
    pub fn close(&self, trial: &mut Trial) {
        if let Some(log) = self.log.take() {
            lifecycle::close(log, "client", trial);
        }
        if std::fs::metadata(&self.output).is_ok_and(|metadata| metadata.len() == 0) {
            // An empty file says nothing; one that stays does no harm.
            let _ = std::fs::remove_file(&self.output);
        }
    }

    fn spawn(&self) -> Result<(), Halt> {
        let order = &self.context.order;
        let program = ProgramOrder {
            command: self.resolved.command.clone(),
            env: self.resolved.env.clone(),
            dir: self.resolved.dir.clone().into(),
            root: self.resolved.root.clone().into(),
            capabilities: self.resolved.capabilities.clone(),
            output: self.output.clone(),
            log: self.errors.clone(),
        };
        let started = launch::on_cores(&order.cores.subject, || {
            Supervisor::start(&order.prony, Wanted::default(), Order::Program(program))
        });
        let started = started.map_err(Halt::io("the client's cores cannot be had"))?;
        let parent = started.map_err(|error| Halt::Failed(error.to_string()))?;
        *self.parent.borrow_mut() = Some(parent);
        Ok(())
    }

    /// The next report of the parent; `None`: none yet.
    fn next(&self) -> Result<Option<Report>, Halt> {
        let lost = |error| Halt::Failed(format!("the parent of the client was lost: {error}"));
        match &mut *self.parent.borrow_mut() {
            Some(parent) => parent.next(Duration::ZERO).map_err(lost),
            None => Ok(None),
        }
    }

    async fn begin(&self) -> Result<(), Halt> {
        self.spawn()?;
        let deadline = clock::monotonic() + START_TIMEOUT;
        let mut pause = PAUSE_MIN;
        loop {
            match self.next()? {
                Some(Report::Began { pid }) => {
                    self.pid.set(Some(pid));
                    return Ok(());
                }
                Some(Report::Exited { error, .. }) => {
                    let program = &self.resolved.command[0];
                    let why = error.unwrap_or_default();
                    let reason = format!("`{program}` cannot be started: {why}");
                    return Err(Halt::Failed(reason));
                }
                Some(_) => return Err(lost_its_way()),
                None if clock::monotonic() > deadline => {
                    let reason = format!("it was not started within {START_TIMEOUT}");
                    return Err(Halt::Failed(reason));
                }
                None => self.context.handle.sleep(pause).await,
            }
            pause = (pause * 2).min(POLL_MAX);
        }
    }

    /// Waits until it has ended. Errors: it printed too much, or its parent was lost.
    pub async fn ended(&self) -> Result<(), Halt> {
        loop {
            if self.poll_parent()? {
                return Ok(());
            }
            let printed = std::fs::metadata(&self.output).map_or(0, |metadata| metadata.len());
            if printed > OUTPUT_BYTES_MAX {
                let limit = OUTPUT_BYTES_MAX >> 20;
                return Err(Halt::Failed(format!("it printed more than {limit} MiB")));
            }
            self.context.handle.sleep(POLL_MAX).await;
        }
    }

    /// Polls the parent once; true when the client has ended.
    fn poll_parent(&self) -> Result<bool, Halt> {
        if self.ran.borrow().is_some() {
            return Ok(true);
        }
        let Some(report) = self.next()? else {
            return Ok(false);
        };
        *self.ran.borrow_mut() = Some(Ran::of(report).ok_or_else(lost_its_way)?);
        Ok(true)
    }

    /// Sends it its stop signal, and kills it after the time-out.
    async fn end(&self) {
        let rule = &self.context.order.subject.stop;
        let signal = launch::signal_named(&rule.signal).unwrap_or(Signal::TERM);
        let steps = [
            (signal, Nanos(rule.timeout_ns)),
            (Signal::KILL, KILL_TIMEOUT),
        ];
        for (signal, timeout) in steps {
            // One whose parent is lost is killed with the rest.
            let Ok(false) = self.poll_parent() else {
                return;
            };
            let Some(pid) = self.pid.get() else { return };
            self.stopped.set(true);
            launch::signal(pid, signal);
            let _ = self.context.handle.timeout(timeout, self.over()).await;
        }
    }

    /// Waits until it has ended or is lost.
    async fn over(&self) {
        while let Ok(false) = self.poll_parent() {
            self.context.handle.sleep(POLL_MAX).await;
        }
    }
}

fn lost_its_way() -> Halt {
    Halt::Failed("its parent lost its way".to_owned())
}

impl Service for Runner {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        let begun = self.context.unless_stopping(self.begin()).await;
        if begun.is_err() {
            // A start that failed is not followed by a stop.
            drop(self.parent.take());
        }
        begun.map_err(Failure::from)
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        self.end().await;
        drop(self.parent.take());
        Ok(())
    }
}

/// Runs `resolved` with the file `input` on its standard input; what it prints goes to the
/// file `output`. Errors: it cannot be started, takes too long, or does not end with 0.
pub async fn translate(
    context: &Rc<TrialContext>,
    children: &Rc<Children>,
    resolved: &Resolved,
    input: &Path,
    output: &Path,
) -> Result<(), Halt> {
    let Some((program, arguments)) = resolved.command.split_first() else {
        return Ok(());
    };
    let log = context.log(".translate")?;
    let io = Halt::io("the client's output cannot be translated");
    let open = || Ok((File::open(input)?, File::create(output)?, log.writer()?));
    let (input, output, errors) = open().map_err(io)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(&resolved.env)
        .stdin(input)
        .stdout(output)
        .stderr(errors);
    let (root, dir) = (Path::new(&resolved.root), Path::new(&resolved.dir));
    let root = launch::root_of(root);
    let placed = launch::place(&mut command, root, dir);
    placed.map_err(Halt::io("its folder cannot be entered"))?;
    let kept = launch::capabilities_named(&resolved.capabilities);
    launch::without_capabilities(&mut command, kept, root.is_some());
    let started = launch::start(&mut command);
    let process =
        started.map_err(|error| Halt::Failed(format!("`{program}` cannot be started: {error}")))?;
    let child = children.follow(process.id(), Role::Generator, TRANSLATE_STOP_SIGNAL);
    let ended = async {
        child.ended().await;
        Ok(())
    };
    let late = || format!("the translation of its output had not ended after {TRANSLATE_TIMEOUT}");
    let waited = context.unless_interrupted(context.within(TRANSLATE_TIMEOUT, ended, late));
    waited.await??;
    let result = match child.exit() {
        Some(Exit::Code { code: 0 }) | None => Ok(()),
        Some(exit) => {
            let how = in_words(&exit);
            let reason = format!("the translation of its output {how}");
            Err(Halt::Failed(with_last_line(&log, reason)))
        }
    };
    log.close();
    result
}

fn with_last_line(log: &Log, reason: String) -> String {
    match log.tail().iter().rfind(|line| !line.trim().is_empty()) {
        Some(line) => format!("{reason}; its last line: {}", line.trim()),
        None => format!("{reason}; it printed nothing"),
    }
}
