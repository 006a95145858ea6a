//! The settings of a client: limits, time-outs, identity.
//! Not for: settings of single requests (`request`).

use prony_base::Nanos;
use prony_wire::Limits;

use super::cookies::CookieJar;
use super::decode::DecodeSettings;
use super::proxy::Proxies;
use super::redirect::RedirectPolicy;
use super::resolve::ResolveSettings;
use super::retry::RetryPolicy;
use super::tls::TlsSettings;

/// Which version of HTTP to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpVersion {
    /// HTTP/2 where the server takes it by ALPN (https alone), else HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2 or an error; over http with prior knowledge (RFC 9113, section 3.3).
    Http2,
}

/// Settings of one [`Client`](super::Client). Every number is a limit; a time of
/// [`Nanos::MAX`] is "never".
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections to one scheme, host and port.
    pub connections_per_host_max: usize,
    /// Connections in all.
    pub connections_max: usize,
    /// Requests that may wait for a connection, first come, first served; one more
    /// fails at once.
    pub queue_max: usize,
    /// Most requests in flight on a connection of HTTP/1.1; 1: no pipelining. With more, waiting
    /// requests that are idempotent and have no body are pipelined on a connection that was
    /// kept alive before. If it breaks, those without a response are sent again, each alone.
    pub pipelining_max: usize,
    /// How long a connection may be idle before it is closed.
    pub idle_timeout: Nanos,
    /// How old a connection may become; an older one is closed after its response.
    pub connection_age_max: Nanos,
    /// How long connecting may take: name, TCP, proxy and TLS.
    pub connect_timeout: Nanos,
    /// How long the first byte of a response may take, once the request is sent.
    pub first_byte_timeout: Nanos,
    /// How long an exchange may make no progress: no byte received of a response that has begun,
    /// or no byte taken of a request.
    pub stall_timeout: Nanos,
    /// How long a request may take from its start to the last byte of its response.
    pub timeout: Nanos,
    /// Names to addresses: overrides, cache, threads.
    pub resolve: ResolveSettings,
    /// How long to wait for one address before the next is tried as well (RFC 8305).
    pub happy_eyeballs_delay: Nanos,
    /// Most bytes of a body that [`Response::bytes`](super::Response::bytes) collects.
    pub collected_bytes_max: u64,
    /// Most bytes of an unread body that are received and discarded so that its connection can
    /// be used again; with more it is closed.
    pub drain_bytes_max: u64,
    /// Sizes of heads.
    pub limits: Limits,
    /// The version of HTTP.
    pub version: HttpVersion,
    /// Which redirects are followed.
    pub redirects: RedirectPolicy,
    /// Which failures are retried. Default: none.
    pub retries: RetryPolicy,
    /// Which content codings are requested and decoded. Default: none.
    pub decode: DecodeSettings,
    /// The initial cookies; None: cookies are neither kept nor sent.
    pub cookies: Option<CookieJar>,
    /// The seed of the waits before retries; None: a random one.
    pub seed: Option<u64>,
    /// The time of day in nanoseconds since 1970, for cookies and Retry-After.
    pub unix_nanos: fn() -> u64,
    /// The settings of TLS: what to trust and to present.
    pub tls: TlsSettings,
    /// The proxies. Default: none; those of the environment only where they are set here.
    pub proxies: Proxies,
    /// The User-Agent; empty: none.
    pub user_agent: String,
    /// Parsed URLs that are cached, so that the same URL costs one look-up.
    pub parsed_urls_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            connections_per_host_max: 100,
            connections_max: 1_000,
            queue_max: 10_000,
            pipelining_max: 1,
            idle_timeout: Nanos::from_secs(60),
            connection_age_max: Nanos::MAX,
            connect_timeout: Nanos::from_secs(10),
            first_byte_timeout: Nanos::from_secs(30),
            stall_timeout: Nanos::from_secs(30),
            timeout: Nanos::MAX,
            resolve: ResolveSettings::default(),
            happy_eyeballs_delay: Nanos::from_millis(250),
            collected_bytes_max: 16 << 20,
            drain_bytes_max: 64 << 10,
            limits: Limits::for_responses(),
            version: HttpVersion::Auto,
            redirects: RedirectPolicy::default(),
            retries: RetryPolicy::default(),
            decode: DecodeSettings::default(),
            cookies: None,
            seed: None,
            unix_nanos: prony_base::clock::unix_nanos,
            tls: TlsSettings::default(),
            proxies: Proxies::default(),
            user_agent: concat!("prony/", env!("CARGO_PKG_VERSION")).to_owned(),
            parsed_urls_max: 256,
        }
    }
}
