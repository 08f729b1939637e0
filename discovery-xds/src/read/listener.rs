//! Listeners, which lead to routes.

use xds_types::pb::envoy::config::listener::v3::{Listener, filter};
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use xds_types::pb::google::protobuf::Any;
use prost::Message as _;
use proxy_model::Problems;

use super::Reading;

const MANAGER: &str = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const ROUTER: &str = "envoy.filters.http.router";

/// What a listener leads to. Where it listens, and its certificates, are the proxy's own.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ReadListener {
    /// Where its routes are; none for a listener without HTTP.
    pub routes: Vec<RouteSource>,
}

/// Where routes are.
#[derive(Debug, Clone, PartialEq)]
pub enum RouteSource {
    /// In the route configuration of this name.
    Named(String),
    /// In the listener itself.
    Inline(Box<RouteConfiguration>),
}

/// Reads a listener, with what has no effect.
///
/// # Errors
/// Everything in it that cannot be honoured.
pub fn read_listener(listener: &Listener) -> Result<(ReadListener, Problems), Problems> {
    let mut reading = Reading::of("listener", &listener.name);
    let mut found = ReadListener::default();
    let chains = listener
        .filter_chains
        .iter()
        .chain(&listener.default_filter_chain);
    let filters = chains
        .flat_map(|chain| &chain.filters)
        .filter_map(|filter| match &filter.config_type {
            Some(filter::ConfigType::TypedConfig(config)) => Some(config),
            _ => None,
        });
    let api = (listener.api_listener.iter()).filter_map(|api| api.api_listener.as_ref());
    for config in filters.chain(api) {
        reading.below("http_connection_manager", |reading| {
            found.routes.extend(manager(config, reading));
        });
    }
    reading.finish(Some(found))
}

fn manager(config: &Any, reading: &mut Reading) -> Option<RouteSource> {
    if config.type_url != MANAGER {
        reading.ignore_if(true, &config.type_url);
        return None;
    }
    let Ok(manager) = HttpConnectionManager::decode(config.value.as_slice()) else {
        reading.refuse("typed_config", "it cannot be decoded");
        return None;
    };
    for filter in manager
        .http_filters
        .iter()
        .filter(|filter| filter.name != ROUTER)
    {
        let field = format!("http_filters/{}", filter.name);
        if filter.is_optional || filter.disabled {
            reading.ignore_if(true, &field);
        } else {
            reading.refuse(&field, "a filter that is not optional cannot be honoured");
        }
    }
    match manager.route_specifier {
        Some(RouteSpecifier::Rds(rds)) => Some(RouteSource::Named(rds.route_config_name)),
        Some(RouteSpecifier::RouteConfig(routes)) => Some(RouteSource::Inline(Box::new(routes))),
        Some(RouteSpecifier::ScopedRoutes(_)) => {
            reading.refuse_if(true, "scoped_routes");
            None
        }
        None => {
            reading.refuse("route_specifier", "the connection manager has no routes");
            None
        }
    }
}
