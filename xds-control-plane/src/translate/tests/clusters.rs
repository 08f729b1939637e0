use std::time::Duration;

use xds_types::pb::envoy::config::cluster::v3::cluster::LbPolicy;
use xds_types::pb::envoy::config::core::v3::health_check::HealthChecker;
use xds_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use xds_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::{
    UpstreamProtocolOptions, explicit_http_config::ProtocolConfig,
};

use super::world::{Translated, World};
use crate::proto::unpacked;
use crate::translate::{Defaults, HealthCheckKind};

/// The value of the key when the requirements were written.
const SETTINGS: &str = r#"{
    "cds": {
        "connect_timeout": "0.4s", "refresh_delay": "1s", "lb_policy": "LEAST_REQUEST",
        "drain_connections_on_host_removal": "true",
        "health_checks": {"timeout": "1s", "interval": "2s", "unhealthy_threshold": 1, "healthy_threshold": 3},
        "circuit_breakers": {"thresholds": {
            "max_connections": 5120, "max_pending_requests": 5120, "max_requests": 5120, "max_retries": 3
        }}
    },
    "rds": {"route": {"upstream_timeout": "10s"}}
}"#;

fn limits(served: &Translated, name: &str) -> [u32; 4] {
    let breakers = served.cluster(name).circuit_breakers.as_ref().unwrap();
    let [threshold] = &breakers.thresholds[..] else {
        panic!("{breakers:?}")
    };
    let value = |limit: Option<xds_types::pb::google::protobuf::UInt32Value>| limit.unwrap().value;
    [
        value(threshold.max_connections),
        value(threshold.max_pending_requests),
        value(threshold.max_requests),
        value(threshold.max_retries),
    ]
}

fn protocol(served: &Translated, name: &str) -> ProtocolConfig {
    let options = &served.cluster(name).typed_extension_protocol_options;
    let options = &options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"];
    let options: HttpProtocolOptions = unpacked(options).unwrap();
    let Some(UpstreamProtocolOptions::ExplicitHttpConfig(explicit)) =
        options.upstream_protocol_options
    else {
        panic!("{options:?}")
    };
    explicit.protocol_config.unwrap()
}

#[test]
fn a_cluster_is_as_the_settings_say() {
    let service =
        "[{name: a, provides: [{name: http}, {name: rpc, proto: grpc}, {name: raw, proto: tcp}]}]";
    let served = World::new().registry(service).translate();
    let cluster = served.cluster("a-http");
    let timeout = cluster.connect_timeout.unwrap();
    assert_eq!((timeout.seconds, timeout.nanos), (0, 400_000_000));
    assert_eq!(cluster.lb_policy, i32::from(LbPolicy::LeastRequest));
    assert!(cluster.ignore_health_on_host_removal);
    let [check] = &cluster.health_checks[..] else {
        panic!("{cluster:?}")
    };
    assert_eq!(
        (
            check.timeout.unwrap().seconds,
            check.interval.unwrap().seconds
        ),
        (1, 2)
    );
    assert_eq!(
        (
            check.unhealthy_threshold.unwrap().value,
            check.healthy_threshold.unwrap().value
        ),
        (1, 3)
    );
    assert!(matches!(
        check.health_checker,
        Some(HealthChecker::TcpHealthCheck(_))
    ));
    assert_eq!(limits(&served, "a-http"), [5120, 5120, 5120, 3]);
    assert!(matches!(
        protocol(&served, "a-http"),
        ProtocolConfig::HttpProtocolOptions(_)
    ));
    assert!(matches!(
        protocol(&served, "a-rpc"),
        ProtocolConfig::Http2ProtocolOptions(_)
    ));
    assert!(
        served
            .cluster("a-raw")
            .typed_extension_protocol_options
            .is_empty()
    );
    assert_eq!(
        served.host_names(),
        ["a-http", "a-rpc"],
        "bytes have no host"
    );
}

#[test]
fn the_key_of_the_requirements_is_what_is_built_in() {
    assert_eq!(
        Defaults::from_json(SETTINGS.as_bytes()),
        Ok((Defaults::default(), Vec::new()))
    );
    assert_eq!(
        Defaults::from_json(b"{}"),
        Ok((Defaults::default(), Vec::new()))
    );
}

#[test]
fn health_is_checked_as_is_chosen() {
    let service =
        "[{name: a, provides: [{name: http}, {name: rpc, proto: grpc}, {name: raw, proto: tcp}]}]";
    let mut world = World::new().registry(service);
    world.options.health_check = HealthCheckKind::Http("/ping".into());
    let served = world.translate();
    let checker = |name: &str| {
        served.cluster(name).health_checks[0]
            .health_checker
            .clone()
            .unwrap()
    };
    assert!(
        matches!(checker("a-http"), HealthChecker::HttpHealthCheck(http) if http.path == "/ping")
    );
    assert!(matches!(
        checker("a-rpc"),
        HealthChecker::GrpcHealthCheck(_)
    ));
    assert!(matches!(checker("a-raw"), HealthChecker::TcpHealthCheck(_)));
    world.options.health_check = HealthCheckKind::None;
    assert!(world.translate().cluster("a-http").health_checks.is_empty());
}

/// Cases C04 to C09: numbers as texts, and one field that is wrong costs that field.
#[test]
fn settings_are_read_leniently_field_by_field() {
    let read = |json: &str| Defaults::from_json(json.as_bytes()).unwrap();
    let built_in = Defaults::default();
    let (read_all, problems) = read(
        r#"{"cds": {"connect_timeout": 2, "lb_policy": "random", "drain_connections_on_host_removal": false,
            "health_checks": {"timeout": "1.5s", "interval": "250ms", "unhealthy_threshold": "2"},
            "circuit_breakers": {"thresholds": [{"max_retries": "5", "max_requests": 7}]}, "unknown": []},
            "rds": {"route": {"upstream_timeout": "2m"}}}"#,
    );
    let expected = Defaults {
        connect_timeout: Duration::from_secs(2),
        lb_policy: LbPolicy::Random,
        drain_on_removal: false,
        health_timeout: Duration::from_millis(1500),
        health_interval: Duration::from_millis(250),
        unhealthy_threshold: 2,
        max_retries: 5,
        max_requests: 7,
        upstream_timeout: Duration::from_secs(120),
        ..Defaults::default()
    };
    assert_eq!((read_all, problems), (expected, Vec::new()));

    for (field, value) in [
        ("connect_timeout", r#""soon""#),
        ("connect_timeout", r#""0s""#),
        ("connect_timeout", "-1"),
        ("lb_policy", r#""FOO""#),
        ("lb_policy", r#""CLUSTER_PROVIDED""#),
        ("drain_connections_on_host_removal", r#""maybe""#),
        ("refresh_delay", "[]"),
    ] {
        let (read, problems) = read(&format!(r#"{{"cds": {{"{field}": {value}}}}}"#));
        assert_eq!(read, built_in, "{field} {value}");
        assert!(
            problems.len() == 1 && problems[0].contains(field),
            "{problems:?}"
        );
    }
    for limit in ["0", "-3", "1.5", "1e3", "99999999999", r#""x""#] {
        let json = format!(
            r#"{{"cds": {{"circuit_breakers": {{"thresholds": {{"max_requests": {limit}}}}}}}}}"#
        );
        let (read, problems) = read(&json);
        assert_eq!((read.max_requests, problems.len()), (5120, 1), "{limit}");
    }
    let (none, problems) =
        read(r#"{"cds": {"circuit_breakers": {"thresholds": {"max_retries": 0}}}}"#);
    assert_eq!(
        (none.max_retries, problems.len()),
        (0, 0),
        "that nothing is retried may be meant"
    );
    for text in ["", "{", "[]", "5"] {
        assert!(Defaults::from_json(text.as_bytes()).is_err(), "{text}");
    }
}

/// Cases C10, C12 and C13.
#[test]
fn limits_by_tags_are_for_those_that_the_registry_does_not_know() {
    let tag = |limit: &str| format!("envoy.settings.upstream.{limit}");
    let cases: &[(&str, [u32; 4], &[&str])] = &[
        ("max_connections=7", [7, 5120, 5120, 3], &[]),
        ("max_pending_requests=7", [5120, 7, 5120, 3], &[]),
        ("max_requests=7", [5120, 5120, 7, 3], &[]),
        ("max_retries=7", [5120, 5120, 5120, 7], &[]),
        ("max_retries=0", [5120, 5120, 5120, 0], &[]),
        ("max_requests=0", [5120, 5120, 5120, 3], &["bad_tag"]),
        ("max_requests=-3", [5120, 5120, 5120, 3], &["bad_tag"]),
        ("max_requests=1e3", [5120, 5120, 5120, 3], &["bad_tag"]),
        (
            "max_requests=99999999999",
            [5120, 5120, 5120, 3],
            &["bad_tag"],
        ),
    ];
    for (limit, expected, codes) in cases {
        let served = World::new()
            .live("j@sas=10.0.0.1:80", &["domain-x", &tag(limit)])
            .translate();
        assert_eq!(
            (limits(&served, "j"), served.codes()),
            (*expected, codes.to_vec()),
            "{limit}"
        );
    }
    let served = World::new()
        .registry("[{name: a, provides: [{name: http}]}]")
        .live("a-http@sas=10.0.0.1:80", &[&tag("max_requests=7")])
        .translate();
    assert_eq!(
        (limits(&served, "a-http"), served.codes()),
        ([5120, 5120, 5120, 3], vec![])
    );
}
