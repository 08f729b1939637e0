//! What a switch of protocols adds to a request and its response.

use http::header::{CONNECTION, HeaderValue, UPGRADE};
#[cfg(feature = "http2")]
use http::header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use http::{HeaderMap, StatusCode, response};
use proxy_model::compiled::Upstream;

use super::error::{ForwardError, ForwardErrorKind};
use super::request::OutgoingHead;
use super::upgrade::{self, Upgrade, Wish};
#[cfg(feature = "http2")]
use super::websocket::Challenge;
use crate::upstream::{Protocols, protocol};

/// What a switch of protocols adds to a request and its response. Nothing, for requests that want none.
#[derive(Clone, Debug)]
pub(crate) enum Handshake {
    /// No switch.
    None,
    /// `Upgrade` on both sides; what else belongs to it goes through as it is.
    Upgrade(HeaderValue),
    /// A WebSocket that the client asks for with CONNECT, of a destination that wants `Upgrade`.
    #[cfg(feature = "http2")]
    FromConnect(Challenge),
    /// A WebSocket that the client asks for with `Upgrade`, of a destination that wants CONNECT.
    #[cfg(feature = "http2")]
    ToConnect(Challenge),
    /// A WebSocket, with CONNECT on both sides.
    #[cfg(feature = "http2")]
    Connect,
}

impl Handshake {
    /// The handshake for what a client wants, with destinations that are spoken to like this.
    ///
    /// # Errors
    ///
    /// The request is not a valid one: 400. Or the cluster forbids what it would take: 502.
    pub(crate) fn new(
        wish: Option<&Wish>,
        headers: &HeaderMap,
        upstream: &Upstream,
    ) -> Result<Self, ForwardError> {
        let Some(wish) = wish else {
            return Ok(Self::None);
        };
        let protocols = protocol::for_upgrade(upstream, wish.is_websocket()).map_err(|reason| {
            ForwardError::new(ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY)
                .with_source(reason)
        })?;
        Self::over(protocols, wish, headers)
    }

    #[cfg(feature = "http2")]
    fn over(protocols: Protocols, wish: &Wish, headers: &HeaderMap) -> Result<Self, ForwardError> {
        Ok(match (wish, protocols) {
            (Wish::Upgrade(_), Protocols::Http2) => Self::ToConnect(Challenge::given(headers)?),
            (Wish::Upgrade(protocol), _) => Self::Upgrade(protocol.clone()),
            (Wish::Connect, Protocols::Http2) => Self::Connect,
            (Wish::Connect, _) => Self::FromConnect(Challenge::given_or_new(headers)?),
        })
    }

    #[cfg(not(feature = "http2"))]
    #[expect(clippy::unnecessary_wraps, reason = "as with HTTP/2")]
    fn over(_: Protocols, wish: &Wish, _: &HeaderMap) -> Result<Self, ForwardError> {
        let Wish::Upgrade(protocol) = wish;
        Ok(Self::Upgrade(protocol.clone()))
    }

    /// The version in which the switch is asked for; `None` without one.
    pub(crate) fn protocols(&self) -> Option<Protocols> {
        match self {
            Self::None => None,
            Self::Upgrade(_) => Some(Protocols::Http1),
            #[cfg(feature = "http2")]
            Self::FromConnect(_) => Some(Protocols::Http1),
            #[cfg(feature = "http2")]
            Self::ToConnect(_) | Self::Connect => Some(Protocols::Http2),
        }
    }

    /// Asks the destination for the switch.
    pub(crate) fn ask(&self, head: OutgoingHead) -> OutgoingHead {
        match self {
            Self::None => head,
            Self::Upgrade(protocol) => head.with_upgrade(protocol.clone()),
            #[cfg(feature = "http2")]
            Self::FromConnect(challenge) => {
                let mut head = head.with_upgrade(HeaderValue::from_static("websocket"));
                let headers = head.headers_mut();
                headers.insert(SEC_WEBSOCKET_KEY, challenge.key.clone());
                head
            }
            #[cfg(feature = "http2")]
            Self::ToConnect(_) | Self::Connect => {
                let mut head = head.with_connect();
                head.headers_mut().remove(SEC_WEBSOCKET_KEY);
                head
            }
        }
    }

    /// Whether the destination agrees to the switch, when it answers with `status`.
    pub(crate) fn is_agreed(&self, status: StatusCode) -> bool {
        match self.protocols() {
            None => false,
            Some(Protocols::Http2) => status == StatusCode::OK,
            Some(Protocols::Http1 | Protocols::Either) => status == StatusCode::SWITCHING_PROTOCOLS,
        }
    }

    /// Checks what the destination agrees to, and gives the client's side.
    ///
    /// # Errors
    ///
    /// It agrees to something else.
    pub(crate) fn agree(
        &self,
        upgrade: Option<Box<Upgrade>>,
        headers: &mut HeaderMap,
    ) -> Result<upgrade::Client, ForwardError> {
        if let Self::Upgrade(asked) = self {
            let agreed = headers.get(UPGRADE);
            let is_asked =
                |agreed: &HeaderValue| agreed.as_bytes().eq_ignore_ascii_case(asked.as_bytes());
            if !agreed.is_some_and(is_asked) {
                return Err(ForwardError::new(
                    ForwardErrorKind::ResponseHeaders,
                    StatusCode::BAD_GATEWAY,
                ));
            }
        }
        #[cfg(feature = "http2")]
        if let Self::FromConnect(challenge) = self {
            challenge.check(headers)?;
        }
        upgrade
            .map(|upgrade| upgrade.into_client())
            .ok_or_else(|| ForwardError::new(ForwardErrorKind::Request, StatusCode::BAD_GATEWAY))
    }

    /// Tells the client that the protocol is switched.
    pub(crate) fn announce(&self, head: &mut response::Parts) {
        let upgraded = |head: &mut response::Parts, protocol| {
            head.status = StatusCode::SWITCHING_PROTOCOLS;
            head.headers
                .insert(CONNECTION, HeaderValue::from_static("upgrade"));
            head.headers.insert(UPGRADE, protocol);
        };
        match self {
            Self::None => {}
            Self::Upgrade(protocol) => upgraded(head, protocol.clone()),
            #[cfg(feature = "http2")]
            Self::ToConnect(challenge) => {
                upgraded(head, HeaderValue::from_static("websocket"));
                head.headers
                    .insert(SEC_WEBSOCKET_ACCEPT, challenge.proof.clone());
            }
            // RFC 8441 section 5.
            #[cfg(feature = "http2")]
            Self::FromConnect(_) | Self::Connect => head.status = StatusCode::OK,
        }
    }
}
