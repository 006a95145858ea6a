//! TLS for the client, by `rustls`: what to trust, what to present, and the stream.
//!
//! For: settings ([`TlsSettings`]) that are parsed once ([`TlsSettings::build`])
//! and then serve any number of handshakes ([`TlsStream::handshake`]).
//! Not for: servers, and no decision about HTTP: the caller offers protocols
//! ([`Offer`]) and reads which one was chosen ([`TlsStream::protocol`]).
//!
//! Certificates are always verified, against the machine's authorities (those
//! that `rustls-native-certs` finds, so that an authority which an administrator
//! has installed counts; `SSL_CERT_FILE` and `SSL_CERT_DIR` are heeded) and those
//! that were added; turning this off has a name that says so.

mod error;
mod settings;
mod stream;
mod verify;
mod words;

pub use error::TlsError;
pub use settings::{Offer, TlsConfig, TlsSettings, TlsVersion};
pub use stream::TlsStream;
