//! What became of a request, for logs.

use std::net::SocketAddr;
use std::time::Duration;

use proxy_model::{ClusterId, DestinationId, RouteId};

use crate::error::{Cause, ForwardErrorKind};
use crate::progress::ClientReadLimit;

/// What became of a request, as far as it is known when the response begins. It is in the response's extensions.
#[derive(Clone, Debug, Default)]
pub struct ExchangeInfo {
    pub(crate) route: Option<RouteId>,
    pub(crate) cluster: Option<ClusterId>,
    pub(crate) destination: Option<DestinationId>,
    pub(crate) upstream: Option<SocketAddr>,
    pub(crate) error: Option<ForwardErrorKind>,
    /// The cause of a reply that is no error of forwarding.
    pub(crate) reply: Option<Cause>,
    pub(crate) time_to_head: Option<Duration>,
    /// What the server is told of a client that takes nothing.
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "for the clients of a server")
    )]
    pub(crate) read_timeout: Option<ClientReadLimit>,
}

impl ExchangeInfo {
    /// The route that took the request.
    pub fn route(&self) -> Option<&RouteId> {
        self.route.as_ref()
    }

    /// The cluster that it was for.
    pub fn cluster(&self) -> Option<&ClusterId> {
        self.cluster.as_ref()
    }

    /// The destination that was picked; after a second try, the last one.
    pub fn destination(&self) -> Option<&DestinationId> {
        self.destination.as_ref()
    }

    /// The address that the request was sent to.
    pub fn upstream(&self) -> Option<SocketAddr> {
        self.upstream
    }

    /// What went wrong before the response began. What goes wrong later is told by
    /// [`ProxyBody::on_end`](crate::response::ProxyBody::on_end).
    pub fn error(&self) -> Option<ForwardErrorKind> {
        self.error
    }

    /// The cause of the error, or of a reply in place of a destination's response that is an error: a policy has
    /// rejected the request, or no route matches it.
    pub fn cause(&self) -> Option<Cause> {
        self.error.map(ForwardErrorKind::cause).or(self.reply)
    }

    /// From the pick of the destination to the head of its response.
    pub fn time_to_head(&self) -> Option<Duration> {
        self.time_to_head
    }
}
