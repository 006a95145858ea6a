//! What can go wrong with TLS, by name.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

use super::verify::SelfSigned;

/// Why there is no TLS connection, or why it ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// The machine has no certificates of authorities, and none were given.
    NoRoots(String),
    /// A certificate or a key that was given cannot be used.
    BadSetting {
        /// Which one.
        what: &'static str,
        /// Why not.
        why: String,
    },
    /// Not a name or an address that a certificate could be for.
    BadServerName(String),
    /// The server's certificate is over.
    Expired(String),
    /// The server's certificate is not valid yet.
    NotYetValid(String),
    /// The server's certificate is for other hosts.
    WrongHost {
        /// The name that was asked for.
        wanted: String,
        /// The names in the certificate.
        presented: Vec<String>,
    },
    /// No known authority signed the server's certificate.
    UnknownIssuer,
    /// The server signed its certificate itself.
    SelfSigned,
    /// The server's certificate was taken back.
    Revoked,
    /// The server's certificate is unfit otherwise.
    BadCertificate(String),
    /// The server wants a certificate of the client.
    ClientCertificateRequired,
    /// The server does not take the client's certificate; its alert.
    ClientCertificateRefused(String),
    /// The server ended the connection with this alert.
    Alert(String),
    /// The server broke the rules of TLS, or has no version or cipher in common with us.
    Protocol(String),
    /// The server speaks something else; the first bytes that it sent.
    NotTls(Vec<u8>),
    /// The connection ended in the middle of the handshake.
    HandshakeCut,
    /// The connection ended without TLS's own end: what came may not be all.
    Truncated,
    /// The connection broke.
    Io(Arc<io::Error>),
}

impl TlsError {
    /// Its name in one word, as programs print it.
    pub const fn name(&self) -> &'static str {
        match self {
            TlsError::NoRoots(_) => "tls_no_roots",
            TlsError::BadSetting { .. } => "tls_bad_setting",
            TlsError::BadServerName(_) => "tls_bad_server_name",
            TlsError::Expired(_) => "tls_expired",
            TlsError::NotYetValid(_) => "tls_not_yet_valid",
            TlsError::WrongHost { .. } => "tls_wrong_host",
            TlsError::UnknownIssuer => "tls_unknown_issuer",
            TlsError::SelfSigned => "tls_self_signed",
            TlsError::Revoked => "tls_revoked",
            TlsError::BadCertificate(_) => "tls_bad_certificate",
            TlsError::ClientCertificateRequired => "tls_client_certificate_required",
            TlsError::ClientCertificateRefused(_) => "tls_client_certificate_refused",
            TlsError::Alert(_) => "tls_alert",
            TlsError::Protocol(_) => "tls_protocol",
            TlsError::NotTls(_) => "tls_not_spoken",
            TlsError::HandshakeCut => "tls_handshake_cut",
            TlsError::Truncated => "tls_truncated",
            TlsError::Io(_) => "tls_io",
        }
    }

    /// True when the server did not prove who it is: trying again will not help,
    /// and nothing of a request was sent.
    pub fn is_about_trust(&self) -> bool {
        matches!(
            self,
            TlsError::Expired(_)
                | TlsError::NotYetValid(_)
                | TlsError::WrongHost { .. }
                | TlsError::UnknownIssuer
                | TlsError::SelfSigned
                | TlsError::Revoked
                | TlsError::BadCertificate(_)
        )
    }

    /// The TLS error inside an I/O error, where there is one.
    pub fn within(error: &io::Error) -> Option<&TlsError> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::NoRoots(why) => write!(
                f,
                "no certificates of authorities on this machine ({why}): install \
                 ca-certificates, set SSL_CERT_FILE, or give an own one"
            ),
            TlsError::BadSetting { what, why } => write!(f, "the {what} cannot be used: {why}"),
            TlsError::BadServerName(name) => {
                write!(f, "{name:?} is not a name that a certificate can be for")
            }
            TlsError::Expired(when) => write!(f, "the server's certificate has expired{when}"),
            TlsError::NotYetValid(when) => {
                write!(f, "the server's certificate is not valid yet{when}")
            }
            TlsError::WrongHost { wanted, presented } => {
                write!(f, "the server's certificate is not for {wanted}")?;
                match presented.is_empty() {
                    true => Ok(()),
                    false => write!(f, ", but for {}", presented.join(", ")),
                }
            }
            TlsError::UnknownIssuer => f.write_str(
                "no known authority signed the server's certificate: give the authority's \
                 certificate, where it is to be trusted",
            ),
            TlsError::SelfSigned => f.write_str(
                "the server's certificate is signed by itself: give it as an authority's, \
                 where it is to be trusted",
            ),
            TlsError::Revoked => f.write_str("the server's certificate was revoked"),
            TlsError::BadCertificate(why) => {
                write!(f, "the server's certificate cannot be accepted: {why}")
            }
            TlsError::ClientCertificateRequired => {
                f.write_str("the server wants a certificate of the client, and none was given")
            }
            TlsError::ClientCertificateRefused(alert) => {
                write!(f, "the server refuses the client's certificate ({alert})")
            }
            TlsError::Alert(alert) => write!(f, "the server ended TLS with the alert {alert}"),
            TlsError::Protocol(why) => write!(f, "TLS failed: {why}"),
            TlsError::NotTls(bytes) if bytes.starts_with(b"HTTP/") => f.write_str(
                "the server speaks HTTP without TLS on this port: use http:// in the URL",
            ),
            TlsError::NotTls(bytes) => write!(
                f,
                "the server does not speak TLS on this port; it began with \"{}\"",
                bytes.escape_ascii()
            ),
            TlsError::HandshakeCut => {
                f.write_str("the server closed the connection during the TLS handshake")
            }
            TlsError::Truncated => f.write_str(
                "the connection ended without TLS's close_notify: what came may not be all",
            ),
            TlsError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for TlsError {}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> io::Error {
        let kind = match &error {
            TlsError::Truncated | TlsError::HandshakeCut => io::ErrorKind::UnexpectedEof,
            // What the system said stays what it said.
            TlsError::Io(system) => match system.raw_os_error() {
                Some(code) => return io::Error::from_raw_os_error(code),
                None => system.kind(),
            },
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

impl From<io::Error> for TlsError {
    fn from(error: io::Error) -> TlsError {
        TlsError::Io(Arc::new(error))
    }
}

impl TlsError {
    /// What `rustls` says, in our names. `shown` tells whether a certificate of the
    /// client was there to be shown.
    pub(super) fn of(error: Error, shown: bool) -> TlsError {
        match error {
            Error::InvalidCertificate(certificate) => of_certificate(certificate),
            Error::AlertReceived(alert) => of_alert(alert, shown),
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                TlsError::Protocol("a record of no known type".to_owned())
            }
            other => TlsError::Protocol(other.to_string()),
        }
    }
}

fn of_certificate(error: CertificateError) -> TlsError {
    match error {
        CertificateError::Expired => TlsError::Expired(String::new()),
        CertificateError::ExpiredContext { time, not_after } => TlsError::Expired(format!(
            ", {} ago",
            length(time.as_secs().saturating_sub(not_after.as_secs()))
        )),
        CertificateError::NotValidYet => TlsError::NotYetValid(String::new()),
        CertificateError::NotValidYetContext { time, not_before } => {
            TlsError::NotYetValid(format!(
                ": it will be in {}",
                length(not_before.as_secs().saturating_sub(time.as_secs()))
            ))
        }
        CertificateError::NotValidForName => TlsError::WrongHost {
            wanted: "this host".to_owned(),
            presented: Vec::new(),
        },
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => TlsError::WrongHost {
            wanted: expected.to_str().into_owned(),
            presented,
        },
        CertificateError::UnknownIssuer => TlsError::UnknownIssuer,
        CertificateError::Revoked => TlsError::Revoked,
        CertificateError::Other(other) if other.0.is::<SelfSigned>() => TlsError::SelfSigned,
        CertificateError::Other(other) => TlsError::BadCertificate(other.0.to_string()),
        other => TlsError::BadCertificate(other.to_string()),
    }
}

fn of_alert(alert: AlertDescription, shown: bool) -> TlsError {
    let name = format!("{alert:?}");
    match alert {
        AlertDescription::CertificateRequired => TlsError::ClientCertificateRequired,
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
            if shown =>
        {
            TlsError::ClientCertificateRefused(name)
        }
        _ => TlsError::Alert(name),
    }
}

/// A length of time for people, rounded down.
fn length(seconds: u64) -> String {
    const DAY: u64 = 24 * 60 * 60;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..DAY => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / DAY),
    }
}
