//! Switches of protocols as heads say them: wished by the client, asked of the destination, and agreed on with both.

use http::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{HeaderMap, StatusCode, response};
use proxy_model::compiled::Upstream;

use super::request::OutgoingHead;
use super::upgrade::{self, Upgrade, Wish};
use super::websocket::{self, Challenge};
use crate::error::{ForwardError, ForwardErrorKind};
use crate::upstream::{Protocols, protocol};

/// What a switch of protocols adds to a request and its response. Nothing, for requests that want none.
#[derive(Clone, Debug)]
pub(crate) enum Handshake {
    /// No switch.
    None,
    /// `Upgrade` to a protocol other than WebSocket on both sides; what else belongs to it goes through as it is.
    Upgrade(HeaderValue),
    /// A WebSocket, with `Upgrade` on both sides.
    WebSocket(Challenge),
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
        let protocols = protocol::for_upgrade(upstream, wish.is_websocket()).map_err(|no_way| {
            let kind = match no_way.is_for_upgrades_alone {
                true => ForwardErrorKind::RequestRejected,
                false => ForwardErrorKind::RequestCreation,
            };
            ForwardError::new(kind, StatusCode::BAD_GATEWAY).with_source(no_way.reason)
        })?;
        Self::over(protocols, wish, headers)
    }

    fn over(protocols: Protocols, wish: &Wish, headers: &HeaderMap) -> Result<Self, ForwardError> {
        Ok(match (wish, protocols) {
            (Wish::Upgrade(protocol), _) if !wish.is_websocket() => Self::Upgrade(protocol.clone()),
            #[cfg(feature = "http2")]
            (Wish::Upgrade(_), Protocols::Http2) => Self::ToConnect(Challenge::given(headers)?),
            (Wish::Upgrade(_), _) => Self::WebSocket(Challenge::given(headers)?),
            #[cfg(feature = "http2")]
            (Wish::Connect, Protocols::Http2) => Self::Connect,
            #[cfg(feature = "http2")]
            (Wish::Connect, _) => Self::FromConnect(Challenge::given_or_new(headers)?),
        })
    }

    /// The version in which the switch is asked for; `None` without one.
    pub(crate) fn protocols(&self) -> Option<Protocols> {
        match self {
            Self::None => None,
            Self::Upgrade(_) | Self::WebSocket(_) => Some(Protocols::Http1),
            #[cfg(feature = "http2")]
            Self::FromConnect(_) => Some(Protocols::Http1),
            #[cfg(feature = "http2")]
            Self::ToConnect(_) | Self::Connect => Some(Protocols::Http2),
        }
    }

    /// Asks the destination for the switch. What the handshake consists of is said whatever else is done to headers.
    pub(crate) fn ask(&self, head: OutgoingHead) -> OutgoingHead {
        let mut head = match self {
            Self::None => return head,
            Self::Upgrade(protocol) => return head.with_upgrade(protocol.clone()),
            Self::WebSocket(challenge) => with_key(head, challenge),
            #[cfg(feature = "http2")]
            Self::FromConnect(challenge) => with_key(head, challenge),
            #[cfg(feature = "http2")]
            Self::ToConnect(_) | Self::Connect => {
                let mut head = head.with_connect();
                head.headers_mut().remove(SEC_WEBSOCKET_KEY);
                head
            }
        };
        let headers = head.headers_mut();
        headers.insert(SEC_WEBSOCKET_VERSION, websocket::VERSION);
        head
    }

    /// Returns true if the destination agrees to the switch, when it answers with `status`.
    pub(crate) fn is_agreed(&self, status: StatusCode) -> bool {
        match self.protocols() {
            None => false,
            // RFC 8441 section 5.
            Some(Protocols::Http2) => status.is_success(),
            Some(Protocols::Http1 | Protocols::Either) => status == StatusCode::SWITCHING_PROTOCOLS,
        }
    }

    /// Returns true if `status`, with which the destination does not agree, would tell the client that it does:
    /// whoever asks with CONNECT takes any 2xx for a tunnel (RFC 8441 section 5).
    #[cfg(feature = "http2")]
    pub(crate) fn is_mistakable(&self, status: StatusCode) -> bool {
        matches!(self, Self::FromConnect(_)) && status.is_success()
    }

    /// Checks what the destination agrees to, and gives the client's side.
    ///
    /// # Errors
    ///
    /// It agrees to something else.
    pub(crate) fn agree(
        &self,
        upgrade: Upgrade,
        headers: &mut HeaderMap,
    ) -> Result<upgrade::UpgradedClient, ForwardError> {
        match self {
            Self::Upgrade(asked) => {
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
            Self::WebSocket(challenge) => challenge.check(headers)?,
            #[cfg(feature = "http2")]
            Self::FromConnect(challenge) => challenge.check(headers)?,
            _ => {}
        }
        Ok(upgrade.into_client())
    }

    /// Tells the client that the protocol is switched.
    pub(crate) fn announce(&self, head: &mut response::Parts) {
        let upgraded = |head: &mut response::Parts, protocol| {
            head.status = StatusCode::SWITCHING_PROTOCOLS;
            head.headers
                .insert(CONNECTION, HeaderValue::from_static("upgrade"));
            head.headers.insert(UPGRADE, protocol);
        };
        let proven = |head: &mut response::Parts, challenge: &Challenge| {
            upgraded(head, websocket::PROTOCOL);
            let proof = challenge.proof.clone();
            head.headers.insert(SEC_WEBSOCKET_ACCEPT, proof);
        };
        match self {
            Self::None => {}
            Self::Upgrade(protocol) => upgraded(head, protocol.clone()),
            Self::WebSocket(challenge) => proven(head, challenge),
            #[cfg(feature = "http2")]
            Self::ToConnect(challenge) => proven(head, challenge),
            // RFC 8441 section 5.
            #[cfg(feature = "http2")]
            Self::FromConnect(_) | Self::Connect => head.status = StatusCode::OK,
        }
    }
}

fn with_key(head: OutgoingHead, challenge: &Challenge) -> OutgoingHead {
    let mut head = head.with_upgrade(websocket::PROTOCOL);
    let key = challenge.key.clone();
    head.headers_mut().insert(SEC_WEBSOCKET_KEY, key);
    head
}
