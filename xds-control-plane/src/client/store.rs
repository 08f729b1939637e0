//! What the control plane has said and was accepted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use discovery_core::text::shortened;
use discovery_core::{DiscoveredService, Discovery};
use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::route::v3::RouteConfiguration;
use envoy_types::pb::google::protobuf::Any;
use prost::Message;
use proxy_model::config::ProxyConfig;
use proxy_model::{Problem, Problems, Severity};
use tokio::time::Instant;

use super::XdsOptions;
use crate::bridge::{
    ReadCluster, ReadEndpoints, ReadRoutes, RouteSource, compose, read_cluster, read_endpoints,
    read_listener, read_routes,
};
use crate::snapshot::ResourceType;

/// The longest message of a NACK, in characters: some servers keep them all.
const LONGEST_REFUSAL: usize = 4000;
/// How long a route configuration is waited for that no listener names, where listeners name others.
const EXTRA: Duration = Duration::from_secs(1);

/// What one answer brings, whichever variant of the protocol it came by.
#[derive(Debug, Default)]
pub(super) struct Update {
    /// Version and content.
    pub(super) resources: Vec<(String, Any)>,
    /// Names of what does not exist any more.
    pub(super) removed: Vec<String>,
    /// Whether what is not there does not exist: clusters and listeners in the state of the world.
    pub(super) is_all: bool,
}

/// Where a listener's routes are.
#[derive(Debug, Clone, Default, PartialEq)]
struct Leads {
    names: Vec<String>,
    inline: Vec<ReadRoutes>,
}

#[derive(Debug, Clone)]
struct Held<T> {
    version: String,
    value: T,
    /// What is done differently. Errors name parts that are refused while the others serve.
    problems: Problems,
}

/// The resources of one type.
#[derive(Debug)]
struct Table<T> {
    held: BTreeMap<String, Held<T>>,
    /// Those whose newest form cannot be honoured.
    refused: BTreeMap<String, Problems>,
    /// Those that were asked for and do not exist.
    absent: BTreeSet<String>,
    /// Whether there was an answer.
    is_answered: bool,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            held: BTreeMap::new(),
            refused: BTreeMap::new(),
            absent: BTreeSet::new(),
            is_answered: false,
        }
    }
}

type ReadOne<M, T> = fn(&M) -> Result<(T, Problems), Problems>;

impl<T: PartialEq> Table<T> {
    /// Takes in an answer. Returns whether something changed, and what is refused.
    fn apply<M: Message + Default>(
        &mut self,
        resource_type: ResourceType,
        update: Update,
        name_of: fn(&M) -> &str,
        read: ReadOne<M, T>,
        most: usize,
    ) -> (bool, Vec<Problem>) {
        let mut changed = !self.is_answered;
        self.is_answered = true;
        let mut refusals = Vec::new();
        if update.resources.len() > most {
            let message = format!(
                "{} resources in one answer; at most {most} are taken",
                update.resources.len()
            );
            return (changed, vec![Problem::error("", "too_many", message)]);
        }
        let mut named = BTreeSet::new();
        let mut are_all_named = true;
        for (version, any) in update.resources {
            let decoded = (any.type_url == resource_type.type_url())
                .then(|| M::decode(any.value.as_slice()).ok())
                .flatten();
            let Some(message) = decoded else {
                are_all_named = false;
                refusals.push(Problem::error(
                    "",
                    "not_decoded",
                    format!(
                        "a resource of type `{}` cannot be decoded as one of type `{}`",
                        shortened(&any.type_url, 100),
                        resource_type.type_url()
                    ),
                ));
                continue;
            };
            let name = name_of(&message).to_owned();
            if !named.insert(name.clone()) {
                refusals.push(Problem::error(
                    "",
                    "twice",
                    format!("`{}` is there twice", shortened(&name, 100)),
                ));
                continue;
            }
            let is_known = self.held.contains_key(&name) || self.refused.contains_key(&name);
            if !is_known && !update.is_all && self.held.len() + self.refused.len() >= most {
                refusals.push(Problem::error(
                    "",
                    "too_many",
                    format!(
                        "`{}` is one too many; at most {most} resources of a type are taken",
                        shortened(&name, 100)
                    ),
                ));
                continue;
            }
            self.absent.remove(&name);
            match read(&message) {
                Ok((value, problems)) => {
                    refusals.extend(problems.errors().cloned());
                    changed |= self.refused.remove(&name).is_some();
                    let same = (self.held.get(&name))
                        .is_some_and(|held| held.value == value && held.problems == problems);
                    changed |= !same;
                    let held = Held {
                        version,
                        value,
                        problems,
                    };
                    self.held.insert(name, held);
                }
                Err(problems) => {
                    refusals.extend(problems.errors().cloned());
                    changed = true;
                    self.refused.insert(name, problems);
                }
            }
        }
        let gone: Vec<String> = match update.is_all {
            // What cannot be decoded may be any of them.
            true if !are_all_named => Vec::new(),
            true => (self.held.keys().chain(self.refused.keys()))
                .filter(|name| !named.contains(*name))
                .cloned()
                .collect(),
            false => update.removed,
        };
        for name in gone {
            changed |= self.held.remove(&name).is_some() | self.refused.remove(&name).is_some();
            changed |= self.absent.insert(name);
        }
        (changed, refusals)
    }

    /// Forgets what nobody wants any more.
    fn keep(&mut self, wanted: &BTreeSet<String>) {
        self.held.retain(|name, _| wanted.contains(name));
        self.refused.retain(|name, _| wanted.contains(name));
        self.absent.retain(|name| wanted.contains(name));
    }

    /// Whether nothing is known of one that is wanted.
    fn lacks(&self, name: &str) -> bool {
        !self.held.contains_key(name)
            && !self.refused.contains_key(name)
            && !self.absent.contains(name)
    }

    /// Without those of which a part is refused: they are to be sent again, and refused again, on each stream.
    fn versions(&self) -> impl Iterator<Item = (String, String)> {
        (self.held.iter())
            .filter(|(_, held)| !held.problems.has_errors())
            .map(|(name, held)| (name.clone(), held.version.clone()))
    }

    fn problems(&self) -> impl Iterator<Item = Problem> {
        let of_held = self.held.values().flat_map(|held| held.problems.iter());
        self.refused
            .values()
            .flat_map(Problems::iter)
            .chain(of_held)
            .cloned()
    }
}

/// Everything that was accepted.
#[derive(Debug)]
pub(super) struct Store {
    route_configs: BTreeSet<String>,
    listeners_wanted: bool,
    most: usize,
    listeners: Table<Leads>,
    routes: Table<ReadRoutes>,
    clusters: Table<ReadCluster>,
    endpoints: Table<ReadEndpoints>,
    /// What is wanted and nothing is known of, and since when.
    missing: BTreeMap<(ResourceType, String), Instant>,
    /// When the stream began.
    begun: Instant,
    was_usable: bool,
}

/// What became of an answer.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) changed: bool,
    /// The message of a NACK; `None`: everything is accepted.
    pub(super) refusal: Option<String>,
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

    /// Takes in an answer.
    pub(super) fn apply(
        &mut self,
        resource_type: ResourceType,
        update: Update,
        now: Instant,
    ) -> Applied {
        let most = self.most;
        let (changed, refusals) = match resource_type {
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
                read_routes,
                most,
            ),
            ResourceType::Cluster => self.clusters.apply(
                resource_type,
                update,
                |cluster: &Cluster| &cluster.name,
                read_cluster,
                most,
            ),
            ResourceType::Endpoint => self.endpoints.apply(
                resource_type,
                update,
                |assignment: &ClusterLoadAssignment| &assignment.cluster_name,
                read_endpoints,
                most,
            ),
        };
        self.routes
            .keep(&self.wanted(ResourceType::Route).unwrap_or_default());
        self.endpoints
            .keep(&self.wanted(ResourceType::Endpoint).unwrap_or_default());
        // Of what is asked for without names there is nothing to be missed.
        self.listeners.absent.clear();
        self.clusters.absent.clear();
        self.note_missing(now);
        let refusal = (!refusals.is_empty()).then(|| {
            let all: Vec<String> = refusals.iter().map(ToString::to_string).collect();
            shortened(&all.join("; "), LONGEST_REFUSAL)
        });
        Applied { changed, refusal }
    }

    /// The names to ask for; `None`: all there are.
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

    /// The types that are asked for at all.
    pub(super) fn types(&self) -> impl Iterator<Item = ResourceType> + use<> {
        let listeners_wanted = self.listeners_wanted;
        ResourceType::MAKE_BEFORE_BREAK
            .into_iter()
            .filter(move |kind| listeners_wanted || *kind != ResourceType::Listener)
    }

    /// A stream begins: what is wanted is asked for now.
    pub(super) fn begin(&mut self, now: Instant) {
        if !self.was_usable {
            self.missing.clear();
        }
        self.begun = now;
        self.note_missing(now);
    }

    /// Since when nothing is known of what is wanted. Of what does not exist some control planes never say so.
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

    /// Whether there is nothing left to wait for.
    pub(super) fn knows_all(&self, options: &XdsOptions) -> bool {
        self.was_usable
            && (self.waits_until(options.fetch_timeout)).is_none_or(|until| until <= Instant::now())
    }

    /// Until when something that is wanted is waited for. What has not come in `patience` after it was asked for is taken not to
    /// exist, as Envoy does after its `initial_fetch_timeout`, until it comes.
    pub(super) fn waits_until(&self, patience: Duration) -> Option<Instant> {
        let is_answered =
            self.clusters.is_answered && (self.listeners.is_answered || !self.listeners_wanted);
        let named: BTreeSet<&String> = self.named_by_listeners().collect();
        let missing = self.missing.iter().map(|((kind, name), since)| {
            // Where listeners lead elsewhere nobody need have what the options name.
            let is_extra =
                *kind == ResourceType::Route && !named.is_empty() && !named.contains(name);
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
        listeners.flat_map(|held| &held.value.names)
    }

    /// Whether there is anything to serve: clusters and routes, or that there are no routes. Then there is for ever.
    pub(super) fn is_usable(&mut self) -> bool {
        let has_routes = !self.routes.held.is_empty()
            || (self.listeners.held.values()).any(|held| !held.value.inline.is_empty());
        let is_answered = self.listeners.is_answered || !self.listeners_wanted;
        let wanted = self.wanted(ResourceType::Route).unwrap_or_default();
        let are_absent = wanted.iter().all(|name| self.routes.absent.contains(name));
        self.was_usable |= self.clusters.is_answered && (has_routes || (is_answered && are_absent));
        self.was_usable
    }

    /// What is held of one type, for a control plane that only sends what differs.
    pub(super) fn versions(&self, resource_type: ResourceType) -> Vec<(String, String)> {
        match resource_type {
            ResourceType::Listener => self.listeners.versions().collect(),
            ResourceType::Route => self.routes.versions().collect(),
            ResourceType::Cluster => self.clusters.versions().collect(),
            ResourceType::Endpoint => self.endpoints.versions().collect(),
        }
    }

    /// Everything as services: each route configuration and each cluster is one, so that what is wrong with one harms no
    /// other.
    pub(super) fn discovery(&self) -> Discovery {
        let nothing = BTreeMap::new();
        let mut services = Vec::new();
        let mut add = |name: String, config: ProxyConfig| {
            services.push(DiscoveredService::configured(name, config));
        };
        for (name, held) in &self.routes.held {
            let composed = compose([&held.value], &nothing, &BTreeMap::new());
            add(format!("routes {name}"), composed.config);
        }
        for (name, held) in &self.listeners.held {
            if !held.value.inline.is_empty() {
                let composed = compose(&held.value.inline, &nothing, &BTreeMap::new());
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
        for problem in gathered(problems) {
            discovery = discovery.with_problem(problem);
        }
        discovery
    }
}

/// The same warning of many resources is one: a fleet has thousands of clusters that are alike.
fn gathered(problems: impl Iterator<Item = Problem>) -> Vec<Problem> {
    let mut found: Vec<(Problem, usize)> = Vec::new();
    let mut known: HashMap<(Cow<'static, str>, String), usize> = HashMap::new();
    for problem in problems {
        if problem.severity == Severity::Warning {
            let alike = (problem.code.clone(), problem.message.clone());
            let at = *known.entry(alike).or_insert(found.len());
            if let Some((_, more)) = found.get_mut(at) {
                *more += 1;
                continue;
            }
        }
        found.push((problem, 0));
    }
    let told = |(mut problem, more): (Problem, usize)| {
        match more {
            0 => {}
            1 => problem.message.push_str("; and at one more place"),
            more => problem.message += &format!("; and at {more} more places"),
        }
        problem
    };
    found.into_iter().map(told).collect()
}

/// Where a listener leads.
fn leads(listener: &Listener) -> Result<(Leads, Problems), Problems> {
    let (read, mut warnings) = read_listener(listener)?;
    let mut found = Leads::default();
    for source in read.routes {
        match source {
            RouteSource::Named(name) => found.names.push(name),
            RouteSource::Inline(inline) => {
                let (inline, more) = read_routes(&inline)?;
                warnings.append(more);
                found.inline.push(inline);
            }
        }
    }
    Ok((found, warnings))
}
