//! The words for a version of TLS, which several commands take.

use clap::ValueEnum;
use prony_record::SpokenTls;
use prony_tls::{TlsVersion, TlsVersions};

/// A version of TLS, and no other.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum TlsVersionWord {
    /// TLS 1.2
    #[value(name = "1.2")]
    Tls12,
    /// TLS 1.3
    #[value(name = "1.3")]
    Tls13,
}

impl TlsVersionWord {
    /// As a load names it.
    pub fn spoken(self) -> SpokenTls {
        match self {
            TlsVersionWord::Tls12 => SpokenTls::Tls12,
            TlsVersionWord::Tls13 => SpokenTls::Tls13,
        }
    }

    /// It alone, or both where none was given.
    pub fn versions(word: Option<TlsVersionWord>) -> TlsVersions {
        let version = match word {
            None => return TlsVersions::default(),
            Some(TlsVersionWord::Tls12) => TlsVersion::Tls12,
            Some(TlsVersionWord::Tls13) => TlsVersion::Tls13,
        };
        TlsVersions {
            min: version,
            max: version,
        }
    }
}
