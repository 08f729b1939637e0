//! Errors of forwarding: kind, responsible side, and the client's status.

use std::error::Error as StdError;
use std::fmt;
use std::hash::{Hash, Hasher};

use http::StatusCode;

use super::Cause;

/// The kind of a forwarding error: a [name](Self::as_str) for logs and metrics, from YARP's `ForwarderError` with some
/// of our own, and the [cause](Self::cause), which programs decide by.
///
/// Two values are equal if their names are: the cause is a detail of the kind. A cause [converts](From) to its
/// usual kind.
#[derive(Clone, Copy)]
pub struct ForwardErrorKind {
    kind: KindName,
    cause: Cause,
}

/// The kind without its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
enum KindName {
    Request,
    RequestTimedOut,
    RequestCanceled,
    RequestBodyCanceled,
    RequestBodyClient,
    RequestBodyDestination,
    ResponseHeaders,
    ResponseBodyCanceled,
    ResponseBodyClient,
    ResponseBodyDestination,
    UpgradeRequestCanceled,
    UpgradeRequestClient,
    UpgradeRequestDestination,
    UpgradeResponseCanceled,
    UpgradeResponseClient,
    UpgradeResponseDestination,
    NoAvailableDestinations,
    RequestCreation,
    UpgradeActivityTimeout,
    NoPartition,
    Extension,
    LoopDetected,
    RequestRejected,
}

#[expect(
    non_upper_case_globals,
    reason = "the names of YARP, which logs and metrics have as well"
)]
impl ForwardErrorKind {
    /// Connecting, sending the head, or receiving the response's head failed.
    pub(crate) const Request: Self = Self::of(KindName::Request);
    /// Connecting, sending the head, or receiving the response's head timed out.
    pub(crate) const RequestTimedOut: Self = Self::of(KindName::RequestTimedOut);
    /// The client disconnected, or the caller cancelled, before the response's head arrived.
    pub(crate) const RequestCanceled: Self = Self::of(KindName::RequestCanceled);
    /// The upload was cancelled.
    pub(crate) const RequestBodyCanceled: Self = Self::of(KindName::RequestBodyCanceled);
    /// Reading the request's body from the client failed.
    pub(crate) const RequestBodyClient: Self = Self::of(KindName::RequestBodyClient);
    /// Writing the request's body to the destination failed.
    pub(crate) const RequestBodyDestination: Self = Self::of(KindName::RequestBodyDestination);
    /// The response's head could not be passed on.
    pub(crate) const ResponseHeaders: Self = Self::of(KindName::ResponseHeaders);
    /// The download was cancelled.
    pub(crate) const ResponseBodyCanceled: Self = Self::of(KindName::ResponseBodyCanceled);
    /// Writing the response's body to the client failed.
    pub(crate) const ResponseBodyClient: Self = Self::of(KindName::ResponseBodyClient);
    /// Reading the response's body from the destination failed.
    pub(crate) const ResponseBodyDestination: Self = Self::of(KindName::ResponseBodyDestination);
    /// An upgraded stream was cancelled while it sent to the destination.
    pub(crate) const UpgradeRequestCanceled: Self = Self::of(KindName::UpgradeRequestCanceled);
    /// Reading an upgraded stream from the client failed.
    pub(crate) const UpgradeRequestClient: Self = Self::of(KindName::UpgradeRequestClient);
    /// Writing an upgraded stream to the destination failed.
    pub(crate) const UpgradeRequestDestination: Self =
        Self::of(KindName::UpgradeRequestDestination);
    /// An upgraded stream was cancelled while it sent to the client.
    pub(crate) const UpgradeResponseCanceled: Self = Self::of(KindName::UpgradeResponseCanceled);
    /// Writing an upgraded stream to the client failed.
    pub(crate) const UpgradeResponseClient: Self = Self::of(KindName::UpgradeResponseClient);
    /// Reading an upgraded stream from the destination failed.
    pub(crate) const UpgradeResponseDestination: Self =
        Self::of(KindName::UpgradeResponseDestination);
    /// No destination was available.
    pub(crate) const NoAvailableDestinations: Self = Self::of(KindName::NoAvailableDestinations);
    /// The request to the destination could not be built.
    pub(crate) const RequestCreation: Self = Self::of(KindName::RequestCreation);
    /// An upgraded stream was idle for too long.
    pub(crate) const UpgradeActivityTimeout: Self = Self::of(KindName::UpgradeActivityTimeout);
    /// The request belongs to none of the route's partitions.
    pub(crate) const NoPartition: Self = Self::of(KindName::NoPartition);
    /// A filter, a layer or a load balancing policy of the program failed.
    pub(crate) const Extension: Self = Self::of(KindName::Extension);
    /// The request has returned to the proxy that forwarded it.
    pub(crate) const LoopDetected: Self = Self::of(KindName::LoopDetected);
    /// The request is malformed, or asks for an upgrade that the cluster cannot carry.
    pub(crate) const RequestRejected: Self = Self::of(KindName::RequestRejected);
}

impl ForwardErrorKind {
    /// Every kind, in the order of their numbers in metrics.
    pub const ALL: &'static [Self] = &[
        Self::Request,
        Self::RequestTimedOut,
        Self::RequestCanceled,
        Self::RequestBodyCanceled,
        Self::RequestBodyClient,
        Self::RequestBodyDestination,
        Self::ResponseHeaders,
        Self::ResponseBodyCanceled,
        Self::ResponseBodyClient,
        Self::ResponseBodyDestination,
        Self::UpgradeRequestCanceled,
        Self::UpgradeRequestClient,
        Self::UpgradeRequestDestination,
        Self::UpgradeResponseCanceled,
        Self::UpgradeResponseClient,
        Self::UpgradeResponseDestination,
        Self::NoAvailableDestinations,
        Self::RequestCreation,
        Self::UpgradeActivityTimeout,
        Self::NoPartition,
        Self::Extension,
        Self::LoopDetected,
        Self::RequestRejected,
    ];

    const fn of(kind: KindName) -> Self {
        Self {
            kind,
            cause: kind.usual_cause(),
        }
    }

    /// Returns this kind of error with another cause.
    #[must_use]
    pub(crate) const fn because(self, cause: Cause) -> Self {
        Self {
            kind: self.kind,
            cause,
        }
    }

    /// Returns this kind of error with the cause that follows from the client's status, for a rejected body.
    #[must_use]
    pub(crate) fn told(self, status: StatusCode) -> Self {
        match self.kind {
            // A more precise cause that was set before stays.
            KindName::RequestBodyClient if self.cause == Cause::BodyBroken => {
                self.because(Cause::of_body(status))
            }
            _ => self,
        }
    }

    /// The position in [`ALL`](Self::ALL), for tables of counters.
    pub(crate) const fn index(self) -> usize {
        self.kind as usize
    }

    /// The cause. One that is not known more closely is the usual one of the kind.
    pub const fn cause(self) -> Cause {
        self.cause
    }

    /// The name, as YARP spells it if YARP has it, for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self.kind {
            KindName::Request => "Request",
            KindName::RequestTimedOut => "RequestTimedOut",
            KindName::RequestCanceled => "RequestCanceled",
            KindName::RequestBodyCanceled => "RequestBodyCanceled",
            KindName::RequestBodyClient => "RequestBodyClient",
            KindName::RequestBodyDestination => "RequestBodyDestination",
            KindName::ResponseHeaders => "ResponseHeaders",
            KindName::ResponseBodyCanceled => "ResponseBodyCanceled",
            KindName::ResponseBodyClient => "ResponseBodyClient",
            KindName::ResponseBodyDestination => "ResponseBodyDestination",
            KindName::UpgradeRequestCanceled => "UpgradeRequestCanceled",
            KindName::UpgradeRequestClient => "UpgradeRequestClient",
            KindName::UpgradeRequestDestination => "UpgradeRequestDestination",
            KindName::UpgradeResponseCanceled => "UpgradeResponseCanceled",
            KindName::UpgradeResponseClient => "UpgradeResponseClient",
            KindName::UpgradeResponseDestination => "UpgradeResponseDestination",
            KindName::NoAvailableDestinations => "NoAvailableDestinations",
            KindName::RequestCreation => "RequestCreation",
            KindName::UpgradeActivityTimeout => "UpgradeActivityTimeout",
            KindName::NoPartition => "NoPartition",
            KindName::Extension => "Extension",
            KindName::LoopDetected => "LoopDetected",
            KindName::RequestRejected => "RequestRejected",
        }
    }

    /// The description in a sentence.
    pub(crate) const fn meaning(self) -> &'static str {
        if matches!(self.cause, Cause::AffinityRejected) {
            // Destinations are available, but not the one that was asked for.
            return "the affinity key of the request is of no use";
        }
        match self.kind {
            KindName::Request => "the destination could not be reached or did not answer",
            KindName::RequestTimedOut => "the destination did not answer in time",
            KindName::RequestCanceled => "the request was cancelled",
            KindName::RequestBodyCanceled => "the upload was cancelled",
            KindName::RequestBodyClient => "the client did not send its whole request",
            KindName::RequestBodyDestination => "the destination did not take the request",
            KindName::ResponseHeaders => "the response head cannot be passed on",
            KindName::ResponseBodyCanceled => "the download was cancelled",
            KindName::ResponseBodyClient => "the client did not take the response",
            KindName::ResponseBodyDestination => "the destination did not send its whole response",
            KindName::UpgradeRequestCanceled | KindName::UpgradeResponseCanceled => {
                "the upgraded stream was cancelled"
            }
            KindName::UpgradeRequestClient | KindName::UpgradeResponseClient => {
                "the upgraded stream broke at the client's side"
            }
            KindName::UpgradeRequestDestination | KindName::UpgradeResponseDestination => {
                "the upgraded stream broke at the destination's side"
            }
            KindName::NoAvailableDestinations => "no destination is available",
            KindName::RequestCreation => "the request to the destination cannot be built",
            KindName::UpgradeActivityTimeout => "the upgraded stream was idle for too long",
            KindName::NoPartition => "the request belongs to no partition of the route",
            KindName::Extension => "a filter, a layer or a policy of the program failed",
            KindName::LoopDetected => "the request has come back to the proxy",
            KindName::RequestRejected => {
                "the client asks for what is malformed or what the cluster has no way for"
            }
        }
    }

    /// The side that is responsible: that of the cause.
    pub(crate) const fn side(self) -> Side {
        self.cause.side()
    }
}

impl KindName {
    /// Returns the cause of an error of this kind if nothing more is known.
    const fn usual_cause(self) -> Cause {
        match self {
            Self::Request => Cause::ResetBeforeResponse,
            Self::RequestTimedOut => Cause::HeaderTimeout,
            Self::RequestCanceled
            | Self::RequestBodyCanceled
            | Self::ResponseBodyCanceled
            | Self::ResponseBodyClient
            | Self::UpgradeRequestCanceled
            | Self::UpgradeRequestClient
            | Self::UpgradeResponseCanceled
            | Self::UpgradeResponseClient => Cause::ClientGone,
            Self::RequestBodyClient => Cause::BodyBroken,
            Self::RequestBodyDestination => Cause::ResetWhileSending,
            Self::ResponseHeaders => Cause::MalformedResponse,
            Self::ResponseBodyDestination
            | Self::UpgradeRequestDestination
            | Self::UpgradeResponseDestination => Cause::ResetWhileResponding,
            Self::NoAvailableDestinations => Cause::NoDestination,
            Self::RequestCreation => Cause::RequestNotBuilt,
            Self::UpgradeActivityTimeout => Cause::IdleTunnel,
            Self::NoPartition => Cause::NoPartition,
            Self::Extension => Cause::ExtensionFailed,
            Self::LoopDetected => Cause::LoopDetected,
            Self::RequestRejected => Cause::MalformedRequest,
        }
    }
}

impl From<Cause> for ForwardErrorKind {
    fn from(cause: Cause) -> Self {
        let kind = match cause {
            Cause::ConnectionRefused
            | Cause::NoRouteToHost
            | Cause::NameNotResolved
            | Cause::ConnectFailed
            | Cause::CertificateRejected
            | Cause::TlsFailed
            | Cause::ProtocolUnsupported
            | Cause::WebProxyFailed
            | Cause::StreamRefused
            | Cause::ResetBeforeResponse
            | Cause::MalformedResponse
            | Cause::ConnectionLimit
            | Cause::TlsSettings
            | Cause::Exhausted
            | Cause::Overloaded => Self::Request,
            Cause::ConnectTimeout | Cause::HeaderTimeout | Cause::ActivityTimeout => {
                Self::RequestTimedOut
            }
            Cause::ResetWhileSending => Self::RequestBodyDestination,
            Cause::ResetWhileResponding | Cause::BodyTimeout => Self::ResponseBodyDestination,
            Cause::ClientGone | Cause::ClientMemory | Cause::DrainTimeout => Self::RequestCanceled,
            Cause::ClientTooSlow
            | Cause::BodyTooLarge
            | Cause::FieldsTooLarge
            | Cause::BodyBroken => Self::RequestBodyClient,
            Cause::MalformedRequest
            | Cause::NoRoute
            | Cause::RejectedByPolicy
            | Cause::OverLimit
            | Cause::OverShare => Self::RequestRejected,
            Cause::NoPartition => Self::NoPartition,
            Cause::IdleTunnel => Self::UpgradeActivityTimeout,
            Cause::NoCluster
            | Cause::NoDestination
            | Cause::AllUnhealthy
            | Cause::AllEjected
            | Cause::AffinityRejected => Self::NoAvailableDestinations,
            Cause::RequestNotBuilt => Self::RequestCreation,
            Cause::PolicyMissing | Cause::AuthorizationUnavailable | Cause::ExtensionFailed => {
                Self::Extension
            }
            Cause::LoopDetected => Self::LoopDetected,
        };
        kind.because(cause)
    }
}

impl PartialEq for ForwardErrorKind {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for ForwardErrorKind {}

impl Hash for ForwardErrorKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl fmt::Debug for ForwardErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl fmt::Display for ForwardErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The side that caused an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The client.
    Client,
    /// The destination.
    Destination,
    /// The proxy, or its configuration.
    Proxy,
}

impl Side {
    /// The name in metrics and the admin API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Destination => "destination",
            Self::Proxy => "proxy",
        }
    }
}

/// The error of a request that could not be forwarded completely.
///
/// The text is for logs. Clients receive the status only, so that no internal detail leaks.
#[derive(Debug)]
pub struct ForwardError {
    kind: ForwardErrorKind,
    status: StatusCode,
    unsent: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl ForwardError {
    /// Creates an error of a kind or cause. The client gets `status` if the response has not begun.
    pub fn new(kind: impl Into<ForwardErrorKind>, status: StatusCode) -> Self {
        Self {
            kind: kind.into().told(status),
            status,
            unsent: false,
            source: None,
        }
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets the cause of the kind.
    #[must_use]
    pub(crate) fn because(mut self, cause: Cause) -> Self {
        self.kind = self.kind.because(cause);
        self
    }

    /// Records that no byte of the request reached a destination, so that another one may be tried.
    #[must_use]
    pub(crate) fn unsent(mut self) -> Self {
        self.unsent = true;
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> ForwardErrorKind {
        self.kind
    }

    /// The status for the client, if the response has not begun.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns true if no byte of the request reached a destination.
    pub(crate) fn is_unsent(&self) -> bool {
        self.unsent
    }
}

impl fmt::Display for ForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.meaning())
    }
}

impl StdError for ForwardError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_becomes_a_kind_that_keeps_it() {
        for cause in Cause::ALL {
            assert_eq!(ForwardErrorKind::from(*cause).cause(), *cause);
        }
        let error = ForwardError::new(Cause::BodyTooLarge, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(error.kind().cause(), Cause::BodyTooLarge);
    }

    #[test]
    fn an_affinity_key_is_no_lack_of_destinations() {
        let text = |cause| ForwardError::new(cause, StatusCode::SERVICE_UNAVAILABLE).to_string();
        assert_eq!(text(Cause::NoDestination), "no destination is available");
        assert!(text(Cause::AffinityRejected).contains("affinity key"));
    }
}
