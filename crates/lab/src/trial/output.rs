//! Where a server's standard output goes, and what stands at the other end of it.
//!
//! What logging costs is measured with what it takes: a pipe and a terminal have a real
//! reader, the same for both, a process on the subject's cores whose time is part of the
//! subject's. On the generator's cores it would be free, and a terminal, which is read in
//! far smaller pieces than a pipe, would look the cheaper of the two. What it reads ends in
//! the log of the trial, as what is printed to a file does.
//!
//! Not for: standard error, which is always in the log ([`super::process`]).

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::rc::Rc;

use prony_base::Nanos;
use prony_record::Output;
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use rustix::thread::CapabilitySet;

use super::children::{Child, Children, Farewell};
use super::log::Log;
use super::process::Part;
use super::stage::Stage;
use crate::launch;

/// What reads a pipe or a terminal: it copies its input to its output.
const READER: &str = "cat";
/// How long a reader has to come to the end after the last writer has gone.
const READER_TIMEOUT: Nanos = Nanos::from_secs(1);
/// How a reader that does not is asked to end.
const FAREWELL: Farewell = Farewell {
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
    pub fn start(part: &Part, log: &Log, children: &Rc<Children>) -> io::Result<(Stdio, Reader)> {
        match part.output {
            Output::File => Ok((log.writer()?, Reader::Nobody)),
            Output::Null => Ok((Stdio::null(), Reader::Nobody)),
            Output::Pipe => {
                let (from, to) = io::pipe()?;
                let reader = Reader::read(from.into(), log.writer()?, part, log, children)?;
                Ok((to.into(), reader))
            }
            Output::Terminal => {
                let (from, to) = terminal()?;
                // That a terminal has come to its end the kernel says by an error, of which the reader would tell.
                let reader = Reader::read(from.into(), Stdio::null(), part, log, children)?;
                Ok((to.into(), reader))
            }
        }
    }

    /// Starts the process that reads `from`.
    fn read(
        from: Stdio,
        errors: Stdio,
        part: &Part,
        log: &Log,
        children: &Rc<Children>,
    ) -> io::Result<Reader> {
        let mut command = Command::new(READER);
        command.stdin(from).stdout(log.writer()?).stderr(errors);
        launch::without_capabilities(&mut command, CapabilitySet::empty());
        let start = || launch::start(&mut command);
        let child = launch::on_cores(&part.cores, start)??;
        let child = children.follow(child.id(), part.role, FAREWELL);
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
    pub async fn end(self, stage: &Stage, children: &Children) {
        match self {
            Reader::Nobody => {}
            Reader::Process(child) => {
                let _ = stage.handle.timeout(READER_TIMEOUT, child.ended()).await;
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
