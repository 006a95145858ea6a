//! Everything that a queue does, at random and at once, for long: pushes of several
//! types and priorities, more than fit, handlers that come, go, push, panic and are
//! futures that are cancelled, and senders in other threads. At the end the counts add
//! up, every event is gone, and the heap is where it was.
//!
//! `PRONY_SOAK_EVENTS` says how many events (200,000); `PRONY_SOAK_SEED` which.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use prony_base::{Nanos, Random};
use prony_engine::{Config, Handle, run};
use prony_runtime::events::{
    Emitter, EventStats, Events, Inlet, Options, Priority, Registration, Verdict, WhenFull,
};

#[global_allocator]
static HEAP: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

/// Lives as long as an event; the counter says how many do.
struct Token(Arc<AtomicU64>);

impl Token {
    fn new(alive: &Arc<AtomicU64>) -> Token {
        alive.fetch_add(1, Ordering::Relaxed);
        Token(alive.clone())
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Plain(#[expect(dead_code, reason = "it is only dropped")] Token);
struct Watched(
    u64,
    #[expect(dead_code, reason = "it is only dropped")] Token,
);
struct Sent(
    u64,
    #[expect(dead_code, reason = "it is only dropped")] Token,
);

/// What handlers saw.
#[derive(Default)]
struct Seen {
    watched: Cell<u64>,
    sent: Cell<u64>,
    next_sent: Cell<u64>,
}

/// The unchanging part: counts each event once, and withholds some.
fn counters(events: &Events, seen: &Rc<Seen>) -> Vec<Registration> {
    let (watched, sent) = (seen.clone(), seen.clone());
    vec![
        events.before(|event: &Watched, _| match event.0 % 97 {
            0 => Verdict::Withhold,
            _ => Verdict::Pass,
        }),
        events.on(move |_: &Watched, _| watched.watched.set(watched.watched.get() + 1)),
        events.on(move |event: &Sent, _| {
            // What one thread sends arrives in order, and once; some may be dropped.
            assert!(event.0 >= sent.next_sent.replace(event.0 + 1));
            sent.sent.set(sent.sent.get() + 1);
        }),
    ]
}

/// A handler of a random kind.
fn handler(soak: &mut Soak) -> Registration {
    let events = soak.events.clone();
    let emitter = events.emitter::<Watched>();
    match soak.random.below(4) {
        0 => events.on(|event: &Watched, _| {
            if event.0.is_multiple_of(1009) {
                // Without the hook's message: there are many.
                std::panic::resume_unwind(Box::new("as the soak wants"));
            }
        }),
        1 => {
            let handle = soak.handle.clone();
            events.on_async(move |event: &Watched, _| {
                let (handle, number) = (handle.clone(), event.0);
                async move {
                    if number.is_multiple_of(7) {
                        handle.yield_now().await;
                    } else if number.is_multiple_of(11) {
                        // Ends only when it is cancelled, or late.
                        handle.sleep(Nanos::from_millis(1)).await;
                    }
                }
            })
        }
        2 => {
            let (extra, count) = (soak.extra.clone(), Cell::new(0_u64));
            let alive = soak.alive.clone();
            events.on(move |_: &Plain, _| {
                count.set(count.get() + 1);
                if count.get().is_multiple_of(100) {
                    let urgent = Watched(count.get(), Token::new(&alive));
                    let is_taken = emitter.push_at(Priority(0), urgent).is_ok();
                    extra.0.set(extra.0.get() + u64::from(is_taken));
                    extra.1.set(extra.1.get() + u64::from(!is_taken));
                }
            })
        }
        _ => events.after(|_: &Plain, _, _| ()),
    }
}

struct Soak {
    handle: Handle,
    events: Events,
    random: Random,
    alive: Arc<AtomicU64>,
    plain: Emitter<Plain>,
    watched: Emitter<Watched>,
    handlers: Vec<Registration>,
    /// Events that handlers pushed, and those that were refused to them.
    extra: Rc<(Cell<u64>, Cell<u64>)>,
    refused: u64,
    pushed: u64,
}

impl Soak {
    fn push(&mut self) {
        let priority = Priority(self.random.below(5) * 10);
        let token = Token::new(&self.alive);
        let is_taken = if self.random.below(3) == 0 {
            self.watched
                .push_at(priority, Watched(self.pushed, token))
                .is_ok()
        } else {
            self.plain.push_at(priority, Plain(token)).is_ok()
        };
        self.pushed += u64::from(is_taken);
        self.refused += u64::from(!is_taken);
    }

    fn change_handlers(&mut self) {
        let count = self.handlers.len() as u64;
        if count > 8 || (self.random.below(2) == 0 && count > 0) {
            let index = self.random.below(count) as usize;
            drop(self.handlers.swap_remove(index));
        } else {
            let handler = handler(self);
            self.handlers.push(handler);
        }
    }

    async fn round(&mut self) {
        for _ in 0..self.random.below(3_000) {
            self.push();
        }
        self.change_handlers();
        match self.random.below(3) {
            0 => self.handle.yield_now().await,
            1 => drop(self.events.dispatch(500)),
            _ => {
                let token = Token::new(&self.alive);
                if let Ok(done) = self.watched.push_and_wait(Watched(1, token)) {
                    self.pushed += 1;
                    if self.random.below(2) == 0 {
                        done.await;
                    }
                } else {
                    self.refused += 1;
                }
            }
        }
    }
}

fn send(inlet: &Inlet<Sent>, count: u64, alive: &Arc<AtomicU64>) {
    run(&Config::default(), async |_| {
        for number in 0..count {
            let event = Sent(number, Token::new(alive));
            inlet.send_wait(event).await.expect("the queue is there");
        }
    })
    .expect("a loop");
}

/// Pushes so many events, a tenth of them from another thread; yields the statistics.
fn soak(count: u64, seed: u64, when_full: WhenFull) -> EventStats {
    soak_with(count, seed, when_full, async |_| ())
}

/// The same, with something else that is done after every round of a few thousand
/// events: the place for what other parts of the runtime do meanwhile.
fn soak_with(
    count: u64,
    seed: u64,
    when_full: WhenFull,
    mut meanwhile: impl AsyncFnMut(&mut Soak),
) -> EventStats {
    let alive: Arc<AtomicU64> = Arc::default();
    let stats = run(&Config::default(), async |handle| {
        let options = Options {
            waiting_max: 10_000,
            when_full,
            ..Options::default()
        };
        let events = Events::with_options(&handle, options);
        let seen: Rc<Seen> = Rc::default();
        let counters = counters(&events, &seen);
        let inlet = events.inlet(256);
        let (theirs, sent) = (alive.clone(), count / 10);
        let thread = thread::spawn(move || send(&inlet, sent, &theirs));
        let mut soak = Soak {
            plain: events.emitter(),
            watched: events.emitter(),
            events: events.clone(),
            handle,
            random: Random::new(seed),
            alive: alive.clone(),
            handlers: Vec::new(),
            extra: Rc::default(),
            refused: 0,
            pushed: 0,
        };
        while soak.pushed < count - sent {
            soak.round().await;
            meanwhile(&mut soak).await;
        }
        events.inlets_gone().await;
        soak.handlers.clear();
        events.close().await;
        thread.join().expect("the sender ends");
        let stats = events.stats();
        assert_eq!(stats.counts.pushed, soak.pushed + soak.extra.0.get() + sent);
        assert_eq!(stats.refused, soak.refused + soak.extra.1.get());
        if when_full == WhenFull::Refuse {
            assert_eq!(seen.sent.get(), sent);
            let watched = stats.types.iter().find(|one| one.name.ends_with("Watched"));
            assert_eq!(
                watched.map(|one| one.counts.dispatched),
                Some(seen.watched.get())
            );
        }
        drop(counters);
        stats
    })
    .expect("a loop");
    assert_eq!(alive.load(Ordering::Relaxed), 0, "an event was leaked");
    let counts = stats.counts;
    assert_eq!(counts.waiting, 0);
    assert_eq!(
        counts.pushed,
        counts.dispatched + counts.withheld + counts.dropped
    );
    stats
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |word| word.parse().expect("a number"))
}

fn heap_bytes() -> i64 {
    let stats = HEAP.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

#[test]
fn a_long_random_life_loses_doubles_and_leaks_nothing() {
    let (count, seed) = (
        number("PRONY_SOAK_EVENTS", 200_000),
        number("PRONY_SOAK_SEED", 7),
    );
    // Once each, so that what is set up once is there before the heap is looked at.
    soak(20_000, seed, WhenFull::Refuse);
    soak(20_000, seed, WhenFull::DropOldest);
    let before = heap_bytes();
    let refusing = soak(count / 2, seed, WhenFull::Refuse);
    assert!(refusing.panics > 0 && refusing.refused > 0 && refusing.counts.withheld > 0);
    drop(refusing);
    let dropping = soak(count / 2, seed, WhenFull::DropOldest);
    assert!(dropping.counts.dropped > 0);
    drop(dropping);
    let after = heap_bytes();
    assert!(
        (after - before).abs() < 1_024,
        "heap: {before} before, {after} after"
    );
}
