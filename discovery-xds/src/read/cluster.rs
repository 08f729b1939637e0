//! Clusters.

use std::time::Duration;

use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, CommonLbConfig, DiscoveryType, LbPolicy,
};
use xds_types::pb::envoy::config::cluster::v3::cluster::common_lb_config::LocalityConfigSpecifier;
use xds_types::pb::envoy::config::core::v3::HealthCheck;
use xds_types::pb::envoy::config::core::v3::health_check::HealthChecker;
use xds_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use xds_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::UpstreamProtocolOptions;
use xds_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::explicit_http_config::ProtocolConfig;
use indexmap::IndexMap;
use prost::{Message as _, Name as _};
use proxy_model::config::{
    ActiveHealthCheckConfig, ClusterConfig, ForwarderRequestConfig, HealthCheckConfig,
    HttpClientConfig, HttpVersion, VersionPolicy,
};
use proxy_model::json::{parse_document, read_cluster as read_model};
use proxy_model::{Problems, TimeSpan};

use super::endpoints::{ReadEndpoints, endpoints};
use super::tls::{self, Tls};
use super::{Reading, route};
use xds_types::carried;

/// The content of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ReadCluster {
    /// The cluster without destinations.
    pub config: ClusterConfig,
    /// The name of its endpoints. `None` if they are inline.
    pub endpoints_from: Option<String>,
    /// The inline endpoints.
    pub inline: ReadEndpoints,
    pub(super) tls: Tls,
}

/// Reads a cluster. Differences from Envoy are warnings.
///
/// # Errors
///
/// Returns all parts of the cluster that are unsupported.
pub fn read_cluster(cluster: &Cluster) -> Result<(ReadCluster, Problems), Problems> {
    let mut reading = Reading::of("cluster", &cluster.name);
    let mut found = ReadCluster::default();
    match sealed(cluster, &mut reading) {
        Some(config) => found.config = config,
        None => structure(cluster, &mut found, &mut reading),
    }
    match &cluster.cluster_discovery_type {
        Some(ClusterDiscoveryType::Type(kind)) => match DiscoveryType::try_from(*kind) {
            Ok(DiscoveryType::Eds) => {
                let service = cluster
                    .eds_cluster_config
                    .as_ref()
                    .map(|eds| eds.service_name.as_str());
                let name = service
                    .filter(|name| !name.is_empty())
                    .unwrap_or(&cluster.name);
                found.endpoints_from = Some(name.to_owned());
            }
            Ok(DiscoveryType::Static | DiscoveryType::StrictDns | DiscoveryType::LogicalDns) => {
                if let Some(assignment) = &cluster.load_assignment {
                    found.inline =
                        reading.below("load_assignment", |reading| endpoints(assignment, reading));
                }
            }
            _ => reading.reject("type", "this way to find endpoints cannot be honoured"),
        },
        // As Envoy has it, `STATIC`.
        None => {
            if let Some(assignment) = &cluster.load_assignment {
                found.inline =
                    reading.below("load_assignment", |reading| endpoints(assignment, reading));
            }
        }
        Some(ClusterDiscoveryType::ClusterType(_)) => reading.reject_if(true, "cluster_type"),
    }
    reading.finish(Some(found))
}

/// The model's own form, if the cluster carries one.
fn sealed(cluster: &Cluster, reading: &mut Reading) -> Option<ClusterConfig> {
    let pointer = reading.pointer.clone();
    reading.carried(&carried::carried(cluster), |json| {
        let mut problems = Problems::new();
        let node = parse_document(json).ok()?;
        let config = read_model(&node, &pointer, &mut problems)?;
        (!problems.has_errors()).then_some(config)
    })
}

fn structure(cluster: &Cluster, found: &mut ReadCluster, reading: &mut Reading) {
    reading.reject_if(
        !cluster.transport_socket_matches.is_empty(),
        "transport_socket_matches",
    );
    reading.reject_if(
        cluster.transport_socket_matcher.is_some(),
        "transport_socket_matcher",
    );
    reading.reject_if(!cluster.filters.is_empty(), "filters");
    reading.reject_if(
        cluster.upstream_bind_config.is_some(),
        "upstream_bind_config",
    );
    reading.reject_if(cluster.lb_subset_config.is_some(), "lb_subset_config");
    reading.ignore_if(cluster.outlier_detection.is_some(), "outlier_detection");
    if let Some(common) = &cluster.common_lb_config {
        reading.below("common_lb_config", |reading| shares(common, reading));
    }
    let connect = cluster.connect_timeout.as_ref().map(route::duration);
    if connect.is_some_and(|connect| connect < CONNECT_TIMEOUT) {
        let message = format!("connecting may take {CONNECT_TIMEOUT:?}, whatever the cluster says");
        reading.differs("connect_timeout", message);
    }
    let config = &mut found.config;
    config.load_balancing_policy = balancing(cluster, reading).map(str::to_owned);
    let mut client = HttpClientConfig::default();
    if let Some(breakers) = &cluster.circuit_breakers {
        client.max_connections_per_server = (breakers.per_host_thresholds.first())
            .and_then(|thresholds| thresholds.max_connections.as_ref())
            .map(|connections| connections.value.max(1));
        reading.ignore_if(
            !breakers.thresholds.is_empty(),
            "circuit_breakers/thresholds",
        );
    }
    if let Some(socket) = &cluster.transport_socket {
        found.tls = reading.below("transport_socket", |reading| {
            tls::transport_socket(socket, &mut client, reading)
        });
    }
    config.http_client = (client != HttpClientConfig::default()).then(|| Box::new(client));
    config.http_request = Some(versions(cluster, reading));
    if let [check, more @ ..] = &cluster.health_checks[..] {
        // Envoy lets several checks run side by side; the model has one for each cluster.
        reading.ignore_if(!more.is_empty(), "health_checks/1");
        config.health_check = reading
            .below("health_checks/0", |reading| active(check, reading))
            .map(Box::new);
    }
}

/// A gateway's time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Reads the distribution of requests over localities, and the panic threshold.
fn shares(common: &CommonLbConfig, reading: &mut Reading) {
    let is_weighted = matches!(
        common.locality_config_specifier,
        Some(LocalityConfigSpecifier::LocalityWeightedLbConfig(_))
    );
    if is_weighted {
        reading.differs(
            "locality_weighted_lb_config",
            "weights of localities have no effect: those of endpoints share the requests",
        );
    }
    let threshold = common.healthy_panic_threshold.as_ref();
    if threshold.is_some_and(|threshold| threshold.value > 0.0) {
        reading.differs(
            "healthy_panic_threshold",
            "there is no panic mode: if no endpoint is healthy, requests get 503",
        );
    }
}

fn balancing(cluster: &Cluster, reading: &mut Reading) -> Option<&'static str> {
    if cluster.load_balancing_policy.is_some() {
        reading.ignore_if(true, "load_balancing_policy");
        return None;
    }
    match LbPolicy::try_from(cluster.lb_policy) {
        Ok(LbPolicy::RoundRobin) => Some("RoundRobin"),
        Ok(LbPolicy::LeastRequest) => Some("PowerOfTwoChoices"),
        Ok(LbPolicy::Random) => Some("Random"),
        _ => {
            reading.differs("lb_policy", "this policy is not known; two destinations are drawn and the less busy one is taken");
            None
        }
    }
}

fn versions(cluster: &Cluster, reading: &mut Reading) -> ForwarderRequestConfig {
    let exactly = |version| ForwarderRequestConfig {
        version: Some(version),
        version_policy: Some(VersionPolicy::RequestVersionExact),
        ..ForwarderRequestConfig::default()
    };
    let options = (cluster
        .typed_extension_protocol_options
        .get(&HttpProtocolOptions::full_name()))
    .map(|any| HttpProtocolOptions::decode(any.value.as_slice()));
    let spoken = match options {
        Some(Ok(options)) => options.upstream_protocol_options,
        Some(Err(_)) => {
            reading.reject("typed_extension_protocol_options", "it cannot be decoded");
            None
        }
        // Before there were these options there was a field of the cluster.
        None if cluster.http2_protocol_options.is_some() => return exactly(HttpVersion::Http2),
        None => return exactly(HttpVersion::Http11),
    };
    match spoken {
        Some(UpstreamProtocolOptions::ExplicitHttpConfig(explicit)) => {
            match explicit.protocol_config {
                Some(ProtocolConfig::Http2ProtocolOptions(_)) => exactly(HttpVersion::Http2),
                Some(ProtocolConfig::Http3ProtocolOptions(_)) => {
                    reading.reject_if(true, "http3_protocol_options");
                    ForwarderRequestConfig::default()
                }
                Some(ProtocolConfig::HttpProtocolOptions(_)) | None => exactly(HttpVersion::Http11),
            }
        }
        Some(UpstreamProtocolOptions::AutoConfig(_)) => ForwarderRequestConfig::default(),
        Some(UpstreamProtocolOptions::UseDownstreamProtocolConfig(_)) => {
            reading.differs(
                "use_downstream_protocol_config",
                "the version does not depend on the client's",
            );
            ForwarderRequestConfig::default()
        }
        None => exactly(HttpVersion::Http11),
    }
}

fn active(check: &HealthCheck, reading: &mut Reading) -> Option<HealthCheckConfig> {
    let Some(HealthChecker::HttpHealthCheck(http)) = &check.health_checker else {
        reading.ignore_if(true, "health_checker");
        return None;
    };
    let time = |field: &Option<_>| {
        field
            .as_ref()
            .map(|time| TimeSpan::new(route::duration(time)))
            .filter(|time| !time.is_zero())
    };
    let (path, query) = match http.path.split_once('?') {
        Some((path, query)) => (path, Some(format!("?{query}"))),
        None => (http.path.as_str(), None),
    };
    reading.differs(
        "http_health_check",
        "every status below 300 is healthy, and two failures in a row are not",
    );
    Some(HealthCheckConfig {
        active: Some(ActiveHealthCheckConfig {
            enabled: Some(true),
            interval: time(&check.interval),
            timeout: time(&check.timeout),
            path: path.starts_with('/').then(|| path.to_owned()),
            query,
            ..ActiveHealthCheckConfig::default()
        }),
        ..HealthCheckConfig::default()
    })
}

/// No endpoints, for a cluster that waits for them.
pub(super) fn none() -> ReadEndpoints {
    ReadEndpoints {
        endpoints: IndexMap::new(),
    }
}
