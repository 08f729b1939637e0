//! Tests of the configuration made from an in-memory Consul.

mod dialects;
mod life;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::runner::Once;
use discovery_core::{ConfigProvider, DiscoveryProvider, ProviderState};
use proxy_model::ClusterId;
use proxy_model::config::{ClusterConfig, RouteConfig};
use testkit::time::guarded;

use super::*;
use crate::client::{CheckDefinition, HealthStatus, ServiceDefinition};
use crate::options::ServiceOptions;
use crate::testing::FakeConsul;
use crate::watch::{Datacenters, WatchOptions};

/// An instance with labels to be served at `<service>.example`, with a check of its id.
pub(super) fn served(service: &str, id: &str, port: u16) -> ServiceDefinition {
    let check = CheckDefinition::ttl(id, Duration::from_secs(600));
    ServiceDefinition::new(service, port)
        .with_id(id)
        .with_tag("proxy.enable=true")
        .with_tag(format!("proxy.routes.main.hosts={service}.example"))
        .with_check(check)
}

pub(super) fn all_datacenters() -> DiscoveryOptions {
    let watch = WatchOptions::default().with_datacenters(Datacenters::All);
    DiscoveryOptions::default().with_watch(watch)
}

pub(super) fn discoverer(consul: &FakeConsul, options: DiscoveryOptions) -> ConsulDiscoverer {
    ConsulDiscoverer::with_client(consul.client(), options)
}

/// Runs one cycle, and returns its result.
pub(super) async fn once(consul: &FakeConsul, options: DiscoveryOptions) -> Once {
    discoverer(consul, options).runner().run_once().await
}

pub(super) fn cluster<'s>(state: &'s ProviderState, name: &str) -> Option<&'s ClusterConfig> {
    let config = state.config.as_ref()?;
    config.clusters.get(&ClusterId::from(name))
}

pub(super) fn route<'s>(state: &'s ProviderState, id: &str) -> &'s RouteConfig {
    let config = state.config.as_ref().unwrap();
    let found = config
        .routes
        .iter()
        .find(|(key, _)| *key.to_string() == *id);
    found
        .unwrap_or_else(|| panic!("no {id} in {:#?}", config.routes))
        .1
}

/// The destinations of a service: address with priority and weight.
pub(super) fn destinations(state: &ProviderState, name: &str) -> BTreeMap<String, (u32, u32)> {
    let cluster = cluster(state, name);
    let destinations = cluster
        .into_iter()
        .flat_map(|cluster| cluster.destinations.values());
    destinations
        .map(|d| (d.address.clone(), (d.priority.unwrap(), d.weight.unwrap())))
        .collect()
}

/// Codes and pointers of all problems.
pub(super) fn problems(state: &ProviderState) -> Vec<(String, String)> {
    let problems = state.problems.iter();
    problems
        .map(|p| (p.code.to_string(), p.pointer.clone()))
        .collect()
}

pub(super) async fn when(
    provider: &DiscoveryProvider,
    what: &str,
    is_so: impl Fn(&ProviderState) -> bool,
) -> Arc<ProviderState> {
    let mut states = provider.subscribe();
    let state = guarded(what, states.wait_for(|state| is_so(state))).await;
    Arc::clone(&state.unwrap())
}
