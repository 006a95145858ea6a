//! Builds a request. Not for: sending it (`dispatch`).

use std::fmt;
use std::rc::Rc;

use prony_base::Nanos;
use prony_wire::{Header, Method};

use super::auth;
use super::body::{Body, Pieces};
use super::decode::DecodeSettings;
use super::dispatch;
use super::error::Error;
use super::multipart::Form;
use super::redirect::RedirectPolicy;
use super::request::{ClientRequest, Options, Progress};
use super::response::Response;
use super::retry::RetryPolicy;
use super::settings::HttpVersion;
use super::state::ClientState;

/// Builds a request. Errors are kept until [`send`](RequestBuilder::send).
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    client: Rc<ClientState>,
    request: Result<ClientRequest, Error>,
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
    pub(super) fn new(client: Rc<ClientState>, method: Method, url: &str) -> Self {
        let target = client.target(url);
        let request = target.map(|target| ClientRequest {
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
    /// and cannot be set; a Host or User-Agent replaces the client's own.
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
        let body = body.into().resendable();
        self.with(|request| request.body = body)
    }

    /// Sets the body to a stream of pieces, which are requested as the connection takes them.
    /// `length` in bytes where it is known; otherwise they are sent in chunks.
    pub fn body_stream(self, pieces: impl Pieces + 'static, length: Option<u64>) -> Self {
        self.body(Body::pieces(pieces, length))
    }

    /// Sets the body to a form, and the Content-Type with it.
    pub fn multipart(self, form: Form) -> Self {
        let (content_type, body) = form.build().into_body();
        self.header("content-type", content_type).body(body)
    }

    /// Sets which redirects are followed; see [`Settings::redirects`](super::Settings).
    pub fn redirects(self, policy: RedirectPolicy) -> Self {
        self.option(|options| options.redirects = Some(policy))
    }

    /// Sets which failures are retried; see [`Settings::retries`](super::Settings).
    pub fn retries(self, policy: RetryPolicy) -> Self {
        self.option(|options| options.retries = Some(policy))
    }

    /// Sets which content codings are requested and decoded; see
    /// [`Settings::decode`](super::Settings). None are where the caller sets an Accept-Encoding
    /// or a Range.
    pub fn decode(self, settings: DecodeSettings) -> Self {
        self.option(|options| options.decode = Some(settings))
    }

    /// Authenticates with user and password (RFC 7617).
    pub fn basic_auth(self, user: &str, password: &str) -> Self {
        let value = auth::basic(user.as_bytes(), password.as_bytes());
        self.header("authorization", value)
    }

    /// Authenticates with a bearer token (RFC 6750).
    pub fn bearer_auth(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    /// Sets the overall time-out; see [`Settings::timeout`](super::Settings).
    pub fn timeout(self, length: Nanos) -> Self {
        self.option(|options| options.timeout = Some(length))
    }

    /// Sets how long the first byte of the response may take.
    pub fn first_byte_timeout(self, length: Nanos) -> Self {
        self.option(|options| options.first_byte_timeout = Some(length))
    }

    /// Sets the version of HTTP.
    pub fn version(self, version: HttpVersion) -> Self {
        self.option(|options| options.version = Some(version))
    }

    /// Sets a callback that the loop calls whenever bytes of a body have moved: keep it short.
    pub fn on_progress(self, callback: impl Fn(Progress) + 'static) -> Self {
        self.option(|options| options.on_progress = Some(Rc::new(callback)))
    }

    /// The request, to be kept and sent by [`Client::send`](super::Client::send).
    ///
    /// # Errors
    /// [`RequestPhase::Request`](super::RequestPhase): the URL is malformed.
    pub fn build(self) -> Result<ClientRequest, Error> {
        self.request
    }

    /// Sends it and waits for the head of the response. Dropping the future, or the
    /// [`Response`] before its end, cancels the request.
    ///
    /// # Errors
    /// [`Error`], with the phase, the address and the cause. A status is no error.
    #[inline]
    pub fn send(self) -> impl Future<Output = Result<Response, Error>> {
        dispatch::send(self.client, self.request)
    }

    fn with(mut self, change: impl FnOnce(&mut ClientRequest)) -> Self {
        if let Ok(request) = &mut self.request {
            change(request);
        }
        self
    }

    fn option(self, change: impl FnOnce(&mut Options)) -> Self {
        self.with(|request| change(request.options.get_or_insert_default()))
    }
}
