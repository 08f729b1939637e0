//! Connections to destinations.
//!
//! Each new [`ProxyService`](crate::ProxyService) has its own pool, which its clones share; so a server with one
//! service per core shares nothing between cores. The connection used last is used first, so that surplus ones time
//! out.
//!
//! A cluster with `MaxConnectionsPerServer`, or with agents, which may limit connections, is the exception: its
//! connections are in one pool for the whole proxy, because a limit per core would be no limit. When all are in use,
//! requests wait in order of arrival, retries first, up to [`UpstreamOptions::connect_timeout`]. If
//! [`UpstreamOptions::max_waiting_per_destination`] wait already, a request gets none. After a change of the
//! cluster's settings, old connections may finish their requests beside new ones.
//!
//! A connection belongs to the runtime that opened it, which must run as long as requests of others use it: the
//! workers of a server wait for each other at the end. Connections of an ended runtime are not used: the pool of a
//! service closes with its runtime, and in a shared pool each connection is checked.
//!
//! A connection that requests can share is opened by a task, which continues if they stop waiting.
//!
//! HTTP/2 connections are tasks on the runtime of their first request. HTTP/1.1 connections are plain values that
//! requests read and write. Connections end when the pool is dropped, when the destination is removed or its settings
//! change (those in use after their request), and after [`UpstreamOptions::idle_timeout`] without a request. A close
//! of an idle HTTP/1.1 connection by the destination is noticed at its next use, or by the pool's sweep every two
//! seconds.

mod cause;
mod connect;
mod connection_request;
#[cfg(feature = "tls")]
mod credentials;
mod destination;
mod error;
mod group;
mod http1;
#[cfg(feature = "http2")]
mod http2;
mod io;
mod lease;
mod once;
mod opening;
mod options;
mod own;
mod pool;
pub(crate) mod protocol;
mod proxy_header;
mod queue;
mod resolve;
mod slot;
mod tcp;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod tunnel;
mod web_proxy;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use discovery_core::UnreachableClusters;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::cause::is_late_rejection;
use self::connect::Connector;
pub(crate) use self::connection_request::ConnectionRequest;
#[cfg(feature = "tls")]
pub(crate) use self::credentials::OwnCredentials;
use self::destination::DestinationPool;
pub(crate) use self::error::{ConnectError, SendError};
#[cfg(feature = "server")]
pub(crate) use self::group::RuntimeGroup;
pub(crate) use self::http1::Http1Body;
pub(crate) use self::http1::to_map;
pub(crate) use self::http1::{Early, Http1Connection, MOST_INTERIM, limits as response_limits};
#[cfg(all(feature = "http2", any(test, feature = "testing")))]
pub(crate) use self::http2::{response_text, stream_request, upload};
pub(crate) use self::lease::Lease;
pub(crate) use self::once::OwnRequest;
#[cfg(feature = "http2")]
pub(crate) use self::once::OwnResponse;
pub use self::options::UpstreamOptions;
pub(crate) use self::own::Connectors;
pub use self::own::{ConnectTarget, Connected, DestinationConnector};
use self::pool::Pool;
pub(crate) use self::protocol::Protocols;
pub(crate) use self::proxy_header::AnnouncedClient;
#[cfg(feature = "metrics")]
pub(crate) use self::resolve::NameCounts;
pub(crate) use self::resolve::Unresolved;
#[cfg(feature = "dns")]
pub use self::resolve::{DnsLookup, DnsOptions};
#[cfg(test)]
pub(crate) use self::tests::Resetting;
#[cfg(all(test, feature = "server"))]
pub(crate) use self::tests::Scripted;
#[cfg(feature = "tls")]
pub use self::tls::TlsClient;
pub(crate) use self::tunnel::Tunnel;

/// An empty type: without TLS, no cluster has certificates of its own.
#[cfg(not(feature = "tls"))]
#[derive(Debug)]
pub(crate) enum OwnCredentials {}

#[cfg(not(feature = "tls"))]
impl OwnCredentials {
    pub(crate) fn is_same(&self, _: &Self) -> bool {
        match *self {}
    }

    pub(crate) fn fault(&self) -> Option<(String, bool)> {
        match *self {}
    }
}

/// The shared parts of all pools of a proxy.
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
        connectors: Connectors,
        unreachable: Option<Arc<UnreachableClusters>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            connector: Arc::new(Connector::new(&options, connectors, unreachable)),
            limited: Pool::shared(options.clone()),
            options,
        })
    }

    /// Returns the names of destinations that do not resolve.
    pub(crate) fn unresolved(&self) -> Vec<Unresolved> {
        self.connector.names().unresolved()
    }

    /// Returns the counters of name lookups.
    #[cfg(feature = "metrics")]
    pub(crate) fn name_counts(&self) -> NameCounts {
        self.connector.names().counts()
    }

    /// Creates a pool.
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
    /// The settings for opening and keeping connections.
    pub(crate) fn options(&self) -> &UpstreamOptions {
        &self.shared.options
    }

    /// Acquires a connection within [`UpstreamOptions::connect_timeout`], and by the time `due`.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    ///
    /// No connection is available. No byte was sent, so another destination may be tried.
    pub(crate) async fn acquire(
        &self,
        wanted: ConnectionRequest<'_>,
        due: Option<Instant>,
    ) -> Result<Lease, ConnectError> {
        let pool = self.of(&wanted);
        let now = Instant::now();
        // Most requests find a connection here, and need no timer.
        if !wanted.fresh
            && let Some(lease) = pool.ready(&wanted, now)
        {
            return Ok(lease);
        }
        // A fresh connection is one that is opened from now on.
        let since = wanted.fresh.then_some(now);
        let is_queued = AtomicBool::new(false);
        let acquired = pin!(pool.acquire(&self.shared.connector, &wanted, since, &is_queued));
        self.in_time(acquired, due, &is_queued).await
    }

    /// Waits for `connection`. `is_queued`: true while all connections that there may be are in use.
    async fn in_time(
        &self,
        connection: impl Future<Output = Result<Lease, ConnectError>>,
        due: Option<Instant>,
        is_queued: &AtomicBool,
    ) -> Result<Lease, ConnectError> {
        // A timeout may be too long for the clock.
        let latest = Instant::now().checked_add(self.shared.options.connect_timeout);
        let Some(latest) = latest.into_iter().chain(due).min() else {
            return connection.await;
        };
        match timeout_at(latest, connection).await {
            Ok(connected) => connected,
            // The limit of connections was the cause, and not the destination.
            Err(_) if is_queued.load(Relaxed) => Err(ConnectError::Queued),
            Err(_) => Err(ConnectError::TimedOut),
        }
    }

    /// Replaces a failed connection, acquired at `since`, with one that was made later. If connections are limited
    /// and the failed one was not shared, the new one uses its slot.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    ///
    /// The same as those of [`acquire`](Self::acquire).
    pub(crate) async fn replace(
        &self,
        failed: Lease,
        since: Instant,
        wanted: ConnectionRequest<'_>,
        due: Option<Instant>,
    ) -> Result<Lease, ConnectError> {
        let pool = self.of(&wanted);
        let slot = failed.into_slot();
        let is_queued = AtomicBool::new(false);
        let slot = (slot, &is_queued);
        let replaced = pin!(pool.replace(&self.shared.connector, &wanted, since, slot));
        self.in_time(replaced, due, &is_queued).await
    }

    /// Returns a pooled connection, if there is one.
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
        match wanted.upstream.is_limited() {
            false => &self.own,
            true => &self.shared.limited,
        }
    }
}
