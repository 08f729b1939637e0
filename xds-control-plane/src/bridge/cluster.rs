//! Clusters.

use std::net::IpAddr;

use proxy_model::compiled::{AvailabilityPolicy, BalancingPolicy, Cluster};
use proxy_model::config::ClusterConfig;
use xds_types::pb::envoy::config::cluster::v3::circuit_breakers::Thresholds;
use xds_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, CommonLbConfig, DiscoveryType, EdsClusterConfig, LbConfig, LbPolicy,
    LeastRequestLbConfig,
};
use xds_types::pb::envoy::config::cluster::v3::{CircuitBreakers, Cluster as EnvoyCluster};
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::r#type::v3::Percent;
use xds_types::pb::google::protobuf::UInt32Value;

use super::report::{Inexpressible, Report};
use super::{BridgeOptions, action, endpoints, health, protocol, source, tls};

/// Maximum number of choices that Envoy draws from. With more, the choice would no longer be random.
const MOST_CHOICES: usize = 1000;

/// A cluster and the endpoints of it, which are in the cluster itself if some have names that have to be resolved.
pub(super) fn cluster(
    cluster: &Cluster,
    options: &BridgeOptions,
    report: &mut Report<'_>,
) -> Result<(EnvoyCluster, Option<ClusterLoadAssignment>), Inexpressible> {
    check(cluster, report);
    let name = cluster.id().as_str();
    let assignment = endpoints::assignment(cluster, options);
    let mut written = EnvoyCluster {
        name: name.to_owned(),
        connect_timeout: Some(action::duration(options.connect_timeout)),
        health_checks: health::active(cluster, report).into_iter().collect(),
        outlier_detection: health::passive(cluster, report),
        // Otherwise Envoy continues to send requests to a removed destination while its probes succeed.
        ignore_health_on_host_removal: true,
        circuit_breakers: cluster.upstream().max_connections().map(per_host),
        common_lb_config: Some(CommonLbConfig {
            healthy_panic_threshold: Some(Percent {
                value: panic_threshold(cluster, report),
            }),
            ..CommonLbConfig::default()
        }),
        ..EnvoyCluster::default()
    };
    balancing(cluster, &mut written, report);
    protocol::write(cluster, &mut written, report)?;
    tls::write(cluster, options, &mut written)?;
    let is_ip = |host: &str| host.parse::<IpAddr>().is_ok();
    let all_ips =
        (cluster.destinations().iter()).all(|destination| is_ip(destination.address().host()));
    let kind = if all_ips {
        written.eds_cluster_config = Some(EdsClusterConfig::default());
        DiscoveryType::Eds
    } else {
        DiscoveryType::StrictDns
    };
    written.cluster_discovery_type = Some(ClusterDiscoveryType::Type(kind.into()));
    let assignment = match all_ips {
        true => Some(assignment),
        false => {
            written.load_assignment = Some(assignment);
            None
        }
    };
    if options.carry_source {
        carry(cluster.config(), &mut written);
    }
    Ok((written, assignment))
}

/// Adds the configuration without destinations, which endpoints carry themselves.
fn carry(config: &ClusterConfig, written: &mut EnvoyCluster) {
    let mut config = config.clone();
    config.destinations.clear();
    source::carry(written, &config);
}

/// Reports the settings that Envoy has no field for.
fn check(cluster: &Cluster, report: &mut Report<'_>) {
    let config = cluster.config();
    if let Some(client) = &config.http_client {
        if client.web_proxy.is_some() {
            report.differs(
                "HttpClient/WebProxy",
                "Envoy connects to destinations directly",
            );
        }
        if client.enable_multiple_http2_connections == Some(false) {
            report.differs(
                "HttpClient/EnableMultipleHttp2Connections",
                "Envoy opens a further connection where one has no streams left",
            );
        }
    }
    if let Some(affinity) = action::affinity(cluster) {
        report.differs(
            "SessionAffinity",
            "Envoy chooses a client's destination by a hash of the cookie or header, and another one when destinations change",
        );
        if (affinity.failure_policy.as_deref())
            .is_some_and(|policy| policy.eq_ignore_ascii_case("Return503Error"))
        {
            report.differs(
                "SessionAffinity/FailurePolicy",
                "Envoy sends requests to another destination when that of the client is unavailable",
            );
        }
    }
}

fn per_host(connections: u32) -> CircuitBreakers {
    CircuitBreakers {
        per_host_thresholds: vec![Thresholds {
            max_connections: Some(UInt32Value { value: connections }),
            ..Thresholds::default()
        }],
        ..CircuitBreakers::default()
    }
}

/// The share of healthy destinations, in percent, below which all are used.
fn panic_threshold(cluster: &Cluster, report: &mut Report<'_>) -> f64 {
    match cluster.availability() {
        // The value is below the share of one of any number of destinations: all are used if none is
        // healthy.
        AvailabilityPolicy::HealthyOrPanic => 0.000_1,
        AvailabilityPolicy::HealthyAndUnknown => 0.0,
        AvailabilityPolicy::Custom(name) => {
            report.differs(
                "HealthCheck/AvailableDestinationsPolicy",
                format!("Envoy does not have the program's `{name}`; unhealthy ones are left out"),
            );
            0.0
        }
    }
}

fn balancing(cluster: &Cluster, written: &mut EnvoyCluster, report: &mut Report<'_>) {
    const KEY: &str = "LoadBalancingPolicy";
    let policy = match cluster.balancing() {
        _ if action::affinity(cluster).is_some() => LbPolicy::RingHash,
        BalancingPolicy::PowerOfTwoChoices => LbPolicy::LeastRequest,
        BalancingPolicy::LeastRequests => {
            let all = cluster.destinations().len().clamp(2, MOST_CHOICES);
            written.lb_config = Some(LbConfig::LeastRequestLbConfig(LeastRequestLbConfig {
                choice_count: u32::try_from(all).ok().map(|value| UInt32Value { value }),
                ..LeastRequestLbConfig::default()
            }));
            report.differs(
                KEY,
                "Envoy draws as many destinations as there are and takes the one with the fewest requests, which is not always the one of all",
            );
            LbPolicy::LeastRequest
        }
        BalancingPolicy::RoundRobin => LbPolicy::RoundRobin,
        BalancingPolicy::Random => LbPolicy::Random,
        other => {
            report.differs(
                KEY,
                format!("Envoy has no `{}`; destinations take turns", other.name()),
            );
            LbPolicy::RoundRobin
        }
    };
    written.lb_policy = policy.into();
}
