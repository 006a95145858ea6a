//! What is asked, and what is answered.
//!
//! `POST /` is the hot path: it looks at the path, the body and the log's level, adds, and
//! writes the number; it allocates nothing and asks the kernel nothing.

use std::rc::Rc;
use std::sync::Arc;

use prony_engine::Handle;
use prony_http::{Handler, Header, Method, Request, Response};
use prony_wire::json;

use super::clicks::{self, Digits};
use super::events::{Listeners, NoPlace, Telling};
use super::limiter::Limiter;
use super::log::{Level, Log};
use super::metrics::{Board, Counts, Process, Told};
use super::page;
use crate::counting::{Desk, Health, Name, Refusal, Tally};

const TEXT: Header<'_> = Header::new("content-type", b"text/plain; charset=utf-8");
const JSON: Header<'_> = Header::new("content-type", b"application/json");
const NO_STORE: Header<'_> = Header::new("cache-control", b"no-store");
/// A browser is given the page where others are given the number.
const VARY: Header<'_> = Header::new("vary", b"accept");
/// Of what is refused for now: when to come again, also for a page of another origin.
const EXPOSE: Header<'_> = Header::new("access-control-expose-headers", b"retry-after");
const SECOND: Header<'_> = Header::new("retry-after", b"1");

/// Any page may count.
pub const ANY_ORIGIN: Header<'_> = Header::new("access-control-allow-origin", b"*");

/// What all loops share.
pub struct Common {
    /// The counters.
    pub tally: Tally,
    /// The loops' numbers.
    pub board: Board,
    /// Who listens for events.
    pub listeners: Arc<Listeners>,
    /// None: addresses may ask as often as they like.
    pub limiter: Option<Limiter>,
}

/// Answers on one loop.
pub struct Answers {
    /// What all loops share.
    pub common: Arc<Common>,
    /// Where this one counts.
    pub desk: Rc<Desk>,
    /// Its log.
    pub log: Rc<Log>,
    /// Its numbers.
    pub counts: Arc<Counts>,
    /// Itself.
    pub handle: Handle,
}

/// What a path names.
#[derive(Debug, PartialEq)]
enum Place {
    /// A counter.
    Counter(Name),
    /// Events of a counter.
    Events(Name),
    Health,
    Metrics,
    /// Nothing, and why.
    Nothing(String),
}

impl Place {
    fn of(path: &str) -> Place {
        match path {
            "/" => return Place::Counter(Name::ROOT),
            "/events" => return Place::Events(Name::ROOT),
            "/healthz" => return Place::Health,
            "/metrics" => return Place::Metrics,
            _ => {}
        }
        let Some(name) = path.strip_prefix("/c/") else {
            return Place::Nothing(
                "there is /, /c/NAME, /events, /healthz and /metrics".to_owned(),
            );
        };
        let (name, make): (_, fn(Name) -> Place) = match name.strip_suffix("/events") {
            Some(name) => (name, Place::Events),
            None => (name, Place::Counter),
        };
        Name::new(name).map_or_else(|wrong| Place::Nothing(wrong.to_string()), make)
    }

    /// Its methods, for the Allow header.
    fn allow(&self) -> &'static str {
        match self {
            Place::Counter(_) => "GET, HEAD, POST, OPTIONS",
            _ => "GET, HEAD, OPTIONS",
        }
    }
}

impl Handler for Answers {
    #[inline]
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        if !self.log.logs(Level::Info) {
            return self.answer(request, response).await;
        }
        let began = self.handle.now();
        self.answer(request, response).await;
        let took = self.handle.now().since(began);
        let status = response.status().unwrap_or(0);
        let bytes = response.body_bytes();
        let peer = response.peer_addr();
        let peer: &dyn std::fmt::Display = peer.as_ref().map_or(&"-", |peer| peer);
        let (method, version) = (request.method(), request.version().name());
        self.log.line(
            Level::Info,
            format_args!(
                "{peer} \"{} {} {version}\" {status} {bytes} {:.3}",
                method.name(),
                request.target().replace('"', "%22"),
                took.as_micros_f64() / 1_000.0,
            ),
        );
    }
}

impl Answers {
    #[inline]
    async fn answer(&self, request: &Request<'_>, response: &mut Response) {
        if request.method() == Method::Post && request.target() == "/" {
            if self.admits(response) {
                self.click(&Name::ROOT, request.body(), response).await;
            }
            return;
        }
        self.answer_other(request, response).await;
    }

    async fn answer_other(&self, request: &Request<'_>, response: &mut Response) {
        let place = Place::of(request.path());
        let is_watch = matches!(place, Place::Health | Place::Metrics);
        if !is_watch && !self.admits(response) {
            return;
        }
        if let Place::Nothing(why) = &place {
            return response.text(404, &format!("{why}\n"));
        }
        match (request.method(), &place) {
            (Method::Options, _) => preflight(&place, response),
            (Method::Post, Place::Counter(name)) => {
                self.click(name, request.body(), response).await;
            }
            (Method::Get | Method::Head, Place::Counter(name)) => {
                self.show(name, request, response)
            }
            (Method::Get | Method::Head, Place::Events(name)) => self.tell(name, response).await,
            (Method::Get | Method::Head, Place::Health) => self.health(response),
            (Method::Get | Method::Head, Place::Metrics) => self.metrics(response),
            _ => response.method_not_allowed(place.allow()),
        }
    }

    /// Whether the client may ask; if not, it is told when.
    #[inline]
    fn admits(&self, response: &mut Response) -> bool {
        match &self.common.limiter {
            None => true,
            Some(limiter) => self.admits_within(limiter, response),
        }
    }

    fn admits_within(&self, limiter: &Limiter, response: &mut Response) -> bool {
        let Some(peer) = response.peer_addr() else {
            return true;
        };
        let Err(wait) = limiter.take(peer.ip(), self.handle.now()) else {
            return true;
        };
        self.counts.limited.add(1);
        let seconds = Digits::of(wait.0.div_ceil(1_000_000_000));
        let again = Header::new("retry-after", seconds.as_bytes());
        let why = b"this address asks more often than it may\n";
        response.send(429, [TEXT, again, EXPOSE], why);
        false
    }

    #[inline]
    async fn click(&self, name: &Name, body: &[u8], response: &mut Response) {
        let Some(clicks) = clicks::parse(body) else {
            return response.text(400, "the body is a number of clicks from 0 to 500\n");
        };
        match self.desk.click(name, clicks).await {
            Ok(total) => response.send(200, [TEXT], Digits::of(total).as_bytes()),
            Err(refusal) => self.refuse(refusal, response),
        }
    }

    #[cold]
    fn refuse(&self, refusal: Refusal, response: &mut Response) {
        self.counts.refused(refusal);
        self.log
            .line(Level::Debug, format_args!("clicks were refused: {refusal}"));
        let why = format!("{refusal}\n");
        response.send(503, [TEXT, SECOND, EXPOSE], why.as_bytes());
    }

    /// A browser asks for the page, anybody else for the number.
    fn show(&self, name: &Name, request: &Request<'_>, response: &mut Response) {
        if page::is_wanted(request.headers()) {
            return page::give(response);
        }
        let total = Digits::of(self.desk.total(name));
        response.send(200, [TEXT, NO_STORE, VARY], total.as_bytes());
    }

    async fn tell(&self, name: &Name, response: &mut Response) {
        let address = response.peer_addr().map(|peer| peer.ip());
        let place = match self.common.listeners.enter(address) {
            Ok(place) => place,
            Err(none) => return self.no_place(none, response),
        };
        let telling = Telling {
            handle: &self.handle,
            desk: &self.desk,
            name,
            sent: &self.counts.events,
        };
        telling.run(response, place).await;
    }

    #[cold]
    fn no_place(&self, none: NoPlace, response: &mut Response) {
        let (count, status, why): (_, _, &[u8]) = match none {
            NoPlace::Full => (
                &self.counts.listeners_full,
                503,
                b"there are as many listeners as there may be\n",
            ),
            NoPlace::OfAddress => (
                &self.counts.listeners_of_address,
                429,
                b"this address has as many listeners as it may have\n",
            ),
        };
        count.add(1);
        response.send(status, [TEXT, SECOND, EXPOSE], why);
    }

    fn health(&self, response: &mut Response) {
        let (status, said) = match self.common.tally.health() {
            Health::Ready => {
                let status = "ready".to_owned();
                (200, json::to_vec(&Ready { status }))
            }
            Health::Bridging { length, pending } => {
                let bridging = Bridging {
                    status: "bridging".to_owned(),
                    seconds: length.as_secs_f64(),
                    pending,
                };
                (200, json::to_vec(&bridging))
            }
            Health::Refusing { why } => {
                let status = "refusing".to_owned();
                (503, json::to_vec(&Refusing { status, why }))
            }
        };
        response.send(status, [JSON, NO_STORE], &said);
    }

    fn metrics(&self, response: &mut Response) {
        let common = &self.common;
        let told = Told {
            web: common.board.totals(),
            numbers: common.tally.numbers(),
            root_total: self.desk.total(&Name::ROOT),
            listeners: common.listeners.now(),
            process: Process::now(),
        };
        let kind = Header::new("content-type", super::metrics::TYPE);
        response.send(200, [kind, NO_STORE], told.text().as_bytes());
    }
}

json::message! {
    /// What `/healthz` says when all is well.
    struct Ready {
        status: String,
    }

    /// What it says while clicks wait in memory.
    struct Bridging {
        status: String,
        seconds: f64,
        pending: u64,
    }

    /// What it says while clicks are refused.
    struct Refusing {
        status: String,
        why: String,
    }
}

/// What a browser asks before a page of another origin may send what is not simple.
fn preflight(place: &Place, response: &mut Response) {
    let methods: &[u8] = match place {
        Place::Counter(_) => b"GET, POST",
        _ => b"GET",
    };
    let headers = [
        Header::new("allow", place.allow().as_bytes()),
        Header::new("access-control-allow-methods", methods),
        Header::new("access-control-allow-headers", b"*"),
        Header::new("access-control-max-age", b"3600"),
    ];
    response.send(204, headers, b"");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_places_exactly() {
        let named = |name: &str| Name::new(name).unwrap();
        for (path, place) in [
            ("/", Place::Counter(Name::ROOT)),
            ("/events", Place::Events(Name::ROOT)),
            ("/c/a.b", Place::Counter(named("a.b"))),
            ("/c/events", Place::Counter(named("events"))),
            ("/c/a/events", Place::Events(named("a"))),
            ("/healthz", Place::Health),
            ("/metrics", Place::Metrics),
        ] {
            assert_eq!(Place::of(path), place, "{path}");
        }
        for path in [
            "",
            "*",
            "//",
            "/c",
            "/c/",
            "/c//events",
            "/c/.",
            "/c/..",
            "/c/./events",
            "/c/../events",
            "/c/a/",
            "/c/a/b",
            "/c/%41",
            "/Events",
            "/x",
        ] {
            assert!(matches!(Place::of(path), Place::Nothing(_)), "{path}");
        }
    }
}
