//! The certificate that a server presents, and the versions that it speaks. Not for: making certificates (`certificate`).

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

use crate::error::TlsError;
use crate::settings::{Offer, TlsVersions, certificates, read};
use crate::words;

/// Sessions that a server keeps for clients of TLS 1.2.
const SESSIONS_MAX: usize = 65_536;

/// A server's certificate, versions and protocols, checked; cheap to clone. Clones share sessions.
#[derive(Clone)]
pub struct ServerTls(pub(crate) Arc<ServerConfig>);

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}

impl ServerTls {
    /// A server that presents the certificate in this PEM text, followed by its chain, with its key. `resumes` tells
    /// whether it lets clients go on from earlier sessions.
    ///
    /// # Errors
    /// [`TlsError::BadSetting`] where one is missing, malformed, or not the other's.
    pub fn from_pem(
        chain: &[u8],
        key: &[u8],
        versions: TlsVersions,
        offer: Offer,
        resumes: bool,
    ) -> Result<ServerTls, TlsError> {
        let unfit = |what, why| TlsError::BadSetting { what, why };
        let chain = certificates(chain, "certificate of the server")?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| unfit("key of the server", error.to_string()))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions.list()?)
            .map_err(|error| unfit("version", words::of_handshake(&error)))?;
        let mut config = builder
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| unfit("certificate of the server", words::of_handshake(&error)))?;
        config.alpn_protocols = offer.protocols();
        config.enable_secret_extraction = true;
        config.session_storage = match resumes {
            true => rustls::server::ServerSessionMemoryCache::new(SESSIONS_MAX),
            false => Arc::new(rustls::server::NoServerSessionStorage {}),
        };
        match resumes {
            true => {
                config.ticketer = ring::Ticketer::new()
                    .map_err(|error| unfit("key of tickets", words::of_handshake(&error)))?;
            }
            false => config.send_tls13_tickets = 0,
        }
        Ok(ServerTls(Arc::new(config)))
    }

    /// As [`from_pem`](ServerTls::from_pem), from files.
    ///
    /// # Errors
    /// As there, and where a file cannot be read.
    pub fn from_files(
        chain: &Path,
        key: &Path,
        versions: TlsVersions,
        offer: Offer,
        resumes: bool,
    ) -> Result<ServerTls, TlsError> {
        let chain = read(chain, "certificate of the server")?;
        let key = read(key, "key of the server")?;
        ServerTls::from_pem(&chain, &key, versions, offer, resumes)
    }
}
