//! The simulated network: sockets, the links between them, and events in time.
//!
//! A link is one direction of a connection. Its messages arrive in order; links
//! do not wait for each other. Bytes are copied when a send takes them, so a link
//! never looks at memory of a loop later.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use prony_base::{Instant, Nanos, Random};
use rustix::io::Errno;

use super::options::SimOptions;
use crate::buffers::{Empty, Pool, Received};
use crate::config::ListenOptions;
use crate::driver::{Closing, Completion, Completions, FilePart, InFlight, Op, OpOutcome, Role};
use crate::driver::{Socket, Token};
use crate::stamps::{self, Bracket};

/// The time that a connect to a full backlog waits before it tries again, as a
/// kernel's first retransmission does.
const SYN_AGAIN_AFTER: Nanos = Nanos::from_secs(1);
const FIRST_FREE_PORT: u16 = 32_768;

/// One side of a connection, or a socket on the way to it.
struct End {
    index: usize,
    local: SocketAddr,
    peer: SocketAddr,
    other: Option<Socket>,
    /// Arrived and not yet read.
    arrived: VecDeque<u8>,
    peer_ended: bool,
    broken: Option<Errno>,
    receive: Option<Token>,
    discard: Option<(Token, u64)>,
    read_planned: bool,
    connect: Option<Token>,
    /// A send that found no room.
    blocked: Option<(Token, Source)>,
    /// Bytes of this end that the other has not read.
    under_way: usize,
    last_arrival: Instant,
    write_ended: bool,
}

/// The bytes of a send.
#[derive(Clone, Copy)]
enum Source {
    Memory(InFlight),
    File(FilePart),
}

impl Source {
    fn len(&self) -> usize {
        match self {
            Source::Memory(bytes) => bytes.len(),
            Source::File(part) => usize::try_from(part.len()).unwrap_or(usize::MAX),
        }
    }

    /// The first `count` bytes; fewer where a file has ended.
    fn read(&self, count: usize) -> Result<Vec<u8>, Errno> {
        match self {
            Source::Memory(bytes) => Ok(bytes.as_slice()[..count].to_vec()),
            Source::File(part) => {
                let mut bytes = vec![0; count];
                let read = rustix::io::pread(part.file(), &mut bytes, part.offset())?;
                bytes.truncate(read);
                Ok(bytes)
            }
        }
    }
}

struct Listening {
    index: usize,
    local: SocketAddr,
    accept: Option<Token>,
    backlog: VecDeque<Socket>,
    backlog_max: usize,
}

enum Event {
    Syn {
        client: Socket,
    },
    Connected {
        client: Socket,
        result: Result<Socket, Errno>,
    },
    Bytes {
        to: Socket,
        bytes: Vec<u8>,
    },
    End {
        to: Socket,
    },
    Break {
        to: Socket,
    },
    Read {
        socket: Socket,
    },
    Room {
        of: Socket,
        bytes: usize,
    },
    Completed {
        index: usize,
        done: Arrival,
    },
}

/// A completion on its way to its loop, without a buffer as yet: buffers are the
/// loop's own.
struct Arrival {
    token: Token,
    outcome: Result<ArrivalOutcome, Errno>,
    more: bool,
}

enum ArrivalOutcome {
    Done,
    /// So many, at that time.
    Sent(u64, Instant),
    Bytes(Vec<u8>),
    Discarded(u64),
    Accepted(Socket),
}

/// All links and sockets of a world.
pub(super) struct Network {
    pub now: Instant,
    pub trace: u64,
    options: SimOptions,
    random: Random,
    ends: BTreeMap<Socket, End>,
    listeners: BTreeMap<Socket, Listening>,
    /// By time, then in random order.
    events: BTreeMap<(Instant, u64, u64), Event>,
    /// By loop.
    completions: Vec<VecDeque<Arrival>>,
    recv_buffer_bytes: Vec<usize>,
    next_socket: i32,
    next_event: u64,
    next_port: u16,
}

impl Network {
    pub fn new(seed: u64, options: SimOptions) -> Network {
        Network {
            now: Instant::ZERO,
            trace: 0xcbf2_9ce4_8422_2325,
            options,
            random: Random::of(seed, "network"),
            ends: BTreeMap::new(),
            listeners: BTreeMap::new(),
            events: BTreeMap::new(),
            completions: Vec::new(),
            recv_buffer_bytes: Vec::new(),
            next_socket: 1,
            next_event: 0,
            next_port: FIRST_FREE_PORT,
        }
    }

    /// A loop whose receive buffers have this size.
    pub fn add_loop(&mut self, recv_buffer_bytes: u32) -> usize {
        self.recv_buffer_bytes.push(recv_buffer_bytes as usize);
        self.completions.push(VecDeque::new());
        self.completions.len() - 1
    }

    /// Closes what a loop left open, with resets to its peers.
    pub fn remove_loop(&mut self, index: usize) {
        let listeners = self.listeners.iter().filter(|(_, one)| one.index == index);
        let ends = self.ends.iter().filter(|(_, one)| one.index == index);
        let left: Vec<Socket> = listeners
            .map(|(&socket, _)| socket)
            .chain(ends.map(|(&socket, _)| socket))
            .collect();
        for socket in left {
            self.close(socket, Closing::Reset);
        }
        self.completions[index].clear();
    }

    pub fn has_completions(&self, index: usize) -> bool {
        !self.completions[index].is_empty()
    }

    pub fn next_event(&self) -> Option<Instant> {
        self.events.keys().next().map(|&(time, _, _)| time)
    }

    /// Goes to `time` and lets the first event of that time happen, if there is one.
    pub fn advance(&mut self, time: Instant) {
        self.now = time;
        if let Some(entry) = self.events.first_entry()
            && entry.key().0 <= time
        {
            let event = entry.remove();
            self.happen(event);
        }
    }

    /// Moves a loop's completions to `done`, received bytes in its own buffers.
    pub fn take_completions(&mut self, index: usize, pool: &Rc<Pool>, done: &mut Completions) {
        let came = stamps::Arrival {
            reaped: self.now,
            since: self.now,
            slept: false,
            kernel: None,
        };
        for arrival in self.completions[index].drain(..) {
            let outcome = arrival.outcome.map(|outcome| match outcome {
                ArrivalOutcome::Done => OpOutcome::Done,
                ArrivalOutcome::Sent(count, at) => OpOutcome::Sent(count, exactly(at)),
                ArrivalOutcome::Discarded(count) => OpOutcome::Discarded(count),
                ArrivalOutcome::Accepted(socket) => OpOutcome::Accepted(socket),
                ArrivalOutcome::Bytes(bytes) => {
                    OpOutcome::Received(received(pool, &bytes).at(came))
                }
            });
            done.push(Completion {
                token: arrival.token,
                outcome,
                more: arrival.more,
            });
        }
    }

    pub fn listen(
        &mut self,
        index: usize,
        address: SocketAddr,
        options: &ListenOptions,
    ) -> Result<(Socket, SocketAddr), Errno> {
        let mut local = address;
        if local.port() == 0 {
            local.set_port(self.free_port());
        }
        let taken = self.listeners.values().any(|one| one.local == local);
        if taken && !options.reuse_port {
            return Err(Errno::ADDRINUSE);
        }
        let socket = self.new_socket();
        let listening = Listening {
            index,
            local,
            accept: None,
            backlog: VecDeque::new(),
            backlog_max: (options.backlog as usize).max(1),
        };
        self.listeners.insert(socket, listening);
        Ok((socket, local))
    }

    pub fn open(&mut self, index: usize, peer: SocketAddr, local: Option<SocketAddr>) -> Socket {
        let mut local = local.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        if local.port() == 0 {
            local.set_port(self.free_port());
        }
        self.new_end(index, local, peer, None)
    }

    pub fn addresses(&self, socket: Socket) -> Result<(SocketAddr, SocketAddr), Errno> {
        let end = self.ends.get(&socket).ok_or(Errno::NOTCONN)?;
        Ok((end.local, end.peer))
    }

    /// Takes an operation of loop `index`.
    pub fn submit(&mut self, index: usize, op: Op, token: Token) {
        self.note(1, token.pack());
        match op {
            Op::Accept(socket) => {
                if let Some(listening) = self.listeners.get_mut(&socket) {
                    listening.accept = Some(token);
                }
                self.accept_waiting(socket);
            }
            Op::Connect(socket, _) => {
                if let Some(end) = self.ends.get_mut(&socket) {
                    end.connect = Some(token);
                }
                let time = self.soon();
                self.plan(time, Event::Syn { client: socket });
            }
            Op::Receive(socket) => {
                if let Some(end) = self.ends.get_mut(&socket) {
                    end.receive = Some(token);
                }
                self.plan_read(socket);
            }
            Op::Discard(socket, count) => {
                if let Some(end) = self.ends.get_mut(&socket) {
                    end.discard = Some((token, count));
                }
                self.plan_read(socket);
            }
            Op::Send(socket, bytes, _) => self.send(socket, token, Source::Memory(bytes)),
            Op::SendFile(socket, part) => self.send(socket, token, Source::File(part)),
            Op::Readable(_) => self.complete(index, token, Err(Errno::OPNOTSUPP), false),
            Op::Cancel(socket, of) => self.cancel(index, socket, of),
            Op::ShutdownWrite(socket) => self.end_writing(socket),
            Op::Close(socket, closing) => self.close(socket, closing),
        }
    }

    fn new_socket(&mut self) -> Socket {
        self.next_socket += 1;
        // SAFETY: no descriptor, and no driver but that of this network gets it.
        unsafe { Socket::from_raw(self.next_socket) }
    }

    fn new_end(
        &mut self,
        index: usize,
        local: SocketAddr,
        peer: SocketAddr,
        other: Option<Socket>,
    ) -> Socket {
        let socket = self.new_socket();
        let end = End {
            index,
            local,
            peer,
            other,
            arrived: VecDeque::new(),
            peer_ended: false,
            broken: None,
            receive: None,
            discard: None,
            read_planned: false,
            connect: None,
            blocked: None,
            under_way: 0,
            last_arrival: self.now,
            write_ended: false,
        };
        self.ends.insert(socket, end);
        socket
    }

    fn free_port(&mut self) -> u16 {
        self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_FREE_PORT);
        self.next_port
    }

    /// FNV-1a over what happens.
    fn note(&mut self, what: u64, detail: u64) {
        for word in [what, detail, self.now.0] {
            for byte in word.to_le_bytes() {
                self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }

    fn soon(&mut self) -> Instant {
        self.now + Nanos(1 + self.random.below(self.options.delay_max.0))
    }

    fn plan(&mut self, time: Instant, event: Event) {
        self.next_event += 1;
        let order = self.random.next_u64();
        self.events.insert((time, order, self.next_event), event);
    }

    /// Plans a message that arrives after all earlier ones of this sender.
    fn plan_in_order(&mut self, from: Socket, event: Event) {
        let mut time = self.soon();
        if let Some(end) = self.ends.get_mut(&from) {
            time = time.max(end.last_arrival + Nanos(1));
            end.last_arrival = time;
        }
        self.plan(time, event);
    }

    fn complete(
        &mut self,
        index: usize,
        token: Token,
        outcome: Result<ArrivalOutcome, Errno>,
        more: bool,
    ) {
        self.note(2, token.pack());
        self.completions[index].push_back(Arrival {
            token,
            outcome,
            more,
        });
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Syn { client } => self.syn_arrives(client),
            Event::Connected { client, result } => self.connected(client, result),
            Event::Bytes { to, bytes } => self.bytes_arrive(to, bytes),
            Event::End { to } => {
                if let Some(end) = self.ends.get_mut(&to) {
                    end.peer_ended = true;
                    self.plan_read(to);
                }
            }
            Event::Break { to } => self.break_end(to),
            Event::Read { socket } => self.read(socket),
            Event::Room { of, bytes } => self.room(of, bytes),
            Event::Completed { index, done } => {
                self.complete(index, done.token, done.outcome, done.more);
            }
        }
    }

    /// A client's request to connect arrives where it was sent.
    fn syn_arrives(&mut self, client: Socket) {
        let Some(end) = self.ends.get(&client) else {
            return;
        };
        let (to, from) = (end.peer, end.local);
        let refused = self
            .random
            .chance(u64::from(self.options.refusals_per_million), 1_000_000);
        let there: Vec<Socket> = self
            .listeners
            .iter()
            .filter(|(_, one)| one.local.port() == to.port() && accepts(one.local, to))
            .map(|(&socket, _)| socket)
            .collect();
        if refused || there.is_empty() {
            let result = Err(Errno::CONNREFUSED);
            let time = self.soon();
            return self.plan(time, Event::Connected { client, result });
        }
        let chosen = there[self.random.below(there.len() as u64) as usize];
        let listening = &self.listeners[&chosen];
        if listening.backlog.len() >= listening.backlog_max {
            let again = self.now + SYN_AGAIN_AFTER;
            return self.plan(again, Event::Syn { client });
        }
        let index = listening.index;
        let server = self.new_end(index, to, from, Some(client));
        if let Some(listening) = self.listeners.get_mut(&chosen) {
            listening.backlog.push_back(server);
        }
        self.accept_waiting(chosen);
        let result = Ok(server);
        self.plan_in_order(server, Event::Connected { client, result });
    }

    fn connected(&mut self, client: Socket, result: Result<Socket, Errno>) {
        let Some(end) = self.ends.get_mut(&client) else {
            // Gone meanwhile: the server's side has no peer.
            if let Ok(server) = result {
                self.break_end(server);
            }
            return;
        };
        end.other = result.ok();
        let (index, token) = (end.index, end.connect.take());
        if let Some(token) = token {
            self.complete(index, token, result.map(|_| ArrivalOutcome::Done), false);
        }
    }

    fn accept_waiting(&mut self, listener: Socket) {
        let Some(listening) = self.listeners.get_mut(&listener) else {
            return;
        };
        let Some(token) = listening.accept else {
            return;
        };
        let index = listening.index;
        for socket in std::mem::take(&mut listening.backlog) {
            self.complete(index, token, Ok(ArrivalOutcome::Accepted(socket)), true);
        }
    }

    /// Takes what there is room for, or keeps the send until there is room.
    fn send(&mut self, socket: Socket, token: Token, source: Source) {
        let Some(end) = self.ends.get_mut(&socket) else {
            return;
        };
        let index = end.index;
        if end.broken.is_some() || end.write_ended || end.other.is_none() {
            let errno = end.broken.unwrap_or(Errno::PIPE);
            return self.complete(index, token, Err(errno), false);
        }
        let room = self.options.link_bytes_max.saturating_sub(end.under_way);
        if room == 0 {
            end.blocked = Some((token, source));
            return;
        }
        let most = source.len().min(room);
        let count = self.shortened(most, self.options.short_writes);
        let taken = match source.read(count) {
            Ok(taken) => taken,
            Err(errno) => return self.complete(index, token, Err(errno), false),
        };
        let count = taken.len();
        let Some(end) = self.ends.get_mut(&socket) else {
            return;
        };
        end.under_way += count;
        let other = end.other;
        if let Some(to) = other.filter(|_| count > 0) {
            self.plan_in_order(socket, Event::Bytes { to, bytes: taken });
        }
        let resets = u64::from(self.options.resets_per_million);
        if self.random.chance(resets, 1_000_000) {
            self.break_both(socket);
        }
        // Like a ring's completion, it may be a while before the loop gets it.
        let outcome = Ok(ArrivalOutcome::Sent(count as u64, self.now));
        if self.random.chance(1, 2) {
            return self.complete(index, token, outcome, false);
        }
        let time = self.soon();
        let done = Arrival {
            token,
            outcome,
            more: false,
        };
        self.plan(time, Event::Completed { index, done });
    }

    fn break_both(&mut self, socket: Socket) {
        let other = self.ends.get(&socket).and_then(|end| end.other);
        for to in other.into_iter().chain([socket]) {
            let time = self.soon();
            self.plan(time, Event::Break { to });
        }
    }

    /// Fewer than `most`, a third of the time; never zero.
    fn shortened(&mut self, most: usize, wanted: bool) -> usize {
        if wanted && most > 1 && self.random.chance(1, 3) {
            return 1 + self.random.below(most as u64 - 1) as usize;
        }
        most
    }

    fn bytes_arrive(&mut self, to: Socket, bytes: Vec<u8>) {
        self.note(3, bytes.len() as u64);
        match self.ends.get_mut(&to) {
            Some(end) if end.broken.is_none() => {
                end.arrived.extend(bytes);
                self.plan_read(to);
            }
            Some(_) => {}
            // There is no such socket any more: a kernel answers with a reset.
            None => {
                let sender = self.ends.iter().find(|(_, end)| end.other == Some(to));
                if let Some(sender) = sender.map(|(&socket, _)| socket) {
                    let time = self.soon();
                    self.plan(time, Event::Break { to: sender });
                }
            }
        }
    }

    fn break_end(&mut self, socket: Socket) {
        let Some(end) = self.ends.get_mut(&socket) else {
            return;
        };
        end.broken = Some(Errno::CONNRESET);
        let (index, blocked) = (end.index, end.blocked.take());
        if let Some((token, _)) = blocked {
            self.complete(index, token, Err(Errno::CONNRESET), false);
        }
        self.plan_read(socket);
    }

    /// Plans a read where a receive is outstanding and there is something to report.
    fn plan_read(&mut self, socket: Socket) {
        let Some(end) = self.ends.get_mut(&socket) else {
            return;
        };
        let news = !end.arrived.is_empty() || end.peer_ended || end.broken.is_some();
        let wanted = end.receive.is_some() || end.discard.is_some();
        if wanted && news && !std::mem::replace(&mut end.read_planned, true) {
            let time = self.soon();
            self.plan(time, Event::Read { socket });
        }
    }

    fn read(&mut self, socket: Socket) {
        let short = self.options.short_reads;
        let Some(end) = self.ends.get_mut(&socket) else {
            return;
        };
        end.read_planned = false;
        let (index, available) = (end.index, end.arrived.len());
        // As many as are wanted, and whether they are wanted for good.
        let (token, most, keeps) = match (end.receive, end.discard) {
            (Some(token), _) => (token, self.recv_buffer_bytes[index], true),
            (None, Some((token, count))) => {
                (token, usize::try_from(count).unwrap_or(usize::MAX), false)
            }
            (None, None) => return,
        };
        let outcome = |bytes: Vec<u8>| match keeps {
            true => ArrivalOutcome::Bytes(bytes),
            false => ArrivalOutcome::Discarded(bytes.len() as u64),
        };
        if available == 0 {
            // It is planned only where something has arrived, or nothing more does.
            let outcome = match end.broken {
                Some(errno) => Err(errno),
                None => Ok(outcome(Vec::new())),
            };
            (end.receive, end.discard) = (None, None);
            return self.complete(index, token, outcome, false);
        }
        let count = self.shortened(available.min(most), short);
        let Some(end) = self.ends.get_mut(&socket) else {
            return;
        };
        let bytes: Vec<u8> = end.arrived.drain(..count).collect();
        end.discard = None;
        let other = end.other;
        self.complete(index, token, Ok(outcome(bytes)), keeps);
        if let Some(of) = other {
            let time = self.soon();
            self.plan(time, Event::Room { of, bytes: count });
        }
        self.plan_read(socket);
    }

    fn room(&mut self, of: Socket, bytes: usize) {
        let Some(end) = self.ends.get_mut(&of) else {
            return;
        };
        end.under_way = end.under_way.saturating_sub(bytes);
        if let Some((token, source)) = end.blocked.take() {
            self.send(of, token, source);
        }
    }

    fn cancel(&mut self, index: usize, socket: Socket, of: Token) {
        let mut there = false;
        if let Some(end) = self.ends.get_mut(&socket) {
            there = match of.role {
                Role::Receive | Role::ReceiveStamped => {
                    end.receive.take_if(|token| *token == of).is_some()
                }
                Role::Discard => end.discard.take_if(|(token, _)| *token == of).is_some(),
                Role::Connect => end.connect.take_if(|token| *token == of).is_some(),
                Role::Send => end.blocked.take_if(|(token, _)| *token == of).is_some(),
                Role::Accept | Role::Readable | Role::Driver => false,
            };
        } else if let Some(listening) = self.listeners.get_mut(&socket) {
            there = listening.accept.take_if(|token| *token == of).is_some();
        }
        if there {
            self.complete(index, of, Err(Errno::CANCELED), false);
        }
    }

    fn end_writing(&mut self, socket: Socket) {
        let Some(end) = self.ends.get_mut(&socket) else {
            return;
        };
        let first = !std::mem::replace(&mut end.write_ended, true);
        if let Some(to) = end.other.filter(|_| first) {
            self.plan_in_order(socket, Event::End { to });
        }
    }

    fn close(&mut self, socket: Socket, closing: Closing) {
        if let Some(listening) = self.listeners.remove(&socket) {
            for waiting in listening.backlog {
                self.close(waiting, Closing::Reset);
            }
            return;
        }
        let Some(end) = self.ends.get(&socket) else {
            return;
        };
        // As TCP does: unread bytes make an orderly close a reset.
        if closing == Closing::Orderly && end.arrived.is_empty() {
            self.end_writing(socket);
        } else if let Some(to) = end.other {
            self.plan_in_order(socket, Event::Break { to });
        }
        self.ends.remove(&socket);
    }
}

/// This very moment: the clock stands still while anything happens.
pub(super) fn exactly(at: Instant) -> Bracket {
    Bracket { from: at, to: at }
}

fn received(pool: &Rc<Pool>, bytes: &[u8]) -> Received {
    if bytes.is_empty() {
        return Received::end();
    }
    let mut buffer = Empty::pooled(pool).unwrap_or_else(|| Empty::own(pool));
    buffer.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
    buffer.filled(bytes.len())
}

fn accepts(local: SocketAddr, to: SocketAddr) -> bool {
    local.ip().is_unspecified() || local.ip() == to.ip()
}
