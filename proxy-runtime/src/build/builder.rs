//! The builder of a proxy.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use discovery_core::UnreachableClusters;
use http::{Request, Response};
use http_body::Body;
use proxy_model::compiled::Route;
use proxy_model::config::TransformConfig;
use proxy_model::{CompileOptions, Problem, Problems, Snapshot};
use tokio::sync::watch;
use tower_layer::Layer;
use tower_service::Service;

use crate::BoxError;
use crate::affinity::{AffinityFailurePolicy, AffinityPolicy};
#[cfg(feature = "affinity-keys")]
use crate::affinity::{AffinityKeys, KeyRing};
use crate::balance::{LoadBalancer, Random};
use crate::build::Driver;
use crate::connection::Network;
use crate::extensions::make_filter;
use crate::filter::Filter;
use crate::forward::rest_of_route;
use crate::head::ErrorPages;
use crate::health::{ActiveHealthPolicy, AvailableDestinationsPolicy, PassiveHealthPolicy, Probe};
use crate::layer::{ProxyRequestBody, RouteService, boxed};
use crate::policy::PolicySource;
use crate::probing::UpstreamProbe;
use crate::proxy::Settings;
use crate::proxy::{Proxy, Shared};
use crate::response::CauseHeader;
use crate::trace::Tracer;
use crate::upstream::{DestinationConnector, UpstreamOptions};

impl Proxy {
    /// Returns a builder for a proxy.
    pub fn builder() -> ProxyBuilder {
        ProxyBuilder::default()
    }
}

/// Builds a [`Proxy`] and its [`Driver`].
#[derive(Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ProxyBuilder {
    settings: Settings,
    snapshots: Option<watch::Receiver<Arc<Snapshot>>>,
    snapshot: Option<Arc<Snapshot>>,
    probe: Option<Arc<dyn Probe>>,
}

impl ProxyBuilder {
    /// Follows a channel of configurations. The current one serves at once, each later one as soon
    /// as the [`Driver`] receives it. When the sender is dropped, the last configuration stays.
    pub fn snapshots(mut self, snapshots: watch::Receiver<Arc<Snapshot>>) -> Self {
        self.snapshots = Some(snapshots);
        self
    }

    /// Sets the first configuration, which serves until [`Proxy::publish`] or the channel replaces
    /// it. Default: no routes.
    pub fn snapshot(mut self, snapshot: Arc<Snapshot>) -> Self {
        self.snapshot = Some(snapshot);
        self
    }

    /// Registers a load balancing policy by name, compared ignoring case. The names of built-in
    /// policies are reserved.
    pub fn balancer(mut self, name: impl Into<Arc<str>>, policy: Arc<dyn LoadBalancer>) -> Self {
        let balancers = &mut self.settings.registered.balancers;
        balancers.register(name.into(), policy);
        self
    }

    /// Registers a policy of active health checks by name, compared ignoring case. The name
    /// `ConsecutiveFailures` is reserved.
    pub fn health_policy(
        mut self,
        name: impl Into<Arc<str>>,
        policy: Arc<dyn ActiveHealthPolicy>,
    ) -> Self {
        self.settings.health_policies.register(name.into(), policy);
        self
    }

    /// Registers a policy of passive health checks by name, compared ignoring case. The name
    /// `TransportFailureRate` is reserved.
    pub fn passive_health_policy(
        mut self,
        name: impl Into<Arc<str>>,
        policy: Arc<dyn PassiveHealthPolicy>,
    ) -> Self {
        let policies = &mut self.settings.registered.passive_policies;
        policies.register(name.into(), policy);
        self
    }

    /// Registers a policy of available destinations by name, compared ignoring case. The names of
    /// built-in policies are reserved.
    pub fn available_destinations_policy(
        mut self,
        name: impl Into<Arc<str>>,
        policy: Arc<dyn AvailableDestinationsPolicy>,
    ) -> Self {
        let policies = &mut self.settings.registered.availability_policies;
        policies.register(name.into(), policy);
        self
    }

    /// Registers a policy of [session affinity](crate::affinity) by name, compared ignoring case.
    /// The names of built-in policies are reserved.
    pub fn affinity_policy(
        mut self,
        name: impl Into<Arc<str>>,
        policy: Arc<dyn AffinityPolicy>,
    ) -> Self {
        let affinities = &mut self.settings.registered.affinities;
        affinities.register(name.into(), policy);
        self
    }

    /// Registers a policy for affinity keys that are of no use, by name, compared ignoring case. The
    /// names of built-in policies are reserved.
    pub fn affinity_failure_policy(
        mut self,
        name: impl Into<Arc<str>>,
        policy: Arc<dyn AffinityFailurePolicy>,
    ) -> Self {
        let affinities = &mut self.settings.registered.affinities;
        affinities.register_failure(name.into(), policy);
        self
    }

    /// Sets the keys that the affinity policies `Cookie` and `CustomHeader` encrypt with. Default: a
    /// random one, so that their values are of no use after a restart, nor to other proxies.
    #[cfg(feature = "affinity-keys")]
    pub fn affinity_keys(mut self, keys: AffinityKeys) -> Self {
        self.settings.context.affinity_keys = KeyRing::new(keys);
        self.settings.has_affinity_keys = true;
        self
    }

    /// Registers a [filter](crate::filter) by name, compared ignoring case. Routes with the name in
    /// `Filters` use it.
    pub fn filter(mut self, name: impl Into<Arc<str>>, filter: impl Filter) -> Self {
        let extensions = &mut self.settings.registered.extensions;
        extensions.register_filter(name.into(), Arc::new(filter));
        self
    }

    /// Registers a transform: entries of a route's `Transforms` with this key, compared ignoring case.
    /// `make` turns an entry into a [filter](crate::filter) of the route, or returns what is wrong with
    /// it. It runs with each new configuration. The filters run after those of `Filters`, in the order of
    /// the list, and before the built-in transforms. An entry with the key of a built-in transform is
    /// that one.
    ///
    /// `Transforms` are checked with [`compile_options`](Self::compile_options).
    pub fn transform<M>(mut self, key: impl Into<Arc<str>>, make: M) -> Self
    where
        M: Fn(&TransformConfig) -> Result<Arc<dyn Filter>, String> + Send + Sync + 'static,
    {
        let extensions = &mut self.settings.registered.extensions;
        extensions.register_transform(key.into(), Arc::new(make));
        self
    }

    /// Adds filters to routes that need not name them: `hook` is called for each route of each new configuration. They
    /// run after all others of the route. A panic of the hook rejects the configuration.
    pub fn route_hook<H>(mut self, hook: H) -> Self
    where
        H: Fn(&Route) -> Vec<Arc<dyn Filter>> + Send + Sync + 'static,
    {
        let extensions = &mut self.settings.registered.extensions;
        extensions.register_hook(Arc::new(hook));
        self
    }

    /// Registers a [tower layer](crate::layer) by name, compared ignoring case. Routes with the
    /// name in `Layers` use it.
    pub fn layer<L, B>(mut self, name: impl Into<Arc<str>>, layer: L) -> Self
    where
        L: Layer<RouteService> + Send + Sync + 'static,
        L::Service: Service<Request<ProxyRequestBody>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        <L::Service as Service<Request<ProxyRequestBody>>>::Error: Into<BoxError>,
        <L::Service as Service<Request<ProxyRequestBody>>>::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let extensions = &mut self.settings.registered.extensions;
        extensions.register_layer(name.into(), boxed(layer), rest_of_route());
        self
    }

    /// Sets the source of the [policies](crate::policy) of routes. Default: none, so that a route with
    /// an `AuthorizationPolicy` answers 500.
    pub fn policies(mut self, source: Arc<dyn PolicySource>) -> Self {
        let extensions = &mut self.settings.registered.extensions;
        extensions.register_policies(source, rest_of_route());
        self
    }

    /// Sets the [tracer](crate::trace) of requests and health checks. Default: none.
    pub fn tracer(mut self, tracer: Arc<dyn Tracer>) -> Self {
        self.settings.tracer = Some(tracer);
        self
    }

    /// Sets the zone of the proxy. Destinations with the same `Zone`, ignoring case, are preferred
    /// while any of them is available.
    pub fn zone(mut self, zone: impl Into<Arc<str>>) -> Self {
        self.settings.context.zone = Some(zone.into());
        self
    }

    /// Sets the maximum size of a request body, in bytes, for routes without `MaxRequestBodySize`.
    /// Default: unlimited, since bodies are streamed and not held.
    pub fn max_request_body(mut self, bytes: u64) -> Self {
        self.settings.max_request_body = Some(bytes);
        self
    }

    /// Gives the proxy's own errors, and those of [policies](crate::policy), the form that a client prefers by its
    /// `Accept`: `application/problem+json` (RFC 9457), `text/html` or `text/plain`. Default: false, always plain text.
    pub fn negotiate_errors(mut self, enabled: bool) -> Self {
        self.settings.negotiates_errors = enabled;
        self
    }

    /// Sets the [bodies of errors](ErrorPages), which [`Proxy::set_error_pages`] replaces. Default: none, so that an
    /// error has its status in words.
    pub fn error_pages(mut self, pages: ErrorPages) -> Self {
        self.settings.error_pages = pages;
        self
    }

    /// Gives clients of these networks the [cause](crate::Cause) of an error response in the header `X-Proxy-Cause`.
    /// Responses of destinations never get it, nor do requests that a server rejects before a route is looked for.
    /// Default: none.
    pub fn cause_header(mut self, networks: impl IntoIterator<Item = Network>) -> Self {
        self.settings.cause_header = Some(Arc::new(CauseHeader::new(networks)));
        self
    }

    /// Sets the limits of connections to destinations.
    pub fn upstream(mut self, options: UpstreamOptions) -> Self {
        self.settings.upstream = options;
        self
    }

    /// Registers a [connector](DestinationConnector) by name, compared ignoring case. It opens the connections of
    /// clusters with the name in `HttpClient.Connector`.
    pub fn connector(
        mut self,
        name: impl Into<Arc<str>>,
        connector: impl DestinationConnector + 'static,
    ) -> Self {
        let connectors = &mut self.settings.connectors;
        connectors.register(name.into(), Arc::new(connector));
        self
    }

    /// Enables the detection of forwarding loops. Forwarded requests carry a member of this proxy
    /// in `CDN-Loop` (RFC 8586); requests that arrive with it get 508. A route that removes this
    /// field with `RequestHeaderRemove` is not protected. Default: true.
    pub fn loop_guard(mut self, enabled: bool) -> Self {
        self.settings.is_unguarded = !enabled;
        self
    }

    /// Reports clusters that requests cannot reach: no connection can be opened to a destination,
    /// or none is available.
    /// [`Merged::follow_unreachable`](discovery_core::Merged::follow_unreachable) notifies the
    /// sources, which then poll these services at once instead of at the next interval. Successful
    /// requests cost nothing. Default: nothing is reported.
    pub fn unreachable(mut self, reported: Arc<UnreachableClusters>) -> Self {
        self.settings.context.unreachable = Some(reported);
        self
    }

    /// Replaces the HTTP probe of active health checks.
    pub fn probe(mut self, probe: Arc<dyn Probe>) -> Self {
        self.probe = Some(probe);
        self
    }

    /// Sets the seed of random choices, for tests. Default: each thread has a generator that the
    /// system seeds.
    #[doc(hidden)]
    pub fn random_seed(mut self, seed: u64) -> Self {
        self.settings.context.random = Random::seeded(seed);
        self
    }

    /// Returns the options to compile configurations with: they name the policies, filters and
    /// layers registered so far.
    pub fn compile_options(&self) -> CompileOptions {
        let registered = &self.settings.registered;
        let mut options = CompileOptions::default();
        for (key, make) in registered.extensions.transforms() {
            let make = Arc::clone(make);
            // Only checked here: the filters are made when the configuration is published.
            let check = move |entry: &TransformConfig| make_filter(&*make, entry).map(drop);
            options = options.with_transform(Arc::clone(key), check);
        }
        options
            .with_filters(registered.extensions.filter_names().cloned())
            .with_connectors(self.settings.connectors.names().cloned())
            .with_layers(registered.extensions.layer_names().cloned())
            .with_balancing_policies(registered.balancers.names().cloned())
            .with_active_health_policies(self.settings.health_policies.names().cloned())
            .with_passive_health_policies(registered.passive_policies.names().cloned())
            .with_available_destinations_policies(registered.availability_policies.names().cloned())
            .with_affinity_policies(registered.affinities.names().cloned())
            .with_affinity_failure_policies(registered.affinities.failure_names().cloned())
    }

    /// Builds the proxy, and the future that keeps it up to date, which the caller spawns.
    ///
    /// # Errors
    ///
    /// Fails if the first configuration names a policy, filter or layer that is not registered, or
    /// if a policy was registered under the name of a built-in one.
    pub fn build(self) -> Result<(Proxy, Driver), Problems> {
        let Self {
            settings,
            mut snapshots,
            snapshot,
            probe,
        } = self;
        check_names(&settings)?;
        // The current value counts as seen: the driver waits for the next one.
        let current = snapshots
            .as_mut()
            .map(|snapshots| Arc::clone(&snapshots.borrow_and_update()));
        // The value of a channel takes precedence over the one that was set.
        let first = match current.or(snapshot) {
            Some(first) => first,
            None => Arc::new(Snapshot::empty()),
        };
        let shared = Arc::new(Shared::new(first, settings)?);
        let probe =
            probe.unwrap_or_else(|| Arc::new(UpstreamProbe::new(Arc::clone(shared.upstreams()))));
        let alive = Arc::new(watch::Sender::new(()));
        let driver = Driver::new(Arc::clone(&shared), snapshots, probe, alive.subscribe());
        Ok((Proxy::new(shared, alive), driver))
    }
}

/// Fails if a registered policy has the name of a built-in one: it would never be used.
fn check_names(settings: &Settings) -> Result<(), Problems> {
    let balancers = settings
        .registered
        .balancers
        .taken_names()
        .map(|name| ("load balancing", name));
    let health = settings
        .health_policies
        .taken_names()
        .map(|name| ("active health", name));
    let registered = &settings.registered;
    let passive = registered.passive_policies.taken_names();
    let affinity = registered.affinities.taken_names();
    let available = registered.availability_policies.taken_names();
    let problems: Problems = balancers
        .chain(health)
        .chain(passive.map(|name| ("passive health", name)))
        .chain(affinity.map(|name| ("affinity", name)))
        .chain(available.map(|name| ("available destinations", name)))
        .map(|(kind, name)| {
            let message =
                format!("the {kind} policy `{name}` has the name of one that is built in");
            Problem::error("", "reserved_policy_name", message)
                .with_suggestion("register it under another name")
        })
        .collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

impl fmt::Debug for ProxyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyBuilder").finish_non_exhaustive()
    }
}
