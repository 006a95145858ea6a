//! The errors of TLS as sentences: `rustls` shows most of it as names of its types.
//! Not for: which error it is (`error`).

use std::fmt::Debug;

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

/// An alert's name as RFC 8446 (section 6) writes it.
pub(crate) fn alert(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA => "unknown_ca".to_owned(),
        AlertDescription::UnknownPSKIdentity => "unknown_psk_identity".to_owned(),
        AlertDescription::UnrecognisedName => "unrecognized_name".to_owned(),
        AlertDescription::Unknown(number) => format!("number {number}"),
        known => apart(&known).replace(' ', "_"),
    }
}

/// The meaning of an alert of this name, where the name alone does not say it.
pub(crate) fn meaning_of_alert(name: &str) -> Option<&'static str> {
    Some(match name {
        "handshake_failure" | "insufficient_security" => {
            "it accepts none of the ciphers, keys and signatures that it was offered"
        }
        "protocol_version" => "it speaks none of the versions of TLS that it was offered",
        "unrecognized_name" => "it does not know the host's name",
        "no_application_protocol" => "it speaks none of the protocols that it was offered",
        "internal_error" => "something went wrong there that has nothing to do with this request",
        "unknown_ca" | "bad_certificate" | "certificate_unknown" => {
            "it does not trust the certificate that it was shown"
        }
        _ => return None,
    })
}

/// An error of a certificate, as a sentence about it.
pub(crate) fn of_certificate(error: &CertificateError) -> String {
    let known = match error {
        CertificateError::BadEncoding => "its bytes are no certificate",
        CertificateError::UnhandledCriticalExtension => {
            "it has an extension that must be understood and is not"
        }
        CertificateError::UnknownRevocationStatus => "whether it was revoked is not known",
        CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => {
            "the list of what was revoked has expired"
        }
        CertificateError::BadSignature => "its signature is not its issuer's",
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "it is signed in a way that is not supported"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it was not issued for servers"
        }
        CertificateError::InvalidOcspResponse => "what came with it about its revocation is wrong",
        CertificateError::Other(other) => match other.0.downcast_ref::<webpki::Error>() {
            Some(why) => return of_chain(why),
            None => return other.0.to_string(),
        },
        other => return apart(other),
    };
    known.to_owned()
}

fn of_chain(why: &webpki::Error) -> String {
    let known = match why {
        webpki::Error::CaUsedAsEndEntity => "it is an authority's and not a server's",
        webpki::Error::EndEntityUsedAsCa => "its issuer is no certificate authority",
        webpki::Error::NameConstraintViolation => {
            "its authority may not issue certificates for its names"
        }
        webpki::Error::PathLenConstraintViolated | webpki::Error::MaximumPathDepthExceeded => {
            "too many stand between it and its authority"
        }
        webpki::Error::UnsupportedCertVersion => "it is not of version 3 of X.509",
        other => return apart(other),
    };
    known.to_owned()
}

/// Any other error, as a sentence.
pub(crate) fn of_handshake(error: &Error) -> String {
    match error {
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "the server sent a message that had no place there".to_owned()
        }
        Error::InvalidMessage(why) => {
            format!(
                "the server sent a message that cannot be read: {}",
                apart(why)
            )
        }
        Error::PeerIncompatible(why) => of_incompatible(why),
        Error::PeerMisbehaved(why) => format!("the server broke the rules: {}", apart(why)),
        Error::NoCertificatesPresented => "the server showed no certificate".to_owned(),
        Error::DecryptError => {
            "what came cannot be decrypted: it was changed on the way, or wrong from the start"
                .to_owned()
        }
        Error::PeerSentOversizedRecord => "the server sent a record that is too long".to_owned(),
        Error::InconsistentKeys(_) => "the key does not belong to the certificate".to_owned(),
        Error::InvalidCertificate(why) => of_certificate(why),
        Error::AlertReceived(received) => alert(*received),
        Error::InvalidCertRevocationList(why) => {
            format!(
                "the list of what was revoked cannot be used: {}",
                apart(why)
            )
        }
        Error::InvalidEncryptedClientHello(why) => apart(why),
        // Sentences already.
        other => other.to_string(),
    }
}

fn of_incompatible(why: &PeerIncompatible) -> String {
    match why {
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig => {
            "the server speaks none of the versions of TLS that it was offered".to_owned()
        }
        PeerIncompatible::NoCipherSuitesInCommon => {
            "the server has no cipher in common with this client".to_owned()
        }
        PeerIncompatible::NoKxGroupsInCommon => {
            "the server has no key exchange in common with this client".to_owned()
        }
        other => format!("the server does not fit: {}", apart(other)),
    }
}

/// The name of a variant as words: what has no sentence of its own says that much.
fn apart(variant: &impl Debug) -> String {
    let shown = format!("{variant:?}");
    let name = shown
        .split(|one: char| !one.is_ascii_alphanumeric())
        .next()
        .unwrap_or_default();
    let mut words = String::new();
    for one in name.chars() {
        if one.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(one.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_are_named_as_their_standard_names_them() {
        for (number, name) in [
            (0, "close_notify"),
            (40, "handshake_failure"),
            (48, "unknown_ca"),
            (112, "unrecognized_name"),
            (115, "unknown_psk_identity"),
            (120, "no_application_protocol"),
            (200, "number 200"),
        ] {
            assert_eq!(alert(AlertDescription::from(number)), name);
        }
    }

    #[test]
    fn an_alert_whose_name_says_too_little_is_explained() {
        for (number, meaning) in [
            (40, "none of the ciphers"),
            (71, "none of the ciphers"),
            (70, "none of the versions"),
            (80, "nothing to do with this request"),
            (112, "the host's name"),
            (120, "none of the protocols"),
            (42, "does not trust"),
            (46, "does not trust"),
            (48, "does not trust"),
        ] {
            let name = alert(AlertDescription::from(number));
            let said = meaning_of_alert(&name).unwrap_or_default();
            assert!(said.contains(meaning), "{name}: {said}");
        }
        assert_eq!(meaning_of_alert("close_notify"), None);
    }
}
