//! Causes of failed requests: one closed set of names for logs, metrics and the admin API.

use std::fmt;
use std::io;

use http::StatusCode;
use serde::{Serialize, Serializer};

use super::Side;

/// Declares the causes with name, side and description, so that no list can miss one.
macro_rules! causes {
    ($($variant:ident $name:literal $side:ident $meaning:literal)*) => {
        /// The cause of a failed request.
        ///
        /// The set is closed, and names never change their meaning. A [`ForwardErrorKind`](crate::ForwardErrorKind)
        /// names the stage at which a request failed; a cause names the reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Cause {
            $(#[doc = $meaning] $variant,)*
        }

        impl Cause {
            /// Every cause, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in logs, metrics and the admin API.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The side that is responsible.
            pub const fn side(self) -> Side {
                match self {
                    $(Self::$variant => Side::$side,)*
                }
            }

            /// The description in a sentence, without a full stop.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)*
                }
            }
        }
    };
}

causes! {
    ConnectionRefused "connection_refused" Destination
        "The destination refuses the connection: nothing listens on its port"
    NoRouteToHost "no_route_to_host" Destination
        "The destination's host or network cannot be reached"
    NameNotResolved "name_not_resolved" Destination
        "The destination's name has no address, or no name server replies"
    ConnectTimeout "connect_timeout" Destination
        "No connection to the destination was opened in time"
    ConnectFailed "connect_failed" Destination
        "The connection to the destination could not be opened for another reason"
    CertificateRejected "certificate_rejected" Destination
        "The destination's certificate is not trusted, has expired, or is for another name"
    TlsFailed "tls_failed" Destination
        "The TLS handshake failed: no common version or cipher, a required client certificate, or a port without TLS"
    ProtocolUnsupported "protocol_unsupported" Destination
        "The destination does not speak the HTTP version that the cluster requires"
    WebProxyFailed "web_proxy_failed" Destination
        "The `WebProxy` of the cluster has opened no connection"
    StreamRefused "stream_refused" Destination
        "The destination allows no further HTTP/2 stream, or has refused this one"
    ResetBeforeResponse "reset_before_response" Destination
        "The destination closed the connection before its response"
    ResetWhileSending "reset_while_sending" Destination
        "The destination closed the connection while the request's body was sent to it"
    ResetWhileResponding "reset_while_responding" Destination
        "The destination closed the connection within its response, or its side of a tunnel broke"
    MalformedResponse "malformed_response" Destination
        "The response is malformed, ambiguous, or switches to a protocol that was not requested"
    HeaderTimeout "header_timeout" Destination
        "The response did not begin within the route's `Timeout` or the cluster's `ActivityTimeout`"
    ActivityTimeout "activity_timeout" Destination
        "The destination neither sent nor accepted anything for the cluster's `ActivityTimeout`"
    BodyTimeout "body_timeout" Destination
        "The response was not complete within the route's `Timeout`, which includes the body"
    ClientGone "client_gone" Client
        "The client disconnected or reset its stream"
    ClientTooSlow "client_too_slow" Client
        "The client sent its request, or read the response, too slowly"
    ClientMemory "client_memory" Client
        "The client held too much memory by not reading its responses"
    BodyTooLarge "body_too_large" Client
        "The request's body exceeds a limit"
    FieldsTooLarge "fields_too_large" Client
        "The request's target, fields or trailers exceed a limit"
    BodyBroken "body_broken" Client
        "The client aborted the request's body, or its framing is malformed"
    MalformedRequest "malformed_request" Client
        "The request is malformed or ambiguous, or requests a protocol that the proxy does not support"
    NoRoute "no_route" Client
        "No route matches the request"
    NoPartition "no_partition" Client
        "The request belongs to no partition of its route"
    RejectedByPolicy "rejected_by_policy" Client
        "A policy, filter or layer of the route has replied with an error"
    OverLimit "over_limit" Client
        "A rate or concurrency limit of the route is exceeded"
    IdleTunnel "idle_tunnel" Client
        "A tunnel carried nothing for the cluster's `ActivityTimeout`"
    NoCluster "no_cluster" Proxy
        "The route leads to a cluster that does not exist"
    NoDestination "no_destination" Proxy
        "The cluster has no destination that may be picked"
    AllUnhealthy "all_unhealthy" Proxy
        "Health checks found every destination of the cluster unhealthy"
    AllEjected "all_ejected" Proxy
        "The passive check has ejected every destination of the cluster"
    ConnectionLimit "connection_limit" Proxy
        "All connections that `MaxConnectionsPerServer` allows were in use: too many requests wait, or this one waited too long"
    AffinityRejected "affinity_rejected" Client
        "The destination of the request's affinity key is not available, and the failure policy rejects it"
    RequestNotBuilt "request_not_built" Proxy
        "The request to the destination cannot be made with these transforms and settings"
    PolicyMissing "policy_missing" Proxy
        "The route demands an `AuthorizationPolicy` that nothing enforces"
    AuthorizationUnavailable "authorization_unavailable" Proxy
        "A policy of the route needs an authorization service or the keys of a token issuer, which cannot be reached"
    OverShare "over_share" Proxy
        "A limit that several proxies share cannot be counted for all, and this proxy's share of it is exceeded"
    ExtensionFailed "extension_failed" Proxy
        "A filter, layer or load balancing policy of the program failed"
    LoopDetected "loop_detected" Proxy
        "The request has come back to the proxy that forwarded it"
    TlsSettings "tls_settings" Proxy
        "The TLS settings or certificates of the cluster cannot be used"
    Exhausted "exhausted" Proxy
        "The proxy's machine has no file descriptor, port or memory left"
    Overloaded "overloaded" Proxy
        "The server rejects requests because it is stopping or overloaded"
    DrainTimeout "drain_timeout" Proxy
        "The server stopped before the request had ended, after its `DrainTimeout`"
}

impl Cause {
    /// The position in [`ALL`](Self::ALL), for tables of counters.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// The name with spaces, for sentences: `connection refused`.
    #[cfg(any(feature = "admin", test))]
    pub(crate) fn text(self) -> String {
        self.as_str().replace('_', " ")
    }

    /// The cause of a connection that could not be opened.
    pub(crate) fn of_connect(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::ConnectionRefused => Self::ConnectionRefused,
            Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => {
                Self::NoRouteToHost
            }
            Kind::TimedOut => Self::ConnectTimeout,
            _ if is_of_machine(error) => Self::Exhausted,
            _ => Self::ConnectFailed,
        }
    }

    /// The cause of a request body that was rejected with this status.
    pub(crate) const fn of_body(status: StatusCode) -> Self {
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => Self::BodyTooLarge,
            StatusCode::REQUEST_TIMEOUT => Self::ClientTooSlow,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Self::FieldsTooLarge,
            _ => Self::BodyBroken,
        }
    }

    /// The cause of a request that the server rejected with this status before a route was looked for.
    #[cfg(feature = "server")]
    pub(crate) const fn of_rejection(status: StatusCode) -> Self {
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => Self::BodyTooLarge,
            StatusCode::REQUEST_TIMEOUT => Self::ClientTooSlow,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE | StatusCode::URI_TOO_LONG => {
                Self::FieldsTooLarge
            }
            // The service failed or panicked.
            StatusCode::INTERNAL_SERVER_ERROR => Self::ExtensionFailed,
            StatusCode::SERVICE_UNAVAILABLE => Self::Overloaded,
            _ => Self::MalformedRequest,
        }
    }

    /// The cause of a reply that a policy, filter or layer made in place of a destination: the one that it has `said`,
    /// if any. `None` if the reply is no error.
    pub(crate) fn of_reply(status: StatusCode, said: Option<Self>) -> Option<Self> {
        match status {
            _ if said.is_some() && (status.is_client_error() || status.is_server_error()) => said,
            StatusCode::TOO_MANY_REQUESTS => Some(Self::OverLimit),
            _ if status.is_client_error() || status.is_server_error() => {
                Some(Self::RejectedByPolicy)
            }
            _ => None,
        }
    }

    /// True if there was no destination to pick.
    pub(crate) const fn is_of_lack(self) -> bool {
        matches!(
            self,
            Self::NoDestination | Self::AllUnhealthy | Self::AllEjected
        )
    }

    /// True if there was no connection, so that the error of the latest attempt explains it.
    pub(crate) const fn is_of_connection(self) -> bool {
        matches!(
            self,
            Self::ConnectionRefused
                | Self::NoRouteToHost
                | Self::NameNotResolved
                | Self::ConnectTimeout
                | Self::ConnectFailed
                | Self::CertificateRejected
                | Self::TlsFailed
                | Self::ProtocolUnsupported
                | Self::WebProxyFailed
                | Self::ConnectionLimit
                | Self::TlsSettings
                | Self::Exhausted
        )
    }
}

/// Returns true if this machine has run out of descriptors, ports or memory.
pub(crate) fn is_of_machine(error: &io::Error) -> bool {
    // ENFILE and EMFILE.
    const FILES: [i32; 2] = [23, 24];
    // Without a free port an address is not available.
    let kinds = [io::ErrorKind::AddrNotAvailable, io::ErrorKind::OutOfMemory];
    kinds.contains(&error.kind())
        || error
            .raw_os_error()
            .is_some_and(|code| FILES.contains(&code))
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_labels_and_each_is_there_once() {
        let names: BTreeSet<_> = Cause::ALL.iter().map(|cause| cause.as_str()).collect();
        assert_eq!(names.len(), Cause::ALL.len());
        for (index, cause) in Cause::ALL.iter().enumerate() {
            assert_eq!(cause.index(), index);
            let is_label = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(cause.as_str().chars().all(is_label), "{cause}");
            assert!(!cause.meaning().ends_with('.'), "{cause}");
        }
        assert_eq!(Cause::ConnectionRefused.text(), "connection refused");
    }

    #[test]
    fn errors_of_connecting_are_told_apart() {
        for (error, cause) in [
            (
                io::ErrorKind::ConnectionRefused.into(),
                Cause::ConnectionRefused,
            ),
            (io::ErrorKind::HostUnreachable.into(), Cause::NoRouteToHost),
            (
                io::ErrorKind::NetworkUnreachable.into(),
                Cause::NoRouteToHost,
            ),
            (io::ErrorKind::TimedOut.into(), Cause::ConnectTimeout),
            (io::ErrorKind::AddrNotAvailable.into(), Cause::Exhausted),
            (io::Error::from_raw_os_error(24), Cause::Exhausted),
            (io::ErrorKind::ConnectionReset.into(), Cause::ConnectFailed),
        ] {
            assert_eq!(Cause::of_connect(&error), cause, "{error:?}");
        }
    }
}
