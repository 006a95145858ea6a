//! The errors of TLS, by name.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::{AlertDescription, CertificateError, Error};

use super::words;

/// The certificate's issuer is its subject.
#[derive(Debug)]
pub(crate) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the certificate is signed by itself")
    }
}

impl std::error::Error for SelfSigned {}

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
        /// The requested name.
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
    /// The server does not take the client's certificate; its alert, as RFC 8446 names it.
    ClientCertificateRefused(String),
    /// The server ended the connection with this alert, as RFC 8446 names it.
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
            TlsError::Alert(alert) => {
                write!(f, "the server ended TLS with the alert {alert}")?;
                match words::meaning_of_alert(alert) {
                    Some(meaning) => write!(f, ": {meaning}"),
                    None => Ok(()),
                }
            }
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
    /// An error of `rustls` in our names, for layers that run `rustls` themselves. `shown` tells whether a certificate
    /// of the client was there to be shown.
    pub fn new(error: Error, shown: bool) -> TlsError {
        match error {
            Error::InvalidCertificate(certificate) => of_certificate(certificate),
            Error::AlertReceived(alert) => of_alert(alert, shown),
            other => TlsError::Protocol(words::of_handshake(&other)),
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
            presented: presented.iter().map(|name| bare(name)).collect(),
        },
        CertificateError::UnknownIssuer => TlsError::UnknownIssuer,
        CertificateError::Revoked => TlsError::Revoked,
        CertificateError::Other(other) if other.0.is::<SelfSigned>() => TlsError::SelfSigned,
        other => TlsError::BadCertificate(words::of_certificate(&other)),
    }
}

/// A name of a certificate without what `rustls` shows around it: `DnsName("a")`, `IpAddress(127.0.0.1)`.
fn bare(shown: &str) -> String {
    let inner = ["DnsName(", "IpAddress("]
        .iter()
        .find_map(|before| shown.strip_prefix(before)?.strip_suffix(')'));
    inner.unwrap_or(shown).trim_matches('"').to_owned()
}

fn of_alert(alert: AlertDescription, shown: bool) -> TlsError {
    let name = words::alert(alert);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::pki_types::UnixTime;
    use rustls::{InconsistentKeys, InvalidMessage, OtherError, PeerIncompatible, PeerMisbehaved};

    use super::*;

    fn certificate(error: CertificateError) -> Error {
        Error::InvalidCertificate(error)
    }

    /// Every alert there can be, and of everything else what servers make happen.
    fn all() -> Vec<Error> {
        let alerts = (0..=255).map(|number| Error::AlertReceived(AlertDescription::from(number)));
        let chain = [
            webpki::Error::CaUsedAsEndEntity,
            webpki::Error::EndEntityUsedAsCa,
            webpki::Error::NameConstraintViolation,
            webpki::Error::PathLenConstraintViolated,
            webpki::Error::UnsupportedCertVersion,
            webpki::Error::EmptyEkuExtension,
        ];
        let chain =
            chain.map(|why| certificate(CertificateError::Other(OtherError(Arc::new(why)))));
        let own = [
            CertificateError::BadEncoding,
            CertificateError::BadSignature,
            CertificateError::Expired,
            CertificateError::NotValidYet,
            CertificateError::UnknownIssuer,
            CertificateError::InvalidPurpose,
            CertificateError::NotValidForName,
            CertificateError::UnhandledCriticalExtension,
            CertificateError::ApplicationVerificationFailure,
            CertificateError::UnsupportedSignatureAlgorithmContext {
                signature_algorithm_id: vec![1, 2],
                supported_algorithms: Vec::new(),
            },
        ];
        let others = [
            Error::InvalidMessage(InvalidMessage::InvalidContentType),
            Error::InvalidMessage(InvalidMessage::TrailingData("Finished")),
            Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13),
            Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
            Error::PeerIncompatible(PeerIncompatible::KeyShareExtensionRequired),
            Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedCipherSuite),
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch),
            Error::NoCertificatesPresented,
            Error::DecryptError,
        ];
        alerts
            .chain(chain)
            .chain(own.map(certificate))
            .chain(others)
            .collect()
    }

    #[test]
    fn errors_were_shown_as_names_of_rusts_types() {
        for error in all() {
            let said = format!("{error:?}");
            let text = TlsError::new(error, false).to_string();
            let bytes = text.as_bytes();
            let is_joined =
                |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
            assert!(!bytes.windows(2).any(is_joined), "{said}: {text}");
            assert!(!text.contains(['{', '(', '[']), "{said}: {text}");
            assert!(text.contains(' '), "{said}: {text}");
        }
    }

    #[test]
    fn a_certificate_that_a_server_wants_is_asked_for_whether_one_was_shown_or_not() {
        for shown in [false, true] {
            let of = |alert| TlsError::new(Error::AlertReceived(alert), shown).name();
            let wanted = of(AlertDescription::CertificateRequired);
            assert_eq!(wanted, "tls_client_certificate_required");
            let refused = of(AlertDescription::UnknownCA);
            assert_eq!(refused == "tls_client_certificate_refused", shown);
        }
        assert_eq!(
            SelfSigned.to_string(),
            "the certificate is signed by itself"
        );
    }

    #[test]
    fn the_frequent_ones_are_sentences() {
        let of = |error| TlsError::new(error, false).to_string();
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let expired = CertificateError::ExpiredContext {
            time: at(300_000),
            not_after: at(0),
        };
        for (error, text) in [
            (
                certificate(expired),
                "the server's certificate has expired, 3 days ago",
            ),
            (
                certificate(CertificateError::UnknownIssuer),
                "no known authority signed the server's certificate: give the authority's \
                 certificate, where it is to be trusted",
            ),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                "the server ended TLS with the alert handshake_failure: it accepts none of the \
                 ciphers, keys and signatures that it was offered",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13),
                "TLS failed: the server speaks none of the versions of TLS that it was offered",
            ),
            (
                certificate(CertificateError::InvalidPurpose),
                "the server's certificate cannot be accepted: it was not issued for servers",
            ),
        ] {
            assert_eq!(of(error), text);
        }
    }
}
