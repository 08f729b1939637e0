//! LDS: the listeners of the static file.

use xds_types::pb::envoy::config::listener::v3::filter::ConfigType;
use xds_types::pb::envoy::config::listener::v3::{Filter, FilterChain, Listener};
use xds_types::pb::envoy::extensions::filters::http::router::v3::Router;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_filter::ConfigType as HttpConfigType;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, Rds,
};
use xds_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
use xds_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::tcp_proxy::ClusterSpecifier;
use xds_types::pb::google::protobuf::{Any, BoolValue};

use super::endpoints::socket_address;
use super::model::{HttpListener, ListenerKind, StaticListener, TcpListener};
use super::options::TranslateOptions;
use crate::proto::{any, duration, number};

pub(super) fn listener(listener: &StaticListener, options: &TranslateOptions) -> Listener {
    let name = &listener.name;
    let (filter, config) = match &listener.kind {
        ListenerKind::Tcp(settings) => ("envoy.filters.network.tcp_proxy", tcp(name, settings)),
        ListenerKind::Http(settings) => (
            "envoy.filters.network.http_connection_manager",
            http(name, settings, options),
        ),
    };
    let filter = Filter {
        name: filter.to_owned(),
        config_type: Some(ConfigType::TypedConfig(config)),
    };
    let chain = FilterChain {
        filters: vec![filter],
        ..FilterChain::default()
    };
    Listener {
        name: name.to_string(),
        address: Some(socket_address(listener.address, listener.port)),
        filter_chains: vec![chain],
        ..Listener::default()
    }
}

fn tcp(name: &str, settings: &TcpListener) -> Any {
    any(&TcpProxy {
        stat_prefix: name.to_owned(),
        idle_timeout: settings.idle_timeout.map(duration),
        max_connect_attempts: settings.max_connect_attempts.map(number),
        cluster_specifier: Some(ClusterSpecifier::Cluster(settings.cluster.to_string())),
        ..TcpProxy::default()
    })
}

fn http(name: &str, settings: &HttpListener, options: &TranslateOptions) -> Any {
    let router = HttpFilter {
        name: "envoy.filters.http.router".to_owned(),
        config_type: Some(HttpConfigType::TypedConfig(any(&Router::default()))),
        ..HttpFilter::default()
    };
    // Their source depends on the subscription, and is filled in later.
    let routes = Rds {
        config_source: None,
        route_config_name: options.route_config.to_string(),
    };
    let is_edge = settings.use_remote_address;
    any(&HttpConnectionManager {
        stat_prefix: name.to_owned(),
        route_specifier: Some(RouteSpecifier::Rds(routes)),
        http_filters: vec![router],
        stream_idle_timeout: settings.stream_idle_timeout.map(duration),
        request_timeout: settings.request_timeout.map(duration),
        use_remote_address: is_edge.then_some(BoolValue { value: true }),
        ..HttpConnectionManager::default()
    })
}
