//! The current configuration of a worker.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};
use proxy_model::compiled::{RouteIndex, RouteTarget};

use crate::proxy::FoundRoute;
use crate::proxy::{ProxyService, Shared};
use crate::response::ExchangeInfo;
use crate::state::Generation;

/// The byte path of one worker: the service, and the latest configuration.
///
/// A request loads the configuration with one atomic read; the counter of its owners, which all
/// workers would write, is touched when the configuration changes and not before.
pub(crate) struct Engine {
    service: ProxyService,
    generation: RefCell<Cache<Published, Arc<Generation>>>,
    current: RefCell<Current>,
}

/// A configuration that the requests of one worker share, which count themselves without a word to
/// the others.
#[derive(Clone)]
pub(crate) struct Current(Rc<WorkerReference>);

/// The one reference of a worker.
struct WorkerReference(Arc<Generation>);

impl Deref for Current {
    type Target = Generation;

    #[inline]
    fn deref(&self) -> &Generation {
        &self.0.0
    }
}

/// The shared state in which configurations are published.
struct Published(Arc<Shared>);

impl Deref for Published {
    type Target = ArcSwap<Generation>;

    fn deref(&self) -> &ArcSwap<Generation> {
        self.0.published()
    }
}

impl Engine {
    pub(crate) fn new(service: ProxyService) -> Self {
        let mut cache = Cache::new(Published(Arc::clone(service.shared())));
        let current = Current(Rc::new(WorkerReference(Arc::clone(cache.load()))));
        Self {
            service,
            generation: RefCell::new(cache),
            current: RefCell::new(current),
        }
    }

    /// Lets go of each configuration that another one has replaced, also where no request comes
    /// that would. Never ends.
    pub(crate) async fn keep_current(&self) {
        let mut published = self.service.shared().generations();
        while published.changed().await.is_ok() {
            drop(self.current());
        }
    }

    /// Returns the route found for a request that was not served yet, in the configuration of the look-up: the last
    /// one loaded, since nothing was awaited in between.
    pub(crate) fn found(&self, index: RouteIndex) -> FoundRoute {
        FoundRoute {
            generation: Arc::clone(&self.current.borrow().0.0),
            index,
        }
    }

    /// Returns the access log's information about a request [with this route](Self::found) whose client disconnects
    /// before its response.
    #[cold]
    pub(crate) fn info(&self, index: RouteIndex) -> ExchangeInfo {
        let current = self.current.borrow();
        let snapshot = current.snapshot();
        let route = snapshot.route_at(index);
        let cluster = match route.target() {
            RouteTarget::Cluster(cluster) => Some(snapshot.cluster_at(*cluster).id().clone()),
            // A cluster that is drawn or computed is not known before the request is forwarded.
            _ => None,
        };
        ExchangeInfo {
            route: Some(route.id().clone()),
            cluster,
            ..ExchangeInfo::default()
        }
    }

    #[inline]
    pub(crate) fn service(&self) -> &ProxyService {
        &self.service
    }

    /// The configuration that serves now, for as long as a request needs it.
    #[inline]
    pub(super) fn current(&self) -> Current {
        let mut cache = self.generation.borrow_mut();
        let generation = cache.load();
        let mut current = self.current.borrow_mut();
        // The earlier one is still held, so an equal address means the same configuration.
        if !Arc::ptr_eq(generation, &current.0.0) {
            *current = Current(Rc::new(WorkerReference(Arc::clone(generation))));
        }
        current.clone()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}
