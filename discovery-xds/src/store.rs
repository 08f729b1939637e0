//! The accepted resources of a control plane.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use discovery_core::text::shortened;
use discovery_core::{DiscoveredService, Discovery};
use proxy_model::config::ProxyConfig;
use proxy_model::{Problem, Problems, Severity, pointer_to};
use tokio::time::Instant;
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::config::listener::v3::Listener;
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;

use super::XdsOptions;
use super::table::{Table, Update, gathered};
use crate::read::{
    ReadCluster, ReadEndpoints, ReadRoutes, RouteSource, compose, read_cluster, read_endpoints,
    read_listener, read_routes_after,
};
use xds_types::ResourceType;

/// Maximum length of a NACK's message, in characters, since some servers keep all of them.
const LONGEST_REJECTION: usize = 4000;
/// The time limit for a route configuration that no listener names, while listeners name others.
const EXTRA: Duration = Duration::from_secs(1);

/// The sources of a listener's routes.
#[derive(Debug, Clone, Default, PartialEq)]
struct Leads {
    names: Vec<String>,
    /// Names of the closed route configurations.
    closed: Vec<String>,
    /// Inline routes with their names in the listener, which need not be unique.
    inline: Vec<(String, ReadRoutes)>,
}

impl Leads {
    /// The inline routes of that name, if the name is unique.
    fn only_inline(&self, name: &str) -> Option<&ReadRoutes> {
        let mut of_name = self.inline.iter().filter(|(called, _)| called == name);
        let (_, routes) = of_name.next()?;
        of_name.next().is_none().then_some(routes)
    }
}

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
}

/// The result of applying a response.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) changed: bool,
    /// The message of a NACK. `None` if everything is accepted.
    pub(super) rejection: Option<String>,
}

impl Store {
    pub(super) fn new(route_configs: &[String], listeners_wanted: bool, most: usize) -> Self {
        Self {
            route_configs: route_configs.iter().cloned().collect(),
            listeners_wanted,
            most,
            listeners: Table::default(),
            routes: Table::default(),
            clusters: Table::default(),
            endpoints: Table::default(),
            missing: BTreeMap::new(),
            begun: Instant::now(),
            was_usable: false,
        }
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
            ResourceType::Listener => self.listeners.apply(
                resource_type,
                update,
                |listener: &Listener| &listener.name,
                leads,
                most,
            ),
            ResourceType::Route => self.routes.apply(
                resource_type,
                update,
                |routes: &RouteConfiguration| &routes.name,
                read_routes_after,
                most,
            ),
            ResourceType::Cluster => self.clusters.apply(
                resource_type,
                update,
                |cluster: &Cluster| &cluster.name,
                |cluster, _| read_cluster(cluster),
                most,
            ),
            ResourceType::Endpoint => self.endpoints.apply(
                resource_type,
                update,
                |assignment: &ClusterLoadAssignment| &assignment.cluster_name,
                |assignment, _| read_endpoints(assignment),
                most,
            ),
        };
        self.routes
            .keep(&self.wanted(ResourceType::Route).unwrap_or_default());
        self.endpoints
            .keep(&self.wanted(ResourceType::Endpoint).unwrap_or_default());
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
        let has_routes = !self.routes.held.is_empty()
            || (self.listeners.held.values()).any(|held| !held.value.inline.is_empty());
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
    pub(super) fn discovery(&self) -> Discovery {
        let nothing = BTreeMap::new();
        let mut services = Vec::new();
        let mut add = |name: String, config: ProxyConfig| {
            services.push(DiscoveredService::configured(name, config));
        };
        let closed = self.closed();
        let mut closings = Vec::new();
        for (name, held) in &self.routes.held {
            let composed = match closed.get(name) {
                None => compose([&held.value], &nothing, &BTreeMap::new()),
                // A listener with unsupported restrictions closes its routes, so that no request gets around them.
                Some(listener) => {
                    closings.push(closing(name, listener));
                    compose([&held.value.closed()], &nothing, &BTreeMap::new())
                }
            };
            add(format!("routes {name}"), composed.config);
        }
        for (name, held) in &self.listeners.held {
            if !held.value.inline.is_empty() {
                let inline = held.value.inline.iter().map(|(_, routes)| routes);
                let composed = compose(inline, &nothing, &BTreeMap::new());
                add(format!("listener {name}"), composed.config);
            }
        }
        let clusters: BTreeMap<String, ReadCluster> = (self.clusters.held.iter())
            .map(|(name, held)| (name.clone(), held.value.clone()))
            .collect();
        let endpoints: BTreeMap<String, ReadEndpoints> = (self.endpoints.held.iter())
            .map(|(name, held)| (name.clone(), held.value.clone()))
            .collect();
        for (id, cluster) in compose([], &clusters, &endpoints).config.clusters {
            let mut config = ProxyConfig::default();
            let name = format!("cluster {id}");
            config.clusters.insert(id, cluster);
            add(name, config);
        }
        let mut discovery = Discovery::new(services);
        let problems = (self.listeners.problems())
            .chain(self.routes.problems())
            .chain(self.clusters.problems())
            .chain(self.endpoints.problems());
        for problem in gathered(problems.chain(closings)) {
            discovery = discovery.with_problem(problem);
        }
        discovery
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

/// Returns the sources of a listener's routes, given its earlier ones as `before`.
fn leads(listener: &Listener, before: Option<&Leads>) -> Result<(Leads, Problems), Problems> {
    let (read, mut problems) = read_listener(listener)?;
    let mut found = Leads::default();
    let open = read.routes.into_iter().map(|source| (source, false));
    let closed = read.closed.into_iter().map(|source| (source, true));
    let is_any_closed = closed.len() > 0;
    for (source, is_closed) in open.chain(closed) {
        match source {
            RouteSource::Named(name) if is_closed => found.closed.push(name),
            RouteSource::Named(name) => found.names.push(name),
            RouteSource::Inline(inline) => {
                let known = before.and_then(|before| before.only_inline(&inline.name));
                let routes = match read_routes_after(&inline, known) {
                    Ok((routes, more)) => {
                        problems.append(more);
                        routes
                    }
                    // A closed part stays closed, independent of other problems.
                    Err(more) if is_any_closed => {
                        problems.append(more);
                        known.cloned().unwrap_or_default()
                    }
                    Err(more) => return Err(more),
                };
                let routes = match is_closed {
                    true => routes.closed(),
                    false => routes,
                };
                found.inline.push((inline.name, routes));
            }
        }
    }
    Ok((found, problems))
}
