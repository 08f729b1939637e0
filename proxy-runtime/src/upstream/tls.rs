//! TLS to destinations.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use proxy_model::Snapshot;
use proxy_model::compiled::{Cluster, DestinationAddress, Upstream};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion, version,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use rustls_platform_verifier::Verifier;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::credentials::{Credentials, CredentialsTable, Loaded};
use super::error::ConnectError;
use super::protocol::Protocols;
use super::transport::{Opened, Took, UpstreamTransport};

const HTTP2: &[u8] = b"h2";
const HTTP11: &[u8] = b"http/1.1";

/// TLS settings for `https` destinations: the crypto provider, and the trusted certificates.
///
/// Cheap to clone. The server's name in the handshake (SNI) and in the certificate is the host of the destination's
/// address, whatever the `Host` header says, unless the cluster has a `ServerName`.
///
/// Clusters with a `ClientCertificate` or a `CaFile` have these from files, which are read when the configuration is
/// published, and again when they have changed. Connections with the earlier certificates serve no new requests
/// then.
#[derive(Clone)]
pub struct TlsClient {
    inner: Arc<TlsClientInner>,
}

struct TlsClientInner {
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
    /// Made when first used. There are at most 2 × 3 × 3 of them, and each keeps the sessions to resume.
    configs: Mutex<HashMap<TlsVariant, Arc<ClientConfig>>>,
    /// The certificates of clusters that have their own.
    credentials: CredentialsTable,
}

/// The TLS settings that can differ between clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TlsVariant {
    accept_any: bool,
    tls12: bool,
    tls13: bool,
    protocols: Protocols,
}

impl TlsClient {
    /// Trusts the certificates that the operating system trusts. Reads them once.
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

    /// Trusts the certificates that `verifier` accepts.
    pub fn with_verifier(
        provider: Arc<CryptoProvider>,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Self {
        Self {
            inner: Arc::new(TlsClientInner {
                provider,
                verifier,
                configs: Mutex::default(),
                credentials: CredentialsTable::default(),
            }),
        }
    }

    /// Returns the certificates of a cluster that has its own. Blocks while it reads files that no other cluster uses.
    pub(crate) fn credentials(&self, cluster: &Cluster) -> Option<Arc<Credentials>> {
        let files = cluster.upstream().tls_files()?;
        Some(self.inner.credentials.of(files, &self.inner.provider))
    }

    /// Reads the certificates of all clusters on another thread. They stay loaded while the result is kept.
    pub(crate) async fn read_ahead(&self, snapshot: &Arc<Snapshot>) -> Vec<Arc<Credentials>> {
        let mut clusters = snapshot.clusters().iter();
        // Without such a cluster no thread is needed.
        if !clusters.any(|cluster| cluster.upstream().tls_files().is_some()) {
            return Vec::new();
        }
        let (this, snapshot) = (self.clone(), Arc::clone(snapshot));
        let read = move || {
            let clusters = snapshot.clusters().iter();
            clusters
                .filter_map(|cluster| this.credentials(cluster))
                .collect()
        };
        // What was not read here is read when the generation is built.
        tokio::task::spawn_blocking(read).await.unwrap_or_default()
    }

    /// Reads the files that have changed, apart from the caller's thread.
    pub(crate) async fn refresh(&self) {
        let all = self.inner.credentials.all();
        if all.is_empty() {
            return;
        }
        let provider = Arc::clone(&self.inner.provider);
        let read = move || {
            all.iter()
                .for_each(|credentials| credentials.refresh(&provider))
        };
        // A panic leaves the certificates as they are.
        let _ = tokio::task::spawn_blocking(read).await;
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
        let Some(files) = upstream.tls_files() else {
            return self.inner.config(settings, &self.inner.configs, None);
        };
        // The cluster of the request keeps them.
        let credentials = self.inner.credentials.known(files).ok_or_else(|| {
            Error::General("the certificates of the cluster were not read".to_owned())
        })?;
        let loaded = credentials.loaded()?;
        self.inner.config(settings, &loaded.configs, Some(&loaded))
    }

    /// Performs the TLS handshake on a TCP connection.
    pub(super) async fn handshake(
        &self,
        config: Arc<ClientConfig>,
        server_name: &str,
        opened: Opened,
        protocols: Protocols,
    ) -> Result<Opened, ConnectError> {
        let UpstreamTransport::Tcp(stream) = opened.transport else {
            return Ok(opened);
        };
        let failed = |error| ConnectError::Tls(Arc::new(error));
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|error| failed(std::io::Error::other(error)))?;
        let begun = Instant::now();
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(failed)?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        // A server that ignores ALPN would take HTTP/2 for a malformed request.
        if protocols == Protocols::Http2 && !http2 {
            return Err(ConnectError::NoHttp2);
        }
        Ok(Opened {
            transport: UpstreamTransport::Tls(Box::new(stream)),
            peer: opened.peer,
            http2,
            // A forward proxy in between reads nothing of TLS.
            absolute: None,
            took: Took {
                tls: Some(begun.elapsed()),
                ..opened.took
            },
        })
    }
}

/// Returns the name in the handshake, which the certificate must have.
pub(super) fn server_name<'a>(address: &'a DestinationAddress, upstream: &'a Upstream) -> &'a str {
    upstream
        .server_name()
        .unwrap_or_else(|| address.server_name())
}

impl TlsClientInner {
    /// Returns the configuration for these settings, with the certificates and keys `loaded` for the cluster.
    fn config(
        &self,
        settings: TlsVariant,
        configs: &Mutex<HashMap<TlsVariant, Arc<ClientConfig>>>,
        loaded: Option<&Loaded>,
    ) -> Result<Arc<ClientConfig>, Error> {
        // Built under the lock, so that connections at the same time share one set of sessions to resume.
        let mut configs = configs.lock();
        if let Some(config) = configs.get(&settings) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.build(settings, loaded)?);
        configs.insert(settings, Arc::clone(&config));
        Ok(config)
    }

    fn build(&self, settings: TlsVariant, loaded: Option<&Loaded>) -> Result<ClientConfig, Error> {
        let versions: &[&'static SupportedProtocolVersion] = match (settings.tls12, settings.tls13)
        {
            (true, false) => &[&version::TLS12],
            (false, true) => &[&version::TLS13],
            _ => &[&version::TLS13, &version::TLS12],
        };
        let verifier = if settings.accept_any {
            Arc::new(AnyCertificate(Arc::clone(&self.provider)))
        } else {
            let own = loaded.and_then(|loaded| loaded.verifier.as_ref());
            Arc::clone(own.unwrap_or(&self.verifier))
        };
        // `dangerous` is the name for any verifier that is passed in.
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match loaded.and_then(|loaded| loaded.client.as_ref()) {
            Some(client) => builder.with_client_cert_resolver(Arc::clone(client)),
            None => builder.with_no_client_auth(),
        };
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
