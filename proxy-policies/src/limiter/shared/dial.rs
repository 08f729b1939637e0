//! Connections to Redis, with TLS or without.

use std::io;
use std::path::Path;
use std::sync::Arc;

use discovery_http::tls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::config::SharedConfig;

/// A connection.
pub(super) type Stream = Box<dyn ReadWrite>;

pub(super) trait ReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ReadWrite for T {}

/// Connects.
pub(super) async fn dial(config: &SharedConfig) -> io::Result<Stream> {
    let (host, port) = config.host_and_port();
    // The file may have been replaced since the last connection.
    let connector = connector(config)?;
    let stream = TcpStream::connect((&*host, port)).await?;
    stream.set_nodelay(true)?;
    let Some(connector) = connector else {
        return Ok(Box::new(stream));
    };
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    Ok(Box::new(connector.connect(name, stream).await?))
}

/// The settings of TLS, as the file of authorities is now. `None` without TLS.
pub(super) fn connector(config: &SharedConfig) -> io::Result<Option<TlsConnector>> {
    let Some(file) = &config.ca_file else {
        return Ok(None);
    };
    let authorities = tls::file::certificates(Path::new(file)).map_err(io::Error::other)?;
    let provider = tls::provider();
    let verifier = tls::authorities_verifier(authorities, &provider).map_err(io::Error::other)?;
    let settings = tls::client_config(provider, verifier, None).map_err(io::Error::other)?;
    Ok(Some(TlsConnector::from(Arc::new(settings))))
}
