//! Which versions of HTTP may be spoken to a destination.

use proxy_model::compiled::{Scheme, Upstream};
use proxy_model::config::{HttpVersion, VersionPolicy};

/// Which versions of HTTP may be spoken over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Protocols {
    /// HTTP/1.1 (or 1.0) only.
    Http1,
    /// HTTP/2 only: with prior knowledge over cleartext, by ALPN over TLS.
    Http2,
    /// What ALPN agrees on, HTTP/2 preferred. Only over TLS.
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

/// Which versions a request may use, as .NET decides it.
///
/// Over cleartext nothing is negotiated. So `RequestVersionOrLower` means HTTP/1.1 there, which every server speaks, and
/// HTTP/2 with prior knowledge has to be demanded by one of the other policies.
///
/// # Errors
///
/// The version that the cluster demands is not spoken.
pub(crate) fn for_request(scheme: Scheme, upstream: &Upstream) -> Result<Protocols, &'static str> {
    use HttpVersion::{Http2, Http3, Http10, Http11};
    use VersionPolicy::{RequestVersionExact, RequestVersionOrHigher, RequestVersionOrLower};

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

/// Why an upgrade has no way to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoWay {
    pub(crate) reason: &'static str,
    /// Other requests have one, so that nothing is wrong with the cluster.
    pub(crate) is_for_upgrades_alone: bool,
}

/// Which version an upgrade uses: HTTP/1.1, if the cluster allows it. A WebSocket can also be had over HTTP/2 (RFC 8441),
/// for clusters that allow nothing else; it has no connection of its own there, but not all servers know about it.
///
/// # Errors
///
/// The cluster demands a version in which there is no such upgrade.
pub(crate) fn for_upgrade(upstream: &Upstream, is_websocket: bool) -> Result<Protocols, NoWay> {
    let for_nothing = |reason| NoWay {
        reason,
        is_for_upgrades_alone: false,
    };
    match (upstream.version(), upstream.version_policy()) {
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
