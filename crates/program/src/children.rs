//! What a process is to its children: who ends with whom, and how many files all may open.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit,
};

/// Lets `command` be started by `fork`, not by `vfork` as is usual, and be killed when the
/// thread that starts it ends.
///
/// A child that borrows its parent's memory until it executes its program takes the
/// parent's peak resident set for its own, and the kernel keeps the larger of both as its
/// peak. A forked child has only what the parent wrote to, which is little in a process
/// that has just begun.
pub fn by_fork(command: &mut Command) {
    // SAFETY: the closure makes one system call, which is sound between fork and exec; that
    // there is a closure is what makes the standard library fork.
    unsafe { command.pre_exec(die_with_parent) };
}

/// Ends the calling process with SIGKILL as soon as the thread that started it ends.
/// A starter that was gone before is not noticed: watch a pipe from it as well.
pub fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Raises the soft limit on open files to the hard one, for the caller and what
/// it starts. Returns the limit.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Refused only by a kernel under which the limit then stays as it was.
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
