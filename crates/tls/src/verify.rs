//! Certificate verification: webpki's rules, with self-signed certificates told apart and a
//! server's own certificate accepted where it was added as a root; and none at all, by name.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

use super::error::{SelfSigned, TlsError};

/// Verifies as `webpki` does, but takes a server's own certificate where just that one was
/// given as an authority's, and tells self-signed certificates from those of unknown
/// authorities.
#[derive(Debug)]
pub(crate) struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    /// The certificates that were given, not those of the machine.
    given: Vec<CertificateDer<'static>>,
}

impl Verifier {
    pub fn new(
        roots: RootCertStore,
        given: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<Verifier>, TlsError> {
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map(|usual| Arc::new(Verifier { usual, given }))
            .map_err(|error| TlsError::BadSetting {
                what: "certificates of authorities",
                why: error.to_string(),
            })
    }

    /// The rest of a refusal, without the part about the issuer.
    ///
    /// `webpki` looks at a certificate's dates before it looks for who signed it or
    /// whether it is an authority's, and at its names last: those are left to check. The
    /// key is proved by the handshake's signature, as ever.
    fn without_issuer(
        &self,
        refusal: CertificateError,
        certificate: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
    ) -> Result<ServerCertVerified, Error> {
        if self.given.iter().any(|given| given == certificate) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(
            match is_self_signed(certificate) {
                true => CertificateError::Other(OtherError(Arc::new(SelfSigned))),
                false => refusal,
            },
        ))
    }
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate).is_ok_and(|cert| cert.issuer() == cert.subject())
}

/// Whether a refusal says no more than that no known authority signed the certificate: none has its issuer's name, one
/// has it and another key (as where a server made itself a new certificate), or it is an authority's as a server's own,
/// which `openssl req -x509` makes.
fn is_about_issuer(refusal: &CertificateError) -> bool {
    match refusal {
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => true,
        CertificateError::Other(other) => matches!(
            other.0.downcast_ref::<webpki::Error>(),
            Some(webpki::Error::CaUsedAsEndEntity)
        ),
        _ => false,
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.usual.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(Error::InvalidCertificate(refusal)) if is_about_issuer(&refusal) => {
                self.without_issuer(refusal, end_entity, server_name)
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Accepts every certificate. Signatures are still checked: the server holds the
/// key of the certificate that it presents, but its identity is unknown.
#[derive(Debug)]
pub(crate) struct AcceptAll(pub Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAll {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
