//! TLS of `prony serve`: a certificate that is given, or one that is made for as long as the server runs.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use prony_tls::{CertificateFiles, CertificateText, Offer, ServerTls};
use tempfile::TempDir;

use crate::tls::TlsVersionWord;

/// Words of `prony serve` for TLS.
#[derive(Debug, Args)]
pub struct ServeTlsWords {
    /// Speak TLS, with a certificate signed by itself that is made at the start; its file is printed
    #[arg(long)]
    tls: bool,
    /// Speak TLS, with the certificate in this PEM file, which its chain follows
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Key of the certificate [default: in the file of --cert]
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Speak this version of TLS only [default: 1.2 and 1.3]
    #[arg(long, value_name = "VERSION")]
    tls_version: Option<TlsVersionWord>,
    /// Let no connection resume the TLS session of an earlier one
    #[arg(long)]
    no_resumption: bool,
}

/// A certificate that was made, in a folder that is removed at the end.
pub struct MadeFiles {
    files: CertificateFiles,
    _folder: TempDir,
}

impl MadeFiles {
    /// Where it is.
    pub fn files(&self) -> &CertificateFiles {
        &self.files
    }
}

impl ServeTlsWords {
    /// The settings of TLS, and the certificate where it was made for them, with `host` among its names; `None`: plain HTTP.
    /// `http2` tells whether clients may choose HTTP/2.
    pub fn resolve(
        &self,
        host: &str,
        http2: bool,
    ) -> anyhow::Result<Option<(ServerTls, Option<MadeFiles>)>> {
        if !self.tls && self.cert.is_none() {
            let given = [
                (self.tls_version.is_some(), "--tls-version"),
                (self.no_resumption, "--no-resumption"),
            ];
            if let Some((_, flag)) = given.iter().find(|(is_given, _)| *is_given) {
                bail!("{flag} is for servers of TLS: add --tls");
            }
            return Ok(None);
        }
        let versions = TlsVersionWord::versions(self.tls_version);
        let (made, certificate, key) = match &self.cert {
            Some(certificate) => {
                let key = self.key.clone().unwrap_or_else(|| certificate.clone());
                (None, certificate.clone(), key)
            }
            None => {
                let made = make(host)?;
                let CertificateFiles { certificate, key } = made.files.clone();
                (Some(made), certificate, key)
            }
        };
        let resumes = !self.no_resumption;
        let offer = match http2 {
            true => Offer::Either,
            false => Offer::Http1,
        };
        let tls = ServerTls::from_files(&certificate, &key, versions, offer, resumes)?;
        Ok(Some((tls, made)))
    }
}

/// Makes a certificate for this machine as its own clients name it, and for `host`.
fn make(host: &str) -> anyhow::Result<MadeFiles> {
    let mut names = ["localhost", "127.0.0.1", "::1"]
        .map(str::to_owned)
        .to_vec();
    if !names.iter().any(|name| name == host) {
        names.push(host.to_owned());
    }
    let text = CertificateText::self_signed(&names)?;
    let folder = tempfile::Builder::new()
        .prefix("prony-serve-")
        .tempdir()
        .context("cannot make a folder for the certificate")?;
    let cannot = || {
        format!(
            "cannot write the certificate into {}",
            folder.path().display()
        )
    };
    let files = text.write(folder.path()).with_context(cannot)?;
    Ok(MadeFiles {
        files,
        _folder: folder,
    })
}
