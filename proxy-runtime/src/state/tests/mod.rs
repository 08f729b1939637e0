use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proxy_model::compiled::{ClusterIndex, RouteIndex};
use proxy_model::{ClusterId, Snapshot};

mod affinity;
mod availability;
mod carry_over;
mod failover;
mod passive;
mod race;
mod routes;

use super::*;
use crate::balance::Random;
use crate::fixtures::snapshot;
use crate::harness::BalancerHarness;
use crate::health::Health;

fn context(zone: Option<&str>) -> Arc<PickContext> {
    Arc::new(PickContext {
        zone: zone.map(Into::into),
        random: Random::seeded(1),
        ..PickContext::default()
    })
}

fn first(snapshot: Arc<Snapshot>) -> Generation {
    Generation::first(snapshot, &Registered::default(), &context(None)).unwrap()
}

fn next(before: &Generation, snapshot: Arc<Snapshot>) -> Generation {
    let next = before
        .next(snapshot, &Registered::default(), &context(None))
        .unwrap();
    before.retire(&next);
    next
}

/// Sets the health of the destinations of the first cluster, in order.
fn set_health(generation: &Generation, healths: &[Health]) {
    let state = generation.cluster(ClusterIndex(0));
    for (destination, health) in state.destinations().iter().zip(healths) {
        destination
            .health()
            .update(|record| record.health = *health);
    }
    state.live().health_changed();
}

fn pick(generation: &Generation) -> Option<Picked> {
    let cluster = &generation.snapshot().clusters()[0];
    generation
        .cluster(ClusterIndex(0))
        .pick(cluster, &BalancerHarness::GET)
        .ok()
}

/// The ids of the available destinations of the first cluster.
fn available(generation: &Generation) -> Vec<String> {
    let cluster = &generation.snapshot().clusters()[0];
    let available = generation.cluster(ClusterIndex(0)).available(cluster);
    let id = |index: &proxy_model::compiled::DestinationIndex| {
        cluster.destinations()[index.0 as usize].id().to_string()
    };
    available.members().iter().map(id).collect()
}

fn destination(generation: &Generation, position: usize) -> Arc<DestinationState> {
    Arc::clone(&generation.cluster(ClusterIndex(0)).destinations()[position])
}

use crate::cluster::PickContext;
use crate::cluster::Picked;
use crate::live::DestinationState;
use Health::{Healthy, Unhealthy, Unknown};

/// Two tiers, two zones and a destination without weight.
const TIERS: &str = r#"{"Clusters":{"c":{
    "HealthCheck":{"AvailableDestinationsPolicy":"POLICY","Active":{"Enabled":true}},
    "Destinations":{
        "a":{"Address":"http://h1/","Zone":"east"},
        "b":{"Address":"http://h2/","Zone":"West"},
        "c":{"Address":"http://h3/","Priority":1,"Zone":"west"},
        "d":{"Address":"http://h4/","Weight":0}}}}}"#;

const ONE: &str = r#"{"Clusters":{"Orders":{"Destinations":{
    "D1":{"Address":"http://h1/"},"d2":{"Address":"http://h2/"}}}}}"#;
