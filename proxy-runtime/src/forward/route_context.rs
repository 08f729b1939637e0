//! The context that a request carries in its extensions through layers.

use std::fmt;
use std::sync::Arc;

use proxy_model::ClusterId;
use proxy_model::compiled::{ClusterIndex, Route, RouteIndex};
use tokio::time::Instant;

use super::exchange_plan::RequestOrigin;
use crate::head::{ErrorBodies, ErrorForm};
use crate::proxy::ProxyService;
use crate::response::LayerAttempts;
use crate::state::{Generation, RouteState};

/// The route of a request that passes through layers, in the request's extensions.
#[derive(Clone)]
pub struct RouteContext(Option<Context>);

/// Panic message: only the extensions of an unused head lack the context.
const GIVEN: &str = "a request has its context until it is sent on";

#[derive(Clone)]
struct Context {
    service: ProxyService,
    generation: Arc<Generation>,
    index: RouteIndex,
    /// The form of errors that the client prefers.
    form: ErrorForm,
    started: Instant,
    attempts: Arc<LayerAttempts>,
    /// The cluster that a layer has assigned.
    assigned: Option<ClusterIndex>,
}

impl RouteContext {
    pub(crate) fn new(
        service: &ProxyService,
        generation: &Arc<Generation>,
        (index, form): (RouteIndex, ErrorForm),
        started: Instant,
    ) -> Self {
        let route = generation.snapshot().route_at(index).id().clone();
        Self(Some(Context {
            service: service.clone(),
            generation: Arc::clone(generation),
            index,
            form,
            started,
            attempts: Arc::new(LayerAttempts::new(route)),
            assigned: None,
        }))
    }

    /// Leaves the place of one that is not needed there any more to the next request.
    pub(crate) fn take(&mut self) -> Option<Self> {
        self.0.take().map(|context| Self(Some(context)))
    }

    /// Returns whether it is such a place.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.is_none()
    }

    fn get(&self) -> &Context {
        self.0.as_ref().expect(GIVEN)
    }

    /// The route, with its configuration.
    pub fn route(&self) -> &Route {
        self.get().generation.snapshot().route_at(self.get().index)
    }

    /// Returns a value of the route's `Metadata`, with which routes can configure a shared layer.
    pub fn route_metadata(&self, key: &str) -> Option<&str> {
        let metadata = self.route().config().metadata.as_ref()?;
        metadata.get(key).map(String::as_str)
    }

    /// Sends the request to another cluster of the configuration, like YARP's `ReassignProxyRequest`. Takes effect
    /// with the next call of the inner service.
    ///
    /// Returns false if there is no such cluster; then nothing changes.
    ///
    /// ```
    /// use proxy_model::ClusterId;
    /// use proxy_runtime::forward::RouteContext;
    /// use proxy_runtime::http::Request;
    ///
    /// fn to_beta<B>(request: &mut Request<B>) -> bool {
    ///     let context = request.extensions_mut().get_mut::<RouteContext>();
    ///     context.is_some_and(|context| context.assign_cluster(&ClusterId::from("beta")))
    /// }
    /// ```
    pub fn assign_cluster(&mut self, cluster: &ClusterId) -> bool {
        let Some(context) = &mut self.0 else {
            return false;
        };
        let found = context.generation.snapshot().cluster_index(cluster);
        // An unknown cluster leaves the earlier choice.
        context.assigned = found.or(context.assigned);
        found.is_some()
    }

    /// The cluster that a layer has assigned.
    pub(super) fn assigned(&self) -> Option<ClusterIndex> {
        self.get().assigned
    }

    /// Returns the parts that an attempt to forward the request needs.
    pub(super) fn into_origin(self) -> RequestOrigin {
        let context = self.0.expect(GIVEN);
        RequestOrigin {
            service: context.service,
            generation: context.generation,
            attempts: Some(context.attempts),
            arrived: Some(context.started),
        }
    }

    pub(crate) fn service(&self) -> &ProxyService {
        &self.get().service
    }

    pub(crate) fn generation(&self) -> &Arc<Generation> {
        &self.get().generation
    }

    pub(super) fn route_state(&self) -> &RouteState {
        self.generation().route(self.index())
    }

    pub(crate) fn index(&self) -> RouteIndex {
        self.get().index
    }

    /// The bodies of errors for the client.
    pub(super) fn errors(&self) -> ErrorBodies {
        let context = self.get();
        context.service.shared().errors(context.form)
    }

    /// Returns the time at which the request arrived, the same for all its layers.
    pub(crate) fn started(&self) -> Instant {
        self.get().started
    }

    pub(crate) fn attempts(&self) -> &Arc<LayerAttempts> {
        &self.get().attempts
    }
}

impl fmt::Debug for RouteContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteContext")
            .field("route", &self.0.as_ref().map(|_| self.route().id()))
            .finish_non_exhaustive()
    }
}
