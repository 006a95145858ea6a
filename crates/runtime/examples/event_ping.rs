//! How long an event takes to another thread and back, beside what the kernel needs
//! for that: two threads that wake each other by one `eventfd` each. Both are measured
//! in turn, several times, each thread on a core of its own. With `spin`: beside two
//! threads that each spin on a word of memory.
//!
//! `cargo run --release -p prony-runtime --example event_ping -- [ROUNDS] [spin]`

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use prony_base::{Nanos, clock};
use prony_engine::thread::pin;
use prony_engine::{Config, DriverChoice, run};
use prony_runtime::coroutines::ManualEvent;
use prony_runtime::events::{Events, Inlet};
use rustix::event::{EventfdFlags, eventfd};

/// Times that each of the two is measured.
const BLOCKS: usize = 7;

#[derive(Clone, Copy)]
struct Ping(u64);

fn config(spin: bool, driver: DriverChoice) -> Config {
    Config {
        spin,
        driver,
        ..Config::default()
    }
}

/// Answers every event with another until the other side is gone.
fn answer(
    config: &Config,
    inlets: &mpsc::Sender<Inlet<Ping>>,
    answers: &mpsc::Receiver<Inlet<Ping>>,
) {
    pin(&[1]).expect("there is a second core");
    run(config, async |handle| {
        let events = Events::new(&handle);
        inlets
            .send(events.inlet(16))
            .expect("the other side is there");
        let back = answers.recv().expect("the other side is there");
        events
            .on(move |ping: &Ping, _| back.send(*ping).expect("there is room"))
            .forever();
        events.inlets_gone().await;
    })
    .expect("a loop");
}

fn round_trips(rounds: usize, config: &Config) -> Vec<u64> {
    let (inlets, there) = mpsc::channel();
    let (back, answers) = mpsc::channel();
    let theirs = config.clone();
    let other = thread::spawn(move || answer(&theirs, &inlets, &answers));
    let times = run(config, async |handle| {
        let events = Events::new(&handle);
        let there: Inlet<Ping> = there.recv().expect("the other side is there");
        back.send(events.inlet(16))
            .expect("the other side is there");
        let done = Rc::new(ManualEvent::new());
        let times = Rc::new(RefCell::new(Vec::with_capacity(rounds)));
        let began = Rc::new(Cell::new(clock::monotonic()));
        let first = there.clone();
        let (end, list) = (done.clone(), times.clone());
        let handler = events.on(move |ping: &Ping, _| {
            let now = clock::monotonic();
            list.borrow_mut().push(now.since(began.replace(now)).0);
            if list.borrow().len() == rounds {
                end.set();
            } else {
                there.send(Ping(ping.0 + 1)).expect("there is room");
            }
        });
        first.send(Ping(0)).expect("there is room");
        done.wait().await;
        drop(handler);
        times.take()
    })
    .expect("a loop");
    other.join().expect("the other side ends");
    times
}

fn bare_round_trips(rounds: usize) -> Vec<u64> {
    let new = || std::sync::Arc::new(eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor"));
    let (there, back) = (new(), new());
    let (their_there, their_back) = (there.clone(), back.clone());
    let one = 1_u64.to_ne_bytes();
    let other = thread::spawn(move || {
        pin(&[1]).expect("there is a second core");
        let mut count = [0; 8];
        for _ in 0..rounds {
            rustix::io::read(&*their_there, &mut count).expect("readable");
            rustix::io::write(&*their_back, &one).expect("writable");
        }
    });
    let mut count = [0; 8];
    let times = (0..rounds)
        .map(|_| {
            let began = clock::monotonic();
            rustix::io::write(&*there, &one).expect("writable");
            rustix::io::read(&*back, &mut count).expect("readable");
            clock::monotonic().since(began).0
        })
        .collect();
    other.join().expect("the other side ends");
    times
}

/// What two threads that spin need, each on one word of memory.
fn spinning_round_trips(rounds: usize) -> Vec<u64> {
    let words = std::sync::Arc::new([(); 2].map(|()| Line(AtomicU64::new(0))));
    let theirs = words.clone();
    let other = thread::spawn(move || {
        pin(&[1]).expect("there is a second core");
        for round in 1..=rounds as u64 {
            theirs[0].await_value(round);
            theirs[1].0.store(round, Ordering::Release);
        }
    });
    let times = (1..=rounds as u64)
        .map(|round| {
            let began = clock::monotonic();
            words[0].0.store(round, Ordering::Release);
            words[1].await_value(round);
            clock::monotonic().since(began).0
        })
        .collect();
    other.join().expect("the other side ends");
    times
}

/// A word with cache lines of its own.
#[repr(align(128))]
struct Line(AtomicU64);

impl Line {
    fn await_value(&self, value: u64) {
        while self.0.load(Ordering::Acquire) != value {
            std::hint::spin_loop();
        }
    }
}

fn median(times: &mut [u64]) -> Nanos {
    times.sort_unstable();
    Nanos(times[times.len() / 2])
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let rounds: usize = words.next().map_or(Ok(5_000), |word| word.parse())?;
    let spin = words.next().is_some_and(|word| word == "spin");
    pin(&[0])?;
    for _ in 0..BLOCKS {
        let mut bare = if spin {
            spinning_round_trips(rounds)
        } else {
            bare_round_trips(rounds)
        };
        let bare = median(&mut bare);
        let ring = median(&mut round_trips(rounds, &config(spin, DriverChoice::Ring)));
        let epoll = median(&mut round_trips(rounds, &config(spin, DriverChoice::Epoll)));
        println!(
            "bare {bare}, events on ring {ring} ({:.2}), on epoll {epoll} ({:.2})",
            ring.0 as f64 / bare.0 as f64,
            epoll.0 as f64 / bare.0 as f64
        );
    }
    Ok(())
}
