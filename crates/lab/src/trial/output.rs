//! Where a server's standard output goes, and what stands at the other end of it.
//!
//! What logging costs is measured with what it takes: a pipe has a real reader, a process
//! on the subject's cores whose time is part of the subject's; a terminal has one that
//! reads it, a thread on the generator's cores. Both end in the log of the trial, as a file
//! does.
//!
//! Not for: standard error, which is always in the log ([`super::process`]).

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::thread::JoinHandle;

use prony_base::{Nanos, clock};
use prony_record::Output;
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use super::children::{Child, Children, Farewell};
use super::log::Log;
use super::process::Part;
use super::stage::Stage;
use crate::launch;

/// What reads a pipe: it copies its input to its output.
const READER: &str = "cat";
/// How long a reader has to come to the end after the last writer has gone.
const READER_TIMEOUT: Nanos = Nanos::from_secs(1);
/// How a reader that does not is asked to end.
const FAREWELL: Farewell = Farewell {
    signal: Signal::TERM,
    timeout: Nanos::from_secs(1),
};
/// Pause between two looks whether a terminal has been read to its end.
const PAUSE: Nanos = Nanos::from_millis(2);
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
    /// A process at the other end of a pipe.
    Process(Rc<Child>),
    /// A thread at the other end of a terminal.
    Thread(JoinHandle<()>),
}

impl Reader {
    /// Starts what `part` needs, and gives what its process is to print to.
    pub fn start(part: &Part, log: &Log, children: &Rc<Children>) -> io::Result<(Stdio, Reader)> {
        match part.output {
            Output::File => Ok((log.writer()?, Reader::Nobody)),
            Output::Null => Ok((Stdio::null(), Reader::Nobody)),
            Output::Pipe => {
                let (from, to) = io::pipe()?;
                let mut command = Command::new(READER);
                command
                    .stdin(from)
                    .stdout(log.writer()?)
                    .stderr(log.writer()?);
                let start = || launch::start(&mut command);
                let child = launch::on_cores(&part.cores, start)??;
                let child = children.follow(child.id(), part.role, FAREWELL);
                Ok((to.into(), Reader::Process(child)))
            }
            Output::Terminal => {
                let (ours, theirs) = terminal()?;
                let mut log = log.file()?;
                let reading = move || copy(File::from(ours), &mut log);
                let named = std::thread::Builder::new().name("terminal".to_owned());
                Ok((theirs.into(), Reader::Thread(named.spawn(reading)?)))
            }
        }
    }

    /// Its process, where it is one.
    pub fn child(&self) -> Option<Rc<Child>> {
        match self {
            Reader::Process(child) => Some(child.clone()),
            Reader::Nobody | Reader::Thread(_) => None,
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
            Reader::Thread(thread) => {
                let deadline = clock::monotonic() + READER_TIMEOUT;
                // One that a descendant still writes to ends when that is killed.
                while !thread.is_finished() && clock::monotonic() < deadline {
                    stage.handle.sleep(PAUSE).await;
                }
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

/// Copies until nobody has the terminal open any more, which the kernel says by an error.
fn copy(mut from: File, to: &mut File) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            // A log that is full loses the rest; the program is read from all the same.
            Ok(count) => drop(to.write_all(&buffer[..count])),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_to_a_terminal_is_read_to_its_end() {
        let (ours, theirs) = terminal().expect("a terminal");
        assert!(rustix::termios::isatty(&theirs));
        let size = rustix::termios::tcgetwinsize(&theirs).expect("a size");
        assert_eq!((size.ws_row, size.ws_col), (24, 80));
        let path = std::env::temp_dir().join(format!("prony-terminal-{}", std::process::id()));
        let log = Log::create(&path).expect("a log in the temporary folder");
        let mut file = log.file().expect("a descriptor");
        let reading = std::thread::spawn(move || copy(File::from(ours), &mut file));
        let mut writing = File::from(theirs);
        writing.write_all(b"one\ntwo\n").expect("a terminal");
        drop(writing);
        reading.join().expect("it ends");
        assert_eq!(log.tail(), ["one", "two"]);
        std::fs::remove_file(&path).expect("the log");
    }
}
