//! What a client is told before it starts: limits, time-outs, identity.
//! Not for: what differs by request, which its builder is told.

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
    /// HTTP/2 or an error; over http without asking first ("prior knowledge").
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
    /// Requests under way at once on a connection of HTTP/1.1; 1: no pipelining. More lets a
    /// request that waits for a connection go out behind others, if it is idempotent and
    /// has no body, over one that has proven to be kept. If that breaks, those without
    /// an answer are sent again, each alone.
    pub pipelining_max: usize,
    /// How long a connection may rest before it is closed.
    pub idle_timeout: Nanos,
    /// How old a connection may become; an older one is closed after its answer.
    pub connection_age_max: Nanos,
    /// How long a connection may take to come about: name, TCP, proxy and TLS.
    pub connect_timeout: Nanos,
    /// How long the first byte of an answer may take, once the request is sent.
    pub first_byte_timeout: Nanos,
    /// How long nothing may move: no byte of an answer that has begun, or no byte
    /// taken of a request.
    pub stall_timeout: Nanos,
    /// How long a request may take from its start to the last byte of its answer.
    pub timeout: Nanos,
    /// Names to addresses: overrides, cache, threads.
    pub resolve: ResolveSettings,
    /// When to try a name's next address while the one before has not answered
    /// (RFC 8305).
    pub happy_eyeballs_delay: Nanos,
    /// Bytes of a body that [`Response::bytes`](super::Response::bytes) collects.
    pub collected_bytes_max: u64,
    /// Bytes of an unread body that are received and thrown away so that its
    /// connection can be used again; with more it is closed.
    pub drain_bytes_max: u64,
    /// Sizes of heads.
    pub limits: Limits,
    /// The version of HTTP.
    pub version: HttpVersion,
    /// Which redirects are followed.
    pub redirects: RedirectPolicy,
    /// Which failures are tried again; none, if not set.
    pub retries: RetryPolicy,
    /// Which content codings are asked for and taken off; none, if not set.
    pub decode: DecodeSettings,
    /// The cookies to begin with; None: cookies are neither kept nor sent.
    pub cookies: Option<CookieJar>,
    /// Decides how long retries wait; None: something that nobody can foresee.
    pub seed: Option<u64>,
    /// The time of day in nanoseconds since 1970, for cookies and Retry-After.
    pub unix_nanos: fn() -> u64,
    /// What to trust and to show in TLS.
    pub tls: TlsSettings,
    /// The proxies: none; not even those of the environment are heeded unasked.
    pub proxies: Proxies,
    /// The User-Agent; empty: none.
    pub user_agent: String,
    /// URLs kept in parsed form, so that asking the same again costs one look-up.
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
