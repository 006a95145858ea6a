//! The driver on io_uring: a whole turn's operations go to the kernel, and its
//! completions come back, in one system call; but sends in batches of a few, so that it is
//! known when each was made (`send_batch`).
//!
//! Receives are multishot and fill buffers of a ring that the kernel picks from;
//! sends are submissions, which costs a sixth less than a `send` call each.
//! `SINGLE_ISSUER` with `DEFER_TASKRUN` lets the kernel do its part only when we
//! ask, instead of interrupting; without it a request costs a fifth more.
//! Not for: kernels before 6.1, which lack one or the other (epoll serves there).

mod buffer_ring;
mod send_batch;
mod setup;
mod stamping;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use prony_base::{Instant, Nanos, clock};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{Shutdown, SocketAddrAny, shutdown};

use self::buffer_ring::{BufferRing, GROUP};
use self::send_batch::{PendingSend, SendBatch};
use self::setup::{build, unavailable};
use self::stamping::Stamping;
use super::socket;
use super::{
    Blocking, Coalescing, Completion, Completions, DISCARD_BYTES_MAX, Driver, DriverStats,
};
use super::{FilePart, InFlight, Op, OpOutcome, Role, Sending, Socket, Token, Wait};
use crate::buffers::{Empty, Pool, Received};
use crate::config::{Config, ConnectOptions, DriverKind, Error, ListenOptions, Receive};
use crate::remote::Remote;
use crate::slab::Key;
use crate::stamps::{Arrival, Bracket};

/// Buffers in the kernel's hands from the start. The kernel uses them in turn, so
/// fewer of them stay warmer in cache; the pool doubles when they do not suffice.
const BUFFERS_AT_START: usize = 64;
/// Turns in which the end waits for the kernel to let go, a millisecond each.
const QUIESCE_TURNS: usize = 1_000;
/// A turn without a deadline returns after this, and the next one begins.
const LEFT_MAX: Nanos = Nanos::from_secs(3_600);
/// Most bytes of one send; the kernel cuts off what is more than 2 GiB without a word.
const SEND_BYTES_MAX: usize = 1 << 30;
/// Completions that may wait for the loop: while it hands over more than these, what arrives
/// stays with the kernel, which has room for it, and does not fill the pool.
const UNTAKEN_MAX: u64 = 256;
/// Turns in a row that may go without the kernel.
const FREE_TURNS_MAX: u32 = 16;
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 1 << 3;
/// The token of the poll on the descriptor by which other threads wake us.
const WAKER: Token = Token {
    role: Role::Driver,
    key: Key {
        index: 0,
        generation: 0,
    },
};

/// The driver on io_uring.
///
/// INVARIANT: memory that an outstanding operation names stays where it is:
/// sent bytes by the INVARIANT of [`InFlight`]; addresses in `addresses` until
/// the kernel has consumed their submission; own receive buffers in `own` until
/// their completion; pooled buffers by the INVARIANT of [`BufferRing`].
pub(crate) struct Ring {
    // Dropped in this order: the kernel lets go before the memory goes.
    ring: IoUring,
    buffers: BufferRing,
    own: HashMap<Token, Empty>,
    /// Sends from files that wait until their socket takes more. None once cancelled: the
    /// socket's number may be another's by the time the poll has completed.
    files: HashMap<Token, Option<(Socket, FilePart)>>,
    /// Those of them whose sockets do.
    writable: Vec<(Token, Socket, FilePart)>,
    receive: Receive,
    /// Receives that found no buffer, and their order; empty as long as there are enough.
    unbuffered: HashMap<Token, usize>,
    /// Receives that are to begin with the next turn, those without a buffer first: in the order
    /// of their submission, a stream that always has more could take all buffers for ever.
    queued_receives: Vec<(Socket, Token)>,
    #[expect(clippy::vec_box, reason = "the kernel has their addresses")]
    addresses: Vec<Box<SocketAddrAny>>,
    /// For the receives with stamps, once there are some.
    stamping: Option<Stamping>,
    pool: Rc<Pool>,
    remote: Arc<Remote>,
    /// Operations whose last completion has not come.
    outstanding: usize,
    /// The pool is at its limit and the kernel has none of it.
    starved: bool,
    /// The pool has grown since the kernel was given buffers.
    is_grown: bool,
    /// The loop has ended: nothing is started again.
    ending: bool,
    enters: u64,
    /// Turns in a row that went without the kernel.
    free_turns: u32,
    spin: bool,
    /// The kernel can wait for several completions for a limited time (Linux 6.12).
    can_coalesce: bool,
    coalescing: Coalescing,
    /// Sends in the submission queue.
    batch: SendBatch,
    /// The arrival of the completions of the last call.
    arrival: Arrival,
    /// The last time at which the kernel had reported everything that had arrived.
    all_reported: Instant,
    /// Completions taken from the kernel.
    reaped: u64,
    /// Those that the loop has taken.
    taken: u64,
}

impl Ring {
    /// Sets the ring up, or says why not and what to do.
    pub fn new(config: &Config, pool: Rc<Pool>, remote: Arc<Remote>) -> Result<Ring, Error> {
        let ring = build(config).map_err(unavailable)?;
        let buffers = BufferRing::new(&ring, pool.limit).map_err(unavailable)?;
        let mut driver = Ring {
            can_coalesce: ring.params().is_feature_min_timeout() && !config.spin,
            coalescing: Coalescing::default(),
            batch: SendBatch::new(),
            arrival: Arrival::default(),
            all_reported: clock::monotonic(),
            reaped: 0,
            taken: 0,
            ring,
            buffers,
            own: HashMap::new(),
            files: HashMap::new(),
            writable: Vec::new(),
            receive: config.receive,
            unbuffered: HashMap::new(),
            queued_receives: Vec::new(),
            addresses: Vec::new(),
            stamping: None,
            pool,
            remote,
            outstanding: 0,
            starved: false,
            is_grown: false,
            ending: false,
            enters: 0,
            free_turns: 0,
            spin: config.spin,
        };
        while driver.pool.len() < BUFFERS_AT_START && driver.pool.grow() {}
        driver.refill();
        driver.watch_waker(&mut Vec::new());
        Ok(driver)
    }

    /// Puts an entry in the submission queue; hands the queue over if it is full.
    ///
    /// # Safety
    /// The memory that the entry names stays where it is as long as the kernel may use it:
    /// see the INVARIANT of [`Ring`].
    unsafe fn push(&mut self, entry: &squeue::Entry, done: &mut Completions) {
        loop {
            // SAFETY: as the caller says.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // A full completion queue refuses submissions until it is emptied.
            let _ = self.hand_over(Wait::Not, done);
        }
    }

    /// Puts an entry with a completion in the queue.
    ///
    /// # Safety
    /// As of [`push`](Ring::push).
    unsafe fn begin(&mut self, entry: squeue::Entry, token: Token, done: &mut Completions) {
        self.outstanding += 1;
        // SAFETY: as the caller says.
        unsafe { self.push(&entry.user_data(token.pack()), done) };
    }

    /// Puts an entry in the queue that completes only where it fails, with no token.
    ///
    /// # Safety
    /// As of [`push`](Ring::push).
    unsafe fn push_silent(&mut self, entry: squeue::Entry, done: &mut Completions) {
        // SAFETY: as the caller says.
        unsafe { self.push(&entry.flags(squeue::Flags::SKIP_SUCCESS), done) };
    }

    fn watch_waker(&mut self, done: &mut Completions) {
        let Some(event) = self.remote.event() else {
            return;
        };
        let poll = opcode::PollAdd::new(Fd(event.as_raw_fd()), libc::POLLIN as u32);
        // SAFETY: it names no memory.
        unsafe { self.begin(poll.multi(true).build(), WAKER, done) };
    }

    fn receive(&mut self, socket: Socket, token: Token, done: &mut Completions) {
        let fd = Fd(socket.raw());
        // Buffers that came back meanwhile are the kernel's before it sees this.
        self.starved &= !self.pool.has_free();
        if !self.starved {
            let entry = match self.receive {
                _ if token.role == Role::ReceiveStamped && self.has_room_for_stamps() => {
                    let stamping = self.stamping.get_or_insert_with(Stamping::new);
                    opcode::RecvMsgMulti::new(fd, stamping.header(), GROUP).build()
                }
                Receive::Multishot => opcode::RecvMulti::new(fd, GROUP).build(),
                Receive::OneShot => opcode::Recv::new(fd, ptr::null_mut(), 0)
                    .buf_group(GROUP)
                    .build()
                    .flags(squeue::Flags::BUFFER_SELECT),
            };
            // SAFETY: the buffers are those of `buffers`, and the header is that of
            // `stamping`: both live as long as the ring.
            return unsafe { self.begin(entry, token, done) };
        }
        // The task that holds all the buffers may be waiting for these very bytes.
        let mut own = Empty::own(&self.pool);
        let entry = opcode::Recv::new(fd, own.as_mut_ptr(), own.capacity() as u32).build();
        self.own.insert(token, own);
        // SAFETY: the buffer stays in `own` until the completion.
        unsafe { self.begin(entry, token, done) };
    }

    fn has_room_for_stamps(&self) -> bool {
        self.pool.buffer_bytes >= stamping::BUFFER_BYTES_MIN
    }

    fn send(
        &mut self,
        socket: Socket,
        bytes: InFlight,
        sending: Sending,
        token: Token,
        done: &mut Completions,
    ) {
        let len = bytes.len().min(SEND_BYTES_MAX) as u32;
        // WAITALL: the kernel itself continues after a short write where it may wait, and
        // takes one for a failure, which has a completion, where it may not.
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL | sending.more();
        let entry = opcode::Send::new(Fd(socket.raw()), bytes.start(), len);
        if sending.waits {
            // SAFETY: the bytes stay by the INVARIANT of InFlight.
            return unsafe { self.begin(entry.flags(flags).build(), token, done) };
        }
        if sending.is_timed && self.batch.is_full() {
            // Should it fail, the next call, which is the turn's, fails, too.
            let _ = self.hand_over(Wait::Not, done);
        }
        let entry = entry.flags(flags | libc::MSG_DONTWAIT).build();
        // SAFETY: the bytes stay by the INVARIANT of InFlight.
        unsafe { self.begin(entry.flags(squeue::Flags::SKIP_SUCCESS), token, done) };
        let len = u64::from(len);
        self.batch.add(PendingSend { token, len }, sending);
    }

    /// Begins a receive, now or in its turn.
    fn queue_receive(&mut self, socket: Socket, token: Token, done: &mut Completions) {
        if self.unbuffered.is_empty() {
            self.receive(socket, token, done);
        } else {
            self.queued_receives.push((socket, token));
        }
    }

    /// Begins the receives that queue for buffers.
    fn serve_queue(&mut self, done: &mut Completions) {
        if self.unbuffered.is_empty() {
            return;
        }
        let mut queued_receives = std::mem::take(&mut self.queued_receives);
        let place =
            |(_, token): &(Socket, Token)| *self.unbuffered.get(token).unwrap_or(&usize::MAX);
        queued_receives.sort_by_key(place);
        self.unbuffered.clear();
        for (socket, token) in queued_receives {
            self.receive(socket, token, done);
        }
    }

    fn discard(&mut self, socket: Socket, count: u64, token: Token, done: &mut Completions) {
        let len = count.min(DISCARD_BYTES_MAX) as u32;
        // With this flag TCP writes nothing; should it do so, no memory is there, and the
        // operation fails.
        let entry =
            opcode::Recv::new(Fd(socket.raw()), ptr::null_mut(), len).flags(libc::MSG_TRUNC);
        // SAFETY: it names no memory.
        unsafe { self.begin(entry.build(), token, done) };
    }

    /// There is no such operation (a splice goes through a pipe and by a thread of the
    /// kernel): a poll, and the call when the socket takes more.
    fn send_file(&mut self, socket: Socket, part: FilePart, token: Token, done: &mut Completions) {
        self.files.insert(token, Some((socket, part)));
        let poll = opcode::PollAdd::new(Fd(socket.raw()), libc::POLLOUT as u32);
        // SAFETY: it names no memory.
        unsafe { self.begin(poll.build(), token, done) };
    }

    /// Hands parts of files to the sockets that take more.
    fn send_files(&mut self, done: &mut Completions) {
        for (token, socket, part) in std::mem::take(&mut self.writable) {
            let from = clock::monotonic();
            let result = send_now(socket, part);
            let to = clock::monotonic();
            match result {
                Err(Errno::AGAIN | Errno::INTR) => self.send_file(socket, part, token, done),
                result => done.push(Completion {
                    token,
                    outcome: result.map(|count| OpOutcome::Sent(count, Bracket { from, to })),
                    more: false,
                }),
            }
        }
    }

    fn cancel(&mut self, of: Token, done: &mut Completions) {
        if of.role == Role::Send
            && let Some(waiting) = self.files.get_mut(&of)
        {
            *waiting = None;
        }
        let queued = self
            .queued_receives
            .iter()
            .position(|(_, token)| *token == of);
        if let Some(place) = queued {
            self.queued_receives.remove(place);
            return done.push(Completion {
                token: of,
                outcome: Err(Errno::CANCELED),
                more: false,
            });
        }
        // SAFETY: it names no memory.
        unsafe { self.push_silent(opcode::AsyncCancel::new(of.pack()).build(), done) };
    }

    fn connect(&mut self, socket: Socket, to: SocketAddr, token: Token, done: &mut Completions) {
        let address = Box::new(SocketAddrAny::from(to));
        let (start, len) = (address.as_ptr().cast(), address.addr_len());
        let entry = opcode::Connect::new(Fd(socket.raw()), start, len).build();
        // SAFETY: the address is kept in `addresses`, from here on, until the kernel has
        // consumed the submission.
        unsafe { self.begin(entry, token, done) };
        // Not before: where the queue was full it has been handed over, and the addresses
        // kept until then were freed.
        self.addresses.push(address);
    }

    /// Makes the one system call, and takes what it brought.
    fn hand_over(&mut self, wait: Wait, done: &mut Completions) -> io::Result<()> {
        let result = self.enter(wait);
        self.reap(done);
        let queue = self.ring.submission();
        // Otherwise a send may not have been made, or its failure not been reported.
        let is_known = queue.is_empty() && !queue.cq_overflow();
        drop(queue);
        if result.is_ok() && is_known {
            let at = self.batch.at();
            for send in self.batch.settle() {
                self.outstanding -= 1;
                done.push(Completion {
                    token: send.token,
                    outcome: Ok(OpOutcome::Sent(send.len, at)),
                    more: false,
                });
            }
        }
        result
    }

    /// Hands over what is left, waits, and takes in what has happened.
    fn exchange(&mut self, wait: Wait, done: &mut Completions) -> io::Result<()> {
        let reaped = self.reaped;
        self.refill();
        self.serve_queue(done);
        // While tasks are due, a turn with nothing to submit and nothing to reap costs
        // nothing; but not for ever, should the kernel not report what it has.
        let is_free = wait == Wait::Not && self.free_turns < FREE_TURNS_MAX;
        if is_free && self.has_news() == Some(false) {
            self.free_turns += 1;
            return Ok(());
        }
        self.free_turns = 0;
        if wait != Wait::Not && !self.spin && !self.batch.is_empty() {
            if !self.batch.may_wait() {
                return self.hand_over(Wait::Not, done);
            }
            if self.batch.is_to_be_measured() {
                self.hand_over(Wait::Not, done)?;
            }
        }
        // What came meanwhile, be it a wake, is looked at before anything is waited for.
        if self.reaped != reaped {
            return match self.has_news() {
                Some(false) => Ok(()),
                _ => self.hand_over(Wait::Not, done),
            };
        }
        self.hand_over(wait, done)
    }

    /// The one system call.
    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let before = clock::monotonic();
        // Looked at after the clock: so up to then nothing had come.
        let queue = self.ring.submission();
        let (to_submit, is_quiet) = (queue.len() as u32, !queue.taskrun() && !queue.cq_overflow());
        drop(queue);
        if is_quiet {
            self.all_reported = before;
        }
        let waits = wait != Wait::Not && !self.spin;
        let result = self.call(wait, to_submit, before);
        let after = clock::monotonic();
        self.arrival = Arrival {
            reaped: after,
            since: self.all_reported,
            slept: waits && is_quiet,
            kernel: None,
        };
        // Looked at after the clock again; the kernel takes a limited number in one call.
        if !self.ring.submission().taskrun() {
            self.all_reported = after;
        }
        if !self.batch.is_empty() {
            self.batch.handed_over(before, after, waits);
        }
        result
    }

    fn call(&mut self, wait: Wait, to_submit: u32, now: Instant) -> io::Result<()> {
        let submitter = self.ring.submitter();
        self.enters += 1;
        let result = match wait {
            Wait::Until(deadline) if !self.spin => {
                let left = time_left(deadline, now);
                let time = Timespec::new()
                    .sec(left.0 / 1_000_000_000)
                    .nsec((left.0 % 1_000_000_000) as u32);
                let (min_complete, min_wait) = completion_wait(self.coalescing, left);
                let args = SubmitArgs::new().timespec(&time).min_wait_usec(min_wait);
                let flags = ENTER_GETEVENTS | ENTER_EXT_ARG;
                // SAFETY: the argument outlives the call and is what EXT_ARG means.
                unsafe { submitter.enter(to_submit, min_complete, flags, Some(&args)) }
            }
            _ => {
                let flags = match self.reaped - self.taken {
                    0..UNTAKEN_MAX => ENTER_GETEVENTS,
                    _ => 0,
                };
                // SAFETY: without an argument there is nothing that could dangle.
                unsafe { submitter.enter::<libc::sigset_t>(to_submit, 0, flags, None) }
            }
        };
        if self.ring.submission().is_empty() {
            self.addresses.clear();
        }
        match result.map_err(|error| error.raw_os_error()) {
            // EBUSY, EAGAIN: the completions are to be taken first, and then they are.
            Ok(_) | Err(Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)) => Ok(()),
            Err(code) => Err(io::Error::from_raw_os_error(code.unwrap_or(libc::EIO))),
        }
    }

    /// Moves what has completed to `done`.
    fn reap(&mut self, done: &mut Completions) {
        if let Some(stamping) = &mut self.stamping {
            stamping.asked();
        }
        let mut waker_ended = false;
        for entry in self.ring.completion() {
            self.reaped += 1;
            let Some(token) = Token::unpack(entry.user_data()) else {
                continue;
            };
            let more = cqueue::more(entry.flags());
            self.outstanding -= usize::from(!more);
            if token == WAKER {
                // Not read: each write is reported once, readable or not before.
                waker_ended |= !more;
                continue;
            }
            let file = match token.role {
                Role::Send if !self.files.is_empty() => self.files.remove(&token),
                _ => None,
            };
            let outcome = match entry.result() {
                code if token.role == Role::Send && self.batch.remove(token) => {
                    incomplete(code, self.batch.at())
                }
                code if code < 0 => {
                    drop(self.own.remove(&token));
                    Err(Errno::from_raw_os_error(-code))
                }
                _ => match file {
                    Some(Some((socket, part))) if !self.ending => {
                        self.writable.push((token, socket, part));
                        continue;
                    }
                    Some(_) => Err(Errno::CANCELED),
                    None => {
                        let receiving = (&self.pool, &mut self.own, &mut self.stamping);
                        Ok(success(receiving, &entry, token, self.arrival))
                    }
                },
            };
            if matches!(outcome, Err(Errno::NOBUFS)) {
                self.pool.count_exhausted();
                // Once for all that starved together: they were reported before the kernel
                // was given the buffers that the first of them made the pool grow by.
                if !self.is_grown {
                    self.starved = !self.pool.grow();
                    self.is_grown = true;
                }
                let had_some = done.last().is_some_and(|last| last.token == token);
                note_unbuffered(&mut self.unbuffered, token, had_some);
            }
            done.push(Completion {
                token,
                outcome,
                more,
            });
        }
        if !self.writable.is_empty() {
            self.send_files(done);
        }
        if waker_ended && !self.ending {
            self.remote.clear_event();
            self.watch_waker(done);
        }
    }

    /// Gives the kernel every buffer that came back.
    fn refill(&mut self) {
        while let Some((number, start)) = self.pool.lend() {
            // SAFETY: lent to the kernel by the pool, which has it back by the completion
            // that names it, and lives longer than the ring.
            unsafe { self.buffers.put(number, start, self.pool.buffer_bytes) };
            self.starved = false;
        }
        self.is_grown = false;
        self.buffers.commit();
    }
}

/// Hands a part of a file to a socket that would block. Only for this call it does not:
/// without that the call would wait for room for all of it; with it always, receives
/// would fail instead of waiting.
fn send_now(socket: Socket, part: FilePart) -> Result<u64, Errno> {
    ioctl_fionbio(socket.fd(), true)?;
    let sent = socket::send_file(socket, part);
    ioctl_fionbio(socket.fd(), false)?;
    sent
}

/// How long a call may take. Without a deadline there is one all the same: the
/// kernel ends a bounded wait for several without any at the end of that wait.
fn time_left(deadline: Instant, now: Instant) -> Nanos {
    match deadline {
        Instant::NEVER => LEFT_MAX,
        _ => deadline.since(now).min(LEFT_MAX),
    }
}

/// Completions that end a call at once, and the microseconds after which a single
/// one does; not longer than `left`, because the kernel looks at the shorter wait
/// alone.
fn completion_wait(coalescing: Coalescing, left: Nanos) -> (u32, u32) {
    match coalescing.wait.min(left).0 / 1_000 {
        0 => (1, 0),
        micros => (
            coalescing.completions,
            u32::try_from(micros).unwrap_or(u32::MAX),
        ),
    }
}

/// The outcome of a send that was not to wait and has not succeeded whole.
fn incomplete(code: i32, at: Bracket) -> Result<OpOutcome, Errno> {
    match u64::try_from(code) {
        Ok(count) => Ok(OpOutcome::Sent(count, at)),
        Err(_) if code == -libc::EAGAIN => Ok(OpOutcome::Refused(at)),
        Err(_) => Err(Errno::from_raw_os_error(-code)),
    }
}

/// Notes a receive that found no buffer. One that has just had some waits behind those
/// that had none.
fn note_unbuffered(unbuffered: &mut HashMap<Token, usize>, token: Token, had_some: bool) {
    let place = match had_some {
        true => usize::MAX,
        false => unbuffered.len(),
    };
    unbuffered.insert(token, place);
}

/// Drops last completions; connections that came too late are closed.
fn close_accepted(done: &mut Completions) {
    for completion in done.drain(..) {
        if let Ok(OpOutcome::Accepted(socket)) = completion.outcome {
            // SAFETY: just accepted, and known here alone.
            drop(unsafe { socket.into_fd() });
        }
    }
}

/// The places of received bytes: the pool, buffers of their own, and how they lie there with
/// stamps.
type Receiving<'a> = (
    &'a Rc<Pool>,
    &'a mut HashMap<Token, Empty>,
    &'a mut Option<Stamping>,
);

fn success(
    (pool, own, stamping): Receiving<'_>,
    entry: &cqueue::Entry,
    token: Token,
    arrival: Arrival,
) -> OpOutcome {
    let count = entry.result();
    match token.role {
        Role::Receive | Role::ReceiveStamped => {
            let len = count as usize;
            // SAFETY: lent by `refill`, and this is the one completion that names it.
            let pooled = cqueue::buffer_select(entry.flags())
                .map(|number| unsafe { Received::from_kernel(pool, number, len) });
            let received = match (pooled, stamping) {
                (Some(filled), Some(stamping)) if token.role == Role::ReceiveStamped => {
                    return OpOutcome::Received(stamping.unpack(filled, arrival));
                }
                (Some(filled), _) => filled,
                (None, _) => match own.remove(&token) {
                    Some(buffer) => buffer.filled(len),
                    None => Received::end(),
                },
            };
            OpOutcome::Received(received.at(arrival))
        }
        // It had to wait: when it was offered first is known from there.
        Role::Send => OpOutcome::Sent(
            count as u64,
            Bracket {
                from: arrival.since,
                to: arrival.reaped,
            },
        ),
        Role::Discard => OpOutcome::Discarded(count as u64),
        Role::Accept => {
            // SAFETY: the kernel has just opened it for this loop.
            OpOutcome::Accepted(unsafe { Socket::from_raw(count) })
        }
        Role::Connect | Role::Readable | Role::Driver => OpOutcome::Done,
    }
}

impl Driver for Ring {
    fn kind(&self) -> DriverKind {
        DriverKind::Ring
    }

    fn blocking(&self) -> Option<Blocking> {
        Some(Blocking::Yes)
    }

    fn submit(&mut self, op: Op, token: Token, done: &mut Completions) {
        match op {
            Op::Send(socket, bytes, sending) => self.send(socket, bytes, sending, token, done),
            Op::SendFile(socket, part) => self.send_file(socket, part, token, done),
            Op::Receive(socket) => self.queue_receive(socket, token, done),
            Op::Discard(socket, count) => self.discard(socket, count, token, done),
            Op::Accept(socket) => {
                let entry = opcode::AcceptMulti::new(Fd(socket.raw())).flags(libc::SOCK_CLOEXEC);
                // SAFETY: it names no memory.
                unsafe { self.begin(entry.build(), token, done) };
            }
            Op::Connect(socket, to) => self.connect(socket, to, token, done),
            Op::Readable(socket) => {
                let entry = opcode::PollAdd::new(Fd(socket.raw()), libc::POLLIN as u32);
                // SAFETY: it names no memory.
                unsafe { self.begin(entry.build(), token, done) };
            }
            Op::Cancel(_, of) => self.cancel(of, done),
            Op::ShutdownWrite(socket) => {
                // Not in the queue: the kernel hands a shutdown to a worker, which looks
                // the descriptor up when it gets to it. By then it may be closed and
                // another connection's. All sends have completed before this.
                // Fails only where the connection is gone, which recv will report.
                let _ = shutdown(socket.fd(), Shutdown::Write);
            }
            Op::Close(socket, closing) => {
                socket::before_close(socket, closing);
                // In the queue, so that it comes after the sends that are in it.
                let entry = opcode::Close::new(Fd(socket.raw())).build();
                // SAFETY: it names no memory.
                unsafe { self.push_silent(entry, done) };
            }
        }
    }

    fn turn(&mut self, wait: Wait, done: &mut Completions) -> io::Result<()> {
        // The loop has what came before, and takes what this brings.
        self.taken = self.reaped;
        let result = self.exchange(wait, done);
        self.taken = self.reaped;
        result
    }

    fn has_news(&mut self) -> Option<bool> {
        let queue = self.ring.submission();
        let is_quiet = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
        drop(queue);
        Some(!is_quiet || !self.ring.completion().is_empty())
    }

    fn is_quiet_at(&mut self, now: Instant) -> bool {
        let is_quiet = self.has_news() == Some(false);
        if is_quiet {
            self.all_reported = self.all_reported.max(now);
        }
        is_quiet
    }

    fn now(&self) -> Instant {
        clock::monotonic()
    }

    fn listen(
        &mut self,
        address: SocketAddr,
        options: &ListenOptions,
    ) -> io::Result<(Socket, SocketAddr)> {
        socket::open_listener(address, options, Blocking::Yes)
    }

    fn open(&mut self, address: SocketAddr, options: &ConnectOptions) -> io::Result<Socket> {
        socket::open_client(address, options, Blocking::Yes)
    }

    fn local_addr(&self, socket: Socket) -> io::Result<SocketAddr> {
        socket::local_addr(socket)
    }

    fn peer_addr(&self, socket: Socket) -> io::Result<SocketAddr> {
        socket::peer_addr(socket)
    }

    fn quiesce(&mut self) -> bool {
        // What was never handed over names memory too; it goes with the first turn.
        self.ending = true;
        self.coalescing = Coalescing::default();
        let all = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        let mut done = Completions::new();
        for turn in 0..QUIESCE_TURNS {
            if turn % 100 == 0 {
                // SAFETY: it names no memory.
                unsafe { self.push_silent(all.clone(), &mut done) };
            }
            let soon = clock::monotonic() + Nanos::from_millis(1);
            if self.hand_over(Wait::Until(soon), &mut done).is_err() {
                break;
            }
            close_accepted(&mut done);
            if self.outstanding == 0 {
                return self.buffers.unregister(&self.ring);
            }
        }
        false
    }

    fn coalesce(&mut self, coalescing: Coalescing) {
        let is_of_use = coalescing.completions > 1 && coalescing.wait >= Nanos::from_micros(1);
        self.coalescing = if self.can_coalesce && is_of_use {
            coalescing
        } else {
            Coalescing::default()
        };
    }

    fn stats(&self) -> DriverStats {
        DriverStats {
            enters: self.enters,
            coalescing: self.coalescing.wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_whose_queue_was_full_was_let_go_before_the_kernel_had_it() {
        let config = Config {
            submissions_max: 2,
            connections_hint: 1,
            ..Config::default()
        };
        let pool = Pool::new(config.recv_buffer_bytes, config.recv_buffers);
        let remote = Remote::without_event();
        let mut ring = match Ring::new(&config, pool, remote) {
            Ok(ring) => ring,
            Err(error) => return prony_testkit::skip_ring(&error.to_string()),
        };
        let mut done = Completions::new();
        while !ring.ring.submission().is_full() {
            // SAFETY: it names no memory.
            unsafe { ring.push_silent(opcode::Nop::new().build(), &mut done) };
        }
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        let socket = ring
            .open(address, &ConnectOptions::default())
            .expect("a socket");
        let key = Key {
            index: 0,
            generation: 0,
        };
        ring.connect(socket, address, Token::new(Role::Connect, key), &mut done);
        assert!(
            !ring.ring.submission().is_empty(),
            "the kernel has not seen it"
        );
        assert_eq!(ring.addresses.len(), 1, "what it will read is kept");
        ring.hand_over(Wait::Not, &mut done).expect("the call");
        assert!(ring.addresses.is_empty());
    }

    #[test]
    fn a_call_waits_for_several_only_as_long_as_it_may() {
        let none = Coalescing::default();
        assert_eq!(completion_wait(none, LEFT_MAX), (1, 0));
        let some = Coalescing {
            completions: 16,
            wait: Nanos::from_micros(50),
        };
        assert_eq!(completion_wait(some, LEFT_MAX), (16, 50));
        // The next timer is nearer; or due.
        assert_eq!(completion_wait(some, Nanos(20_900)), (16, 20));
        assert_eq!(completion_wait(some, Nanos(900)), (1, 0));
    }
}
