//! Tests of the client.

mod closed;
mod delta;
mod full;
mod inline;
mod loss;
mod missing;
mod restart;
mod restart_law;
mod script;
mod tls;
mod written;

use std::sync::Arc;
use std::time::Duration;

use discovery_core::{ConfigProvider, ProviderState};
use proxy_model::config::ProxyConfig;
use tokio::sync::watch;
use tokio::time::timeout;

/// The time limit for a state. With paused time, a missing state would go unnoticed: periodic timers
/// advance the clock forever.
const PATIENCE: Duration = Duration::from_secs(120);

/// A route to a cluster with one destination.
const ONE: &str = r#"{"Routes":{"r":{"ClusterId":"c","Match":{"Path":"/{**rest}"}}},
    "Clusters":{"c":{"Destinations":{"d":{"Address":"http://10.0.0.1/"}}}}}"#;

/// The first state that is as it should be.
async fn state(
    states: &mut watch::Receiver<Arc<ProviderState>>,
    wanted: impl Fn(&ProviderState) -> bool,
) -> Arc<ProviderState> {
    let waited = timeout(PATIENCE, states.wait_for(|state| wanted(state))).await;
    if let Ok(state) = waited.map(|state| Arc::clone(&*state.unwrap())) {
        return state;
    }
    let last = states.borrow();
    panic!(
        "not within {PATIENCE:?}; the last state: {:#?}\n{}",
        last.config, last.problems
    );
}

/// The state that has this configuration.
async fn serving(
    states: &mut watch::Receiver<Arc<ProviderState>>,
    json: &str,
) -> Arc<ProviderState> {
    let config = ProxyConfig::from_json(json).unwrap();
    state(states, |state| state.config.as_deref() == Some(&config)).await
}

fn states(provider: &impl ConfigProvider) -> watch::Receiver<Arc<ProviderState>> {
    provider.subscribe()
}
