//! Listeners, which lead to routes.

use xds_types::pb::envoy::config::listener::v3::{
    Filter, FilterChain, Listener, ListenerFilter, filter, listener_filter,
};
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::{
    PathWithEscapedSlashesAction, RouteSpecifier,
};
use xds_types::pb::envoy::config::core::v3::{TransportSocket, transport_socket};
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{HttpFilter, http_filter};
use xds_types::pb::envoy::extensions::transport_sockets::tls::v3::DownstreamTlsContext;
use xds_types::pb::google::protobuf::Any;
use prost::Message as _;
use proxy_model::Problems;

use super::Reading;
use super::access::{self, Extension, Place, closes, fields_close};
use super::routes::STRICT_PATHS;

pub(super) const MANAGER: &str = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const DOWNSTREAM_TLS: &str =
    "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext";
const ROUTER: &str = "envoy.filters.http.router";
const RAW_BUFFER: &str = "envoy.transport_sockets.raw_buffer";

/// The routes that a listener leads to. Its address and its certificates are the proxy's own matter.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ReadListener {
    /// The sources of its routes; empty for a listener without HTTP.
    pub routes: Vec<RouteSource>,
    /// The sources of routes that it restricts in an unsupported way: they must reject all requests.
    pub closed: Vec<RouteSource>,
    /// True if its routes must reject paths that programs read in different ways.
    pub(crate) has_strict_paths: bool,
}

/// A source of routes.
#[derive(Debug, Clone, PartialEq)]
pub enum RouteSource {
    /// The route configuration of this name.
    Named(String),
    /// A route configuration in the listener itself.
    Inline(Box<RouteConfiguration>),
}

/// Reads a listener. Parts without effect are warnings, and parts that close some of its routes are errors.
///
/// # Errors
///
/// Returns all unsupported parts, if none of them restricts senders.
pub fn read_listener(listener: &Listener) -> Result<(ReadListener, Problems), Problems> {
    let mut reading = Reading::of("listener", &listener.name);
    let mut found = ReadListener::default();
    let chains = || {
        listener
            .filter_chains
            .iter()
            .chain(&listener.default_filter_chain)
    };
    let api = (listener.api_listener.iter()).filter_map(|api| api.api_listener.as_ref());
    let is_http = listener.api_listener.is_some() || chains().any(is_http_chain);
    let is_closed = is_http && closes_all(listener, &mut reading);
    let mut has_closed = is_closed;
    let mut take = |config: &Any, is_closed: bool, reading: &mut Reading| {
        reading.below("http_connection_manager", |reading| {
            let Managed {
                source,
                is_closed: closes,
                has_strict_paths,
            } = manager(config, reading);
            let is_closed = is_closed || closes;
            has_closed |= is_closed;
            found.has_strict_paths |= has_strict_paths;
            match is_closed {
                true => found.closed.extend(source),
                false => found.routes.extend(source),
            }
        });
    };
    for chain in chains() {
        let closes = chain_closes(chain, &mut reading);
        for config in chain.filters.iter().filter_map(typed) {
            match config.type_url == MANAGER {
                true => take(config, is_closed || closes, &mut reading),
                // The other parts of an HTTP chain were checked before.
                false => reading.ignore_if(!is_http_chain(chain), &config.type_url),
            }
        }
    }
    for config in api {
        take(config, is_closed, &mut reading);
    }
    // Closed routes must not stay as they were.
    match has_closed {
        true => Ok((found, reading.problems)),
        false => reading.finish(Some(found)),
    }
}

fn typed(filter: &Filter) -> Option<&Any> {
    match &filter.config_type {
        Some(filter::ConfigType::TypedConfig(config)) => Some(config),
        _ => None,
    }
}

fn is_http_chain(chain: &FilterChain) -> bool {
    let mut configs = chain.filters.iter().filter_map(typed);
    configs.any(|config| config.type_url == MANAGER)
}

/// Returns true if the whole listener is closed. A chain for some clients excludes them from the other
/// chains, so that it closes all of them.
fn closes_all(listener: &Listener, reading: &mut Reading) -> bool {
    let mut is_closed = fields_close(Place::Listener, &access::listener(listener), reading);
    let is_unbound = listener
        .bind_to_port
        .as_ref()
        .is_some_and(|bound| !bound.value);
    if is_unbound {
        let message = "no client can connect to it; the routes behind it answer 503";
        reading.reject("bind_to_port", message);
    }
    is_closed |= is_unbound;
    for filter in &listener.listener_filters {
        is_closed |= closes(Place::ListenerFilter, listener_filter(filter), reading);
    }
    let chains = (listener.filter_chains.iter()).chain(&listener.default_filter_chain);
    for wanted in chains.filter_map(|chain| chain.filter_chain_match.as_ref()) {
        is_closed |= reading.below("filter_chain_match", |reading| {
            let fields = access::filter_chain_match(wanted);
            fields_close(Place::FilterChainMatch, &fields, reading)
        });
    }
    is_closed
}

/// Returns true if a chain closes its own routes, if it has any.
fn chain_closes(chain: &FilterChain, reading: &mut Reading) -> bool {
    if !is_http_chain(chain) {
        return false;
    }
    let fields = access::filter_chain(chain);
    let mut is_closed = fields_close(Place::FilterChain, &fields, reading);
    if let Some(socket) = &chain.transport_socket {
        is_closed |= socket_closes(socket, reading);
    }
    let is_manager =
        |filter: &&Filter| typed(filter).is_some_and(|config| config.type_url == MANAGER);
    for filter in chain.filters.iter().filter(|filter| !is_manager(filter)) {
        let extension = Extension {
            name: &filter.name,
            config: typed(filter),
            ..Extension::default()
        };
        is_closed |= closes(Place::NetworkFilter, extension, reading);
    }
    is_closed
}

fn socket_closes(socket: &TransportSocket, reading: &mut Reading) -> bool {
    let config = match &socket.config_type {
        Some(transport_socket::ConfigType::TypedConfig(config)) => Some(config),
        None if socket.name == RAW_BUFFER => return false,
        None => None,
    };
    let tls = config
        .filter(|config| config.type_url == DOWNSTREAM_TLS)
        .map(|config| DownstreamTlsContext::decode(config.value.as_slice()));
    if let Some(tls) = tls {
        let is_open = tls.is_ok_and(|tls| {
            tls.require_client_certificate
                .is_none_or(|required| !required.value)
        });
        if !is_open {
            reading.reject(
                "transport_socket/require_client_certificate",
                "clients are not asked for certificates; the routes behind it answer 503",
            );
        }
        return !is_open;
    }
    let extension = Extension {
        name: &socket.name,
        config,
        ..Extension::default()
    };
    closes(Place::TransportSocket, extension, reading)
}

fn listener_filter(filter: &ListenerFilter) -> Extension<'_> {
    let config = match &filter.config_type {
        Some(listener_filter::ConfigType::TypedConfig(config)) => Some(config),
        _ => None,
    };
    Extension {
        name: &filter.name,
        config,
        ..Extension::default()
    }
}

fn http_filter(filter: &HttpFilter) -> Extension<'_> {
    let config = match &filter.config_type {
        Some(http_filter::ConfigType::TypedConfig(config)) => Some(config),
        _ => None,
    };
    Extension {
        name: &filter.name,
        config,
        is_optional: filter.is_optional,
        is_disabled: filter.disabled,
    }
}

/// The routes of a connection manager.
#[derive(Default)]
struct Managed {
    source: Option<RouteSource>,
    is_closed: bool,
    has_strict_paths: bool,
}

/// Reads a connection manager.
fn manager(config: &Any, reading: &mut Reading) -> Managed {
    if config.type_url != MANAGER {
        reading.ignore_if(true, &config.type_url);
        return Managed::default();
    }
    let Ok(manager) = HttpConnectionManager::decode(config.value.as_slice()) else {
        reading.reject("typed_config", "it cannot be decoded");
        return Managed::default();
    };
    let mut is_closed = fields_close(Place::Manager, &access::manager(&manager), reading);
    for detection in &manager.original_ip_detection_extensions {
        let extension = Extension {
            name: &detection.name,
            config: detection.typed_config.as_ref(),
            ..Extension::default()
        };
        is_closed |= closes(Place::OriginalIpDetection, extension, reading);
    }
    let upgrades = manager.upgrade_configs.iter();
    let filters =
        (manager.http_filters.iter()).chain(upgrades.flat_map(|upgrade| &upgrade.filters));
    for filter in filters {
        // Without a configuration the name is all there is.
        let is_router = filter.name == ROUTER && filter.config_type.is_none();
        is_closed |= !is_router && closes(Place::HttpFilter, http_filter(filter), reading);
    }
    let options = manager.common_http_protocol_options.as_ref();
    reading.ignore_if(
        options.is_some_and(|options| options.headers_with_underscores_action != 0),
        "common_http_protocol_options/headers_with_underscores_action",
    );
    let has_strict_paths = reads_paths_in_one_way(&manager, reading);
    let source = match manager.route_specifier {
        Some(RouteSpecifier::Rds(rds)) => Some(RouteSource::Named(rds.route_config_name)),
        Some(RouteSpecifier::RouteConfig(routes)) => Some(RouteSource::Inline(Box::new(routes))),
        Some(RouteSpecifier::ScopedRoutes(_)) => {
            reading.reject_if(true, "scoped_routes");
            None
        }
        None => {
            reading.reject("route_specifier", "the connection manager has no routes");
            None
        }
    };
    Managed {
        source,
        is_closed,
        has_strict_paths,
    }
}

/// Returns true if Envoy merges, decodes or rejects slashes before it chooses a route. A route for other paths
/// would get the request here, so such paths are rejected.
fn reads_paths_in_one_way(manager: &HttpConnectionManager, reading: &mut Reading) -> bool {
    use PathWithEscapedSlashesAction::{ImplementationSpecificDefault, KeepUnchanged};
    let action = PathWithEscapedSlashesAction::try_from(manager.path_with_escaped_slashes_action);
    let mut is_strict = false;
    for (is_set, field) in [
        (manager.merge_slashes, "merge_slashes"),
        (
            !matches!(action, Ok(ImplementationSpecificDefault | KeepUnchanged)),
            "path_with_escaped_slashes_action",
        ),
    ] {
        if is_set {
            reading.differs(field, STRICT_PATHS);
            is_strict = true;
        }
    }
    is_strict
}
