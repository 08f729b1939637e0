//! What a switch of protocols adds to a request and its response.

use http::header::HeaderValue;
use http::{HeaderMap, StatusCode, response};
use hyper::upgrade::OnUpgrade;

use super::error::{ForwardError, ForwardErrorKind};
use super::request::OutgoingHead;
use super::upgrade::{self, Upgrade, Wish};
#[cfg(feature = "http2")]
use super::websocket::Challenge;

/// What a switch of protocols adds to a request and its response. Nothing, for requests that want none.
#[derive(Clone, Debug)]
pub(crate) enum Handshake {
    /// No switch.
    None,
    /// The client's own, of HTTP/1.1, which goes through as it is.
    Through(HeaderValue),
    /// One for a WebSocket that the client asked for in HTTP/2.
    #[cfg(feature = "http2")]
    WebSocket(Challenge),
}

impl Handshake {
    /// The handshake for what a request with these headers wants.
    ///
    /// # Errors
    ///
    /// The request is not a valid one: 400.
    #[cfg_attr(
        not(feature = "http2"),
        expect(unused_variables, clippy::unnecessary_wraps)
    )]
    pub(crate) fn new(wish: Option<&Wish>, headers: &HeaderMap) -> Result<Self, ForwardError> {
        Ok(match wish {
            None => Self::None,
            Some(Wish::Upgrade(protocol)) => Self::Through(protocol.clone()),
            #[cfg(feature = "http2")]
            Some(Wish::Connect) => Self::WebSocket(Challenge::new(headers)?),
        })
    }

    /// Whether a switch is wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Asks the destination for the switch.
    pub(crate) fn ask(&self, head: OutgoingHead) -> OutgoingHead {
        match self {
            Self::None => head,
            Self::Through(protocol) => head.with_upgrade(protocol.clone()),
            #[cfg(feature = "http2")]
            Self::WebSocket(challenge) => {
                let mut head = head.with_upgrade(HeaderValue::from_static("websocket"));
                head.headers_mut()
                    .insert(http::header::SEC_WEBSOCKET_KEY, challenge.key.clone());
                head
            }
        }
    }

    /// Checks that the destination has agreed to what the client wants, and gives the client's side.
    ///
    /// # Errors
    ///
    /// It has agreed to something else.
    pub(crate) fn agree(
        &self,
        upgrade: Option<Upgrade>,
        headers: &mut HeaderMap,
    ) -> Result<OnUpgrade, ForwardError> {
        let Some(upgrade) = upgrade else {
            // Nobody asked for it.
            return Err(ForwardError::new(
                ForwardErrorKind::Request,
                StatusCode::BAD_GATEWAY,
            ));
        };
        #[cfg(feature = "http2")]
        if let Self::WebSocket(challenge) = self {
            challenge.check(headers)?;
        }
        #[cfg(not(feature = "http2"))]
        let _ = headers;
        Ok(upgrade.into_client())
    }

    /// Tells the client that the protocol is switched.
    pub(crate) fn announce(&self, head: &mut response::Parts) {
        match self {
            Self::None => {}
            Self::Through(protocol) => upgrade::announce(&mut head.headers, protocol.clone()),
            // RFC 8441 section 5.
            #[cfg(feature = "http2")]
            Self::WebSocket(_) => head.status = StatusCode::OK,
        }
    }
}
