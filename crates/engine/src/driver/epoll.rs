//! The driver on epoll: level-triggered, a descriptor registered once; writes
//! tried at once and waited for only when the kernel takes no more. Coalescing is a
//! pause before the wait: nothing wakes the thread in it, which is what saves work.
//! Not for: deciding anything; it only turns readiness into completions.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use prony_base::{Instant, Nanos, clock};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, accept_with, connect, recv, send, shutdown, sockopt,
};
use rustix::thread::{ClockId, clock_nanosleep_relative, set_current_timer_slack};

use super::kernel_stamps::{self, WallClock};
use super::socket;
use super::{
    Blocking, Coalescing, Completion, Completions, Driver, DriverStats, FilePart, InFlight, Op,
    OpOutcome, Role, Socket, Token, Wait,
};
use crate::buffers::{Empty, Pool};
use crate::config::{Config, ConnectOptions, DriverKind, ListenOptions};
use crate::remote::Remote;
use crate::stamps::{Arrival, Bracket};
use crate::thread::PRECISE_SLACK_NS;

/// Events taken in one call.
const EVENTS_MAX: usize = 512;
/// Full buffers read from one socket in one turn before the others have theirs.
const BURST_MAX: usize = 16;
/// Connections accepted in one turn before the others have theirs.
const ACCEPTS_MAX: usize = 64;
/// The event data of the descriptor that other threads wake us by.
const WAKER: u64 = u64::MAX;

/// Nothing ends a pause, so it is short whatever is asked for.
const PAUSE_MAX: Nanos = Nanos::from_millis(1);
/// By how much the kernel may prolong a pause; by default it is 50 µs.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::new(1_000).expect("not zero");

/// Waits up to this long are prolonged by no more than 50 ns.
const LATE_FROM: Nanos = Nanos::from_micros(50);
/// A call that took no longer than this, and as much more for each event, has not slept: to
/// be put to sleep and woken takes longer.
const AWAKE_MAX: Nanos = Nanos(2_000);
const AWAKE_PER_EVENT: Nanos = Nanos(100);

/// The operations that wait for one descriptor.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// The interest that epoll has; None before the first time.
    interest: Option<epoll::EventFlags>,
    receive: Option<Token>,
    accept: Option<Token>,
    connect: Option<Token>,
    send: Option<(Token, InFlight)>,
    file: Option<(Token, FilePart)>,
    discard: Option<(Token, u64)>,
    readable: Option<Token>,
}

impl Entry {
    fn wants(&self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        let reads = [self.receive, self.accept, self.readable];
        if reads.iter().any(Option::is_some) || self.discard.is_some() {
            flags |= epoll::EventFlags::IN;
        }
        if self.connect.is_some() || self.send.is_some() || self.file.is_some() {
            flags |= epoll::EventFlags::OUT;
        }
        flags
    }
}

/// The driver on epoll.
pub(crate) struct Epoll {
    epoll: OwnedFd,
    pool: Rc<Pool>,
    /// By descriptor.
    entries: Vec<Entry>,
    events: Vec<epoll::Event>,
    enters: u64,
    spin: bool,
    precise_timers: bool,
    coalescing: Coalescing,
    /// The arrival of the completions of this turn.
    arrival: Arrival,
    /// The last time at which the kernel had reported everything that had arrived.
    all_reported: Instant,
    /// The kernel may have more than it reported in this turn.
    is_behind: bool,
    /// For the kernel's stamps, once there are some.
    wall: Option<WallClock>,
    /// The clock as it was read after the last send of this turn.
    last_sent: Option<Instant>,
}

impl Epoll {
    pub fn new(pool: Rc<Pool>, remote: &Remote, config: &Config) -> io::Result<Epoll> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        if let Some(event) = remote.event() {
            let data = epoll::EventData::new_u64(WAKER);
            // Edge-triggered: each write is reported once, so that it need not be read.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&epoll, event, data, flags)?;
        }
        Ok(Epoll {
            epoll,
            pool,
            entries: Vec::new(),
            events: Vec::with_capacity(EVENTS_MAX),
            enters: 0,
            spin: config.spin,
            precise_timers: config.precise_timers,
            coalescing: Coalescing::default(),
            arrival: Arrival::default(),
            all_reported: clock::monotonic(),
            is_behind: false,
            wall: None,
            last_sent: None,
        })
    }

    fn entry(&mut self, socket: Socket) -> &mut Entry {
        let index = socket.raw() as usize;
        if self.entries.len() <= index {
            self.entries.resize(index + 1, Entry::default());
        }
        &mut self.entries[index]
    }

    /// Tells epoll what the descriptor waits for, if that is more than before.
    /// Readiness for reading is left on when nothing reads for a moment, and only
    /// taken back when an event comes that no operation waits for.
    fn watch(&mut self, socket: Socket) -> Result<(), Errno> {
        let entry = self.entry(socket);
        let wants = entry.wants();
        match entry.interest {
            Some(interest) if interest.contains(wants) => Ok(()),
            _ => self.set_interest(socket, wants),
        }
    }

    fn set_interest(&mut self, socket: Socket, wants: epoll::EventFlags) -> Result<(), Errno> {
        let entry = self.entry(socket);
        let before = entry.interest.replace(wants);
        let data = epoll::EventData::new_u64(socket.raw() as u64);
        match before {
            None => epoll::add(&self.epoll, socket.fd(), data, wants),
            Some(_) => epoll::modify(&self.epoll, socket.fd(), data, wants),
        }
    }

    /// Watches for an operation that just began; it fails at once if that fails.
    fn begin(&mut self, socket: Socket, token: Token, done: &mut Completions) {
        if let Err(errno) = self.watch(socket) {
            self.forget(socket, token);
            // A descriptor that epoll never knew is to be added afresh next time.
            self.entry(socket).interest = None;
            finish(done, token, Err(errno));
        }
    }

    fn forget(&mut self, socket: Socket, token: Token) {
        let entry = self.entry(socket);
        match token.role {
            Role::Receive | Role::ReceiveStamped => entry.receive = None,
            Role::Accept => entry.accept = None,
            Role::Connect => entry.connect = None,
            Role::Send => (entry.send, entry.file) = (None, None),
            Role::Discard => entry.discard = None,
            Role::Readable => {
                entry.readable = None;
                // Not ours: its owner may close it and the number come again.
                self.unregister(socket);
            }
            Role::Driver => {}
        }
    }

    fn unregister(&mut self, socket: Socket) {
        if self.entry(socket).interest.take().is_some() {
            // Fails only if it is closed, and then it is unregistered already.
            let _ = epoll::delete(&self.epoll, socket.fd());
        }
    }

    fn send(
        &mut self,
        socket: Socket,
        bytes: InFlight,
        is_last: bool,
        token: Token,
        done: &mut Completions,
    ) {
        let from = self.last_sent.unwrap_or_else(clock::monotonic);
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, is_last);
        let result = send(socket.fd(), bytes.as_slice(), flags);
        let at = self.sent_since(from);
        match result {
            Err(Errno::AGAIN) => {
                done.push(Completion {
                    token,
                    outcome: Ok(OpOutcome::Offered(at)),
                    more: true,
                });
                self.entry(socket).send = Some((token, bytes));
                self.begin(socket, token, done);
            }
            result => finish(
                done,
                token,
                result.map(|count| OpOutcome::Sent(count as u64, at)),
            ),
        }
    }

    /// The bracket of a send that has just been made; the next one may begin with its end.
    fn sent_since(&mut self, from: Instant) -> Bracket {
        let to = clock::monotonic();
        self.last_sent = Some(to);
        Bracket { from, to }
    }

    fn connect(&mut self, socket: Socket, to: SocketAddr, token: Token, done: &mut Completions) {
        match connect(socket.fd(), &to) {
            Err(Errno::INPROGRESS | Errno::INTR) => {
                self.entry(socket).connect = Some(token);
                self.begin(socket, token, done);
            }
            result => finish(done, token, result.map(|()| OpOutcome::Done)),
        }
    }

    fn cancel(&mut self, token: Token, socket: Socket, done: &mut Completions) {
        let entry = self.entry(socket);
        let there = match token.role {
            Role::Receive | Role::ReceiveStamped => entry.receive == Some(token),
            Role::Accept => entry.accept == Some(token),
            Role::Connect => entry.connect == Some(token),
            Role::Send => {
                entry.send.is_some_and(|(sending, _)| sending == token)
                    || entry.file.is_some_and(|(sending, _)| sending == token)
            }
            Role::Discard => entry.discard.is_some_and(|(of, _)| of == token),
            Role::Readable => entry.readable == Some(token),
            Role::Driver => false,
        };
        if there {
            self.forget(socket, token);
            finish(done, token, Err(Errno::CANCELED));
        }
    }

    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let before = clock::monotonic();
        let timeout = match wait {
            Wait::Not => Some(zero),
            Wait::Until(_) if self.spin => Some(zero),
            Wait::Until(Instant::NEVER) => None,
            Wait::Until(deadline) => {
                let left = self.wait_length(deadline.since(before)).0;
                Some(Timespec {
                    tv_sec: (left / 1_000_000_000) as i64,
                    tv_nsec: (left % 1_000_000_000) as i64,
                })
            }
        };
        self.enters += 1;
        self.events.clear();
        let result = match timeout {
            // Only that call has a time-out in nanoseconds.
            Some(timeout) if self.precise_timers && timeout != zero => {
                wait_precisely(&self.epoll, &mut self.events, timeout)
            }
            _ => {
                let events = rustix::buffer::spare_capacity(&mut self.events);
                epoll::wait(&self.epoll, events, timeout.as_ref()).map(drop)
            }
        };
        if matches!(result, Err(Errno::NOSYS | Errno::PERM)) {
            // Linux before 5.11, or a sandbox: to the millisecond from the next turn on.
            self.precise_timers = false;
            return Ok(());
        }
        let result = match result {
            Ok(()) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        };
        let after = clock::monotonic();
        let may_sleep = timeout.is_none_or(|timeout| timeout != zero);
        self.arrival = Arrival {
            reaped: after,
            since: self.all_reported,
            slept: may_sleep && has_slept(after.since(before), self.events.len()),
            kernel: None,
        };
        self.is_behind = self.events.len() >= EVENTS_MAX;
        result
    }

    /// The length of a wait where so much is left. The kernel may prolong a wait by a thousandth
    /// of it; with precise timers most of it is waited for first.
    fn wait_length(&self, left: Nanos) -> Nanos {
        match self.precise_timers && left > LATE_FROM {
            true => Nanos(left.0 - left.0 / 500),
            false => left,
        }
    }

    /// Sleeps so that more happens before the kernel is asked, unless there was enough last time.
    fn coalesce_events(&self, wait: Wait) {
        let Wait::Until(deadline) = wait else {
            return;
        };
        let enough = self.events.len() >= self.coalescing.completions as usize;
        if self.coalescing.wait == Nanos::ZERO || enough {
            return;
        }
        let length = self.coalescing.wait.min(deadline.since(self.now()));
        let length = Timespec {
            tv_sec: 0,
            tv_nsec: length.0 as i64,
        };
        // A signal may end it early, which does no harm.
        let _ = clock_nanosleep_relative(ClockId::Monotonic, &length);
    }

    fn ready(&mut self, socket: Socket, flags: epoll::EventFlags, done: &mut Completions) {
        let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
        let entry = *self.entry(socket);
        let mut unwanted = false;
        if broken || flags.contains(epoll::EventFlags::OUT) {
            unwanted |= !self.writable(socket, entry, done) && !broken;
        }
        if broken || flags.contains(epoll::EventFlags::IN) {
            unwanted |= !self.readable(socket, entry, done);
        }
        if unwanted {
            self.narrow_interest(socket);
        }
    }

    /// No operation waits for what is ready: stops the kernel from reporting it each turn.
    fn narrow_interest(&mut self, socket: Socket) {
        let wants = self.entry(socket).wants();
        if wants.is_empty() {
            // Errors and hang-ups are reported whatever is asked for.
            self.unregister(socket);
        } else if self.set_interest(socket, wants).is_err() {
            self.unregister(socket);
        }
    }

    fn writable(&mut self, socket: Socket, entry: Entry, done: &mut Completions) -> bool {
        if let Some(token) = entry.connect {
            self.entry(socket).connect = None;
            let result = sockopt::socket_error(socket.fd()).and_then(|result| result);
            finish(done, token, result.map(|()| OpOutcome::Done));
            return true;
        }
        if let Some((token, part)) = entry.file {
            self.send_file(socket, part, token, done);
            return true;
        }
        let Some((token, bytes)) = entry.send else {
            return false;
        };
        self.entry(socket).send = None;
        // After a wait one segment more is of no account.
        self.send(socket, bytes, false, token, done);
        true
    }

    fn send_file(&mut self, socket: Socket, part: FilePart, token: Token, done: &mut Completions) {
        let from = clock::monotonic();
        let result = socket::send_file(socket, part);
        let at = self.sent_since(from);
        match result {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => {
                self.entry(socket).file = None;
                finish(done, token, result.map(|count| OpOutcome::Sent(count, at)));
            }
        }
    }

    fn discard(&mut self, socket: Socket, count: u64, token: Token, done: &mut Completions) {
        match socket::discard(socket, count) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => {
                self.entry(socket).discard = None;
                finish(done, token, result.map(OpOutcome::Discarded));
            }
        }
    }

    fn readable(&mut self, socket: Socket, entry: Entry, done: &mut Completions) -> bool {
        if let Some(token) = entry.receive {
            self.receive(socket, token, done);
        } else if let Some((token, count)) = entry.discard {
            self.discard(socket, count, token, done);
        } else if let Some(token) = entry.accept {
            self.accept(socket, token, done);
        } else if let Some(token) = entry.readable {
            self.forget(socket, token);
            finish(done, token, Ok(OpOutcome::Done));
        } else {
            return false;
        }
        true
    }

    fn receive(&mut self, socket: Socket, token: Token, done: &mut Completions) {
        for _ in 0..BURST_MAX {
            let mut buffer = Empty::pooled(&self.pool).unwrap_or_else(|| Empty::own(&self.pool));
            let result = match token.role {
                Role::ReceiveStamped => kernel_stamps::receive(socket.fd(), buffer.as_mut_slice()),
                _ => recv(socket.fd(), buffer.as_mut_slice(), RecvFlags::empty())
                    .map(|(_, len)| (len, None)),
            };
            let received = match result {
                Ok((len, stamp)) => buffer.filled(len).at(self.arrived_now(stamp)),
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(errno) => {
                    self.entry(socket).receive = None;
                    return finish(done, token, Err(errno));
                }
            };
            let (full, ended) = (received.is_full(), received.is_empty());
            done.push(Completion {
                token,
                outcome: Ok(OpOutcome::Received(received)),
                more: !ended,
            });
            if ended {
                self.entry(socket).receive = None;
            }
            if !full || ended {
                return;
            }
        }
        self.is_behind = true;
    }

    /// The arrival of what was just received, with the kernel's stamp of it.
    fn arrived_now(&mut self, stamp: Option<u64>) -> Arrival {
        let mut arrival = Arrival {
            reaped: clock::monotonic(),
            ..self.arrival
        };
        if let Some(stamp) = stamp {
            let wall = self.wall.get_or_insert_with(WallClock::new);
            wall.look();
            arrival.kernel = wall.monotonic(stamp, &arrival);
        }
        arrival
    }

    fn accept(&mut self, listener: Socket, token: Token, done: &mut Completions) {
        for _ in 0..ACCEPTS_MAX {
            match accept_with(listener.fd(), Blocking::No.flags()) {
                Ok(fd) => done.push(Completion {
                    token,
                    outcome: Ok(OpOutcome::Accepted(Socket::own(fd))),
                    more: true,
                }),
                Err(Errno::AGAIN) => return,
                // The connection was gone before it was accepted.
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(errno) => {
                    self.entry(listener).accept = None;
                    return finish(done, token, Err(errno));
                }
            }
        }
    }
}

/// Waits to the nanosecond, and puts what is ready into `events`, which is empty.
fn wait_precisely(
    epoll: &OwnedFd,
    events: &mut Vec<epoll::Event>,
    timeout: Timespec,
) -> Result<(), Errno> {
    let time = libc::timespec {
        tv_sec: timeout.tv_sec,
        tv_nsec: timeout.tv_nsec,
    };
    // SAFETY: the kernel writes at most so many events, which fit the room behind `events`
    // and are laid out as these, and reads one time, which lives across the call.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            events.capacity() as libc::c_int,
            &raw const time,
            std::ptr::null::<libc::sigset_t>(),
            0,
        )
    };
    let Ok(count) = usize::try_from(count) else {
        let error = io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    };
    // SAFETY: the kernel has written so many, not more than fit.
    unsafe { events.set_len(count) };
    Ok(())
}

/// Whether a call of this length that brought so many events was asleep in between.
fn has_slept(length: Nanos, events: usize) -> bool {
    length > AWAKE_MAX + AWAKE_PER_EVENT * events as u64
}

fn finish(done: &mut Completions, token: Token, outcome: Result<OpOutcome, Errno>) {
    done.push(Completion {
        token,
        outcome,
        more: false,
    });
}

impl Driver for Epoll {
    fn kind(&self) -> DriverKind {
        DriverKind::Epoll
    }

    fn blocking(&self) -> Option<Blocking> {
        Some(Blocking::No)
    }

    fn submit(&mut self, op: Op, token: Token, done: &mut Completions) {
        match op {
            Op::Send(socket, bytes, sending) => {
                self.send(socket, bytes, sending.is_last, token, done);
            }
            Op::Receive(socket) => {
                self.entry(socket).receive = Some(token);
                self.begin(socket, token, done);
            }
            Op::Discard(socket, count) => {
                self.entry(socket).discard = Some((token, count));
                self.begin(socket, token, done);
            }
            Op::SendFile(socket, part) => {
                // Not tried at once: that the event comes with the next turn gives the
                // other streams theirs.
                self.entry(socket).file = Some((token, part));
                self.begin(socket, token, done);
            }
            Op::Accept(socket) => {
                self.entry(socket).accept = Some(token);
                self.begin(socket, token, done);
            }
            Op::Connect(socket, to) => self.connect(socket, to, token, done),
            Op::Readable(socket) => {
                self.entry(socket).readable = Some(token);
                self.begin(socket, token, done);
            }
            Op::Cancel(socket, of) => self.cancel(of, socket, done),
            Op::ShutdownWrite(socket) => {
                // Fails only where the connection is gone, which recv will report.
                let _ = shutdown(socket.fd(), Shutdown::Write);
            }
            Op::Close(socket, closing) => {
                *self.entry(socket) = Entry::default();
                socket::before_close(socket, closing);
                // Closing also takes it out of the epoll set.
                // SAFETY: nothing is outstanding on it, and the loop forgets it with this.
                drop(unsafe { socket.into_fd() });
            }
        }
    }

    fn turn(&mut self, wait: Wait, done: &mut Completions) -> io::Result<()> {
        // What the loop did since the last send is no part of the next one's bracket.
        self.last_sent = None;
        self.coalesce_events(wait);
        self.wait(wait)?;
        let events = std::mem::take(&mut self.events);
        for event in &events {
            match event.data.u64() {
                WAKER => {}
                number => {
                    // SAFETY: registered as a socket with this number, and taken out of the
                    // epoll set by its close at the latest.
                    let socket = unsafe { Socket::from_raw(number as RawFd) };
                    self.ready(socket, event.flags, done);
                }
            }
        }
        self.events = events;
        self.last_sent = None;
        if !self.is_behind {
            self.all_reported = self.arrival.reaped;
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        clock::monotonic()
    }

    fn listen(
        &mut self,
        address: SocketAddr,
        options: &ListenOptions,
    ) -> io::Result<(Socket, SocketAddr)> {
        socket::open_listener(address, options, Blocking::No)
    }

    fn open(&mut self, address: SocketAddr, options: &ConnectOptions) -> io::Result<Socket> {
        socket::open_client(address, options, Blocking::No)
    }

    fn local_addr(&self, socket: Socket) -> io::Result<SocketAddr> {
        socket::local_addr(socket)
    }

    fn peer_addr(&self, socket: Socket) -> io::Result<SocketAddr> {
        socket::peer_addr(socket)
    }

    fn quiesce(&mut self) -> bool {
        // Between two calls the kernel holds nothing of ours.
        true
    }

    fn coalesce(&mut self, coalescing: Coalescing) {
        let Coalescing { completions, wait } = coalescing;
        let is_of_use = !self.spin && completions > 1 && wait >= Nanos::from_micros(1);
        let slack = match self.precise_timers {
            true => Some(PRECISE_SLACK_NS),
            false => is_of_use.then_some(TIMER_SLACK_NS),
        };
        self.coalescing = match set_current_timer_slack(slack) {
            Ok(()) if is_of_use => Coalescing {
                completions,
                wait: wait.min(PAUSE_MAX),
            },
            _ => Coalescing::default(),
        };
    }

    fn stats(&self) -> DriverStats {
        DriverStats {
            enters: self.enters,
            coalescing: self.coalescing.wait,
        }
    }
}
