//! CDS: a cluster of a service.

use std::time::Duration;

use prost::Name;
use xds_types::pb::envoy::config::cluster::v3::circuit_breakers::Thresholds;
use xds_types::pb::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use xds_types::pb::envoy::config::cluster::v3::{CircuitBreakers, Cluster};
use xds_types::pb::envoy::config::core::v3::health_check::{
    GrpcHealthCheck, HealthChecker, HttpHealthCheck, TcpHealthCheck,
};
use xds_types::pb::envoy::config::core::v3::{
    HealthCheck, Http1ProtocolOptions, Http2ProtocolOptions,
};
use xds_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use xds_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::{
    ExplicitHttpConfig, UpstreamProtocolOptions, explicit_http_config::ProtocolConfig,
};

use super::defaults::Defaults;
use super::model::{Limits, Protocol};
use super::options::{HealthCheckKind, TranslateOptions};
use crate::proto::{any, duration, number};

/// The settings of a cluster.
pub(super) struct ClusterSettings<'s> {
    pub(super) name: &'s str,
    pub(super) protocol: Protocol,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) limits: Limits,
}

pub(super) fn cluster(
    settings: &ClusterSettings<'_>,
    defaults: &Defaults,
    options: &TranslateOptions,
) -> Cluster {
    let [connections, pending, requests, retries] = defaults.with_limits(&settings.limits);
    let thresholds = Thresholds {
        max_connections: Some(number(connections)),
        max_pending_requests: Some(number(pending)),
        max_requests: Some(number(requests)),
        max_retries: Some(number(retries)),
        ..Thresholds::default()
    };
    let connect_timeout = settings.connect_timeout.unwrap_or(defaults.connect_timeout);
    let protocol_options = protocol_options(settings.protocol);
    Cluster {
        name: settings.name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        connect_timeout: Some(duration(connect_timeout)),
        lb_policy: defaults.lb_policy.into(),
        // Version 2 called it `drain_connections_on_host_removal`.
        ignore_health_on_host_removal: defaults.drain_on_removal,
        health_checks: health_check(settings.protocol, defaults, options)
            .into_iter()
            .collect(),
        circuit_breakers: Some(CircuitBreakers {
            thresholds: vec![thresholds],
            ..CircuitBreakers::default()
        }),
        typed_extension_protocol_options: protocol_options
            .map(|options| {
                let name = HttpProtocolOptions::full_name();
                (name, any(&options))
            })
            .into_iter()
            .collect(),
        ..Cluster::default()
    }
}

fn protocol_options(protocol: Protocol) -> Option<HttpProtocolOptions> {
    let config = match protocol {
        Protocol::Http => ProtocolConfig::HttpProtocolOptions(Http1ProtocolOptions::default()),
        Protocol::Grpc => ProtocolConfig::Http2ProtocolOptions(Http2ProtocolOptions::default()),
        Protocol::Tcp => return None,
    };
    let explicit = ExplicitHttpConfig {
        protocol_config: Some(config),
    };
    Some(HttpProtocolOptions {
        upstream_protocol_options: Some(UpstreamProtocolOptions::ExplicitHttpConfig(explicit)),
        ..HttpProtocolOptions::default()
    })
}

fn health_check(
    protocol: Protocol,
    defaults: &Defaults,
    options: &TranslateOptions,
) -> Option<HealthCheck> {
    let tcp = || HealthChecker::TcpHealthCheck(TcpHealthCheck::default());
    let checker = match (&options.health_check, protocol) {
        (HealthCheckKind::None, _) => return None,
        (HealthCheckKind::Tcp, _) | (HealthCheckKind::Http(_), Protocol::Tcp) => tcp(),
        (HealthCheckKind::Http(_), Protocol::Grpc) => {
            HealthChecker::GrpcHealthCheck(GrpcHealthCheck::default())
        }
        (HealthCheckKind::Http(path), Protocol::Http) => {
            HealthChecker::HttpHealthCheck(HttpHealthCheck {
                path: path.to_string(),
                ..HttpHealthCheck::default()
            })
        }
    };
    Some(HealthCheck {
        timeout: Some(duration(defaults.health_timeout)),
        interval: Some(duration(defaults.health_interval)),
        unhealthy_threshold: Some(number(defaults.unhealthy_threshold)),
        healthy_threshold: Some(number(defaults.healthy_threshold)),
        health_checker: Some(checker),
        ..HealthCheck::default()
    })
}
