mod hostile;
mod table;

use indexmap::IndexMap;
use proxy_model::config::{ClusterConfig, DestinationConfig, ProxyConfig, RouteConfig};
use proxy_model::{ClusterId, Severity, TimeSpan};

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
fn a_route_that_names_its_clusters_does_not_go_to_the_service_s_own() {
    let (config, problems) = served(&[
        ("proxy.routes.own.path", "/own"),
        ("proxy.routes.own.partitionedClusters.key.header", " "),
        ("proxy.routes.parts.path", "/parts"),
        ("proxy.routes.parts.partitionedClusters.key.header", "x-key"),
        (
            "proxy.routes.parts.partitionedClusters.partitions.[10].clusterId",
            "b",
        ),
        (
            "proxy.routes.parts.partitionedClusters.partitions.[10].name",
            "y",
        ),
        (
            "proxy.routes.parts.partitionedClusters.partitions.[9].clusterId",
            "a",
        ),
        (
            "proxy.routes.parts.partitionedClusters.partitions.[9].name",
            "x",
        ),
    ]);
    assert_eq!(problems, Vec::<String>::new());
    let routes = || config.routes.values();
    let own: Vec<_> = routes().map(|route| route.cluster_id.is_some()).collect();
    assert_eq!(own, [true, false]);
    let partitioned = routes().find_map(|route| route.partitioned_clusters.as_ref());
    let partitions = &partitioned.unwrap().partitions;
    let clusters: Vec<_> = partitions.iter().map(|p| p.cluster_id.as_str()).collect();
    assert_eq!(clusters, ["a", "b"], "in the order of their numbers");
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
        assert!(!parsed.problems.has_errors(), "{pairs:?}");
    }
    let service = LabelledService::new(Labels::new(), destinations());
    let parser = KeyValueLabels::new().with_enabled_by_default(true);
    assert!(parser.parse("orders", &service).fragment.is_some());
}

#[test]
fn a_service_that_may_have_asked_is_rejected_and_not_ignored() {
    let parsed = parse(&[("proxy.enable", "yes")]);
    assert!(parsed.problems.has_errors());
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
            "proxy.routes.r.partitionedClusters.partitions.[0].name",
            "eu",
            "error at /proxy.routes.r.partitionedClusters.partitions.[0].name: a partition needs a `ClusterId`",
        ),
        (
            "proxy.routes.r.partitionedClusters.hash",
            "Md5",
            "error at /proxy.routes.r.partitionedClusters.hash: `Md5` is not one of None, Fnv1a64",
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
        problems[0].contains("for seconds write `30s` or `00:00:30`"),
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
            "warning at /proxy.routes.r.transforms.PathPrefix: `proxy.routes.r.transforms.PathPrefix` is not known (a list is written `[0]`, `[1]`, …)",
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
fn a_route_may_redirect_or_respond_instead_of_leading_to_the_service() {
    for (key, value) in [
        ("proxy.routes.r.redirect.scheme", "https"),
        ("proxy.routes.r.respond.status", "404"),
    ] {
        let (config, problems) = served(&[("proxy.routes.r.path", "/"), (key, value)]);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(config.routes[0].cluster_id, None);
        let compiled = proxy_model::Snapshot::compile(config, &Default::default());
        assert!(compiled.is_ok(), "{compiled:?}");
    }
    for (key, value) in [
        ("proxy.routes.r.redirect.status", "often"),
        ("proxy.routes.r.respond.status", "70000"),
    ] {
        let (_, problems) = served(&[("proxy.routes.r.path", "/"), (key, value)]);
        assert!(
            problems.iter().any(|text| text.starts_with("error at")),
            "{problems:?}"
        );
    }
}

/// A label that may be a restriction is not ignored: the service would be open.
#[test]
fn unknown_labels_that_may_restrict_close_their_route() {
    for (key, closes) in [
        ("proxy.routes.r.authorization", true),
        ("proxy.routes.r.authorisationPolicy", true),
        ("proxy.routes.r.authPolicy", true),
        ("proxy.routes.r.auth.users", true),
        ("proxy.routes.r.rateLimitPolicy", true),
        ("proxy.routes.r.redirect.schema", true),
        ("proxy.routes.r.redirects.scheme", true),
        ("proxy.routes.r.respond.code", true),
        ("proxy.routes.r.filter", true),
        ("proxy.routes.r.timeouts", false),
        ("proxy.routes.r.host", false),
        ("proxy.routes.r.something", false),
        ("proxy.cluster.authorization", false),
    ] {
        let labels = [
            ("proxy.routes.r.path", "/a"),
            ("proxy.routes.r.order", "3"),
            ("proxy.routes.other.path", "/b"),
            (key, "admins"),
        ];
        let (config, problems) = served(&labels);
        let [route, other] = [&config.routes[0], &config.routes[1]];
        assert_eq!(other.cluster_id, Some("orders".into()), "{key}");
        assert!(
            problems.iter().all(|text| text.starts_with("warning at")),
            "{problems:?}"
        );
        let told = problems
            .iter()
            .find(|text| text.contains("responds with 503"));
        assert_eq!(told.is_some(), closes, "{key}: {problems:?}");
        if !closes {
            assert_eq!(route.cluster_id, Some("orders".into()), "{key}");
            continue;
        }
        assert!(told.unwrap().contains(key), "{told:?}");
        assert!(
            problems.len() > 1,
            "what was meant is said as well: {problems:?}"
        );
        assert_eq!(route.cluster_id, None, "{key}");
        assert_eq!(
            route.respond.as_ref().and_then(|respond| respond.status),
            Some(503)
        );
        assert_eq!(
            (route.order, route.r#match.path.as_deref()),
            (Some(3), Some("/a"))
        );
    }
    // Labels that are set beside it do not count any more, and empty ones restrict nothing.
    let (config, _) = served(&[
        ("proxy.routes.r.path", "/"),
        ("proxy.routes.r.clusterId", "other"),
        ("proxy.routes.r.authorization", "admins"),
        ("proxy.routes.s.path", "/s"),
        ("proxy.routes.s.redirect.scheme", " "),
        ("proxy.routes.s.authorization", ""),
    ]);
    assert_eq!(config.routes[0].cluster_id, None);
    assert!(config.routes[0].respond.is_some());
    assert_eq!(config.routes[1].cluster_id, Some("orders".into()));
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
        let expected = format!("error at /{second}: has the same meaning as the label `{first}`");
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
fn labels_without_the_one_that_enables_are_told() {
    let parser = KeyValueLabels::new();
    for (labels, pointer, suggestion) in [
        (
            &[("proxy.routes.r.path", "/"), ("Proxy.enabled", "true")][..],
            "/Proxy.enabled",
            "did you mean `proxy.enable`?",
        ),
        (
            &[("proxy.routes.r.path", "/")],
            "/proxy.routes.r.path",
            "`proxy.enable` = `true` opts in",
        ),
    ] {
        let labels = labels.iter().map(|&(k, v)| (k.to_owned(), v.to_owned()));
        let described = LabelledService::new(labels.collect(), Default::default());
        let parsed = parser.parse("web", &described);
        assert!(parsed.fragment.is_none());
        let problems: Vec<_> = parsed.problems.iter().collect();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].code, "not_enabled");
        assert_eq!(problems[0].pointer, pointer);
        assert_eq!(problems[0].suggestion.as_deref(), Some(suggestion));
        assert!(!parsed.problems.has_errors());
    }
    for labels in [
        &[][..],
        &[("other.enabled", "true")],
        &[("proxy.enable", "false"), ("proxy.routes.r.path", "/")],
    ] {
        let labels = labels
            .iter()
            .map(|&(k, v): &(&str, &str)| (k.to_owned(), v.to_owned()));
        let described = LabelledService::new(labels.collect(), Default::default());
        assert_eq!(parser.parse("web", &described), Parsed::not_enabled());
    }
}

#[test]
fn a_dialect_may_have_other_names_for_the_same() {
    let rules = LabelRules::new("x.")
        .with_ignore_key_case(false)
        .with_malformed(Severity::Warning)
        .with_alias("Backend.Healthcheck", "Backend.HealthCheck")
        .with_alias("Backend.HealthCheck.Wait", "Backend.HealthCheck.Timeout");
    let labels = labels(&[
        ("x.Backend.Healthcheck.Wait", "a"),
        ("x.Backend.HealthCheck.Path", "/"),
        ("x.Backend.HealthCheck.Timeout", "b"),
        ("x.Backend.healthcheck.Path", "c"),
        ("x.Backend..Path", "d"),
    ]);
    let tree = LabelTree::new(&labels, &rules);
    let health = tree.root().child("Backend").child("HealthCheck");
    assert_eq!(health.text("Timeout").as_deref(), Some("a"));
    assert_eq!(health.text("Path").as_deref(), Some("/"));
    assert!(tree.has_errors());
    let problems: Vec<_> = tree.finish().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "error at /x.Backend.HealthCheck.Timeout: has the same meaning as the label `x.Backend.Healthcheck.Wait`",
            "warning at /x.Backend..Path: two dots with nothing between, or a dot at the end",
            "warning at /x.Backend.healthcheck.Path: `x.Backend.healthcheck` is not known (did you mean `x.Backend.HealthCheck`?)",
        ]
    );
}

#[test]
#[should_panic(expected = "not on the same level")]
fn an_alias_stays_on_its_level() {
    let _ = LabelRules::new("x.").with_alias("A", "A.B");
}

#[test]
fn a_dialect_may_reject_what_it_does_not_know() {
    let labels = labels(&[
        ("x.List.[0].Nmae", "1"),
        ("x.List.[0]", "2"),
        ("x.List.first.Name", "3"),
        ("x.Other.Nmae", "4"),
    ]);
    let rules = LabelRules::new("x.");
    let tree = LabelTree::new(&labels, &rules);
    let root = tree.root();
    root.child("List").reject_unknown();
    for (_, element) in root.elements("List") {
        assert_eq!(element.text("Name"), None);
    }
    assert_eq!(root.child("Other").text("Name"), None);
    assert_eq!(root.locate(["List", "[0]", "Nmae"]), "/x.List.[0].Nmae");
    assert_eq!(root.locate(["Other", "Nothing", "Nmae"]), "/x.Other.Nmae");
    let problems: Vec<_> = tree.finish().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "error at /x.List.first.Name: `x.List.first` is not known (a list is written `[0]`, `[1]`, …)",
            "warning at /x.List.[0]: a value was not expected here",
            "error at /x.List.[0].Nmae: `x.List.[0].Nmae` is not known (did you mean `x.List.[0].Name`?)",
            "warning at /x.Other.Nmae: `x.Other.Nmae` is not known (did you mean `x.Other.Name`?)",
        ]
    );
}

#[test]
fn empty_values_are_kept_for_those_who_reject_them() {
    let labels = labels(&[("x.H.[0].Name", "a"), ("x.H.[0].Values", " 1,, 2 ")]);
    for (keep_empty_values, expected) in [(false, &["1", "2"][..]), (true, &["1", "", "2"])] {
        let rules = LabelRules::new("x.");
        let tree = LabelTree::new(&labels, &rules);
        let names = RouteLabels {
            headers: "H",
            keep_empty_values,
            ..RouteLabels::default()
        };
        let route = read_route(&tree.root(), &names);
        let headers = route.r#match.headers.expect("there is one");
        assert_eq!(
            headers[0].values.as_deref(),
            Some(&expected.iter().map(|&v| v.to_owned()).collect::<Vec<_>>()[..])
        );
    }
}
