//! The transport that is built in.

use std::error::Error;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use http::{Request, Response};

use super::builder::BuildError;
use super::gzip;
use super::options::ConsulOptions;
use super::tls::client_config;
use super::transport::{Transport, TransportError, TransportErrorKind};

/// How long a connection is kept after its last request. Shorter than agents do, so that it is us who close it.
const IDLE: Duration = Duration::from_secs(60);

/// Speaks HTTP/1.1 over reqwest and rustls, with aws-lc-rs as cryptography; no process-wide default is needed or set.
///
/// Answers may come as gzip, which makes the lists of checks a twentieth of what they are.
///
/// Redirects are not followed, and proxies of the environment are not asked: a token must not go elsewhere. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct ReqwestTransport {
    client: reqwest::Client,
}

impl ReqwestTransport {
    /// Sets HTTP and, if it is used, TLS up.
    pub(super) fn new(options: &ConsulOptions, is_secure: bool) -> Result<Self, BuildError> {
        let failed = |error: Box<dyn Error + Send + Sync>| BuildError::Setup(error);
        let tls = client_config(&options.tls, is_secure).map_err(|e| failed(Box::new(e)))?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .user_agent(concat!(
                env!("CARGO_PKG_NAME"),
                "/",
                env!("CARGO_PKG_VERSION")
            ))
            .connect_timeout(options.connect_timeout)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(options.max_connections)
            .build()
            .map_err(|error| failed(Box::new(error)))?;
        Ok(Self { client })
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
        request.headers_mut().insert(ACCEPT_ENCODING, gzip::NAME);
        let mut response = self.client.execute(request).await.map_err(classified)?;
        let too_large = || {
            let message = format!("the answer is larger than {max_body} bytes");
            TransportError::new(TransportErrorKind::TooLarge, message)
        };
        let announced = response.content_length().unwrap_or(0);
        if usize::try_from(announced).map_or(true, |length| length > max_body) {
            return Err(too_large());
        }
        // The announced length is not believed: memory grows with what really comes.
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(classified)? {
            if chunk.len() > max_body - body.len() {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        let body = body.freeze();
        let body = match response.headers_mut().remove(CONTENT_ENCODING) {
            None => body,
            Some(encoding) if gzip::is_identity(&encoding) => body,
            Some(encoding) if gzip::is_name(&encoding) => gzip::decoded(&body, max_body)?,
            Some(_) => {
                let message = "the answer is in an encoding that was not asked for";
                return Err(TransportError::new(
                    TransportErrorKind::Interrupted,
                    message,
                ));
            }
        };
        let mut answer = Response::new(body);
        *answer.status_mut() = response.status();
        *answer.version_mut() = response.version();
        *answer.headers_mut() = std::mem::take(response.headers_mut());
        Ok(answer)
    }
}

/// What kind of error it is, by its causes.
fn classified(error: reqwest::Error) -> TransportError {
    use TransportErrorKind::{Connect, Interrupted, Tls};
    let (kind, message) = match is_of_tls(&error) {
        true => (Tls, "no TLS with the agent"),
        false if error.is_connect() => (Connect, "cannot connect"),
        false => (
            Interrupted,
            "the connection ended, or what came is not HTTP",
        ),
    };
    // Without the URL: the call's name is in the message already.
    TransportError::new(kind, message).with_source(error.without_url())
}

/// Whether rustls is among the causes.
fn is_of_tls(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return true;
        }
        // An I/O error hides what it wraps, since its source is the source of that.
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}
