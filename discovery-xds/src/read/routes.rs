//! Route configurations.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use indexmap::IndexMap;
use proxy_model::config::{ProxyConfig, RouteConfig, RouteMatch};
use proxy_model::{CompileOptions, Problems, RouteId, Snapshot};
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;

use super::Reading;
use super::access::{self, Place, fields_close};
use super::headers::{self, Side};
use super::virtual_host::{VirtualHosts, changes_of_all};

/// The effect of fields by which Envoy reads a path in one certain way.
pub(super) const STRICT_PATHS: &str =
    "paths with `//`, `;`, `%2F` or `%5C` are answered with 400 on these routes";

/// The content of a route configuration.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ReadRoutes {
    /// The routes, by ids that are unique in the configuration. Unsupported routes have no cluster, and
    /// therefore respond with 503.
    pub routes: IndexMap<RouteId, RouteConfig>,
    /// The place of those that carry one: of two that are equal in precedence the first serves.
    pub(super) positions: HashMap<RouteId, u64>,
    /// The last form of each virtual host in which every condition was supported, by name.
    pub(super) good: Arc<HashMap<String, HostRoutes>>,
    /// Names of the virtual hosts that keep their previous routes.
    pub(super) kept: BTreeSet<String>,
    /// True if they are those of the previous configuration as a whole.
    pub(crate) is_earlier: bool,
}

/// The routes of a virtual host, with their names.
pub(super) type HostRoutes = Arc<[(String, RouteConfig)]>;

/// Reads a route configuration. Differences from Envoy are warnings. An error names an unsupported route or virtual
/// host, whose requests are answered with 503, so that no other route gets them. For a route with an unsupported
/// condition, these are all requests that its other conditions match.
///
/// # Errors
///
/// Returns the problems that make the whole configuration unusable.
pub fn read_routes(routes: &RouteConfiguration) -> Result<(ReadRoutes, Problems), Problems> {
    read_routes_after(routes, None)
}

/// Like [`read_routes`], after `before` was read. A virtual host in which only the condition of a route is
/// unsupported keeps its previous routes: an unknown condition reveals nothing about the requests that were
/// served so far.
///
/// # Errors
///
/// The errors of [`read_routes`].
pub fn read_routes_after(
    routes: &RouteConfiguration,
    before: Option<&ReadRoutes>,
) -> Result<(ReadRoutes, Problems), Problems> {
    let mut reading = Reading::of("route_configuration", &routes.name);
    fields_close(
        Place::RouteConfiguration,
        &access::route_configuration(routes),
        &mut reading,
    );
    let (request, response) = changes_of_all(routes);
    headers::transforms(request, Side::Request, &mut Vec::new(), &mut reading);
    headers::transforms(response, Side::Response, &mut Vec::new(), &mut reading);
    let is_rejected = reading.rejections() > 0;
    let errors = reading.rejections();
    access::per_filter(&routes.typed_per_filter_config, &mut reading);
    let is_closed = reading.rejections() > errors;
    match before {
        _ if !is_rejected => {}
        Some(before) if is_closed => {
            let closed = ReadRoutes {
                is_earlier: true,
                ..before.closed()
            };
            return Ok((closed, reading.problems));
        }
        _ => return Err(reading.problems),
    }
    let mut hosts = VirtualHosts::of(routes, before.map(|before| Arc::clone(&before.good)));
    for host in &routes.virtual_hosts {
        reading.below(&host.name, |reading| hosts.read(host, reading));
    }
    let ignores_parameters = routes.ignore_path_parameters_in_path_matching;
    let mut found = hosts.found();
    let ReadRoutes {
        routes, positions, ..
    } = &mut found;
    routes.sort_by_cached_key(|id, _| positions.get(id).copied());
    if ignores_parameters {
        reading.differs("ignore_path_parameters_in_path_matching", STRICT_PATHS);
        found = found.strict();
    }
    let mut problems = reading.problems;
    found.compile(&mut problems);
    match is_closed {
        true => Ok((found.closed(), problems)),
        false => Ok((found, problems)),
    }
}

impl ReadRoutes {
    /// Returns the routes in closed form: all requests that they match are answered with 503.
    #[must_use]
    pub fn closed(&self) -> Self {
        let nobody = |route: &RouteConfig| RouteConfig {
            r#match: route.r#match.clone(),
            order: route.order,
            ..RouteConfig::default()
        };
        let routes = self.routes.iter();
        Self {
            routes: routes
                .map(|(id, route)| (id.clone(), nobody(route)))
                .collect(),
            ..self.clone()
        }
    }

    /// Returns the routes in a form that rejects paths which programs read in different ways.
    #[must_use]
    pub(crate) fn strict(mut self) -> Self {
        for route in self.routes.values_mut() {
            route.strict_paths = Some(true);
        }
        self
    }

    /// Makes routes that the model rejects respond with 503 for all requests to their hosts.
    fn compile(&mut self, problems: &mut Problems) {
        let (compiled, wrong) = self.compiled();
        if !wrong.has_errors() {
            return;
        }
        let taken: BTreeSet<&RouteId> = compiled.routes().iter().map(|route| route.id()).collect();
        for (_, route) in self.routes.iter_mut().filter(|(id, _)| !taken.contains(id)) {
            let hosts = route.r#match.hosts.take();
            *route = RouteConfig {
                r#match: RouteMatch {
                    path: Some("/{**rest}".to_owned()),
                    hosts,
                    ..RouteMatch::default()
                },
                order: route.order,
                ..RouteConfig::default()
            };
        }
        problems.append(wrong);
        // Hosts that are not taken are those of no request.
        let (compiled, _) = self.compiled();
        let taken: BTreeSet<RouteId> = (compiled.routes().iter())
            .map(|route| route.id().clone())
            .collect();
        self.routes.retain(|id, _| taken.contains(id));
    }

    /// Compiles the routes without the names that only a proxy can check.
    fn compiled(&self) -> (Snapshot, Problems) {
        let routes = self.routes.iter().map(|(id, route)| {
            let route = RouteConfig {
                r#match: route.r#match.clone(),
                order: route.order,
                timeout: route.timeout,
                transforms: route.transforms.clone(),
                ..RouteConfig::default()
            };
            (id.clone(), route)
        });
        let config = ProxyConfig {
            routes: routes.collect(),
            ..ProxyConfig::default()
        };
        Snapshot::compile_isolated(Arc::new(config), &CompileOptions::default())
    }
}
