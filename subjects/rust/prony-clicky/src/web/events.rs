//! Totals as they change, as Server-Sent Events: `data: TOTAL`, one event for each change
//! and at most ten a second for each listener; changes in between are in the next one.
//!
//! A listener costs its connection and one event that is not yet out: one that reads
//! slowly is told the newest total when it has taken the last one, and one that takes
//! nothing for the server's `write_timeout` is cut off. Proxies and clients see by a
//! comment every 15 s that the connection lives.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;

use prony_base::{Instant, Nanos};
use prony_engine::Handle;
use prony_http::{BodyWriter, Count, Header, Interruption, Response};

use super::clicks::Digits;
use crate::counting::{Desk, Name};

/// The shortest time between two events for a listener.
const EVENTS_EVERY: Nanos = Nanos::from_millis(100);
/// After this long without an event comes a comment.
const HEARTBEAT: Nanos = Nanos::from_secs(15);
/// Listeners at once, on all loops.
pub const LISTENERS_MAX: u64 = 10_000;

const STREAM: Header<'_> = Header::new("content-type", b"text/event-stream");
const NO_STORE: Header<'_> = Header::new("cache-control", b"no-store");
/// nginx would otherwise collect events.
const UNBUFFERED: Header<'_> = Header::new("x-accel-buffering", b"no");

/// How many listen, on all loops.
#[derive(Debug, Default)]
pub struct Listeners(AtomicU64);

impl Listeners {
    /// How many there are.
    pub fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// A place for one more, if there is one.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Place> {
        let entered = self.0.fetch_update(Relaxed, Relaxed, |count| {
            (count < LISTENERS_MAX).then_some(count + 1)
        });
        entered.ok().map(|_| Place(self.clone()))
    }
}

/// A listener's place, until it is dropped.
pub(super) struct Place(Arc<Listeners>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// What an event tells, and where it is counted.
pub(super) struct Telling<'a> {
    pub handle: &'a Handle,
    pub desk: &'a Desk,
    pub name: &'a Name,
    pub sent: &'a Count,
}

impl Telling<'_> {
    /// Tells the total as it changes, until the listener goes or the server stops.
    pub async fn run(&self, response: &mut Response, place: Place) {
        let mut body = response.stream(200, [STREAM, NO_STORE, UNBUFFERED], None);
        // What breaks the connection ends it; there is nobody to be told.
        if body.is_wanted() {
            let Ok(()) = self.tell(&mut body).await else {
                return;
            };
        }
        drop(place);
        let _ = body.finish().await;
    }

    async fn tell(&self, body: &mut BodyWriter<'_>) -> io::Result<()> {
        body.write(b"retry: 2000\n").await?;
        let mut seen = self.desk.total(self.name);
        loop {
            self.send(body, seen).await?;
            let next = self.handle.now() + EVENTS_EVERY;
            let pause = self.handle.timeout_at(next, body.interrupted());
            if pause.await.is_ok() {
                return Ok(());
            }
            seen = loop {
                let due = self.handle.now() + HEARTBEAT;
                match self.next(body, seen, due).await {
                    Some(Ok(total)) => break total,
                    Some(Err(_gone)) => return Ok(()),
                    None => {
                        body.write(b":\n\n").await?;
                        body.flush().await?;
                    }
                }
            };
        }
    }

    async fn send(&self, body: &mut BodyWriter<'_>, total: u64) -> io::Result<()> {
        let event = [b"data: ", Digits::of(total).as_bytes(), b"\n\n"].concat();
        body.write(&event).await?;
        body.flush().await?;
        self.sent.add(1);
        Ok(())
    }

    /// The total once it is another than `seen`, or why that is of no use any more; None
    /// when nothing has come until `due`.
    async fn next(
        &self,
        body: &mut BodyWriter<'_>,
        seen: u64,
        due: Instant,
    ) -> Option<Result<u64, Interruption>> {
        let mut changed = pin!(self.desk.changed(self.name, seen));
        let next = poll_fn(|cx| {
            if let Poll::Ready(total) = changed.as_mut().poll(cx) {
                return Poll::Ready(Ok(total));
            }
            body.poll_interrupted(cx).map(Err)
        });
        self.handle.timeout_at(due, next).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_place_for_each_of_so_many_and_again_when_one_goes() {
        let listeners = Arc::new(Listeners::default());
        let places: Vec<_> = (0..LISTENERS_MAX)
            .map_while(|_| listeners.enter())
            .collect();
        assert_eq!(places.len() as u64, LISTENERS_MAX);
        assert!(listeners.enter().is_none());
        drop(places);
        assert_eq!(listeners.now(), 0);
        assert!(listeners.enter().is_some());
    }
}
