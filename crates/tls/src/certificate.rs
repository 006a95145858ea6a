//! Certificates that are made where one is needed: a server's own, signed by itself.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::TlsError;

/// The name of the file that a key is written to, beside its certificate.
pub const KEY_FILE: &str = "key.pem";

/// A certificate with its key, as PEM texts.
pub struct CertificateText {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// Where a certificate and its key were written.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key, which only its owner can read.
    pub key: PathBuf,
}

impl CertificateText {
    /// A certificate for these names and addresses that is signed by itself, with a new key of ECDSA P-256.
    ///
    /// # Errors
    /// [`TlsError::BadSetting`] where one of `names` cannot stand in a certificate.
    pub fn self_signed(names: &[String]) -> Result<CertificateText, TlsError> {
        let unfit = |error: rcgen::Error| TlsError::BadSetting {
            what: "name of the server",
            why: error.to_string(),
        };
        let made = rcgen::generate_simple_self_signed(names.to_vec()).map_err(unfit)?;
        Ok(CertificateText {
            certificate: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
        })
    }

    /// Writes both into `folder`, which exists.
    ///
    /// # Errors
    /// Of the file system.
    pub fn write(&self, folder: &Path) -> io::Result<CertificateFiles> {
        let files = CertificateFiles {
            certificate: folder.join("certificate.pem"),
            key: folder.join(KEY_FILE),
        };
        fs::write(&files.certificate, &self.certificate)?;
        let mut key = fs::OpenOptions::new();
        let mut key = key
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&files.key)?;
        key.write_all(self.key.as_bytes())?;
        Ok(files)
    }
}
