//! Connections to control planes.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use discovery_http::tls::{self, file::FileError};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};
use tower_service::Service;

use super::XdsOptions;

/// The interval between keep-alive probes on an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// The time limit of a keep-alive probe.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The TLS options for control planes. Changed files are read again for a new connection; unusable ones
/// have no effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsOptions {
    /// PEM file with the authorities that control planes are trusted by. Required for `https` servers.
    pub ca_file: Option<PathBuf>,
    /// PEM file with the client certificate of this proxy and its chain.
    pub certificate_file: Option<PathBuf>,
    /// PEM file with the key of the client certificate.
    pub key_file: Option<PathBuf>,
    /// The name that certificates of control planes must have. `None` for the host of the address. Default:
    /// `None`.
    pub server_name: Option<String>,
}

impl TlsOptions {
    /// Sets [`ca_file`](Self::ca_file).
    #[must_use]
    pub fn with_ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Sets [`certificate_file`](Self::certificate_file) and [`key_file`](Self::key_file).
    #[must_use]
    pub fn with_certificate(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate_file = Some(chain.into());
        self.key_file = Some(key.into());
        self
    }

    fn files(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.ca_file, &self.certificate_file, &self.key_file];
        files.into_iter().flatten().map(PathBuf::as_path)
    }

    /// Sets [`server_name`](Self::server_name).
    #[must_use]
    pub fn with_server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }
}

/// The reason why no client can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// An empty list of servers.
    #[error("no control plane is given; write one such as `http://127.0.0.1:1701`")]
    NoServer,
    /// An invalid address.
    #[error("`{server}` is not an address such as `https://xds.example:1701`")]
    Server {
        /// The address as written.
        server: String,
    },
    /// An unreadable file.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// A server with TLS, but no file with the authorities to trust.
    #[error(
        "an `https` control plane needs `ca_file`, with the certificates that it is trusted by"
    )]
    NoRoots,
    /// A certificate without a key or a key without a certificate.
    #[error("`certificate_file` and `key_file` come together")]
    HalfCertificate,
    /// Options with which TLS cannot be set up.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// An invalid server name.
    #[error("`{name}` is no name of a server")]
    ServerName {
        /// The name as written.
        name: String,
    },
}

/// The means to open connections.
#[derive(Clone)]
pub(super) struct Dial {
    endpoints: Arc<[Endpoint]>,
    connector: Connector,
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dial")
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

impl Dial {
    pub(super) fn new(options: &XdsOptions) -> Result<Self, ClientError> {
        let mut endpoints = Vec::with_capacity(options.servers.len());
        let mut has_tls = false;
        for server in &options.servers {
            let wrong = || ClientError::Server {
                server: server.clone(),
            };
            let uri: Uri = server.parse().map_err(|_| wrong())?;
            let scheme = uri.scheme_str();
            has_tls |= scheme == Some("https");
            if uri.host().is_none_or(str::is_empty) || !matches!(scheme, Some("http" | "https")) {
                return Err(wrong());
            }
            endpoints.push(
                Endpoint::from(uri)
                    .connect_timeout(options.connect_timeout)
                    .http2_keep_alive_interval(KEEP_ALIVE)
                    .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
                    .keep_alive_while_idle(true),
            );
        }
        if endpoints.is_empty() {
            return Err(ClientError::NoServer);
        }
        let tls = has_tls
            .then(|| Certificates::new(&options.tls))
            .transpose()?;
        let server_name = match &options.tls.server_name {
            None => None,
            Some(name) => Some(
                ServerName::try_from(name.clone())
                    .map_err(|_| ClientError::ServerName { name: name.clone() })?,
            ),
        };
        Ok(Self {
            endpoints: endpoints.into(),
            connector: Connector {
                #[cfg(test)]
                memory: None,
                tls: tls.map(Arc::new),
                server_name,
            },
        })
    }

    /// Creates connections to an in-memory server.
    #[cfg(test)]
    pub(super) fn in_memory(
        options: &XdsOptions,
        connections: tokio::sync::mpsc::Sender<tokio::io::DuplexStream>,
    ) -> Self {
        let mut dial = Self::new(options).unwrap();
        dial.connector.memory = Some(connections);
        dial
    }

    /// Connects to one of the servers, in turn.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unreachable or not trusted.
    pub(super) async fn connect(
        &self,
        attempt: usize,
    ) -> Result<(Channel, String), (String, String)> {
        let Some(endpoint) = self.endpoints.get(attempt % self.endpoints.len().max(1)) else {
            return Err((String::new(), "no control plane is given".to_owned()));
        };
        let server = endpoint.uri().to_string();
        match endpoint
            .connect_with_connector(self.connector.clone())
            .await
        {
            Ok(channel) => Ok((channel, server)),
            Err(error) => Err((server, with_causes(&error))),
        }
    }
}

/// Returns an error and its causes on one line.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = inner.source();
    }
    text
}

fn client_config(options: &TlsOptions) -> Result<ClientConfig, ClientError> {
    let ca_file = options.ca_file.as_deref().ok_or(ClientError::NoRoots)?;
    let provider = tls::provider();
    let authorities = tls::file::certificates(ca_file)?;
    let verifier =
        tls::authorities_verifier(authorities, &provider).map_err(|error| ClientError::File {
            path: ca_file.to_owned(),
            message: error.to_string(),
        })?;
    let identity = match (&options.certificate_file, &options.key_file) {
        (None, None) => None,
        (Some(chain), Some(key)) => Some((tls::file::certificates(chain)?, tls::file::key(key)?)),
        _ => return Err(ClientError::HalfCertificate),
    };
    let mut config = tls::client_config(provider, verifier, identity)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

impl From<FileError> for ClientError {
    fn from(error: FileError) -> Self {
        Self::File {
            path: error.path,
            message: error.message,
        }
    }
}

/// The TLS configuration, from files that may be renewed.
struct Certificates {
    options: TlsOptions,
    newest: Mutex<Newest>,
}

struct Newest {
    seen: Vec<Option<Vec<u8>>>,
    connector: TlsConnector,
}

impl Certificates {
    fn new(options: &TlsOptions) -> Result<Self, ClientError> {
        let seen = tls::file::contents(options.files());
        let connector = TlsConnector::from(Arc::new(client_config(options)?));
        Ok(Self {
            options: options.clone(),
            newest: Mutex::new(Newest { seen, connector }),
        })
    }

    async fn connector(self: Arc<Self>) -> TlsConnector {
        let looking = Arc::clone(&self);
        // A slow disk delays no one else.
        let _ = tokio::task::spawn_blocking(move || looking.look()).await;
        let newest = self.newest.lock();
        newest.connector.clone()
    }

    fn look(&self) {
        let now = tls::file::contents(self.options.files());
        let mut newest = self.newest.lock();
        if newest.seen == now {
            return;
        }
        match client_config(&self.options) {
            Ok(config) => newest.connector = TlsConnector::from(Arc::new(config)),
            Err(error) => {
                tracing::warn!(target: "xds::client", %error, "the new certificates cannot be used, the old ones stay");
            }
        }
        newest.seen = now;
    }
}

trait IoStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> IoStream for S {}

/// Connects over TCP, with TLS if the address requires it.
#[derive(Clone)]
struct Connector {
    #[cfg(test)]
    memory: Option<tokio::sync::mpsc::Sender<tokio::io::DuplexStream>>,
    tls: Option<Arc<Certificates>>,
    server_name: Option<ServerName<'static>>,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn IoStream>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(&uri).await.map(TokioIo::new) })
    }
}

impl Connector {
    async fn connect(self, uri: &Uri) -> io::Result<Box<dyn IoStream>> {
        #[cfg(test)]
        if let Some(connections) = &self.memory {
            let (ours, theirs) = tokio::io::duplex(1 << 20);
            let rejected = |_| io::Error::from(io::ErrorKind::ConnectionRefused);
            connections
                .try_send(theirs)
                .map_err(|_| ())
                .map_err(rejected)?;
            return Ok(Box::new(ours));
        }
        let is_https = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = self.tls.filter(|_| is_https) else {
            return Ok(Box::new(stream));
        };
        let name = match self.server_name {
            Some(name) => name,
            None => ServerName::try_from(host.to_owned()).map_err(io::Error::other)?,
        };
        Ok(Box::new(tls.connector().await.connect(name, stream).await?))
    }
}
