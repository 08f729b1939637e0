//! The proxy as a tower service.

use std::fmt;
use std::sync::Arc;

use super::{Alive, Shared};
use crate::upstream::UpstreamPool;

/// Forwards requests: a [`tower_service::Service`] over `http` requests that never fails, since whatever goes wrong is
/// answered to the client. It is always ready.
///
/// Clones share connections; [`Proxy::service`](crate::Proxy::service) makes one with connections of its own. It has to
/// be called in a tokio runtime, and its connections live in the runtime in which they were opened.
///
/// The server's knowledge of the client goes into the request's extensions, as
/// [`ConnectionInfo`](crate::ConnectionInfo). The response's extensions tell what happened, as
/// [`ExchangeInfo`](crate::response::ExchangeInfo).
#[derive(Clone)]
pub struct ProxyService {
    parts: Arc<Parts>,
}

/// What all clones of a service share.
struct Parts {
    shared: Arc<Shared>,
    pool: UpstreamPool,
    _alive: Alive,
}

impl ProxyService {
    pub(super) fn new(shared: Arc<Shared>, pool: UpstreamPool, alive: Alive) -> Self {
        Self {
            parts: Arc::new(Parts {
                shared,
                pool,
                _alive: alive,
            }),
        }
    }

    /// The proxy that it belongs to.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.parts.shared
    }

    /// Its connections.
    pub(crate) fn pool(&self) -> &UpstreamPool {
        &self.parts.pool
    }
}

impl fmt::Debug for ProxyService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyService").finish_non_exhaustive()
    }
}
