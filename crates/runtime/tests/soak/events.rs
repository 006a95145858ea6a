//! Events at random: pushes, handlers, an inlet; and what must add up at the end.

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

use crate::life::{Life, Lived};

/// Events at most that wait.
const WAITING_MAX: u64 = 10_000;

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

pub struct Plain(#[expect(dead_code, reason = "it is only dropped")] Token);
struct Watched(
    u64,
    #[expect(dead_code, reason = "it is only dropped")] Token,
);
struct Sent(
    u64,
    #[expect(dead_code, reason = "it is only dropped")] Token,
);

/// Pushes for whoever is not the soak itself, and counts what was taken and refused.
#[derive(Clone)]
pub struct Pusher {
    watched: Emitter<Watched>,
    alive: Arc<AtomicU64>,
    counts: Rc<(Cell<u64>, Cell<u64>)>,
}

impl Pusher {
    fn count(&self, is_taken: bool) {
        let (taken, refused) = &*self.counts;
        taken.set(taken.get() + u64::from(is_taken));
        refused.set(refused.get() + u64::from(!is_taken));
    }

    pub fn push(&self, number: u64) {
        let urgent = Watched(number, Token::new(&self.alive));
        self.count(self.watched.push_at(Priority(0), urgent).is_ok());
    }

    /// Waits until the event is done with, where there was room for it.
    pub async fn push_and_wait(&self, number: u64) {
        let event = Watched(number, Token::new(&self.alive));
        let done = self.watched.push_and_wait(event);
        self.count(done.is_ok());
        if let Ok(done) = done {
            done.await;
        }
    }
}

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

/// A handler of one of four kinds.
fn handler(soak: &Soak, kind: u64) -> Registration {
    let events = soak.events.clone();
    match kind {
        0 => events.on(|event: &Watched, _| {
            if event.0.is_multiple_of(211) {
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
            let (pusher, count) = (soak.pusher.clone(), Cell::new(0_u64));
            events.on(move |_: &Plain, _| {
                count.set(count.get() + 1);
                if count.get().is_multiple_of(100) {
                    pusher.push(count.get());
                }
            })
        }
        _ => events.after(|_: &Plain, _, _| ()),
    }
}

pub struct Soak {
    pub handle: Handle,
    pub events: Events,
    pub random: Random,
    /// For handlers, services and coroutines.
    pub pusher: Pusher,
    alive: Arc<AtomicU64>,
    plain: Emitter<Plain>,
    watched: Emitter<Watched>,
    handlers: Vec<Registration>,
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
            let kind = self.random.below(4);
            self.handlers.push(handler(self, kind));
        }
    }

    /// More than fits, at once, and a handler that panics.
    fn burst(&mut self) {
        self.handlers.push(handler(self, 0));
        for _ in 0..WAITING_MAX + 100 {
            self.push();
        }
        self.events.dispatch(5_000);
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

impl Soak {
    fn new(handle: &Handle, when_full: WhenFull, seed: u64, alive: &Arc<AtomicU64>) -> Soak {
        let options = Options {
            waiting_max: WAITING_MAX,
            when_full,
            ..Options::default()
        };
        let events = Events::with_options(handle, options);
        Soak {
            plain: events.emitter(),
            watched: events.emitter(),
            pusher: Pusher {
                watched: events.emitter(),
                alive: alive.clone(),
                counts: Rc::default(),
            },
            events,
            handle: handle.clone(),
            random: Random::new(seed),
            alive: alive.clone(),
            handlers: Vec::new(),
            refused: 0,
            pushed: 0,
        }
    }

    /// What the queue says, against what was done and seen.
    fn check(&self, seen: &Seen, sent: u64, when_full: WhenFull) -> EventStats {
        let stats = self.events.stats();
        let (extra, refused) = &*self.pusher.counts;
        assert_eq!(stats.counts.pushed, self.pushed + extra.get() + sent);
        assert_eq!(stats.refused, self.refused + refused.get());
        let watched = stats.types.iter().find(|one| one.name.ends_with("Watched"));
        assert_eq!(
            watched.map(|one| one.counts.dispatched),
            Some(seen.watched.get())
        );
        if when_full == WhenFull::Refuse {
            assert_eq!(seen.sent.get(), sent);
        }
        stats
    }
}

/// Pushes so many events, a tenth of them from another thread, while services and
/// coroutines come and go; yields the statistics.
pub fn soak(count: u64, seed: u64, when_full: WhenFull) -> (EventStats, Lived) {
    let alive: Arc<AtomicU64> = Arc::default();
    let (stats, lived) = run(&Config::default(), async |handle| {
        let mut soak = Soak::new(&handle, when_full, seed, &alive);
        let events = soak.events.clone();
        let seen: Rc<Seen> = Rc::default();
        let counters = counters(&events, &seen);
        let inlet = events.inlet(256);
        let (theirs, sent) = (alive.clone(), count / 10);
        let thread = thread::spawn(move || send(&inlet, sent, &theirs));
        // One that is observed goes another way through the code.
        let mut life = Life::new(&mut soak, when_full == WhenFull::Refuse);
        soak.burst();
        while soak.pushed < count - sent {
            soak.round().await;
            life.step(&mut soak).await;
        }
        let lived = life.end().await;
        events.inlets_gone().await;
        soak.handlers.clear();
        events.close().await;
        thread.join().expect("the sender ends");
        let stats = soak.check(&seen, sent, when_full);
        drop(counters);
        drop((soak, events));
        // A task that was to look whether there is something to do sees that there is not.
        handle.yield_now().await;
        assert_eq!(handle.tasks(), 0, "a task was leaked");
        (stats, lived)
    })
    .expect("a loop");
    assert_eq!(alive.load(Ordering::Relaxed), 0, "an event was leaked");
    let counts = stats.counts;
    assert_eq!(counts.waiting, 0);
    assert_eq!(
        counts.pushed,
        counts.dispatched + counts.withheld + counts.dropped
    );
    (stats, lived)
}
