//! Configuration of the family as a source: whatever a gateway could serve, Envoys can be told.

use std::collections::BTreeMap;
use std::sync::Arc;

use discovery_core::Merged;
use tokio::sync::watch;

use super::reading::Reading;
use crate::assemble::{Owner, ServiceResources};
use crate::bridge::{BridgeOptions, to_envoy};

/// Follows a merged configuration for as long as it is polled.
pub(super) async fn follow(
    name: Arc<str>,
    merged: Merged,
    options: BridgeOptions,
    published: watch::Sender<Reading<Vec<Arc<ServiceResources>>>>,
) {
    let mut states = merged.subscribe();
    loop {
        let state = Arc::clone(&states.borrow_and_update());
        if state.ready {
            let (name, options) = (Arc::clone(&name), options.clone());
            let snapshot = Arc::clone(&state.snapshot);
            // It takes a while for thousands of services, on a thread where that holds nobody up.
            let bridge = move || to_envoy(&name, &snapshot, &options);
            let Ok(bridged) = tokio::task::spawn_blocking(bridge).await else {
                return;
            };
            let problems = state.problems.iter().map(ToString::to_string);
            let problems = problems
                .chain(bridged.problems.iter().map(ToString::to_string))
                .take(100);
            let problems = problems.collect();
            published.send_if_modified(|reading| {
                let services = renewed(reading.value.as_deref(), bridged.services);
                reading.read(services, problems)
            });
        } else {
            let waiting = state.waiting_for.join(", ");
            published.send_if_modified(|reading| reading.failed(format!("waiting for {waiting}")));
        }
        if states.changed().await.is_err() {
            return;
        }
    }
}

/// The services, those that stay the same as they were.
fn renewed(
    before: Option<&Vec<Arc<ServiceResources>>>,
    services: Vec<ServiceResources>,
) -> Vec<Arc<ServiceResources>> {
    let before: BTreeMap<&Owner, _> = before
        .into_iter()
        .flatten()
        .map(|service| (&service.owner, service))
        .collect();
    let renew = |service: ServiceResources| match before.get(&service.owner) {
        Some(known) if ***known == service => Arc::clone(known),
        _ => Arc::new(service),
    };
    services.into_iter().map(renew).collect()
}
