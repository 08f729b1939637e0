//! TLS to destinations.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use proxy_model::compiled::{DestinationAddress, Upstream};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion, version,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use rustls_platform_verifier::Verifier;
use tokio_rustls::TlsConnector;

use super::error::ConnectError;
use super::protocol::Protocols;
use super::transport::{Opened, UpstreamTransport};

const HTTP2: &[u8] = b"h2";
const HTTP11: &[u8] = b"http/1.1";

/// TLS settings for `https` destinations: the crypto provider, and the trusted certificates.
///
/// Cheap to clone. The server's name in the handshake (SNI) and in the certificate is the host of the destination's
/// address, whatever the `Host` header says.
#[derive(Clone)]
pub struct TlsClient {
    inner: Arc<TlsClientInner>,
}

struct TlsClientInner {
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
    /// Made when first used. There are at most 2 × 3 × 3 of them, and each keeps the sessions to resume.
    configs: Mutex<HashMap<TlsVariant, Arc<ClientConfig>>>,
}

/// The TLS settings that can differ between clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TlsVariant {
    accept_any: bool,
    tls12: bool,
    tls13: bool,
    protocols: Protocols,
}

impl TlsClient {
    /// Trusts what the operating system trusts. Reads the system's certificates, once.
    ///
    /// # Errors
    ///
    /// The system has no certificates, or the provider cannot be used.
    pub fn new(provider: Arc<CryptoProvider>) -> Result<Self, Error> {
        let verifier = Verifier::new(Arc::clone(&provider))?;
        Ok(Self::with_verifier(provider, Arc::new(verifier)))
    }

    /// Trusts certificates that were issued by `roots`.
    ///
    /// # Errors
    ///
    /// `roots` is empty.
    pub fn with_roots(provider: Arc<CryptoProvider>, roots: RootCertStore) -> Result<Self, Error> {
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| Error::General(error.to_string()))?;
        Ok(Self::with_verifier(provider, verifier))
    }

    /// Trusts what `verifier` accepts.
    pub fn with_verifier(
        provider: Arc<CryptoProvider>,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Self {
        Self {
            inner: Arc::new(TlsClientInner {
                provider,
                verifier,
                configs: Mutex::default(),
            }),
        }
    }

    /// The settings for one cluster.
    pub(super) fn config(
        &self,
        upstream: &Upstream,
        protocols: Protocols,
    ) -> Result<Arc<ClientConfig>, Error> {
        let settings = TlsVariant {
            accept_any: upstream.accepts_any_certificate(),
            tls12: upstream.tls12(),
            tls13: upstream.tls13(),
            protocols,
        };
        let mut configs = self.inner.configs.lock();
        if let Some(config) = configs.get(&settings) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.inner.build(settings)?);
        configs.insert(settings, Arc::clone(&config));
        Ok(config)
    }

    /// Makes TLS of a TCP connection.
    pub(super) async fn handshake(
        &self,
        config: Arc<ClientConfig>,
        address: &DestinationAddress,
        opened: Opened,
        protocols: Protocols,
    ) -> Result<Opened, ConnectError> {
        let UpstreamTransport::Tcp(stream) = opened.transport else {
            return Ok(opened);
        };
        let failed = |error| ConnectError::Tls(Arc::new(error));
        let name = ServerName::try_from(address.server_name().to_owned())
            .map_err(|error| failed(std::io::Error::other(error)))?;
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(failed)?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        if protocols == Protocols::Http2 && !http2 {
            return Err(ConnectError::NoHttp2);
        }
        Ok(Opened {
            transport: UpstreamTransport::Tls(Box::new(stream)),
            peer: opened.peer,
            http2,
        })
    }
}

impl TlsClientInner {
    fn build(&self, settings: TlsVariant) -> Result<ClientConfig, Error> {
        let versions: &[&'static SupportedProtocolVersion] = match (settings.tls12, settings.tls13)
        {
            (true, false) => &[&version::TLS12],
            (false, true) => &[&version::TLS13],
            _ => &[&version::TLS13, &version::TLS12],
        };
        let verifier = if settings.accept_any {
            Arc::new(AnyCertificate(Arc::clone(&self.provider)))
        } else {
            Arc::clone(&self.verifier)
        };
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let alpn: &[&[u8]] = match settings.protocols {
            Protocols::Http1 => &[HTTP11],
            Protocols::Http2 => &[HTTP2],
            Protocols::Either => &[HTTP2, HTTP11],
        };
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient").finish_non_exhaustive()
    }
}

/// Trusts any certificate, if the server can prove that it has the key: `DangerousAcceptAnyServerCertificate`.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
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
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
