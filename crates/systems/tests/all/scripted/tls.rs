//! A server over TLS that says `hello`, with a certificate of its own making.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::whole;
use crate::common::PATIENCE;

/// A server until the process ends.
pub struct Secured {
    pub url: String,
    /// Of each connection that came about: what was agreed on by ALPN.
    pub agreed: Arc<Mutex<Vec<String>>>,
}

/// A certificate of `ca`, or of an authority, with its key.
fn identity(ca: Option<&Issuer<'_, KeyPair>>) -> (Certificate, KeyPair, CertificateParams) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    let name = if ca.is_none() {
        "authority"
    } else {
        "127.0.0.1"
    };
    params.distinguished_name.push(DnType::CommonName, name);
    if ca.is_none() {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let made = match ca {
        Some(ca) => params.signed_by(&key, ca),
        None => params.self_signed(&key),
    };
    (made.expect("a certificate"), key, params)
}

impl Secured {
    /// Writes `ca.pem`, `client.pem` and `client.key` into `folder`. The server shows a
    /// certificate of that authority; with `asks`, clients have to as well.
    pub fn new(folder: &Path, asks: bool) -> Secured {
        let (ca, ca_key, ca_params) = identity(None);
        let issuer = Issuer::new(ca_params, ca_key);
        let (certificate, key, _) = identity(Some(&issuer));
        let (client, client_key, _) = identity(Some(&issuer));
        for (name, text) in [
            ("ca.pem", ca.pem()),
            ("client.pem", client.pem()),
            ("client.key", client_key.serialize_pem()),
        ] {
            std::fs::write(folder.join(name), text).expect("written");
        }
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = match asks {
            false => builder.with_no_client_auth(),
            true => {
                let mut roots = RootCertStore::empty();
                roots.add(ca.der().clone()).expect("a root");
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = builder.with_single_cert(vec![certificate.der().clone()], key);
        let mut config = config.expect("its own key");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Secured::serve(Arc::new(config))
    }

    fn serve(config: Arc<ServerConfig>) -> Secured {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("https://{}/x", listener.local_addr().expect("it is bound"));
        let agreed = Arc::new(Mutex::new(Vec::new()));
        let seen = agreed.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, seen) = (config.clone(), seen.clone());
                // A client that has gone makes any step fail, and that is its right.
                thread::spawn(move || drop(answer(stream, config, &seen)));
            }
        });
        Secured { url, agreed }
    }
}

fn answer(
    stream: std::net::TcpStream,
    config: Arc<ServerConfig>,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(());
        }
        head.push(byte[0]);
    }
    let agreed = stream.conn.alpn_protocol().unwrap_or_default();
    let agreed = String::from_utf8_lossy(agreed).into_owned();
    seen.lock().expect("no panic").push(agreed);
    stream.write_all(&whole("", b"hello"))?;
    stream.conn.send_close_notify();
    stream.flush()
}
