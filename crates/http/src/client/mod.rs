#![doc = include_str!("../../../../docs/http-client.md")]

mod all;
mod around;
mod auth;
pub mod blocking;
mod body;
mod connect;
pub mod cookies;
pub mod decode;
pub mod error;
#[doc(hidden)]
pub mod guide;
mod h1;
mod http2;
mod line;
pub mod multipart;
mod pool;
pub mod proxy;
pub mod redirect;
mod request;
pub mod resolve;
mod response;
pub mod retry;
mod send;
mod settings;
mod target;
pub mod tls;
pub mod transport;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use prony_base::Random;
use prony_engine::Handle;
use prony_wire::{Method, OwnedHeaders};
use url::Url;

pub use all::All;
pub use body::{Body, Pieces};
pub use error::{Error, Kind, Phase, TimeLimit};
pub use request::{Progress, Request, RequestBuilder};
pub use response::{Response, Timing, Version};
pub use settings::{HttpVersion, Settings};
pub use target::{Origin, stray_control};
pub use transport::{Chunk, Transport};

use cookies::CookieJar;
use pool::Pool;
use resolve::Resolver;
use target::Target;
use tls::{TlsConfig, TlsError};

/// Bytes of a streamed request's body that are posted and not yet with the kernel before
/// no further piece is asked for.
pub const SENDING_BYTES_MAX: usize = 256 << 10;

/// Header lines of answers that are kept to be filled again.
const SPARE_HEADERS_MAX: usize = 64;
/// Bytes of memory of each of these: those of a longer head go with its answer.
const SPARE_HEADERS_BYTES_MAX: usize = 16 << 10;

/// A client, bound to one loop. Cheap to clone; clones share connections and counts.
/// When the last clone and the last answer are gone, its connections are closed.
#[derive(Clone)]
pub struct Client(Rc<Shared>);

struct Shared {
    handle: Handle,
    settings: Settings,
    pool: Rc<Pool>,
    targets: RefCell<HashMap<String, Rc<Target>>>,
    counters: Counters,
    spare_headers: RefCell<Vec<OwnedHeaders>>,
    tls: OnceCell<TlsConfig>,
    resolver: Resolver,
    /// None: cookies are off.
    cookies: RefCell<Option<CookieJar>>,
    random: RefCell<Random>,
}

/// What is counted of a client.
#[derive(Default)]
struct Counters {
    started: Cell<u64>,
    answered: Cell<u64>,
    failed: Cell<u64>,
    cancelled: Cell<u64>,
    sent: Cell<u64>,
    resent: Cell<u64>,
    redirected: Cell<u64>,
    retried: Cell<u64>,
    connected: Cell<u64>,
}

/// What a client has come to so far. Each request is counted once:
/// `started = answered + failed + cancelled + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were sent, or tried to be.
    pub started: u64,
    /// Requests whose answer was received to its end.
    pub answered: u64,
    /// Requests that ended in an error.
    pub failed: u64,
    /// Requests that were dropped before either.
    pub cancelled: u64,
    /// Requests under way, answers that are being read included.
    pub in_flight: u64,
    /// Of those under way, the ones that wait for a connection, or behind others on one.
    pub queued: u64,
    /// Exchanges begun on a connection: what servers can have seen. Redirects and
    /// retries are further ones of the same request.
    pub exchanges: u64,
    /// Exchanges repeated because a connection that had been at rest was dead, or broke
    /// before the answer's turn had come.
    pub resent: u64,
    /// Redirects followed.
    pub redirected: u64,
    /// Exchanges repeated by the [retry policy](retry::RetryPolicy).
    pub retried: u64,
    /// Connections that came about.
    pub connected: u64,
    /// Connections that are open or being opened.
    pub connections: u64,
    /// Of these, the ones at rest.
    pub idle: u64,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?})", self.counts())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.close();
    }
}

impl Client {
    /// A client on this loop.
    pub fn new(handle: &Handle, settings: Settings) -> Client {
        Client(Rc::new(Shared {
            handle: handle.clone(),
            pool: Pool::new(handle, &settings),
            resolver: Resolver::new(handle, settings.resolve.clone()),
            cookies: RefCell::new(settings.cookies.clone()),
            random: RefCell::new(around::random(settings.seed)),
            settings,
            targets: RefCell::default(),
            counters: Counters::default(),
            spare_headers: RefCell::default(),
            tls: OnceCell::new(),
        }))
    }

    /// A GET.
    pub fn get(&self, url: &str) -> RequestBuilder {
        self.request(Method::Get, url)
    }

    /// A HEAD.
    pub fn head(&self, url: &str) -> RequestBuilder {
        self.request(Method::Head, url)
    }

    /// A POST.
    pub fn post(&self, url: &str) -> RequestBuilder {
        self.request(Method::Post, url)
    }

    /// A PUT.
    pub fn put(&self, url: &str) -> RequestBuilder {
        self.request(Method::Put, url)
    }

    /// A DELETE.
    pub fn delete(&self, url: &str) -> RequestBuilder {
        self.request(Method::Delete, url)
    }

    /// A request of any method.
    #[inline]
    pub fn request(&self, method: Method, url: &str) -> RequestBuilder {
        let target = self.target(url);
        RequestBuilder::new(self.clone(), method, target)
    }

    /// Sends a request that was [built](RequestBuilder::build) before.
    ///
    /// # Errors
    /// As of [`RequestBuilder::send`].
    pub fn send(&self, request: Request) -> impl Future<Output = Result<Response, Error>> + use<> {
        send::send(self.clone(), Ok(request))
    }

    /// Sends many requests, at most `at_once` at the same time, and yields their
    /// answers as they come.
    ///
    /// ```
    /// # use prony_http::client::{Client, Settings};
    /// # async fn example(client: Client) {
    /// let urls = ["http://127.0.0.1:8080/a", "http://127.0.0.1:8080/b"];
    /// let mut all = client.all(urls.map(|url| client.get(url)), 8);
    /// while let Some((place, answer)) = all.next().await {
    ///     match answer {
    ///         Ok(answer) => println!("{}: {}", urls[place], answer.status()),
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn all<I>(&self, requests: I, at_once: usize) -> All<I::IntoIter>
    where
        I: IntoIterator<Item = RequestBuilder>,
    {
        All::new(self.handle(), requests.into_iter(), at_once)
    }

    /// What it has come to so far.
    pub fn counts(&self) -> Counts {
        let counters = self.counters();
        let (connections, idle) = self.0.pool.connections();
        let (pipelined, pipelined_again) = self.0.pool.pipelined();
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
            queued: self.0.pool.waiting() as u64,
            exchanges: counters.sent.get() + pipelined,
            resent: counters.resent.get() + pipelined_again,
            redirected: counters.redirected.get(),
            retried: counters.retried.get(),
            connected: counters.connected.get(),
            connections: connections as u64,
            idle: idle as u64,
        }
    }

    /// A copy of the cookies that it has now, to look at or to
    /// [save](cookies::CookieJar::save); None where cookies are off.
    pub fn cookies(&self) -> Option<CookieJar> {
        self.0.cookies.borrow().clone()
    }

    /// What it was told.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    fn handle(&self) -> &Handle {
        &self.0.handle
    }

    fn resolver(&self) -> &Resolver {
        &self.0.resolver
    }

    fn pool(&self) -> &Rc<Pool> {
        &self.0.pool
    }

    fn counters(&self) -> &Counters {
        &self.0.counters
    }

    fn tls(&self) -> Result<TlsConfig, TlsError> {
        if let Some(config) = self.0.tls.get() {
            return Ok(config.clone());
        }
        let config = self.0.settings.tls.build()?;
        Ok(self.0.tls.get_or_init(|| config).clone())
    }

    /// A URL, checked; the same text is checked once.
    #[inline]
    fn target(&self, url: &str) -> Result<Rc<Target>, Error> {
        if let Some(target) = self.0.targets.borrow().get(url) {
            return Ok(target.clone());
        }
        self.new_target(url)
    }

    #[cold]
    fn new_target(&self, text: &str) -> Result<Rc<Target>, Error> {
        let bad = |why| Error::new(Phase::Request, Kind::BadUrl(why)).url(text);
        if let Some(why) = stray_control(text) {
            return Err(bad(why));
        }
        let url = Url::parse(text).map_err(|error| bad(error.to_string()))?;
        let host = self.pool().host(Origin::of(&url)?);
        let target = Rc::new(Target::new(url, host));
        let mut targets = self.0.targets.borrow_mut();
        if targets.len() >= self.0.settings.parsed_urls_max {
            targets.clear();
        }
        if self.0.settings.parsed_urls_max > 0 {
            targets.insert(text.to_owned(), target.clone());
        }
        Ok(target)
    }

    fn take_headers(&self) -> OwnedHeaders {
        let spare = self.0.spare_headers.borrow_mut().pop();
        spare.unwrap_or_default()
    }

    fn give_back(&self, headers: OwnedHeaders) {
        let mut spare = self.0.spare_headers.borrow_mut();
        if spare.len() < SPARE_HEADERS_MAX && headers.memory_bytes() <= SPARE_HEADERS_BYTES_MAX {
            spare.push(headers);
        }
    }
}
