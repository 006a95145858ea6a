//! The supervisor: starts workers, replaces them, ends them.
//!
//! What is decided is in `pool`, a pure machine; here is what carries it out, in one
//! task of one loop: it waits for the next event, has the pool decide, and follows its
//! orders. Workers' words and ends (`process`), signals and changed files (`watch`)
//! become `events`. Connections are accepted by `accept` and assigned by
//! `balancer`.
//!
//! *Invariants:* whoever was started is collected; a connection that was passed to a worker
//! and that it had not taken in when it ended goes to another; a worker never outlives its
//! supervisor, whatever ends that (it asks the kernel for a SIGKILL at its parent's end).

mod accept;
mod backoff;
mod balancer;
mod events;
mod pool;
mod process;
mod watch;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::rc::Rc;

use prony_base::random::Random;
use prony_base::{Instant, Nanos, clock};
use prony_engine::{Config, Handle, ListenOptions, Task};

use self::balancer::Balancer;
use self::events::{Events, Happened};
use self::pool::{Event, Id, Order, Pool, Rules};
use self::process::Process;
use crate::bell::Bell;
use crate::board::{Board, LINES_MAX, Line};
use crate::channel::{MessageKind, Start};
use crate::ending::{Ended, Error};
use crate::settings::{Distribution, Settings};
use crate::signals::Signals;
use crate::sockets::Sockets;

/// How often it looks at the beats of the workers.
const LOOK_INTERVAL: Nanos = Nanos::from_millis(500);

/// Serves with worker processes, each started by `worker_command`, until SIGTERM or
/// SIGINT, after which everything that was begun is answered; a second one ends it at
/// once. SIGHUP replaces the workers. Says on `out` where it listens once all workers
/// serve, and on `err` what becomes of them.
///
/// A worker's standard input is a Unix socket to this process; its command calls
/// [`work`](crate::work). Call this on the process's main thread, and with at least one
/// worker: a worker ends with the thread that started it.
///
/// # Errors
/// The address cannot be used, or the first workers cannot load the application.
pub fn supervise(
    settings: Settings,
    worker_command: &[OsString],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Ended, Error> {
    let system = |what| move |error| Error::System(what, error);
    crate::alone::raise_descriptor_limit();
    let stop = Signals::to_stop().map_err(system("listen for signals"))?;
    let renew = Signals::to_renew().map_err(system("listen for signals"))?;
    let sockets =
        Sockets::open(&settings).map_err(|error| Error::Listen(settings.address, error))?;
    let settings = Settings {
        address: sockets.address,
        ..settings
    };
    let board = Board::new().map_err(system("allocate the status board of the workers"))?;
    let config = Config {
        driver: settings.driver(),
        ..Config::default()
    };
    prony_engine::run(&config, |handle| async move {
        if let Some(why) = handle.fallback() {
            say(err, &format!("using epoll, not io_uring: {why}"));
        }
        // Decided once: whether a socket blocks is the same for all who accept from it, and
        // the drivers want it differently.
        let settings = Settings {
            driver: handle.driver().to_string(),
            ..settings
        };
        let events = Rc::new(Events::default());
        let balancer = Rc::new(Balancer::new(settings.beat_interval()));
        let board = Rc::new(board);
        let stops = Rc::clone(&events);
        forward(&handle, stop, move || stops.put(Event::Stop));
        let renewals = Rc::clone(&events);
        forward(&handle, renew, move || renewals.put(Event::Renew));
        if settings.reload {
            watch::start(&handle, &settings.path, &events, err);
        }
        let acceptor = Acceptor::open(&handle, &settings, sockets.listening, &balancer, &board)?;
        let supervisor = Supervisor {
            pool: Pool::new(Rules {
                workers: settings.workers,
                timeout: settings.timeout_ns.map(Nanos),
                graceful_timeout: Nanos(settings.graceful_timeout_ns),
            }),
            handle,
            settings,
            command: worker_command,
            processes: BTreeMap::new(),
            events,
            balancer,
            board,
            acceptor,
            random: Random::new(clock::unix_nanos()),
            out,
            err,
        };
        supervisor.run().await
    })?
}

/// Puts each arrival of signals among the events.
fn forward(handle: &Handle, signals: Signals, put: impl Fn() + 'static) {
    let loop_handle = handle.clone();
    handle
        .spawn(async move {
            loop {
                let count = signals.arrived(&loop_handle).await;
                (0..count).for_each(|_| put());
            }
        })
        .detach();
}

fn say(err: &mut dyn Write, text: &str) {
    // A failing standard error leaves nowhere to say so.
    let _ = writeln!(err, "prony: {text}");
}

/// Where connections come from.
enum Acceptor {
    /// The workers accept, from one socket or each from its own.
    Workers(Vec<OwnedFd>),
    /// The supervisor accepts.
    Supervisor {
        stop: Rc<Bell>,
        accepting: Task<()>,
    },
    Closed,
}

impl Acceptor {
    fn open(
        handle: &Handle,
        settings: &Settings,
        mut listening: Vec<OwnedFd>,
        balancer: &Rc<Balancer>,
        board: &Rc<Board>,
    ) -> Result<Acceptor, Error> {
        if settings.distribution != Distribution::Least {
            return Ok(Acceptor::Workers(listening));
        }
        let options = ListenOptions {
            accept_queue_max: accept::BATCH_MAX as u32,
            ..ListenOptions::default()
        };
        let socket = listening.swap_remove(0);
        let listener = handle
            .listen_on(socket, &options)
            .map_err(|error| Error::Listen(settings.address, error))?;
        let stop = Rc::new(Bell::default());
        let accepting = handle.spawn(accept::accept(
            handle.clone(),
            listener,
            balancer.clone(),
            board.clone(),
            stop.clone(),
        ));
        Ok(Acceptor::Supervisor { stop, accepting })
    }

    /// The socket that the worker in a slot listens on.
    fn socket(&self, slot: u32) -> Option<BorrowedFd<'_>> {
        match self {
            Acceptor::Workers(sockets) => {
                let socket = sockets.get(slot as usize).or_else(|| sockets.first());
                socket.map(OwnedFd::as_fd)
            }
            Acceptor::Supervisor { .. } | Acceptor::Closed => None,
        }
    }

    /// Has what waits in the backlog taken in by those who do it, and takes no more.
    async fn close(&mut self) {
        match std::mem::replace(self, Acceptor::Closed) {
            Acceptor::Supervisor { stop, accepting } => {
                stop.ring();
                accepting.await;
            }
            // Workers have copies, and take in what waits.
            Acceptor::Workers(_) | Acceptor::Closed => {}
        }
    }
}

struct Supervisor<'a> {
    handle: Handle,
    settings: Settings,
    command: &'a [OsString],
    pool: Pool,
    processes: BTreeMap<Id, Process>,
    events: Rc<Events>,
    balancer: Rc<Balancer>,
    board: Rc<Board>,
    acceptor: Acceptor,
    random: Random,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl Supervisor<'_> {
    async fn run(mut self) -> Result<Ended, Error> {
        let mut looked = self.handle.now();
        let mut orders = self.pool.on(looked, Event::Begin);
        loop {
            if let Some(end) = self.follow(orders).await {
                return end;
            }
            let now = self.handle.now();
            orders = if let Some(happened) = self.events.take() {
                self.take(happened, now)
            } else if now >= looked + LOOK_INTERVAL {
                // When the supervisor was held up, so were perhaps the workers: what
                // passed counts for no more than twice what was to pass.
                let passed = now.since(looked).min(Nanos(2 * LOOK_INTERVAL.0));
                looked = now;
                self.balancer.pass_orphans(&self.board, now);
                let beats = |id| self.processes.get(&id).map(|process| process.line);
                let beat = |id| beats(id).map_or(0, |line| self.board.read(line).beat_ns);
                self.pool.look(now, passed, beat)
            } else {
                self.wait(looked + LOOK_INTERVAL).await;
                self.pool.on(self.handle.now(), Event::Time)
            };
        }
    }

    /// Waits for an event, or until one of the pool's is due, or until `due`.
    async fn wait(&self, due: Instant) {
        let due = self.pool.due().map_or(due, |sooner| sooner.min(due));
        // Both are looked at next.
        let _ = self.handle.timeout_at(due, self.events.some()).await;
    }

    fn take(&mut self, happened: Happened, now: Instant) -> Vec<Order> {
        let id = match happened {
            Happened::Event(event) => return self.pool.on(now, event),
            Happened::Exited(id) => id,
        };
        let Some(process) = self.processes.remove(&id) else {
            return Vec::new();
        };
        self.balancer.orphan(id, process.untaken());
        self.balancer.pass_orphans(&self.board, now);
        let exit = process.collect(&self.events);
        // Its last message comes before its end.
        let mut orders = Vec::new();
        let mut later = Vec::new();
        while let Some(happened) = self.events.take() {
            match happened {
                Happened::Event(event) => orders.extend(self.pool.on(now, event)),
                Happened::Exited(other) => later.push(other),
            }
        }
        later.into_iter().for_each(|id| self.events.exited(id));
        orders.extend(self.pool.on(now, Event::Ended(id, exit)));
        orders
    }

    /// Does what the pool has decided; yields how the host ends, if it does.
    async fn follow(&mut self, orders: Vec<Order>) -> Option<Result<Ended, Error>> {
        for order in orders {
            match order {
                Order::Start { id, slot } => self.start(id, slot),
                Order::Activate(id) => {
                    if let Some(process) = self.processes.get(&id) {
                        self.balancer.add(id, process.channel.clone(), process.line);
                        let now = self.handle.now();
                        self.balancer.pass_orphans(&self.board, now);
                    }
                }
                Order::Retire(id) => self.stop_worker(id, MessageKind::Retire),
                Order::Drain(id) => self.stop_worker(id, MessageKind::Drain),
                Order::StopAccepting => self.acceptor.close().await,
                Order::Kill(id) => {
                    self.balancer.remove(id);
                    if let Some(process) = self.processes.get(&id) {
                        process.kill();
                    }
                }
                Order::Announce => {
                    let address = self.settings.address;
                    let written = writeln!(self.out, "listening on http://{address}");
                    // Who does not read it does not want to know.
                    let _ = written.and_then(|()| self.out.flush());
                }
                Order::Say(text) => say(self.err, &text),
                Order::End(how) => return Some(how),
            }
        }
        None
    }

    fn stop_worker(&self, id: Id, how: MessageKind) {
        self.balancer.remove(id);
        if let Some(process) = self.processes.get(&id) {
            process.say(&self.handle, how);
        }
    }

    fn start(&mut self, id: Id, slot: u32) {
        let event = match self.try_start(id, slot) {
            Ok(process) => {
                let number = process.number();
                process.listen(&self.handle, &self.events);
                self.processes.insert(id, process);
                Event::Started(id, number)
            }
            Err(why) => Event::NotStarted(id, why),
        };
        self.events.put(event);
    }

    fn try_start(&mut self, id: Id, slot: u32) -> Result<Process, String> {
        let line = self
            .free_line()
            .ok_or_else(|| format!("was not started: {LINES_MAX} workers are still ending"))?;
        self.board.write(line, Line::default());
        let requests_max = self
            .settings
            .max_requests
            .map(|(least, jitter)| drawn(least, jitter, &mut self.random));
        let start = Start {
            settings: self.settings.clone(),
            number: slot,
            supervisor: rustix::process::getpid().as_raw_pid(),
            line,
            requests_max,
        };
        let mut descriptors = vec![self.board.as_fd()];
        descriptors.extend(self.acceptor.socket(slot));
        Process::start(id, self.command, &start, &descriptors).map_err(|error| {
            let program = self.command.first().map(|program| program.display());
            let program = program.map_or_else(String::new, |program| program.to_string());
            format!("was not started: `{program}`: {error}")
        })
    }

    fn free_line(&self) -> Option<u32> {
        let taken: Vec<u32> = self.processes.values().map(|other| other.line).collect();
        (0..LINES_MAX as u32).find(|line| !taken.contains(line))
    }
}

/// Requests after which a worker is spent.
fn drawn(least: u64, jitter: u64, random: &mut Random) -> u64 {
    least.saturating_add(random.below(jitter.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_spent_after_a_number_drawn_from_the_least_on() {
        let mut random = Random::new(1);
        let draws: Vec<u64> = (0..1000).map(|_| drawn(100, 9, &mut random)).collect();
        assert!(draws.iter().all(|draw| (100..=109).contains(draw)));
        assert!((100..=109).all(|number| draws.contains(&number)));
        assert_eq!(drawn(7, 0, &mut random), 7);
        assert_eq!(drawn(u64::MAX, u64::MAX, &mut random), u64::MAX);
    }
}
