//! Errors of transports as errors of calls.

use discovery_http::TransportErrorKind;

use crate::calls::CallErrorKind;

/// The kind of a call's error, by the kind of the transport's.
pub(super) fn kind_of_call(kind: TransportErrorKind) -> CallErrorKind {
    match kind {
        TransportErrorKind::CertificateRejected => CallErrorKind::Denied,
        TransportErrorKind::TimedOut => CallErrorKind::TimedOut,
        TransportErrorKind::TooLarge => CallErrorKind::Malformed,
        _ => CallErrorKind::Unreachable,
    }
}
