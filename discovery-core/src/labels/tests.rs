use indexmap::IndexMap;
use proptest::prelude::*;
use proxy_model::config::{ClusterConfig, DestinationConfig, ProxyConfig, RouteConfig};
use proxy_model::{ClusterId, Severity, TimeSpan};
use serde_json::json;

use super::*;
use crate::discovery::{Destinations, LabelledService, Labels};

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    pairs.iter().map(owned).collect()
}

fn destinations() -> Destinations {
    let at = |address: &str| DestinationConfig {
        address: address.to_owned(),
        ..Default::default()
    };
    IndexMap::from([
        ("d1".into(), at("http://10.0.0.1:80")),
        ("d2".into(), at("http://10.0.0.2:80")),
    ])
}

fn parse(pairs: &[(&str, &str)]) -> Parsed {
    let service = LabelledService::new(labels(pairs), destinations());
    KeyValueLabels::new().parse("orders", &service)
}

fn served(pairs: &[(&str, &str)]) -> (ProxyConfig, Vec<String>) {
    let mut enabled = vec![("proxy.enable", "true")];
    enabled.extend(pairs);
    let parsed = parse(&enabled);
    let problems = parsed.problems.iter().map(ToString::to_string).collect();
    (parsed.fragment.expect("enabled"), problems)
}

fn route(pairs: &[(&str, &str)]) -> (RouteConfig, Vec<String>) {
    let (config, problems) = served(pairs);
    (config.routes[0].clone(), problems)
}

#[test]
fn a_service_becomes_a_cluster_and_its_routes() {
    let (config, problems) = served(&[
        ("proxy.routes.api.path", "/orders/{**rest}"),
        ("proxy.routes.web.hosts", " a.example , ,b.example"),
        ("other.label", "1"),
    ]);
    assert_eq!(problems, Vec::<String>::new());
    let cluster = &config.clusters[&ClusterId::from("orders")];
    assert_eq!(cluster.destinations, destinations());
    let ids: Vec<_> = config.routes.keys().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["orders:api", "orders:web"]);
    let (api, web) = (&config.routes[0], &config.routes[1]);
    assert_eq!(api.cluster_id, Some("orders".into()));
    assert_eq!(api.r#match.path.as_deref(), Some("/orders/{**rest}"));
    let hosts = ["a.example".to_owned(), "b.example".to_owned()];
    assert_eq!(web.r#match.hosts.as_deref(), Some(&hosts[..]));
}

#[test]
fn only_services_that_ask_for_it_are_served() {
    for (pairs, expected) in [
        (&[][..], false),
        (&[("proxy.enable", "true")], true),
        (&[("PROXY.Enable", " TRUE ")], true),
        (&[("proxy.enable", "false")], false),
        (&[("proxy.enable", "")], false),
        (&[("proxy.routes.r.path", "/")], false),
    ] {
        let parsed = parse(pairs);
        assert_eq!(parsed.fragment.is_some(), expected, "{pairs:?}");
        assert!(parsed.problems.is_empty(), "{pairs:?}");
    }
    let service = LabelledService::new(Labels::new(), destinations());
    let parser = KeyValueLabels::new().with_enabled_by_default(true);
    assert!(parser.parse("orders", &service).fragment.is_some());
}

#[test]
fn a_service_that_may_have_asked_is_refused_and_not_ignored() {
    let parsed = parse(&[("proxy.enable", "yes")]);
    assert!(parsed.problems.has_errors());
}

/// Every setting of the configuration has a label: what the labels of the whole table make is the whole of the model.
#[test]
fn every_setting_has_a_label() {
    let (config, problems) = served(&[
        ("proxy.cluster.id", "c"),
        ("proxy.cluster.loadBalancingPolicy", "RoundRobin"),
        ("proxy.cluster.sessionAffinity.enabled", "true"),
        ("proxy.cluster.sessionAffinity.policy", "Cookie"),
        (
            "proxy.cluster.sessionAffinity.failurePolicy",
            "Return503Error",
        ),
        ("proxy.cluster.sessionAffinity.affinityKeyName", "key"),
        ("proxy.cluster.sessionAffinity.cookie.path", "/p"),
        ("proxy.cluster.sessionAffinity.cookie.domain", "d.example"),
        ("proxy.cluster.sessionAffinity.cookie.httpOnly", "false"),
        (
            "proxy.cluster.sessionAffinity.cookie.securePolicy",
            "Always",
        ),
        ("proxy.cluster.sessionAffinity.cookie.sameSite", "Lax"),
        (
            "proxy.cluster.sessionAffinity.cookie.expiration",
            "1.00:00:00",
        ),
        ("proxy.cluster.sessionAffinity.cookie.maxAge", "2h"),
        ("proxy.cluster.sessionAffinity.cookie.isEssential", "true"),
        (
            "proxy.cluster.healthCheck.availableDestinationsPolicy",
            "HealthyAndUnknown",
        ),
        ("proxy.cluster.healthCheck.active.enabled", "true"),
        ("proxy.cluster.healthCheck.active.interval", "00:00:10"),
        ("proxy.cluster.healthCheck.active.timeout", "2s"),
        (
            "proxy.cluster.healthCheck.active.policy",
            "ConsecutiveFailures",
        ),
        ("proxy.cluster.healthCheck.active.path", "/health"),
        ("proxy.cluster.healthCheck.active.query", "?full"),
        ("proxy.cluster.healthCheck.passive.enabled", "true"),
        (
            "proxy.cluster.healthCheck.passive.policy",
            "TransportFailureRate",
        ),
        (
            "proxy.cluster.healthCheck.passive.reactivationPeriod",
            "30s",
        ),
        ("proxy.cluster.httpClient.sslProtocols", "Tls12, Tls13"),
        (
            "proxy.cluster.httpClient.dangerousAcceptAnyServerCertificate",
            "true",
        ),
        ("proxy.cluster.httpClient.maxConnectionsPerServer", "+7"),
        (
            "proxy.cluster.httpClient.enableMultipleHttp2Connections",
            "false",
        ),
        ("proxy.cluster.httpClient.requestHeaderEncoding", "utf-8"),
        ("proxy.cluster.httpClient.responseHeaderEncoding", "latin1"),
        (
            "proxy.cluster.httpClient.webProxy.address",
            "http://proxy:3128",
        ),
        ("proxy.cluster.httpClient.webProxy.bypassOnLocal", "true"),
        (
            "proxy.cluster.httpClient.webProxy.useDefaultCredentials",
            "false",
        ),
        ("proxy.cluster.httpRequest.activityTimeout", "00:01:40"),
        ("proxy.cluster.httpRequest.version", "2"),
        (
            "proxy.cluster.httpRequest.versionPolicy",
            "requestversionexact",
        ),
        ("proxy.cluster.httpRequest.allowResponseBuffering", "true"),
        ("proxy.cluster.metadata.a.b", "1"),
        ("proxy.destinations.weight", "3"),
        ("proxy.destinations.priority", "1"),
        ("proxy.destinations.zone", "z"),
        ("proxy.destinations.host", "h.example"),
        ("proxy.destinations.metadata.k", "v"),
        ("proxy.routes.r.path", "/a"),
        ("proxy.routes.r.hosts", "a.example"),
        ("proxy.routes.r.methods", "GET,POST"),
        ("proxy.routes.r.order", "-5"),
        ("proxy.routes.r.maxRequestBodySize", "-1"),
        ("proxy.routes.r.authorizationPolicy", "Default"),
        ("proxy.routes.r.corsPolicy", "Disable"),
        ("proxy.routes.r.rateLimiterPolicy", "Disable"),
        ("proxy.routes.r.outputCachePolicy", "o"),
        ("proxy.routes.r.timeoutPolicy", "t"),
        ("proxy.routes.r.timeout", "5s"),
        ("proxy.routes.r.metadata.x", "y"),
        ("proxy.routes.r.clusterId", "other"),
        ("proxy.routes.r.headers.[0].name", "x-a"),
        ("proxy.routes.r.headers.[0].values", "1,2"),
        ("proxy.routes.r.headers.[0].mode", "HeaderPrefix"),
        ("proxy.routes.r.headers.[0].isCaseSensitive", "true"),
        ("proxy.routes.r.queryParameters[0].name", "q"),
        ("proxy.routes.r.queryParameters[0].values", "1"),
        ("proxy.routes.r.queryParameters[0].mode", "Contains"),
        ("proxy.routes.r.queryParameters[0].isCaseSensitive", "true"),
        ("proxy.routes.r.weightedClusters.[0].clusterId", "a"),
        ("proxy.routes.r.weightedClusters.[0].weight", "9"),
        ("proxy.routes.r.transforms.[0].PathPrefix", "/x"),
    ]);
    assert_eq!(problems, Vec::<String>::new());

    let mut destination = json!({
        "Address": "http://10.0.0.1:80", "Weight": 3, "Priority": 1, "Zone": "z", "Host": "h.example",
        "Metadata": { "k": "v" },
    });
    let first = destination.clone();
    destination["Address"] = json!("http://10.0.0.2:80");
    let expected = json!({
        "Routes": { "c:r": {
            "ClusterId": "other",
            "WeightedClusters": [{ "ClusterId": "a", "Weight": 9 }],
            "Match": {
                "Path": "/a", "Hosts": ["a.example"], "Methods": ["GET", "POST"],
                "Headers": [{ "Name": "x-a", "Values": ["1", "2"], "Mode": "HeaderPrefix", "IsCaseSensitive": true }],
                "QueryParameters": [{ "Name": "q", "Values": ["1"], "Mode": "Contains", "IsCaseSensitive": true }],
            },
            "Order": -5, "MaxRequestBodySize": -1,
            "AuthorizationPolicy": "Default", "CorsPolicy": "Disable", "RateLimiterPolicy": "Disable",
            "OutputCachePolicy": "o", "TimeoutPolicy": "t", "Timeout": "00:00:05",
            "Metadata": { "x": "y" },
            "Transforms": [{ "PathPrefix": "/x" }],
        } },
        "Clusters": { "c": {
            "LoadBalancingPolicy": "RoundRobin",
            "SessionAffinity": {
                "Enabled": true, "Policy": "Cookie", "FailurePolicy": "Return503Error", "AffinityKeyName": "key",
                "Cookie": {
                    "Path": "/p", "Domain": "d.example", "HttpOnly": false, "SecurePolicy": "Always",
                    "SameSite": "Lax", "Expiration": "1.00:00:00", "MaxAge": "02:00:00", "IsEssential": true,
                },
            },
            "HealthCheck": {
                "AvailableDestinationsPolicy": "HealthyAndUnknown",
                "Active": {
                    "Enabled": true, "Interval": "00:00:10", "Timeout": "00:00:02",
                    "Policy": "ConsecutiveFailures", "Path": "/health", "Query": "?full",
                },
                "Passive": {
                    "Enabled": true, "Policy": "TransportFailureRate", "ReactivationPeriod": "00:00:30",
                },
            },
            "HttpClient": {
                "SslProtocols": ["Tls12", "Tls13"], "DangerousAcceptAnyServerCertificate": true,
                "MaxConnectionsPerServer": 7, "EnableMultipleHttp2Connections": false,
                "RequestHeaderEncoding": "utf-8", "ResponseHeaderEncoding": "latin1",
                "WebProxy": {
                    "Address": "http://proxy:3128", "BypassOnLocal": true, "UseDefaultCredentials": false,
                },
            },
            "HttpRequest": {
                "ActivityTimeout": "00:01:40", "Version": "2", "VersionPolicy": "RequestVersionExact",
                "AllowResponseBuffering": true,
            },
            "Destinations": { "d1": first, "d2": destination },
            "Metadata": { "a.b": "1" },
        } },
    });
    assert_eq!(serde_json::to_value(&config).unwrap(), expected);
}

#[test]
fn what_a_destination_says_itself_stays() {
    let mut service = LabelledService::new(
        labels(&[
            ("proxy.enable", "true"),
            ("proxy.destinations.weight", "3"),
            ("proxy.destinations.metadata.k", "default"),
        ]),
        destinations(),
    );
    let own = &mut service.destinations[0];
    own.weight = Some(0);
    own.metadata = Some([("k".to_owned(), "own".to_owned())].into());
    let config = KeyValueLabels::new().parse("s", &service).fragment.unwrap();
    let cluster: &ClusterConfig = &config.clusters[0];
    let weights: Vec<_> = cluster.destinations.values().map(|d| d.weight).collect();
    assert_eq!(weights, [Some(0), Some(3)]);
    let metadata = |i: usize| &cluster.destinations[i].metadata.as_ref().unwrap()["k"];
    assert_eq!(
        (metadata(0).as_str(), metadata(1).as_str()),
        ("own", "default")
    );
}

#[test]
fn elements_come_in_numeric_order() {
    let (route, problems) = route(&[
        ("proxy.routes.r.transforms.[10].PathPrefix", "/c"),
        ("proxy.routes.r.transforms[2].PathPrefix", "/b"),
        ("proxy.routes.r.transforms.[0].RequestHeader", "x"),
        ("proxy.routes.r.transforms.[0].Set", "1.5"),
    ]);
    assert_eq!(problems, Vec::<String>::new());
    let transforms = route.transforms.unwrap();
    let expected = [
        IndexMap::from([
            ("RequestHeader".to_owned(), "x".to_owned()),
            ("Set".to_owned(), "1.5".to_owned()),
        ]),
        IndexMap::from([("PathPrefix".to_owned(), "/b".to_owned())]),
        IndexMap::from([("PathPrefix".to_owned(), "/c".to_owned())]),
    ];
    assert_eq!(transforms, expected);
}

#[test]
fn values_that_cannot_be_understood_are_named() {
    for (key, value, expected) in [
        (
            "proxy.routes.r.order",
            "first",
            "error at /proxy.routes.r.order: `first` is not such a number: invalid digit found in string",
        ),
        (
            "proxy.routes.r.order",
            "99999999999",
            "error at /proxy.routes.r.order: `99999999999` is not such a number: number too large to fit in target type",
        ),
        (
            "proxy.cluster.healthCheck.active.enabled",
            "on",
            "error at /proxy.cluster.healthCheck.active.enabled: `on` is neither `true` nor `false`",
        ),
        (
            "proxy.cluster.httpRequest.version",
            "4",
            "error at /proxy.cluster.httpRequest.version: `4` is not one of 1.0, 1.1, 1, 2, 2.0, 3, 3.0",
        ),
        (
            "proxy.routes.r.headers.[0].mode",
            "Nope",
            "error at /proxy.routes.r.headers.[0].mode: a condition needs a `Name`",
        ),
        (
            "proxy.routes.r.weightedClusters.[0].weight",
            "1",
            "error at /proxy.routes.r.weightedClusters.[0].weight: a weighted cluster needs a `ClusterId`",
        ),
        (
            "proxy.routes.r!.path",
            "/",
            "error at /proxy.routes.r!.path: a route's name has ASCII letters, digits, `_` and `-` only",
        ),
        (
            "proxy.cluster..id",
            "x",
            "error at /proxy.cluster..id: two dots with nothing between, or a dot at the end",
        ),
        (
            "proxy.cluster.id.",
            "x",
            "error at /proxy.cluster.id.: two dots with nothing between, or a dot at the end",
        ),
    ] {
        let (_, problems) = served(&[(key, value)]);
        assert_eq!(problems, [expected]);
    }
    let (config, problems) = served(&[("proxy.cluster.healthCheck.active.interval", "30")]);
    assert!(
        problems[0].contains("`30` is not a length of time"),
        "{problems:?}"
    );
    let active = config.clusters[0]
        .health_check
        .as_ref()
        .unwrap()
        .active
        .as_ref();
    assert_eq!(active.unwrap().interval, None::<TimeSpan>);
}

#[test]
fn labels_that_mean_nothing_are_warned_of_with_what_was_probably_meant() {
    for (key, expected) in [
        (
            "proxy.routes.r.host",
            "warning at /proxy.routes.r.host: `proxy.routes.r.host` is not known (did you mean `proxy.routes.r.Hosts`?)",
        ),
        (
            "proxy.routes.r.PathFoo",
            "warning at /proxy.routes.r.PathFoo: `proxy.routes.r.PathFoo` is not known",
        ),
        (
            "proxy.cluser.id",
            "warning at /proxy.cluser.id: `proxy.cluser` is not known (did you mean `proxy.Cluster`?)",
        ),
        (
            "proxy.cluster.healthChek.active.enabled",
            "warning at /proxy.cluster.healthChek.active.enabled: `proxy.cluster.healthChek` is not known (did you mean `proxy.cluster.HealthCheck`?)",
        ),
        (
            "proxy.cluster",
            "warning at /proxy.cluster: a value was not expected here",
        ),
        (
            "proxy.enable.x",
            "warning at /proxy.enable.x: `proxy.enable.x` is not known",
        ),
        (
            "proxy.routes.r",
            "warning at /proxy.routes.r: `proxy.routes.r` is not known",
        ),
        (
            "proxy.routes.r.transforms.PathPrefix",
            "warning at /proxy.routes.r.transforms.PathPrefix: `proxy.routes.r.transforms.PathPrefix` is not known",
        ),
        (
            "proxy.routes.r.transforms.[0]",
            "warning at /proxy.routes.r.transforms.[0]: a value was not expected here",
        ),
    ] {
        let (_, problems) = served(&[(key, "x")]);
        assert_eq!(problems, [expected]);
    }
    let (_, problems) = served(&[
        ("proxy.routes.r.transforms.[0].PathPrefix", "/x"),
        ("proxy.routes.r.transforms.[x].PathPrefix", "/x"),
    ]);
    assert_eq!(
        problems,
        [
            "warning at /proxy.routes.r.transforms.[x].PathPrefix: `proxy.routes.r.transforms.[x]` is not known (a list is written `[0]`, `[1]`, …)"
        ]
    );
}

#[test]
fn two_labels_for_one_setting_are_an_error() {
    for (first, second) in [
        ("proxy.cluster.id", "proxy.Cluster.ID"),
        (
            "proxy.routes.r.headers.[0].name",
            "proxy.routes.r.headers[00].name",
        ),
    ] {
        let (_, problems) = served(&[(first, "a"), (second, "b")]);
        let expected = format!("error at /{second}: says the same thing as the label `{first}`");
        assert_eq!(problems, [expected]);
    }
}

#[test]
fn prefix_and_case_are_the_dialect_s_choice() {
    let labels = labels(&[
        ("YARP.Enable", "true"),
        ("yarp.cluster.id", "x"),
        ("YARP.cluster.id", "y"),
    ]);
    let service = LabelledService::new(labels, Destinations::new());
    let rules = LabelRules::new("YARP.")
        .with_ignore_prefix_case(false)
        .with_ignore_key_case(false)
        .with_unknown(Severity::Error);
    let parsed = KeyValueLabels::with_rules(rules).parse("s", &service);
    let problems: Vec<_> = parsed.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        ["error at /YARP.cluster.id: `YARP.cluster` is not known (did you mean `YARP.Cluster`?)"]
    );
    assert_eq!(
        parsed.fragment.unwrap().clusters.keys().next(),
        Some(&"s".into())
    );
}

#[test]
fn too_much_is_refused_and_cut_short() {
    let many: Labels = (0..20_000)
        .map(|i| (format!("proxy.junk{i}"), String::new()))
        .chain([("proxy.enable".to_owned(), "true".to_owned())])
        .collect();
    let service = LabelledService::new(many, Destinations::new());
    let parser = KeyValueLabels::new().with_enabled_by_default(true);
    let parsed = parser.parse("s", &service);
    assert!(parsed.problems.has_errors());
    assert!(parsed.problems.len() <= 102, "{}", parsed.problems.len());

    let deep = format!("proxy.{}", "a.".repeat(100_000));
    let (_, problems) = served(&[(&deep, "x")]);
    assert!(problems[0].ends_with("more than 32 parts"));
}

fn any_key() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => prop::sample::select(vec![
            "enable", "cluster", "Cluster", "routes", "r", "id", "path", "hosts", "headers", "transforms", "[0]",
            "[1]", "[00]", "[x]", "[", "]", "name", "values", "mode", "metadata", "destinations", "weight", "order",
            "httpRequest", "version", "healthCheck", "active", "enabled", "interval", "",
        ])
        .prop_map(str::to_owned),
        1 => ".{0,6}",
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| format!("proxy.{}", parts.join(".")))
}

proptest! {
    /// Whatever somebody writes into a registry: no panic, no blow-up, and the same answer twice.
    #[test]
    fn labels_of_any_kind_do_no_harm(
        pairs in prop::collection::vec((any_key(), prop_oneof!["true", "[0-9]{0,12}", ".{0,12}"]), 0..20),
        ignore_key_case: bool,
    ) {
        let service = LabelledService::new(pairs.into_iter().collect(), destinations());
        let rules = LabelRules::new("proxy.").with_ignore_key_case(ignore_key_case);
        let parser = KeyValueLabels::with_rules(rules).with_enabled_by_default(true);
        let parsed = parser.parse("s", &service);
        prop_assert!(parsed.problems.len() <= 102);
        prop_assert_eq!(parser.parse("s", &service), parsed);
    }

    #[test]
    fn a_key_keeps_its_text_below_metadata(key in "[a-z\\[\\]0-9]{1,5}(\\.[a-z\\[\\]0-9]{1,5}){0,3}", value in ".*") {
        let label = format!("proxy.cluster.metadata.{key}");
        let (config, problems) = served(&[(&label, &value)]);
        prop_assert_eq!(problems, Vec::<String>::new());
        let metadata = config.clusters[0].metadata.as_ref().unwrap();
        prop_assert_eq!(metadata, &IndexMap::from([(key, value)]));
    }
}
