//! A provider of the family as a source of the control plane.

use std::sync::Arc;

use discovery_core::{ConfigProvider, ProviderState};
use proxy_model::{CompileOptions, Problems, Snapshot};
use tokio::sync::watch;

use super::{BridgeOptions, to_envoy};
use crate::assemble::ServiceResources;
use crate::sources::Provided;

/// What log lines are filtered by.
const TARGET: &str = "xds::bridge";

/// What `provider` provides, as [resources](to_envoy): a [source](crate::sources::Sources::with_provided) of a control plane.
///
/// Routes and clusters that have errors are left out, and everything that is left out or differs in Envoy is in the log. What
/// was last good stays while the provider has nothing else; before its first configuration there is nothing.
///
/// The work is done by a task of the current tokio runtime, which ends with the last receiver and with the provider's last
/// state.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub fn provide(provider: impl ConfigProvider + 'static, options: BridgeOptions) -> Provided {
    let (sender, provided) = watch::channel(None);
    tokio::spawn(async move {
        let mut states = provider.subscribe();
        let mut told = Problems::new();
        loop {
            let state = Arc::clone(&states.borrow_and_update());
            publish(provider.name(), &state, &options, &mut told, &sender);
            tokio::select! {
                () = sender.closed() => return,
                changed = states.changed() => {
                    if changed.is_err() {
                        // The last state goes on serving.
                        sender.closed().await;
                        return;
                    }
                }
            }
        }
    });
    provided
}

fn publish(
    name: &str,
    state: &ProviderState,
    options: &BridgeOptions,
    told: &mut Problems,
    sender: &watch::Sender<Option<Arc<[Arc<ServiceResources>]>>>,
) {
    let Some(config) = &state.config else {
        return;
    };
    let (snapshot, mut problems) =
        Snapshot::compile_isolated(Arc::clone(config), &CompileOptions::default());
    let bridged = to_envoy(name, &snapshot, options);
    problems.append(bridged.problems);
    // One line per problem that is new, not per change.
    for problem in problems
        .iter()
        .filter(|problem| !told.iter().any(|old| old == *problem))
    {
        tracing::warn!(target: TARGET, provider = name, %problem, "Envoy does not do all that is asked");
    }
    *told = problems;
    let services: Vec<_> = bridged.services.into_iter().map(Arc::new).collect();
    sender.send_if_modified(|provided| {
        let changed = provided.as_deref() != Some(&services[..]);
        if changed {
            *provided = Some(services.into());
        }
        changed
    });
}
