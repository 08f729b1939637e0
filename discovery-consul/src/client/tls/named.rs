//! Certificates for a name that is not the host's: agents show one for `server.<datacenter>.consul`.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Verifies certificates as another verifier does, for a fixed name in place of the host's.
pub(super) struct NamedVerifier {
    /// `None`: nobody is trusted.
    verifier: Option<(Arc<dyn ServerCertVerifier>, ServerName<'static>)>,
    provider: Arc<CryptoProvider>,
}

impl NamedVerifier {
    pub(super) fn new(
        verifier: Arc<dyn ServerCertVerifier>,
        name: ServerName<'static>,
        provider: &Arc<CryptoProvider>,
    ) -> Self {
        Self {
            verifier: Some((verifier, name)),
            provider: Arc::clone(provider),
        }
    }

    /// Trusts nobody, and needs nothing of the operating system.
    pub(super) fn nobody(provider: &Arc<CryptoProvider>) -> Self {
        Self {
            verifier: None,
            provider: Arc::clone(provider),
        }
    }
}

impl ServerCertVerifier for NamedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _host: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some((verifier, name)) = &self.verifier else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        verifier.verify_server_cert(end_entity, intermediates, name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

impl fmt::Debug for NamedVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.verifier.as_ref().map(|(_, name)| name);
        f.debug_struct("NamedVerifier")
            .field("name", &name)
            .finish_non_exhaustive()
    }
}
