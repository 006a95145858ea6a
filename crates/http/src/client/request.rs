//! A request as it is put together. Not for: its way (`send`).

use std::fmt;
use std::rc::Rc;

use prony_base::Nanos;
use prony_wire::{Header, Method};

use super::Client;
use super::auth;
use super::body::{Body, Pieces};
use super::decode::DecodeSettings;
use super::error::Error;
use super::h1;
use super::multipart::Form;
use super::redirect::RedirectPolicy;
use super::response::Response;
use super::retry::RetryPolicy;
use super::send;
use super::settings::HttpVersion;
use super::target::Target;

/// How far a request is, as its progress callback gets to know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the request's body that were sent.
    pub sent_bytes: u64,
    /// Bytes of the answer's body that were received, before decoding.
    pub received_bytes: u64,
    /// Bytes of the answer's body in all, where its head says so.
    pub total_bytes: Option<u64>,
}

/// Told how far a request is.
pub(super) type OnProgress = Rc<dyn Fn(Progress)>;

/// What few requests have; the others do not pay for its room.
#[derive(Clone, Default)]
pub(super) struct Options {
    pub timeout: Option<Nanos>,
    pub first_byte_timeout: Option<Nanos>,
    pub version: Option<HttpVersion>,
    pub on_progress: Option<OnProgress>,
    pub redirects: Option<RedirectPolicy>,
    pub retries: Option<RetryPolicy>,
    pub decode: Option<DecodeSettings>,
}

/// A request that is ready to be sent.
pub struct Request {
    pub(super) target: Rc<Target>,
    pub(super) method: Method,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    /// What the client adds of its own for one exchange: codings, cookies.
    pub(super) own_headers: Vec<(&'static str, String)>,
    pub(super) body: Body,
    pub(super) options: Option<Box<Options>>,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} {})", self.method, self.target.url)
    }
}

impl Request {
    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The URL.
    pub fn url(&self) -> &str {
        self.target.url.as_str()
    }

    /// The header lines that were given.
    pub fn headers(&self) -> impl Iterator<Item = Header<'_>> {
        let lines = self.headers.iter();
        lines.map(|(name, value)| Header::new(name, value))
    }

    /// The same, and those that the client adds.
    pub(super) fn all_headers(&self) -> impl Iterator<Item = Header<'_>> {
        let own = self.own_headers.iter();
        self.headers()
            .chain(own.map(|(name, value)| Header::new(name, value.as_bytes())))
    }

    /// The same request once more; None where its body can be had only once.
    pub fn again(&self) -> Option<Request> {
        let body = match &self.body {
            Body::Empty => Body::Empty,
            Body::Bytes(bytes) => Body::Bytes(bytes.clone()),
            Body::Pieces(..) => return None,
        };
        Some(Request {
            target: self.target.clone(),
            method: self.method,
            headers: self.headers.clone(),
            own_headers: Vec::new(),
            body,
            options: self.options.clone(),
        })
    }

    #[inline]
    pub(super) fn has(&self, name: &str) -> bool {
        let mut lines = self.headers.iter();
        lines.any(|(given, _)| given.eq_ignore_ascii_case(name))
    }

    pub(super) fn version(&self) -> Option<HttpVersion> {
        self.options.as_ref().and_then(|options| options.version)
    }
}

/// Puts a request together. Faults are kept until [`send`](RequestBuilder::send).
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    client: Client,
    request: Result<Request, Error>,
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.request {
            Ok(request) => write!(f, "RequestBuilder({request:?})"),
            Err(error) => write!(f, "RequestBuilder({error})"),
        }
    }
}

impl RequestBuilder {
    #[inline]
    pub(super) fn new(client: Client, method: Method, target: Result<Rc<Target>, Error>) -> Self {
        let request = target.map(|target| Request {
            target,
            method,
            headers: Vec::new(),
            own_headers: Vec::new(),
            body: Body::Empty,
            options: None,
        });
        RequestBuilder { client, request }
    }

    /// Adds a header line. Content-Length and Transfer-Encoding follow from the body
    /// and cannot be given; Host, User-Agent and others of the client's are replaced.
    pub fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let line = (name.to_owned(), value.as_ref().to_owned());
        self.with(|request| request.headers.push(line))
    }

    /// Adds header lines.
    pub fn headers<'h>(self, headers: impl IntoIterator<Item = Header<'h>>) -> Self {
        let lines = headers.into_iter();
        lines.fold(self, |builder, line| builder.header(line.name, line.value))
    }

    /// Sets the body: bytes, text, or a [`Body`].
    pub fn body(self, body: impl Into<Body>) -> Self {
        let body = match body.into() {
            Body::Bytes(bytes) => Body::Bytes(h1::shared(bytes)),
            other => other,
        };
        self.with(|request| request.body = body)
    }

    /// Sets the body to pieces, which are asked for as the connection takes them.
    /// `length` in bytes where it is known; otherwise they go out in chunks.
    pub fn body_stream(self, pieces: impl Pieces + 'static, length: Option<u64>) -> Self {
        self.body(Body::pieces(pieces, length))
    }

    /// Sets the body to a form, and the Content-Type with it.
    pub fn multipart(self, form: Form) -> Self {
        let (content_type, body) = form.build().into_body();
        self.header("content-type", content_type).body(body)
    }

    /// Which redirects are followed; see [`Settings::redirects`](super::Settings).
    pub fn redirects(self, policy: RedirectPolicy) -> Self {
        self.option(|options| options.redirects = Some(policy))
    }

    /// What is tried again; see [`Settings::retries`](super::Settings).
    pub fn retries(self, policy: RetryPolicy) -> Self {
        self.option(|options| options.retries = Some(policy))
    }

    /// Which content codings are asked for and taken off; see
    /// [`Settings::decode`](super::Settings). With an Accept-Encoding or a Range of the
    /// caller's own, none are.
    pub fn decode(self, settings: DecodeSettings) -> Self {
        self.option(|options| options.decode = Some(settings))
    }

    /// User and password (RFC 7617).
    pub fn basic_auth(self, user: &str, password: &str) -> Self {
        let value = auth::basic(user.as_bytes(), password.as_bytes());
        self.header("authorization", value)
    }

    /// A bearer token (RFC 6750).
    pub fn bearer_auth(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    /// How long the request may take in all; see [`Settings::timeout`](super::Settings).
    pub fn timeout(self, length: Nanos) -> Self {
        self.option(|options| options.timeout = Some(length))
    }

    /// How long the first byte of the answer may take.
    pub fn first_byte_timeout(self, length: Nanos) -> Self {
        self.option(|options| options.first_byte_timeout = Some(length))
    }

    /// The version of HTTP.
    pub fn version(self, version: HttpVersion) -> Self {
        self.option(|options| options.version = Some(version))
    }

    /// Called on the loop whenever bytes of a body have moved: keep it short.
    pub fn on_progress(self, tell: impl Fn(Progress) + 'static) -> Self {
        self.option(|options| options.on_progress = Some(Rc::new(tell)))
    }

    /// The request, to be kept and sent by [`Client::send`].
    ///
    /// # Errors
    /// [`Phase::Request`](super::Phase): what is wrong with the URL.
    pub fn build(self) -> Result<Request, Error> {
        self.request
    }

    /// Sends it and waits for the head of the answer. Dropping the future, or the
    /// [`Response`] before its end, cancels the request.
    ///
    /// # Errors
    /// [`Error`], with the phase, the address and what was said. A status is no error.
    #[inline]
    pub fn send(self) -> impl Future<Output = Result<Response, Error>> {
        send::send(self.client, self.request)
    }

    fn with(mut self, change: impl FnOnce(&mut Request)) -> Self {
        if let Ok(request) = &mut self.request {
            change(request);
        }
        self
    }

    fn option(self, change: impl FnOnce(&mut Options)) -> Self {
        self.with(|request| change(request.options.get_or_insert_default()))
    }
}
