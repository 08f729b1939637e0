//! The result of a request, for logs.

use std::net::SocketAddr;
use std::time::Duration;

use proxy_model::{ClusterId, DestinationId, RouteId};

use crate::error::{Cause, ForwardErrorKind};
use crate::progress::ClientReadLimit;

/// The result of a request, as far as it is known when the response begins. It is in the response's extensions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExchangeInfo {
    /// The route that took the request.
    pub route: Option<RouteId>,
    /// The cluster of the request.
    pub cluster: Option<ClusterId>,
    /// The destination that was picked; after a second attempt, the last one.
    pub destination: Option<DestinationId>,
    /// The address that the request was sent to.
    pub upstream: Option<SocketAddr>,
    /// The error before the response began. A later one is passed to the hook of
    /// [`ProxyBody::on_end`](crate::response::ProxyBody::on_end).
    pub error: Option<ForwardErrorKind>,
    /// The cause of a reply that is no error of forwarding.
    pub(crate) reply: Option<Cause>,
    /// The time from the pick of the destination to the head of its response.
    pub time_to_head: Option<Duration>,
    /// The time from the head of the request to a connection for it: what the proxy added before it was sent.
    pub(crate) added: Option<Duration>,
    /// The time from the head of the request to the head of the destination's response.
    pub(crate) first_byte: Option<Duration>,
    /// The server's limit for a client that does not read the response.
    pub(crate) read_timeout: Option<ClientReadLimit>,
}

impl ExchangeInfo {
    /// The cause of the error, or of a reply in place of a destination's response that is an error: a policy has
    /// rejected the request, or no route matches it.
    pub fn cause(&self) -> Option<Cause> {
        self.error.map(ForwardErrorKind::cause).or(self.reply)
    }
}
