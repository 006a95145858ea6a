//! Totals as they change, as Server-Sent Events: `data: TOTAL`, one event for each change
//! and at most ten a second for each listener; changes in between are in the next one.
//!
//! A listener costs its connection and one event that is not yet out: one that reads
//! slowly is told the newest total when it has taken the last one, and one that takes
//! nothing for the server's `write_timeout` is cut off. Proxies and clients see by a
//! comment every 15 s that the connection lives.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use prony_base::{Instant, Nanos};
use prony_engine::Handle;
use prony_http::{BodyWriter, Count, Header, Interruption, Response};

use super::clicks::Digits;
use super::limiter::network;
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

/// Who listens, on all loops.
pub struct Listeners {
    /// Of one address; None: as many as there may be in all.
    per_address_max: Option<u64>,
    places: Mutex<Places>,
}

/// Places that are taken. Looked at when a listener comes and goes.
#[derive(Default)]
struct Places {
    all: u64,
    by_address: HashMap<IpAddr, u64>,
}

/// Why there is no place for a listener.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NoPlace {
    /// There are [`LISTENERS_MAX`].
    Full,
    /// Its address has as many as one may have.
    OfAddress,
}

impl Listeners {
    /// None yet; so many at most of one address.
    pub fn new(per_address_max: Option<u32>) -> Listeners {
        Listeners {
            per_address_max: per_address_max.map(u64::from),
            places: Mutex::default(),
        }
    }

    /// How many there are.
    pub fn now(&self) -> u64 {
        self.places().all
    }

    /// A place for one more of an address, which is not known of every peer.
    pub(super) fn enter(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Place, NoPlace> {
        let address = address.map(network);
        let mut places = self.places();
        if places.all >= LISTENERS_MAX {
            return Err(NoPlace::Full);
        }
        if let Some(address) = address {
            let own = places.by_address.get(&address).copied().unwrap_or(0);
            if self.per_address_max.is_some_and(|max| own >= max) {
                return Err(NoPlace::OfAddress);
            }
            places.by_address.insert(address, own + 1);
        }
        places.all += 1;
        Ok(Place {
            listeners: self.clone(),
            address,
        })
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener's place, until it is dropped.
pub(super) struct Place {
    listeners: Arc<Listeners>,
    address: Option<IpAddr>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.listeners.places();
        places.all -= 1;
        let Some(address) = self.address else {
            return;
        };
        // An address that nobody listens at takes no room.
        if let Some(own) = places.by_address.get_mut(&address) {
            *own -= 1;
            if *own == 0 {
                places.by_address.remove(&address);
            }
        }
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

    fn address(number: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(number.into()))
    }

    #[test]
    fn there_is_a_place_for_each_of_so_many_and_again_when_one_goes() {
        let listeners = Arc::new(Listeners::new(None));
        let places: Vec<_> = (0..LISTENERS_MAX)
            .map_while(|_| listeners.enter(address(1)).ok())
            .collect();
        assert_eq!(places.len() as u64, LISTENERS_MAX);
        assert_eq!(listeners.enter(address(2)).err(), Some(NoPlace::Full));
        assert_eq!(listeners.enter(None).err(), Some(NoPlace::Full));
        drop(places);
        assert_eq!(listeners.now(), 0);
        assert!(listeners.enter(address(1)).is_ok());
    }

    #[test]
    fn one_address_took_all_places() {
        let listeners = Arc::new(Listeners::new(Some(3)));
        let mut own: Vec<_> = (0..5).map(|_| listeners.enter(address(1))).collect();
        assert_eq!(own.iter().filter(|place| place.is_ok()).count(), 3);
        let refused = own.pop().and_then(Result::err);
        assert_eq!(refused, Some(NoPlace::OfAddress));
        assert!(listeners.enter(address(2)).is_ok(), "another has its own");
        // Of IPv6 it is the network.
        let in_network = |text: &str| Some(text.parse().unwrap());
        let network: Vec<_> = (1..=4)
            .map(|host| listeners.enter(in_network(&format!("2001:db8::{host}"))))
            .collect();
        assert_eq!(network.iter().filter(|place| place.is_ok()).count(), 3);
        own.remove(0).expect("a place");
        assert!(listeners.enter(address(1)).is_ok(), "one has gone");
        drop((own, network));
        let places = listeners.places();
        assert_eq!((places.all, places.by_address.len()), (0, 0));
    }
}
