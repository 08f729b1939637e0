mod cycles;
mod hints;
mod kept;
mod live_destinations;
mod not_enabled;
mod outages;
mod quiet;
mod seniority;
mod services;
mod timing;
mod unread;
mod validating;

use std::sync::Arc;
use std::time::Duration;

use proxy_model::config::{ClusterConfig, DestinationConfig, ProxyConfig, RouteConfig, RouteMatch};
use tokio::sync::watch;

use super::*;
use crate::discovery::DiscoveredService;
use crate::status::SourceState;
use crate::testing::ScriptedDiscoverer;

/// A guard against hanging, in virtual time.
const LONG: Duration = Duration::from_secs(24 * 3600);

fn options() -> RunnerOptions {
    RunnerOptions::default().with_seed(1)
}

/// A service with a cluster of its name, a route of its name and one destination at `address`.
fn service(name: &str, address: &str) -> DiscoveredService {
    DiscoveredService::configured(name, fragment(name, address))
}

fn fragment(name: &str, address: &str) -> ProxyConfig {
    let destination = DestinationConfig {
        address: address.to_owned(),
        ..Default::default()
    };
    let cluster = ClusterConfig {
        destinations: [("d1".into(), destination)].into(),
        ..Default::default()
    };
    let route = RouteConfig {
        cluster_id: Some(name.into()),
        r#match: RouteMatch {
            path: Some(format!("/{name}")),
            ..Default::default()
        },
        ..Default::default()
    };
    let mut config = ProxyConfig::default();
    config.clusters.insert(name.into(), cluster);
    config.routes.insert(name.into(), route);
    config
}

/// A service whose route cannot be compiled.
fn broken(name: &str) -> DiscoveredService {
    let mut config = fragment(name, "http://broken");
    config.routes[0].r#match.path = Some("/{unclosed".to_owned());
    DiscoveredService::configured(name, config)
}

/// The addresses that serve, by cluster: `a=http://1`.
fn serving(state: &ProviderState) -> Vec<String> {
    let config = state.config.as_deref();
    let clusters = config.iter().flat_map(|config| &config.clusters);
    clusters
        .map(|(id, cluster)| format!("{id}={}", cluster.destinations[0].address))
        .collect()
}

fn quarantined(state: &ProviderState) -> Vec<&str> {
    let services = state.status.quarantined.iter();
    services.map(|service| &*service.service).collect()
}

/// Returns the state after this many cycles have ended.
async fn after_cycles(
    source: &ScriptedDiscoverer,
    provider: &DiscoveryProvider,
    cycles: u64,
) -> Arc<ProviderState> {
    let waited = async {
        source.wait_for_calls(cycles as usize).await;
        loop {
            let state = provider.state();
            if state.status.cycles >= cycles && state.status.next_cycle.is_some() {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LONG, waited)
        .await
        .expect("the cycles go on")
}

async fn in_state(
    states: &mut watch::Receiver<Arc<ProviderState>>,
    state: SourceState,
) -> Arc<ProviderState> {
    let waited = states.wait_for(|now| now.status.state == state);
    let state = tokio::time::timeout(LONG, waited).await.expect("in time");
    Arc::clone(&state.expect("the runner runs"))
}
