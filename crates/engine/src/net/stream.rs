//! One stream's state and its transitions.
//!
//! A stream has at most one receive, one send and one connect outstanding. Its
//! place is kept until all of them have completed, because the kernel may be
//! reading its bytes; that its owner has gone only changes what is wanted.

use std::collections::VecDeque;

use rustix::io::Errno;

use super::Net;
use crate::buffers::{Received, SendBuf};
use crate::driver::{Closing, Completion, InFlight, Op, Outcome, Role, Socket, Token};
use crate::slab::Key;
use crate::tasks::Waiter;

/// Posted bytes, first posted first.
///
/// INVARIANT: while `in_flight`, the first buffer is neither changed, nor dropped,
/// nor are its bytes moved (moving a vector's header does not move its bytes).
#[derive(Default)]
pub(crate) struct SendSide {
    pub queue: VecDeque<SendBuf>,
    /// Bytes of the first buffer that the kernel has taken.
    pub taken: usize,
    /// Bytes in the queue that the kernel has not taken.
    pub bytes: usize,
    pub in_flight: bool,
    pub error: Option<Errno>,
    pub waiter: Waiter,
    /// The sending side is to be ended once the queue is empty.
    pub end_wanted: bool,
    pub ended: bool,
}

/// The receiving half.
#[derive(Default)]
pub(crate) struct ReceiveSide {
    pub queue: VecDeque<Received>,
    pub armed: bool,
    pub stopping: bool,
    /// No more will come: the peer's end, or an error.
    pub ended: Option<Result<(), Errno>>,
    pub waiter: Waiter,
}

/// The state of one stream.
pub(crate) struct StreamSlot {
    pub socket: Socket,
    pub receive: ReceiveSide,
    pub send: SendSide,
    /// Outstanding, or its result.
    pub connecting: bool,
    pub connected: Option<Result<(), Errno>>,
    pub connect_waiter: Waiter,
    pub dirty: bool,
    /// The owner has gone, and how the socket is to be closed.
    pub closing: Option<Closing>,
    closed: bool,
}

/// Small posts of one turn become one send; more than this is not worth copying.
const JOIN_BYTES_MAX: usize = 16 << 10;

fn join(last: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let fits = last.len() + bytes.len() <= JOIN_BYTES_MAX;
    if fits {
        last.extend_from_slice(bytes);
    }
    fits
}

impl StreamSlot {
    pub fn new(socket: Socket) -> StreamSlot {
        StreamSlot {
            socket,
            receive: ReceiveSide::default(),
            send: SendSide::default(),
            connecting: false,
            connected: None,
            connect_waiter: Waiter::Nobody,
            dirty: false,
            closing: None,
            closed: false,
        }
    }

    fn is_idle(&self) -> bool {
        !self.receive.armed && !self.send.in_flight && !self.connecting
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
                let bytes = InFlight::of(&first.as_slice()[send.taken..]);
                send.in_flight = true;
                let op = Op::Send(stream.socket, bytes);
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
            let outstanding = [
                (
                    stream.receive.armed && !stream.receive.stopping,
                    Role::Receive,
                ),
                (stream.send.in_flight, Role::Send),
                (stream.connecting, Role::Connect),
            ];
            for (_, role) in outstanding.into_iter().filter(|&(is, _)| is) {
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
            for sent in stream.send.queue {
                self.spares.give_back(sent);
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
            Ok(Outcome::Received(bytes)) if bytes.is_empty() => receive.ended = Some(Ok(())),
            Ok(Outcome::Received(bytes)) if stream.closing.is_none() => {
                receive.queue.push_back(bytes);
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
            receive.armed = false;
            receive.stopping = false;
            if stream.closing.is_some() {
                self.advance_close(token.key);
            }
        } else if full && !receive.stopping {
            receive.stopping = true;
            self.ops.push((Op::Cancel(stream.socket, token), token));
        }
    }

    pub(super) fn sent(&mut self, completion: Completion) {
        let key = completion.token.key;
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        let send = &mut stream.send;
        send.in_flight = false;
        match completion.outcome {
            Ok(Outcome::Sent(count)) => {
                send.taken += count;
                send.bytes -= count;
                let first_len = send.queue.front().map_or(0, |first| first.as_slice().len());
                if send.taken >= first_len {
                    send.taken = 0;
                    if let Some(sent) = send.queue.pop_front() {
                        self.spares.give_back(sent);
                    }
                }
            }
            Ok(_) => {}
            Err(errno) => send.error = Some(errno),
        }
        let finished = send.queue.is_empty();
        if finished || send.error.is_some() {
            send.waiter.wake(&self.queue);
        }
        if !finished || send.end_wanted || stream.closing.is_some() {
            self.touch(key);
        }
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
            Some(SendBuf::Owned(last)) if is_ours => join(last, bytes.as_slice()),
            _ => false,
        };
        if joined {
            self.spares.give_back(bytes);
        } else {
            send.queue.push_back(bytes);
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

    /// The owner has gone: posted bytes still go out, within the linger time.
    pub fn drop_stream(&mut self, key: Key) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        if stream.closing.is_none() {
            stream.closing = Some(Closing::Orderly);
            stream.receive.queue.clear();
            stream.receive.waiter = Waiter::Nobody;
            stream.send.waiter = Waiter::Nobody;
            stream.connect_waiter = Waiter::Nobody;
            if stream.connecting {
                // Nothing can be posted before the connection is there.
                stream.closing = Some(Closing::Reset);
            } else if !stream.send.queue.is_empty() {
                self.lingering.push(key);
            }
        }
        self.touch(key);
    }

    /// Closes at once, dropping what is unsent, and tells the peer so.
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
