//! Streams, listeners and watched descriptors of one loop, as state: what each
//! has received, has yet to send, and waits for.
//!
//! Public types queue operations here; [`Net::flush`] turns what is queued into
//! operations once per turn; [`Net::complete`] turns completions into state and
//! wakes. Not for: system calls (drivers) or futures (`stream`).

mod stream;

use std::collections::VecDeque;
use std::rc::Rc;

use prony_base::Nanos;
use rustix::io::Errno;

pub(crate) use stream::{FILE_TOO_SHORT, ReceiveMode, StreamSlot};

use crate::buffers::Spares;
use crate::config::Config;
use crate::driver::{Closing, Completion, Completions, Driver, Op, OpOutcome, Role, Socket, Token};
use crate::slab::{Key, Slab};
use crate::tasks::{RunQueue, Waiter};

/// Limits that streams obey.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub recv_queue_max: usize,
    pub post_bytes_max: usize,
    pub linger: Nanos,
}

/// A listening socket.
pub(crate) struct ListenerSlot {
    pub socket: Socket,
    pub accepted: VecDeque<Socket>,
    pub accept_queue_max: usize,
    pub accepting: bool,
    pub stopping: bool,
    pub owner_gone: bool,
    pub error: Option<Errno>,
    pub waiter: Waiter,
}

/// A descriptor that a task waits on.
pub(crate) struct ReadableSlot {
    pub socket: Socket,
    pub result: Option<Result<(), Errno>>,
    pub waiter: Waiter,
}

/// All sockets of one loop.
pub(crate) struct Net {
    pub streams: Slab<StreamSlot>,
    pub listeners: Slab<ListenerSlot>,
    pub readables: Slab<ReadableSlot>,
    pub spares: Spares,
    pub limits: Limits,
    /// Operations to submit in the next flush, beside the streams' sends.
    ops: Vec<(Op, Token)>,
    /// Streams with something new to send or to end.
    dirty: Vec<Key>,
    /// Streams whose owner has gone with bytes unsent, to be given a time limit.
    pub lingering: Vec<Key>,
    /// Sides that end now, by their sockets.
    ends: Vec<(Socket, Token)>,
    pub submissions: u64,
    pub completions: u64,
    queue: Rc<RunQueue>,
}

impl Net {
    pub fn new(config: &Config, queue: Rc<RunQueue>) -> Net {
        Net {
            streams: Slab::new(),
            listeners: Slab::new(),
            readables: Slab::new(),
            spares: Spares::new(config.send_buffers_max, config.send_buffer_bytes_max),
            limits: Limits {
                recv_queue_max: config.recv_queue_max as usize,
                post_bytes_max: config.post_bytes_max,
                linger: config.linger,
            },
            ops: Vec::new(),
            dirty: Vec::new(),
            lingering: Vec::new(),
            ends: Vec::new(),
            submissions: 0,
            completions: 0,
            queue,
        }
    }

    /// Queues an operation for the next flush.
    pub fn queue_op(&mut self, op: Op, token: Token) {
        self.ops.push((op, token));
    }

    /// Marks a stream for the next flush.
    pub fn touch(&mut self, key: Key) {
        if let Some(stream) = self.streams.get_mut(key)
            && !std::mem::replace(&mut stream.dirty, true)
        {
            self.dirty.push(key);
        }
    }

    /// True when a flush would submit something.
    pub fn has_pending_ops(&self) -> bool {
        !self.ops.is_empty() || !self.dirty.is_empty()
    }

    /// Submits everything that is queued to the driver.
    pub fn flush(&mut self, driver: &mut dyn Driver, done: &mut Completions) {
        for index in 0..self.dirty.len() {
            self.advance(self.dirty[index]);
        }
        self.dirty.clear();
        self.submissions += self.ops.len() as u64;
        for (op, token) in self.ops.drain(..) {
            driver.submit(op, token, done);
        }
    }

    /// Takes in what has happened, and ends the sides that have sent all. Tasks become due; none runs here.
    pub fn take_in(&mut self, driver: &mut dyn Driver, done: &mut Completions) {
        self.complete(done);
        for (socket, token) in self.ends.drain(..) {
            driver.submit(Op::ShutdownWrite(socket), token, done);
        }
    }

    fn complete(&mut self, done: &mut Completions) {
        self.completions += done.len() as u64;
        for completion in done.drain(..) {
            match completion.token.role {
                Role::Receive | Role::ReceiveStamped => self.received(completion),
                Role::Discard => self.discarded(completion),
                Role::Send => self.sent(completion),
                Role::Connect => self.connected(completion),
                Role::Accept => self.accepted(completion),
                Role::Readable => self.readable(completion),
                Role::Driver => {}
            }
        }
    }

    fn accepted(&mut self, completion: Completion) {
        let Completion {
            token,
            outcome,
            more,
        } = completion;
        let listener = self.listeners.get_mut(token.key);
        match (listener, outcome) {
            (Some(listener), Ok(OpOutcome::Accepted(socket))) if !listener.owner_gone => {
                listener.accepted.push_back(socket);
                listener.waiter.wake(&self.queue);
                let full = listener.accepted.len() >= listener.accept_queue_max;
                if full && more && !listener.stopping {
                    listener.stopping = true;
                    self.ops.push((Op::Cancel(listener.socket, token), token));
                }
            }
            // No task will ever take it: the peer gets a reset.
            (_, Ok(OpOutcome::Accepted(socket))) => {
                self.ops.push((Op::Close(socket, Closing::Reset), token));
            }
            (Some(listener), Err(errno)) if errno != Errno::CANCELED => {
                listener.error = Some(errno);
                listener.waiter.wake(&self.queue);
            }
            _ => {}
        }
        if !more {
            self.accepting_ended(token);
        }
    }

    fn accepting_ended(&mut self, token: Token) {
        let Some(listener) = self.listeners.get_mut(token.key) else {
            return;
        };
        listener.accepting = false;
        listener.stopping = false;
        if listener.owner_gone {
            self.listeners.remove(token.key);
        } else if listener.waiter.is_set() {
            // A task still waits: it starts it again.
            listener.waiter.wake(&self.queue);
        }
    }

    /// Closes a listener: what it accepted and no task took is reset. Yields its waiter, to
    /// be dropped when nothing is borrowed.
    pub fn close_listener(&mut self, key: Key) -> Waiter {
        let Some(listener) = self.listeners.get_mut(key) else {
            return Waiter::Nothing;
        };
        if std::mem::replace(&mut listener.owner_gone, true) {
            return Waiter::Nothing;
        }
        let left = std::mem::take(&mut listener.waiter);
        let token = Token::new(Role::Accept, key);
        for socket in listener.accepted.drain(..) {
            self.ops.push((Op::Close(socket, Closing::Reset), token));
        }
        if listener.accepting && !listener.stopping {
            self.ops.push((Op::Cancel(listener.socket, token), token));
        }
        self.ops
            .push((Op::Close(listener.socket, Closing::Orderly), token));
        if !listener.accepting {
            self.listeners.remove(key);
        }
        left
    }

    fn readable(&mut self, completion: Completion) {
        if let Some(slot) = self.readables.get_mut(completion.token.key) {
            slot.result = Some(completion.outcome.map(|_| ()));
            slot.waiter.wake(&self.queue);
        }
    }

    /// Stops waiting for a descriptor. Yields its waiter, to be dropped when nothing is
    /// borrowed.
    pub fn forget_readable(&mut self, key: Key) -> Waiter {
        let Some(slot) = self.readables.remove(key) else {
            return Waiter::Nothing;
        };
        if slot.result.is_none() {
            let token = Token::new(Role::Readable, key);
            self.queue_op(Op::Cancel(slot.socket, token), token);
        }
        slot.waiter
    }

    /// Drops every stream's owner, as the end of the loop does. Yields all waiters, to
    /// be dropped when nothing is borrowed.
    #[must_use = "dropping it may run any code"]
    pub fn close_all(&mut self) -> Vec<Waiter> {
        let mut left = Vec::new();
        for key in self.streams.keys() {
            left.extend(self.drop_stream(key));
        }
        for key in self.listeners.keys() {
            left.push(self.close_listener(key));
        }
        for key in self.readables.keys() {
            left.push(self.forget_readable(key));
        }
        left
    }

    /// Resets every stream that is left.
    pub fn reset_all(&mut self) {
        for key in self.streams.keys() {
            self.reset_stream(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::{Empty, Pool};
    use crate::tasks::Tasks;

    fn socket(number: i32) -> Socket {
        // SAFETY: no driver gets it.
        unsafe { Socket::from_raw(number) }
    }

    fn net() -> Net {
        Net::new(&Config::default(), Tasks::new(50_000).queue.clone())
    }

    fn received(key: Key, bytes: &[u8]) -> Completion {
        let mut buffer = Empty::own(&Pool::new(64, 1));
        buffer.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        Completion {
            token: Token::new(Role::Receive, key),
            outcome: Ok(OpOutcome::Received(buffer.filled(bytes.len()))),
            more: true,
        }
    }

    #[test]
    fn a_completion_for_a_stream_that_is_gone_reaches_nobody_else() {
        let mut net = net();
        let old = net.streams.insert(StreamSlot::new(socket(10)));
        net.streams.remove(old);
        let new = net.streams.insert(StreamSlot::new(socket(11)));
        assert_eq!(old.index, new.index);
        net.complete(&mut vec![received(old, b"for the old one")]);
        assert_eq!(net.streams.get(new).map(|s| s.receive.queue.len()), Some(0));
        net.complete(&mut vec![received(new, b"for the new one")]);
        assert_eq!(net.streams.get(new).map(|s| s.receive.queue.len()), Some(1));
    }

    #[test]
    fn an_accept_after_its_listener_is_gone_closes_the_connection() {
        let mut net = net();
        let token = Token::new(
            Role::Accept,
            Key {
                index: 7,
                generation: 1,
            },
        );
        net.complete(&mut vec![Completion {
            token,
            outcome: Ok(OpOutcome::Accepted(socket(12))),
            more: false,
        }]);
        let closes = |(op, _): &(Op, Token)| matches!(op, Op::Close(of, Closing::Reset) if *of == socket(12));
        assert!(net.ops.iter().any(closes));
    }

    #[test]
    fn a_stream_that_nobody_reads_stops_receiving_at_its_limit() {
        let mut net = net();
        let key = net.streams.insert(StreamSlot::new(socket(13)));
        for _ in 0..net.limits.recv_queue_max + 5 {
            net.complete(&mut vec![received(key, b"unread")]);
        }
        let token = Token::new(Role::Receive, key);
        let cancels = |op: &&(Op, Token)| matches!(op.0, Op::Cancel(_, of) if of == token);
        assert_eq!(net.ops.iter().filter(cancels).count(), 1);
    }
}
