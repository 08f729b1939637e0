//! Clusters.

use super::policy::{self, PolicyWords};
use super::{Scope, affinity, destination, health, metadata, upstream};
use crate::compiled::{BalancingPolicy, Cluster, ClusterSource, DestinationSource};
use crate::config::ClusterConfig;
use crate::problem::pointer_to;

pub(super) fn compile(source: ClusterSource, scope: &mut Scope<'_>) -> Option<Cluster> {
    let config = source.config();
    if source.id().as_str().is_empty() {
        scope.problems.push(crate::problem::Problem::error(
            scope.pointer().to_owned(),
            "missing_cluster_id",
            "the cluster's id is empty",
        ));
    }
    let balancing = balancing(config, scope);
    let affinity = affinity::compile(config, scope);
    metadata::check(config.metadata.as_ref(), scope);
    let availability = health::availability(config, scope);
    let active = health::active(config, scope);
    let passive = health::passive(config, scope);
    let agent = health::agent(config, scope);
    let upstream = upstream::compile(config, scope);
    let mut destinations = Vec::with_capacity(config.destinations.len());
    for position in 0..config.destinations.len() {
        let Some(place) = DestinationSource::new(&source, position) else {
            break;
        };
        let pointer = pointer_to("Destinations", place.id().as_str());
        destinations.extend(destination::compile(place, &mut scope.below(&pointer)));
    }
    destination::check_weights(&destinations, scope);
    Some(Cluster {
        source,
        balancing: balancing?,
        availability: availability?,
        affinity: affinity.map(Box::new),
        active: active?,
        passive: passive?,
        agent: agent?.map(Box::new),
        upstream: upstream?,
        destinations,
    })
}

fn balancing(config: &ClusterConfig, scope: &mut Scope<'_>) -> Option<BalancingPolicy> {
    const BUILT_IN: [&str; 5] = [
        "PowerOfTwoChoices",
        "RoundRobin",
        "LeastRequests",
        "Random",
        "FirstAlphabetical",
    ];
    const KIND: PolicyWords = PolicyWords {
        name: "load balancing policy",
        unknown: "unknown_load_balancing_policy",
    };
    let name = policy::resolve(
        config.load_balancing_policy.as_ref(),
        KIND,
        &BUILT_IN,
        &scope.options.balancing,
        "LoadBalancingPolicy",
        scope,
    )?;
    Some(match &*name {
        "PowerOfTwoChoices" => BalancingPolicy::PowerOfTwoChoices,
        "RoundRobin" => BalancingPolicy::RoundRobin,
        "LeastRequests" => BalancingPolicy::LeastRequests,
        "Random" => BalancingPolicy::Random,
        "FirstAlphabetical" => BalancingPolicy::FirstAlphabetical,
        _ => BalancingPolicy::Custom(name),
    })
}
