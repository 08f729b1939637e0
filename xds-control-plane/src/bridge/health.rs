//! Health checks.

use std::time::Duration;

use proxy_model::compiled::Cluster;
use xds_types::pb::envoy::config::cluster::v3::OutlierDetection;
use xds_types::pb::envoy::config::core::v3::HealthCheck;
use xds_types::pb::envoy::config::core::v3::health_check::{HealthChecker, HttpHealthCheck};
use xds_types::pb::envoy::r#type::v3::{CodecClientType, Int64Range};
use xds_types::pb::google::protobuf::UInt32Value;

use super::action::duration;
use super::protocol::{self, Protocols};
use super::report::Report;

const UNSET: Option<UInt32Value> = None;

fn number(value: u32) -> Option<UInt32Value> {
    Some(UInt32Value { value })
}

/// Returns the active health checks, if they are enabled.
pub(super) fn active(cluster: &Cluster, report: &mut Report<'_>) -> Option<HealthCheck> {
    let check = cluster.active_check()?;
    let mut paths = cluster.destinations().iter().map(|destination| {
        let base = destination.health_address().base_path();
        format!("{base}{}", check.path_at(destination))
    });
    let path = paths.next().unwrap_or_else(|| check.path().to_owned());
    if paths.any(|other| other != path) {
        report.differs(
            "HealthCheck/Active",
            format!(
                "the destinations are probed at several paths; Envoy probes all of them at `{path}`"
            ),
        );
    }
    if check.policy() != "ConsecutiveFailures" {
        report.differs(
            "HealthCheck/Active/Policy",
            "Envoy counts failures in a row, whatever the program's policy does",
        );
    }
    let path = match path.as_str() {
        "" => "/",
        path => path,
    };
    Some(HealthCheck {
        timeout: Some(duration(check.timeout())),
        interval: Some(duration(check.interval())),
        // The threshold is a number above 0.
        unhealthy_threshold: number(check.threshold().ceil().clamp(1.0, 1e6) as u32),
        healthy_threshold: number(1),
        health_checker: Some(HealthChecker::HttpHealthCheck(HttpHealthCheck {
            path: format!("{path}{}", check.query()),
            expected_statuses: vec![Int64Range {
                start: 200,
                end: 300,
            }],
            codec_client_type: match protocol::of(cluster) {
                Some(Protocols::Http2) => CodecClientType::Http2,
                _ => CodecClientType::Http1,
            }
            .into(),
            ..HttpHealthCheck::default()
        })),
        ..HealthCheck::default()
    })
}

/// Returns the passive health checks, if they are enabled.
pub(super) fn passive(cluster: &Cluster, report: &mut Report<'_>) -> Option<OutlierDetection> {
    /// The longest ejection time that Envoy supports.
    const LONGEST: Duration = Duration::from_secs(300);
    let check = cluster.passive_check()?;
    report.differs(
        "HealthCheck/Passive",
        "Envoy looks at failures in windows of 10 s, and ejects longer each time",
    );
    let percent = (check.rate_limit() * 100.0).round().clamp(1.0, 100.0) as u32;
    Some(OutlierDetection {
        base_ejection_time: Some(duration(check.reactivation())),
        max_ejection_time: Some(duration(check.reactivation().max(LONGEST))),
        max_ejection_percent: number(100),
        // Only failures to get a response count.
        split_external_local_origin_errors: true,
        failure_percentage_threshold: number(percent),
        failure_percentage_minimum_hosts: number(1),
        failure_percentage_request_volume: number(10),
        enforcing_failure_percentage_local_origin: number(100),
        enforcing_failure_percentage: number(0),
        enforcing_consecutive_5xx: number(0),
        enforcing_consecutive_gateway_failure: number(0),
        enforcing_consecutive_local_origin_failure: number(0),
        enforcing_success_rate: number(0),
        enforcing_local_origin_success_rate: number(0),
        consecutive_5xx: UNSET,
        ..OutlierDetection::default()
    })
}
