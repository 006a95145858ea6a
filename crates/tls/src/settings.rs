//! The settings of TLS: what to trust, what to present, which versions and protocols to speak.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, KeyLogFile, RootCertStore, SupportedProtocolVersion, version};

use super::error::TlsError;
use super::verify::{AcceptAll, Verifier};
use super::words;
use crate::tickets::Tickets;

/// Bytes of a PEM file that are read at most.
const PEM_BYTES_MAX: u64 = 16 << 20;

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// The versions of TLS that are spoken, both ends included. Both by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TlsVersions {
    /// The oldest.
    pub min: TlsVersion,
    /// The newest.
    pub max: TlsVersion,
}

impl Default for TlsVersions {
    fn default() -> TlsVersions {
        TlsVersions {
            min: TlsVersion::Tls12,
            max: TlsVersion::Tls13,
        }
    }
}

static NEW_AND_OLD: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
static ONLY_NEW: [&SupportedProtocolVersion; 1] = [&version::TLS13];
static ONLY_OLD: [&SupportedProtocolVersion; 1] = [&version::TLS12];

impl TlsVersions {
    /// Them, as `rustls` takes them.
    pub(crate) fn list(self) -> Result<&'static [&'static SupportedProtocolVersion], TlsError> {
        match (self.min, self.max) {
            (TlsVersion::Tls12, TlsVersion::Tls13) => Ok(&NEW_AND_OLD),
            (TlsVersion::Tls13, TlsVersion::Tls13) => Ok(&ONLY_NEW),
            (TlsVersion::Tls12, TlsVersion::Tls12) => Ok(&ONLY_OLD),
            (TlsVersion::Tls13, TlsVersion::Tls12) => Err(TlsError::BadSetting {
                what: "version",
                why: "the oldest would be newer than the newest".to_owned(),
            }),
        }
    }
}

/// The protocols of which the server may choose one (ALPN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Offer {
    /// HTTP/1.1 alone.
    #[default]
    Http1,
    /// HTTP/2 alone.
    Http2,
    /// HTTP/2, or else HTTP/1.1.
    Either,
}

impl Offer {
    const ALL: [Offer; 3] = [Offer::Http1, Offer::Http2, Offer::Either];

    pub(crate) fn protocols(self) -> Vec<Vec<u8>> {
        let names: &[&str] = match self {
            Offer::Http1 => &["http/1.1"],
            Offer::Http2 => &["h2"],
            Offer::Either => &["h2", "http/1.1"],
        };
        names.iter().map(|name| name.as_bytes().to_vec()).collect()
    }
}

/// The settings of a client: what to trust, what to show, and which versions to speak.
#[derive(Clone)]
pub struct TlsSettings {
    /// Trust the machine's authorities. On.
    pub system_roots: bool,
    /// The versions of TLS that are spoken. 1.2 and 1.3.
    pub versions: TlsVersions,
    /// The name to ask for and to verify instead of the URL's host. None.
    pub server_name: Option<String>,
    /// Servers of which sessions are kept, for a shorter handshake the next time; 0
    /// for none. 256.
    pub sessions_max: usize,
    own_roots: Vec<CertificateDer<'static>>,
    identity: Option<Arc<Identity>>,
    accept_invalid: bool,
    logs_keys: bool,
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Default for TlsSettings {
    fn default() -> TlsSettings {
        TlsSettings {
            system_roots: true,
            versions: TlsVersions::default(),
            server_name: None,
            sessions_max: 256,
            own_roots: Vec::new(),
            identity: None,
            accept_invalid: false,
            logs_keys: false,
        }
    }
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings")
            .field("system_roots", &self.system_roots)
            .field("own_roots", &self.own_roots.len())
            .field("versions", &self.versions)
            .field("server_name", &self.server_name)
            .field("sessions_max", &self.sessions_max)
            .field("logs_keys", &self.logs_keys)
            .field("client_certificate", &self.identity.is_some())
            .field("accept_invalid_certificates", &self.accept_invalid)
            .finish()
    }
}

impl TlsSettings {
    /// Settings that trust no authority until one is added.
    pub fn trusting_nobody() -> TlsSettings {
        TlsSettings {
            system_roots: false,
            ..TlsSettings::default()
        }
    }

    /// Trusts the certificates in this PEM text, too: what they signed, and a server that
    /// presents one of them as its own, as long as name and dates are valid.
    ///
    /// # Errors
    /// [`TlsError::BadSetting`] where it holds none, or something else.
    pub fn add_roots_pem(&mut self, pem: &[u8]) -> Result<(), TlsError> {
        self.own_roots
            .extend(certificates(pem, "certificate of an authority")?);
        Ok(())
    }

    /// Trusts the certificates in this PEM file, too.
    ///
    /// # Errors
    /// [`TlsError::BadSetting`] where it cannot be read or holds none.
    pub fn add_roots_file(&mut self, path: impl AsRef<Path>) -> Result<(), TlsError> {
        self.add_roots_pem(&read(path.as_ref(), "file of authorities")?)
    }

    /// Authenticates with this certificate and key where a server requests one; both as PEM
    /// texts, the certificate followed by its chain.
    ///
    /// # Errors
    /// [`TlsError::BadSetting`] where one is missing or malformed.
    pub fn client_certificate_pem(&mut self, chain: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let chain = certificates(chain, "certificate of the client")?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::BadSetting {
            what: "key of the client",
            why: error.to_string(),
        })?;
        self.identity = Some(Arc::new(Identity { chain, key }));
        Ok(())
    }

    /// As [`client_certificate_pem`](TlsSettings::client_certificate_pem), from files,
    /// which may be one and the same.
    ///
    /// # Errors
    /// As there, and where a file cannot be read.
    pub fn client_certificate_files(
        &mut self,
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<(), TlsError> {
        let chain = read(chain.as_ref(), "certificate of the client")?;
        let key = read(key.as_ref(), "key of the client")?;
        self.client_certificate_pem(&chain, &key)
    }

    /// Disables verification: any certificate is accepted. For servers on one's own machine
    /// alone.
    pub fn danger_accept_invalid_certificates(&mut self) {
        self.accept_invalid = true;
    }

    /// Appends the secrets of each session to the file that the environment's `SSLKEYLOGFILE` names, if it names one, so that others can
    /// read what they captured.
    ///
    /// # Errors
    /// [`TlsError::BadSetting`] where it cannot be written to.
    pub fn log_keys_where_asked(&mut self) -> Result<(), TlsError> {
        let Some(file) = env::var_os("SSLKEYLOGFILE").filter(|file| !file.is_empty()) else {
            return Ok(());
        };
        // Nobody else is to read it.
        let opened = File::options()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&file);
        opened.map_err(|error| TlsError::BadSetting {
            what: "SSLKEYLOGFILE",
            why: format!("{}: {error}", Path::new(&file).display()),
        })?;
        self.logs_keys = true;
        Ok(())
    }

    /// True after
    /// [`danger_accept_invalid_certificates`](TlsSettings::danger_accept_invalid_certificates).
    pub fn accepts_invalid_certificates(&self) -> bool {
        self.accept_invalid
    }

    /// Reads the authorities and builds the configuration, once for any number of connections.
    ///
    /// # Errors
    /// [`TlsError::NoRoots`] where no authority would be trusted,
    /// [`TlsError::BadSetting`] for a certificate or key that does not work,
    /// [`TlsError::BadServerName`].
    pub fn build(&self) -> Result<TlsConfig, TlsError> {
        let server_name = self.server_name.as_deref().map(name).transpose()?;
        let provider = Arc::new(ring::default_provider());
        let plain = self.config(provider)?;
        let configs = Offer::ALL.map(|offer| {
            let mut config = plain.clone();
            config.alpn_protocols = offer.protocols();
            Arc::new(config)
        });
        Ok(TlsConfig(Arc::new(Built {
            configs,
            server_name,
            shows_certificate: self.identity.is_some(),
        })))
    }

    fn config(&self, provider: Arc<CryptoProvider>) -> Result<ClientConfig, TlsError> {
        let unusable = |what, error: rustls::Error| TlsError::BadSetting {
            what,
            why: words::of_handshake(&error),
        };
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(self.versions.list()?)
            .map_err(|error| unusable("version", error))?
            .dangerous();
        let builder = match self.accept_invalid {
            true => builder.with_custom_certificate_verifier(Arc::new(AcceptAll(provider))),
            false => {
                let verifier = Verifier::new(self.roots()?, self.own_roots.clone(), provider)?;
                builder.with_custom_certificate_verifier(verifier)
            }
        };
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
                .map_err(|error| unusable("certificate of the client", error))?,
        };
        config.enable_secret_extraction = true;
        config.resumption = resumption(self.sessions_max);
        if self.logs_keys {
            config.key_log = Arc::new(KeyLogFile::new());
        }
        Ok(config)
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in &self.own_roots {
            roots
                .add(certificate.clone())
                .map_err(|error| TlsError::BadSetting {
                    what: "certificate of an authority",
                    why: words::of_handshake(&error),
                })?;
        }
        if self.system_roots {
            let found = rustls_native_certs::load_native_certs();
            // Single certificates that are unfit are nothing unusual, and no reason to stop.
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let why = found.errors.first().map(ToString::to_string);
                return Err(TlsError::NoRoots(
                    why.unwrap_or_else(|| "none found".into()),
                ));
            }
        }
        match roots.is_empty() {
            true => Err(TlsError::NoRoots("the machine's are not wanted".into())),
            false => Ok(roots),
        }
    }
}

/// Settings that were parsed and checked; cheap to clone. Clones share session tickets.
#[derive(Clone)]
pub struct TlsConfig(Arc<Built>);

struct Built {
    /// One for each [`Offer`], in its order.
    configs: [Arc<ClientConfig>; 3],
    server_name: Option<ServerName<'static>>,
    shows_certificate: bool,
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsConfig({:x})", self.id())
    }
}

impl TlsConfig {
    /// Whether a certificate of the client is shown to servers that request one.
    pub fn shows_certificate(&self) -> bool {
        self.0.shows_certificate
    }

    /// A number that clones share and no other living configuration has: part of
    /// what connections are kept by.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The configuration of `rustls` that offers these protocols.
    pub fn client_config(&self, offer: Offer) -> Arc<ClientConfig> {
        self.0.configs[offer as usize].clone()
    }

    /// The name that is requested and verified on a connection to `host`.
    ///
    /// # Errors
    /// [`TlsError::BadServerName`] where `host` is neither a name nor an address.
    pub fn name_for(&self, host: &str) -> Result<ServerName<'static>, TlsError> {
        match &self.0.server_name {
            Some(name) => Ok(name.clone()),
            None => name(host),
        }
    }
}

impl TlsConfig {
    /// The same for connections to one server, all by one thread: it waits for no other to look up a session, and
    /// keeps as many tickets as this; 0 for none.
    pub fn with_tickets(&self, tickets_max: usize) -> TlsConfig {
        let configs = self.0.configs.each_ref().map(|config| {
            let mut config = ClientConfig::clone(config);
            config.resumption = match tickets_max {
                0 => Resumption::disabled(),
                most => Resumption::store(Tickets::new(most)),
            };
            Arc::new(config)
        });
        TlsConfig(Arc::new(Built {
            configs,
            server_name: self.0.server_name.clone(),
            shows_certificate: self.0.shows_certificate,
        }))
    }
}

fn resumption(sessions_max: usize) -> Resumption {
    match sessions_max {
        0 => Resumption::disabled(),
        most => Resumption::in_memory_sessions(most),
    }
}

/// A host as certificates name it; addresses of IPv6 may be in brackets.
fn name(host: &str) -> Result<ServerName<'static>, TlsError> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    // A name with a dot at its end is the same host, and certificates are without.
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    ServerName::try_from(bare.to_owned()).map_err(|_| TlsError::BadServerName(host.to_owned()))
}

pub(crate) fn certificates(
    pem: &[u8],
    what: &'static str,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unusable = |why: String| TlsError::BadSetting { what, why };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| unusable(error.to_string()))?;
    match found.is_empty() {
        true => Err(unusable("there is no certificate in it".to_owned())),
        false => Ok(found),
    }
}

pub(crate) fn read(path: &Path, what: &'static str) -> Result<Vec<u8>, TlsError> {
    let unusable = |why: String| TlsError::BadSetting {
        what,
        why: format!("{}: {why}", path.display()),
    };
    let length = fs::metadata(path).map_err(|error| unusable(error.to_string()))?;
    if length.len() > PEM_BYTES_MAX {
        return Err(unusable(format!("it has more than {PEM_BYTES_MAX} bytes")));
    }
    fs::read(path).map_err(|error| unusable(error.to_string()))
}
