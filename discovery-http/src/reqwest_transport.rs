//! The built-in transport.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap};
use http::{Request, Response};
use rustls::ClientConfig;

use crate::classify::classified;
use crate::gzip;
use crate::{Transport, TransportError, TransportErrorKind};

/// The options of a [`ReqwestTransport`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransportOptions {
    /// The value of the header `User-Agent`.
    pub user_agent: String,
    /// The time limit for making a connection, with TLS. Default: 10 s.
    pub connect_timeout: Duration,
    /// The time for which a connection is kept after its last request. Default: 60 s.
    pub idle_timeout: Duration,
    /// The number of unused connections that are kept for each host. Default: `usize::MAX`.
    pub max_idle: usize,
    /// HTTP/2 where the server offers it. Default: `false`, that is HTTP/1.1 alone.
    pub http2: bool,
    /// Compressed responses are requested and decompressed. Default: `false`.
    pub gzip: bool,
    /// `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of the environment are obeyed. Default: `false`.
    pub environment_proxy: bool,
}

impl TransportOptions {
    /// The defaults, with a `User-Agent`.
    pub fn new(user_agent: impl Into<String>) -> Self {
        Self {
            user_agent: user_agent.into(),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            max_idle: usize::MAX,
            http2: false,
            gzip: false,
            environment_proxy: false,
        }
    }
}

/// The error of setting up a transport.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be set up")]
pub struct SetupError(#[source] Box<dyn Error + Send + Sync>);

impl SetupError {
    /// The cause alone.
    pub fn into_source(self) -> Box<dyn Error + Send + Sync> {
        self.0
    }
}

/// HTTP over reqwest and rustls.
///
/// Redirects are not followed and nothing is retried: a credential must not go elsewhere, and the client above decides about
/// retries. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct ReqwestTransport {
    client: reqwest::Client,
    gzip: bool,
}

impl ReqwestTransport {
    /// A transport with this TLS configuration, whose application protocols (ALPN) are set according to the options.
    ///
    /// # Errors
    ///
    /// reqwest rejects the options: a `User-Agent` that is no header value, for example.
    pub fn new(mut tls: ClientConfig, options: &TransportOptions) -> Result<Self, SetupError> {
        tls.alpn_protocols = match options.http2 {
            true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            false => vec![b"http/1.1".to_vec()],
        };
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .user_agent(&options.user_agent)
            .connect_timeout(options.connect_timeout)
            .pool_idle_timeout(options.idle_timeout)
            .pool_max_idle_per_host(options.max_idle);
        if !options.http2 {
            builder = builder.http1_only();
        }
        if !options.environment_proxy {
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| SetupError(Box::new(error)))?;
        let gzip = options.gzip;
        Ok(Self { client, gzip })
    }

    /// The client of reqwest, for bodies that arrive in pieces. Its responses are not decompressed.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }
}

#[async_trait]
impl Transport for ReqwestTransport {
    async fn send(
        &self,
        request: Request<Bytes>,
        max_body: usize,
    ) -> Result<Response<Bytes>, TransportError> {
        let mut request = reqwest::Request::try_from(request).map_err(classified)?;
        if self.gzip {
            request.headers_mut().insert(ACCEPT_ENCODING, gzip::NAME);
        }
        let mut response = self.client.execute(request).await.map_err(classified)?;
        let mut body = read(&mut response, max_body).await?;
        if self.gzip {
            body = decoded(response.headers_mut(), body, max_body)?;
        }
        let mut answer = Response::new(body);
        *answer.status_mut() = response.status();
        *answer.version_mut() = response.version();
        *answer.headers_mut() = std::mem::take(response.headers_mut());
        Ok(answer)
    }
}

async fn read(response: &mut reqwest::Response, max_body: usize) -> Result<Bytes, TransportError> {
    let announced = response.content_length().unwrap_or(0);
    if usize::try_from(announced).map_or(true, |length| length > max_body) {
        return Err(TransportError::too_large(max_body));
    }
    // The announced length is not trusted: memory grows with the bytes that arrive.
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(classified)? {
        if chunk.len() > max_body - body.len() {
            return Err(TransportError::too_large(max_body));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn decoded(headers: &mut HeaderMap, body: Bytes, max_body: usize) -> Result<Bytes, TransportError> {
    match headers.remove(CONTENT_ENCODING) {
        None => Ok(body),
        Some(encoding) if gzip::is_identity(&encoding) => Ok(body),
        Some(encoding) if gzip::is_name(&encoding) => gzip::decoded(&body, max_body),
        Some(_) => Err(TransportError::new(
            TransportErrorKind::Interrupted,
            "the response has an encoding that was not requested",
        )),
    }
}
