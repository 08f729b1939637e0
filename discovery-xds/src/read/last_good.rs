//! The form of a resource from which a restarted proxy reads what serves now.
//!
//! If a part of a resource is rejected and its previous form serves on, the resource as it was sent is not
//! enough: reading it needs the previous one. These functions put both together.

use std::collections::BTreeMap;

use prost::Message as _;
use xds_types::pb::envoy::config::listener::v3::{FilterChain, Listener, filter};
use xds_types::pb::envoy::config::route::v3::{RouteConfiguration, VirtualHost};
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use xds_types::pb::google::protobuf::Any;

use super::ReadRoutes;
use super::listener::MANAGER;

/// Returns the configuration that is read as `read` without another one before it: `routes`, with the
/// parts of `before` that serve on. `None` if that is `routes` itself.
pub(crate) fn last_good_routes(
    routes: &RouteConfiguration,
    read: &ReadRoutes,
    before: Option<&RouteConfiguration>,
) -> Option<RouteConfiguration> {
    if read.is_earlier {
        let mut closed = before?.clone();
        // These close it.
        let filters = routes.typed_per_filter_config.clone();
        closed.typed_per_filter_config.extend(filters);
        return Some(closed);
    }
    if read.kept.is_empty() {
        return None;
    }
    let earlier = |name: &str| {
        let mut hosts = before?.virtual_hosts.iter().rev();
        hosts.find(|host| host.name == name)
    };
    let mut made = routes.clone();
    for host in &mut made.virtual_hosts {
        if read.kept.contains(&host.name)
            && let Some(earlier) = earlier(&host.name)
        {
            *host = VirtualHost {
                domains: std::mem::take(&mut host.domains),
                ..earlier.clone()
            };
        }
    }
    Some(made)
}

/// Like [`last_good_routes`], for a listener with route configurations inside of it: `read` by their names.
pub(crate) fn last_good_listener(
    listener: &Listener,
    read: &[(String, ReadRoutes)],
    before: Option<&Listener>,
) -> Option<Listener> {
    let is_partly_earlier =
        |(_, routes): &(String, ReadRoutes)| routes.is_earlier || !routes.kept.is_empty();
    if !read.iter().any(is_partly_earlier) {
        return None;
    }
    let mut earlier = BTreeMap::new();
    if let Some(before) = before {
        change_routes(&mut before.clone(), |routes| {
            earlier.insert(routes.name.clone(), routes.clone());
        });
    }
    let mut made = listener.clone();
    change_routes(&mut made, |routes| {
        let mut of_name = read.iter().filter(|(name, _)| *name == routes.name);
        let (Some((name, read)), None) = (of_name.next(), of_name.next()) else {
            return;
        };
        if let Some(good) = last_good_routes(routes, read, earlier.get(name)) {
            *routes = good;
        }
    });
    Some(made)
}

/// Changes the route configurations inside a listener.
fn change_routes(listener: &mut Listener, mut change: impl FnMut(&mut RouteConfiguration)) {
    let chains = (listener.filter_chains.iter_mut()).chain(&mut listener.default_filter_chain);
    let configs = chains.flat_map(|chain: &mut FilterChain| {
        chain
            .filters
            .iter_mut()
            .filter_map(|filter| match &mut filter.config_type {
                Some(filter::ConfigType::TypedConfig(config)) => Some(config),
                _ => None,
            })
    });
    let api = listener.api_listener.iter_mut();
    let api = api.filter_map(|api| api.api_listener.as_mut());
    for config in configs.chain(api) {
        change_manager(config, &mut change);
    }
}

fn change_manager(config: &mut Any, change: &mut impl FnMut(&mut RouteConfiguration)) {
    if config.type_url != MANAGER {
        return;
    }
    let Ok(mut manager) = HttpConnectionManager::decode(config.value.as_slice()) else {
        return;
    };
    if let Some(RouteSpecifier::RouteConfig(routes)) = &mut manager.route_specifier {
        change(routes);
        config.value = manager.encode_to_vec();
    }
}
