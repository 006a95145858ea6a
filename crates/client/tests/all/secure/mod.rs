//! Authorities, certificates and a TLS server on the engine, for the tests of the
//! client's secure connections.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use prony_client::tls::TlsSettings;
use prony_engine::{Handle, Stream};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig, ServerConnection, version};

/// Signs certificates.
pub struct Authority {
    pub pem: String,
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key.
pub struct Identity {
    pub certificate: Certificate,
    pub key: KeyPair,
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Valid {
    Now,
    NoMore,
    NotYet,
}

fn params(name: &str, valid: Valid) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, name);
    let (from, to) = match valid {
        Valid::Now => (2020, 2090),
        Valid::NoMore => (2020, 2021),
        Valid::NotYet => (2089, 2090),
    };
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
    params
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = params(name, Valid::Now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        Authority {
            pem: certificate.pem(),
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    pub fn sign(&self, name: &str, valid: Valid) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let signed = params(name, valid).signed_by(&key, &self.issuer);
        let certificate = signed.expect("a certificate");
        Identity { certificate, key }
    }

    /// Settings of a client that trusts it and nobody else.
    pub fn trusted(&self) -> TlsSettings {
        let mut settings = TlsSettings::trusting_nobody();
        settings.add_roots_pem(self.pem.as_bytes()).expect("roots");
        settings
    }
}

/// A certificate that its own key signed, of an authority's kind or not.
pub fn self_signed(name: &str, is_authority: bool) -> Identity {
    self_signed_when(name, is_authority, Valid::Now)
}

/// The same, with its dates.
pub fn self_signed_when(name: &str, is_authority: bool, valid: Valid) -> Identity {
    let key = KeyPair::generate().expect("a key");
    let mut params = params(name, valid);
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let certificate = params.self_signed(&key).expect("a certificate");
    Identity { certificate, key }
}

/// What a server demands and offers.
#[derive(Clone, Copy, Default)]
pub struct Demands<'a> {
    /// Clients must show a certificate of this authority.
    pub clients_of: Option<&'a Authority>,
    pub protocols: &'a [&'a str],
    /// TLS 1.2 alone.
    pub old: bool,
}

impl Identity {
    /// A server's settings with this certificate.
    pub fn server(&self, demands: Demands<'_>) -> Arc<ServerConfig> {
        let versions: &[_] = match demands.old {
            true => &[&version::TLS12],
            false => &[&version::TLS13, &version::TLS12],
        };
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .expect("versions");
        let builder = match demands.clients_of {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots
                    .add(authority.certificate.der().clone())
                    .expect("a root");
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let key = ring::sign::any_supported_type(&key).expect("a key");
        // Whether the key is the certificate's, nobody asks here: an impostor's is not.
        let shown = CertifiedKey::new(vec![self.certificate.der().clone()], key);
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
        let protocols = demands.protocols.iter();
        config.alpn_protocols = protocols.map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// A server's end of a TLS connection.
pub struct ServerTls {
    pub tls: ServerConnection,
    stream: Stream,
    handle: Handle,
    plain: Vec<u8>,
    /// Bytes that may still be sent before the connection is closed.
    allowance: usize,
    piece_bytes: usize,
}

/// The client has gone, or is not understood, or the allowance is used up.
#[derive(Debug)]
pub struct Over;

impl ServerTls {
    pub fn new(handle: &Handle, stream: Stream, config: Arc<ServerConfig>) -> ServerTls {
        ServerTls {
            tls: ServerConnection::new(config).expect("a server"),
            stream,
            handle: handle.clone(),
            plain: Vec::new(),
            allowance: usize::MAX,
            piece_bytes: usize::MAX,
        }
    }

    /// Closes the connection after so many bytes sent.
    pub fn cut_after(mut self, bytes: usize) -> ServerTls {
        self.allowance = bytes;
        self
    }

    /// Sends so many bytes at a time.
    pub fn in_pieces(mut self, bytes: usize) -> ServerTls {
        self.piece_bytes = bytes;
        self
    }

    /// Bytes that it has sent, where its allowance was this.
    pub fn sent_of(&self, allowance: usize) -> usize {
        allowance - self.allowance
    }

    async fn push_out(&mut self) -> Result<(), Over> {
        while self.tls.wants_write() {
            let mut bytes = Vec::new();
            self.tls.write_tls(&mut bytes).map_err(|_| Over)?;
            let is_cut = bytes.len() > self.allowance;
            bytes.truncate(self.allowance);
            self.allowance -= bytes.len();
            for piece in bytes.chunks(self.piece_bytes.min(1 << 20)) {
                self.stream.post(piece.to_vec()).map_err(|_| Over)?;
                self.stream.flush().await.map_err(|_| Over)?;
                if self.piece_bytes < 100 {
                    self.handle.yield_now().await;
                }
            }
            if is_cut {
                return Err(Over);
            }
        }
        Ok(())
    }

    async fn take_in(&mut self) -> Result<bool, Over> {
        let received = self.stream.recv().await.map_err(|_| Over)?;
        let mut rest = &received[..];
        if rest.is_empty() {
            return Ok(false);
        }
        while !rest.is_empty() {
            if self.tls.read_tls(&mut rest).map_err(|_| Over)? == 0 {
                break;
            }
            let state = self.tls.process_new_packets();
            // What came with the client's goodbye is read; then WouldBlock, or the end.
            let _ = self.tls.reader().read_to_end(&mut self.plain);
            // An alert, where there is one, goes out before all ends.
            self.push_out().await?;
            state.map_err(|_| Over)?;
        }
        Ok(true)
    }

    pub async fn handshake(&mut self) -> Result<(), Over> {
        while self.tls.is_handshaking() {
            if !self.take_in().await? {
                return Err(Over);
            }
        }
        self.push_out().await
    }

    /// The next plain bytes; empty at the client's end.
    pub async fn read(&mut self) -> Result<Vec<u8>, Over> {
        while self.plain.is_empty() {
            let has_ended = self.tls.process_new_packets().map_err(|_| Over)?;
            if has_ended.peer_has_closed() || !self.take_in().await? {
                break;
            }
        }
        Ok(std::mem::take(&mut self.plain))
    }

    /// Reads until `end` has come.
    pub async fn read_until(&mut self, end: &[u8]) -> Result<Vec<u8>, Over> {
        let mut all = Vec::new();
        while !all.ends_with(end) {
            let more = self.read().await?;
            if more.is_empty() {
                return Err(Over);
            }
            all.extend_from_slice(&more);
        }
        Ok(all)
    }

    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Over> {
        for piece in bytes.chunks(16 << 10) {
            self.tls.writer().write_all(piece).map_err(|_| Over)?;
            self.push_out().await?;
        }
        Ok(())
    }

    /// Says goodbye as TLS has it.
    pub async fn close(mut self) {
        self.tls.send_close_notify();
        let _ = self.push_out().await;
        self.stream.shutdown_write();
    }
}
