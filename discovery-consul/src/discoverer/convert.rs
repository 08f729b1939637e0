//! The conversion of all datacenters' state to a discovery result. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use discovery_core::{DiscoveredService, Discovery, Labels};
use indexmap::IndexMap;
use proxy_model::{Problem, Problems};

use super::defaults::Defaults;
use super::destination::{Place, destination, is_live};
use super::labels::CombinedLabels;
use crate::options::ServiceOptions;
use crate::traefik;
use crate::watch::{DatacenterState, ServiceInstance, WatchState};

/// The service of Consul's own servers, which is not served.
pub(super) const CONSUL: &str = "consul";

/// The group of all services. Each datacenter has one list of them, and no service is removed while one of
/// the lists is missing.
const CATALOG: &str = "catalog";

/// Maximum number of left-out instances in a message.
const NAMED: usize = 3;

/// Returns the discovery result.
pub(super) fn discovery_of(
    state: &WatchState,
    defaults: &Defaults,
    options: &ServiceOptions,
) -> Discovery {
    let mut names: BTreeSet<&Arc<str>> = BTreeSet::new();
    for datacenter in &state.datacenters {
        names.extend(datacenter.services.keys());
        names.extend(datacenter.unread.keys());
    }
    names.retain(|name| ***name != *CONSUL);
    let services = names
        .into_iter()
        .map(|name| service(name, state, defaults, options).in_group(CATALOG));
    let mut discovery: Discovery = services.collect();
    if let Some(part) = unread_part(state) {
        let message =
            format!("{part}; services that are not listed elsewhere keep their last known state");
        let problem = Problem::warning("", "catalog_incomplete", message);
        discovery = discovery.group_failed(CATALOG, problem);
    }
    for problem in problems_of(state, defaults) {
        discovery = discovery.with_problem(problem);
    }
    discovery
}

/// Returns the part of the catalog that was never read, while which the absence of a service cannot be
/// known.
pub(super) fn unread_part(state: &WatchState) -> Option<String> {
    if !state.are_listed {
        return Some("it is not known yet which datacenters there are".to_owned());
    }
    let mut unread = state.datacenters.iter().filter(|dc| !dc.is_complete);
    let name = &unread.next()?.datacenter;
    Some(format!("the datacenter `{name}` is not read yet"))
}

/// A service in all datacenters.
fn service(
    name: &Arc<str>,
    state: &WatchState,
    defaults: &Defaults,
    options: &ServiceOptions,
) -> DiscoveredService {
    let instances = instances(name, state);
    if instances.is_empty() {
        // It is listed, but was never readable.
        let reasons = state
            .datacenters
            .iter()
            .filter_map(|dc| dc.unread.get(name));
        let reason = reasons.map(|reason| &**reason).next().unwrap_or_default();
        let problem = Problem::error("", "unreadable_service", reason);
        return DiscoveredService::failed(Arc::clone(name), problem);
    }
    let has_live = instances.iter().any(|(_, i)| is_live(i, options));
    if let Some(part) = unread_part(state).filter(|_| !has_live) {
        // All that live may be there.
        let message = format!("no instance of it is known to live, and {part}");
        let problem = Problem::warning("", "unreadable_service", message);
        return DiscoveredService::failed(Arc::clone(name), problem);
    }
    let mut combined = CombinedLabels::default();
    for (_, instance) in &instances {
        combined.add(instance, options);
    }
    let mut problems = combined.problems();
    let with_traefik =
        options.traefik_tags && combined.labels.is_empty() && !combined.traefik.is_empty();
    let mut translated = with_traefik.then(|| {
        let known = traefik::Surroundings {
            service: name,
            entry_points: &options.traefik_entry_points,
        };
        traefik::translate(&combined.traefik, known)
    });
    let mut labels = match &mut translated {
        None => combined.labels,
        Some(translated) => {
            let labels = std::mem::take(&mut translated.labels);
            // Problems of a service that did not opt in are not reported.
            let is_enabled = labels
                .get("enable")
                .is_some_and(|value| value.eq_ignore_ascii_case("true"));
            match is_enabled {
                true => {
                    problems.append(std::mem::take(&mut translated.problems));
                    prefixed(labels, &options.label_prefix)
                }
                false => Labels::new(),
            }
        }
    };
    let is_asking = !labels.is_empty() || options.enabled_by_default;
    if is_asking {
        defaults.complete(&mut labels);
    }
    let destinations = destinations(&instances, options, translated.as_ref(), &mut problems);
    let mut service = DiscoveredService::labelled(Arc::clone(name), labels, destinations);
    if is_asking {
        for problem in problems.iter() {
            service = service.with_problem(problem.clone());
        }
    }
    service
}

/// The instances of a service, those of the own datacenter first.
fn instances<'s>(name: &Arc<str>, state: &'s WatchState) -> Vec<(Place, &'s ServiceInstance)> {
    let mut all = Vec::new();
    for datacenter in &state.datacenters {
        let place = Place {
            datacenter: Arc::clone(&datacenter.datacenter),
            is_own: state.own.as_ref() == Some(&datacenter.datacenter),
        };
        let service = datacenter.services.get(name);
        let instances = service.map(|service| service.instances.iter());
        all.extend(
            instances
                .into_iter()
                .flatten()
                .map(|instance| (place.clone(), instance)),
        );
    }
    all
}

fn destinations(
    instances: &[(Place, &ServiceInstance)],
    options: &ServiceOptions,
    traefik: Option<&traefik::Translated>,
    problems: &mut Problems,
) -> Vec<(
    proxy_model::DestinationId,
    proxy_model::config::DestinationConfig,
)> {
    let mut by_address: IndexMap<String, _> = IndexMap::new();
    let mut left_out: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (place, instance) in instances {
        if !is_live(instance, options) {
            continue;
        }
        match destination(instance, place, options, traefik) {
            // Two ids for one address are one destination; the nearest names it.
            Ok((id, config)) => {
                let address = config.address.clone();
                by_address.entry(address).or_insert((id, config));
            }
            Err(reason) => left_out.entry(reason).or_default().push(&instance.id),
        }
    }
    for (reason, ids) in left_out {
        let named: Vec<_> = ids
            .iter()
            .take(NAMED)
            .map(|id| format!("`{}`", discovery_core::text::shortened(id, 100)))
            .collect();
        let more = match ids.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!("left out: {}{more}: {reason}", named.join(", "));
        problems.push(Problem::warning("", "instance_left_out", message));
    }
    by_address.into_values().collect()
}

fn prefixed(labels: Labels, prefix: &str) -> Labels {
    let labels = labels.into_iter();
    labels
        .map(|(key, value)| (format!("{prefix}{key}"), value))
        .collect()
}

/// Returns the problems of the whole.
pub(super) fn problems_of(state: &WatchState, defaults: &Defaults) -> Problems {
    let mut problems = Problems::new();
    if let Some(failure) = &state.failure {
        problems.push(Problem::warning("", "datacenters_unknown", &**failure));
    }
    if let Some(problem) = &defaults.problem {
        problems.push(Problem::warning("", "defaults_unusable", &**problem));
    }
    for datacenter in &state.datacenters {
        problems.extend(problems_of_datacenter(datacenter));
    }
    problems
}

/// Returns the message that a token no longer shows the services.
pub(super) fn hides(datacenter: &str) -> String {
    format!(
        "Consul hides the services of the datacenter `{datacenter}` that were visible before; their \
         last known state serves, and nothing is removed"
    )
}

fn problems_of_datacenter(state: &DatacenterState) -> Vec<Problem> {
    let name = &state.datacenter;
    let mut problems = Vec::new();
    if let Some(failure) = &state.failure {
        let message = format!(
            "the datacenter `{name}` cannot be polled; its last known state is served: {failure}"
        );
        problems.push(Problem::warning("", "datacenter_failing", message));
    } else if !state.is_complete {
        let message = format!("the datacenter `{name}` is not read yet");
        problems.push(Problem::warning("", "datacenter_incomplete", message));
    }
    if state.is_hidden {
        let message = hides(name);
        let suggestion = "see that the token still has `service_prefix \"\" { policy = \"read\" }`";
        let problem = Problem::warning("", "catalog_hidden", message);
        problems.push(problem.with_suggestion(suggestion));
    } else if state.held > 0 {
        let message = format!(
            "{} instances of the datacenter `{name}` disappeared at once, and are kept until that is confirmed",
            state.held
        );
        problems.push(Problem::warning("", "removal_held", message));
    }
    if !state.unread.is_empty() {
        let message = format!(
            "{} services of the datacenter `{name}` cannot be read; their last known state is served",
            state.unread.len()
        );
        problems.push(Problem::warning("", "services_unread", message));
    }
    problems
}
