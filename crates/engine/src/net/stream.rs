//! One stream's state and its transitions.
//!
//! A stream has at most one receive, one send and one connect outstanding. Its
//! place is kept until all of them have completed, because the kernel may be
//! reading its bytes; that its owner has gone only changes what is wanted.

use std::collections::VecDeque;

use rustix::io::Errno;

use super::Net;
use crate::buffers::{FileRange, Posted, Received, SendBuf};
use crate::driver::{Closing, Completion, InFlight, Op, OpOutcome, Role, Sending, Socket, Token};
use crate::slab::Key;
use crate::stamps::{Arrival, Bracket};
use crate::tasks::Waiter;

/// Posted bytes and parts of files, first posted first.
///
/// INVARIANT: while `in_flight`, the first one is neither changed, nor dropped, nor
/// are its bytes moved (moving a vector's header does not move its bytes).
#[derive(Default)]
pub(crate) struct SendSide {
    pub queue: VecDeque<Posted>,
    /// Bytes of the first one that the kernel has taken.
    pub taken: u64,
    /// Bytes of memory in the queue that the kernel has not taken.
    pub bytes: usize,
    /// The same of files; too large a number counts as the largest.
    pub file_bytes: u64,
    /// Parts of files in the queue.
    pub files: usize,
    pub in_flight: bool,
    /// The socket took no more of the first one when it was last offered some.
    blocked: bool,
    /// The offset in the last one at which the last post begins.
    mark: u64,
    /// The time at which the first byte of the last post was submitted.
    pub submitted: Option<Bracket>,
    /// When what the kernel has not taken of the first one was first offered to it.
    offered: Option<Bracket>,
    pub error: Option<Errno>,
    pub waiter: Waiter,
    /// The sending side is to be ended once the queue is empty.
    pub end_wanted: bool,
    pub ended: bool,
}

impl SendSide {
    /// The kernel has taken so many bytes of the first one; yields it if that was all of
    /// it. Where a file has ended before its part was out, that is an error.
    fn took(&mut self, count: u64, at: Bracket) -> Option<Posted> {
        let at = match self.offered.take() {
            Some(offered) => Bracket {
                from: offered.from,
                to: at.to,
            },
            None => at,
        };
        self.submits(count, at);
        let first = self.queue.front()?;
        self.taken += count;
        match first {
            // Not more than there are, so that it fits.
            Posted::Bytes(_) => self.bytes -= count as usize,
            Posted::File(_) => {
                self.file_bytes = self.file_bytes.saturating_sub(count);
                if count == 0 {
                    self.error = Some(FILE_TOO_SHORT);
                    return None;
                }
            }
        }
        if self.taken < first.len() {
            self.blocked = true;
            self.offered = Some(at);
            return None;
        }
        self.taken = 0;
        self.blocked = false;
        let sent = self.queue.pop_front()?;
        self.files -= usize::from(matches!(sent, Posted::File(_)));
        Some(sent)
    }

    /// The kernel was offered what is left of the first one.
    fn offers(&mut self, at: Bracket) {
        self.offered.get_or_insert(at);
        self.submits(1, at);
    }

    /// The next `count` bytes were handed over: perhaps the first of the last post.
    fn submits(&mut self, count: u64, at: Bracket) {
        let is_reached = (self.taken..self.taken + count).contains(&self.mark);
        if self.queue.len() == 1 && is_reached {
            self.submitted.get_or_insert(at);
        }
    }

    /// A post begins at `mark` of the last one.
    fn begin_post(&mut self, mark: usize) {
        self.mark = mark as u64;
        self.submitted = None;
    }

    /// Whether anybody waits for the completion of the send that begins now, or anything
    /// is to follow it.
    fn is_awaited(&self) -> bool {
        self.queue.len() > 1 || self.end_wanted || self.waiter.is_set()
    }
}

/// The operation that a stream has outstanding on its receiving side: never both, so that bytes
/// keep their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReceiveMode {
    #[default]
    None,
    Receive,
    Discard,
}

/// The receiving half.
#[derive(Default)]
pub(crate) struct ReceiveSide {
    pub queue: VecDeque<Received>,
    pub mode: ReceiveMode,
    /// The kernel was asked to stamp what arrives.
    pub is_stamped: bool,
    /// The outstanding operation was cancelled.
    pub stopping: bool,
    /// Discarded bytes that were not yet reported to the task.
    pub discarded: u64,
    /// No more will come: the peer's end, or an error.
    pub ended: Option<Result<(), Errno>>,
    /// The arrival of the peer's end.
    pub ended_at: Arrival,
    pub waiter: Waiter,
}

impl ReceiveSide {
    /// The role of the operation for a mode.
    fn role(&self, mode: ReceiveMode) -> Option<Role> {
        match mode {
            ReceiveMode::None => None,
            ReceiveMode::Receive if self.is_stamped => Some(Role::ReceiveStamped),
            ReceiveMode::Receive => Some(Role::Receive),
            ReceiveMode::Discard => Some(Role::Discard),
        }
    }

    /// Takes up to `count` bytes of what was thrown away and of what is here.
    pub fn take_discarded(&mut self, count: u64) -> u64 {
        let mut taken = self.discarded.min(count);
        self.discarded -= taken;
        while taken < count
            && let Some(first) = self.queue.front_mut()
        {
            taken += first.skip(count - taken);
            if first.is_empty() {
                self.queue.pop_front();
            }
        }
        taken
    }
}

/// The state of one stream.
pub(crate) struct StreamSlot {
    pub socket: Socket,
    pub receive: ReceiveSide,
    pub send: SendSide,
    /// This side has connected: it asks, and may want to know how long an answer took.
    pub is_client: bool,
    /// Outstanding, or its result.
    pub connecting: bool,
    pub connected: Option<Result<(), Errno>>,
    pub connect_waiter: Waiter,
    pub dirty: bool,
    /// The owner has gone, and how the socket is to be closed.
    pub closing: Option<Closing>,
    closed: bool,
}

/// In a stream's error: a file had fewer bytes than were to be sent. No TCP socket fails
/// with this number.
pub(crate) const FILE_TOO_SHORT: Errno = Errno::NODATA;

/// Whether a send can have failed so because of its socket, which then fails what
/// receives, too.
fn is_of_socket(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::PIPE
            | Errno::CONNRESET
            | Errno::CONNABORTED
            | Errno::TIMEDOUT
            | Errno::NETUNREACH
            | Errno::HOSTUNREACH
            | Errno::CANCELED
    )
}

/// Small posts of one turn become one send; more than this is not worth copying.
const JOIN_BYTES_MAX: usize = 16 << 10;

/// Appends bytes to others where both are few; yields the offset at which they begin.
fn join(last: &mut Vec<u8>, bytes: &[u8]) -> Option<usize> {
    let begin = last.len();
    let fits = begin + bytes.len() <= JOIN_BYTES_MAX;
    fits.then(|| {
        last.extend_from_slice(bytes);
        begin
    })
}

impl StreamSlot {
    pub fn new(socket: Socket) -> StreamSlot {
        StreamSlot {
            socket,
            // Most never hold more than one, and an empty queue would grow to four at once.
            receive: ReceiveSide {
                queue: VecDeque::with_capacity(1),
                ..ReceiveSide::default()
            },
            send: SendSide {
                queue: VecDeque::with_capacity(1),
                ..SendSide::default()
            },
            is_client: false,
            connecting: false,
            connected: None,
            connect_waiter: Waiter::Nothing,
            dirty: false,
            closing: None,
            closed: false,
        }
    }

    fn is_idle(&self) -> bool {
        self.receive.mode == ReceiveMode::None && !self.send.in_flight && !self.connecting
    }
}

impl Net {
    /// Starts what a touched stream wants next: a send, its end, its close.
    pub(super) fn advance(&mut self, key: Key) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        stream.dirty = false;
        let send = &mut stream.send;
        if !send.in_flight && !stream.connecting && send.error.is_none() && !stream.closed {
            if let Some(first) = send.queue.front() {
                let op = match first {
                    Posted::Bytes(bytes) => {
                        // Not more than there are, so that it fits.
                        let rest = &bytes.as_slice()[send.taken as usize..];
                        let sending = Sending {
                            waits: send.blocked,
                            is_awaited: send.is_awaited() || stream.closing.is_some(),
                            is_timed: stream.is_client,
                            is_last: send.queue.len() == 1 && send.end_wanted,
                        };
                        // SAFETY: they stay in the queue, and are not changed, until the
                        // completion of this send takes them out.
                        let bytes = unsafe { InFlight::new(rest) };
                        Op::Send(stream.socket, bytes, sending)
                    }
                    Posted::File(range) => {
                        // SAFETY: it stays in the queue until the completion of this send.
                        let part = unsafe { range.rest(send.taken) };
                        Op::SendFile(stream.socket, part)
                    }
                };
                send.in_flight = true;
                self.ops.push((op, Token::new(Role::Send, key)));
            } else if send.end_wanted && !send.ended {
                send.ended = true;
                let op = Op::ShutdownWrite(stream.socket);
                self.ops.push((op, Token::new(Role::Send, key)));
            }
        }
        if stream.closing.is_some() {
            self.advance_close(key);
        }
    }

    /// Closes a stream without owner once its posted bytes are out, and frees
    /// its place once the kernel holds nothing of it.
    fn advance_close(&mut self, key: Key) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        let Some(closing) = stream.closing else {
            return;
        };
        let unsent = stream.send.error.is_none() && !stream.send.queue.is_empty();
        let socket = stream.socket;
        if !stream.closed && (closing == Closing::Reset || !unsent) {
            stream.closed = true;
            let receiving = stream.receive.role(stream.receive.mode);
            let outstanding = [
                receiving.filter(|_| !stream.receive.stopping),
                stream.send.in_flight.then_some(Role::Send),
                stream.connecting.then_some(Role::Connect),
            ];
            for role in outstanding.into_iter().flatten() {
                let token = Token::new(role, key);
                self.ops.push((Op::Cancel(socket, token), token));
            }
            let token = Token::new(Role::Send, key);
            self.ops.push((Op::Close(socket, closing), token));
        }
        if stream.closed && stream.is_idle() {
            self.free(key);
        }
    }

    fn free(&mut self, key: Key) {
        if let Some(stream) = self.streams.remove(key) {
            for unsent in stream.send.queue {
                if let Posted::Bytes(bytes) = unsent {
                    self.spares.give_back(bytes);
                }
            }
        }
    }

    pub(super) fn received(&mut self, completion: Completion) {
        let Completion {
            token,
            outcome,
            more,
        } = completion;
        let Some(stream) = self.streams.get_mut(token.key) else {
            return;
        };
        let receive = &mut stream.receive;
        match outcome {
            Ok(OpOutcome::Received(bytes)) if bytes.is_empty() => {
                receive.ended = Some(Ok(()));
                receive.ended_at = bytes.arrival();
            }
            Ok(OpOutcome::Received(bytes)) if stream.closing.is_none() => {
                let is_awaited = receive.waiter.is_set();
                receive
                    .queue
                    .push_back(if is_awaited { bytes } else { bytes.into_kept() });
            }
            // Stopped for want of readers or of buffers: the reader starts it again.
            Err(Errno::CANCELED | Errno::NOBUFS) | Ok(_) => {}
            Err(errno) => {
                receive.ended = Some(Err(errno));
                stream.send.error.get_or_insert(errno);
                stream.send.waiter.wake(&self.queue);
            }
        }
        receive.waiter.wake(&self.queue);
        let full = receive.queue.len() >= self.limits.recv_queue_max;
        if !more {
            self.receiving_ended(token.key);
        } else if full && !receive.stopping {
            receive.stopping = true;
            self.ops.push((Op::Cancel(stream.socket, token), token));
        }
    }

    /// Nothing is outstanding on the receiving side any more.
    fn receiving_ended(&mut self, key: Key) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        stream.receive.mode = ReceiveMode::None;
        stream.receive.stopping = false;
        if stream.closing.is_some() {
            self.advance_close(key);
        }
    }

    pub(super) fn discarded(&mut self, completion: Completion) {
        let key = completion.token.key;
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        let receive = &mut stream.receive;
        match completion.outcome {
            Ok(OpOutcome::Discarded(0)) => receive.ended = Some(Ok(())),
            Ok(OpOutcome::Discarded(count)) => receive.discarded += count,
            Err(Errno::CANCELED) | Ok(_) => {}
            Err(errno) => {
                receive.ended = Some(Err(errno));
                stream.send.error.get_or_insert(errno);
                stream.send.waiter.wake(&self.queue);
            }
        }
        receive.waiter.wake(&self.queue);
        self.receiving_ended(key);
    }

    /// Starts the operation that the reader waits for. What is outstanding for
    /// an operation of another mode is stopped first, and its completion wakes the reader.
    pub fn set_receive_mode(&mut self, key: Key, mode: ReceiveMode, count: u64) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        let receive = &mut stream.receive;
        let (op, role) = match (receive.role(receive.mode), receive.role(mode)) {
            (Some(_), _) if receive.mode == mode || receive.stopping => return,
            (Some(role), _) => {
                receive.stopping = true;
                (Op::Cancel(stream.socket, Token::new(role, key)), role)
            }
            (None, Some(role)) if mode == ReceiveMode::Discard => {
                (Op::Discard(stream.socket, count), role)
            }
            (None, Some(role)) => (Op::Receive(stream.socket), role),
            (None, None) => return,
        };
        if !receive.stopping {
            receive.mode = mode;
        }
        self.queue_op(op, Token::new(role, key));
    }

    pub(super) fn sent(&mut self, completion: Completion) {
        let key = completion.token.key;
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        let send = &mut stream.send;
        send.in_flight = completion.more;
        match completion.outcome {
            Ok(OpOutcome::Offered(at)) => return send.offers(at),
            Ok(OpOutcome::Refused(at)) => {
                send.blocked = true;
                send.offers(at);
            }
            Ok(OpOutcome::Sent(count, at)) => {
                if let Some(Posted::Bytes(bytes)) = send.took(count, at) {
                    self.spares.give_back(bytes);
                }
            }
            Ok(_) => {}
            Err(errno) => send.error = Some(errno),
        }
        let finished = send.queue.is_empty();
        if finished && send.end_wanted && !send.ended && !stream.closed {
            // At once: what was sent last may wait in the kernel for this.
            send.ended = true;
            self.ends.push((stream.socket, completion.token));
        }
        if finished || send.error.is_some() {
            send.waiter.wake(&self.queue);
        }
        if let Some(errno) = send.error
            && matches!(send.queue.front(), Some(Posted::File(_)))
            && !is_of_socket(errno)
        {
            // The socket is intact, so that nothing else would fail the reader.
            stream.receive.ended.get_or_insert(Err(errno));
            stream.receive.waiter.wake(&self.queue);
        }
        if !finished || send.end_wanted || stream.closing.is_some() {
            self.touch(key);
        }
    }

    /// Queues a part of a file behind what was posted before.
    pub fn post_file(&mut self, key: Key, range: FileRange) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        stream.send.files += 1;
        let file_bytes = &mut stream.send.file_bytes;
        *file_bytes = file_bytes.saturating_add(range.len);
        stream.send.begin_post(0);
        stream.send.queue.push_back(Posted::File(range));
        self.touch(key);
    }

    /// Queues bytes behind those posted before.
    pub fn post(&mut self, key: Key, bytes: SendBuf) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        let send = &mut stream.send;
        let len = bytes.as_slice().len();
        send.bytes += len;
        // The first buffer is the kernel's while it is in flight.
        let is_ours = send.queue.len() > usize::from(send.in_flight);
        let joined = match send.queue.back_mut() {
            Some(Posted::Bytes(SendBuf::Owned(last))) if is_ours => join(last, bytes.as_slice()),
            _ => None,
        };
        send.begin_post(joined.unwrap_or(0));
        if joined.is_some() {
            self.spares.give_back(bytes);
        } else {
            send.queue.push_back(Posted::Bytes(bytes));
        }
        self.touch(key);
    }

    pub(super) fn connected(&mut self, completion: Completion) {
        let key = completion.token.key;
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        stream.connecting = false;
        stream.connected = Some(completion.outcome.map(|_| ()));
        stream.connect_waiter.wake(&self.queue);
        self.touch(key);
    }

    /// Takes note that the owner is gone: posted bytes still go out, within the linger time.
    /// Yields the waiters, to be dropped when nothing is borrowed.
    pub fn drop_stream(&mut self, key: Key) -> [Waiter; 3] {
        let mut left = <[Waiter; 3]>::default();
        let Some(stream) = self.streams.get_mut(key) else {
            return left;
        };
        if stream.closing.is_none() {
            stream.closing = Some(Closing::Orderly);
            stream.receive.queue.clear();
            left = [
                std::mem::take(&mut stream.receive.waiter),
                std::mem::take(&mut stream.send.waiter),
                std::mem::take(&mut stream.connect_waiter),
            ];
            if stream.connecting {
                // Nothing can be posted before the connection is there.
                stream.closing = Some(Closing::Reset);
            } else if !stream.send.queue.is_empty() {
                self.lingering.push(key);
            }
        }
        self.touch(key);
        left
    }

    /// Closes at once, dropping what is unsent, with a reset to the peer.
    pub fn reset_stream(&mut self, key: Key) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        let closing = stream.closing.replace(Closing::Reset);
        if closing.is_none() {
            stream.receive.queue.clear();
        }
        stream.receive.ended = Some(Err(Errno::CONNRESET));
        stream.send.error = Some(Errno::CONNRESET);
        stream.receive.waiter.wake(&self.queue);
        stream.send.waiter.wake(&self.queue);
        self.touch(key);
    }
}
