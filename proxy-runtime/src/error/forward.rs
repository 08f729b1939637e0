//! Errors of forwarding: kind, responsible side, and the client's status.

use std::error::Error as StdError;
use std::fmt;

use http::StatusCode;

/// The kind of a forwarding error: YARP's `ForwarderError` with the same names, and some of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForwardErrorKind {
    /// Connecting, sending the head, or receiving the response's head failed.
    Request,
    /// Connecting, sending the head, or receiving the response's head timed out.
    RequestTimedOut,
    /// The client disconnected, or the caller cancelled, before the response's head arrived.
    RequestCanceled,
    /// The upload was cancelled.
    RequestBodyCanceled,
    /// Reading the request's body from the client failed.
    RequestBodyClient,
    /// Writing the request's body to the destination failed.
    RequestBodyDestination,
    /// The response's head could not be passed on.
    ResponseHeaders,
    /// The download was cancelled.
    ResponseBodyCanceled,
    /// Writing the response's body to the client failed.
    ResponseBodyClient,
    /// Reading the response's body from the destination failed.
    ResponseBodyDestination,
    /// An upgraded stream was cancelled while it sent to the destination.
    UpgradeRequestCanceled,
    /// Reading an upgraded stream from the client failed.
    UpgradeRequestClient,
    /// Writing an upgraded stream to the destination failed.
    UpgradeRequestDestination,
    /// An upgraded stream was cancelled while it sent to the client.
    UpgradeResponseCanceled,
    /// Writing an upgraded stream to the client failed.
    UpgradeResponseClient,
    /// Reading an upgraded stream from the destination failed.
    UpgradeResponseDestination,
    /// No destination was available.
    NoAvailableDestinations,
    /// The request to the destination could not be built.
    RequestCreation,
    /// An upgraded stream was idle for too long.
    UpgradeActivityTimeout,
    /// The request belongs to none of the route's partitions.
    NoPartition,
    /// A filter, a layer or a load balancing policy of the program failed.
    Extension,
    /// The request has come back to the proxy that forwarded it.
    LoopDetected,
    /// The request is malformed, or asks for an upgrade that the cluster cannot carry.
    RequestRejected,
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

    /// The position in [`ALL`](Self::ALL), for tables of counters.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// The name, as YARP spells it if YARP has it, for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "Request",
            Self::RequestTimedOut => "RequestTimedOut",
            Self::RequestCanceled => "RequestCanceled",
            Self::RequestBodyCanceled => "RequestBodyCanceled",
            Self::RequestBodyClient => "RequestBodyClient",
            Self::RequestBodyDestination => "RequestBodyDestination",
            Self::ResponseHeaders => "ResponseHeaders",
            Self::ResponseBodyCanceled => "ResponseBodyCanceled",
            Self::ResponseBodyClient => "ResponseBodyClient",
            Self::ResponseBodyDestination => "ResponseBodyDestination",
            Self::UpgradeRequestCanceled => "UpgradeRequestCanceled",
            Self::UpgradeRequestClient => "UpgradeRequestClient",
            Self::UpgradeRequestDestination => "UpgradeRequestDestination",
            Self::UpgradeResponseCanceled => "UpgradeResponseCanceled",
            Self::UpgradeResponseClient => "UpgradeResponseClient",
            Self::UpgradeResponseDestination => "UpgradeResponseDestination",
            Self::NoAvailableDestinations => "NoAvailableDestinations",
            Self::RequestCreation => "RequestCreation",
            Self::UpgradeActivityTimeout => "UpgradeActivityTimeout",
            Self::NoPartition => "NoPartition",
            Self::Extension => "Extension",
            Self::LoopDetected => "LoopDetected",
            Self::RequestRejected => "RequestRejected",
        }
    }

    /// The description in a sentence.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Request => "the destination could not be reached or did not answer",
            Self::RequestTimedOut => "the destination did not answer in time",
            Self::RequestCanceled => "the request was cancelled",
            Self::RequestBodyCanceled => "the upload was cancelled",
            Self::RequestBodyClient => "the client did not send its whole request",
            Self::RequestBodyDestination => "the destination did not take the request",
            Self::ResponseHeaders => "the response head cannot be passed on",
            Self::ResponseBodyCanceled => "the download was cancelled",
            Self::ResponseBodyClient => "the client did not take the response",
            Self::ResponseBodyDestination => "the destination did not send its whole response",
            Self::UpgradeRequestCanceled | Self::UpgradeResponseCanceled => {
                "the upgraded stream was cancelled"
            }
            Self::UpgradeRequestClient | Self::UpgradeResponseClient => {
                "the upgraded stream broke at the client's side"
            }
            Self::UpgradeRequestDestination | Self::UpgradeResponseDestination => {
                "the upgraded stream broke at the destination's side"
            }
            Self::NoAvailableDestinations => "no destination is available",
            Self::RequestCreation => "the request to the destination cannot be built",
            Self::UpgradeActivityTimeout => "the upgraded stream was idle for too long",
            Self::NoPartition => "the request belongs to no partition of the route",
            Self::Extension => "a filter, a layer or a policy of the program failed",
            Self::LoopDetected => "the request has come back to the proxy",
            Self::RequestRejected => {
                "the client asks for what is malformed or what the cluster has no way for"
            }
        }
    }

    /// The side that caused the error.
    pub const fn side(self) -> Side {
        match self {
            Self::Request
            | Self::RequestTimedOut
            | Self::RequestBodyDestination
            | Self::ResponseHeaders
            | Self::ResponseBodyDestination
            | Self::UpgradeRequestDestination
            | Self::UpgradeResponseDestination => Side::Destination,
            Self::RequestCanceled
            | Self::RequestBodyCanceled
            | Self::RequestBodyClient
            | Self::ResponseBodyCanceled
            | Self::ResponseBodyClient
            | Self::UpgradeRequestCanceled
            | Self::UpgradeRequestClient
            | Self::UpgradeResponseCanceled
            | Self::UpgradeResponseClient
            | Self::UpgradeActivityTimeout
            | Self::NoPartition
            | Self::RequestRejected => Side::Client,
            Self::NoAvailableDestinations
            | Self::RequestCreation
            | Self::Extension
            | Self::LoopDetected => Side::Proxy,
        }
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
    /// Creates an error of `kind`. The client gets `status` if the response has not begun.
    pub fn new(kind: ForwardErrorKind, status: StatusCode) -> Self {
        Self {
            kind,
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
