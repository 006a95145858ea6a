//! Why a request got no answer: what the client was at, with which address, and
//! what the system or the other side reported. Not for: statuses, which are answers.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use prony_base::Nanos;
use prony_wire::encode::EncodeError;

use super::decode::DecodeError;
use super::redirect::RedirectError;
use super::resolve::ResolveError;
use super::tls::TlsError;

/// Linux's numbers for "too many open files", of the system and of the process, for which
/// the standard library has no name.
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

/// The phase in which a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestPhase {
    /// Checking the request, before anything was sent.
    Request,
    /// Waiting for one of the connections that [`Settings`](super::Settings) allow.
    Queue,
    /// Turning a name into addresses.
    Resolve,
    /// Connecting.
    Connect,
    /// Asking a proxy for a way through.
    Proxy,
    /// The handshake of TLS.
    Tls,
    /// Sending the request.
    Send,
    /// Waiting for an answer of which no byte has come.
    Wait,
    /// Reading the answer's head.
    Head,
    /// Reading the answer's body.
    Body,
    /// Following a redirect.
    Redirect,
    /// Taking a content coding off the answer's body.
    Decode,
}

impl RequestPhase {
    /// Its name in one word, as programs print it.
    pub const fn name(self) -> &'static str {
        match self {
            RequestPhase::Request => "request",
            RequestPhase::Queue => "queue",
            RequestPhase::Resolve => "resolve",
            RequestPhase::Connect => "connect",
            RequestPhase::Proxy => "proxy",
            RequestPhase::Tls => "tls",
            RequestPhase::Send => "send",
            RequestPhase::Wait => "wait",
            RequestPhase::Head => "head",
            RequestPhase::Body => "body",
            RequestPhase::Redirect => "redirect",
            RequestPhase::Decode => "decode",
        }
    }
}

impl fmt::Display for RequestPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequestPhase::Request => "preparing the request",
            RequestPhase::Queue => "waiting for a connection",
            RequestPhase::Resolve => "resolving the name",
            RequestPhase::Connect => "connecting",
            RequestPhase::Proxy => "asking the proxy",
            RequestPhase::Tls => "securing the connection",
            RequestPhase::Send => "sending the request",
            RequestPhase::Wait => "waiting for the answer",
            RequestPhase::Head => "reading the answer's head",
            RequestPhase::Body => "reading the answer's body",
            RequestPhase::Redirect => "following a redirect",
            RequestPhase::Decode => "decoding the answer's body",
        })
    }
}

/// Which of the time-outs has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeLimit {
    /// `connect_timeout`: resolving, connecting, proxy and TLS together.
    Connect,
    /// `first_byte_timeout`: from the request to the answer's first byte.
    FirstByte,
    /// `stall_timeout`: nothing came, or nothing of the request was taken.
    Stall,
    /// `timeout`: the whole request, redirects, retries and body included.
    Whole,
}

impl TimeLimit {
    /// The name of the setting.
    pub const fn name(self) -> &'static str {
        match self {
            TimeLimit::Connect => "connect_timeout",
            TimeLimit::FirstByte => "first_byte_timeout",
            TimeLimit::Stall => "stall_timeout",
            TimeLimit::Whole => "timeout",
        }
    }

    /// The event that was not in time.
    const fn missed(self) -> &'static str {
        match self {
            TimeLimit::Connect => "no connection",
            TimeLimit::FirstByte => "no byte of an answer",
            TimeLimit::Stall => "nothing moved",
            TimeLimit::Whole => "not done",
        }
    }
}

/// The kinds of errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Kind {
    /// The given text is not a URL that can be fetched.
    #[error("{0}")]
    BadUrl(String),
    /// The request cannot be sent so.
    #[error("{0}")]
    BadRequest(#[source] EncodeError),
    /// The source of the request's body failed.
    #[error("the source of the body failed: {0}")]
    BodySource(#[source] io::Error),
    /// The source of the request's body gave another number of bytes than was announced.
    #[error("the body was announced with {announced} bytes, its source gave {given}")]
    BodyLength {
        /// Bytes announced.
        announced: u64,
        /// Bytes given, as far as they were taken.
        given: u64,
    },
    /// More requests wait for a connection than the setting, whose value this is, allows.
    #[error("as many requests as queue_max allows ({0}) wait already")]
    QueueFull(usize),
    /// The thread that a blocking client runs its loop on is gone.
    #[error("the client's thread is gone")]
    LoopGone,
    /// The name was not found, or could not be looked up.
    #[error("{0}")]
    Resolve(#[source] ResolveError),
    /// The connection was refused: no socket listens at that address.
    #[error("the connection was refused: {0}")]
    Refused(#[source] io::Error),
    /// The other side broke the connection off.
    #[error("the connection was broken off: {0}")]
    Reset(#[source] io::Error),
    /// There is no way to the address.
    #[error("{0}")]
    Unreachable(#[source] io::Error),
    /// This process or system has no more descriptors.
    #[error("no descriptor is left: {0}")]
    OutOfDescriptors(#[source] io::Error),
    /// Any other failure of the system.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// Every address of the name failed, each for its own reason.
    #[error("no address answered: {}", each(.0))]
    AllAddresses(Vec<(SocketAddr, io::Error)>),
    /// A time-out passed.
    #[error("{} in the {length} that {} allows", .0.missed(), .0.name(), length = .1)]
    TimedOut(TimeLimit, Nanos),
    /// The server closed the connection without a byte of an answer.
    #[error("the server closed the connection without an answer")]
    Closed,
    /// The connection ended within the answer.
    #[error("the connection ended in the middle of the answer")]
    Truncated,
    /// The answer breaks a rule or a limit of HTTP.
    #[error("{0}")]
    Wire(#[source] prony_wire::Error),
    /// The body has more bytes than this limit on collected bodies.
    #[error("the body has more bytes than collected_bytes_max allows ({0})")]
    BodyTooLong(u64),
    /// The proxy answered with this status.
    #[error("the proxy refused with status {0}")]
    ProxyRefused(u16),
    /// The proxy wants credentials, or others (407).
    #[error("the proxy wants credentials, or others (407)")]
    ProxyCredentials,
    /// The handshake or the session of TLS failed.
    #[error("{0}")]
    Tls(#[source] TlsError),
    /// The other side broke a rule of HTTP/2, or ended the stream so.
    #[error("{0}")]
    Http2(String),
    /// The server says that it did nothing of the request, which can be sent again
    /// (HTTP/2: a refused stream, or a connection that is being closed).
    #[error("the server did nothing of the request: {0}")]
    NotHandled(String),
    /// An answer redirects to where it cannot be followed.
    #[error("{0}")]
    Redirect(#[source] RedirectError),
    /// The body's coding is unknown, broken, cut off or too good to be true.
    #[error("{0}")]
    Decode(#[source] DecodeError),
    /// Keeping cookies or a file failed.
    #[error("{0}")]
    File(#[source] io::Error),
}

impl Kind {
    /// A failure of the system by its name.
    pub fn of_io(error: io::Error) -> Kind {
        if let Some(tls) = TlsError::within(&error) {
            return Kind::Tls(tls.clone());
        }
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::ConnectionRefused, _) => Kind::Refused(error),
            (
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe,
                _,
            ) => Kind::Reset(error),
            (io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable, _) => {
                Kind::Unreachable(error)
            }
            (_, Some(ENFILE | EMFILE)) => Kind::OutOfDescriptors(error),
            _ => Kind::Io(error),
        }
    }

    /// A fault that the reader of answers found, by its name.
    pub fn of_wire(error: prony_wire::Error) -> Kind {
        match error {
            prony_wire::Error::TruncatedHead | prony_wire::Error::TruncatedBody => Kind::Truncated,
            other => Kind::Wire(other),
        }
    }

    /// Its name in one word, as programs print it.
    pub const fn name(&self) -> &'static str {
        match self {
            Kind::BadUrl(_) => "bad_url",
            Kind::BadRequest(_) => "bad_request",
            Kind::BodySource(_) => "body_source",
            Kind::BodyLength { .. } => "body_length",
            Kind::QueueFull(_) => "queue_full",
            Kind::LoopGone => "loop_gone",
            Kind::Resolve(error) => error.kind_name(),
            Kind::Refused(_) => "refused",
            Kind::Reset(_) => "reset",
            Kind::Unreachable(_) => "unreachable",
            Kind::OutOfDescriptors(_) => "out_of_descriptors",
            Kind::Io(_) => "io",
            Kind::AllAddresses(_) => "all_addresses",
            Kind::TimedOut(_, _) => "timed_out",
            Kind::Closed => "closed",
            Kind::Truncated => "truncated",
            Kind::Wire(_) => "wire",
            Kind::BodyTooLong(_) => "body_too_long",
            Kind::ProxyRefused(_) => "proxy_refused",
            Kind::ProxyCredentials => "proxy_credentials",
            Kind::Tls(error) => error.name(),
            Kind::Http2(_) => "http2",
            Kind::NotHandled(_) => "not_handled",
            Kind::Redirect(error) => error.kind_name(),
            Kind::Decode(error) => error.kind_name(),
            Kind::File(_) => "file",
        }
    }

    /// Advice for the caller, if there is any.
    pub const fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Kind::Refused(_) => "is the server running, and on this port?",
            Kind::OutOfDescriptors(_) => {
                "raise the limit (ulimit -n) or lower the number of connections"
            }
            Kind::Resolve(ResolveError::NotFound { .. } | ResolveError::NoAddress { .. }) => {
                "check the spelling, or give its address as an override"
            }
            Kind::QueueFull(_) => "send fewer at once, or raise queue_max",
            Kind::BodyTooLong(_) => "read it in pieces, or raise collected_bytes_max",
            Kind::ProxyCredentials => "give the proxy's user and password",
            Kind::BodyLength { .. } => "announce the length that the source has, or none",
            _ => return None,
        })
    }
}

fn each(failures: &[(SocketAddr, io::Error)]) -> String {
    let texts: Vec<_> = failures
        .iter()
        .map(|(address, error)| format!("{address}: {error}"))
        .collect();
    texts.join("; ")
}

/// Why a request got no answer.
///
/// It says what the client was at, which URL, which address, and the error of the system:
///
/// ```
/// use prony_client::{Error, Kind, RequestPhase};
///
/// let system = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
/// let error = Error::new(RequestPhase::Connect, Kind::of_io(system))
///     .url("http://localhost:1/")
///     .address("127.0.0.1:1".parse().unwrap());
/// assert_eq!(
///     error.to_string(),
///     "http://localhost:1/: connecting to 127.0.0.1:1: the connection was refused: \
///      connection refused (is the server running, and on this port?)"
/// );
/// ```
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    phase: RequestPhase,
    kind: Kind,
    url: String,
    address: Option<SocketAddr>,
}

impl Error {
    /// An error of this kind in this phase, of no URL yet.
    #[cold]
    pub fn new(phase: RequestPhase, kind: Kind) -> Error {
        Error(Box::new(Inner {
            phase,
            kind,
            url: String::new(),
            address: None,
        }))
    }

    /// A failure of the system in this phase, by its name.
    #[cold]
    pub fn io(phase: RequestPhase, error: io::Error) -> Error {
        Error::new(phase, Kind::of_io(error))
    }

    /// The error, out of a place that is of no more use.
    #[cold]
    pub(super) fn take(&mut self) -> Error {
        std::mem::replace(self, Error::new(RequestPhase::Request, Kind::LoopGone))
    }

    /// The same, with the requested URL, where none is known yet.
    #[must_use]
    pub fn url(mut self, url: &str) -> Error {
        if self.0.url.is_empty() {
            self.0.url.push_str(url);
        }
        self
    }

    /// The same, with the address of the other side, where none is known yet.
    #[must_use]
    pub fn address(mut self, address: SocketAddr) -> Error {
        self.0.address.get_or_insert(address);
        self
    }

    /// The phase in which the request failed.
    pub fn phase(&self) -> RequestPhase {
        self.0.phase
    }

    /// The kind of the error.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// The requested URL, after redirects the last one.
    pub fn requested_url(&self) -> &str {
        &self.0.url
    }

    /// The address that the client talked to or tried to.
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        self.0.address
    }

    /// The kind of the error, without the rest.
    pub(super) fn into_kind(self) -> Kind {
        self.0.kind
    }

    /// True for each of the time-outs.
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.kind, Kind::TimedOut(_, _))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            phase,
            kind,
            url,
            address,
        } = &*self.0;
        if !url.is_empty() {
            write!(f, "{url}: ")?;
        }
        write!(f, "{phase}")?;
        match (phase, address) {
            (_, None) => {}
            (RequestPhase::Connect, Some(address)) => write!(f, " to {address}")?,
            (_, Some(address)) => write!(f, " ({address})")?,
        }
        write!(f, ": {kind}")?;
        match kind.advice() {
            Some(advice) => write!(f, " ({advice})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.kind.source()
    }
}
