//! The HTTP versions that a request to a destination may use.

use proxy_model::compiled::{Scheme, Upstream};
use proxy_model::config::{HttpVersion, VersionPolicy};

/// The HTTP versions that a connection may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Protocols {
    /// HTTP/1.1 (or 1.0) only.
    Http1,
    /// HTTP/2 only: with prior knowledge over cleartext, by ALPN over TLS.
    Http2,
    /// The version that ALPN selects, preferably HTTP/2. Only over TLS.
    Either,
}

impl Protocols {
    pub(crate) fn allows_http1(self) -> bool {
        self != Self::Http2
    }

    #[cfg(feature = "http2")]
    pub(crate) fn allows_http2(self) -> bool {
        self != Self::Http1
    }
}

const NO_HTTP3: &str = "the cluster requires HTTP/3, which is not spoken";
#[cfg(not(feature = "http2"))]
const NO_HTTP2: &str = "the cluster requires HTTP/2, which this build does not speak";
const NO_UPGRADE: &str = "the cluster forbids HTTP/1.1, which the upgrade needs";
const NO_HTTP3_UPGRADE: &str = "the cluster requires HTTP/3, over which there are no upgrades";

/// Returns the versions that a request may use, by the rules of .NET.
///
/// Cleartext connections negotiate nothing. So `RequestVersionOrLower` means HTTP/1.1 there, and HTTP/2 with prior
/// knowledge needs one of the other policies.
///
/// # Errors
///
/// The version that the cluster requires is not supported.
pub(crate) fn for_request(scheme: Scheme, upstream: &Upstream) -> Result<Protocols, &'static str> {
    use HttpVersion::{Http2, Http3, Http10, Http11};
    use VersionPolicy::{RequestVersionExact, RequestVersionOrHigher, RequestVersionOrLower};

    // A connection is announced for one client, so requests of several must not share it.
    if upstream.sends_proxy_protocol() {
        return Ok(Protocols::Http1);
    }
    let protocols = match (upstream.version(), upstream.version_policy(), scheme) {
        (Http10 | Http11, RequestVersionOrLower | RequestVersionExact, _)
        | (Http10 | Http11, RequestVersionOrHigher, Scheme::Http)
        | (Http2 | Http3, RequestVersionOrLower, Scheme::Http) => Protocols::Http1,
        (Http10 | Http11, RequestVersionOrHigher, Scheme::Https)
        | (Http2 | Http3, RequestVersionOrLower, Scheme::Https) => Protocols::Either,
        (Http2, RequestVersionOrHigher | RequestVersionExact, _) => Protocols::Http2,
        (Http3, RequestVersionOrHigher | RequestVersionExact, _) => return Err(NO_HTTP3),
    };
    limit_to_build(protocols)
}

/// The reason why a cluster cannot carry an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoWay {
    pub(crate) reason: &'static str,
    /// True if other requests can reach the cluster, so that its settings are valid.
    pub(crate) is_for_upgrades_alone: bool,
}

/// Returns the version that an upgrade uses: HTTP/1.1 if the cluster allows it. WebSockets can use HTTP/2 (RFC 8441)
/// where the cluster allows nothing else; not all servers support that.
///
/// # Errors
///
/// The cluster requires a version without such an upgrade.
pub(crate) fn for_upgrade(upstream: &Upstream, is_websocket: bool) -> Result<Protocols, NoWay> {
    let for_nothing = |reason| NoWay {
        reason,
        is_for_upgrades_alone: false,
    };
    match (upstream.version(), upstream.version_policy()) {
        _ if upstream.sends_proxy_protocol() => Ok(Protocols::Http1),
        (HttpVersion::Http10 | HttpVersion::Http11, _)
        | (_, VersionPolicy::RequestVersionOrLower) => Ok(Protocols::Http1),
        (HttpVersion::Http2, _) if is_websocket => {
            limit_to_build(Protocols::Http2).map_err(for_nothing)
        }
        (HttpVersion::Http2, _) => Err(NoWay {
            reason: NO_UPGRADE,
            is_for_upgrades_alone: cfg!(feature = "http2"),
        }),
        (HttpVersion::Http3, _) => Err(for_nothing(NO_HTTP3_UPGRADE)),
    }
}

#[cfg(feature = "http2")]
#[expect(clippy::unnecessary_wraps, reason = "without HTTP/2 it can fail")]
fn limit_to_build(protocols: Protocols) -> Result<Protocols, &'static str> {
    Ok(protocols)
}

#[cfg(not(feature = "http2"))]
fn limit_to_build(protocols: Protocols) -> Result<Protocols, &'static str> {
    match protocols {
        Protocols::Http1 | Protocols::Either => Ok(Protocols::Http1),
        Protocols::Http2 => Err(NO_HTTP2),
    }
}
