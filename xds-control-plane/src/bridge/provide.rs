//! A provider of this project as a source of the control plane.

use std::collections::BTreeMap;
use std::sync::Arc;

use discovery_core::{ConfigProvider, ProviderState, ProviderStatus, SourceState};
use proxy_model::{CompileOptions, Problems, Severity, Snapshot};
use tokio::sync::watch;

use super::{BridgeOptions, to_envoy};
use crate::assemble::{Owner, ServiceResources};
use crate::sources::{LeftOut, Provided, Reading};

/// The target of log lines.
const TARGET: &str = "xds::bridge";

/// Maximum number of problems that are reported with the resources.
const MOST_PROBLEMS: usize = 100;

/// Converts the configuration of `provider` to [resources](to_envoy): a
/// [source](crate::sources::Sources::with_provided) of a control plane.
///
/// Routes and clusters with errors are left out. Everything that is left out or differs in Envoy is logged
/// and reported with the resources. The last known good resources stay while the provider has nothing else;
/// before its first configuration there are none.
///
/// A task of the current tokio runtime does the work. It ends with the last receiver and with the
/// provider's last state.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn provide(provider: impl ConfigProvider + 'static, options: BridgeOptions) -> Provided {
    let (sender, provided) = watch::channel(Reading::default());
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
    sender: &watch::Sender<Reading<Vec<Arc<ServiceResources>>>>,
) {
    let failure = failure(&state.status);
    let Some(config) = &state.config else {
        if let Some(failure) = failure {
            sender.send_if_modified(|reading| reading.failed(failure));
        }
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
    let shown = problems.iter().take(MOST_PROBLEMS).map(ToString::to_string);
    let shown = shown.collect();
    let left_out = left_out(&state.status, &problems);
    *told = problems;
    sender.send_if_modified(|reading| {
        let services = renewed(reading.value.as_deref(), bridged.services);
        let failed_before = reading.failure.take();
        let is_news = reading.read_in_part(services, shown, left_out);
        if let Some(failure) = failure {
            reading.failed(failure);
        }
        is_news || reading.failure != failed_before
    });
}

/// Returns the reason why the provider's configuration is not the newest.
fn failure(status: &ProviderStatus) -> Option<String> {
    let is_failing = matches!(status.state, SourceState::Failing | SourceState::Stopped);
    let why = status.last_error.as_ref().filter(|_| is_failing);
    why.map(|failure| failure.message.clone())
}

/// Returns the services that the provider does not serve in their current form, and the routes and clusters
/// without an equivalent in Envoy.
fn left_out(status: &ProviderStatus, problems: &Problems) -> Vec<LeftOut> {
    let quarantined = status.quarantined.iter().map(|quarantined| {
        let reasons = quarantined.problems.iter().map(ToString::to_string);
        let serves_last_known_good = quarantined.last_known_good.is_some();
        LeftOut::new(
            &*quarantined.service,
            reasons.collect(),
            serves_last_known_good,
        )
    });
    let mut by_place: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error);
    for problem in errors.take(MOST_PROBLEMS) {
        // A route or cluster: `/Routes/orders`.
        let place: Vec<_> = problem.pointer.splitn(4, '/').take(3).collect();
        let reasons = by_place.entry(place.join("/")).or_default();
        reasons.push(problem.to_string());
    }
    let places = by_place
        .into_iter()
        .map(|(place, reasons)| LeftOut::new(place, reasons, false));
    quarantined.chain(places).collect()
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
