//! The accepted resources of a control plane.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use discovery_core::text::shortened;
use discovery_core::{DiscoveredService, Discovery};
use prost::Message as _;
use proxy_model::config::ProxyConfig;
use proxy_model::{Problem, Problems, Severity, pointer_to};
use tokio::time::Instant;
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::config::listener::v3::Listener;
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;

use super::XdsOptions;
use super::leads::{self, Leads, leads};
use super::memo;
use super::table::{Functions, Table, Update, gathered};
use crate::read::{
    ReadCluster, ReadEndpoints, ReadRoutes, compose, last_good_routes, read_cluster,
    read_endpoints, read_routes_after,
};
use xds_types::ResourceType;

/// Maximum length of a NACK's message, in characters, since some servers keep all of them.
const LONGEST_REJECTION: usize = 4000;
/// The time limit for a route configuration that no listener names, while listeners name others.
const EXTRA: Duration = Duration::from_secs(1);

/// All accepted resources.
#[derive(Debug)]
pub(super) struct Store {
    route_configs: BTreeSet<String>,
    listeners_wanted: bool,
    most: usize,
    listeners: Table<Leads>,
    routes: Table<ReadRoutes>,
    clusters: Table<ReadCluster>,
    endpoints: Table<ReadEndpoints>,
    /// The requested resources that have not arrived yet, with the time of the request.
    missing: BTreeMap<(ResourceType, String), Instant>,
    /// The time at which the stream began.
    begun: Instant,
    was_usable: bool,
    keeps_forms: bool,
    /// The text for a restart. `None` if it must be written again.
    memo: Option<Arc<str>>,
}

const LISTENERS: Functions<Listener, Leads> = Functions {
    kind: ResourceType::Listener,
    name_of: |listener| &listener.name,
    is_by_name: false,
    read: leads,
    last_good: leads::last_good,
};
const ROUTES: Functions<RouteConfiguration, ReadRoutes> = Functions {
    kind: ResourceType::Route,
    name_of: |routes| &routes.name,
    is_by_name: true,
    read: read_routes_after,
    last_good: |routes, read, before| {
        let before = RouteConfiguration::decode(before).ok();
        let good = last_good_routes(routes, read, before.as_ref());
        good.map(|routes| routes.encode_to_vec())
    },
};
const CLUSTERS: Functions<Cluster, ReadCluster> = Functions {
    kind: ResourceType::Cluster,
    name_of: |cluster| &cluster.name,
    is_by_name: false,
    read: |cluster, _| read_cluster(cluster),
    last_good: |_, _, _| None,
};
const ENDPOINTS: Functions<ClusterLoadAssignment, ReadEndpoints> = Functions {
    kind: ResourceType::Endpoint,
    name_of: |assignment| &assignment.cluster_name,
    is_by_name: true,
    read: |assignment, _| read_endpoints(assignment),
    last_good: |_, _, _| None,
};

/// The result of applying a response.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) changed: bool,
    /// The message of a NACK. `None` if everything is accepted.
    pub(super) rejection: Option<String>,
}

impl Store {
    pub(super) fn new(options: &XdsOptions) -> Self {
        let keeps_forms = options.persist.is_some();
        Self {
            route_configs: options.route_configs.iter().cloned().collect(),
            listeners_wanted: options.listeners,
            most: options.max_resources,
            listeners: Table::new(keeps_forms),
            routes: Table::new(keeps_forms),
            clusters: Table::new(keeps_forms),
            // Endpoints are not restored: an address of before may be another service's by now.
            endpoints: Table::new(false),
            missing: BTreeMap::new(),
            begun: Instant::now(),
            was_usable: false,
            keeps_forms,
            memo: None,
        }
    }

    /// Restores what was accepted before a restart. It counts until the control plane says otherwise: what a
    /// listener closed stays closed, and a rejected resource keeps its earlier form. Nothing of it is served
    /// before the control plane has answered.
    pub(super) fn restore(&mut self, memo: &str) {
        let forms = match memo::decode(memo) {
            Ok(forms) => forms,
            Err(error) => {
                tracing::warn!(target: "xds::client", %error, "the stored resources of the control plane cannot be used");
                return;
            }
        };
        if self.listeners_wanted {
            self.listeners.restore(&LISTENERS, &forms);
        }
        self.routes.restore(&ROUTES, &forms);
        self.clusters.restore(&CLUSTERS, &forms);
        self.keep_wanted();
    }

    fn keep_wanted(&mut self) {
        self.routes
            .keep(&self.wanted(ResourceType::Route).unwrap_or_default());
        self.endpoints
            .keep(&self.wanted(ResourceType::Endpoint).unwrap_or_default());
    }

    /// Applies a response.
    pub(super) fn apply(
        &mut self,
        resource_type: ResourceType,
        update: Update,
        now: Instant,
    ) -> Applied {
        let most = self.most;
        let (changed, rejections) = match resource_type {
            ResourceType::Listener => self.listeners.apply(&LISTENERS, update, most),
            ResourceType::Route => self.routes.apply(&ROUTES, update, most),
            ResourceType::Cluster => self.clusters.apply(&CLUSTERS, update, most),
            ResourceType::Endpoint => self.endpoints.apply(&ENDPOINTS, update, most),
        };
        if resource_type != ResourceType::Endpoint {
            self.memo = None;
        }
        self.keep_wanted();
        // For a request without names, nothing can be missing.
        self.listeners.absent.clear();
        self.clusters.absent.clear();
        self.note_missing(now);
        let rejection = (!rejections.is_empty()).then(|| {
            let all: Vec<String> = rejections.iter().map(ToString::to_string).collect();
            shortened(&all.join("; "), LONGEST_REJECTION)
        });
        Applied { changed, rejection }
    }

    /// The names to request. `None` for all resources of the type.
    pub(super) fn wanted(&self, resource_type: ResourceType) -> Option<BTreeSet<String>> {
        match resource_type {
            ResourceType::Cluster | ResourceType::Listener => None,
            ResourceType::Route => {
                let named = self.named_by_listeners().cloned();
                Some(named.chain(self.route_configs.iter().cloned()).collect())
            }
            ResourceType::Endpoint => {
                let clusters = self.clusters.held.values();
                Some(
                    clusters
                        .filter_map(|held| held.value.endpoints_from.clone())
                        .collect(),
                )
            }
        }
    }

    /// The types that are requested.
    pub(super) fn types(&self) -> impl Iterator<Item = ResourceType> + use<> {
        let listeners_wanted = self.listeners_wanted;
        ResourceType::MAKE_BEFORE_BREAK
            .into_iter()
            .filter(move |kind| listeners_wanted || *kind != ResourceType::Listener)
    }

    /// Begins a stream, on which all resources are requested now.
    pub(super) fn begin(&mut self, now: Instant) {
        if !self.was_usable {
            self.missing.clear();
        }
        self.begun = now;
        self.note_missing(now);
    }

    /// Records the time since which nothing is known of a requested resource. Some control planes never
    /// report that a resource does not exist.
    fn note_missing(&mut self, now: Instant) {
        let mut missing = BTreeMap::new();
        let mut note = |kind: ResourceType, name: String| {
            let since = self.missing.get(&(kind, name.clone()));
            missing.insert((kind, name), since.copied().unwrap_or(now));
        };
        let routes = self.wanted(ResourceType::Route).unwrap_or_default();
        for name in routes.into_iter().filter(|name| self.routes.lacks(name)) {
            note(ResourceType::Route, name);
        }
        let endpoints = self.wanted(ResourceType::Endpoint).unwrap_or_default();
        for name in endpoints
            .into_iter()
            .filter(|name| self.endpoints.lacks(name))
        {
            note(ResourceType::Endpoint, name);
        }
        self.missing = missing;
    }

    /// Returns true if no requested resource is pending.
    pub(super) fn knows_all(&self, options: &XdsOptions) -> bool {
        self.was_usable
            && (self.waits_until(options.fetch_timeout)).is_none_or(|until| until <= Instant::now())
    }

    /// Returns the time until which a requested resource is waited for. One that has not come within
    /// `patience` after its request counts as missing until it comes, as in Envoy after its
    /// `initial_fetch_timeout`.
    pub(super) fn waits_until(&self, patience: Duration) -> Option<Instant> {
        let is_answered =
            self.clusters.is_answered && (self.listeners.is_answered || !self.listeners_wanted);
        let named: BTreeSet<&String> = self.named_by_listeners().collect();
        let are_led = !named.is_empty()
            || (self.listeners.held.values()).any(|held| !held.value.inline.is_empty());
        let missing = self.missing.iter().map(|((kind, name), since)| {
            // If listeners lead elsewhere, the route configurations of the options may not exist.
            let is_extra = *kind == ResourceType::Route && are_led && !named.contains(name);
            *since
                + if is_extra {
                    patience.min(EXTRA)
                } else {
                    patience
                }
        });
        missing
            .chain((!is_answered).then_some(self.begun + patience))
            .max()
    }

    fn named_by_listeners(&self) -> impl Iterator<Item = &String> {
        let listeners = self.listeners.held.values();
        listeners.flat_map(|held| held.value.names.iter().chain(&held.value.closed))
    }

    /// Returns true if there is something to serve: clusters and routes, or the fact that there are no
    /// routes. Once true, it stays true.
    pub(super) fn is_usable(&mut self) -> bool {
        let has_routes = self.routes.sent().next().is_some()
            || (self.listeners.sent()).any(|(_, leads)| !leads.inline.is_empty());
        let is_answered = self.listeners.is_answered || !self.listeners_wanted;
        let wanted = self.wanted(ResourceType::Route).unwrap_or_default();
        let are_absent = wanted.iter().all(|name| self.routes.absent.contains(name));
        self.was_usable |= self.clusters.is_answered && (has_routes || (is_answered && are_absent));
        self.was_usable
    }

    /// Returns the route configurations that a listener restricts in an unsupported way, with the listener. Another
    /// listener may lead there without a restriction, but it is unknown whether this proxy replaces that one.
    fn closed(&self) -> BTreeMap<&String, &String> {
        let listeners = self.listeners.held.iter();
        listeners
            .flat_map(|(listener, held)| held.value.closed.iter().map(move |name| (name, listener)))
            .collect()
    }

    /// Returns the route configurations of listeners whose routes must reject ambiguous paths.
    fn strict(&self) -> BTreeSet<&String> {
        let listeners = self.listeners.held.values();
        let strict = listeners.filter(|held| held.value.has_strict_paths);
        strict.flat_map(|held| &held.value.names).collect()
    }

    /// The versions of one type, for a control plane that sends only differences.
    pub(super) fn versions(&self, resource_type: ResourceType) -> Vec<(String, String)> {
        match resource_type {
            ResourceType::Listener => self.listeners.versions().collect(),
            ResourceType::Route => self.routes.versions().collect(),
            ResourceType::Cluster => self.clusters.versions().collect(),
            ResourceType::Endpoint => self.endpoints.versions().collect(),
        }
    }

    /// The errors of the control plane's resources.
    pub(super) fn rejected(&self) -> Problems {
        let problems = (self.listeners.problems())
            .chain(self.routes.problems())
            .chain(self.clusters.problems())
            .chain(self.endpoints.problems());
        let errors = problems.filter(|problem| problem.severity == Severity::Error);
        errors.collect()
    }

    /// Returns everything as services: each route configuration and each cluster is one, so that a problem
    /// of one does not affect the others.
    pub(super) fn discovery(&mut self) -> Discovery {
        let mut services = Vec::new();
        let mut problems = Vec::new();
        self.add_routes(&mut services, &mut problems);
        self.add_clusters(&mut services);
        problems.extend(self.silence());
        let mut discovery = Discovery::new(services);
        // Errors are those of the services, if there is one: a listener is one if there are routes inside of it.
        let without_routes = (self.listeners.held.iter())
            .filter(|(_, held)| held.value.inline.is_empty())
            .map(|(name, _)| name)
            .chain(self.listeners.lost());
        let errors = without_routes.flat_map(|name| self.listeners.errors_of(name));
        let all = (self.listeners.problems())
            .chain(self.routes.problems())
            .chain(self.clusters.problems())
            .chain(self.endpoints.problems());
        let warnings = all.filter(|problem| problem.severity == Severity::Warning);
        for problem in gathered(errors.chain(warnings).chain(problems)) {
            discovery = discovery.with_problem(problem);
        }
        match self.memo() {
            Some(memo) => discovery.with_memo(memo),
            None => discovery,
        }
    }

    fn add_routes(&self, services: &mut Vec<DiscoveredService>, problems: &mut Vec<Problem>) {
        let nothing = BTreeMap::new();
        let mut add = |name: String, config: ProxyConfig, errors: Problems| {
            let service = DiscoveredService::configured(name, config);
            services.push(service.with_rejected(errors));
        };
        let (closed, strict) = (self.closed(), self.strict());
        for (name, held) in &self.routes.held {
            let composed = match closed.get(name) {
                None if strict.contains(name) => {
                    compose([&held.value.clone().strict()], &nothing, &BTreeMap::new())
                }
                None => compose([&held.value], &nothing, &BTreeMap::new()),
                // A listener with unsupported restrictions closes its routes, so that no request gets around them.
                Some(listener) => {
                    problems.push(closing(name, listener));
                    compose([&held.value.closed()], &nothing, &BTreeMap::new())
                }
            };
            let errors = self.routes.errors_of(name);
            add(format!("routes {name}"), composed.config, errors);
        }
        for name in self.routes.lost() {
            let errors = self.routes.errors_of(name);
            add(format!("routes {name}"), ProxyConfig::default(), errors);
        }
        for (name, held) in &self.listeners.held {
            if !held.value.inline.is_empty() {
                let inline = held.value.inline.iter().map(|(_, routes)| routes);
                let composed = compose(inline, &nothing, &BTreeMap::new());
                let errors = self.listeners.errors_of(name);
                add(format!("listener {name}"), composed.config, errors);
            }
        }
    }

    fn add_clusters(&self, services: &mut Vec<DiscoveredService>) {
        let clusters: BTreeMap<String, ReadCluster> = (self.clusters.held.iter())
            .map(|(name, held)| (name.clone(), held.value.clone()))
            .collect();
        let endpoints: BTreeMap<String, ReadEndpoints> = (self.endpoints.held.iter())
            .map(|(name, held)| (name.clone(), held.value.clone()))
            .collect();
        for (id, cluster) in compose([], &clusters, &endpoints).config.clusters {
            let mut config = ProxyConfig::default();
            let errors = self.clusters.errors_of(id.as_str());
            let from = clusters.get(id.as_str());
            let from = from.and_then(|cluster| cluster.endpoints_from.as_ref());
            let of_endpoints = from.map(|from| self.endpoints.errors_of(from));
            let name = format!("cluster {id}");
            config.clusters.insert(id, cluster);
            let service = DiscoveredService::configured(name, config);
            let service = service.with_rejected(errors);
            services.push(service.with_rejected_destinations(of_endpoints.unwrap_or_default()));
        }
        for name in self.clusters.lost() {
            let service =
                DiscoveredService::configured(format!("cluster {name}"), ProxyConfig::default());
            services.push(service.with_rejected(self.clusters.errors_of(name)));
        }
    }

    /// Returns the problem that the control plane has said nothing about listeners, which may restrict
    /// senders.
    fn silence(&self) -> Option<Problem> {
        if self.listeners.is_answered || !self.listeners_wanted {
            return None;
        }
        let effect = match self.listeners.held.is_empty() {
            true => "so routes are served to everybody, even if a listener restricts them",
            false => "so those of before the restart count: what they closed stays closed",
        };
        let message = format!(
            "the control plane has sent no response about listeners since the start, {effect}"
        );
        let suggestion = "if there are none, or they restrict nothing, set `Listeners` to `false`";
        let problem = Problem::warning("/listener", "listeners_unknown", message);
        Some(problem.with_suggestion(suggestion))
    }

    /// Returns what a restart needs.
    fn memo(&mut self) -> Option<Arc<str>> {
        if self.keeps_forms && self.memo.is_none() {
            let forms = (self.listeners.forms(ResourceType::Listener))
                .chain(self.routes.forms(ResourceType::Route))
                .chain(self.clusters.forms(ResourceType::Cluster));
            self.memo = Some(memo::encode(forms.collect()));
        }
        self.memo.clone()
    }
}

fn closing(routes: &str, listener: &str) -> Problem {
    let (routes, listener) = (shortened(routes, 100), shortened(listener, 100));
    let message = format!(
        "the listener `{listener}` restricts access to the routes `{routes}` in \
         an unsupported way; their requests get 503"
    );
    let pointer = pointer_to("/route_configuration", &routes);
    Problem::error(pointer, "closed", message)
}
