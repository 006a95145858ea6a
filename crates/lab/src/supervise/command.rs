//! Commands under a supervisor, both sides: builds, and the tools that print their version, each run to its end with
//! everything that it starts.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prony_base::{Nanos, clock};
use prony_record::Exit;

use super::client::{Supervisor, SupervisorError};
use super::order::{Order, Report};
use super::turns::Interrupt;
use crate::build::{CommandSpec, Finished, LaunchError, Launcher};
use crate::launch::{self, Ended, Wanted};
use crate::root;

/// Interval at which a cancellation is polled.
const POLL: Duration = Duration::from_millis(50);
/// Interval at which the end of the command is polled.
const LOOK: Duration = Duration::from_millis(5);

/// Runs commands in a process namespace of their own where that is allowed, with the
/// host's network (a build downloads).
#[derive(Clone, Debug)]
pub struct SupervisedLauncher {
    prony: PathBuf,
    wanted: Wanted,
}

impl SupervisedLauncher {
    /// `prony`: its binary. `offered`: what the machine offers ([`super::offer`]).
    pub fn new(prony: PathBuf, offered: Wanted) -> SupervisedLauncher {
        SupervisedLauncher {
            prony,
            wanted: Wanted {
                network: false,
                ..offered
            },
        }
    }
}

impl Launcher for SupervisedLauncher {
    fn run(&self, command: &CommandSpec, cancel: &AtomicBool) -> Result<Finished, LaunchError> {
        let failed = |error: SupervisorError| LaunchError(error.to_string());
        let order = Order::Command(command.clone());
        let mut supervisor = Supervisor::start(&self.prony, self.wanted, order).map_err(failed)?;
        let mut cancelled = false;
        loop {
            if cancel.load(Ordering::Relaxed) && !cancelled {
                cancelled = true;
                supervisor.interrupt();
            }
            match supervisor.next(POLL).map_err(failed)? {
                Some(Report::Exited { exit, error }) => return finished(exit, error, cancelled),
                Some(_) => {
                    return Err(LaunchError(
                        "the supervisor did not report an end".to_owned(),
                    ));
                }
                None => {}
            }
        }
    }
}

fn finished(
    exit: Option<Exit>,
    error: Option<String>,
    cancelled: bool,
) -> Result<Finished, LaunchError> {
    match (exit, error) {
        (_, Some(error)) => Err(LaunchError(error)),
        (Some(Exit::Code { code }), None) => Ok(Finished::Code(code)),
        (Some(Exit::Signal { signal, .. }), None) => Ok(Finished::Signal(signal)),
        (None, None) if cancelled => Ok(Finished::Interrupted),
        (None, None) => Ok(Finished::TimedOut),
    }
}

/// Runs the command. The caller kills processes that it leaves.
pub fn run(order: &CommandSpec, alone: bool, interrupt: &Interrupt) -> Report {
    let pid = match start(order, alone) {
        Ok(pid) => pid,
        Err(error) => {
            return Report::Exited {
                exit: None,
                error: Some(error.to_string()),
            };
        }
    };
    let deadline = clock::monotonic() + Nanos(order.timeout_ns);
    while clock::monotonic() < deadline && !interrupt.is_raised() {
        match launch::reap() {
            Some(Ended { pid: of, exit, .. }) if of == pid => {
                return Report::Exited {
                    exit: Some(exit),
                    error: None,
                };
            }
            Some(_) => {}
            None => std::thread::sleep(LOOK),
        }
    }
    Report::Exited {
        exit: None,
        error: None,
    }
}

fn start(order: &CommandSpec, alone: bool) -> io::Result<u32> {
    let log = File::create(&order.log)?;
    if let Some(rooted) = &order.rooted {
        root::furnish(rooted, alone)?;
    }
    let mut command = order.resolved.command(log.try_clone()?, log)?;
    Ok(launch::start(&mut command)?.id())
}
