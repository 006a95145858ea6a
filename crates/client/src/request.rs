//! A request that is ready to be sent, and its own settings. Not for: building one (`builder`).

use std::fmt;
use std::rc::Rc;

use prony_base::Nanos;
use prony_wire::{Header, Method};

use super::body::Body;
use super::decode::DecodeSettings;
use super::redirect::RedirectPolicy;
use super::retry::RetryPolicy;
use super::settings::{HttpVersion, Settings};
use super::target::Target;

/// The progress of a request, as its callback receives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the request's body sent so far.
    pub sent_bytes: u64,
    /// Bytes of the response's body received so far, before decoding.
    pub received_bytes: u64,
    /// Length of the response's body in bytes, where its head states it.
    pub total_bytes: Option<u64>,
}

/// A progress callback.
pub(super) type OnProgress = Rc<dyn Fn(Progress)>;

/// Settings that few requests have, apart so that the others do not carry them.
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
pub struct ClientRequest {
    pub(super) target: Rc<Target>,
    pub(super) method: Method,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    /// Header lines that the client adds for one exchange: codings, cookies.
    pub(super) own_headers: Vec<(&'static str, String)>,
    pub(super) body: Body,
    pub(super) options: Option<Box<Options>>,
}

impl fmt::Debug for ClientRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientRequest({} {})", self.method, self.target.url)
    }
}

impl ClientRequest {
    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The URL.
    pub fn url(&self) -> &str {
        self.target.url.as_str()
    }

    /// The header lines that the caller set.
    pub fn headers(&self) -> impl Iterator<Item = Header<'_>> {
        let lines = self.headers.iter();
        lines.map(|(name, value)| Header::new(name, value))
    }

    /// The same, followed by those that the client adds.
    pub(super) fn all_headers(&self) -> impl Iterator<Item = Header<'_>> {
        let own_headers = self.own_headers.iter();
        self.headers()
            .chain(own_headers.map(|(name, value)| Header::new(name, value.as_bytes())))
    }

    /// A copy of the request; None where its body can be read only once.
    pub fn again(&self) -> Option<ClientRequest> {
        let body = match &self.body {
            Body::Empty => Body::Empty,
            Body::Bytes(bytes) => Body::Bytes(bytes.clone()),
            Body::Pieces(..) => return None,
        };
        Some(ClientRequest {
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

    /// The content codings to request and to decode; None where the caller set Accept-Encoding,
    /// or a Range, since no decoder can begin in the middle.
    pub(super) fn decode_settings<'a>(
        &'a self,
        settings: &'a Settings,
    ) -> Option<&'a DecodeSettings> {
        let options = self.options.as_ref();
        let decode = options.and_then(|options| options.decode.as_ref());
        let decode = decode.unwrap_or(&settings.decode);
        let is_requested =
            !decode.codings.is_empty() && !self.has("accept-encoding") && !self.has("range");
        is_requested.then_some(decode)
    }

    pub(super) fn version(&self) -> Option<HttpVersion> {
        self.options.as_ref().and_then(|options| options.version)
    }
}
