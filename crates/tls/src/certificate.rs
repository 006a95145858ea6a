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

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;

    use super::*;
    use crate::TlsSettings;

    /// Where the secrets are written, for the test that is traced.
    const PLACE: &str = "TRACED_SECRETS";

    #[test]
    fn secrets_that_are_traced() {
        if let Some(place) = env::var_os(PLACE) {
            let made = CertificateText::self_signed(&["localhost".to_owned()]).expect("a name");
            made.write(Path::new(&place)).expect("written");
            let mut settings = TlsSettings::default();
            settings.log_keys_where_asked().expect("written");
        }
    }

    /// A mode that is changed afterwards comes too late: who has opened the file before can read what is written to it.
    #[test]
    fn a_secret_is_in_a_file_that_nobody_else_could_open_from_its_first_moment() {
        let Some(strace) = prony_testkit::need("strace") else {
            return;
        };
        let place = prony_testkit::folder("secrets");
        let trace = place.join("trace");
        let output = Command::new(strace)
            .args(["-f", "-e", "trace=open,openat,creat", "-o"])
            .arg(&trace)
            .arg(env::current_exe().expect("this program"))
            .args(["--exact", "certificate::tests::secrets_that_are_traced"])
            .env(PLACE, &place)
            .env("SSLKEYLOGFILE", place.join("keys.log"))
            .output()
            .expect("strace runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("Operation not permitted") {
            return prony_testkit::skip("no process may be traced here");
        }
        assert!(output.status.success(), "{said}");
        let calls = fs::read_to_string(&trace).expect("a trace");
        for file in [KEY_FILE, "keys.log"] {
            let named = format!("/{file}\"");
            let opened = calls.lines().find(|call| call.contains(&named));
            let opened = opened.expect("it is opened");
            assert!(
                opened.contains("O_CREAT|") && opened.contains(", 0600) = "),
                "{opened}"
            );
        }
    }
}
