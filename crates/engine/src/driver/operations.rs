//! The driver trait: a few functions between the loop and a kernel (or the simulated
//! network), which alone know time and descriptors.
//!
//! The loop hands over [`Op`]s with a [`Token`] each and later gets
//! [`Completion`]s with the same tokens. No driver calls back: submission and
//! reaping only fill lists.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use prony_base::{Instant, Nanos};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::SocketFlags;

use crate::buffers::Received;
use crate::config::{ConnectOptions, DriverKind, ListenOptions};
use crate::slab::Key;
use crate::stamps::Bracket;

/// A socket of one driver: a descriptor, or a number of the simulated network.
///
/// INVARIANT: for ring and epoll, an open descriptor that the loop owns until it
/// submits [`Op::Close`] for it or the driver is dropped; or one that its owner keeps
/// open while the loop waits for it ([`Op::Readable`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Socket(RawFd);

impl Socket {
    /// A socket by its number.
    ///
    /// # Safety
    /// The INVARIANT holds for it; or it is never given to a driver of the kernel.
    pub const unsafe fn from_raw(number: RawFd) -> Socket {
        debug_assert!(number >= 0);
        Socket(number)
    }

    /// Its number.
    #[inline(always)]
    pub const fn raw(self) -> RawFd {
        self.0
    }
}

/// The purpose of an operation; part of its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Role {
    Receive = 1,
    Send = 2,
    Connect = 3,
    Accept = 4,
    Readable = 5,
    /// Of the driver itself; never seen by the loop.
    Driver = 6,
    Discard = 7,
    /// A receive with the kernel's stamps.
    ReceiveStamped = 8,
}

/// Names one operation: what it is for, and the place and generation of its
/// owner, so that a stale completion names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token {
    pub role: Role,
    pub key: Key,
}

impl Token {
    pub fn new(role: Role, key: Key) -> Token {
        Token { role, key }
    }

    /// As one number: role, generation, place.
    pub fn pack(self) -> u64 {
        (self.role as u64) << 56 | u64::from(self.key.generation) << 32 | u64::from(self.key.index)
    }

    /// None for a number that no token packs to.
    pub fn unpack(number: u64) -> Option<Token> {
        let role = match number >> 56 {
            1 => Role::Receive,
            2 => Role::Send,
            3 => Role::Connect,
            4 => Role::Accept,
            5 => Role::Readable,
            6 => Role::Driver,
            7 => Role::Discard,
            8 => Role::ReceiveStamped,
            _ => return None,
        };
        let generation = (number >> 32) as u32 & ((1 << Key::GENERATION_BITS) - 1);
        let index = number as u32;
        Some(Token::new(role, Key { index, generation }))
    }
}

/// Most bytes that one operation throws away.
pub(crate) const DISCARD_BYTES_MAX: u64 = 1 << 30;
/// Most bytes of a file that one turn hands to one socket before the others have
/// their turn.
pub(crate) const FILE_BYTES_MAX: u64 = 2 << 20;

/// Bytes that a send is reading.
///
/// INVARIANT: the loop keeps them where they are, unchanged, from submitting the
/// send until its completion has come back (or the driver is gone).
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    start: *const u8,
    len: usize,
}

impl InFlight {
    /// # Safety
    /// The bytes stay where they are, unchanged, as long as the INVARIANT says.
    #[inline]
    pub unsafe fn new(bytes: &[u8]) -> InFlight {
        InFlight {
            start: bytes.as_ptr(),
            len: bytes.len(),
        }
    }

    /// The address of the first one.
    #[inline]
    pub fn start(&self) -> *const u8 {
        self.start
    }

    /// Their number.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The bytes, to be read while the send is outstanding.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: valid and unchanged while the send is outstanding, by the
        // INVARIANT; drivers drop their copy of this with the completion.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// A part of a file that a send is reading.
///
/// INVARIANT: the loop keeps the file open from submitting the send until its
/// completion has come back (or the driver is gone).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilePart {
    fd: RawFd,
    offset: u64,
    len: u64,
}

impl FilePart {
    /// # Safety
    /// The file stays open as long as the INVARIANT says.
    pub unsafe fn new(file: BorrowedFd<'_>, offset: u64, len: u64) -> FilePart {
        FilePart {
            fd: file.as_raw_fd(),
            offset,
            len,
        }
    }

    /// The beginning of the part, in bytes from that of the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its length, in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The file, for one call.
    pub fn file(&self) -> BorrowedFd<'_> {
        // SAFETY: open while the send is outstanding, by the INVARIANT.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }
}

/// An operation that a driver starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// Accept connections, each one a completion, until cancelled or failed.
    Accept(Socket),
    /// Connect.
    Connect(Socket, SocketAddr),
    /// Receive into pooled buffers, each one a completion, until the end of the
    /// stream, an error or a cancel; with the kernel's stamps where the role says so.
    Receive(Socket),
    /// Throw away so many following bytes; completes with the number, perhaps fewer,
    /// and zero at the end of the stream. Not while a receive is outstanding.
    Discard(Socket, u64),
    /// Send; completes with the number of bytes taken, perhaps fewer.
    Send(Socket, InFlight, Sending),
    /// Send from a file; completes as a send does, and with zero where the file has
    /// ended.
    SendFile(Socket, FilePart),
    /// Wait until a descriptor that the loop does not own is readable.
    Readable(Socket),
    /// Stop the operation with this token on this descriptor; its completion still
    /// comes, unless it has come already. No completion of its own.
    Cancel(Socket, Token),
    /// End the sending side. No completion.
    ShutdownWrite(Socket),
    /// Close, with a reset if asked. No completion. Nothing is outstanding on
    /// the socket but what was cancelled before.
    Close(Socket, Closing),
}

/// The options of a send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sending {
    /// The socket took no more when it was last offered some: wait until it does.
    pub waits: bool,
    /// A task waits for the completion; otherwise it may come with that of another
    /// operation.
    pub is_awaited: bool,
    /// The time of its submission is to be known closely.
    pub is_timed: bool,
    /// The kernel may hold back the end of it, so that it goes out with the end of this side: the
    /// loop must end that as soon as this send has completed.
    pub is_last: bool,
}

impl Sending {
    /// The flag of send(2) for whether more comes at once.
    pub fn more(self) -> i32 {
        if self.is_last { libc::MSG_MORE } else { 0 }
    }
}

/// The way to close a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The kernel delivers what it was given, then says goodbye.
    Orderly,
    /// Drop what is unsent, with a reset to the peer.
    Reset,
}

/// The end of an operation, or one of its results.
#[derive(Debug)]
pub(crate) struct Completion {
    pub token: Token,
    pub outcome: Result<OpOutcome, Errno>,
    /// More completions of this operation will come.
    pub more: bool,
}

/// The result of a successful operation.
#[derive(Debug)]
pub(crate) enum OpOutcome {
    Done,
    /// So many bytes were taken at this moment, or the last of them where the send waited.
    Sent(u64, Bracket),
    /// The kernel was offered the bytes then, and the send waits for it to take them.
    Offered(Bracket),
    /// It was offered the bytes then and took none: to be sent again, to wait.
    Refused(Bracket),
    /// Empty at the end of the stream.
    Received(Received),
    Discarded(u64),
    Accepted(Socket),
}

/// Completions in the order in which they happened.
pub(crate) type Completions = Vec<Completion>;

/// The wait of a turn for something to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    Not,
    /// Until this time; [`Instant::NEVER`] for no limit.
    Until(Instant),
}

/// The wait of a turn for more once something has happened, so that one
/// system call serves several completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coalescing {
    /// With so many completions the turn returns at once.
    pub completions: u32,
    /// Longest wait for them, from the beginning of the turn; zero: none.
    pub wait: Nanos,
}

/// Whether the sockets of a driver block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// For the ring, which would fail a non-blocking socket's receive at once.
    Yes,
    No,
}

impl Blocking {
    /// Makes a descriptor of another loop or process block so.
    pub fn set(self, fd: impl AsFd) -> io::Result<()> {
        Ok(ioctl_fionbio(fd, self == Blocking::No)?)
    }

    pub fn flags(self) -> SocketFlags {
        match self {
            Blocking::Yes => SocketFlags::CLOEXEC,
            Blocking::No => SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        }
    }
}

/// The counters of a driver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DriverStats {
    pub enters: u64,
    /// The wait of the coalescing that is in force.
    pub coalescing: Nanos,
}

/// Between the loop and a kernel.
pub(crate) trait Driver {
    /// Its name in reports; what it can do is asked of the other functions.
    fn kind(&self) -> DriverKind;

    /// The way in which its sockets block; None where they are no descriptors, so that none can come
    /// from another loop or process, or go there.
    fn blocking(&self) -> Option<Blocking>;

    /// Whether a thread that waits sleeps, and is woken somewhat late. A simulated one is
    /// always on time, and reading its clock is an event of its own.
    fn wakes_late(&self) -> bool {
        true
    }

    /// Whether code on the loop may use other threads and the system's services, such as its names. Where
    /// time and network are simulated, neither is part of the simulation.
    fn allows_threads(&self) -> bool {
        true
    }

    /// Takes an operation. What completes at once may be added to `done`.
    fn submit(&mut self, op: Op, token: Token, done: &mut Completions);

    /// Hands over what was submitted, waits, and adds what has completed to
    /// `done`. May return early with nothing.
    fn turn(&mut self, wait: Wait, done: &mut Completions) -> io::Result<()>;

    /// Whether a turn would submit or complete something, where that is known without a
    /// system call.
    fn has_news(&mut self) -> Option<bool> {
        None
    }

    /// Whether a turn would do nothing at `now`, which was just read; false where that takes a system call.
    fn is_quiet_at(&mut self, _now: Instant) -> bool {
        self.has_news() == Some(false)
    }

    /// Now, on the clock of this driver.
    fn now(&self) -> Instant;

    /// A listening socket and the address that it got.
    fn listen(
        &mut self,
        address: SocketAddr,
        options: &ListenOptions,
    ) -> io::Result<(Socket, SocketAddr)>;

    /// A socket that can connect to `address`.
    fn open(&mut self, address: SocketAddr, options: &ConnectOptions) -> io::Result<Socket>;

    /// This side's address.
    fn local_addr(&self, socket: Socket) -> io::Result<SocketAddr>;

    /// The peer's address.
    fn peer_addr(&self, socket: Socket) -> io::Result<SocketAddr>;

    /// Cancels everything and waits (not for ever) until the kernel holds no
    /// buffer any more. False when it still does.
    fn quiesce(&mut self) -> bool;

    /// Makes turns wait for more completions from now on, where the driver can.
    fn coalesce(&mut self, _: Coalescing) {}

    fn stats(&self) -> DriverStats;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_packing() {
        let key = Key {
            index: u32::MAX,
            generation: (1 << Key::GENERATION_BITS) - 1,
        };
        for role in [
            Role::Receive,
            Role::Send,
            Role::Accept,
            Role::Driver,
            Role::Discard,
            Role::ReceiveStamped,
        ] {
            let token = Token::new(role, key);
            assert_eq!(Token::unpack(token.pack()), Some(token));
        }
        assert_eq!(Token::unpack(0), None);
    }
}
