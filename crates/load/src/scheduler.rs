//! Starts what is due on a thread: arrivals of its schedule, and slots whose think time has passed.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use prony_base::Instant;

use crate::arrivals::ArrivalCounts;
use crate::slots::{Arrived, Due};
use crate::window::LoadPhase;
use crate::worker::{WhenReady, Worker};

/// Arrivals that are sent before the loop's other tasks have their turn.
const ARRIVALS_MAX: usize = 256;

impl Worker {
    /// The counts of the schedule. What still waits is never sent.
    pub(crate) fn count_arrivals(&self) -> Option<ArrivalCounts> {
        let mut slots = self.slots.borrow_mut();
        let open = self.open.borrow();
        let open = open.as_ref()?;
        let waiting = slots.give_up();
        let mut recorder = self.recorder.borrow_mut();
        for due in &waiting {
            recorder.unanswered(self.phase(due.intended));
        }
        Some(ArrivalCounts {
            scheduled: open.scheduled,
            in_window: open.in_window,
            waiting: waiting.len() as u64,
            dropped: slots.dropped(),
            dropped_in_window: open.dropped_in_window,
            waiting_max: slots.waiting_max() as u64,
            had_idle: self.had_idle.get(),
        })
    }

    /// Sends what is due by the schedule, and continues slots whose think time has passed.
    pub(crate) async fn schedule(self: Rc<Worker>) {
        loop {
            let now = self.handle.now();
            let is_behind = self.send_due(now);
            if is_behind {
                // Lets the connections' tasks read answers that have arrived.
                self.handle.yield_now().await;
                continue;
            }
            let due = self.next_due();
            let mut sleep = pin!(self.handle.sleep_until(due));
            let mut is_armed = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut is_armed, true) && self.next_due() < due {
                    return Poll::Ready(());
                }
                self.scheduler.replace(Some(cx.waker().clone()));
                sleep.as_mut().poll(cx)
            })
            .await;
        }
    }

    /// When the scheduler has something to do again.
    fn next_due(&self) -> Instant {
        let thought = self.slots.borrow().next_thought();
        let open = self.open.borrow();
        let arrival = open.as_ref().and_then(|open| open.next);
        let arrival = arrival.filter(|_| self.may_draw());
        [thought, arrival]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Instant::NEVER)
    }

    /// Sends what is due, up to a batch. True when more is due already.
    fn send_due(&self, now: Instant) -> bool {
        for _ in 0..ARRIVALS_MAX {
            let thought = self.slots.borrow_mut().thought(now);
            if let Some((due, index)) = thought {
                match self.when_ready {
                    WhenReady::TakesArrival => self.ready(index, now),
                    WhenReady::AsksUser => self.user_due(index, now),
                    WhenReady::Sends | WhenReady::Thinks => self.send_next(index, due, now),
                }
            } else if let Some(intended) = self.take_arrival(now) {
                self.arrive(intended, now);
            } else {
                return false;
            }
        }
        true
    }

    /// Takes and counts the next arrival, if it is due at `now`. Arrivals after the window are not drawn.
    fn take_arrival(&self, now: Instant) -> Option<Instant> {
        if !self.may_draw() {
            return None;
        }
        let mut open = self.open.borrow_mut();
        let open = open.as_mut()?;
        let intended = open.next?;
        if intended > now {
            return None;
        }
        if intended >= self.window.borrow().end() {
            open.next = None;
            return None;
        }
        let begin = self.window.borrow().begin();
        open.next = open.schedule.draw().map(|after| begin + after);
        open.scheduled += 1;
        open.in_window += u64::from(self.phase(intended) == LoadPhase::Measured);
        self.requests_left.set(self.requests_left.get() - 1);
        Some(intended)
    }

    /// Gives a due request to an idle slot, or queues it.
    fn arrive(&self, intended: Instant, now: Instant) {
        let due = Due {
            intended,
            taken_up: now,
        };
        let arrived = self
            .slots
            .borrow_mut()
            .arrive(due, |slot| self.can_send(slot));
        match arrived {
            Arrived::Slot(index) => self.send(index, due, now),
            Arrived::Waits => {}
            Arrived::Dropped => {
                let origin = self.phase(intended);
                self.recorder.borrow_mut().unanswered(origin);
                if let Some(open) = self.open.borrow_mut().as_mut() {
                    open.dropped_in_window += u64::from(origin == LoadPhase::Measured);
                }
            }
        }
    }

    /// Sets the rate of an open pace, by the bits of its requests per second; 0: unchanged.
    pub(crate) fn change_rate(&self, bits: u64, now: Instant) {
        let mut open = self.open.borrow_mut();
        let Some(open) = open.as_mut() else { return };
        if bits == 0 || bits == open.rate_bits {
            return;
        }
        open.rate_bits = bits;
        let begin = self.window.borrow().begin();
        open.schedule
            .set_rate(now.since(begin), f64::from_bits(bits));
        // The arrival drawn last is from the old rate.
        open.next = open.schedule.draw().map(|after| begin + after);
        if let Some(waker) = self.scheduler.take() {
            waker.wake();
        }
    }
}
