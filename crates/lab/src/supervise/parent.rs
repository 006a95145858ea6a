//! The parent of a program that is measured: a process that has just begun, starts the
//! program, waits for it without looking, and says what it used.
//!
//! It is not the supervisor, because a child begins with the peak of its parent's memory
//! ([`launch::by_fork`]), and because nothing else is to run on the program's cores.
//!
//! Not for: time-outs and endings. The supervisor signals the program, and kills both.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use prony_base::clock;

use super::order::{ProgramOrder, Ran, Report};
use crate::launch;

/// Starts the program, waits for its end and reports both.
pub fn run(order: &ProgramOrder, output: &mut impl Write) -> io::Result<ExitCode> {
    launch::die_with_parent()?;
    let command = || {
        order
            .resolved
            .command(append(&order.output)?, append(&order.log)?)
    };
    let mut command = match command() {
        Ok(command) => command,
        Err(error) => return unstarted(error, output),
    };
    launch::by_fork(&mut command);
    let start = clock::monotonic();
    let pid = match command.spawn() {
        Ok(child) => child.id(),
        Err(error) => return unstarted(error, output),
    };
    Report::Began { pid }.print(output)?;
    let ended = launch::wait_for(pid).ok_or_else(io::Error::last_os_error)?;
    let wall_ns = clock::monotonic().since(start).0;
    Report::Ran(Ran { ended, wall_ns }).print(output)?;
    Ok(ExitCode::SUCCESS)
}

fn unstarted(error: io::Error, output: &mut impl Write) -> io::Result<ExitCode> {
    let report = Report::Exited {
        exit: None,
        error: Some(error.to_string()),
    };
    report.print(output)?;
    Ok(ExitCode::SUCCESS)
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}
