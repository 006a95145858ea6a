//! The service that runs a program or a client: it runs once that has been started, and stopping it ends it.
//!
//! It is started by a fresh parent process that only waits ([`crate::supervise`] explains why).
//!
//! The command that translates the output of a tool into a line of JSON runs after the client has ended, unmeasured.
//!
//! Not for: what it prints ([`super::program`]), or a client's peer ([`super::peer`]).

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use prony_base::{Nanos, clock};
use prony_record::{Exit, MemoryMarks, ProcessRecord, ProgramReport, Role, Trial};
use prony_runtime::services::{Context, Failure, Service};
use rustix::process::Signal;

use super::context::{Halt, POLL_MAX, TrialContext, in_words};
use super::lifecycle;
use super::log::{self, Log, with_last_line};
use super::process::{Children, StopSignal};
use crate::launch::{self, Resolved, Wanted};
use crate::supervise::{Order, ProgramOrder, Ran, Report, Supervisor};

/// Bytes that a program may print on its standard output.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;
/// How long the parent may take to start it and report it.
const START_TIMEOUT: Nanos = Nanos::from_secs(20);
/// First interval at which that is polled; it doubles each time.
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
/// Its end is looked for at this part of the time that it has taken, and the longest interval of that.
const POLLS: u64 = 50;
const LOOK: Nanos = Nanos::from_millis(100);
/// How long one that was killed may take to end.
const KILL_TIMEOUT: Nanos = Nanos::from_secs(5);
/// How long the translation of its output may take.
const TRANSLATE_TIMEOUT: Nanos = Nanos::from_secs(30);
/// How a translation that takes longer is stopped.
const TRANSLATE_STOP_SIGNAL: StopSignal = StopSignal {
    signal: Signal::TERM,
    timeout: Nanos::from_secs(1),
};

/// The files of a run: standard output, standard error, and the log that the latter is.
type RunnerFiles = (PathBuf, PathBuf, Rc<RefCell<Option<Log>>>);

/// Runs a program or a client.
pub struct Runner {
    context: Rc<TrialContext>,
    /// What it is, in messages.
    title: &'static str,
    resolved: Resolved,
    files: RunnerFiles,
    parent: RefCell<Option<Supervisor>>,
    pid: Cell<Option<u32>>,
    /// It was asked to end.
    stopped: Cell<bool>,
    ran: RefCell<Option<Ran>>,
}

impl Runner {
    /// One that has not been started. The file of its standard output is empty.
    pub fn new(
        context: Rc<TrialContext>,
        title: &'static str,
        resolved: Resolved,
        files: RunnerFiles,
    ) -> Rc<Runner> {
        Rc::new(Runner {
            context,
            title,
            resolved,
            files,
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
        &self.files.0
    }

    /// The last lines of its standard error.
    pub fn errors(&self) -> Vec<String> {
        let log = self.files.2.borrow();
        log.as_ref().map(Log::tail).unwrap_or_default()
    }

    /// The last lines of standard error; of standard output where there are none.
    pub fn tail(&self) -> Vec<String> {
        let errors = self.errors();
        if !errors.is_empty() {
            return errors;
        }
        log::tail_of(self.output())
    }

    /// `reason` with the last line that it printed.
    pub fn with_last_line(&self, reason: String) -> String {
        with_last_line(&self.tail(), reason)
    }

    /// How it ended; `None`: it has not.
    pub fn exit(&self) -> Option<Exit> {
        let ran = self.ran.borrow();
        ran.as_ref().map(|ran| ran.ended.exit.clone())
    }

    /// What the kernel says of it, without lines; `None`: it has not ended.
    pub fn usage(&self) -> Option<ProgramReport> {
        self.ran.borrow().as_ref().map(|ran| ProgramReport {
            wall_ns: ran.wall_ns,
            user_ns: ran.ended.user.0,
            system_ns: ran.ended.system.0,
            peak_bytes: ran.ended.peak_bytes,
            lines: Vec::new(),
        })
    }

    /// Its record as a process of the trial; `None`: it has not been reaped.
    pub fn record(&self) -> Option<ProcessRecord> {
        let ended = self.ran.borrow().as_ref()?.ended.clone();
        let command = self.resolved.command.clone();
        let program = command.first().map_or("", String::as_str);
        let exit = match ended.exit {
            Exit::Signal { signal, .. } => Exit::Signal {
                signal,
                asked: self.stopped.get(),
            },
            Exit::Code { code } => Exit::Code { code },
        };
        Some(ProcessRecord {
            role: Role::Subject,
            name: program.rsplit('/').next().unwrap_or_default().to_owned(),
            pid: self.pid.get().unwrap_or(0),
            parent_pid: std::process::id(),
            cpu_ns: ended.cpu().0,
            memory: MemoryMarks {
                peak_bytes: Some(ended.peak_bytes),
                ..MemoryMarks::default()
            },
            threads: Vec::new(),
            switches_voluntary: ended.switches_voluntary,
            switches_involuntary: ended.switches_involuntary,
            exit: Some(exit),
            command,
        })
    }

    /// Closes its log, and removes an output that is empty.
    pub fn close(&self, trial: &mut Trial) {
        if let Some(log) = self.files.2.take() {
            lifecycle::close(log, self.title, trial);
        }
        if std::fs::metadata(self.output()).is_ok_and(|metadata| metadata.len() == 0) {
            // An empty file says nothing; one that stays does no harm.
            let _ = std::fs::remove_file(self.output());
        }
    }

    fn spawn(&self) -> Result<(), Halt> {
        let order = &self.context.order;
        let program = ProgramOrder {
            resolved: self.resolved.clone(),
            output: self.files.0.clone(),
            log: self.files.1.clone(),
        };
        let started = launch::on_cores(&order.cores.subject, || {
            Supervisor::start(&order.prony, Wanted::default(), Order::Program(program))
        });
        let parent = started.map_err(|error| {
            Halt::Failed(format!("the {}'s cores cannot be had: {error}", self.title))
        })?;
        let parent = parent.map_err(|error| Halt::Failed(error.to_string()))?;
        *self.parent.borrow_mut() = Some(parent);
        Ok(())
    }

    /// The next report of the parent; `None`: none yet.
    fn next(&self) -> Result<Option<Report>, Halt> {
        let title = self.title;
        let lost = |error| Halt::Failed(format!("the parent of the {title} was lost: {error}"));
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
                Some(_) => return Err(parent_lost()),
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
    pub async fn await_end(&self) -> Result<(), Halt> {
        let began = clock::monotonic();
        loop {
            if self.poll_parent()? {
                return Ok(());
            }
            let printed = std::fs::metadata(self.output()).map_or(0, |metadata| metadata.len());
            if printed > OUTPUT_BYTES_MAX {
                let limit = OUTPUT_BYTES_MAX >> 20;
                return Err(Halt::Failed(format!("it printed more than {limit} MiB")));
            }
            // It may have no other cores than those of this thread.
            let lasted = clock::monotonic().since(began);
            let pause = Nanos(lasted.0 / POLLS).clamp(PAUSE_MIN, LOOK);
            self.context.handle.sleep(pause).await;
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
        let Report::Ran(ran) = report else {
            return Err(parent_lost());
        };
        *self.ran.borrow_mut() = Some(ran);
        Ok(true)
    }

    /// Sends it its stop signal, and kills it after the time-out.
    async fn end(&self) {
        let StopSignal { signal, timeout } =
            StopSignal::from_rule(&self.context.order.subject.stop);
        for (signal, timeout) in [(signal, timeout), (Signal::KILL, KILL_TIMEOUT)] {
            // One whose parent is lost is killed with the rest.
            let Ok(false) = self.poll_parent() else {
                return;
            };
            let Some(pid) = self.pid.get() else { return };
            self.stopped.set(true);
            launch::signal(pid, signal);
            let _ = self
                .context
                .handle
                .timeout(timeout, self.await_end_or_loss())
                .await;
        }
    }

    /// Waits until it has ended or is lost.
    async fn await_end_or_loss(&self) {
        while let Ok(false) = self.poll_parent() {
            self.context.handle.sleep(POLL_MAX).await;
        }
    }
}

fn parent_lost() -> Halt {
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
    (input, output): (&Path, &Path),
) -> Result<(), Halt> {
    let log = context.log(".translate")?;
    let io = Halt::io("the client's output cannot be translated");
    let open = || -> io::Result<Command> {
        let mut command = resolved.command(File::create(output)?, log.writer()?)?;
        command.stdin(File::open(input)?);
        Ok(command)
    };
    let mut command = open().map_err(io)?;
    let started = launch::start(&mut command);
    let process = started.map_err(|error| {
        let program = &resolved.command[0];
        Halt::Failed(format!("`{program}` cannot be started: {error}"))
    })?;
    let child = children.follow(process.id(), Role::Generator, TRANSLATE_STOP_SIGNAL);
    let ended = async {
        child.await_end().await;
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
            Err(Halt::Failed(with_last_line(&log.tail(), reason)))
        }
    };
    log.close();
    result
}

/// The whole of what was printed, as text.
pub fn read_output(path: &Path) -> Result<String, Halt> {
    let mut bytes = Vec::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(Halt::io("its output cannot be read"))?;
    if bytes.len() as u64 > OUTPUT_BYTES_MAX {
        let limit = OUTPUT_BYTES_MAX >> 20;
        let reason = format!("its output cannot be read: it is more than {limit} MiB");
        return Err(Halt::Failed(reason));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
