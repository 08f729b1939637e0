//! Services that are not in the registry: those that opt in by a tag, and those of the static file.

use std::sync::Arc;

use super::clusters::{ClusterSettings, cluster};
use super::endpoints::Live;
use super::listeners;
use super::model::{CatalogService, Protocol, StaticListener, StaticService};
use super::names::{Reach, all_with_ports, reach, usable_domain};
use super::routes::{HostSettings, plain_host};
use super::translator::Surroundings;
use super::{CONSUL, STATIC, TranslateOptions, Translated, tags};
use crate::assemble::{Owner, ServiceResources};

/// Translates a service of the catalog that opts in.
pub(super) fn tagged(
    name: &Arc<str>,
    service: &CatalogService,
    known: &Surroundings,
    options: &TranslateOptions,
) -> Translated {
    let mut settings = tags::read(service);
    let mut out = begin(Owner::new(CONSUL, Arc::clone(name)), known);
    // Its settings are in the tags of its instances.
    let is_said_here = || {
        let here = service.datacenters.get(&known.own);
        here.is_some_and(|instances| tags::ask_to_be_served(instances))
    };
    out.resources.is_partial =
        !service.unknown.is_empty() || (!service.unread.is_empty() && !is_said_here());
    for (code, message) in &settings.problems {
        out.warn(code, message.clone());
    }
    settings
        .domains
        .retain(|domain| match reach(domain, options) {
            Reach::Elsewhere => true,
            Reach::OneOfRegistry => {
                let message = format!(
                    "the domain {domain} is one that a service of the registry may have, which then takes it"
                );
                out.warn("domain_of_registry", message);
                true
            }
            Reach::AllOfRegistry => {
                let message = format!(
                    "the tag domain-{domain} is ignored: it would take all requests for services of the registry that do not run"
                );
                out.warn("bad_domain", message);
                false
            }
        });
    let live = Live::of(Some(service));
    for (code, message) in &live.problems {
        out.warn(code, message.clone());
    }
    let cluster_settings = ClusterSettings {
        name,
        protocol: Protocol::Http,
        connect_timeout: None,
        limits: settings.limits,
    };
    if let Some(operation) = settings.domains.first() {
        out.resources
            .clusters
            .push(cluster(&cluster_settings, &known.defaults, options));
        out.assign(name, &live, &known.own);
        out.resources.virtual_hosts.push(plain_host(HostSettings {
            name,
            domains: all_with_ports(&settings.domains, options),
            operation,
            timeout: settings.timeout.unwrap_or(known.defaults.upstream_timeout),
        }));
    }
    out
}

/// Returns the service of the catalog with a static service's instances. `None` if these are in the static
/// file.
pub(super) fn catalog_name(service: &StaticService) -> Option<&Arc<str>> {
    let named = service.catalog_service.as_ref().unwrap_or(&service.name);
    service.endpoints.is_none().then_some(named)
}

/// A service of the static file.
pub(super) fn written(
    service: &StaticService,
    instances: Option<&CatalogService>,
    known: &Surroundings,
    options: &TranslateOptions,
) -> Translated {
    let name = &service.name;
    let mut out = begin(Owner::new(STATIC, Arc::clone(name)), known);
    let own = &known.own;
    let live = match &service.endpoints {
        Some(endpoints) => Live::written(endpoints, own),
        None => Live::of(instances),
    };
    for (code, message) in &live.problems {
        out.warn(code, message.clone());
    }
    let settings = ClusterSettings {
        name,
        protocol: service.protocol,
        connect_timeout: service.connect_timeout,
        limits: service.limits,
    };
    out.resources
        .clusters
        .push(cluster(&settings, &known.defaults, options));
    out.assign(name, &live, own);
    let mut domains = Vec::new();
    for domain in &service.domains {
        match usable_domain(domain) {
            Ok(domain) => domains.push(domain),
            Err(why) => {
                let domain = discovery_core::text::shortened(domain, 100);
                out.warn(
                    "bad_domain",
                    format!("the domain {domain:?} {why}; it is left out"),
                );
            }
        }
    }
    domains.sort();
    domains.dedup();
    if let Some(operation) = domains.first() {
        let mut all = all_with_ports(&domains, options);
        all.sort();
        out.resources.virtual_hosts.push(plain_host(HostSettings {
            name,
            domains: all,
            operation,
            timeout: service.timeout.unwrap_or(known.defaults.upstream_timeout),
        }));
    }
    out
}

/// A listener of the static file.
pub(super) fn listening(
    listener: &StaticListener,
    known: &Surroundings,
    options: &TranslateOptions,
) -> Translated {
    let owner = Owner::new(STATIC, format!("listener {}", listener.name));
    let mut out = begin(owner, known);
    out.resources
        .listeners
        .push(listeners::listener(listener, options));
    out
}

fn begin(owner: Owner, known: &Surroundings) -> Translated {
    let mut out = Translated::new(ServiceResources::new(owner));
    out.resources.refresh_delay = Some(known.defaults.refresh_delay);
    out
}
