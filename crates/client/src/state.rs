//! The state of a client: its connections, its parsed URLs, its counts. Everything that works
//! on a request reaches the rest by it. Not for: the public face (`super::Client`).

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::rc::Rc;

use prony_base::Random;
use prony_engine::Handle;
use prony_wire::OwnedHeaders;

use super::connections::Pool;
use super::cookies::CookieJar;
use super::error::Error;
use super::origin::{self, Origin};
use super::resolve::Resolver;
use super::settings::Settings;
use super::target::Target;
use super::tls::{TlsConfig, TlsError};

/// Header lines of responses that are kept to be filled again.
const SPARE_HEADERS_MAX: usize = 64;
/// Most bytes of memory of each of these; those of a longer head are freed with its response.
const SPARE_HEADERS_BYTES_MAX: usize = 16 << 10;

/// The state of a client, which its clones, requests and responses share.
pub(super) struct ClientState {
    handle: Handle,
    settings: Settings,
    pool: Rc<Pool>,
    targets: RefCell<HashMap<String, Rc<Target>>>,
    counters: Counters,
    spare_headers: RefCell<Vec<OwnedHeaders>>,
    tls: OnceCell<TlsConfig>,
    resolver: Resolver,
    /// None: cookies are off.
    pub cookies: RefCell<Option<CookieJar>>,
    /// For the waits before retries.
    pub random: RefCell<Random>,
}

/// The counts of a client.
#[derive(Default)]
pub(super) struct Counters {
    pub started: Cell<u64>,
    pub answered: Cell<u64>,
    pub failed: Cell<u64>,
    pub cancelled: Cell<u64>,
    pub sent: Cell<u64>,
    pub resent: Cell<u64>,
    pub redirected: Cell<u64>,
    pub retried: Cell<u64>,
    pub connected: Cell<u64>,
}

/// Adds one.
#[inline]
pub(super) fn add(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

/// A client's counts. Each request is counted once:
/// `started = answered + failed + cancelled + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were started.
    pub started: u64,
    /// Requests whose response was received to its end.
    pub answered: u64,
    /// Requests that ended in an error.
    pub failed: u64,
    /// Requests that were dropped before either.
    pub cancelled: u64,
    /// Requests in flight, including those whose response is being read.
    pub in_flight: u64,
    /// Of those in flight, the ones that wait for a connection, or are pipelined on one.
    pub queued: u64,
    /// Exchanges started on a connection: what servers can have seen. Redirects and
    /// retries are further exchanges of the same request.
    pub exchanges: u64,
    /// Exchanges repeated because an idle connection was dead, or a connection broke before a
    /// pipelined request's turn.
    pub resent: u64,
    /// Redirects followed.
    pub redirected: u64,
    /// Exchanges repeated by the [retry policy](super::retry::RetryPolicy).
    pub retried: u64,
    /// Connections that were established.
    pub connected: u64,
    /// Connections that are open or being opened.
    pub connections: u64,
    /// Of these, the idle ones.
    pub idle: u64,
}

impl Drop for ClientState {
    fn drop(&mut self) {
        self.pool.close();
    }
}

/// The random numbers that spread retries.
fn retry_random(seed: Option<u64>) -> Random {
    Random::new(seed.unwrap_or_else(|| RandomState::new().hash_one("retries")))
}

impl ClientState {
    /// The state of a new client on this loop.
    pub fn new(handle: &Handle, settings: Settings) -> ClientState {
        ClientState {
            handle: handle.clone(),
            pool: Pool::new(handle, &settings),
            resolver: Resolver::new(handle, settings.resolve.clone()),
            cookies: RefCell::new(settings.cookies.clone()),
            random: RefCell::new(retry_random(settings.seed)),
            settings,
            targets: RefCell::default(),
            counters: Counters::default(),
            spare_headers: RefCell::default(),
            tls: OnceCell::new(),
        }
    }

    /// The settings that it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The loop that it is bound to.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Resolves names for it.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// Its connections.
    #[inline]
    pub fn pool(&self) -> &Rc<Pool> {
        &self.pool
    }

    /// Its counts, to be added to.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The configuration of TLS, built once.
    ///
    /// # Errors
    /// As of [`TlsSettings::build`](super::tls::TlsSettings::build).
    pub fn tls(&self) -> Result<TlsConfig, TlsError> {
        if let Some(config) = self.tls.get() {
            return Ok(config.clone());
        }
        let config = self.settings.tls.build()?;
        Ok(self.tls.get_or_init(|| config).clone())
    }

    /// Whether cookies are kept and sent.
    #[inline]
    pub fn has_cookies(&self) -> bool {
        self.settings.cookies.is_some()
    }

    /// The time of day in seconds since 1970.
    pub fn unix_seconds(&self) -> u64 {
        (self.settings.unix_nanos)() / 1_000_000_000
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let counters = &self.counters;
        let (connections, idle) = self.pool.connections();
        let (pipelined, pipelined_again) = self.pool.pipelined();
        let [started, answered, failed, cancelled] = [
            counters.started.get(),
            counters.answered.get(),
            counters.failed.get(),
            counters.cancelled.get(),
        ];
        Counts {
            started,
            answered,
            failed,
            cancelled,
            in_flight: started - answered - failed - cancelled,
            queued: self.pool.waiting() as u64,
            exchanges: counters.sent.get() + pipelined,
            resent: counters.resent.get() + pipelined_again,
            redirected: counters.redirected.get(),
            retried: counters.retried.get(),
            connected: counters.connected.get(),
            connections: connections as u64,
            idle: idle as u64,
        }
    }

    /// The target of a URL; the same text is parsed once.
    #[inline]
    pub fn target(&self, url: &str) -> Result<Rc<Target>, Error> {
        if let Some(target) = self.targets.borrow().get(url) {
            return Ok(target.clone());
        }
        self.new_target(url)
    }

    #[cold]
    fn new_target(&self, text: &str) -> Result<Rc<Target>, Error> {
        let url = origin::parse(text)?;
        let host = self.pool.host(Origin::from_url(&url)?);
        let target = Rc::new(Target::new(url, host));
        let mut targets = self.targets.borrow_mut();
        if targets.len() >= self.settings.parsed_urls_max {
            targets.clear();
        }
        if self.settings.parsed_urls_max > 0 {
            targets.insert(text.to_owned(), target.clone());
        }
        Ok(target)
    }

    /// Header lines to be filled, with the memory of earlier ones where there are any.
    pub fn take_headers(&self) -> OwnedHeaders {
        let spare = self.spare_headers.borrow_mut().pop();
        spare.unwrap_or_default()
    }

    /// Keeps the memory of header lines for a later response.
    pub fn give_back(&self, headers: OwnedHeaders) {
        let mut spare = self.spare_headers.borrow_mut();
        if spare.len() < SPARE_HEADERS_MAX && headers.memory_bytes() <= SPARE_HEADERS_BYTES_MAX {
            spare.push(headers);
        }
    }
}
