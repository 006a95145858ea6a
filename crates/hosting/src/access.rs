//! The access log: a line for each request that an application or a file answered.
//!
//! A line is the Combined Log Format of Apache and others, and after it the time that
//! the answer took in microseconds (until all of it was in the kernel's or the buffer's
//! hands) and the worker's number:
//!
//! ```text
//! 127.0.0.1 - - [22/Nov/2026:03:14:15 +0000] "GET /a?b HTTP/1.1" 200 1024 "http://x/" "curl/8" 153 0
//! ```
//!
//! Time is UTC, and is when the line was made. Bytes are those of the body, `-` for none;
//! an absent field is `-`. Quotes, backslashes, control characters and what is not ASCII
//! are `\xHH`, so that no request makes a line of its own or steers a terminal. A field
//! too long is cut; a line has at most 4096 bytes.
//!
//! Each worker has a log of its own on the same file and appends whole lines: those of
//! one turn of its loop together. Nothing waits for it: where a pipe is full, lines wait,
//! up to 1 MiB, and then are lost; where a disk is full, they are lost at once. That they
//! are is printed on standard error when it begins, and when it ends with their number.
//! Requests that the server refuses by itself (400, 408, 413, 414, 431) have no line, nor
//! have those that were still being answered when the time for a graceful end was over.
//!
//! To rotate it, rename the file and send the host SIGHUP: new workers open it anew.
//! Not for: what an application wants to say.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use prony_base::{Nanos, clock};
use prony_engine::{Handle, Task};
use prony_http::{Request, Response, Version};
use prony_wire::DateCache;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;

/// Lines that wait for the end of the turn; more are written at once.
const TURN_BYTES_MAX: usize = 64 << 10;
/// Lines that wait for a pipe to be read.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// What a pipe that is writable takes at once and in one piece (`PIPE_BUF`); no line is
/// longer.
const PIECE_BYTES: usize = 4096;
/// How long a pipe that is full is left alone.
const PAUSE: Nanos = Nanos::from_millis(20);
/// What fields may have, escaped. Together with the others they stay below
/// [`PIECE_BYTES`].
const TARGET_BYTES_MAX: usize = 2048;
const REFERER_BYTES_MAX: usize = 1024;
const AGENT_BYTES_MAX: usize = 512;
const METHOD_BYTES_MAX: usize = 64;
const SECOND_NANOS: u64 = 1_000_000_000;

/// One worker's access log.
pub struct AccessLog {
    lines: Rc<Lines>,
    /// Ends with the log.
    _writer: Task<()>,
}

impl AccessLog {
    /// Opens the log at `place`, or standard output where that is `-`, for the worker
    /// with this number.
    ///
    /// # Errors
    /// The error of the kernel about the file; a named pipe that no process reads.
    pub fn open(handle: &Handle, place: &Path, worker: u32) -> io::Result<AccessLog> {
        let (out, name) = match place == "-" {
            true => (
                io::stdout().as_fd().try_clone_to_owned()?,
                PathBuf::from("standard output"),
            ),
            false => {
                let flags = OFlags::WRONLY
                    | OFlags::APPEND
                    | OFlags::CREATE
                    | OFlags::NOCTTY
                    | OFlags::NONBLOCK
                    | OFlags::CLOEXEC;
                let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP;
                let opened = open(place, flags, mode).map_err(|error| match error {
                    // Of a pipe; otherwise opening one would wait for a reader.
                    Errno::NXIO => io::Error::other("no process reads it: start its reader first"),
                    error => error.into(),
                });
                (opened?, place.to_owned())
            }
        };
        let lines = Rc::new(Lines::new(out, name, worker)?);
        let writing = write_every_turn(handle.clone(), Rc::clone(&lines));
        Ok(AccessLog {
            lines,
            _writer: handle.spawn(writing),
        })
    }

    /// Adds the line of a request that was answered, and how long that took.
    pub fn line(&self, request: &Request<'_>, response: &mut Response, took: Nanos) {
        let headers = request.headers();
        let method = request.method();
        let entry = Entry {
            client: response.peer_addr().map(|address| address.ip()),
            unix_seconds: clock::unix_nanos() / SECOND_NANOS,
            method: method.name(),
            target: request.target(),
            version: request.version(),
            // What gives no answer is answered by the server.
            status: response.status().unwrap_or(500),
            body_bytes: response.body_bytes(),
            referer: headers.get("referer"),
            agent: headers.get("user-agent"),
            took,
        };
        self.lines.add(&entry);
    }

    /// Lines that could not be written.
    pub fn lost(&self) -> u64 {
        self.lines.lost.get()
    }
}

impl std::fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AccessLog({})", self.lines.name.display())
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.lines.flush();
        let left = forget(&mut self.lines.waiting.borrow_mut());
        if left > 0 {
            self.lines.lose(left, "no process reads it");
        }
        self.lines.tell_lost();
    }
}

/// The content of a line.
struct Entry<'e> {
    client: Option<IpAddr>,
    unix_seconds: u64,
    method: &'e str,
    target: &'e str,
    version: Version,
    status: u16,
    body_bytes: u64,
    referer: Option<&'e [u8]>,
    agent: Option<&'e [u8]>,
    took: Nanos,
}

/// Lines on their way.
#[derive(Debug)]
struct Lines {
    out: OwnedFd,
    /// The name of `out` in messages.
    name: PathBuf,
    /// Takes any number of bytes without waiting for somebody to read them.
    is_file: bool,
    worker: u32,
    waiting: RefCell<Vec<u8>>,
    clock: RefCell<Clock>,
    writer: RefCell<Option<Waker>>,
    /// The last write ended within a line.
    is_torn: Cell<bool>,
    lost: Cell<u64>,
    /// Of those, how many have been reported.
    reported: Cell<u64>,
    is_failing: Cell<bool>,
}

/// The time as a line has it, made once a second.
#[derive(Debug, Default)]
struct Clock {
    seconds: Option<u64>,
    dates: DateCache,
    text: Vec<u8>,
}

/// Writes what there is once in each turn of the loop that adds something.
async fn write_every_turn(handle: Handle, lines: Rc<Lines>) {
    loop {
        poll_fn(|cx| lines.poll_waiting(cx)).await;
        lines.flush();
        while !lines.waiting.borrow().is_empty() {
            handle.sleep(PAUSE).await;
            lines.flush();
        }
    }
}

impl Lines {
    fn new(out: OwnedFd, name: PathBuf, worker: u32) -> io::Result<Lines> {
        let about = fstat(&out)?;
        Ok(Lines {
            is_file: FileType::from_raw_mode(about.st_mode) == FileType::RegularFile,
            out,
            name,
            worker,
            waiting: RefCell::default(),
            clock: RefCell::default(),
            writer: RefCell::default(),
            is_torn: Cell::default(),
            lost: Cell::default(),
            reported: Cell::default(),
            is_failing: Cell::default(),
        })
    }

    fn poll_waiting(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.waiting.borrow().is_empty() {
            return Poll::Ready(());
        }
        *self.writer.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    fn add(&self, entry: &Entry<'_>) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() + PIECE_BYTES > WAITING_BYTES_MAX {
            drop(waiting);
            return self.lose(1, "no process reads it");
        }
        self.put(&mut waiting, entry);
        let writer = self.writer.borrow_mut().take();
        if let Some(writer) = writer {
            writer.wake();
        }
        if self.is_file && waiting.len() >= TURN_BYTES_MAX {
            drop(waiting);
            self.flush();
        }
    }

    fn put(&self, out: &mut Vec<u8>, entry: &Entry<'_>) {
        // Writing to memory does not fail.
        let _ = match entry.client {
            Some(IpAddr::V4(ip)) => write!(out, "{ip}"),
            Some(IpAddr::V6(ip)) => write!(out, "{}", ip.to_canonical()),
            None => write!(out, "-"),
        };
        out.extend_from_slice(b" - - [");
        out.extend_from_slice(self.clock.borrow_mut().at(entry.unix_seconds));
        out.extend_from_slice(b"] \"");
        put_escaped(out, entry.method.as_bytes(), METHOD_BYTES_MAX);
        out.push(b' ');
        put_escaped(out, entry.target.as_bytes(), TARGET_BYTES_MAX);
        let version = match entry.version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
        };
        let _ = write!(out, " HTTP/{version}\" {} ", entry.status);
        let _ = match entry.body_bytes {
            0 => write!(out, "-"),
            bytes => write!(out, "{bytes}"),
        };
        for (field, bytes_max) in [
            (entry.referer, REFERER_BYTES_MAX),
            (entry.agent, AGENT_BYTES_MAX),
        ] {
            out.extend_from_slice(b" \"");
            put_escaped(out, field.unwrap_or(b"-"), bytes_max);
            out.push(b'"');
        }
        let _ = writeln!(out, " {} {}", entry.took.0 / 1000, self.worker);
    }

    /// Writes what waits, as far as that holds up nobody.
    fn flush(&self) {
        let mut waiting = self.waiting.borrow_mut();
        let mut written = 0;
        while written < waiting.len() {
            match self.write(&waiting[written..]) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => {
                    waiting.drain(..written);
                    let lost = forget(&mut waiting);
                    drop(waiting);
                    return self.lose(lost, error);
                }
            }
        }
        waiting.drain(..written);
        if written > 0 && waiting.is_empty() {
            drop(waiting);
            self.tell_lost();
        }
    }

    /// Writes some of `lines`. A line that another write left off is ended first.
    fn write(&self, lines: &[u8]) -> Result<usize, Errno> {
        let lines = match self.is_file {
            true => lines,
            false => self.piece(lines)?,
        };
        if self.is_torn.get() && self.is_failing.get() {
            rustix::io::write(&self.out, b"\n")?;
            self.is_torn.set(false);
        }
        let count = rustix::io::write(&self.out, lines)?;
        self.is_torn.set(count == 0 || lines[count - 1] != b'\n');
        match count {
            0 => Err(Errno::IO),
            count => Ok(count),
        }
    }

    /// As many whole lines as go without waiting.
    fn piece<'l>(&self, lines: &'l [u8]) -> Result<&'l [u8], Errno> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if poll(&mut [PollFd::new(&self.out, PollFlags::OUT)], Some(&now))? == 0 {
            return Err(Errno::AGAIN);
        }
        let most = &lines[..lines.len().min(PIECE_BYTES)];
        let end = most.iter().rposition(|&byte| byte == b'\n');
        Ok(&most[..end.map_or(most.len(), |end| end + 1)])
    }

    fn lose(&self, lines: u64, why: impl std::fmt::Display) {
        self.lost.set(self.lost.get() + lines);
        if !self.is_failing.replace(true) {
            say(format_args!(
                "the access log, {}, cannot be written: {why}; lines are lost until it can",
                self.name.display()
            ));
        }
    }

    /// It can be written again, or ends.
    fn tell_lost(&self) {
        let lost = self.lost.get() - self.reported.replace(self.lost.get());
        if self.is_failing.replace(false) {
            say(format_args!(
                "the access log, {}, has lost {lost} lines",
                self.name.display()
            ));
        }
    }
}

/// Throws lines away, and yields how many.
fn forget(waiting: &mut Vec<u8>) -> u64 {
    let count = waiting.iter().filter(|&&byte| byte == b'\n').count();
    waiting.clear();
    count as u64
}

/// Says something on standard error; a reader who is not there misses it.
fn say(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "prony: {text}");
}

impl Clock {
    fn at(&mut self, unix_seconds: u64) -> &[u8] {
        if self.seconds != Some(unix_seconds) {
            self.seconds = Some(unix_seconds);
            // Sun, 06 Nov 1994 08:49:37 GMT
            let date = self.dates.at(unix_seconds);
            let part = |from, to| date.get(from..to).unwrap_or_default();
            let (day, month, year) = (part(5, 7), part(8, 11), part(12, 16));
            self.text.clear();
            // Writing to memory does not fail.
            let _ = write!(self.text, "{day}/{month}/{year}:{} +0000", part(17, 25));
        }
        &self.text
    }
}

/// Adds a field as it may stand between quotes, as far as it goes into `bytes_max`.
fn put_escaped(out: &mut Vec<u8>, field: &[u8], bytes_max: usize) {
    let is_plain = |&byte: &u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if field.len() <= bytes_max && field.iter().all(is_plain) {
        return out.extend_from_slice(field);
    }
    let end = out.len() + bytes_max;
    for byte in field {
        let length = if is_plain(byte) { 1 } else { 4 };
        if out.len() + length > end {
            return;
        }
        match is_plain(byte) {
            true => out.push(*byte),
            false => {
                let _ = write!(out, "\\x{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Read as _;

    use prony_engine::Config;
    use proptest::prelude::*;

    use super::*;

    fn entry(target: &str) -> Entry<'_> {
        Entry {
            client: Some("10.0.0.7".parse().unwrap()),
            unix_seconds: 784_111_777,
            method: "GET",
            target,
            version: Version::Http11,
            status: 200,
            body_bytes: 1024,
            referer: Some(b"http://x/"),
            agent: None,
            took: Nanos(153_900),
        }
    }

    fn lines(out: impl Into<OwnedFd>) -> Lines {
        Lines::new(out.into(), "the log".into(), 3).unwrap()
    }

    fn made(entry: &Entry<'_>) -> String {
        let mut out = Vec::new();
        lines(File::open("/dev/null").unwrap()).put(&mut out, entry);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_is_combined_with_microseconds_and_worker() {
        assert_eq!(
            made(&entry("/a?b")),
            "10.0.0.7 - - [06/Nov/1994:08:49:37 +0000] \"GET /a?b HTTP/1.1\" 200 1024 \
             \"http://x/\" \"-\" 153 3\n"
        );
        let other = Entry {
            client: None,
            body_bytes: 0,
            version: Version::Http10,
            agent: Some(b"a\"b\\c\x1b[2J\xff"),
            ..entry("/")
        };
        assert_eq!(
            made(&other),
            "- - - [06/Nov/1994:08:49:37 +0000] \"GET / HTTP/1.0\" 200 - \"http://x/\" \
             \"a\\x22b\\x5Cc\\x1B[2J\\xFF\" 153 3\n"
        );
    }

    proptest! {
        #[test]
        fn whatever_is_asked_makes_one_line_that_a_pipe_takes_whole(
            method in ".{0,200}",
            target in ".{0,5000}",
            referer in prop::collection::vec(any::<u8>(), 0..3000),
            agent in prop::collection::vec(any::<u8>(), 0..3000),
            numbers in any::<(u64, u64, u128)>(),
        ) {
            let line = made(&Entry {
                client: Some(IpAddr::V6(numbers.2.into())),
                unix_seconds: numbers.0,
                method: &method,
                body_bytes: numbers.0,
                referer: Some(&referer),
                agent: Some(&agent),
                took: Nanos(numbers.1),
                ..entry(&target)
            });
            prop_assert!(line.len() <= PIECE_BYTES);
            prop_assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == b'\n'));
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert_eq!(line.matches('"').count(), 6);
        }
    }

    #[test]
    fn lines_of_a_turn_are_written_at_its_end_and_the_rest_when_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = &dir.path().join("log");
        fs::write(path, "before\n").unwrap();
        let count = || fs::read_to_string(path).unwrap().lines().count();
        prony_engine::run(&Config::default(), |handle| async move {
            let log = AccessLog::open(&handle, path, 0).unwrap();
            handle.yield_now().await;
            log.lines.add(&entry("/1"));
            log.lines.add(&entry("/2"));
            assert_eq!(count(), 1);
            handle.yield_now().await;
            assert_eq!(count(), 3);
            for _ in 0..TURN_BYTES_MAX / 80 {
                log.lines.add(&entry("/many"));
            }
            assert!(count() > 400, "a full buffer does not wait");
            log.lines.add(&entry("/last"));
            drop(log);
            let text = fs::read_to_string(path).unwrap();
            assert!(text.lines().last().unwrap().contains("/last"));
        })
        .unwrap();
    }

    #[test]
    fn a_full_disk_loses_lines_and_is_counted() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let lines = lines(full);
        for _ in 0..5 {
            lines.add(&entry("/"));
        }
        lines.flush();
        assert_eq!((lines.lost.get(), lines.is_failing.get()), (5, true));
        assert!(lines.waiting.borrow().is_empty());
    }

    #[test]
    fn opening_a_named_pipe_waited_for_its_reader() {
        let dir = tempfile::tempdir().unwrap();
        let path = &dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        prony_engine::run(&Config::default(), |handle| async move {
            let error = AccessLog::open(&handle, path, 0).unwrap_err();
            assert_eq!(
                error.to_string(),
                "no process reads it: start its reader first"
            );
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            let reader = open(path, flags, Mode::empty()).unwrap();
            let log = AccessLog::open(&handle, path, 0).unwrap();
            log.lines.add(&entry("/1"));
            drop(log);
            let mut line = String::new();
            File::from(reader).read_to_string(&mut line).unwrap();
            assert_eq!(line, made(&entry("/1")).replace(" 153 3", " 153 0"));
        })
        .unwrap();
    }

    #[test]
    fn a_pipe_that_nobody_reads_holds_up_nobody_and_loses_no_half_line() {
        let (mut reader, writer) = io::pipe().unwrap();
        let lines = lines(writer);
        let long = "/".repeat(1000);
        let mut added = 0;
        while lines.lost.get() == 0 {
            lines.add(&entry(&long));
            lines.flush();
            added += 1;
        }
        assert!(lines.waiting.borrow().len() <= WAITING_BYTES_MAX);
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        while !lines.waiting.borrow().is_empty() {
            lines.flush();
        }
        let whole = made(&entry(&long));
        assert!(!lines.is_failing.get(), "it goes on");
        drop(lines);
        let text = reading.join().unwrap();
        assert_eq!(text.lines().count(), added - 1);
        assert!(text.lines().all(|line| line == whole.trim_end()));
    }
}
