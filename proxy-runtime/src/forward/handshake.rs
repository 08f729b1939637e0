//! Protocol switches in heads: requested by the client, requested from the destination, and agreed on.

use http::header::{CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{HeaderMap, Response, StatusCode};
use proxy_model::compiled::Upstream;

use super::head_lines::remove_lines;
use super::upgrade::Wish;
use super::websocket::{self, Challenge};
use crate::error::{ForwardError, ForwardErrorKind};
use crate::upstream::{Protocols, protocol};

/// A protocol switch that a client requests.
///
/// The request to the destination has the form of HTTP/1.1. Over HTTP/2 it becomes a CONNECT (RFC 8441).
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    protocol: HeaderValue,
    /// The proof of a WebSocket.
    challenge: Option<Challenge>,
    /// True if the client requests the switch with CONNECT.
    is_connect: bool,
    /// The HTTP versions over which the switch is requested.
    protocols: Protocols,
}

impl Handshake {
    /// Creates the handshake for a client's request and the HTTP versions of the cluster.
    ///
    /// # Errors
    ///
    /// The request is invalid: 400. The cluster does not allow the HTTP version that the switch needs: 502.
    pub(crate) fn new(
        wish: &Wish,
        headers: &HeaderMap,
        upstream: &Upstream,
    ) -> Result<Self, ForwardError> {
        let protocols = protocol::for_upgrade(upstream, wish.is_websocket()).map_err(|no_way| {
            let kind = match no_way.is_for_upgrades_alone {
                true => ForwardErrorKind::RequestRejected,
                false => ForwardErrorKind::RequestCreation,
            };
            ForwardError::new(kind, StatusCode::BAD_GATEWAY).with_source(no_way.reason)
        })?;
        let (protocol, challenge, is_connect) = match wish {
            Wish::Upgrade(protocol) if !wish.is_websocket() => (protocol.clone(), None, false),
            Wish::Upgrade(_) => {
                let challenge = Challenge::given(headers)?;
                (websocket::PROTOCOL, Some(challenge), false)
            }
            #[cfg(feature = "http2")]
            Wish::Connect => {
                let challenge = Challenge::given_or_new(headers)?;
                (websocket::PROTOCOL, Some(challenge), true)
            }
        };
        Ok(Self {
            protocol,
            challenge,
            is_connect,
            protocols,
        })
    }

    /// Returns the HTTP versions over which the switch is requested.
    pub(crate) fn protocols(&self) -> Protocols {
        self.protocols
    }

    /// Writes the fields of the switch to the destination's head. Transforms and filters cannot change them.
    #[cold]
    pub(crate) fn ask(&self, head: &mut Vec<u8>) {
        remove_lines(head, &["connection", "upgrade"]);
        if self.challenge.is_some() {
            remove_lines(head, &["sec-websocket-key", "sec-websocket-version"]);
        }
        // The empty line moves behind the new fields.
        head.truncate(head.len() - 2);
        let mut write = |name: &str, value: &HeaderValue| {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        };
        write("Connection", &HeaderValue::from_static("upgrade"));
        write("Upgrade", &self.protocol);
        if let Some(challenge) = &self.challenge {
            write("Sec-WebSocket-Key", &challenge.key);
            write("Sec-WebSocket-Version", &websocket::VERSION);
        }
        head.extend_from_slice(b"\r\n");
    }

    /// Returns true if `status` is a refusal by the destination that the client would read as agreement: a client
    /// that sent CONNECT takes any 2xx for a tunnel (RFC 8441 section 5).
    pub(crate) fn is_mistakable(&self, status: StatusCode) -> bool {
        self.is_connect && status.is_success()
    }

    /// Checks the destination's agreement. `is_stream`: it came over HTTP/2, where there is no accept key.
    ///
    /// # Errors
    ///
    /// It agrees to something else.
    pub(crate) fn check(
        &self,
        headers: &mut HeaderMap,
        is_stream: bool,
    ) -> Result<(), ForwardError> {
        match &self.challenge {
            // Over HTTP/2 the status is the agreement.
            _ if is_stream => Ok(()),
            Some(challenge) => challenge.check(headers),
            None => {
                let agreed = headers.get(UPGRADE).map(HeaderValue::as_bytes);
                let asked = self.protocol.as_bytes();
                match agreed.is_some_and(|agreed| agreed.eq_ignore_ascii_case(asked)) {
                    true => Ok(()),
                    false => Err(ForwardError::new(
                        ForwardErrorKind::ResponseHeaders,
                        StatusCode::BAD_GATEWAY,
                    )),
                }
            }
        }
    }

    /// Tells the client that the protocol is switched.
    pub(crate) fn announce(&self, head: &mut Response<()>) {
        // The client gets the proof of its own key, whatever a destination has sent over HTTP/2.
        head.headers_mut().remove(SEC_WEBSOCKET_ACCEPT);
        if self.is_connect {
            // RFC 8441 section 5.
            *head.status_mut() = StatusCode::OK;
            return;
        }
        *head.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = head.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, self.protocol.clone());
        if let Some(challenge) = &self.challenge {
            headers.insert(SEC_WEBSOCKET_ACCEPT, challenge.proof.clone());
        }
    }
}
