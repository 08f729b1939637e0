use xds_types::pb::envoy::config::listener::v3::filter::ConfigType;
use xds_types::pb::envoy::config::listener::v3::{Filter, FilterChain, Listener};
use xds_types::pb::envoy::extensions::filters::http::router::v3::Router;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_filter::ConfigType as HttpConfigType;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use xds_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
use xds_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::tcp_proxy::ClusterSpecifier;
use xds_types::pb::google::protobuf::Any;
use prost::Name;

use super::{Findings, assignment, route, shown};
use crate::proto::unpacked;

pub(super) fn validate(listener: &Listener, findings: &mut Findings) {
    findings.name("name", &listener.name);
    if listener.api_listener.is_some() {
        return;
    }
    assignment::address("address", listener.address.as_ref(), true, findings);
    findings.not_negative(
        "listener_filters_timeout",
        listener.listener_filters_timeout.as_ref(),
    );
    if listener.filter_chains.is_empty() && listener.default_filter_chain.is_none() {
        findings.reject("filter_chains", "are missing; there is one at least");
    }
    for (at, chain) in listener.filter_chains.iter().enumerate() {
        filter_chain(&format!("filter_chains[{at}]"), chain, findings);
    }
    if let Some(chain) = &listener.default_filter_chain {
        filter_chain("default_filter_chain", chain, findings);
    }
}

fn filter_chain(field: &str, chain: &FilterChain, findings: &mut Findings) {
    let count = chain.filters.len();
    if count == 0 {
        findings.reject(
            format!("{field}.filters"),
            "are missing; connections would be closed at once",
        );
    }
    for (at, filter) in chain.filters.iter().enumerate() {
        let field = format!("{field}.filters[{at}]");
        network_filter(&field, filter, findings);
        if at + 1 < count {
            findings.reject(field, "ends the chain, and is followed by another filter");
        }
    }
}

/// Checks a network filter. Both known kinds end a chain.
fn network_filter(field: &str, filter: &Filter, findings: &mut Findings) {
    findings.name(&format!("{field}.name"), &filter.name);
    let Some(ConfigType::TypedConfig(config)) = &filter.config_type else {
        return findings.reject(format!("{field}.typed_config"), "is missing");
    };
    if config.type_url == TcpProxy::type_url() {
        return match unpacked::<TcpProxy>(config) {
            Some(proxy) => tcp_proxy(field, &proxy, findings),
            None => findings.reject(format!("{field}.typed_config"), "cannot be decoded"),
        };
    }
    if config.type_url == HttpConnectionManager::type_url() {
        return match unpacked::<HttpConnectionManager>(config) {
            Some(manager) => connection_manager(field, &manager, findings),
            None => findings.reject(format!("{field}.typed_config"), "cannot be decoded"),
        };
    }
    reject_unknown(field, config, findings);
}

/// Rejects a configuration of unknown type, which cannot be checked.
fn reject_unknown(field: &str, config: &Any, findings: &mut Findings) {
    let message = format!(
        "is of the type {}, which is not known here",
        shown(&config.type_url)
    );
    findings.reject(format!("{field}.typed_config"), message);
}

fn tcp_proxy(field: &str, proxy: &TcpProxy, findings: &mut Findings) {
    findings.name(&format!("{field}.stat_prefix"), &proxy.stat_prefix);
    findings.not_negative(
        &format!("{field}.idle_timeout"),
        proxy.idle_timeout.as_ref(),
    );
    match &proxy.cluster_specifier {
        None => findings.reject(format!("{field}.cluster_specifier"), "is missing"),
        Some(ClusterSpecifier::Cluster(name)) => findings.name(&format!("{field}.cluster"), name),
        Some(ClusterSpecifier::WeightedClusters(weighted)) => {
            if weighted.clusters.is_empty() {
                findings.reject(format!("{field}.weighted_clusters"), "names no cluster");
            }
            for (at, cluster) in weighted.clusters.iter().enumerate() {
                let field = format!("{field}.weighted_clusters.clusters[{at}]");
                findings.name(&format!("{field}.name"), &cluster.name);
                if cluster.weight == 0 {
                    findings.reject(format!("{field}.weight"), "is 1 or more");
                }
            }
        }
    }
    if proxy
        .max_connect_attempts
        .as_ref()
        .is_some_and(|attempts| attempts.value == 0)
    {
        findings.reject(format!("{field}.max_connect_attempts"), "is 1 or more");
    }
}

fn connection_manager(field: &str, manager: &HttpConnectionManager, findings: &mut Findings) {
    findings.name(&format!("{field}.stat_prefix"), &manager.stat_prefix);
    match &manager.route_specifier {
        None => findings.reject(format!("{field}.route_specifier"), "is missing"),
        Some(RouteSpecifier::Rds(rds)) => {
            findings.name(
                &format!("{field}.rds.route_config_name"),
                &rds.route_config_name,
            );
        }
        Some(RouteSpecifier::RouteConfig(inline)) => {
            for host in &inline.virtual_hosts {
                route::validate(host, findings);
            }
        }
        Some(RouteSpecifier::ScopedRoutes(_)) => {
            findings.reject(format!("{field}.scoped_routes"), "are not served here");
        }
    }
    for (name, time) in [
        ("stream_idle_timeout", &manager.stream_idle_timeout),
        ("request_timeout", &manager.request_timeout),
        ("drain_timeout", &manager.drain_timeout),
    ] {
        findings.not_negative(&format!("{field}.{name}"), time.as_ref());
    }
    let count = manager.http_filters.len();
    if count == 0 {
        findings.reject(
            format!("{field}.http_filters"),
            "are missing; the last one is the router",
        );
    }
    for (at, filter) in manager.http_filters.iter().enumerate() {
        let filter_field = format!("{field}.http_filters[{at}]");
        findings.name(&format!("{filter_field}.name"), &filter.name);
        let Some(HttpConfigType::TypedConfig(config)) = &filter.config_type else {
            findings.reject(format!("{filter_field}.typed_config"), "is missing");
            continue;
        };
        if config.type_url != Router::type_url() {
            reject_unknown(&filter_field, config, findings);
        } else if unpacked::<Router>(config).is_none() {
            findings.reject(format!("{filter_field}.typed_config"), "cannot be decoded");
        } else if at + 1 < count {
            findings.reject(filter_field, "the router is the last filter");
        }
    }
}
