//! TLS of the server, with certificates that are read again when their files change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use discovery_http::tls::{self, file::FileError};
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::connection::Transport;
use super::listen::Upgrade;

/// The interval at which the files are checked. Renewed certificates come long before the old ones expire.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The server's certificate and the authorities of its clients. The files are read at the start and again
/// when they change; files that do not fit together have no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTls {
    /// PEM file with the server's certificate and its chain.
    pub certificate_file: PathBuf,
    /// PEM file with its key.
    pub key_file: PathBuf,
    /// PEM file with the authorities that client certificates must be issued by. `None` to serve clients
    /// without a certificate. Default: `None`.
    pub client_ca_file: Option<PathBuf>,
}

/// The reason why TLS is not possible with these files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerTlsError {
    /// A file cannot be read, or has the wrong content.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// The certificate and the key do not belong together, or cannot be used.
    #[error("{} with {}: {error}", certificate.display(), key.display())]
    Pair {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
        /// The reason.
        error: rustls::Error,
    },
    /// The file has no usable authority for client certificates.
    #[error("{}: {message}", path.display())]
    ClientCa {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
}

impl From<FileError> for ServerTlsError {
    fn from(error: FileError) -> Self {
        Self::File {
            path: error.path,
            message: error.message,
        }
    }
}

impl ServerTls {
    /// Creates the files of a certificate and its key. Clients need no certificate.
    #[must_use]
    pub fn new(certificate_file: impl Into<PathBuf>, key_file: impl Into<PathBuf>) -> Self {
        Self {
            certificate_file: certificate_file.into(),
            key_file: key_file.into(),
            client_ca_file: None,
        }
    }

    /// Sets [`client_ca_file`](Self::client_ca_file).
    #[must_use]
    pub fn with_client_ca(mut self, path: impl Into<PathBuf>) -> Self {
        self.client_ca_file = Some(path.into());
        self
    }

    /// Reads the files, to find out whether they can be used here and now.
    ///
    /// # Errors
    ///
    /// Returns the first problem of the files.
    pub fn check(&self) -> Result<(), ServerTlsError> {
        self.config().map(drop)
    }

    fn files(&self) -> impl Iterator<Item = &Path> {
        let ca = self.client_ca_file.as_deref();
        [&*self.certificate_file, &*self.key_file]
            .into_iter()
            .chain(ca)
    }

    fn config(&self) -> Result<ServerConfig, ServerTlsError> {
        let provider = tls::provider();
        let clients = match &self.client_ca_file {
            None => None,
            Some(path) => {
                let authorities = tls::file::certificates(path)?;
                let verifier = tls::client_verifier(authorities, &provider).map_err(|error| {
                    ServerTlsError::ClientCa {
                        path: path.clone(),
                        message: error.to_string(),
                    }
                })?;
                Some(verifier)
            }
        };
        let chain = tls::file::certificates(&self.certificate_file)?;
        let key = tls::file::key(&self.key_file)?;
        // Polls may come over either.
        tls::server_config(provider, (chain, key), clients, &["h2", "http/1.1"]).map_err(|error| {
            ServerTlsError::Pair {
                certificate: self.certificate_file.clone(),
                key: self.key_file.clone(),
                error,
            }
        })
    }
}

/// Agrees on TLS with clients, by the newest configuration.
#[derive(Debug, Clone)]
pub(super) struct Handshakes(watch::Receiver<Arc<ServerConfig>>);

impl Upgrade for Handshakes {
    async fn upgrade(self, stream: TcpStream) -> io::Result<Transport> {
        let config = Arc::clone(&self.0.borrow());
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        Ok(Transport::Tls(Box::new(stream)))
    }
}

/// Keeps up with the files.
#[derive(Debug)]
pub(super) struct FollowedFiles {
    files: ServerTls,
    seen: Vec<Option<Vec<u8>>>,
    configs: watch::Sender<Arc<ServerConfig>>,
}

impl FollowedFiles {
    pub(super) fn new(files: ServerTls) -> Result<(Self, Handshakes), ServerTlsError> {
        let seen = tls::file::contents(files.files());
        let (configs, newest) = watch::channel(Arc::new(files.config()?));
        let followed = Self {
            files,
            seen,
            configs,
        };
        Ok((followed, Handshakes(newest)))
    }

    /// Checks the files from time to time.
    pub(super) async fn run(mut self) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            // A slow disk delays no handshake.
            let looked = tokio::task::spawn_blocking(move || {
                self.look();
                self
            });
            match looked.await {
                Ok(back) => self = back,
                Err(_) => return std::future::pending().await,
            }
        }
    }

    fn look(&mut self) {
        let now = tls::file::contents(self.files.files());
        if now == self.seen {
            return;
        }
        match self.files.config() {
            Ok(config) => {
                self.configs.send_replace(Arc::new(config));
                tracing::info!(target: "xds::server", "the certificates of the xDS server were replaced");
            }
            Err(error) => {
                tracing::warn!(target: "xds::server", %error, "the new certificates of the xDS server cannot be used, the old ones stay");
            }
        }
        self.seen = now;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use testkit::certs::{Alpn, CertificateAuthority, Identity};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsConnector;

    use super::*;

    fn write(folder: &Path, identity: &Identity) -> ServerTls {
        let (certificate, key) = (folder.join("server.pem"), folder.join("server.key"));
        fs::write(&certificate, identity.certificate_pem()).unwrap();
        fs::write(&key, identity.key_pem()).unwrap();
        ServerTls::new(certificate, key)
    }

    /// Returns true if the server's certificate is issued by `authority`.
    async fn is_trusted(handshakes: &Handshakes, authority: &CertificateAuthority) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connector = TlsConnector::from(Arc::new(authority.client_config(Alpn::Http2)));
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let name = "xds.test".try_into().unwrap();
        let accepted = async {
            let (server, _) = listener.accept().await.unwrap();
            handshakes.clone().upgrade(server).await
        };
        let (accepted, connected) = tokio::join!(accepted, connector.connect(name, client));
        drop(accepted);
        connected.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn new_files_are_taken_when_they_fit_together() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (
            CertificateAuthority::new("old"),
            CertificateAuthority::new("new"),
        );
        let files = write(folder.path(), &old.issue(&["xds.test"]));
        let (followed, mut handshakes) = FollowedFiles::new(files.clone()).unwrap();
        assert!(is_trusted(&handshakes, &old).await);
        tokio::spawn(followed.run());

        let renewed = new.issue(&["xds.test"]);
        fs::write(&files.certificate_file, renewed.certificate_pem()).unwrap();
        tokio::time::sleep(LOOK_EVERY * 3).await;
        assert!(
            !handshakes.0.has_changed().unwrap(),
            "the key is still the old one"
        );
        assert!(is_trusted(&handshakes, &old).await);

        write(folder.path(), &renewed);
        handshakes.0.changed().await.unwrap();
        assert!(is_trusted(&handshakes, &new).await);
        assert!(!is_trusted(&handshakes, &old).await);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let authority = CertificateAuthority::new("fleet");
        let files = write(folder.path(), &authority.issue(&["xds.test"]));
        files.check().unwrap();
        let error = |files: ServerTls| files.check().unwrap_err().to_string();
        let missing = ServerTls::new("/nowhere/server.pem", &files.key_file);
        assert!(error(missing).starts_with("/nowhere/server.pem: "));
        let swapped = ServerTls::new(&files.key_file, &files.certificate_file);
        assert!(error(swapped).contains("server.key"));
        let without = files.clone().with_client_ca(&files.key_file);
        assert!(error(without).contains("no certificate"));
        let other = folder.path().join("other.key");
        fs::write(&other, authority.issue(&["xds.test"]).key_pem()).unwrap();
        let pair = ServerTls::new(&files.certificate_file, &other);
        assert!(error(pair).contains("other.key"));
    }
}
