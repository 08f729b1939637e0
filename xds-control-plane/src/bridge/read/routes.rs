//! Route configurations.

use std::collections::HashMap;

use envoy_types::pb::envoy::config::route::v3::{Route, RouteConfiguration, VirtualHost};
use indexmap::IndexMap;
use indexmap::map::Entry;
use proxy_model::config::{RouteConfig, RouteMatch};
use proxy_model::json::{parse_document, read_route};
use proxy_model::{Problems, RouteId};

use super::super::source;
use super::headers::{self, Changes, Side};
use super::hosts;
use super::{Reading, route};

/// The longest form in JSON that is believed.
const LONGEST_SOURCE: usize = 1 << 20;

/// What a route configuration says.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ReadRoutes {
    /// The routes, by ids that are unique in the configuration.
    pub routes: IndexMap<RouteId, RouteConfig>,
    /// The place of those that carry one: of two that are equal in precedence the first serves.
    positions: HashMap<RouteId, u64>,
}

/// Reads a route configuration, with what is done differently.
///
/// # Errors
/// Everything in it that cannot be honoured.
pub fn read_routes(routes: &RouteConfiguration) -> Result<(ReadRoutes, Problems), Problems> {
    let mut reading = Reading::of("route_configuration", &routes.name);
    reading.refuse_if(routes.vhds.is_some(), "vhds");
    reading.refuse_if(
        !routes.typed_per_filter_config.is_empty(),
        "typed_per_filter_config",
    );
    reading.refuse_if(!routes.route_specifiers.is_empty(), "route_specifiers");
    reading.refuse_if(!routes.vhost_header.is_empty(), "vhost_header");
    reading.ignore_if(
        !routes.request_mirror_policies.is_empty(),
        "request_mirror_policies",
    );
    let mut found = ReadRoutes::default();
    for host in &routes.virtual_hosts {
        reading.below(&host.name, |reading| {
            virtual_host(routes, host, &mut found, reading)
        });
    }
    let ReadRoutes { routes, positions } = &mut found;
    routes.sort_by_cached_key(|id, _| positions.get(id).copied());
    reading.finish(Some(found))
}

fn virtual_host(
    all: &RouteConfiguration,
    host: &VirtualHost,
    found: &mut ReadRoutes,
    reading: &mut Reading,
) {
    let changes_headers = !all.request_headers_to_add.is_empty()
        || !all.request_headers_to_remove.is_empty()
        || !host.request_headers_to_add.is_empty()
        || !host.request_headers_to_remove.is_empty();
    let carried: Option<Vec<(u64, RouteConfig)>> = (host.routes.iter())
        .map(|route| sealed(route, reading))
        .collect();
    if let (Some(carried), false) = (carried, changes_headers || host.routes.is_empty()) {
        for (route, (position, config)) in host.routes.iter().zip(carried) {
            found.positions.insert(route.name.as_str().into(), position);
            insert_sealed(&route.name, config, found, reading);
        }
        return;
    }
    reading.refuse_if(host.require_tls != 0, "require_tls");
    reading.refuse_if(host.matcher.is_some(), "matcher");
    reading.refuse_if(
        !host.typed_per_filter_config.is_empty(),
        "typed_per_filter_config",
    );
    reading.refuse_if(!host.route_specifiers.is_empty(), "route_specifiers");
    reading.ignore_if(!host.rate_limits.is_empty(), "rate_limits");
    reading.ignore_if(host.cors.is_some(), "cors");
    reading.ignore_if(host.retry_policy.is_some(), "retry_policy");
    let Some(groups) = hosts::patterns(&host.domains, reading) else {
        return;
    };
    let mut read = Vec::new();
    for (position, route) in host.routes.iter().enumerate() {
        let name = match route.name.as_str() {
            "" => position.to_string(),
            name => name.to_owned(),
        };
        reading.below(&name, |reading| {
            if let Some(mut config) = route::route(route, reading) {
                outer_headers(all, host, &mut config, reading);
                read.push((name.clone(), config));
            }
        });
    }
    let catches_all = read
        .iter()
        .any(|(_, config)| config.r#match == RouteMatch::default());
    for (at, (rank, patterns)) in groups.into_iter().enumerate() {
        let prefix = match patterns.as_ref().and_then(|patterns| patterns.first()) {
            Some(pattern) if at > 0 => format!("{} {pattern}", host.name),
            None if at > 0 => format!("{} *", host.name),
            _ => host.name.clone(),
        };
        let mut insert = |name: &str, position: usize, mut config: RouteConfig| {
            // A host or a path is required.
            if patterns.is_none() && config.r#match.path.is_none() {
                config.r#match.path = Some("/{**rest}".to_owned());
            }
            config.r#match.hosts = patterns.clone();
            config.order = rank.order(position);
            if config.order.is_none() {
                reading.refuse(name, "there are too many routes in one virtual host");
            }
            if found
                .routes
                .insert(format!("{prefix}/{name}").into(), config)
                .is_some()
            {
                reading.refuse(name, "two routes of the virtual host have this name");
            }
        };
        for (position, (name, config)) in read.iter().enumerate() {
            insert(name, position, config.clone());
        }
        // Envoy looks into no other virtual host when a request is none of this one's.
        if patterns.is_some() && !catches_all {
            insert("otherwise", read.len(), RouteConfig::default());
            reading.differs(
                "routes",
                "requests that no route takes are answered with 503 instead of 404",
            );
        }
    }
}

/// What the virtual host and the configuration change, after the route has.
fn outer_headers(
    all: &RouteConfiguration,
    host: &VirtualHost,
    config: &mut RouteConfig,
    reading: &mut Reading,
) {
    let of_host = (
        Changes {
            add: &host.request_headers_to_add,
            remove: &host.request_headers_to_remove,
        },
        Changes {
            add: &host.response_headers_to_add,
            remove: &host.response_headers_to_remove,
        },
    );
    let of_all = (
        Changes {
            add: &all.request_headers_to_add,
            remove: &all.request_headers_to_remove,
        },
        Changes {
            add: &all.response_headers_to_add,
            remove: &all.response_headers_to_remove,
        },
    );
    reading.refuse_if(
        all.most_specific_header_mutations_wins,
        "most_specific_header_mutations_wins",
    );
    let out = config.transforms.get_or_insert_default();
    for (request, response) in [of_host, of_all] {
        headers::transforms(request, Side::Request, out, reading);
        headers::transforms(response, Side::Response, out, reading);
    }
}

/// The model's own form of a route and its position among all, if it carries them.
fn sealed(route: &Route, reading: &Reading) -> Option<(u64, RouteConfig)> {
    let json = source::carried(route).filter(|json| json.len() <= LONGEST_SOURCE)?;
    let mut problems = Problems::new();
    let node = parse_document(&json).ok()?;
    let config = read_route(
        node.get("Route")?,
        &reading.place(&route.name),
        &mut problems,
    )?;
    let carried: serde_json::Value = serde_json::from_str(&json).ok()?;
    let position = carried.get("Position")?.as_u64()?;
    (!problems.has_errors()).then_some((position, config))
}

/// A route is in each virtual host that it takes requests to.
fn insert_sealed(name: &str, config: RouteConfig, found: &mut ReadRoutes, reading: &mut Reading) {
    match found.routes.entry(name.into()) {
        Entry::Vacant(free) => {
            free.insert(config);
        }
        Entry::Occupied(taken) if *taken.get() == config => {}
        Entry::Occupied(_) => reading.refuse(name, "two routes have this name and differ"),
    }
}
