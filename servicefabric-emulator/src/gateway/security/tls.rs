use std::io;
use std::sync::Arc;

use discovery_http::tls::pem::{self, PemError};
use discovery_http::tls::{client_verifier, provider, server_config};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Role;
use crate::gateway::server::Peer;

/// The TLS options of the gateway. All values are PEM text.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TlsOptions {
    certificate: String,
    key: String,
    admins: Option<String>,
    readers: Option<String>,
}

/// The reason why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A text has no PEM of the expected kind, or is malformed.
    #[error("the {what} cannot be read")]
    Pem {
        /// The name of the text.
        what: &'static str,
        /// The parse error.
        source: PemError,
    },
    /// Certificate and key do not match, or a certificate cannot be used.
    #[error("the {what} cannot be used")]
    Unusable {
        /// The name of the text.
        what: &'static str,
        /// The error of the TLS library.
        source: Error,
    },
}

impl TlsOptions {
    /// Creates options with a certificate, followed by its chain, and its key.
    pub fn new(certificate: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
            admins: None,
            readers: None,
        }
    }

    /// Requires client certificates. Those of these authorities have full access. A call without a
    /// certificate gets 403.
    #[must_use]
    pub fn admins(mut self, authorities: impl Into<String>) -> Self {
        self.admins = Some(authorities.into());
        self
    }

    /// Requires client certificates. Those of these authorities have read access only.
    #[must_use]
    pub fn readers(mut self, authorities: impl Into<String>) -> Self {
        self.readers = Some(authorities.into());
        self
    }

    /// Builds the TLS settings of a listener.
    pub(crate) fn build(&self) -> Result<Tls, TlsError> {
        let provider = provider();
        let chain = certificates("server certificate", &self.certificate)?;
        let key = pem::key(self.key.as_bytes()).map_err(|source| TlsError::Pem {
            what: "server key",
            source,
        })?;
        let trust = ClientTrust::new(self, &provider)?.map(Arc::new);
        let clients = trust
            .clone()
            .map(|trust| trust as Arc<dyn ClientCertVerifier>);
        let config =
            server_config(provider, (chain, key), clients, &["http/1.1"]).map_err(|source| {
                TlsError::Unusable {
                    what: "server certificate with its key",
                    source,
                }
            })?;
        Ok(Tls {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            trust,
        })
    }
}

/// The TLS settings of a listener.
#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    trust: Option<Arc<ClientTrust>>,
}

impl Tls {
    /// Returns true if client certificates are requested.
    pub(crate) fn asks_for_certificates(&self) -> bool {
        self.trust.is_some()
    }

    /// Completes the handshake of a client.
    ///
    /// If the future is dropped, the connection is closed.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Peer)> {
        let stream = self.acceptor.accept(stream).await?;
        let certificates = stream.get_ref().1.peer_certificates();
        let role = self
            .trust
            .as_ref()
            .zip(certificates)
            .and_then(|(trust, certificates)| trust.role(certificates));
        let peer = Peer {
            certificate: certificates.is_some_and(|certificates| !certificates.is_empty()),
            role,
        };
        Ok((stream, peer))
    }
}

fn certificates(what: &'static str, text: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    pem::certificates(text.as_bytes()).map_err(|source| TlsError::Pem { what, source })
}

/// The verifier of client certificates. It decides for each call, which then gets 403, and not in the
/// handshake, where a rejection would only break the connection.
#[derive(Debug)]
struct ClientTrust {
    admins: Option<Arc<dyn ClientCertVerifier>>,
    readers: Option<Arc<dyn ClientCertVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ClientTrust {
    fn new(options: &TlsOptions, provider: &Arc<CryptoProvider>) -> Result<Option<Self>, TlsError> {
        let verifier = |what, pem: &Option<String>| {
            pem.as_ref()
                .map(|pem| verifier(what, pem, provider))
                .transpose()
        };
        let admins = verifier("authority of the admins", &options.admins)?;
        let readers = verifier("authority of the readers", &options.readers)?;
        if admins.is_none() && readers.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            admins,
            readers,
            provider: Arc::clone(provider),
        }))
    }

    /// Returns the access of the holder of this chain. `None` if no authority vouches for it.
    fn role(&self, chain: &[CertificateDer<'static>]) -> Option<Role> {
        let (leaf, between) = chain.split_first()?;
        let trusted = |verifier: &Option<Arc<dyn ClientCertVerifier>>| {
            verifier.as_ref().is_some_and(|verifier| {
                verifier
                    .verify_client_cert(leaf, between, UnixTime::now())
                    .is_ok()
            })
        };
        // A certificate that both authorities signed gives the rights of an admin.
        if trusted(&self.admins) {
            Some(Role::Admin)
        } else if trusted(&self.readers) {
            Some(Role::Reader)
        } else {
            None
        }
    }
}

fn verifier(
    what: &'static str,
    pem: &str,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    client_verifier(certificates(what, pem)?, provider)
        .map_err(|source| TlsError::Unusable { what, source })
}

impl ClientCertVerifier for ClientTrust {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Without hints, a client offers its certificate whatever authority signed it.
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        // The handshake admits all clients. The rights are checked for every call.
        false
    }

    /// Accepts every certificate: `role` decides later on the access. The signatures below prove possession
    /// of the key.
    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
