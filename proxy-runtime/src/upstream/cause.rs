//! The causes of errors of connections to destinations.

use std::io;

use super::error::{ConnectError, ExchangeError, SendError};
use super::web_proxy::WebProxyError;
use crate::error::Cause;

impl ConnectError {
    /// The cause for logs and metrics.
    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::Resolve(_) => Cause::NameNotResolved,
            Self::Open(error) => Cause::of_connect(error),
            Self::Connector(error) => match error.downcast_ref::<io::Error>() {
                Some(error) => Cause::of_connect(error),
                None => Cause::ConnectFailed,
            },
            Self::WebProxy { error, .. } => match &**error {
                // Its own lack of ports and descriptors says nothing about the proxy in between.
                WebProxyError::Connect(error) if crate::error::is_of_machine(error) => {
                    Cause::Exhausted
                }
                _ => Cause::WebProxyFailed,
            },
            #[cfg(feature = "tls")]
            Self::Tls(error) => of_handshake(error),
            #[cfg(feature = "tls")]
            Self::TlsSettings(_) => Cause::TlsSettings,
            #[cfg(feature = "http2")]
            Self::Handshake(_) | Self::NoConnect => Cause::ProtocolUnsupported,
            #[cfg(feature = "tls")]
            Self::NoHttp2 => Cause::ProtocolUnsupported,
            Self::TimedOut => Cause::ConnectTimeout,
            Self::Saturated | Self::Queued => Cause::ConnectionLimit,
            Self::Unsupported(_) => Cause::RequestNotBuilt,
        }
    }
}

/// The cause of a TLS handshake that failed.
#[cfg(feature = "tls")]
fn of_handshake(error: &io::Error) -> Cause {
    let inner = error.get_ref();
    let of_tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match of_tls {
        Some(rustls::Error::InvalidCertificate(_)) => Cause::CertificateRejected,
        Some(
            rustls::Error::NoApplicationProtocol
            | rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol),
        ) => Cause::ProtocolUnsupported,
        Some(_) | None => Cause::TlsFailed,
    }
}

impl SendError {
    /// The cause for logs and metrics, if the error says more than that the connection ended.
    pub(crate) fn cause(&self) -> Option<Cause> {
        self.error.cause()
    }
}

/// Returns true if a destination has rejected the proxy's certificate, or the lack of one, after the handshake. With
/// TLS 1.3 the client ends it first, so that the alert arrives with the first read.
pub(crate) fn is_late_rejection(error: &io::Error) -> bool {
    #[cfg(feature = "tls")]
    {
        use rustls::AlertDescription as Alert;

        let inner = error.get_ref();
        let of_tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        matches!(
            of_tls,
            Some(rustls::Error::AlertReceived(
                Alert::CertificateRequired
                    | Alert::BadCertificate
                    | Alert::UnsupportedCertificate
                    | Alert::CertificateRevoked
                    | Alert::CertificateExpired
                    | Alert::CertificateUnknown
                    | Alert::UnknownCA
                    | Alert::AccessDenied
                    | Alert::DecryptError
                    | Alert::HandshakeFailure
            ))
        )
    }
    #[cfg(not(feature = "tls"))]
    {
        let _ = error;
        false
    }
}

impl ExchangeError {
    /// The cause for logs and metrics, if the error says more than that the connection ended.
    pub(crate) fn cause(&self) -> Option<Cause> {
        match *self {
            #[cfg(feature = "http2")]
            Self::Http2(ref error)
                if error.is_remote() && error.reason() == Some(h2::Reason::REFUSED_STREAM) =>
            {
                Some(Cause::StreamRefused)
            }
            #[cfg(feature = "http2")]
            Self::NotAllowed => Some(Cause::StreamRefused),
            #[cfg(feature = "http2")]
            Self::Http2(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn each_connection_error_has_its_cause() {
        let io = |kind: ErrorKind| Arc::new(Error::from(kind));
        for (error, cause) in [
            (
                ConnectError::Resolve(io(ErrorKind::NotFound)),
                Cause::NameNotResolved,
            ),
            (
                ConnectError::Open(io(ErrorKind::ConnectionRefused)),
                Cause::ConnectionRefused,
            ),
            (ConnectError::TimedOut, Cause::ConnectTimeout),
            (ConnectError::Queued, Cause::ConnectionLimit),
            (ConnectError::Saturated, Cause::ConnectionLimit),
        ] {
            assert_eq!(error.cause(), cause, "{error:?}");
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn a_certificate_that_is_not_trusted_is_no_failed_handshake() {
        let of = |error: rustls::Error| {
            let error = Error::new(ErrorKind::InvalidData, error);
            ConnectError::Tls(Arc::new(error)).cause()
        };
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        assert_eq!(of(expired), Cause::CertificateRejected);
        let alert = rustls::Error::AlertReceived(rustls::AlertDescription::HandshakeFailure);
        assert_eq!(of(alert), Cause::TlsFailed);
        let no_version = rustls::AlertDescription::NoApplicationProtocol;
        assert_eq!(
            of(rustls::Error::AlertReceived(no_version)),
            Cause::ProtocolUnsupported
        );
        let closed = ConnectError::Tls(Arc::new(ErrorKind::UnexpectedEof.into()));
        assert_eq!(closed.cause(), Cause::TlsFailed);
    }
}
