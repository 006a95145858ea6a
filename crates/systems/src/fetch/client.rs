//! The words, as settings of the client. Not for: what differs by URL.

use anyhow::Context as _;
use prony_base::{Nanos, clock};
use prony_client::cookies::{CookieJar, CookieLimits, FileError};
use prony_client::decode::DecodeSettings;
use prony_client::proxy::{Proxies, Proxy};
use prony_client::redirect::RedirectPolicy;
use prony_client::resolve::Override;
use prony_client::tls::TlsSettings;
use prony_client::{HttpVersion, Settings};

use super::words::{FetchWords, PER_HOST_MAX};

/// The settings that the words ask for; files that they name are read.
///
/// # Errors
/// A file that cannot be read or is none of its kind; an address that is none.
pub fn settings(words: &FetchWords) -> anyhow::Result<Settings> {
    let mut settings = Settings {
        connections_per_host_max: PER_HOST_MAX,
        connections_max: words.parallel as usize,
        connect_timeout: words.connect_timeout,
        first_byte_timeout: words.first_byte_timeout,
        stall_timeout: words.stall_timeout,
        version: match (words.http1, words.http2) {
            (true, _) => HttpVersion::Http11,
            (_, true) => HttpVersion::Http2,
            _ => HttpVersion::Auto,
        },
        redirects: match words.no_redirect {
            true => RedirectPolicy::None,
            false => RedirectPolicy::Follow {
                hops_max: words.redirects,
            },
        },
        tls: tls(words)?,
        ..Settings::default()
    };
    settings.retries.retries_max = words.retries;
    if words.compressed {
        settings.decode = DecodeSettings::all();
    }
    settings.proxies = match words.proxy.as_deref() {
        None => Proxies::default(),
        Some("env") => Proxies::from_environment()?,
        Some(url) => Proxies::all(Proxy::new(url)?),
    };
    for text in &words.resolve {
        let parsed = Override::parse(text).context("--resolve")?;
        settings.resolve.overrides.push(parsed);
    }
    settings.cookies = cookies(words)?;
    Ok(settings)
}

fn tls(words: &FetchWords) -> anyhow::Result<TlsSettings> {
    let mut tls = TlsSettings::default();
    if let Some(file) = &words.cacert {
        let added = tls.add_roots_file(file);
        added.with_context(|| format!("--cacert {}", file.display()))?;
    }
    if let (Some(cert), Some(key)) = (&words.cert, &words.key) {
        let (shown_cert, shown_key) = (cert.display(), key.display());
        tls.client_certificate_files(cert, key)
            .with_context(|| format!("--cert {shown_cert} --key {shown_key}"))?;
    }
    if words.danger_accept_invalid_certificates {
        tls.danger_accept_invalid_certificates();
    }
    tls.log_keys_where_asked()?;
    Ok(tls)
}

/// Seconds since 1970.
pub fn unix_seconds() -> u64 {
    clock::unix_nanos() / Nanos::from_secs(1).0
}

fn cookies(words: &FetchWords) -> anyhow::Result<Option<CookieJar>> {
    let Some(file) = &words.cookie_file else {
        return Ok(None);
    };
    let limits = CookieLimits::default();
    match CookieJar::load(file, limits, unix_seconds()) {
        Ok(jar) => Ok(Some(jar)),
        // The first run begins without one.
        Err(FileError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(Some(CookieJar::new(limits)))
        }
        Err(error) => {
            Err(anyhow::Error::new(error).context(format!("--cookie-file {}", file.display())))
        }
    }
}
