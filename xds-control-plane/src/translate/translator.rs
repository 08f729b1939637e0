use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use discovery_core::text::shortened;

use super::defaults::Defaults;
use super::endpoints::Live;
use super::model::{CatalogService, Known, RegistryService, StaticConfig};
use super::names::not_for_gateways;
use super::options::TranslateOptions;
use super::{others, registry, tags};
use crate::assemble::{Owner, ServiceResources, Warning};

/// The resources of all services.
#[derive(Debug, Clone, Default)]
pub struct Translation {
    /// The resources, by owner. Unchanged services keep the same `Arc` as before.
    pub services: Vec<Arc<ServiceResources>>,
    /// Differences from the sources' settings, with the reasons.
    pub warnings: Vec<Warning>,
    /// Number of services that still have older settings of all clusters.
    pub behind: usize,
}

/// A service as it was translated.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) resources: ServiceResources,
    warnings: Vec<Warning>,
}

impl Translated {
    pub(super) fn new(resources: ServiceResources) -> Self {
        Self {
            resources,
            warnings: Vec::new(),
        }
    }

    /// Sets the endpoints of a cluster, as far as they are known.
    pub(super) fn assign(&mut self, cluster: &str, live: &Live, own: &str) {
        let unknown = live.unknown(own);
        // The known endpoints are better than none. If nothing is unknown, an empty list is sent too.
        if unknown.is_none() || !live.is_empty() {
            let assignment = live.assignment(cluster, own);
            self.resources.assignments.push(assignment);
        }
        if let Some(unknown) = unknown {
            let unknown_endpoints = &mut self.resources.unknown_endpoints;
            unknown_endpoints.insert(cluster.to_owned(), unknown);
        }
    }

    pub(super) fn warn(&mut self, code: &'static str, message: String) {
        let owner = self.resources.owner.clone();
        self.warnings.push(Warning::new(owner, code, message));
    }

    /// Reports domains that Envoys take and gateways do not.
    fn report_domains(&mut self) {
        let hosts = self.resources.virtual_hosts.iter();
        let domains: BTreeSet<&String> = hosts.flat_map(|host| &host.domains).collect();
        let without_port = |domain: &str| {
            let name = domain.rsplit_once(':').map(|(name, _)| name.to_owned());
            name.is_some_and(|name| domains.contains(&name))
        };
        let rejected: Vec<String> = (domains.iter())
            .filter(|domain| !without_port(domain))
            .filter_map(|domain| {
                let error = not_for_gateways(domain)?;
                let domain = shortened(domain, 100);
                Some(format!(
                    "gateways answer 503 for the domain {domain}, which only Envoys can serve: {error}"
                ))
            })
            .collect();
        for message in rejected {
            self.warn("domain_not_for_gateways", message);
        }
    }
}

/// The settings that are the same for all services, except while new ones are being rolled out.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) defaults: Arc<Defaults>,
    /// The own datacenter.
    pub(super) own: Arc<str>,
}

/// Translates the state of the sources repeatedly, and only the parts that have changed.
#[derive(Debug, Default)]
pub struct Translator {
    options: TranslateOptions,
    done: BTreeMap<Owner, TranslatedService>,
}

/// A service that was translated, and of what.
#[derive(Debug)]
struct TranslatedService {
    of: Ingredients,
    resources: Arc<ServiceResources>,
    warnings: Vec<Warning>,
}

/// The inputs of a service's translation, except the options. Compared by pointer.
#[derive(Debug)]
struct Ingredients {
    defaults: Arc<Defaults>,
    own: Arc<str>,
    service: Described,
    instances: Vec<Option<Arc<CatalogService>>>,
}

#[derive(Debug)]
enum Described {
    /// A service of the registry, with the names of its clusters. Those of branches may belong to other
    /// services.
    Registry(Arc<RegistryService>, Vec<Arc<str>>),
    /// A service that is described by its instances only.
    Tagged,
    Static(Arc<StaticConfig>),
}

impl Ingredients {
    fn is_same(&self, other: &Self) -> bool {
        let is_described_the_same = match (&self.service, &other.service) {
            (Described::Registry(one, names), Described::Registry(other, other_names)) => {
                Arc::ptr_eq(one, other) && names == other_names
            }
            (Described::Tagged, Described::Tagged) => true,
            (Described::Static(one), Described::Static(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        let are_the_same =
            |(one, other): (&Option<Arc<CatalogService>>, &Option<_>)| match (one, other) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (None, None) => true,
                _ => false,
            };
        is_described_the_same
            && self.own == other.own
            && Arc::ptr_eq(&self.defaults, &other.defaults)
            && self.instances.len() == other.instances.len()
            && self
                .instances
                .iter()
                .zip(&other.instances)
                .all(are_the_same)
    }
}

impl Translator {
    /// Has translated nothing yet.
    #[must_use]
    pub fn new(options: TranslateOptions) -> Self {
        Self {
            options,
            done: BTreeMap::new(),
        }
    }

    /// Translates the current data of the sources.
    pub fn translate(&mut self, known: &Known) -> Translation {
        self.translate_within(known, usize::MAX)
    }

    /// Translates like [`translate`](Self::translate), but at most `most` of the services that were
    /// translated before take new settings of all clusters. Every Envoy warms each of their clusters again.
    pub fn translate_within(&mut self, known: &Known, most: usize) -> Translation {
        let mut round = Round {
            left: most,
            behind: 0,
            before: std::mem::take(&mut self.done),
            done: BTreeMap::new(),
            known,
        };
        let options = &self.options;
        let mut of_registry: BTreeSet<Arc<str>> = BTreeSet::new();
        let owned = registry::owned(&known.registry);
        for service in &known.registry {
            let names = registry::cluster_names(service, &owned);
            if !registry::is_served(service) {
                continue;
            }
            let instances = names.iter().map(|name| round.instances(name)).collect();
            of_registry.extend(names.iter().cloned());
            let owner = Owner::new(super::REGISTRY, Arc::clone(&service.name));
            let described = Described::Registry(Arc::clone(service), names);
            round.translate(owner, described, instances, |instances, known| {
                registry::translate(service, instances, &owned, known, options)
            });
        }
        // Tags are for services that the registry does not know.
        for (name, service) in &known.catalog.services {
            // An unknown service may have opted in too; if it had before, it stays unchanged.
            let may_ask = tags::asks_to_be_served(service) || !service.unknown.is_empty();
            if of_registry.contains(name) || !may_ask {
                continue;
            }
            let owner = Owner::new(super::CONSUL, Arc::clone(name));
            let instances = vec![Some(Arc::clone(service))];
            round.translate(owner, Described::Tagged, instances, |_, known| {
                others::tagged(name, service, known, options)
            });
        }
        for service in &known.fixed.services {
            let instances = others::catalog_name(service).and_then(|name| round.instances(name));
            let owner = Owner::new(super::STATIC, Arc::clone(&service.name));
            let described = Described::Static(Arc::clone(&known.fixed));
            round.translate(owner, described, vec![instances], |instances, known| {
                let instances = instances.first().and_then(Option::as_deref);
                others::written(service, instances, known, options)
            });
        }
        for listener in &known.fixed.listeners {
            let owner = Owner::new(super::STATIC, format!("listener {}", listener.name));
            let described = Described::Static(Arc::clone(&known.fixed));
            round.translate(owner, described, Vec::new(), |_, known| {
                others::listening(listener, known, options)
            });
        }
        let behind = round.behind;
        self.done = round.done;
        let mut translation = Translation {
            behind,
            ..Translation::default()
        };
        for done in self.done.values() {
            translation.services.push(Arc::clone(&done.resources));
            translation.warnings.extend_from_slice(&done.warnings);
        }
        translation
    }
}

/// One translation of everything.
struct Round<'k> {
    before: BTreeMap<Owner, TranslatedService>,
    done: BTreeMap<Owner, TranslatedService>,
    known: &'k Known,
    /// Number of services that may still take new settings.
    left: usize,
    /// Number of services that keep older settings.
    behind: usize,
}

impl Round<'_> {
    fn instances(&self, name: &Arc<str>) -> Option<Arc<CatalogService>> {
        let catalog = &self.known.catalog;
        let listed = catalog.services.get(name);
        listed.or(catalog.unlisted.as_ref()).cloned()
    }

    /// Returns the settings for a service: the newest, if it is new or its turn.
    fn defaults_after(&mut self, before: Option<&TranslatedService>) -> Arc<Defaults> {
        let newest = &self.known.defaults;
        match before.map(|before| &before.of.defaults) {
            Some(older) if **older != **newest => {
                if self.left == 0 {
                    self.behind += 1;
                    return Arc::clone(older);
                }
                self.left -= 1;
                Arc::clone(newest)
            }
            _ => Arc::clone(newest),
        }
    }

    /// Translates a service, unless its inputs are unchanged.
    fn translate(
        &mut self,
        owner: Owner,
        service: Described,
        instances: Vec<Option<Arc<CatalogService>>>,
        translate: impl FnOnce(&[Option<Arc<CatalogService>>], &Surroundings) -> Translated,
    ) {
        let before = self.before.remove(&owner);
        let surroundings = Surroundings {
            defaults: self.defaults_after(before.as_ref()),
            own: Arc::clone(&self.known.catalog.own),
        };
        let of = Ingredients {
            defaults: Arc::clone(&surroundings.defaults),
            own: Arc::clone(&self.known.catalog.own),
            service,
            instances,
        };
        let done = match before {
            Some(before) if before.of.is_same(&of) => before,
            before => {
                let mut translated = translate(&of.instances, &surroundings);
                translated.report_domains();
                let same = before.map(|before| before.resources);
                let same = same.filter(|resources| **resources == translated.resources);
                TranslatedService {
                    of,
                    resources: same.unwrap_or_else(|| Arc::new(translated.resources)),
                    warnings: translated.warnings,
                }
            }
        };
        self.done.insert(owner, done);
    }
}
