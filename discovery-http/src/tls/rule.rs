//! Rules about certificates as verifiers of rustls.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// A rule that decides which certificates of servers are accepted.
pub trait CertificateRule: fmt::Debug + Send + Sync {
    /// Accepts or rejects a certificate. The proof that the server has its key is verified elsewhere, always.
    ///
    /// # Errors
    ///
    /// The certificate is not accepted.
    fn check(&self, presented: &Presented<'_>) -> Result<(), Error>;
}

/// The certificates that a server presents.
#[derive(Debug)]
#[non_exhaustive]
pub struct Presented<'a> {
    /// The server's own certificate.
    pub certificate: &'a CertificateDer<'a>,
    /// The certificates of its issuers, as far as the server sends them.
    pub intermediates: &'a [CertificateDer<'a>],
    /// The host that the client connects to.
    pub host: &'a ServerName<'a>,
    /// The stapled OCSP response. Empty: none.
    pub ocsp_response: &'a [u8],
    /// The time of the handshake.
    pub now: UnixTime,
}

/// A verifier by a rule. Signatures of handshakes are verified with the algorithms of the provider.
pub fn rule_verifier(
    rule: impl CertificateRule + 'static,
    provider: &Arc<CryptoProvider>,
) -> Arc<dyn ServerCertVerifier> {
    Arc::new(RuleVerifier {
        rule,
        provider: Arc::clone(provider),
    })
}

struct RuleVerifier<R> {
    rule: R,
    provider: Arc<CryptoProvider>,
}

impl<R: CertificateRule> ServerCertVerifier for RuleVerifier<R> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.rule.check(&Presented {
            certificate: end_entity,
            intermediates,
            host,
            ocsp_response,
            now,
        })?;
        Ok(ServerCertVerified::assertion())
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

impl<R: fmt::Debug> fmt::Debug for RuleVerifier<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleVerifier")
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}
