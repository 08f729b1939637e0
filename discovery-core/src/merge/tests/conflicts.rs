//! Several providers as one configuration.

use proptest::prelude::*;
use proxy_model::Revision;
use proxy_model::config::{PartitionKey, PartitionedCluster, PartitionedClusters};

use super::combine::{LeftOut, Part, combine};
use super::prepare::Prepared;
use super::*;
use crate::discovery::DiscoveredService;
use crate::runner::Runner;
use crate::testing::ScriptedDiscoverer;

/// An owner of a service can take an operator's requests by an `Order`, and the operator has to see it.
#[tokio::test(start_paused = true)]
async fn routes_that_override_those_of_an_earlier_provider_are_named() {
    let route = |order: Option<i32>, hosts: &[&str]| {
        let mut config = simple(&[("shop", "c")], &[("c", "http://1")]);
        config.routes[0].order = order;
        config.routes[0].r#match.hosts = Some(hosts.iter().map(|&host| host.to_owned()).collect());
        config
    };
    let renamed = |config: ProxyConfig| {
        let mut other = simple(&[], &[("d", "http://2")]);
        let taken = config.routes[0].clone();
        other.routes.insert("consul:shop".into(), taken);
        other
    };
    let told = |problems: &[SourcedProblem]| {
        let overrides = problems.iter();
        let overrides = overrides.filter(|found| found.problem.code == "order_overrides");
        overrides.map(ToString::to_string).collect::<Vec<_>>()
    };
    let a = &["a.example"][..];
    let both = &["b.example", "a.example"][..];
    let message = "consul: warning at /Routes/consul:shop: the route takes the requests of the route `shop` of the provider `file`, since its `Order` is -1 and not 0 (if that is not intended, leave `Order` out, or give the other route a lower one)";
    for (file, consul, expected) in [
        (route(None, a), route(Some(-1), a), &[message][..]),
        (route(None, a), route(Some(-1), both), &[message]),
        (route(None, both), route(Some(-1), a), &[message]),
        (route(None, a), route(None, a), &[]),
        (route(None, a), route(Some(1), a), &[]),
        (route(Some(-1), a), route(None, a), &[]),
        (route(None, a), route(Some(-1), &["b.example"]), &[]),
    ] {
        let merged = Merge::new()
            .provider(provider("file", file))
            .provider(provider("consul", renamed(consul)))
            .start();
        let state = ready(&merged).await;
        assert_eq!(told(&state.problems), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn providers_are_put_together() {
    struct Case {
        id: &'static str,
        providers: Vec<(&'static str, ProxyConfig)>,
        serving: &'static [&'static str],
        problems: &'static [&'static str],
    }
    let cases = [
        Case {
            id: "E04: routes name clusters across providers",
            providers: vec![
                (
                    "one",
                    simple(&[("route2", "cluster2")], &[("cluster1", "http://1")]),
                ),
                (
                    "two",
                    simple(&[("route1", "cluster1")], &[("cluster2", "http://2")]),
                ),
            ],
            serving: &[
                "route2→cluster2",
                "route1→cluster1",
                "cluster1=http://1",
                "cluster2=http://2",
            ],
            problems: &[],
        },
        Case {
            id: "E02: two routes with the same id",
            providers: vec![
                ("one", simple(&[("route", "a")], &[("a", "http://a")])),
                ("two", simple(&[("ROUTE", "b")], &[("b", "http://b")])),
            ],
            serving: &["route→a", "a=http://a", "b=http://b"],
            problems: &[
                "two: error at /Routes/ROUTE: the route `ROUTE` of the provider `two` is left out: the provider `one` has one with this id (give one of the providers a prefix for its ids)",
            ],
        },
        Case {
            id: "E03: two clusters with the same id, in any case",
            providers: vec![
                ("one", simple(&[], &[("a", "http://1"), ("b", "http://b")])),
                (
                    "two",
                    simple(&[("r", "A")], &[("A", "http://2"), ("c", "http://c")]),
                ),
                (
                    "three",
                    simple(&[], &[("a", "http://3"), ("C", "http://3")]),
                ),
            ],
            serving: &["r→A of two", "a=http://1", "b=http://b", "c=http://c"],
            problems: &[
                "two: error at /Clusters/A: the cluster `A` of the provider `two` is left out, and requests for it get 503: the provider `one` has one with this id (give one of the providers a prefix for its ids)",
                "two: unknown_cluster /Routes/r/ClusterId",
                "three: error at /Clusters/a: the cluster `a` of the provider `three` is left out, and requests for it get 503: the provider `one` has one with this id (give one of the providers a prefix for its ids)",
                "three: error at /Clusters/C: the cluster `C` of the provider `three` is left out, and requests for it get 503: the provider `two` has one with this id (give one of the providers a prefix for its ids)",
            ],
        },
        Case {
            id: "a route without its cluster is used, with a warning",
            providers: vec![("one", simple(&[("r", "nowhere")], &[]))],
            serving: &["r→nowhere"],
            problems: &["one: unknown_cluster /Routes/r/ClusterId"],
        },
        Case {
            id: "no providers",
            providers: vec![],
            serving: &[],
            problems: &[],
        },
    ];
    for case in cases {
        let mut merge = Merge::new();
        for (name, config) in case.providers {
            merge = merge.provider(provider(name, config));
        }
        let merged = merge.start();
        let state = ready(&merged).await;
        assert_eq!(serving(&state), case.serving, "{}", case.id);
        let found: Vec<_> = state
            .problems
            .iter()
            .map(|sourced| match &*sourced.problem.code {
                // The wording is the model's.
                "unknown_cluster" => {
                    let provider = sourced.provider.as_deref().unwrap_or_default();
                    format!("{provider}: unknown_cluster {}", sourced.problem.pointer)
                }
                _ => sourced.to_string(),
            })
            .collect();
        assert_eq!(found, case.problems, "{}", case.id);
    }
}

/// `simple`, with this path for every route.
fn at(path: &str, id: &str) -> ProxyConfig {
    let mut config = simple(&[(id, id)], &[(id, &format!("http://{id}"))]);
    config.routes[0].r#match.path = Some(path.to_owned());
    config
}

/// Two services of one source, and those of another. The first one listed serves; each of the others is
/// reported once.
#[tokio::test(start_paused = true)]
async fn routes_that_match_the_same_are_told_once_whoever_they_belong_to() {
    let source = ScriptedDiscoverer::new("source");
    source.answer([
        DiscoveredService::configured("orders", at("/shop/{id}", "orders")),
        DiscoveredService::configured("reports", at("/Shop/{key}", "reports")),
    ]);
    let file = provider("file", at("/shop/{number}", "own"));
    let merged = Merge::new()
        .provider(Runner::new(source).start())
        .provider(file)
        .start();
    let state = ready(&merged).await;
    let conflict = |source: &str, route: &str| {
        format!(
            "{source}: warning at /Routes/{route}: the route matches the same requests as `orders`, which comes first and takes them all (remove one of them, or give them different `Order`s or criteria)"
        )
    };
    assert_eq!(
        problems(&state),
        [conflict("source", "reports"), conflict("file", "own")]
    );
    let routes: Vec<_> = state.snapshot.config().routes.keys().collect();
    assert_eq!(
        routes,
        ["orders", "reports", "own"],
        "all of them are there"
    );
}

#[tokio::test(start_paused = true)]
async fn a_prefix_keeps_providers_apart() {
    let one = provider("one", simple(&[("r", "c")], &[("c", "http://1")]));
    let mut two = simple(&[("r", "C"), ("s", "shared")], &[("c", "http://2")]);
    let weighted = RouteConfig {
        weighted_clusters: Some(vec![
            proxy_model::config::WeightedCluster {
                cluster_id: "c".into(),
                weight: 1,
            },
            proxy_model::config::WeightedCluster {
                cluster_id: "shared".into(),
                weight: 1,
            },
        ]),
        r#match: RouteMatch {
            path: Some("/w".to_owned()),
            ..Default::default()
        },
        ..Default::default()
    };
    two.routes.insert("w".into(), weighted);
    let partition = |id: &str, name: &str| PartitionedCluster {
        cluster_id: id.into(),
        name: Some(name.to_owned()),
        ..Default::default()
    };
    let partitioned = RouteConfig {
        partitioned_clusters: Some(PartitionedClusters {
            key: PartitionKey {
                header: Some("x-key".to_owned()),
                ..Default::default()
            },
            partitions: vec![partition("c", "a"), partition("shared", "b")],
            ..Default::default()
        }),
        r#match: RouteMatch {
            path: Some("/p".to_owned()),
            ..Default::default()
        },
        ..Default::default()
    };
    two.routes.insert("p".into(), partitioned);
    let two = MergeSource::new(provider("two", two)).with_prefix("2-");
    let three = provider("three", simple(&[], &[("shared", "http://3")]));
    let merged = Merge::new()
        .provider(one)
        .source(two)
        .provider(three)
        .start();
    let state = ready(&merged).await;
    assert_eq!(
        serving(&state),
        [
            "r→c",
            "2-r→2-C",
            "2-s→shared",
            "2-w→",
            "2-p→",
            "c=http://1",
            "2-c=http://2",
            "shared=http://3"
        ]
    );
    let route = state.snapshot.route(&"2-w".into()).unwrap().config();
    let shares: Vec<_> = route
        .weighted_clusters
        .iter()
        .flatten()
        .map(|share| share.cluster_id.as_str())
        .collect();
    assert_eq!(shares, ["2-c", "shared"]);
    let route = state.snapshot.route(&"2-p".into()).unwrap().config();
    let partitions = route.partitioned_clusters.iter();
    let partitions: Vec<_> = partitions
        .flat_map(|partitioned| &partitioned.partitions)
        .map(|partition| partition.cluster_id.as_str())
        .collect();
    assert_eq!(partitions, ["2-c", "shared"]);
    assert!(
        problems(&state).iter().all(|p| !p.contains("error")),
        "{:?}",
        state.problems
    );
}

#[tokio::test(start_paused = true)]
async fn the_loser_of_a_clash_serves_when_the_winner_is_gone() {
    let one = provider("one", simple(&[], &[("a", "http://1")]));
    let two = provider("two", simple(&[], &[("a", "http://2")]));
    let merged = Merge::new().provider(one.clone()).provider(two).start();
    assert_eq!(serving(&*ready(&merged).await), ["a=http://1"]);
    one.update(ProxyConfig::default());
    let state = settled(&merged).await;
    assert_eq!(serving(&state), ["a=http://2"]);
    assert!(state.problems.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_bad_takes_nobody_s_place() {
    let mut bad = simple(&[], &[("a", "http://1")]);
    bad.clusters[0].load_balancing_policy = Some("Nonsense".to_owned());
    let one = provider("one", bad).strictness(Strictness::Isolated);
    let two = provider("two", simple(&[], &[("a", "http://2")]));
    let merged = Merge::new().provider(one).provider(two).start();
    let state = ready(&merged).await;
    assert_eq!(serving(&state), ["a=http://2"]);
    assert_eq!(state.problems.len(), 1);
    assert_eq!(state.problems[0].provider.as_deref(), Some("one"));
}

/// The clusters that the routes of the provider `two` lead to.
async fn targets_beside(one: Arc<dyn ConfigProvider>, two: ProxyConfig) -> Vec<String> {
    let merged = Merge::new().provider(one).provider(provider("two", two));
    let state = ready(&merged.start()).await;
    let config = state.snapshot.config().clone();
    let mut targets = Vec::new();
    for route in config.routes.into_values() {
        targets.extend(route.cluster_id);
        let shares = route.weighted_clusters.into_iter().flatten();
        targets.extend(shares.map(|share| share.cluster_id));
        let partitioned = route.partitioned_clusters.into_iter();
        let partitions = partitioned.flat_map(|of| of.partitions);
        targets.extend(partitions.map(|of| of.cluster_id));
    }
    targets.iter().map(ToString::to_string).collect()
}

/// A provider's traffic goes to its own cluster or to none, in every place that names one.
#[tokio::test(start_paused = true)]
async fn no_route_leads_to_the_cluster_that_displaced_its_own() {
    let one = || {
        Arc::new(provider(
            "one",
            simple(&[], &[("web", "http://1"), ("Web of Two", "http://1")]),
        ))
    };
    let clusters = r#""Clusters": { "WEB": {}, "own": {} }"#;
    let cases = [
        (r#""ClusterId": "web""#, &["web of two'"][..]),
        (r#""ClusterId": "own""#, &["own"]),
        (r#""ClusterId": "Web of Two""#, &["Web of Two"]),
        (
            r#""WeightedClusters": [{ "ClusterId": "Web" }, { "ClusterId": "own" }]"#,
            &["Web of two'", "own"],
        ),
        (
            r#""PartitionedClusters": { "Key": { "Header": "X-Key" }, "Partitions": [
                { "ClusterId": "web", "Name": "a" }, { "ClusterId": "own", "Name": "b" }] }"#,
            &["web of two'", "own"],
        ),
        (r#""Redirect": { "Scheme": "https" }"#, &[]),
    ];
    for (target, expected) in cases {
        let text = format!(
            r#"{{ "Routes": {{ "r": {{ {target}, "Match": {{ "Path": "/x" }} }} }}, {clusters} }}"#
        );
        let two = ProxyConfig::from_json(&text).unwrap();
        assert_eq!(targets_beside(one(), two).await, expected, "{target}");
    }
}

/// A cluster that was left out because it is bad does not lend its routes to another provider's, either.
#[tokio::test(start_paused = true)]
async fn no_route_of_a_bad_cluster_leads_to_another_provider_s() {
    let mut bad = simple(&[("r", "web")], &[("web", "http://1")]);
    bad.clusters[0].load_balancing_policy = Some("Nonsense".to_owned());
    let one = Arc::new(provider("one", bad).strictness(Strictness::Isolated));
    let two = simple(&[("s", "web")], &[("web", "http://2")]);
    let targets = targets_beside(one, two).await;
    assert_eq!(targets, ["web of one", "web"]);
}

proptest! {
    /// Every id exists once, in the first provider's form; others are left out and reported with their
    /// provider.
    #[test]
    fn the_first_provider_has_every_id(
        providers in prop::collection::vec(prop::collection::vec("[a-cA-C]", 0..4), 0..5),
    ) {
        let configs: Vec<ProxyConfig> = providers
            .iter()
            .enumerate()
            .map(|(position, ids)| {
                let address = format!("http://{position}");
                let clusters: Vec<_> = ids.iter().map(|id| (&**id, &*address)).collect();
                let routes: Vec<_> = ids.iter().map(|id| (&**id, "x")).collect();
                simple(&routes, &clusters)
            })
            .collect();
        let parts: Vec<Part> = configs
            .iter()
            .enumerate()
            .map(|(position, config)| Part {
                provider: format!("p{position}").into(),
                prepared: Some(Arc::new(Prepared {
                    revision: Revision::of(config),
                    config: Arc::new(config.clone()),
                    problems: proxy_model::Problems::new(),
                    rejected: false,
                    kept: Default::default(),
                    unusable: Default::default(),
                    retry: false,
                })),
                accepted: None,
            })
            .collect();
        let combined = combine(&parts, &LeftOut::default());
        let total: usize = configs.iter().map(|c| c.clusters.len() + c.routes.len()).sum();
        let taken = combined.config.clusters.len() + combined.config.routes.len();
        prop_assert_eq!(taken + combined.clashes.len(), total);
        for (id, cluster) in &combined.config.clusters {
            let first = configs.iter().position(|c| c.clusters.contains_key(id)).unwrap();
            prop_assert_eq!(&cluster.destinations[0].address, &format!("http://{first}"));
            prop_assert_eq!(combined.cluster_owners[id], first);
        }
        for id in combined.config.routes.keys() {
            let first = configs.iter().position(|c| c.routes.contains_key(id)).unwrap();
            prop_assert_eq!(combined.route_owners[id], first);
        }
    }
}
