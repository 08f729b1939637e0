//! A provider of this project as a source of the control plane.

use std::collections::BTreeMap;
use std::sync::Arc;

use discovery_core::{ConfigProvider, ProviderState, ProviderStatus, SourceState, Strictness};
use proxy_model::compiled::ChosenPolicy;
use proxy_model::config::{PolicyConfigs, PolicyKind, ProxyConfig};
use proxy_model::{CompileOptions, Problems, Severity, Snapshot, same_id};
use tokio::sync::watch;

use super::{BridgeOptions, restriction, to_envoy};
use crate::assemble::{Owner, ServiceResources};
use crate::sources::{LeftOut, Provided, Reading};

/// The target of log lines.
const TARGET: &str = "xds::bridge";

/// Maximum number of problems that are reported with the resources.
const MOST_PROBLEMS: usize = 100;

/// Converts the configuration of `provider` to [resources](to_envoy): a
/// [source](crate::sources::Sources::with_provided) of a control plane.
///
/// A route with errors answers 503, and a cluster with errors is left out. If the criteria of a route have
/// errors, the route is left out, or, if the provider is
/// [strict](discovery_core::Strictness::AllOrNothing), the last configuration without such an error serves.
/// Everything that is left out or differs in Envoy is logged
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
    provide_below(provider, options, None)
}

/// Provides resources like [`provide`], for routes that are subject to the policies of another provider.
pub(crate) fn provide_below(
    provider: impl ConfigProvider + 'static,
    options: BridgeOptions,
    mut policies: Option<watch::Receiver<Arc<ProviderState>>>,
) -> Provided {
    let (sender, provided) = watch::channel(Reading::default());
    tokio::spawn(async move {
        let mut states = provider.subscribe();
        let mut told = Problems::new();
        loop {
            let state = Arc::clone(&states.borrow_and_update());
            let above = policies.as_mut().map(policies_of);
            publish(
                &provider,
                (&state, above.as_ref()),
                &options,
                &mut told,
                &sender,
            );
            tokio::select! {
                () = sender.closed() => return,
                () = changed(&mut policies) => {}
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

fn policies_of(states: &mut watch::Receiver<Arc<ProviderState>>) -> Arc<PolicyConfigs> {
    let state = states.borrow_and_update();
    let config = state.config.as_ref();
    config
        .map(|config| Arc::clone(&config.policies))
        .unwrap_or_default()
}

async fn changed(states: &mut Option<watch::Receiver<Arc<ProviderState>>>) {
    let has_ended = match states {
        Some(states) => states.changed().await.is_err(),
        None => true,
    };
    if has_ended {
        std::future::pending().await
    }
}

/// Returns the configuration with the policies of another one, to which its routes are no exceptions.
fn below(config: &ProxyConfig, policies: &Arc<PolicyConfigs>) -> ProxyConfig {
    let mut config = config.clone();
    config.policies = Arc::clone(policies);
    let authorization = PolicyKind::Authorization;
    if policies
        .get(authorization, ChosenPolicy::FALLBACK)
        .is_some()
    {
        for route in config.routes.values_mut() {
            let named = &mut route.authorization_policy;
            named.take_if(|name| same_id(name, "Anonymous"));
        }
    }
    config
}

/// Compiles a configuration, with the routes that have errors closed. The last value is true if there is a
/// route whose criteria have errors, so that it is left out.
pub(crate) fn compiled(config: &Arc<ProxyConfig>) -> (Snapshot, Problems, bool) {
    let options = CompileOptions::default();
    let (snapshot, problems) = Snapshot::compile_isolated(Arc::clone(config), &options);
    if snapshot.routes().len() == config.routes.len() {
        return (snapshot, problems, false);
    }
    let mut closed = ProxyConfig::clone(config);
    for (id, route) in &mut closed.routes {
        if snapshot.route(id).is_none() {
            *route = restriction::closed(route);
        }
    }
    let (snapshot, _) = Snapshot::compile_isolated(closed, &options);
    let is_short = snapshot.routes().len() < config.routes.len();
    (snapshot, problems, is_short)
}

fn publish(
    provider: &impl ConfigProvider,
    (state, policies): (&ProviderState, Option<&Arc<PolicyConfigs>>),
    options: &BridgeOptions,
    told: &mut Problems,
    sender: &watch::Sender<Reading<Vec<Arc<ServiceResources>>>>,
) {
    let name = provider.name();
    let failure = failure(&state.status);
    let Some(config) = &state.config else {
        if let Some(failure) = failure {
            sender.send_if_modified(|reading| reading.failed(failure));
        }
        return;
    };
    let config = match policies {
        Some(policies) => Arc::new(below(config, policies)),
        None => Arc::clone(config),
    };
    let (snapshot, mut problems, is_short) = compiled(&config);
    if is_short && provider.strictness() == Strictness::AllOrNothing {
        // Requests of the missing route would get to another one.
        let errors = problems.errors().map(ToString::to_string);
        let failure = errors.collect::<Vec<_>>().join("\n");
        sender.send_if_modified(|reading| reading.failed(failure));
        return;
    }
    let bridged = to_envoy(name, &snapshot, options);
    problems.append(bridged.problems);
    // One line per problem that is new, not per change.
    for problem in problems
        .iter()
        .filter(|problem| !told.iter().any(|old| old == *problem))
    {
        tracing::warn!(target: TARGET, provider = name, %problem, "Envoy does not support every setting");
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

#[cfg(test)]
mod tests {
    use proxy_model::config::PolicyConfig;

    use super::*;

    /// A label must not open what the files close for all routes.
    #[test]
    fn a_discovered_route_is_no_exception_to_the_fallback() {
        let text = r#"{"Routes":{"r":{"AuthorizationPolicy":"anonymous","Match":{"Path":"/"}}}}"#;
        let config = ProxyConfig::from_json(text).unwrap();
        for (defined, expected) in [("FallBack", true), ("other", false)] {
            let mut policies = PolicyConfigs::default();
            policies.insert(PolicyConfig {
                kind: PolicyKind::Authorization,
                name: defined.into(),
                settings: serde_json::Value::Null,
                timeout: None,
            });
            let below = Arc::new(below(&config, &Arc::new(policies)));
            let (snapshot, problems, _) = compiled(&below);
            assert!(problems.is_empty(), "{problems}");
            let is_closed = restriction::restriction(&snapshot.routes()[0]).is_some();
            assert_eq!(is_closed, expected, "{defined}");
        }
    }

    #[test]
    fn a_route_with_an_error_is_closed() {
        let text = r#"{"Routes":{"r":{"ClusterId":"c","Filters":["audit"],"Match":{"Path":"/"}},
            "s":{"ClusterId":"c","Match":{"Path":"/{"}}},"Clusters":{"c":{}}}"#;
        let config = Arc::new(ProxyConfig::from_json(text).unwrap());
        let (snapshot, problems, is_short) = compiled(&config);
        assert_eq!(snapshot.routes().len(), 1);
        assert!(snapshot.routes()[0].filters().is_empty());
        assert_eq!(snapshot.routes()[0].config().cluster_id, None);
        assert!(problems.has_errors());
        // Nothing closes it.
        assert!(is_short);
    }
}
