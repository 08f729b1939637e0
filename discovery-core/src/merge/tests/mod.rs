mod conflicts;
mod last_known_good;
mod policies;
mod publishing;
mod rejections;
#[cfg(feature = "dns")]
mod resolving;

use std::sync::Arc;
use std::time::Duration;

use proxy_model::ClusterId;
use proxy_model::config::{ClusterConfig, DestinationConfig, ProxyConfig, RouteConfig, RouteMatch};

use super::*;
use crate::provider::Strictness;
use crate::providers::StaticProvider;

/// A guard against hanging, in virtual time.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// Routes of the form `route→cluster` with the path `/route`, and clusters with a destination at that address.
fn simple(routes: &[(&str, &str)], clusters: &[(&str, &str)]) -> ProxyConfig {
    let mut config = ProxyConfig::default();
    for &(id, cluster) in routes {
        let route = RouteConfig {
            cluster_id: Some(cluster.into()),
            r#match: RouteMatch {
                path: Some(format!("/{id}")),
                ..Default::default()
            },
            ..Default::default()
        };
        config.routes.insert(id.into(), route);
    }
    for &(id, address) in clusters {
        let destination = DestinationConfig {
            address: address.to_owned(),
            ..Default::default()
        };
        let cluster = ClusterConfig {
            destinations: [("d".into(), destination)].into(),
            ..Default::default()
        };
        config.clusters.insert(id.into(), cluster);
    }
    config
}

fn provider(name: &str, config: ProxyConfig) -> StaticProvider {
    StaticProvider::new(name, config)
}

/// The serving configuration as `route→cluster` and `cluster=address`, in the order of the configuration.
fn serving(state: &MergedState) -> Vec<String> {
    let config = state.snapshot.config();
    let routes = config.routes.iter().map(|(id, route)| {
        let cluster = route.cluster_id.as_ref().map_or("", ClusterId::as_str);
        format!("{id}→{cluster}")
    });
    let clusters = config.clusters.iter().map(|(id, cluster)| {
        let addresses: Vec<_> = cluster.destinations.values().map(|d| &*d.address).collect();
        format!("{id}={}", addresses.join(","))
    });
    routes.chain(clusters).collect()
}

fn problems(state: &MergedState) -> Vec<String> {
    state.problems.iter().map(ToString::to_string).collect()
}

/// The state when everything that has happened so far has been merged.
async fn settled(merged: &Merged) -> Arc<MergedState> {
    // In paused time this ends when nothing else is left to do.
    tokio::time::sleep(Duration::from_secs(1)).await;
    merged.state()
}

async fn ready(merged: &Merged) -> Arc<MergedState> {
    tokio::time::timeout(LONG, merged.ready())
        .await
        .expect("the merge becomes ready")
}
