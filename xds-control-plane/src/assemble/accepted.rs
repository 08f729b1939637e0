//! A service in the form in which it is served.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::config::route::v3::VirtualHost;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;

use super::services::ServiceResources;
use super::validate::validate_assignment;
use super::{ResourceOptions, encode};
use crate::snapshot::Resource;

/// A service that was found good, encoded.
#[derive(Debug, Clone)]
pub(super) struct Accepted {
    /// The resources that it was made of. Its endpoints may be newer.
    resources: Arc<ServiceResources>,
    pub(super) clusters: Vec<Arc<Resource>>,
    /// The endpoints, by the name under which they are requested.
    pub(super) endpoints: BTreeMap<String, Endpoints>,
    pub(super) hosts: Vec<Bytes>,
    pub(super) listeners: Vec<Arc<Resource>>,
    /// Clusters that have lost their last endpoint, and keep it until no client sends them a share of
    /// requests any longer.
    lingering: BTreeSet<String>,
}

/// The endpoints of a cluster.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    assignment: ClusterLoadAssignment,
    pub(super) resource: Arc<Resource>,
}

impl Endpoints {
    fn new(assignment: ClusterLoadAssignment) -> Self {
        let resource = Arc::new(encode::assignment(&assignment));
        Self {
            assignment,
            resource,
        }
    }
}

impl Accepted {
    /// Encodes a service. Unchanged parts are not encoded again.
    pub(super) fn new(
        resources: Arc<ServiceResources>,
        before: Option<&Self>,
        options: &ResourceOptions,
    ) -> Self {
        let served = before;
        let delay = resources.refresh_delay.unwrap_or(options.refresh_delay);
        let before =
            before.filter(|before| before.resources.refresh_delay == resources.refresh_delay);
        let clusters = reuse(
            before.map(|before| (&*before.resources.clusters, &*before.clusters)),
            &resources.clusters,
            |cluster| Arc::new(encode::cluster(cluster, delay, options)),
        );
        let hosts = reuse(
            before.map(|before| (&*before.resources.virtual_hosts, &*before.hosts)),
            &resources.virtual_hosts,
            encode::virtual_host,
        );
        let listeners = reuse(
            before.map(|before| (&*before.resources.listeners, &*before.listeners)),
            &resources.listeners,
            |listener| Arc::new(encode::listener(listener, delay, options)),
        );
        let mut endpoints = BTreeMap::new();
        let mut lingering = BTreeSet::new();
        let mut put = |assignment: &ClusterLoadAssignment| {
            let name = &assignment.cluster_name;
            let known = served.and_then(|served| served.endpoints.get(name));
            let assignment = &*completed(assignment, known, &resources);
            if let Some(known) = served.and_then(|served| served.lingers(assignment, &resources)) {
                lingering.insert(name.clone());
                endpoints.insert(name.clone(), known);
                return;
            }
            let known = before.and_then(|before| before.endpoints.get(name));
            let endpoints_of = match known {
                Some(known) if known.assignment == *assignment => known.clone(),
                _ => Endpoints::new(assignment.clone()),
            };
            endpoints.insert(name.clone(), endpoints_of);
        };
        // A cluster gets ready only with its endpoints, even if there are none.
        let is_unknown = |cluster: &Cluster| {
            let name = encode::eds_name(cluster);
            resources.unknown_endpoints.contains_key(name)
        };
        for cluster in resources
            .clusters
            .iter()
            .filter(|cluster| encode::is_eds(cluster) && !is_unknown(cluster))
        {
            put(&ClusterLoadAssignment {
                cluster_name: encode::eds_name(cluster).to_owned(),
                ..ClusterLoadAssignment::default()
            });
        }
        for assignment in &wanted_of(&resources) {
            let is_assigned = !assignment.endpoints.is_empty()
                || !resources
                    .unknown_endpoints
                    .contains_key(&assignment.cluster_name);
            let was_served = served
                .is_some_and(|served| served.endpoints.contains_key(&assignment.cluster_name));
            if is_assigned || was_served {
                put(assignment);
            }
        }
        Self {
            resources,
            clusters,
            endpoints,
            hosts,
            listeners,
            lingering,
        }
    }

    /// Returns the endpoints of a cluster that should have none but must keep them for now. Its share of a
    /// service's requests goes to others, and until every client has that change, requests could fail.
    fn lingers(
        &self,
        assignment: &ClusterLoadAssignment,
        wanted: &ServiceResources,
    ) -> Option<Endpoints> {
        let name = &assignment.cluster_name;
        let known = self.endpoints.get(name)?;
        let is_emptied = !has_endpoints(assignment) && has_endpoints(&known.assignment);
        let has_share = |host: &VirtualHost| shares(host).any(|share| share == name);
        let moves_away = |host: &VirtualHost| {
            let mut wanted = wanted.virtual_hosts.iter();
            let next = wanted.find(|next| next.name == host.name);
            has_share(host) && next.is_some_and(|next| !has_share(next))
        };
        let lingers = is_emptied
            && (self.lingering.contains(name)
                || self.resources.virtual_hosts.iter().any(moves_away));
        lingers.then(|| known.clone())
    }

    /// The clusters whose endpoints have to go later than what took them away.
    pub(super) fn lingering(&self) -> &BTreeSet<String> {
        &self.lingering
    }

    pub(super) fn has_lingering(&self) -> bool {
        !self.lingering.is_empty()
    }

    /// Removes the lingering endpoints.
    pub(super) fn let_go(&mut self, wanted: &ServiceResources) -> Vec<Arc<str>> {
        self.lingering.clear();
        self.take_endpoints(wanted)
    }

    /// Takes newer endpoints for the existing clusters. Clusters whose newer endpoints are invalid keep the
    /// earlier ones. Returns the names of the changed clusters.
    pub(super) fn take_endpoints(&mut self, wanted: &ServiceResources) -> Vec<Arc<str>> {
        let mut changed = Vec::new();
        for assignment in &wanted_of(wanted) {
            let known = self.endpoints.get(&assignment.cluster_name);
            let assignment = &*completed(assignment, known, wanted);
            if self.lingers(assignment, wanted).is_some() {
                continue;
            }
            self.lingering.remove(&assignment.cluster_name);
            let Some(known) = self.endpoints.get_mut(&assignment.cluster_name) else {
                continue;
            };
            if known.assignment != *assignment && validate_assignment(assignment).is_empty() {
                *known = Endpoints::new(assignment.clone());
                changed.push(Arc::clone(known.resource.name()));
            }
        }
        changed
    }

    /// Returns true if it already has these endpoints for their clusters.
    pub(super) fn has_endpoints_of(&self, wanted: &ServiceResources) -> bool {
        wanted.assignments.iter().all(|assignment| {
            let known = self.endpoints.get(&assignment.cluster_name);
            let assignment = completed(assignment, known, wanted);
            known.is_some_and(|known| known.assignment == *assignment)
        })
    }

    pub(super) fn resources(&self) -> &ServiceResources {
        &self.resources
    }

    /// Returns the resources that it was made of, with its current endpoints.
    pub(super) fn current(&self) -> ServiceResources {
        let endpoints = self.endpoints.values();
        ServiceResources {
            assignments: endpoints
                .map(|endpoints| endpoints.assignment.clone())
                .collect(),
            is_partial: false,
            ..(*self.resources).clone()
        }
    }
}

/// Returns the new endpoints of each cluster that has some, or whose endpoints are not all known.
fn wanted_of(wanted: &ServiceResources) -> Vec<Cow<'_, ClusterLoadAssignment>> {
    let assigned: BTreeSet<_> = wanted.assignments.iter().map(|a| &a.cluster_name).collect();
    let unassigned = wanted
        .unknown_endpoints
        .keys()
        .filter(|name| !assigned.contains(name));
    let unassigned = unassigned.map(|name| {
        Cow::Owned(ClusterLoadAssignment {
            cluster_name: name.clone(),
            ..ClusterLoadAssignment::default()
        })
    });
    wanted
        .assignments
        .iter()
        .map(Cow::Borrowed)
        .chain(unassigned)
        .collect()
}

/// Returns the new endpoints, plus those served so far in datacenters with unknown state.
fn completed<'a>(
    wanted: &'a ClusterLoadAssignment,
    served: Option<&Endpoints>,
    resources: &ServiceResources,
) -> Cow<'a, ClusterLoadAssignment> {
    let unknown = resources.unknown_endpoints.get(&wanted.cluster_name);
    match (served, unknown) {
        (Some(served), Some(unknown)) => Cow::Owned(unknown.complete(wanted, &served.assignment)),
        _ => Cow::Borrowed(wanted),
    }
}

fn has_endpoints(assignment: &ClusterLoadAssignment) -> bool {
    let mut localities = assignment.endpoints.iter();
    localities.any(|locality| !locality.lb_endpoints.is_empty())
}

/// The clusters that get a share of a host's requests.
fn shares(host: &VirtualHost) -> impl Iterator<Item = &String> {
    let weighted = host.routes.iter().filter_map(|route| match &route.action {
        Some(Action::Route(action)) => match &action.cluster_specifier {
            Some(ClusterSpecifier::WeightedClusters(weighted)) => Some(&weighted.clusters),
            _ => None,
        },
        _ => None,
    });
    let clusters = weighted.flatten();
    clusters
        .filter(|cluster| cluster.weight.is_some_and(|weight| weight.value > 0))
        .map(|cluster| &cluster.name)
}

/// Encodes each message, but those that were there at the same place before.
fn reuse<M: PartialEq, E: Clone>(
    before: Option<(&[M], &[E])>,
    messages: &[M],
    encode: impl Fn(&M) -> E,
) -> Vec<E> {
    let known = |at: usize, message: &M| {
        let (messages, encoded) = before?;
        let is_same = messages.get(at)? == message;
        is_same.then(|| encoded.get(at).cloned()).flatten()
    };
    let encoded = messages.iter().enumerate();
    encoded
        .map(|(at, message)| known(at, message).unwrap_or_else(|| encode(message)))
        .collect()
}
