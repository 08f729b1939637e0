//! Connections to destinations.
//!
//! Each [`ProxyService`](crate::ProxyService) that is made anew has a pool of its own, which its clones share; so a
//! server with one service per core shares nothing between cores. Within a pool the connection that was used last is
//! used first, so that those that are not needed grow old and close.
//!
//! A cluster with `MaxConnectionsPerServer` is the exception: a limit per core would be no limit. Its connections live
//! in one pool that the whole proxy shares. When all of them are in use, requests wait in the order in which they came,
//! those in front whose connection has failed, up to [`UpstreamOptions::connect_timeout`]; when
//! [`UpstreamOptions::max_waiting_per_destination`] of them wait already, a request gets none. While a reload changes the
//! cluster's settings, connections that were made with the old ones may still be finishing their requests beside the new
//! ones.
//!
//! A connection belongs to the runtime that it was opened on, which has to go on for as long as requests of others use it:
//! the workers of a server wait for each other when it ends. What is left of a runtime that has ended is not used any more:
//! the pool of a service closes with it, and where connections of several runtimes are together, each is asked for its own.
//!
//! A connection that requests can share is opened by a task, which goes on when they give up waiting for it.
//!
//! Connections of HTTP/2 are tasks on the runtime that asks for them first; those of HTTP/1.1 are plain values that the
//! requests read and write themselves. They end when the pool is dropped, when the destination is removed or its settings
//! change (those in use: after their request), and when they were idle for [`UpstreamOptions::idle_timeout`]. That a
//! destination has closed an idle one of HTTP/1.1 is seen when it is next wanted, or when the pool is swept, which it is
//! every two seconds.

mod connect;
mod connection_request;
mod destination;
mod error;
mod group;
mod http1;
#[cfg(feature = "http2")]
mod http2;
mod incoming;
mod io;
mod lease;
mod once;
mod opening;
mod options;
mod pool;
pub(crate) mod protocol;
mod queue;
mod resolve;
mod round_trip;
mod slot;
mod tcp;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod tunnel;

use std::sync::Arc;

use discovery_core::UnreachableClusters;
use tokio::time::{Instant, timeout};

use self::connect::Connector;
pub(crate) use self::connection_request::ConnectionRequest;
use self::destination::DestinationPool;
pub(crate) use self::error::{ConnectError, ExchangeError, SendError};
#[cfg(feature = "server")]
pub(crate) use self::group::RuntimeGroup;
#[cfg(all(feature = "http2", feature = "server"))]
pub(crate) use self::http1::Http1Body;
pub(crate) use self::http1::Output;
#[cfg(feature = "server")]
pub(crate) use self::http1::{Early, Http1Connection, MOST_INTERIM, limits as response_limits};
pub(crate) use self::incoming::IncomingBody;
pub(crate) use self::lease::Lease;
pub use self::options::UpstreamOptions;
use self::pool::Pool;
pub(crate) use self::protocol::Protocols;
#[cfg(feature = "dns")]
pub use self::resolve::DnsOptions;
#[cfg(feature = "metrics")]
pub(crate) use self::resolve::NameCounts;
pub(crate) use self::resolve::Unresolved;
pub(crate) use self::round_trip::{Answer, Head, RoundTrip};
#[cfg(test)]
pub(crate) use self::tests::Resetting;
#[cfg(all(test, feature = "server"))]
pub(crate) use self::tests::Scripted;
#[cfg(feature = "tls")]
pub use self::tls::TlsClient;
pub(crate) use self::tunnel::Tunnel;

/// What the pools of a proxy share.
#[derive(Debug)]
pub(crate) struct Upstreams {
    connector: Arc<Connector>,
    options: UpstreamOptions,
    /// Connections to destinations whose number of connections is limited.
    limited: Arc<Pool>,
}

impl Upstreams {
    pub(crate) fn new(
        options: UpstreamOptions,
        unreachable: Option<Arc<UnreachableClusters>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            connector: Arc::new(Connector::new(&options, unreachable)),
            limited: Pool::shared(options.clone()),
            options,
        })
    }

    /// The names of destinations that do not resolve.
    pub(crate) fn unresolved(&self) -> Vec<Unresolved> {
        self.connector.names().unresolved()
    }

    /// What is counted of look-ups.
    #[cfg(feature = "metrics")]
    pub(crate) fn name_counts(&self) -> NameCounts {
        self.connector.names().counts()
    }

    /// A pool of its own.
    pub(crate) fn pool(self: &Arc<Self>) -> UpstreamPool {
        UpstreamPool {
            own: Pool::new(self.options.clone()),
            shared: Arc::clone(self),
        }
    }
}

/// The connections of one service. Clones are the same pool.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamPool {
    own: Arc<Pool>,
    shared: Arc<Upstreams>,
}

impl UpstreamPool {
    /// How connections are made and kept.
    pub(crate) fn options(&self) -> &UpstreamOptions {
        &self.shared.options
    }

    /// Gets hold of a connection within [`UpstreamOptions::connect_timeout`].
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    ///
    /// No byte was sent, so another destination may be tried.
    pub(crate) async fn acquire(
        &self,
        wanted: ConnectionRequest<'_>,
    ) -> Result<Lease, ConnectError> {
        let pool = self.of(&wanted);
        let now = Instant::now();
        if !wanted.fresh
            && let Some(lease) = pool.ready(&wanted, now)
        {
            return Ok(lease);
        }
        let since = wanted.fresh.then_some(now);
        let acquired = pool.acquire(&self.shared.connector, &wanted, since);
        timeout(self.shared.options.connect_timeout, acquired)
            .await
            .unwrap_or(Err(ConnectError::TimedOut))
    }

    /// Gets hold of another connection instead of one that failed, of which the request had got hold at `since`: one that was
    /// made after that. Where the number of connections is limited, it takes the place of the failed one if that was the request's
    /// alone.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    ///
    /// As those of [`acquire`](Self::acquire).
    pub(crate) async fn replace(
        &self,
        failed: Lease,
        since: Instant,
        wanted: ConnectionRequest<'_>,
    ) -> Result<Lease, ConnectError> {
        let pool = self.of(&wanted);
        let slot = failed.into_slot();
        let replaced = pool.replace(&self.shared.connector, &wanted, since, slot);
        timeout(self.shared.options.connect_timeout, replaced)
            .await
            .unwrap_or(Err(ConnectError::TimedOut))
    }

    /// A connection that is there already.
    #[inline]
    pub(crate) fn ready(&self, wanted: &ConnectionRequest<'_>, now: Instant) -> Option<Lease> {
        self.pool_for(wanted).ready(wanted, now)
    }

    fn of(&self, wanted: &ConnectionRequest<'_>) -> Arc<DestinationPool> {
        let pool = self.pool_for(wanted);
        pool.of(wanted.destination, wanted.client, wanted.upstream)
    }

    #[inline]
    fn pool_for(&self, wanted: &ConnectionRequest<'_>) -> &Pool {
        match wanted.upstream.max_connections() {
            None => &self.own,
            Some(_) => &self.shared.limited,
        }
    }
}
