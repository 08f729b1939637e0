//! The transport that is built in.

use std::error::Error;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use rustls::{AlertDescription, CertificateError, OtherError};

use super::builder::BuildError;
use super::tls::{ClientIdentity, ServerTrust, client_config};
use super::transport::{Transport, TransportError, TransportErrorKind};

/// How [`ReqwestTransport`] speaks HTTP and TLS.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReqwestOptions {
    /// Whom to trust. Default: certificates for the endpoint's host that the operating system trusts.
    pub trust: ServerTrust,
    /// The certificate to show. Default: none.
    pub identity: Option<ClientIdentity>,
    /// How long a connection may take to be made, with TLS. 5 s.
    pub connect_timeout: Duration,
    /// Whether `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of the environment are obeyed. `false`.
    pub environment_proxy: bool,
}

impl Default for ReqwestOptions {
    fn default() -> Self {
        Self {
            trust: ServerTrust::default(),
            identity: None,
            connect_timeout: Duration::from_secs(5),
            environment_proxy: false,
        }
    }
}

impl ReqwestOptions {
    /// Sets [`trust`](Self::trust).
    #[must_use]
    pub fn with_trust(mut self, trust: ServerTrust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets [`identity`](Self::identity).
    #[must_use]
    pub fn with_identity(mut self, identity: ClientIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets [`connect_timeout`](Self::connect_timeout).
    #[must_use]
    pub fn with_connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Sets [`environment_proxy`](Self::environment_proxy).
    #[must_use]
    pub fn with_environment_proxy(mut self, environment_proxy: bool) -> Self {
        self.environment_proxy = environment_proxy;
        self
    }
}

/// Speaks HTTP/1.1 and HTTP/2 over reqwest and rustls, with aws-lc-rs as cryptography; no process-wide default is needed or set.
///
/// Connections are kept for 30 s after their last request. Redirects are not followed: a gateway sends none, and a credential
/// must not go elsewhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ReqwestTransport {
    client: reqwest::Client,
}

impl ReqwestTransport {
    /// Sets HTTP and TLS up, and reads the certificates of the operating system if they are what is trusted.
    ///
    /// # Errors
    ///
    /// Certificate and key do not belong together, or the operating system has no certificates to trust.
    pub fn new(options: ReqwestOptions) -> Result<Self, BuildError> {
        Self::for_endpoints(options, true)
    }

    /// The same; without TLS what is said of it need not work.
    pub(super) fn for_endpoints(options: ReqwestOptions, secure: bool) -> Result<Self, BuildError> {
        let failed = |error: Box<dyn Error + Send + Sync>| BuildError::Setup(error);
        let trust = if secure {
            options.trust
        } else {
            ServerTrust::nobody()
        };
        let tls = client_config(&trust, options.identity.as_ref())
            .map_err(|error| failed(Box::new(error)))?;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .user_agent(concat!(
                env!("CARGO_PKG_NAME"),
                "/",
                env!("CARGO_PKG_VERSION")
            ))
            .connect_timeout(options.connect_timeout)
            .pool_idle_timeout(Duration::from_secs(30));
        if !options.environment_proxy {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| failed(Box::new(error)))?;
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
        let request = reqwest::Request::try_from(request).map_err(classified)?;
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
        let mut answer = Response::new(body.freeze());
        *answer.status_mut() = response.status();
        *answer.version_mut() = response.version();
        *answer.headers_mut() = std::mem::take(response.headers_mut());
        Ok(answer)
    }
}

/// What kind of error it is, by its causes.
fn classified(error: reqwest::Error) -> TransportError {
    use TransportErrorKind::{
        CertificateRefused, Connect, Interrupted, NotTls, TimedOut, Untrusted,
    };
    let (kind, message) = match tls_error(&error) {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            let message = "the gateway's certificate is not trusted";
            return TransportError::new(Untrusted, described(message, reason))
                .with_source(error.without_url());
        }
        Some(rustls::Error::AlertReceived(alert)) if is_about_certificates(*alert) => {
            (CertificateRefused, CERTIFICATE_REFUSED)
        }
        Some(rustls::Error::InvalidMessage(_)) if error.is_connect() => {
            (NotTls, "the peer does not speak TLS")
        }
        _ if error.is_connect() && error.is_timeout() => {
            (Connect, "the connection was not made in time")
        }
        _ if error.is_connect() => (Connect, "cannot connect"),
        _ if error.is_timeout() => (TimedOut, "no answer in time"),
        _ if says_certificate_refused(&error) => (CertificateRefused, CERTIFICATE_REFUSED),
        _ => (
            Interrupted,
            "the connection ended, or what came is not HTTP",
        ),
    };
    // Without the URL: the call's name is in the message already.
    TransportError::new(kind, message).with_source(error.without_url())
}

const CERTIFICATE_REFUSED: &str = "the gateway refuses the client certificate, or wants one";

/// A message with what our own verifier found, which rustls shows as code.
fn described(message: &str, reason: &CertificateError) -> String {
    match reason {
        CertificateError::Other(OtherError(ours)) => format!("{message}: {ours}"),
        _ => message.to_owned(),
    }
}

/// The error of rustls behind an error, if TLS is at fault.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
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
    None
}

/// Alerts about the client's certificate (RFC 8446, section 6.2). TLS 1.2 has none for one that is missing, and servers say that
/// the handshake failed.
const ABOUT_CERTIFICATES: [AlertDescription; 10] = [
    AlertDescription::CertificateRequired,
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::AccessDenied,
    AlertDescription::HandshakeFailure,
    AlertDescription::NoCertificate,
];

fn is_about_certificates(alert: AlertDescription) -> bool {
    ABOUT_CERTIFICATES.contains(&alert)
}

/// The same by the text alone. In TLS 1.3 the server looks at the certificate after the client's handshake is over, so that
/// HTTP finds the alert; and HTTP/2 keeps of an I/O error no more than its text.
fn says_certificate_refused(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(error) = cause {
        let text = error.to_string();
        let mut alerts = ABOUT_CERTIFICATES
            .iter()
            .map(|alert| rustls::Error::AlertReceived(*alert).to_string());
        if alerts.any(|alert| text.ends_with(&alert)) {
            return true;
        }
        cause = error.source();
    }
    false
}
