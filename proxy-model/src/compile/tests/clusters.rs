use std::time::Duration;

use super::*;
use crate::compiled::{AffinityCookie, AffinityFailure, AffinityKey, ProbeKind};
use crate::config::{HttpVersion, VersionPolicy};

#[test]
fn a_cluster_needs_nothing_but_an_id() {
    // D27
    let snapshot = accepted(cluster(json!({})));
    let cluster = &snapshot.clusters()[0];
    assert_eq!(cluster.id().as_str(), "c");
    assert_eq!(cluster.balancing(), &BalancingPolicy::PowerOfTwoChoices);
    assert_eq!(cluster.availability(), &AvailabilityPolicy::HealthyOrPanic);
    assert!(cluster.active_check().is_none() && cluster.passive_check().is_none());
    assert!(cluster.destinations().is_empty());
    let upstream = cluster.upstream();
    assert_eq!(upstream.version(), HttpVersion::Http2);
    assert_eq!(
        upstream.version_policy(),
        VersionPolicy::RequestVersionOrLower
    );
    assert_eq!(upstream.activity_timeout(), Duration::from_secs(100));
    assert_eq!(upstream.max_connections(), None);
    assert!(upstream.multiple_http2_connections() && !upstream.accepts_any_certificate());
    assert!(upstream.tls12() && upstream.tls13());
    rejected(
        json!({ "Clusters": { "": {} } }),
        "missing_cluster_id",
        "/Clusters/",
    );
}

#[test]
fn load_balancing_policies() {
    // D30
    for (written, name) in [
        ("roundROBIN", "RoundRobin"),
        ("LeastRequests", "LeastRequests"),
        ("random", "Random"),
        ("FirstAlphabetical", "FirstAlphabetical"),
        ("", "PowerOfTwoChoices"),
    ] {
        let snapshot = accepted(cluster(json!({ "LoadBalancingPolicy": written })));
        assert_eq!(snapshot.clusters()[0].balancing().name(), name);
    }
    let unknown = cluster(json!({ "LoadBalancingPolicy": "RoundRobbin" }));
    let problems = compile(unknown.clone()).unwrap_err();
    assert!(
        problems.to_string().contains("did you mean `RoundRobin`?"),
        "{problems}"
    );
    rejected(
        unknown,
        "unknown_load_balancing_policy",
        "/Clusters/c/LoadBalancingPolicy",
    );
    let own = config(cluster(json!({ "LoadBalancingPolicy": "mine" })));
    let (snapshot, _) =
        Snapshot::compile(own, &options().with_balancing_policies(["Mine"])).unwrap();
    assert_eq!(
        snapshot.clusters()[0].balancing(),
        &BalancingPolicy::Custom("Mine".into())
    );
}

#[test]
fn session_affinity() {
    let affinity = |more: Value| {
        let mut affinity = json!({ "Enabled": true, "AffinityKeyName": "key" });
        affinity
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        cluster(json!({ "SessionAffinity": affinity }))
    };
    for policy in ["HashCookie", "arrCookie", "Cookie", "CustomHeader", ""] {
        accepted(affinity(
            json!({ "Policy": policy, "FailurePolicy": "return503error" }),
        ));
    }
    let place = "/Clusters/c/SessionAffinity";
    for (more, code, below) in [
        // D31
        (
            json!({ "FailurePolicy": "Invalid" }),
            "unknown_affinity_failure_policy",
            "FailurePolicy",
        ),
        // D32
        (
            json!({ "AffinityKeyName": null }),
            "missing_affinity_key_name",
            "AffinityKeyName",
        ),
        (
            json!({ "AffinityKeyName": "" }),
            "missing_affinity_key_name",
            "AffinityKeyName",
        ),
        (
            json!({ "AffinityKeyName": "a;b" }),
            "invalid_affinity_key_name",
            "AffinityKeyName",
        ),
        // D33
        (
            json!({ "Policy": "Invalid" }),
            "unknown_affinity_policy",
            "Policy",
        ),
        // D35
        (
            json!({ "Cookie": { "Expiration": "0s" } }),
            "not_positive",
            "Cookie/Expiration",
        ),
        (
            json!({ "Cookie": { "MaxAge": "00:00" } }),
            "not_positive",
            "Cookie/MaxAge",
        ),
        (
            json!({ "Cookie": { "SameSite": "Laxx" } }),
            "unknown_value",
            "Cookie/SameSite",
        ),
        (
            json!({ "Cookie": { "SecurePolicy": "Sometimes" } }),
            "unknown_value",
            "Cookie/SecurePolicy",
        ),
        (
            json!({ "Cookie": { "Path": "/;a" } }),
            "invalid_cookie_attribute",
            "Cookie/Path",
        ),
        (
            json!({ "Cookie": { "Domain": "a\nb" } }),
            "invalid_cookie_attribute",
            "Cookie/Domain",
        ),
    ] {
        rejected(affinity(more), code, &format!("{place}/{below}"));
    }
    rejected(
        affinity(json!({ "Policy": "CustomHeader", "AffinityKeyName": "set-cookie" })),
        "invalid_affinity_key_name",
        &format!("{place}/AffinityKeyName"),
    );
    warned(
        affinity(json!({ "Cookie": { "SameSite": "None" } })),
        "insecure_cookie",
        &format!("{place}/Cookie/SameSite"),
    );
    let snapshot = accepted(affinity(
        json!({ "Policy": "arrcookie", "DrainTimeout": "5m" }),
    ));
    let compiled = snapshot.clusters()[0].affinity().unwrap();
    assert_eq!(
        (compiled.key(), compiled.failure(), compiled.key_name()),
        (
            &AffinityKey::ArrCookie,
            &AffinityFailure::Redistribute,
            "key"
        )
    );
    assert_eq!(compiled.drain(), Some(Duration::from_secs(300)));
    assert_eq!(compiled.cookie(), &AffinityCookie::default());
    // D33: the message names the policy, its place the cluster.
    let problems = compile(affinity(json!({ "Policy": "Invalid" }))).unwrap_err();
    let text = problems.to_string();
    assert!(
        text.contains("`Invalid`") && text.contains("/Clusters/c/"),
        "{text}"
    );
    // D34
    accepted(cluster(json!({ "SessionAffinity": {
        "Policy": "Invalid", "FailurePolicy": "Invalid", "Cookie": { "MaxAge": "0s", "SameSite": "x" },
    } })));
}

#[test]
fn active_health_checks() {
    let active = |more: Value| {
        let mut active = json!({ "Enabled": true });
        active
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        cluster(json!({ "HealthCheck": { "Active": active } }))
    };
    // D38
    for policy in [Value::Null, json!(""), json!("ConsecutiveFailures")] {
        let snapshot = accepted(active(json!({
            "Policy": policy, "Interval": "00:00:25", "Timeout": "00:00:10", "Path": "/api/health", "Query": "?a=b",
        })));
        let check = snapshot.clusters()[0].active_check().unwrap();
        assert_eq!(check.interval(), Duration::from_secs(25));
        assert_eq!(check.timeout(), Duration::from_secs(10));
        assert_eq!(
            (check.policy(), check.path(), check.query()),
            ("ConsecutiveFailures", "/api/health", "?a=b")
        );
        assert!((check.threshold() - 2.0).abs() < f64::EPSILON);
    }
    let snapshot = accepted(active(json!({ "Path": "", "Query": "" })));
    let check = snapshot.clusters()[0].active_check().unwrap();
    assert_eq!(
        (check.interval(), check.timeout()),
        (Duration::from_secs(15), Duration::from_secs(10))
    );
    assert_eq!((check.path(), check.query()), ("", ""));
    for (more, code, below) in [
        (
            json!({ "Policy": "Invalid" }),
            "unknown_active_health_policy",
            "Policy",
        ),
        (json!({ "Interval": "0s" }), "not_positive", "Interval"),
        (json!({ "Timeout": "0s" }), "not_positive", "Timeout"),
        (json!({ "Path": "health" }), "invalid_probe_path", "Path"),
        (json!({ "Query": "a=b" }), "invalid_probe_query", "Query"),
        (json!({ "Query": "?a b" }), "invalid_probe_query", "Query"),
    ] {
        rejected(
            active(more),
            code,
            &format!("/Clusters/c/HealthCheck/Active/{below}"),
        );
    }
    let snapshot = warned(
        active(json!({ "Path": "/a?b c" })),
        "query_in_path",
        "/Clusters/c/HealthCheck/Active/Path",
    );
    assert_eq!(
        snapshot.clusters()[0].active_check().unwrap().path(),
        "/a%3Fb%20c"
    );
    // Not enabled, so not checked.
    accepted(cluster(
        json!({ "HealthCheck": { "Active": { "Policy": "Invalid", "Interval": "0s" } } }),
    ));
}

#[test]
fn probes_are_of_a_kind() {
    let active = |more: Value| {
        let mut active = json!({ "Enabled": true });
        active
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        cluster(json!({ "HealthCheck": { "Active": active } }))
    };
    let check = |snapshot: &Snapshot| snapshot.clusters()[0].active_check().unwrap().clone();
    let plain = check(&accepted(active(json!({ "Interval": "7s" }))));
    assert_eq!(
        (plain.probe(), plain.rise(), plain.fast_interval()),
        (&ProbeKind::Http, 1, Duration::from_secs(7))
    );
    let grpc = json!({ "Probe": "grpc", "GrpcService": "s", "Rise": 3, "FastInterval": "1s" });
    let grpc = check(&accepted(active(grpc)));
    assert_eq!(
        (grpc.probe(), grpc.rise(), grpc.fast_interval()),
        (&ProbeKind::Grpc("s".into()), 3, Duration::from_secs(1))
    );
    let place = "/Clusters/c/HealthCheck/Active";
    rejected(
        active(json!({ "Probe": "Udp" })),
        "unknown_value",
        &format!("{place}/Probe"),
    );
    for (more, below) in [
        (json!({ "Probe": "Tcp", "Path": "/health" }), "Path"),
        (json!({ "Probe": "Grpc", "Query": "?a" }), "Query"),
        (json!({ "GrpcService": "s" }), "GrpcService"),
        (
            json!({ "Interval": "5s", "FastInterval": "6s" }),
            "FastInterval",
        ),
    ] {
        warned(
            active(more),
            "unused_probe_setting",
            &format!("{place}/{below}"),
        );
    }
}

#[test]
fn passive_health_checks() {
    let passive = |passive: Value| cluster(json!({ "HealthCheck": { "Passive": passive } }));
    let snapshot = accepted(passive(json!({ "Enabled": true })));
    let check = snapshot.clusters()[0].passive_check().unwrap();
    assert_eq!(
        (check.policy(), check.reactivation()),
        ("TransportFailureRate", Duration::from_secs(60))
    );
    assert!((check.rate_limit() - 0.3).abs() < f64::EPSILON);
    let place = "/Clusters/c/HealthCheck/Passive";
    rejected(
        passive(json!({ "Enabled": true, "Policy": "x" })),
        "unknown_passive_health_policy",
        &format!("{place}/Policy"),
    );
    rejected(
        passive(json!({ "Enabled": true, "ReactivationPeriod": "0s" })),
        "not_positive",
        &format!("{place}/ReactivationPeriod"),
    );
    for (key, wrong) in [
        ("TransportFailureRateHealthPolicy.DetectionWindowSize", "0s"),
        ("TransportFailureRateHealthPolicy.DetectionWindowSize", "2h"),
        (
            "TransportFailureRateHealthPolicy.DetectionWindowSize",
            "soon",
        ),
        (
            "TransportFailureRateHealthPolicy.MinimalTotalCountThreshold",
            "-1",
        ),
    ] {
        let metadata = json!({ "HealthCheck": { "Passive": { "Enabled": true } }, "Metadata": { key: wrong } });
        let place = format!("/Clusters/c/Metadata/{key}");
        let snapshot = warned(cluster(metadata), "invalid_metadata", &place);
        let check = snapshot.clusters()[0].passive_check().unwrap();
        assert_eq!(
            (check.window(), check.least()),
            (Duration::from_secs(60), 10)
        );
    }
    let set = json!({ "HealthCheck": { "Passive": { "Enabled": true } }, "Metadata": {
        "TransportFailureRateHealthPolicy.DetectionWindowSize": "00:00:30",
        "TransportFailureRateHealthPolicy.MinimalTotalCountThreshold": "3",
    } });
    let snapshot = accepted(cluster(set));
    let check = snapshot.clusters()[0].passive_check().unwrap();
    assert_eq!(
        (check.window(), check.least()),
        (Duration::from_secs(30), 3)
    );
    accepted(passive(
        json!({ "Enabled": false, "Policy": "x", "ReactivationPeriod": "0s" }),
    ));
}

#[test]
fn the_available_destinations_policy_is_always_checked() {
    let policy =
        |policy: &str| cluster(json!({ "HealthCheck": { "AvailableDestinationsPolicy": policy } }));
    let snapshot = accepted(policy("healthyandunknown"));
    assert_eq!(
        snapshot.clusters()[0].availability(),
        &AvailabilityPolicy::HealthyAndUnknown
    );
    rejected(
        policy("Healthy"),
        "unknown_available_destinations_policy",
        "/Clusters/c/HealthCheck/AvailableDestinationsPolicy",
    );
}

#[test]
fn thresholds_come_from_metadata() {
    let with = |threshold: &str| {
        cluster(json!({
            "HealthCheck": { "Active": { "Enabled": true }, "Passive": { "Enabled": true } },
            "Metadata": {
                "consecutivefailureshealthpolicy.threshold": threshold,
                "TransportFailureRateHealthPolicy.RateLimit": "0.61",
            },
        }))
    };
    let snapshot = accepted(with("3"));
    let cluster = &snapshot.clusters()[0];
    assert!((cluster.active_check().unwrap().threshold() - 3.0).abs() < f64::EPSILON);
    assert!((cluster.passive_check().unwrap().rate_limit() - 0.61).abs() < f64::EPSILON);
    let often = json!({
        "HealthCheck": { "Passive": { "Enabled": true } },
        "Metadata": { "TransportFailureRateHealthPolicy.RateLimit": "1.5" },
    });
    let place = "/Clusters/c/Metadata/TransportFailureRateHealthPolicy.RateLimit";
    let snapshot = warned(self::cluster(often), "invalid_metadata", place);
    let check = snapshot.clusters()[0].passive_check().unwrap();
    assert!((check.rate_limit() - 1.5).abs() < f64::EPSILON);
    for text in ["", "many", "-1", "0", "NaN", "inf"] {
        let place = "/Clusters/c/Metadata/consecutivefailureshealthpolicy.threshold";
        let snapshot = warned(with(text), "invalid_metadata", place);
        let check = snapshot.clusters()[0].active_check().unwrap();
        assert!((check.threshold() - 2.0).abs() < f64::EPSILON);
    }
}

#[test]
fn request_settings() {
    // D36
    for version in ["1.1", "2.0", "3.0"] {
        accepted(cluster(json!({ "HttpRequest": { "Version": version } })));
    }
    let old = cluster(json!({ "HttpRequest": { "Version": "1.0" } }));
    let snapshot = warned(old, "http_1_0", "/Clusters/c/HttpRequest/Version");
    assert_eq!(
        snapshot.clusters()[0].upstream().version(),
        HttpVersion::Http10
    );
    let never = cluster(json!({ "HttpRequest": { "ActivityTimeout": "0s" } }));
    rejected(
        never,
        "not_positive",
        "/Clusters/c/HttpRequest/ActivityTimeout",
    );
}

#[test]
fn client_settings() {
    let client = |client: Value| cluster(json!({ "HttpClient": client }));
    let settings = client(json!({
        "SslProtocols": ["tls13"], "MaxConnectionsPerServer": 7, "EnableMultipleHttp2Connections": false,
        "DangerousAcceptAnyServerCertificate": true, "RequestHeaderEncoding": "UTF-8",
        "ResponseHeaderEncoding": "Latin1", "WebProxy": { "Address": "http://proxy:3128/" },
    }));
    let pointer = "/Clusters/c/HttpClient/DangerousAcceptAnyServerCertificate";
    let snapshot = warned(settings, "any_certificate", pointer);
    accepted(client(
        json!({ "DangerousAcceptAnyServerCertificate": false }),
    ));
    let upstream = snapshot.clusters()[0].upstream();
    assert!(!upstream.tls12() && upstream.tls13() && upstream.accepts_any_certificate());
    assert_eq!(upstream.max_connections(), Some(7));
    assert!(!upstream.multiple_http2_connections());
    for (more, code, below) in [
        (
            json!({ "MaxConnectionsPerServer": 0 }),
            "not_positive",
            "MaxConnectionsPerServer",
        ),
        (
            json!({ "RequestHeaderEncoding": "utf8-x" }),
            "unknown_encoding",
            "RequestHeaderEncoding",
        ),
        (
            json!({ "ResponseHeaderEncoding": "x" }),
            "unknown_encoding",
            "ResponseHeaderEncoding",
        ),
        (
            json!({ "SslProtocols": ["Tls12", "Tls14"] }),
            "unknown_value",
            "SslProtocols/1",
        ),
        (
            json!({ "WebProxy": { "Address": "proxy:3128" } }),
            "invalid_address",
            "WebProxy/Address",
        ),
    ] {
        rejected(
            client(more),
            code,
            &format!("/Clusters/c/HttpClient/{below}"),
        );
    }
    warned(
        client(json!({ "SslProtocols": "Tls11, Tls12" })),
        "insecure_tls_version",
        "/Clusters/c/HttpClient/SslProtocols/0",
    );
    let problems = compile(client(json!({ "SslProtocols": ["Ssl3"] }))).unwrap_err();
    assert_eq!(
        found(&problems),
        [
            (
                Severity::Warning,
                "insecure_tls_version",
                "/Clusters/c/HttpClient/SslProtocols/0"
            ),
            (
                Severity::Error,
                "insecure_tls_version",
                "/Clusters/c/HttpClient/SslProtocols"
            ),
        ]
    );
}

#[test]
fn encodings_that_bytes_do_not_follow_have_no_effect() {
    for encoding in ["utf-16", "UTF-32LE"] {
        warned(
            cluster(json!({ "HttpClient": { "RequestHeaderEncoding": encoding } })),
            "no_effect",
            "/Clusters/c/HttpClient/RequestHeaderEncoding",
        );
    }
    for encoding in ["utf8", "US-ASCII", "iso-8859-1"] {
        accepted(cluster(
            json!({ "HttpClient": { "ResponseHeaderEncoding": encoding } }),
        ));
    }
}

#[test]
fn responses_are_never_buffered() {
    let buffering =
        |allowed: bool| cluster(json!({ "HttpRequest": { "AllowResponseBuffering": allowed } }));
    accepted(buffering(false));
    let pointer = "/Clusters/c/HttpRequest/AllowResponseBuffering";
    warned(buffering(true), "no_effect", pointer);
}

#[test]
fn the_proxy_protocol_needs_connections_of_one_client() {
    let place = "/Clusters/c/HttpClient/SendProxyProtocol";
    let on = json!({ "SendProxyProtocol": true });
    for request in [
        json!({}),
        json!({ "Version": "1.1" }),
        json!({ "Version": "2" }),
        json!({ "Version": "1.1", "VersionPolicy": "RequestVersionExact" }),
    ] {
        let snapshot = accepted(cluster(json!({ "HttpClient": on, "HttpRequest": request })));
        assert!(snapshot.clusters()[0].upstream().sends_proxy_protocol());
    }
    for policy in ["RequestVersionExact", "RequestVersionOrHigher"] {
        let request = json!({ "Version": "2", "VersionPolicy": policy });
        let value = cluster(json!({ "HttpClient": on, "HttpRequest": request }));
        rejected(value, "contradiction", place);
    }
    let proxy = json!({ "SendProxyProtocol": true, "WebProxy": { "Address": "http://p:3128" } });
    rejected(
        cluster(json!({ "HttpClient": proxy })),
        "contradiction",
        place,
    );
}
