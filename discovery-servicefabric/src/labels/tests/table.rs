//! Every label, of preview10, of its successor, and our own.

use serde_json::{Value, json};

use super::*;

/// Returns the cluster made from a service's labels, without the parts that every cluster has.
#[track_caller]
fn cluster(pairs: &[(&str, &str)]) -> Value {
    let config = good(&YarpLabels::default(), &web(pairs));
    let mut cluster = serde_json::to_value(&config.clusters[0]).unwrap();
    let cluster = cluster.as_object_mut().unwrap();
    cluster.remove("Destinations");
    let metadata = cluster["Metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| !key.starts_with("__SF."));
    if metadata.is_empty() {
        cluster.remove("Metadata");
    }
    json!(cluster)
}

/// The same for its only route.
#[track_caller]
fn only_route(pairs: &[(&str, &str)]) -> Value {
    let config = good(&YarpLabels::default(), &web(pairs));
    serde_json::to_value(&config.routes[0]).unwrap()
}

#[test]
fn every_label_of_preview10_for_a_cluster() {
    let expected = json!({
        "LoadBalancingPolicy": "RoundRobin",
        "SessionAffinity": {
            "Enabled": true, "Policy": "CustomHeader", "FailurePolicy": "Return503Error", "AffinityKeyName": "X-Key",
        },
        "HttpRequest": { "ActivityTimeout": "00:00:30", "Version": "2", "VersionPolicy": "RequestVersionExact" },
        "HealthCheck": {
            "Active": {
                "Enabled": true, "Interval": "00:00:10", "Timeout": "00:00:05", "Path": "/health", "Policy": "ConsecutiveFailures",
            },
            "Passive": { "Enabled": true, "Policy": "TransportFailureRate", "ReactivationPeriod": "00:02:00" },
        },
        "HttpClient": {
            "DangerousAcceptAnyServerCertificate": true, "MaxConnectionsPerServer": 7, "SslProtocols": ["Tls12", "Tls13"],
            "EnableMultipleHttp2Connections": false, "RequestHeaderEncoding": "utf-8",
            "WebProxy": { "Address": "http://proxy:3128", "BypassOnLocal": true, "UseDefaultCredentials": false },
        },
        "Metadata": { "a.b": "1" },
    });
    let health = |name: &str| {
        let key = |rest: &str| format!("YARP.Backend.{name}.{rest}");
        [
            (key("Active.Enabled"), "TRUE"),
            (key("Active.Interval"), "00:00:10"),
            (key("Active.Timeout"), "00:00:5"),
            (key("Active.Path"), "/health"),
            (key("Active.Policy"), "ConsecutiveFailures"),
            (key("Passive.Enabled"), "true"),
            (key("Passive.Policy"), "TransportFailureRate"),
            (key("Passive.ReactivationPeriod"), "00:02:00"),
        ]
    };
    // The successor writes one of them with a small `c`.
    for name in ["HealthCheck", "Healthcheck"] {
        let health = health(name);
        let health = health.iter().map(|(key, value)| (key.as_str(), *value));
        let pairs: Vec<_> = [
            ("YARP.EnableDynamicOverrides", "true"),
            ("YARP.Backend.LoadBalancingPolicy", "RoundRobin"),
            ("YARP.Backend.SessionAffinity.Enabled", "True"),
            ("YARP.Backend.SessionAffinity.Mode", "CustomHeader"),
            (
                "YARP.Backend.SessionAffinity.FailurePolicy",
                "Return503Error",
            ),
            (
                "YARP.Backend.SessionAffinity.Settings.CustomHeaderName",
                "X-Key",
            ),
            ("YARP.Backend.HttpRequest.Timeout", "00:00:30"),
            ("YARP.Backend.HttpRequest.Version", "2"),
            (
                "YARP.Backend.HttpRequest.VersionPolicy",
                "RequestVersionExact",
            ),
            (
                "YARP.Backend.HttpClient.DangerousAcceptAnyServerCertificate",
                "true",
            ),
            ("YARP.Backend.HttpClient.MaxConnectionsPerServer", "7"),
            ("YARP.Backend.HttpClient.SslProtocols", "Tls12, Tls13"),
            (
                "YARP.Backend.HttpClient.EnableMultipleHttp2Connections",
                "false",
            ),
            ("YARP.Backend.HttpClient.RequestHeaderEncoding", "utf-8"),
            (
                "YARP.Backend.HttpClient.WebProxy.Address",
                "http://proxy:3128",
            ),
            ("YARP.Backend.HttpClient.WebProxy.BypassOnLocal", "true"),
            (
                "YARP.Backend.HttpClient.WebProxy.UseDefaultCredentials",
                "false",
            ),
            ("YARP.Backend.Metadata.a.b", "1"),
        ]
        .into_iter()
        .chain(health)
        .collect();
        assert_eq!(cluster(&pairs), expected, "{name}");
    }
}

#[test]
fn what_the_successor_added_for_a_cluster() {
    let found = cluster(&[
        ("Yarp.Backend.SessionAffinity.Enabled", "true"),
        ("Yarp.Backend.SessionAffinity.Policy", "Cookie"),
        ("Yarp.Backend.SessionAffinity.AffinityKeyName", "key"),
        ("Yarp.Backend.SessionAffinity.Cookie.Path", "/p"),
        ("Yarp.Backend.SessionAffinity.Cookie.SameSite", "Lax"),
        ("Yarp.Backend.SessionAffinity.Cookie.HttpOnly", "false"),
        ("Yarp.Backend.SessionAffinity.Cookie.MaxAge", "02:00:00"),
        ("Yarp.Backend.SessionAffinity.Cookie.Domain", "d.example"),
        ("Yarp.Backend.SessionAffinity.Cookie.IsEssential", "true"),
        ("Yarp.Backend.SessionAffinity.Cookie.SecurePolicy", "Always"),
        (
            "Yarp.Backend.SessionAffinity.Cookie.Expiration",
            "1.00:00:00",
        ),
        ("Yarp.Backend.HttpRequest.ActivityTimeout", "00:01:40"),
        ("Yarp.Backend.HttpRequest.AllowResponseBuffering", "true"),
        (
            "Yarp.Backend.HealthCheck.AvailableDestinationsPolicy",
            "HealthyOrPanic",
        ),
    ]);
    let expected = json!({
        "SessionAffinity": {
            "Enabled": true, "Policy": "Cookie", "AffinityKeyName": "key",
            "Cookie": {
                "Path": "/p", "Domain": "d.example", "HttpOnly": false, "SecurePolicy": "Always", "SameSite": "Lax",
                "Expiration": "1.00:00:00", "MaxAge": "02:00:00", "IsEssential": true,
            },
        },
        "HttpRequest": { "ActivityTimeout": "00:01:40", "AllowResponseBuffering": true },
        "HealthCheck": { "AvailableDestinationsPolicy": "HealthyOrPanic" },
    });
    assert_eq!(found, expected);
}

#[test]
fn every_label_of_a_route() {
    let found = only_route(&[
        ("YARP.Routes.My_Route-1.Path", "v2/{**rest}"),
        ("YARP.Routes.My_Route-1.Hosts", "a.com, b.com,,"),
        ("YARP.Routes.My_Route-1.Order", "2"),
        ("YARP.Routes.My_Route-1.Metadata.x.y", "z"),
        ("YARP.Routes.My_Route-1.MatchHeaders.[1].Name", "X-B"),
        ("YARP.Routes.My_Route-1.MatchHeaders.[1].Mode", "Exists"),
        ("YARP.Routes.My_Route-1.MatchHeaders.[0].Name", "X-A"),
        (
            "YARP.Routes.My_Route-1.MatchHeaders.[0].Values",
            "apples, oranges, grapes",
        ),
        (
            "YARP.Routes.My_Route-1.MatchHeaders.[0].IsCaseSensitive",
            "true",
        ),
        (
            "YARP.Routes.My_Route-1.MatchHeaders.[0].Mode",
            "HeaderPrefix",
        ),
        ("YARP.Routes.My_Route-1.MatchQueries.[0].Name", "q"),
        ("YARP.Routes.My_Route-1.MatchQueries.[0].Values", "1"),
        (
            "YARP.Routes.My_Route-1.MatchQueries.[0].IsCaseSensitive",
            "true",
        ),
        ("YARP.Routes.My_Route-1.MatchQueries.[0].Mode", "Contains"),
        (
            "YARP.Routes.My_Route-1.Transforms.[1].ResponseHeader",
            "X-Ping",
        ),
        ("YARP.Routes.My_Route-1.Transforms.[1].Append", "Pong"),
        ("YARP.Routes.My_Route-1.Transforms.[1].When", "Success"),
        (
            "YARP.Routes.My_Route-1.Transforms.[0].ResponseHeader",
            "X-Foo",
        ),
        ("YARP.Routes.My_Route-1.Transforms.[0].Append", "Bar"),
        ("YARP.Routes.My_Route-1.Transforms.[0].When", "Always"),
        ("YARP.Routes.My_Route-1.Methods", "GET,PUT"),
        ("YARP.Routes.My_Route-1.AuthorizationPolicy", "Default"),
        ("YARP.Routes.My_Route-1.CorsPolicy", "Disable"),
        // Ours.
        ("YARP.Routes.My_Route-1.RateLimiterPolicy", "Disable"),
        ("YARP.Routes.My_Route-1.Timeout", "5s"),
        ("YARP.Routes.My_Route-1.MaxRequestBodySize", "-1"),
        ("YARP.Routes.My_Route-1.StrictPaths", "true"),
        ("YARP.Routes.My_Route-1.TimeoutIncludesBody", "true"),
        ("YARP.Routes.My_Route-1.Filters", "first, second"),
        ("YARP.Routes.My_Route-1.Layers", "outer"),
    ]);
    let expected = json!({
        "ClusterId": "fabric:/App/Web",
        "Match": {
            "Path": "v2/{**rest}", "Hosts": ["a.com", "b.com"], "Methods": ["GET", "PUT"],
            "Headers": [
                { "Name": "X-A", "Values": ["apples", "oranges", "grapes"], "Mode": "HeaderPrefix", "IsCaseSensitive": true },
                { "Name": "X-B", "Mode": "Exists" },
            ],
            "QueryParameters": [{ "Name": "q", "Values": ["1"], "Mode": "Contains", "IsCaseSensitive": true }],
        },
        "Order": 2, "MaxRequestBodySize": -1, "StrictPaths": true, "Timeout": "00:00:05", "TimeoutIncludesBody": true,
        "AuthorizationPolicy": "Default", "CorsPolicy": "Disable", "RateLimiterPolicy": "Disable",
        "Metadata": { "x.y": "z" },
        // By number, independent of the order of the labels.
        "Transforms": [
            { "ResponseHeader": "X-Foo", "Append": "Bar", "When": "Always" },
            { "ResponseHeader": "X-Ping", "Append": "Pong", "When": "Success" },
        ],
        "Filters": ["first", "second"], "Layers": ["outer"],
    });
    assert_eq!(found, expected);
}

/// O04
#[test]
fn truth_is_written_in_any_case() {
    for (written, expected) in [
        ("true", true),
        ("True", true),
        ("TRUE", true),
        ("false", false),
        ("False", false),
        ("FALSE", false),
    ] {
        let found = cluster(&[("YARP.Backend.HealthCheck.Active.Enabled", written)]);
        let expected = json!({ "HealthCheck": { "Active": { "Enabled": expected } } });
        assert_eq!(found, expected, "{written}");
    }
}

/// O28: a path needs no slash at its beginning.
#[test]
fn a_service_may_have_several_routes() {
    let config = good(
        &YarpLabels::default(),
        &web(&[
            ("YARP.Routes.a.Path", "/v1/{**rest}"),
            ("YARP.Routes.a.Order", "1"),
            ("YARP.Routes.b.Path", "v2/{**rest}"),
            ("YARP.Routes.b.Order", "2"),
            ("YARP.Routes.c.Path", "/v3/{**rest}"),
            ("YARP.Routes.c.Order", "3"),
        ]),
    );
    let routes = config.routes.values();
    let found: Vec<_> = routes
        .map(|route| (route.order, route.r#match.path.as_deref()))
        .collect();
    assert_eq!(
        found,
        [
            (Some(1), Some("/v1/{**rest}")),
            (Some(2), Some("v2/{**rest}")),
            (Some(3), Some("/v3/{**rest}")),
        ]
    );
}

#[test]
fn destinations_have_labels_in_common() {
    let config = good(
        &YarpLabels::default(),
        &web(&[
            ("YARP.Destinations.Weight", "3"),
            ("YARP.Destinations.Priority", "127"),
            ("YARP.Destinations.Zone", "z"),
            ("YARP.Destinations.Host", "h.example"),
            ("YARP.Destinations.Metadata.k", "v"),
            ("YARP.Destinations.Metadata.partitionid", "a lie"),
        ]),
    );
    let destination = serde_json::to_value(&config.clusters[0].destinations[0]).unwrap();
    let expected = json!({
        "Address": "https://10.0.0.1/", "Weight": 3, "Priority": 127, "Zone": "z", "Host": "h.example",
        "Metadata": { "k": "v", "PartitionId": "P1", "ReplicaId": "101" },
    });
    assert_eq!(destination, expected);
}

#[test]
fn a_route_may_go_to_other_clusters() {
    let found = only_route(&[
        ("YARP.Routes.r.Path", "/"),
        (
            "YARP.Routes.r.WeightedClusters.[0].ClusterId",
            "fabric:/App/Web",
        ),
        ("YARP.Routes.r.WeightedClusters.[0].Weight", "9"),
    ]);
    let clusters = json!([{ "ClusterId": "fabric:/App/Web", "Weight": 9 }]);
    assert_eq!(found["WeightedClusters"], clusters);
    assert_eq!(found["ClusterId"], Value::Null);

    let parsed = parse(&web(&[
        ("YARP.Routes.r.Path", "/"),
        ("YARP.Routes.r.ClusterId", "blue"),
    ]));
    assert_eq!(
        parsed.config.unwrap().routes[0].cluster_id,
        Some("blue".into())
    );
    let told = rejected(&web(&[
        ("YARP.Routes.r.Path", "/"),
        ("YARP.Routes.r.ClusterId", "blue"),
        ("YARP.Routes.r.ServiceFabric.ListenerName", "x"),
    ]));
    assert_eq!(
        told,
        [
            "error at /YARP.Routes.r.ServiceFabric.ListenerName: a listener belongs to this service, and the route goes to a cluster that is named"
        ]
    );
}

/// O02, and the rule that an empty text counts as unset, except for required values.
#[test]
fn empty_values_are_unset_where_they_can_be() {
    assert_eq!(cluster(&[("YARP.Backend.BackendId", "be")]), json!({}));
    let found = cluster(&[
        ("YARP.Backend.LoadBalancingPolicy", ""),
        ("YARP.Backend.HealthCheck.Active.Interval", ""),
        ("YARP.Backend.HttpRequest.Version", ""),
        ("YARP.Backend.HttpClient.MaxConnectionsPerServer", ""),
        (
            "YARP.Backend.HttpClient.DangerousAcceptAnyServerCertificate",
            "",
        ),
        ("YARP.Routes.r.Path", "/"),
        ("YARP.Routes.r.Order", ""),
    ]);
    assert_eq!(
        found,
        json!({ "HealthCheck": { "Active": {} }, "HttpClient": {}, "HttpRequest": {} })
    );
    for key in [
        "YARP.Backend.HealthCheck.Active.Enabled",
        "YARP.Backend.Healthcheck.Passive.Enabled",
        "YARP.Backend.SessionAffinity.Enabled",
    ] {
        let told = rejected(&web(&[(key, "")]));
        assert_eq!(
            told,
            [format!(
                "error at /{key}: the value is empty, and neither `true` nor `false`"
            )]
        );
    }
}

/// O11: preview10 lost the service.
#[test]
fn a_version_needs_no_policy() {
    for (written, expected) in [("2", "2"), ("2.0", "2"), ("1.1", "1.1")] {
        let found = cluster(&[("YARP.Backend.HttpRequest.Version", written)]);
        assert_eq!(found, json!({ "HttpRequest": { "Version": expected } }));
    }
    let found = cluster(&[(
        "YARP.Backend.HttpRequest.VersionPolicy",
        "RequestVersionOrHigher",
    )]);
    assert_eq!(
        found,
        json!({ "HttpRequest": { "VersionPolicy": "RequestVersionOrHigher" } })
    );
}

#[test]
fn affinity_has_the_key_that_preview10_had() {
    for (policy, expected) in [
        (None, ".Yarp.ReverseProxy.Affinity"),
        (Some("Cookie"), ".Yarp.ReverseProxy.Affinity"),
        (Some("customheader"), "X-Yarp-Proxy-Affinity"),
    ] {
        let policy = policy.map(|policy| ("YARP.Backend.SessionAffinity.Mode", policy));
        let enabled = ("YARP.Backend.SessionAffinity.Enabled", "true");
        let pairs: Vec<_> = [enabled].into_iter().chain(policy).collect();
        let found = cluster(&pairs);
        assert_eq!(found["SessionAffinity"]["AffinityKeyName"], expected);
    }
}

/// O12, O13, O18.
#[test]
fn ids_are_those_of_yarp() {
    let config = good(
        &YarpLabels::default(),
        &web(&[
            ("YARP.Backend.BackendId", "MyCoolClusterId"),
            ("YARP.Routes.MyRoute.Hosts", "example.com"),
        ]),
    );
    assert_eq!(cluster_ids(&config), ["MyCoolClusterId"]);
    assert_eq!(route_ids(&config), ["MyCoolClusterId:MyRoute"]);
    for name in [
        "justcharacters",
        "UppercaseCharacters",
        "numbers1234",
        "Under_Score",
        "Hyphen-Hyphen",
    ] {
        let key = format!("YARP.Routes.{name}.Path");
        let config = good(&YarpLabels::default(), &web(&[(&key, "/")]));
        assert_eq!(
            route_ids(&config),
            [format!("fabric%3A%2FApp%2FWeb:{name}")]
        );
    }
}
