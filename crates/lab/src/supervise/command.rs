//! One command, run to its end with everything that it starts.

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use prony_base::{Nanos, clock};

use super::order::{CommandOrder, Report};
use super::turns::Interrupt;
use crate::launch::{self, Ended};

/// How often the end of the command is looked for.
const LOOK: Duration = Duration::from_millis(5);

/// Runs the command. What it leaves behind is killed by the caller.
pub fn run(order: &CommandOrder, interrupt: &Interrupt) -> Report {
    let pid = match start(order) {
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

fn start(order: &CommandOrder) -> io::Result<u32> {
    let (program, arguments) = order
        .command
        .split_first()
        .ok_or_else(|| io::Error::other("the command is empty"))?;
    let log = File::create(&order.log)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(&order.env)
        .current_dir(&order.dir)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    launch::without_capabilities(
        &mut command,
        launch::capabilities_named(&order.capabilities),
    );
    Ok(launch::start(&mut command)?.id())
}
