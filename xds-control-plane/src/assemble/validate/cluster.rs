use prost::Name;
use xds_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType, LbPolicy,
};
use xds_types::pb::envoy::config::cluster::v3::{Cluster, OutlierDetection};
use xds_types::pb::envoy::config::core::v3::HealthCheck;
use xds_types::pb::envoy::config::core::v3::health_check::HealthChecker;
use xds_types::pb::envoy::config::core::v3::transport_socket::ConfigType;
use xds_types::pb::envoy::extensions::transport_sockets::tls::v3::UpstreamTlsContext;
use xds_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use xds_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::UpstreamProtocolOptions;
use xds_types::pb::google::protobuf::Any;

use super::{Findings, assignment};
use crate::proto::unpacked;

/// The key of HTTP's options among those of a cluster.
const HTTP_OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

pub(super) fn validate(cluster: &Cluster, findings: &mut Findings) {
    findings.name("name", &cluster.name);
    findings.positive("connect_timeout", cluster.connect_timeout.as_ref());
    discovery(cluster, findings);
    balancing(cluster, findings);
    for (at, check) in cluster.health_checks.iter().enumerate() {
        health_check(at, check, findings);
    }
    if let Some(outliers) = &cluster.outlier_detection {
        outlier_detection(outliers, findings);
    }
    for (name, options) in &cluster.typed_extension_protocol_options {
        protocol_options(name, options, is_tls(cluster), findings);
    }
}

fn discovery(cluster: &Cluster, findings: &mut Findings) {
    let kind = match &cluster.cluster_discovery_type {
        None => DiscoveryType::Static,
        Some(ClusterDiscoveryType::Type(kind)) => match DiscoveryType::try_from(*kind) {
            Ok(kind) => kind,
            Err(_) => return findings.reject("type", format!("{kind} is no discovery type")),
        },
        Some(ClusterDiscoveryType::ClusterType(custom)) => {
            return findings.name("cluster_type.name", &custom.name);
        }
    };
    let is_eds = kind == DiscoveryType::Eds;
    if !is_eds && cluster.eds_cluster_config.is_some() {
        findings.reject("eds_cluster_config", "is for clusters of type EDS only");
    }
    if (is_eds || kind == DiscoveryType::OriginalDst) && cluster.load_assignment.is_some() {
        findings.reject("load_assignment", "is not for clusters of this type");
    }
    let Some(inline) = &cluster.load_assignment else {
        return;
    };
    match kind {
        DiscoveryType::Static => assignment::validate(inline, findings),
        DiscoveryType::StrictDns | DiscoveryType::LogicalDns => {
            assignment::validate_names(inline, findings);
            let endpoints: usize = inline.endpoints.iter().map(|l| l.lb_endpoints.len()).sum();
            if kind == DiscoveryType::LogicalDns && endpoints != 1 {
                let message =
                    format!("a cluster of type LOGICAL_DNS has one endpoint, not {endpoints}");
                findings.reject("load_assignment", message);
            }
        }
        DiscoveryType::Eds | DiscoveryType::OriginalDst => {}
    }
}

fn balancing(cluster: &Cluster, findings: &mut Findings) {
    let is_original = cluster.cluster_discovery_type
        == Some(ClusterDiscoveryType::Type(
            DiscoveryType::OriginalDst.into(),
        ));
    match LbPolicy::try_from(cluster.lb_policy) {
        Err(_) => findings.reject("lb_policy", format!("{} is no policy", cluster.lb_policy)),
        Ok(LbPolicy::LoadBalancingPolicyConfig) if cluster.load_balancing_policy.is_none() => {
            findings.reject(
                "load_balancing_policy",
                "is missing, but `lb_policy` refers to it",
            );
        }
        Ok(policy)
            if (policy == LbPolicy::ClusterProvided) != is_original
                && cluster.load_balancing_policy.is_none()
                && !matches!(
                    cluster.cluster_discovery_type,
                    Some(ClusterDiscoveryType::ClusterType(_))
                ) =>
        {
            findings.reject(
                "lb_policy",
                "CLUSTER_PROVIDED and type ORIGINAL_DST go together",
            );
        }
        Ok(_) => {}
    }
    let mut priorities = Vec::new();
    for (at, threshold) in cluster
        .circuit_breakers
        .iter()
        .flat_map(|c| &c.thresholds)
        .enumerate()
    {
        if !(0..=1).contains(&threshold.priority) {
            findings.reject(
                format!("circuit_breakers.thresholds[{at}].priority"),
                "is DEFAULT or HIGH",
            );
        }
        if priorities.contains(&threshold.priority) {
            // Envoy takes the first, silently.
            findings.reject(
                format!("circuit_breakers.thresholds[{at}].priority"),
                "has thresholds already",
            );
        }
        priorities.push(threshold.priority);
    }
}

fn health_check(at: usize, check: &HealthCheck, findings: &mut Findings) {
    let field = |name: &str| format!("health_checks[{at}].{name}");
    for (name, time) in [("timeout", &check.timeout), ("interval", &check.interval)] {
        match time {
            None => findings.reject(field(name), "is missing"),
            Some(time) => findings.positive(&field(name), Some(time)),
        }
    }
    for (name, time) in [
        ("no_traffic_interval", &check.no_traffic_interval),
        (
            "no_traffic_healthy_interval",
            &check.no_traffic_healthy_interval,
        ),
        ("unhealthy_interval", &check.unhealthy_interval),
        ("unhealthy_edge_interval", &check.unhealthy_edge_interval),
        ("healthy_edge_interval", &check.healthy_edge_interval),
    ] {
        findings.positive(&field(name), time.as_ref());
    }
    if check.unhealthy_threshold.is_none() {
        findings.reject(field("unhealthy_threshold"), "is missing");
    }
    if check.healthy_threshold.is_none() {
        findings.reject(field("healthy_threshold"), "is missing");
    }
    match &check.health_checker {
        None => findings.reject(
            field("health_checker"),
            "is missing; it is one of http_health_check, tcp_health_check and grpc_health_check",
        ),
        Some(HealthChecker::HttpHealthCheck(http)) if http.path.is_empty() => {
            findings.reject(field("http_health_check.path"), "must not be empty");
        }
        Some(HealthChecker::CustomHealthCheck(custom)) => {
            findings.name(&field("custom_health_check.name"), &custom.name);
        }
        Some(_) => {}
    }
}

fn outlier_detection(outliers: &OutlierDetection, findings: &mut Findings) {
    for (name, time) in [
        ("interval", &outliers.interval),
        ("base_ejection_time", &outliers.base_ejection_time),
        ("max_ejection_time", &outliers.max_ejection_time),
    ] {
        findings.positive(&format!("outlier_detection.{name}"), time.as_ref());
    }
    for (name, share) in [
        ("max_ejection_percent", &outliers.max_ejection_percent),
        (
            "enforcing_consecutive_5xx",
            &outliers.enforcing_consecutive_5xx,
        ),
        ("enforcing_success_rate", &outliers.enforcing_success_rate),
        (
            "enforcing_consecutive_gateway_failure",
            &outliers.enforcing_consecutive_gateway_failure,
        ),
        (
            "enforcing_consecutive_local_origin_failure",
            &outliers.enforcing_consecutive_local_origin_failure,
        ),
        (
            "enforcing_local_origin_success_rate",
            &outliers.enforcing_local_origin_success_rate,
        ),
        (
            "failure_percentage_threshold",
            &outliers.failure_percentage_threshold,
        ),
        (
            "enforcing_failure_percentage",
            &outliers.enforcing_failure_percentage,
        ),
        (
            "enforcing_failure_percentage_local_origin",
            &outliers.enforcing_failure_percentage_local_origin,
        ),
    ] {
        if share.as_ref().is_some_and(|share| share.value > 100) {
            findings.reject(format!("outlier_detection.{name}"), "is at most 100");
        }
    }
}

/// Returns true if all connections to it use TLS.
fn is_tls(cluster: &Cluster) -> bool {
    let matched = cluster.transport_socket_matches.iter();
    let mut sockets = matched
        .map(|matched| matched.transport_socket.as_ref())
        .chain([cluster.transport_socket.as_ref()]);
    sockets.all(
        |socket| match socket.and_then(|socket| socket.config_type.as_ref()) {
            Some(ConfigType::TypedConfig(config)) => {
                config.type_url == UpstreamTlsContext::type_url()
            }
            // Without one it is plain.
            None => false,
        },
    )
}

fn protocol_options(name: &str, options: &Any, is_tls: bool, findings: &mut Findings) {
    let field = "typed_extension_protocol_options";
    if name != HTTP_OPTIONS || options.type_url != HttpProtocolOptions::type_url() {
        let message = format!(
            "holds options {}, which are not known here",
            super::shown(name)
        );
        return findings.reject(field, message);
    }
    let Some(options) = unpacked::<HttpProtocolOptions>(options) else {
        return findings.reject(field, "cannot be decoded");
    };
    match options.upstream_protocol_options {
        None => findings.reject(field, "have no upstream_protocol_options"),
        Some(UpstreamProtocolOptions::ExplicitHttpConfig(explicit))
            if explicit.protocol_config.is_none() =>
        {
            findings.reject(field, "explicit_http_config names no protocol");
        }
        Some(UpstreamProtocolOptions::AutoConfig(_)) if !is_tls => {
            findings.reject(field, "auto_config asks for the protocol by ALPN, so every transport socket has to be TLS");
        }
        Some(_) => {}
    }
}
