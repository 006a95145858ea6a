//! TLS for the client, by `rustls`: what to trust, what to present, and the stream.
//!
//! For: the stream ([`TlsStream`]); settings, errors and certificates are those of `prony_tls`.
//! Not for: servers, and no decision about HTTP: the caller offers protocols
//! ([`Offer`]) and reads which one was chosen ([`TlsStream::protocol`]).

mod stream;

pub use prony_tls::{Offer, TlsConfig, TlsError, TlsSettings, TlsVersion, TlsVersions};
pub use stream::TlsStream;
