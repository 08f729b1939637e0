//! A service in the form in which it is served.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;

use super::services::ServiceResources;
use super::validate::validate_assignment;
use super::{AssembleOptions, encode};
use crate::snapshot::Resource;

/// A service that was found good, encoded.
#[derive(Debug, Clone)]
pub(super) struct Accepted {
    /// What it was made of. Its endpoints may be newer.
    resources: Arc<ServiceResources>,
    pub(super) clusters: Vec<Arc<Resource>>,
    /// By the name that they are asked for by.
    pub(super) endpoints: BTreeMap<String, Endpoints>,
    pub(super) hosts: Vec<Bytes>,
    pub(super) listeners: Vec<Arc<Resource>>,
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
    /// Encodes a service. What is as it was before is not encoded again.
    pub(super) fn new(
        resources: Arc<ServiceResources>,
        before: Option<&Self>,
        options: &AssembleOptions,
    ) -> Self {
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
        let mut put = |assignment: &ClusterLoadAssignment| {
            let name = &assignment.cluster_name;
            let known = before.and_then(|before| before.endpoints.get(name));
            let endpoints_of = match known {
                Some(known) if known.assignment == *assignment => known.clone(),
                _ => Endpoints::new(assignment.clone()),
            };
            endpoints.insert(name.clone(), endpoints_of);
        };
        // A cluster gets ready only when it was told its endpoints, even if there are none.
        for cluster in resources
            .clusters
            .iter()
            .filter(|cluster| encode::is_eds(cluster))
        {
            put(&ClusterLoadAssignment {
                cluster_name: encode::eds_name(cluster).to_owned(),
                ..ClusterLoadAssignment::default()
            });
        }
        resources.assignments.iter().for_each(&mut put);
        Self {
            resources,
            clusters,
            endpoints,
            hosts,
            listeners,
        }
    }

    /// Takes newer endpoints for the clusters that it has. What is wrong with some keeps them as they were. Returns the names
    /// of those that changed.
    pub(super) fn take_endpoints(&mut self, wanted: &ServiceResources) -> Vec<Arc<str>> {
        let mut changed = Vec::new();
        for assignment in &wanted.assignments {
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

    /// Whether it has just these endpoints for the clusters that they are for.
    pub(super) fn has_endpoints_of(&self, wanted: &ServiceResources) -> bool {
        wanted.assignments.iter().all(|assignment| {
            let known = self.endpoints.get(&assignment.cluster_name);
            known.is_some_and(|known| known.assignment == *assignment)
        })
    }

    pub(super) fn resources(&self) -> &ServiceResources {
        &self.resources
    }

    /// What it was made of, with the endpoints that it has now.
    pub(super) fn current(&self) -> ServiceResources {
        let endpoints = self.endpoints.values();
        ServiceResources {
            assignments: endpoints
                .map(|endpoints| endpoints.assignment.clone())
                .collect(),
            ..(*self.resources).clone()
        }
    }
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
