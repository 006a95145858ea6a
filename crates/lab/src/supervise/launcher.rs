//! Commands under a supervisor: builds, and the tools that say their version.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prony_record::Exit;

use super::client::{Supervisor, SupervisorError};
use super::order::{CommandOrder, Order, Report};
use crate::build::{CommandSpec, Finished, LaunchError, Launcher};
use crate::launch::Wanted;

/// How often a cancellation is looked for.
const POLL: Duration = Duration::from_millis(50);

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
        let order = Order::Command(CommandOrder {
            command: command.argv.clone(),
            env: command.env.iter().cloned().collect(),
            dir: command.cwd.clone(),
            capabilities: command.capabilities.clone(),
            log: command.log.clone(),
            timeout_ns: command.timeout.0,
        });
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
