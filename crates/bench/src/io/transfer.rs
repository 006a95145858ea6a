//! One connection's download: how far it is, and when it got there. Not for: waiting.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use prony_base::{Instant, Nanos, clock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, connect, ipproto, send};

use super::answer::{Answer, DownloadPhase, Failure};
use super::order::{IoError, IoOrder};

/// Moments and lengths of one download. A moment that was not reached is zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// Length of `socket()` and its options.
    pub socket: Nanos,
    /// Length of what else had to be done before it could go on by itself.
    pub setup: Nanos,
    /// When connecting began.
    pub connecting: Instant,
    /// When the socket became writable.
    pub connected: Instant,
    /// When the request was sent.
    pub request_sent: Instant,
    /// When the first bytes were received.
    pub first: Instant,
    /// When the last bytes were received.
    pub last: Instant,
    /// When the answer was known to be whole, or failed.
    pub ended: Instant,
    /// Longest time between two receives.
    pub stall: Nanos,
}

/// Where it is.
#[derive(Debug)]
enum State {
    Connecting,
    /// So many bytes of the request were taken.
    Asking(usize),
    Receiving,
    Over(Option<Failure>),
}

/// One download.
#[derive(Debug)]
pub struct Transfer {
    /// Its moments.
    pub marks: Marks,
    answer: Answer,
    state: State,
    discarded_bytes: u64,
}

/// The event that it waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wants {
    /// To send.
    Write,
    /// To receive.
    Read,
    /// It is over.
    Nothing,
}

impl Transfer {
    /// One that begins to connect now.
    pub fn new(expected: Option<u64>) -> Transfer {
        let marks = Marks {
            connecting: clock::monotonic(),
            ..Marks::default()
        };
        Transfer {
            marks,
            answer: Answer::new(expected),
            state: State::Connecting,
            discarded_bytes: 0,
        }
    }

    /// Bytes of the body that were thrown away in the kernel.
    pub fn discarded_bytes(&self) -> u64 {
        self.discarded_bytes
    }

    /// Bytes of the body so far.
    pub fn body_bytes(&self) -> u64 {
        self.answer.body_bytes()
    }

    /// Bytes of the body to throw away now: one more than may still come, so that a byte
    /// too many is seen. `None` within the head.
    pub fn discardable(&self) -> Option<u64> {
        self.answer.body_left().map(|left| left.saturating_add(1))
    }

    /// Why it failed, where it did.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.state {
            State::Over(failure) => failure.as_ref(),
            _ => None,
        }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// The event that it waits for.
    pub fn wants(&self) -> Wants {
        match self.state {
            State::Connecting | State::Asking(_) => Wants::Write,
            State::Receiving => Wants::Read,
            State::Over(_) => Wants::Nothing,
        }
    }

    /// It is connected.
    pub fn connected(&mut self) {
        self.marks.connected = clock::monotonic();
        self.state = State::Asking(0);
    }

    /// The request is sent.
    pub fn request_sent(&mut self) {
        self.marks.request_sent = clock::monotonic();
        self.state = State::Receiving;
    }

    /// It is known only now when the request was sent.
    pub fn set_request_sent(&mut self, at: Instant) {
        self.marks.request_sent = at;
    }

    /// Goes on where the socket is writable: sees whether it is connected, and sends.
    pub fn write(&mut self, fd: BorrowedFd<'_>, request: &[u8]) {
        if let State::Connecting = self.state {
            match rustix::net::sockopt::socket_error(fd) {
                Ok(Ok(())) => self.connected(),
                Ok(Err(errno)) | Err(errno) => return self.broke(errno.into()),
            }
        }
        let State::Asking(done) = &mut self.state else {
            return;
        };
        match send(fd, &request[*done..], SendFlags::NOSIGNAL) {
            Ok(count) => *done += count,
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(errno) => return self.broke(errno.into()),
        }
        if *done == request.len() {
            self.request_sent();
        }
    }

    /// Bytes were received, none at the end of the stream.
    #[inline]
    pub fn received(&mut self, bytes: &[u8]) {
        self.received_at(bytes, clock::monotonic());
    }

    /// Bytes were received at that time, none at the end of the stream.
    #[inline]
    pub fn received_at(&mut self, bytes: &[u8], at: Instant) {
        self.note(at);
        let is_complete = if bytes.is_empty() {
            self.answer.end().map(|()| true)
        } else {
            self.answer.take(bytes)
        };
        self.settle(is_complete);
    }

    /// Bytes were received into several buffers, `count` of them in all.
    pub fn received_vectored(&mut self, buffers: std::slice::Chunks<'_, u8>, count: usize) {
        self.note(clock::monotonic());
        if count == 0 || self.answer.body_left().is_some() {
            let is_complete = self.counted(count as u64);
            return self.settle(is_complete);
        }
        let mut left = count;
        for buffer in buffers {
            let here = left.min(buffer.len());
            let is_complete = self.answer.take(&buffer[..here]);
            left -= here;
            // An end with bytes left over is for `take` to refuse.
            if left == 0 || is_complete.is_err() {
                return self.settle(is_complete);
            }
        }
    }

    /// So many bytes of the body were thrown away in the kernel, none at the end of the stream.
    pub fn discarded(&mut self, count: u64) {
        self.note(clock::monotonic());
        self.discarded_bytes += count;
        let is_complete = self.counted(count);
        self.settle(is_complete);
    }

    /// So many bytes of the body more, none at the end of the stream.
    fn counted(&mut self, count: u64) -> Result<bool, Failure> {
        match count {
            0 => self.answer.end().map(|()| true),
            count => self.answer.count(count),
        }
    }

    #[inline]
    fn note(&mut self, now: Instant) {
        if self.marks.first == Instant::ZERO {
            self.marks.first = now;
        } else {
            self.marks.stall = self.marks.stall.max(now.since(self.marks.last));
        }
        self.marks.last = now;
    }

    #[inline]
    fn settle(&mut self, is_complete: Result<bool, Failure>) {
        match is_complete {
            Ok(false) => {}
            Ok(true) => self.over(None),
            Err(failure) => self.over(Some(failure)),
        }
    }

    fn over(&mut self, failure: Option<Failure>) {
        self.marks.ended = clock::monotonic();
        self.state = State::Over(failure);
    }

    /// The system reported an error.
    pub fn broke(&mut self, cause: std::io::Error) {
        let phase = self.phase();
        self.over(Some(Failure::System { phase, cause }));
    }

    /// Fails it where nothing has happened for `timeout` before `now`.
    pub fn check(&mut self, now: Instant, timeout: Nanos) {
        if !self.is_over() && now.since(self.active()) >= timeout {
            self.timed_out(timeout);
        }
    }

    /// Nothing happened for so long.
    pub fn timed_out(&mut self, after: Nanos) {
        let phase = self.phase();
        self.over(Some(Failure::Timeout { phase, after }));
    }

    /// When something last happened.
    pub fn active(&self) -> Instant {
        let marks = &self.marks;
        marks
            .connecting
            .max(marks.connected)
            .max(marks.request_sent)
            .max(marks.last)
    }

    fn phase(&self) -> DownloadPhase {
        match self.state {
            State::Connecting => DownloadPhase::Connect,
            State::Asking(_) => DownloadPhase::Send,
            _ if self.marks.first == Instant::ZERO => DownloadPhase::Wait,
            _ => DownloadPhase::Receive,
        }
    }
}

/// A TCP socket for the order's address, and how long its making took.
pub fn socket(order: &IoOrder, flags: SocketFlags) -> Result<(OwnedFd, Nanos), IoError> {
    let begin = clock::monotonic();
    let family = match order.address.is_ipv4() {
        true => AddressFamily::INET,
        false => AddressFamily::INET6,
    };
    let flags = flags | SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP));
    let fd = fd.map_err(|errno| IoError::System {
        call: "socket",
        cause: errno.into(),
    })?;
    Ok((fd, clock::monotonic().since(begin)))
}

/// Begins to connect a socket that does not wait.
pub fn begin_connect(fd: &OwnedFd, order: &IoOrder, transfer: &mut Transfer) {
    match connect(fd.as_fd(), &order.address) {
        // It is seen to be connected when it is seen to be writable, also where it is at once.
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(errno) => transfer.broke(errno.into()),
    }
}
