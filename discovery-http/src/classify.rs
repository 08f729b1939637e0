//! Errors of reqwest by kind.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError, OtherError};

use crate::{TransportError, TransportErrorKind};

/// The error of a transport, by the causes of an error of reqwest.
pub(crate) fn classified(error: reqwest::Error) -> TransportError {
    use TransportErrorKind::{
        CertificateRejected, Connect, Interrupted, NotTls, TimedOut, Tls, TlsInterrupted, Untrusted,
    };
    let (kind, message) = match tls_error(&error) {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            let message = described("the server's certificate is not trusted", reason);
            return TransportError::new(Untrusted, message).with_source(error.without_url());
        }
        Some(rustls::Error::AlertReceived(alert)) if is_about_certificates(*alert) => {
            (CertificateRejected, CERTIFICATE_REJECTED)
        }
        Some(rustls::Error::InvalidMessage(_)) if error.is_connect() => {
            (NotTls, "the server does not speak TLS")
        }
        Some(_) if error.is_connect() => (Tls, "the TLS handshake with the server failed"),
        Some(_) => (TlsInterrupted, "TLS with the server failed"),
        None if error.is_connect() && error.is_timeout() => {
            (Connect, "the connection was not made in time")
        }
        None if error.is_connect() => (Connect, "cannot connect"),
        None if error.is_timeout() => (TimedOut, "no answer in time"),
        None if says_certificate_rejected(&error) => (CertificateRejected, CERTIFICATE_REJECTED),
        None => (
            Interrupted,
            "the connection ended, or the answer is not HTTP",
        ),
    };
    // Without the URL: messages of clients name the call already.
    TransportError::new(kind, message).with_source(error.without_url())
}

const CERTIFICATE_REJECTED: &str = "the server rejects the client certificate, or requires one";

/// A message with the finding of a verifier of ours, which rustls shows as code.
fn described(message: &str, reason: &CertificateError) -> String {
    match reason {
        CertificateError::Other(OtherError(ours)) => format!("{message}: {ours}"),
        _ => message.to_owned(),
    }
}

/// The error of rustls among the causes, if TLS is at fault.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        // An I/O error hides the error that it wraps, since its source is the source of that one.
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

/// Alerts about the client's certificate (RFC 8446, section 6.2). TLS 1.2 has none for a missing one: servers report that
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

/// Returns whether the text of a cause is such an alert. In TLS 1.3 the server reads the certificate after the client's
/// handshake is over, so HTTP receives the alert; and HTTP/2 keeps of an I/O error its text alone.
fn says_certificate_rejected(error: &reqwest::Error) -> bool {
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
