//! The proxy as a tower service.

use std::fmt;
use std::sync::Arc;

use super::{Alive, Shared};
use crate::upstream::UpstreamPool;

/// Forwards requests: a [`tower_service::Service`] over `http` requests that is always ready and
/// never fails; errors become responses to the client.
///
/// Clones share connections; [`Proxy::service`](crate::Proxy::service) creates a service with its
/// own. Call it in a tokio runtime: connections live in the runtime in which they were opened.
///
/// A server adds [`ConnectionInfo`](crate::ConnectionInfo) to the extensions of a request. The
/// extensions of a response have [`ExchangeInfo`](crate::response::ExchangeInfo).
#[derive(Clone)]
pub struct ProxyService {
    parts: Arc<ServiceParts>,
}

/// The state that all clones of a service share.
struct ServiceParts {
    shared: Arc<Shared>,
    pool: UpstreamPool,
    _alive: Alive,
}

impl ProxyService {
    pub(super) fn new(shared: Arc<Shared>, pool: UpstreamPool, alive: Alive) -> Self {
        Self {
            parts: Arc::new(ServiceParts {
                shared,
                pool,
                _alive: alive,
            }),
        }
    }

    /// The proxy of this service.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.parts.shared
    }

    /// The connections to destinations, which all clones share.
    pub(crate) fn pool(&self) -> &UpstreamPool {
        &self.parts.pool
    }
}

impl fmt::Debug for ProxyService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyService").finish_non_exhaustive()
    }
}
