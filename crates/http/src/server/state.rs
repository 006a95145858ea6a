//! The state that all connections of one server share: options, counters, the date, a stop.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use prony_base::{Instant, Nanos};
use prony_engine::Handle;
use prony_wire::DateCache;

use crate::counters::Counters;
use crate::options::ServerOptions;

const SECOND_NANOS: u64 = 1_000_000_000;

/// The state that the connections of one server share.
pub(crate) struct ServerState {
    pub(crate) handle: Handle,
    pub(crate) options: ServerOptions,
    pub(crate) counters: Arc<Counters>,
    /// The clock, read once per turn of the loop: the turn, and its time.
    clock: Cell<(u64, Instant)>,
    date: RefCell<Date>,
    stop: Cell<Option<Stop>>,
}

/// A graceful stop in progress.
#[derive(Clone, Copy)]
pub(crate) struct Stop {
    /// Until when an idle connection may send another request.
    pub(crate) idle_due: Instant,
    /// How long a connection may that becomes idle later.
    pub(crate) idle_grace: Nanos,
    /// When all connections are closed at the latest.
    pub(crate) due: Instant,
}

struct Date {
    cache: DateCache,
    text: [u8; 29],
    /// When the next second starts.
    due: Instant,
}

impl ServerState {
    pub(crate) fn new(handle: &Handle, options: ServerOptions) -> ServerState {
        ServerState {
            handle: handle.clone(),
            options,
            counters: Arc::default(),
            clock: Cell::new((u64::MAX, Instant::ZERO)),
            date: RefCell::new(Date {
                cache: DateCache::default(),
                text: [b' '; 29],
                due: Instant::ZERO,
            }),
            stop: Cell::new(None),
        }
    }

    /// The time, read once per turn of the loop.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        let turn = self.handle.turns();
        let (of_turn, now) = self.clock.get();
        if of_turn == turn {
            return now;
        }
        let now = self.handle.now();
        self.clock.set((turn, now));
        now
    }

    /// The Date header's value.
    #[inline]
    pub(crate) fn date(&self) -> [u8; 29] {
        let now = self.now();
        let mut date = self.date.borrow_mut();
        if now >= date.due {
            date.renew(now, (self.options.unix_nanos)());
        }
        date.text
    }

    /// The graceful stop in progress, if there is one.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.stop.get()
    }

    /// Starts a graceful stop.
    pub(crate) fn begin_stop(&self, idle_grace: Nanos) -> Stop {
        let now = self.handle.now();
        let stop = Stop {
            idle_due: now + idle_grace,
            idle_grace,
            due: now + self.options.stop_timeout,
        };
        self.stop.set(Some(stop));
        stop
    }

    /// Shortens how long idle connections are kept in a stop that is in progress.
    pub(crate) fn hasten(&self, idle_grace: Nanos) {
        if let Some(stop) = self.stop.get() {
            let idle_due = stop.idle_due.min(self.handle.now() + idle_grace);
            let idle_grace = stop.idle_grace.min(idle_grace);
            self.stop.set(Some(Stop {
                idle_due,
                idle_grace,
                ..stop
            }));
        }
    }

    /// `due`, or the end of a stop in progress where that is earlier.
    pub(crate) fn before_stop(&self, due: Instant) -> Instant {
        self.stop.get().map_or(due, |stop| due.min(stop.due))
    }
}

impl Date {
    #[cold]
    fn renew(&mut self, now: Instant, unix_nanos: u64) {
        let text = self.cache.at(unix_nanos / SECOND_NANOS).as_bytes();
        // It has as many bytes in every year that a clock can show.
        if let Ok(text) = text.try_into() {
            self.text = text;
        }
        self.due = now + Nanos(SECOND_NANOS - unix_nanos % SECOND_NANOS);
    }
}
