//! TLS of `prony load`: what the words mean, and what to do where a certificate is not accepted.

use anyhow::bail;
use prony_load::prepare::LoadUrl;
use prony_load::{Failure, LoadError};
use prony_record::LoadTls;

use super::words::TlsWords;

/// The settings of a load over `https://`; `None` for plain HTTP, which takes none of these words.
pub fn resolve(url: &LoadUrl, words: &TlsWords) -> anyhow::Result<Option<LoadTls>> {
    if !url.is_secure {
        let given = [
            (!words.cacert.is_empty(), "--cacert"),
            (words.insecure, "--insecure"),
            (words.cert.is_some(), "--cert"),
            (words.tls_version.is_some(), "--tls-version"),
            (words.no_resumption, "--no-resumption"),
        ];
        if let Some((_, flag)) = given.iter().find(|(is_given, _)| *is_given) {
            bail!("{flag} is for https:// and `{}` is plain HTTP", url.text);
        }
        return Ok(None);
    }
    let key_of = |certificate| words.key.clone().unwrap_or(certificate);
    let identity = words.cert.clone();
    Ok(Some(LoadTls {
        host: url.host.clone(),
        authorities: words.cacert.clone(),
        insecure: words.insecure,
        identity: identity.map(|certificate| (certificate.clone(), key_of(certificate))),
        version: words.tls_version.map(|word| word.spoken()),
        no_resumption: words.no_resumption,
        logs_keys: true,
    }))
}

/// An error with what would help.
pub fn explained(error: LoadError) -> anyhow::Error {
    let is_about_trust = matches!(
        error,
        LoadError::Unreachable {
            failure: Some(Failure::Certificate),
            ..
        }
    );
    let error = anyhow::Error::new(error);
    match is_about_trust {
        true => error.context(
            "the server's certificate is not accepted: --cacert FILE trusts an authority, or one certificate alone; --insecure \
             accepts any",
        ),
        false => error,
    }
}
