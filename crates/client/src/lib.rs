#![doc = include_str!("../../../docs/http-client.md")]
#![forbid(unsafe_code)]

mod all;
mod answer;
mod auth;
pub mod blocking;
mod body;
mod builder;
mod connect;
mod connections;
pub mod cookies;
mod dispatch;
pub mod error;
mod h1;
mod http2;
mod line;
pub mod multipart;
mod origin;
mod policy;
mod pool;
pub mod proxy;
pub mod redirect;
mod request;
pub mod resolve;
mod response;
pub mod retry;
mod send;
mod settings;
mod state;
mod target;
mod timeouts;
mod timing;
pub mod tls;
pub mod transport;

use std::fmt;
use std::rc::Rc;

use prony_engine::Handle;
use prony_wire::Method;

pub use all::All;
pub use body::{Body, Pieces, SENDING_BYTES_MAX};
pub use builder::RequestBuilder;
pub use error::{Error, Kind, RequestPhase, TimeLimit};
pub use origin::Origin;
pub use prony_codings as decode;
pub use request::{ClientRequest, Progress};
pub use response::Response;
pub use settings::{HttpVersion, Settings};
pub use state::Counts;
pub use timing::{Timing, Version};
pub use transport::{Chunk, Transport};

use cookies::CookieJar;
use state::ClientState;

/// A client, bound to one loop. Cheap to clone; clones share connections and counts.
/// Its connections are closed when the last clone and the last response are gone.
#[derive(Clone)]
pub struct Client(Rc<ClientState>);

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?})", self.counts())
    }
}

impl Client {
    /// A client on this loop.
    pub fn new(handle: &Handle, settings: Settings) -> Client {
        Client(Rc::new(ClientState::new(handle, settings)))
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
        RequestBuilder::new(self.0.clone(), method, url)
    }

    /// Sends a request that was [built](RequestBuilder::build) before.
    ///
    /// # Errors
    /// As of [`RequestBuilder::send`].
    pub fn send(
        &self,
        request: ClientRequest,
    ) -> impl Future<Output = Result<Response, Error>> + use<> {
        dispatch::send(self.0.clone(), Ok(request))
    }

    /// Sends many requests, at most `at_once` at the same time, and yields their
    /// responses as they come.
    ///
    /// ```
    /// # use prony_client::{Client, Settings};
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

    /// Its counts so far.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }

    /// A copy of its cookies as they are now, to read or to
    /// [save](cookies::CookieJar::save); None where cookies are off.
    pub fn cookies(&self) -> Option<CookieJar> {
        self.0.cookies.borrow().clone()
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        self.0.settings()
    }

    fn handle(&self) -> &Handle {
        self.0.handle()
    }
}
