//! TLS between bytes and bytes: settings, handshakes and records, with no I/O.
//!
//! For: what to trust and what to present ([`TlsSettings`] of clients, [`ServerTls`] of servers), a handshake that is
//! fed what was received and says what is to be sent ([`Handshaking`]), and the connection after it ([`TlsSession`]).
//! Not for: sockets, time limits, and no decision about HTTP: the caller offers protocols ([`Offer`]) and reads which
//! one was chosen ([`HandshakeFacts::protocol`]).
//!
//! `rustls` does the handshake, checks certificates and keeps sessions. The records of application data are encrypted
//! and decrypted here, with `ring`: `rustls` makes a vector for each record in both directions, and a generator of
//! load sends and receives nothing but records. The reasons: `docs/decisions/tls.md`.
//!
//! Certificates are always verified, against the machine's authorities (those that `rustls-native-certs` finds, so
//! that an authority which an administrator has installed counts; `SSL_CERT_FILE` and `SSL_CERT_DIR` are heeded) and
//! those that were added; turning this off has a name that says so.
//!
//! # Central types
//! - [`TlsSettings`], [`TlsConfig`]: a client's settings, and what they become once they are checked.
//! - [`ServerTls`]: a server's certificate and versions, checked.
//! - [`Handshaking`], [`TlsSession`]: a connection before and after its handshake.
//! - [`TlsError`]: what went wrong, by name.
#![forbid(unsafe_code)]

#[cfg(feature = "certificates")]
mod certificate;
mod error;
mod handshake;
mod records;
mod server;
mod session;
mod settings;
mod tickets;
mod verify;
mod words;

#[cfg(feature = "certificates")]
pub use certificate::{CertificateFiles, CertificateText, KEY_FILE};
pub use error::TlsError;
pub use handshake::{Advanced, HandshakeFacts, Handshaking};
pub use server::ServerTls;
pub use session::{PlainData, TlsSession};
pub use settings::{Offer, TlsConfig, TlsSettings, TlsVersion, TlsVersions};
