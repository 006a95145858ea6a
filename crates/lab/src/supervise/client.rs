//! The run's side of a supervisor: starts it, receives its reports, ends it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use prony_base::{Nanos, clock};
use prony_record::{Fact, Isolation};
use thiserror::Error;

use super::order::{Envelope, INTERRUPT, LINE_BYTES_MAX, Order, Report, TURN, TurnOrder, WORD};
use crate::launch::{self, Wanted};
use crate::passed::Passed;

/// Reports that may wait to be received.
const REPORTS_MAX: usize = 64;
/// How long a supervisor whose pipe was closed may take to kill what it started.
const END_TIMEOUT: Nanos = Nanos::from_secs(6);
/// How long a probe may take.
const PROBE_TIMEOUT: Nanos = Nanos::from_secs(10);

/// What went wrong with a supervisor.
#[derive(Debug, Error)]
pub enum SupervisorError {
    /// The binary could not be executed.
    #[error("cannot start `{program} {WORD}`: {source}")]
    Start {
        /// The binary.
        program: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It ended without its last report.
    #[error("the supervisor ended without a result{0}")]
    Ended(String),
    /// It was refused its namespaces.
    #[error("the supervisor could not begin: {0}")]
    Refused(String),
    /// It printed a line that is not a report.
    #[error("the supervisor reported what is no report: {0}")]
    Garbled(String),
}

/// A running supervisor. Dropping it ends it and everything that it started.
///
/// The thread that started it must stay alive: with namespaces, the kernel kills the
/// supervisor together with that thread.
#[derive(Debug)]
pub struct Supervisor {
    child: Child,
    input: Option<ChildStdin>,
    reports: Receiver<Result<Report, String>>,
}

impl Supervisor {
    /// Starts `program __supervise` with an order.
    pub fn start(
        program: &Path,
        wanted: Wanted,
        order: Order,
    ) -> Result<Supervisor, SupervisorError> {
        let failed = |source| SupervisorError::Start {
            program: program.display().to_string(),
            source,
        };
        let envelope = Envelope {
            wanted,
            entered: None,
            order,
        };
        let mut command = Command::new(program);
        // Here, so that nothing further down has more than what is listed.
        if let Some(to) = envelope.order.environment() {
            let passed = Passed::here(to);
            command.env_clear().envs(passed.variables());
        }
        let mut line = serde_json::to_vec(&envelope).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        // A group of its own: Ctrl-C on the terminal is for Prony alone, which then
        // ends the trial in good order.
        command
            .arg(WORD)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = launch::start(&mut command).map_err(failed)?;
        let mut input = child.stdin.take();
        if let Some(pipe) = &mut input {
            // One that has exited is noticed by the end of its reports.
            let _ = pipe.write_all(&line);
        }
        let (send, reports) = sync_channel(REPORTS_MAX);
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(output);
                while let Some(report) = next_report(&mut lines) {
                    if send.send(report).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Supervisor {
            child,
            input,
            reports,
        })
    }

    /// The next report; `Ok(None)` when there is none within `wait`.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Report>, SupervisorError> {
        match self.reports.recv_timeout(wait) {
            Ok(Ok(Report::Refused { reason })) => Err(SupervisorError::Refused(reason)),
            Ok(Ok(report)) => Ok(Some(report)),
            Ok(Err(text)) => Err(SupervisorError::Garbled(text)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(SupervisorError::Ended(self.exit_in_words()))
            }
        }
    }

    /// Ends a supervisor that closed its output without a result; its exit status in words.
    fn exit_in_words(&mut self) -> String {
        self.end();
        match self.child.try_wait() {
            Ok(Some(status)) => format!(" ({status})"),
            _ => String::new(),
        }
    }

    /// Sends the trial its turn; its result is the next report.
    pub fn turn(&mut self, turn: TurnOrder) {
        if let (Some(pipe), Ok(text)) = (&mut self.input, serde_json::to_string(&turn)) {
            // One that is gone by now is seen by the end of its reports.
            let _ = writeln!(pipe, "{TURN}{text}");
        }
    }

    /// Requests a graceful end; the last report is still to come.
    pub fn interrupt(&mut self) {
        if let Some(pipe) = &mut self.input {
            let _ = writeln!(pipe, "{INTERRUPT}");
        }
    }

    /// Kills it and all that it started, and waits until they have ended.
    pub fn end(&mut self) {
        drop(self.input.take());
        let deadline = clock::monotonic() + END_TIMEOUT;
        while let Ok(None) = self.child.try_wait() {
            if clock::monotonic() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads one line; `None` at the end.
fn next_report(lines: &mut impl BufRead) -> Option<Result<Report, String>> {
    let mut line = Vec::new();
    let count = lines
        .by_ref()
        .take(LINE_BYTES_MAX as u64)
        .read_until(b'\n', &mut line)
        .ok()?;
    if count == 0 {
        return None;
    }
    let parsed = serde_json::from_slice(&line);
    Some(parsed.map_err(|error| error.to_string()))
}

/// The isolation between trials that this machine offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// The namespaces to request.
    pub wanted: Wanted,
    /// The isolation with them (`pinned` is known only in a trial).
    pub isolation: Isolation,
    /// Settings of the network that trials run in.
    pub facts: Vec<Fact>,
    /// What was refused, with the system's reason.
    pub refused: Vec<String>,
}

/// Finds the strongest isolation that the machine offers. `program` is the prony binary.
/// Errors: the binary cannot be executed, or nothing works, not even the least.
pub fn offer(program: &Path) -> Result<Offer, SupervisorError> {
    let mut refused = Vec::new();
    for wanted in Wanted::BY_STRENGTH {
        match probe(program, wanted) {
            Ok((isolation, facts)) => {
                return Ok(Offer {
                    wanted,
                    isolation,
                    facts,
                    refused,
                });
            }
            Err(SupervisorError::Refused(reason)) => refused.push(reason),
            Err(error @ SupervisorError::Start { .. }) => return Err(error),
            Err(error) => refused.push(error.to_string()),
        }
    }
    Err(SupervisorError::Refused(refused.join("; ")))
}

fn probe(program: &Path, wanted: Wanted) -> Result<(Isolation, Vec<Fact>), SupervisorError> {
    let mut supervisor = Supervisor::start(program, wanted, Order::Probe)?;
    match supervisor.next(PROBE_TIMEOUT.into())? {
        Some(Report::Probed { isolation, facts }) => Ok((isolation, facts)),
        Some(_) => Err(SupervisorError::Garbled(
            "not an answer to a probe".to_owned(),
        )),
        None => Err(SupervisorError::Ended(" in time".to_owned())),
    }
}
