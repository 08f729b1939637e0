//! A harness for a connection pool.

use std::sync::Arc;

use proxy_model::compiled::ClusterIndex;
use tokio::time::Instant;

use crate::state::Generation;
use crate::upstream::{ConnectionRequest, Protocols};
use crate::{BoxError, Proxy, ProxyService};

/// The idle connections to one destination, to measure acquire and release without a request.
#[derive(Debug)]
pub struct PoolHarness {
    service: ProxyService,
    generation: Arc<Generation>,
}

impl PoolHarness {
    /// Opens HTTP/1.1 connections to the first destination of the proxy's first cluster, which must
    /// accept them and keep them open.
    ///
    /// # Errors
    ///
    /// Fails if a connection cannot be opened.
    ///
    /// # Panics
    ///
    /// Panics if there is no such destination.
    pub async fn open(proxy: &Proxy, connections: usize) -> Result<Self, BoxError> {
        let service = proxy.service();
        let generation = service.shared().load_full();
        let harness = Self {
            service,
            generation,
        };
        let mut leases = Vec::new();
        for _ in 0..connections {
            let mut wanted = harness.wanted();
            wanted.fresh = true;
            leases.push(harness.service.pool().acquire(wanted, None).await?);
        }
        let now = Instant::now();
        leases.into_iter().for_each(|lease| lease.release(now));
        Ok(harness)
    }

    /// Acquires the most recently used connection, checks that it is still open, and releases it.
    /// Returns true if there was one.
    pub fn acquire_and_release(&self) -> bool {
        let now = Instant::now();
        let ready = self.service.pool().ready(&self.wanted(), now);
        ready.map(|lease| lease.release(now)).is_some()
    }

    fn wanted(&self) -> ConnectionRequest<'_> {
        let state = self.generation.cluster(ClusterIndex(0));
        ConnectionRequest {
            destination: &state.destinations()[0],
            upstream: self.generation.snapshot().clusters()[0].upstream(),
            client: state.client(),
            protocols: Protocols::Http1,
            announced: None,
            fresh: false,
            careful: false,
        }
    }
}
