//! Routes and clusters of a catalog.
//!
//! A service becomes a cluster `service:{name}` and a route `route:{name}`, the service of legacy mode
//! `backend-cluster` and `backend-route`. A service without a [`RouteHint`] has no route, unless it is the
//! only one: then its route takes everything.
//!
//! With [`version_header`](GenerateOptions::version_header), each version of a service gets an additional
//! cluster `service:{name}@version={version}` and route `route:{name}@version={version}`, which matches the
//! requests of the service that have the header. Regions get the same with `@region=`, and combinations
//! with `@version={version},region={region}`.

mod cluster;
mod options;
#[cfg(test)]
mod tests;
mod variants;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use discovery_core::{DiscoveredService, Discovery, LabelsParser, Parsed};
use proxy_model::config::{ProxyConfig, RouteConfig, RouteMatch};
use proxy_model::{ClusterId, Problem, Problems, RouteId, Severity};

use self::cluster::ClusterPlan;
pub use self::options::{GenerateOptions, HealthOptions, WeightStrategy};
use self::variants::Variants;
use crate::catalog::{RouteHint, Service, ServiceCatalog};

const LEGACY_CLUSTER: &str = "backend-cluster";
const LEGACY_ROUTE: &str = "backend-route";

/// The template of a route that takes everything.
const CATCH_ALL: &str = "/{**catch-all}";

/// A service of a catalog, as a [parser](LabelsParser) gets it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CatalogService<'c> {
    /// The service: its instances and hints from the tags of its members.
    pub service: &'c Service,
    /// The catalog that it is in.
    pub catalog: &'c ServiceCatalog,
    /// The ids that clusters of the other services may have.
    pub clusters: &'c HashSet<ClusterId>,
}

impl CatalogService<'_> {
    /// True if this is the service of legacy mode, which gets all requests.
    pub fn is_legacy(&self) -> bool {
        let legacy = self.catalog.legacy.as_ref();
        legacy.is_some_and(|legacy| std::ptr::eq(legacy, self.service))
    }
}

/// A parser of services from the tags of their members.
pub(crate) type TagsParser = dyn for<'c> LabelsParser<CatalogService<'c>>;

/// The tags of the Serf reference design: `service`, `host`, `route-path` and others, which [`crate::catalog`] reads.
///
/// A service becomes one cluster and one route, and more with [`GenerateOptions::version_header`] and
/// [`GenerateOptions::region_header`]. No tag can make a service's configuration invalid: its problems are reported as
/// warnings.
#[derive(Clone, Debug, Default)]
pub struct ServiceTags {
    options: GenerateOptions,
}

impl ServiceTags {
    /// Creates the dialect with these options.
    pub fn new(options: GenerateOptions) -> Self {
        Self { options }
    }
}

impl LabelsParser<CatalogService<'_>> for ServiceTags {
    fn parse(&self, name: &str, described: &CatalogService<'_>) -> Parsed {
        let CatalogService {
            service,
            catalog,
            clusters,
        } = *described;
        let plan = ClusterPlan::new(&self.options);
        let mut said = service.problems.clone();
        if described.is_legacy() {
            let made = Made {
                cluster: ClusterId::from(LEGACY_CLUSTER),
                route: RouteId::from(LEGACY_ROUTE),
                criteria: by_path(CATCH_ALL),
            };
            let variants = Variants::default();
            let config = made.config(service, &variants, &HashSet::new(), &plan, &mut said);
            return Parsed::new(config).with_problems(said);
        }
        let is_only = catalog.only_service().is_some_and(|only| **only == *name);
        let criteria = match &service.hint {
            RouteHint::Host(host) => Some(by_host(host)),
            RouteHint::Path(path) => Some(by_path(path)),
            RouteHint::None if is_only => Some(by_path(CATCH_ALL)),
            RouteHint::None | RouteHint::Unusable => None,
        };
        let config = match criteria {
            Some(criteria) => {
                let variants = Variants::of(service, &self.options, &mut said);
                let made = Made {
                    cluster: cluster_id(name),
                    route: route_id(name),
                    criteria,
                };
                made.config(service, &variants, clusters, &plan, &mut said)
            }
            None => {
                said.push(no_route(catalog, service));
                let mut config = ProxyConfig::default();
                let cluster = plan.cluster(&service.instances, &mut said);
                config.clusters.insert(cluster_id(name), cluster);
                config
            }
        };
        Parsed::new(config).with_problems(said)
    }
}

/// Returns the configuration of a catalog by its [`ServiceTags`]: one service for each of its services.
///
/// A pure function: equal catalogs give equal results. A service of which nothing can be served is
/// quarantined, and its problems are errors.
pub fn discovery_of(catalog: &ServiceCatalog, options: &GenerateOptions) -> Discovery {
    let mut discovery = discovery_by(catalog, &ServiceTags::new(options.clone()));
    let mut problems = options.check();
    problems.append(std::mem::take(&mut discovery.problems));
    discovery.problems = problems;
    discovery
}

/// Returns the configuration of a catalog by a parser.
pub(crate) fn discovery_by(catalog: &ServiceCatalog, parser: &TagsParser) -> Discovery {
    let mut services = Vec::with_capacity(catalog.services.len() + catalog.unusable.len() + 1);
    let clusters: HashSet<ClusterId> = catalog
        .services
        .keys()
        .map(|name| cluster_id(name))
        .collect();
    let described = |service| CatalogService {
        service,
        catalog,
        clusters: &clusters,
    };
    for (name, service) in &catalog.services {
        services.push(discovered(Arc::clone(name), &described(service), parser));
    }
    if let Some(service) = &catalog.legacy {
        services.push(discovered(
            LEGACY_CLUSTER.into(),
            &described(service),
            parser,
        ));
    }
    for (name, said) in &catalog.unusable {
        // It asks to be served and nothing of it is, so the operator has to see it.
        let errors = said.iter().cloned().map(|mut problem| {
            problem.severity = Severity::Error;
            problem
        });
        let nothing = DiscoveredService::configured(Arc::clone(name), ProxyConfig::default());
        services.push(nothing.with_rejected(errors.collect()));
    }
    services.sort_by(|a, b| a.name.cmp(&b.name));
    let mut discovery = Discovery::new(services);
    discovery.problems = catalog.problems.clone();
    discovery
}

/// Runs the parser, which may be foreign code. A panic affects only this service.
fn discovered(
    name: Arc<str>,
    described: &CatalogService<'_>,
    parser: &TagsParser,
) -> DiscoveredService {
    match catch_unwind(AssertUnwindSafe(|| parser.parse(&name, described))) {
        Ok(Parsed {
            fragment: Some(config),
            problems,
            ..
        }) => {
            let mut service = DiscoveredService::configured(name, config);
            service.problems = problems;
            service
        }
        Ok(Parsed { problems, .. }) => {
            let mut service = DiscoveredService::not_enabled(name);
            service.problems = problems;
            service
        }
        Err(_) => {
            let problem = Problem::error("", "parser_failed", "the parser of tags panicked");
            DiscoveredService::failed(name, problem)
        }
    }
}

/// The ids of a service's cluster and route, and the route's criteria.
struct Made {
    cluster: ClusterId,
    route: RouteId,
    criteria: RouteMatch,
}

impl Made {
    /// Makes the cluster and the route of a service, and those of its variants, except variants whose id
    /// belongs to another service.
    fn config(
        &self,
        service: &Service,
        variants: &Variants,
        taken: &HashSet<ClusterId>,
        plan: &ClusterPlan<'_>,
        said: &mut Problems,
    ) -> ProxyConfig {
        let mut config = ProxyConfig::default();
        let cluster = plan.cluster(&service.instances, said);
        config.clusters.insert(self.cluster.clone(), cluster);
        let whole = route(self.cluster.clone(), self.criteria.clone());
        config.routes.insert(self.route.clone(), whole);
        for variant in variants.iter() {
            let cluster_id = ClusterId::from(format!("{}{}", self.cluster, variant.suffix));
            if taken.contains(&cluster_id) {
                let message = format!(
                    "a service has the name `{cluster_id}`, so this cluster cannot be reached"
                );
                said.push(Problem::warning("", "duplicate_cluster", message));
                continue;
            }
            let instances = variant.instances.iter().map(|&i| &service.instances[i]);
            let cluster = plan.cluster(instances, said);
            config.clusters.insert(cluster_id.clone(), cluster);
            let mut criteria = self.criteria.clone();
            criteria.headers = Some(variant.headers.clone());
            let route_id = RouteId::from(format!("{}{}", self.route, variant.suffix));
            config.routes.insert(route_id, route(cluster_id, criteria));
        }
        config
    }
}

fn cluster_id(service: &str) -> ClusterId {
    ClusterId::from(format!("service:{service}"))
}

fn route_id(service: &str) -> RouteId {
    RouteId::from(format!("route:{service}"))
}

fn route(cluster: ClusterId, criteria: RouteMatch) -> RouteConfig {
    RouteConfig {
        cluster_id: Some(cluster),
        r#match: criteria,
        ..RouteConfig::default()
    }
}

fn by_host(host: &str) -> RouteMatch {
    RouteMatch {
        hosts: Some(vec![host.to_owned()]),
        ..RouteMatch::default()
    }
}

fn by_path(path: &str) -> RouteMatch {
    RouteMatch {
        path: Some(path.to_owned()),
        ..RouteMatch::default()
    }
}

/// Returns a warning with the reason why a service has no route.
fn no_route(catalog: &ServiceCatalog, service: &Service) -> Problem {
    let reason = match (&service.hint, catalog.services.len()) {
        (RouteHint::Unusable, _) => {
            "the tags `host` and `route-path` of its nodes cannot be used, and a mistake must not \
             open it to all requests"
        }
        (_, 1) => {
            "none of its nodes has a `host` or a `route-path`, and the cluster lists another service, although none of its members is a destination"
        }
        _ => "none of its nodes has a `host` or a `route-path`, and it is not the only service",
    };
    let message = format!("no request gets to the service: {reason}");
    Problem::warning("", "no_route_hint", message)
        .with_suggestion("give its nodes the tag `host` or `route-path`")
}
