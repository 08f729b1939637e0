//! Destinations follow the source while the rules of a service are those that were last right.

use async_trait::async_trait;
use proptest::prelude::*;
use proxy_model::{DestinationId, Problem, Problems};

use super::super::registry::{KeptState, Registry};
use super::*;
use crate::discovery::Labels;
use crate::labels::{LabelsParser, Parsed};
use crate::report::ServiceOutcome;
use crate::validator::Candidate;

fn destination(address: &str) -> (DestinationId, DestinationConfig) {
    let config = DestinationConfig {
        address: address.to_owned(),
        ..Default::default()
    };
    (DestinationId::new(address.replace("http://", "d-")), config)
}

/// A service by labels with a route of this order.
fn labelled(order: &str, addresses: &[&str]) -> DiscoveredService {
    let labels = [
        ("proxy.enable", "true"),
        ("proxy.routes.main.path", "/web"),
        ("proxy.routes.main.order", order),
    ];
    DiscoveredService::labelled("web", labels, addresses.iter().copied().map(destination))
}

/// Returns the addresses of all clusters.
fn addresses(state: &ProviderState) -> Vec<String> {
    let config = state.config.as_deref();
    let clusters = config.iter().flat_map(|config| config.clusters.values());
    let destinations = clusters.flat_map(|cluster| cluster.destinations.values());
    destinations.map(|d| d.address.clone()).collect()
}

fn orders(state: &ProviderState) -> Vec<Option<i32>> {
    let config = state.config.as_deref();
    let routes = config.iter().flat_map(|config| config.routes.values());
    routes.map(|route| route.order).collect()
}

#[tokio::test(start_paused = true)]
async fn a_wrong_label_keeps_the_rules_and_no_address() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([labelled("7", &["http://1", "http://2"])]);
    source.answer([labelled("abc", &["http://1", "http://2"])]);
    source.answer([labelled("abc", &["http://3", "http://4"])]);
    source.answer([labelled("abc", &[])]);
    source.answer([labelled("8", &["http://5"])]);
    let provider = Runner::new(source.clone()).options(options()).start();
    for (cycle, expected) in [
        (1, vec!["http://1", "http://2"]),
        (2, vec!["http://1", "http://2"]),
        (3, vec!["http://3", "http://4"]),
        // Known to be empty.
        (4, vec![]),
    ] {
        let state = after_cycles(&source, &provider, cycle).await;
        assert_eq!(addresses(&state), expected, "{cycle}");
        assert_eq!(orders(&state), [Some(7)], "{cycle}");
        let quarantined = state.status.quarantined.first();
        assert_eq!(quarantined.is_some(), cycle > 1, "{cycle}");
        if let Some(service) = quarantined {
            let rules = service.last_known_good.unwrap().age();
            assert!(rules >= Duration::from_secs(27) * (cycle as u32 - 1));
            let destinations = service.destinations.map(|at| at.age());
            match expected.is_empty() {
                true => assert!(service.serves().ends_with(" ago, no destination")),
                false => assert!(destinations.unwrap() < Duration::from_secs(1)),
            }
            assert_eq!(destinations.is_some(), !expected.is_empty());
        }
    }
    let reports = source.wait_for_reports(4).await;
    let ServiceOutcome::Quarantined {
        last_known_good_age: Some(rules),
        destinations_age: None,
    } = reports[3].services[0].outcome
    else {
        panic!("{:?}", reports[3]);
    };
    assert!(rules > Duration::from_secs(60));
    let state = after_cycles(&source, &provider, 5).await;
    assert_eq!(addresses(&state), ["http://5"]);
    assert_eq!(orders(&state), [Some(8)]);
    assert!(state.status.quarantined.is_empty());
}

/// A service whose configuration the source makes itself, and can make again from earlier valid labels:
/// here one cluster for each destination, as for partitions.
fn made(order: &str, addresses: &'static [&'static str]) -> DiscoveredService {
    let build = move |labels: &Labels| {
        let mut config = ProxyConfig::default();
        for address in addresses {
            let id = address.replace("http://", "web-");
            config.clusters.append(&mut fragment(&id, address).clusters);
        }
        let mut route = RouteConfig {
            cluster_id: config.clusters.keys().next().cloned(),
            r#match: RouteMatch {
                path: Some("/web".to_owned()),
                ..Default::default()
            },
            ..Default::default()
        };
        let mut problems = Problems::new();
        match labels["order"].parse() {
            Ok(order) => route.order = Some(order),
            Err(_) => problems.push(Problem::error("/order", "invalid_label", "no number")),
        }
        config.routes.insert("web".into(), route);
        Parsed::new(config).with_problems(problems)
    };
    let labels: Labels = [("order".to_owned(), order.to_owned())].into();
    let parsed = build(&labels);
    let mut service = match parsed.problems.has_errors() {
        // Like a source that knows nothing about invalid labels.
        true => DiscoveredService::configured("web", ProxyConfig::default()),
        false => DiscoveredService::configured("web", parsed.fragment.unwrap()),
    };
    service.problems = parsed.problems;
    service.with_rebuild(labels, build)
}

#[tokio::test(start_paused = true)]
async fn a_source_makes_configuration_again_of_labels_that_were_right() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([made("7", &["http://1"])]);
    source.answer([made("x", &["http://2", "http://3"])]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(
        serving(&state),
        ["web-2=http://2", "web-3=http://3"],
        "the clusters are those of now, too"
    );
    assert_eq!(orders(&state), [Some(7)]);
    let route = &state.config.as_ref().unwrap().routes[0];
    assert_eq!(route.cluster_id.as_ref().unwrap(), "web-2");
}

/// A service that cannot be read at all keeps its destinations, unless the source still knows their
/// addresses.
#[tokio::test(start_paused = true)]
async fn labels_that_cannot_be_read_freeze_no_address() {
    let unreadable = |addresses| {
        let mut service = made("7", addresses);
        service.content = crate::discovery::ServiceContent::Failed;
        service.problems = Problem::error("", "labels_unknown", "no labels").into();
        service
    };
    let source = ScriptedDiscoverer::new("script");
    source.answer([made("7", &["http://1"])]);
    source.answer([unreadable(&["http://2"])]);
    let mut silent = unreadable(&["http://3"]);
    silent.rebuild = None;
    source.answer([silent]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(addresses(&state), ["http://2"]);
    let state = after_cycles(&source, &provider, 3).await;
    assert_eq!(addresses(&state), ["http://2"]);
    let service = &state.status.quarantined[0];
    assert!(service.destinations.unwrap().age() >= Duration::from_secs(27));
    assert!(service.last_known_good.unwrap().age() >= Duration::from_secs(54));
}

/// Configuration that the source made without a way to rebuild it.
#[tokio::test(start_paused = true)]
async fn clusters_of_the_same_name_give_their_destinations() {
    let with = |path: &str, clusters: &[(&str, &[&str])]| {
        let mut config = ProxyConfig::default();
        for (id, addresses) in clusters {
            let cluster = ClusterConfig {
                destinations: addresses.iter().copied().map(destination).collect(),
                ..Default::default()
            };
            config.clusters.insert((*id).into(), cluster);
        }
        let mut routes = fragment("r", "http://unused").routes;
        routes[0].cluster_id = Some("all".into());
        routes[0].r#match.path = Some(path.to_owned());
        config.routes = routes;
        DiscoveredService::configured("web", config)
    };
    let good = [
        ("all", &["http://1", "http://2"][..]),
        ("v2", &["http://2"][..]),
    ];
    let report = Problem::error("", "unknown", "something is wrong");
    let cases: [(DiscoveredService, &[&str]); 6] = [
        // Instances have moved, and the variant was removed.
        (with("/{bad", &[("all", &["http://3"])]), &["http://3"]),
        // What the source itself finds wrong may have made it leave out the variant.
        (
            with("/r", &[("all", &["http://4"])]).with_problem(report.clone()),
            &["http://4", "http://2"],
        ),
        // One address is unknown, and so are those of the variant.
        (
            with(
                "/{bad",
                &[("all", &["http://5", "htp:/x"]), ("v2", &["htp:/x"])],
            ),
            &["http://5", "http://2"],
        ),
        // No instances.
        (with("/{bad", &[("all", &[]), ("v2", &[])]), &[]),
        // These are other clusters: nothing is known of the ones that serve.
        (
            with("/{bad", &[("x", &["http://6"]), ("y", &["http://7"])]),
            &["http://1", "http://2", "http://2"],
        ),
        (
            with("/r", &[]).with_problem(report),
            &["http://1", "http://2", "http://2"],
        ),
    ];
    for (bad, expected) in cases {
        let source = ScriptedDiscoverer::new("script");
        source.answer([with("/r", &good)]);
        source.answer([bad]);
        let provider = Runner::new(source.clone()).options(options()).start();
        after_cycles(&source, &provider, 1).await;
        let state = after_cycles(&source, &provider, 2).await;
        assert_eq!(addresses(&state), expected);
        let path = &state.config.as_ref().unwrap().routes[0].r#match.path;
        assert_eq!(path.as_deref(), Some("/r"));
    }
}

/// A service that claims the id of another is rejected, but its instances move nevertheless.
#[tokio::test(start_paused = true)]
async fn a_clash_freezes_no_address() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a1"), service("b", "http://b1")]);
    let conflicting_owner = DiscoveredService::configured("b", fragment("a", "http://b2"));
    source.answer([service("a", "http://a2"), conflicting_owner]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["a=http://a2", "b=http://b2"]);
    assert_eq!(quarantined(&state), ["b"]);
}

/// Clusters that a service has now and had not before may be another service's.
#[tokio::test(start_paused = true)]
async fn new_clusters_of_a_service_with_wrong_labels_take_nobody_s_place() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([made("7", &["http://1"]), service("web-2", "http://other")]);
    source.answer([made("x", &["http://2"]), service("web-2", "http://other")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    let mut serving = serving(&state);
    serving.sort();
    assert_eq!(serving, ["web-1=http://1", "web-2=http://other"]);
}

/// Rejects certain addresses.
struct NoNines;

#[async_trait]
impl ConfigValidator for NoNines {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        let clusters = candidate.config.clusters.values();
        let mut destinations = clusters.flat_map(|cluster| cluster.destinations.values());
        let rejected = destinations.any(|destination| destination.address.contains('9'));
        let problem = rejected.then(|| Problem::error("", "forbidden", "no nines"));
        problem.into_iter().collect()
    }
}

#[tokio::test(start_paused = true)]
async fn validators_are_asked_about_current_destinations_too() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([labelled("7", &["http://1"])]);
    source.answer([labelled("7", &["http://9"])]);
    source.answer([labelled("x", &["http://9"])]);
    source.answer([labelled("x", &["http://2"])]);
    let provider = Runner::new(source.clone())
        .options(options())
        .validator(NoNines)
        .start();
    for (cycle, expected) in [
        (1, "http://1"),
        (2, "http://1"),
        (3, "http://1"),
        (4, "http://2"),
    ] {
        let state = after_cycles(&source, &provider, cycle).await;
        assert_eq!(addresses(&state), [expected], "{cycle}");
    }
}

/// A parser that panics at what it is given.
struct Touchy;

impl LabelsParser for Touchy {
    fn parse(&self, service: &str, described: &crate::LabelledService) -> Parsed {
        assert!(described.destinations.len() < 2, "as told");
        KeyValueLabels::new().parse(service, described)
    }
}

#[tokio::test(start_paused = true)]
async fn a_parser_that_panics_leaves_everything_as_it_was() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([labelled("7", &["http://1"])]);
    source.answer([labelled("x", &["http://2", "http://3"])]);
    let provider = Runner::new(source.clone())
        .options(options())
        .labels(Touchy)
        .start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(addresses(&state), ["http://1"]);
    assert_eq!(quarantined(&state), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_removed_while_its_labels_are_wrong_is_gone() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([labelled("7", &["http://1"])]);
    source.answer([labelled("x", &["http://2"])]);
    source.answer([]);
    // It has no past when it comes back.
    source.answer([labelled("x", &["http://3"])]);
    let provider = Runner::new(source.clone()).options(options()).start();
    for (cycle, expected) in [(2, vec!["http://2"]), (3, vec![]), (4, vec![])] {
        let state = after_cycles(&source, &provider, cycle).await;
        assert_eq!(addresses(&state), expected, "{cycle}");
    }
    assert_eq!(quarantined(&provider.state()), ["web"]);
}

/// The rules survive a restart, and the destinations are those of after it.
#[tokio::test]
async fn rules_outlive_the_program_and_addresses_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let options = options()
        .with_persist(directory.path().join("kept"))
        .with_interval(Duration::from_millis(20));
    let run = async |answers: Vec<DiscoveredService>, expected: &[&str]| {
        let source = ScriptedDiscoverer::new("script");
        for answer in answers {
            source.answer([answer]);
        }
        let provider = Runner::new(source.clone()).options(options.clone()).start();
        let mut states = provider.subscribe();
        let wanted = states.wait_for(|state| {
            state.status.state == SourceState::Live && addresses(state) == expected
        });
        let state = tokio::time::timeout(Duration::from_secs(60), wanted).await;
        let state = Arc::clone(&state.expect("in time").unwrap());
        assert_eq!(orders(&state), [Some(7)]);
        // A cycle saves before it reports.
        let reports = source.reports().len();
        source.wait_for_reports(reports + 1).await;
        let persistence = provider.state().status.persistence.clone();
        assert_eq!(persistence.unwrap().error, None);
    };
    for make in [
        (|order, addresses: &'static [&'static str]| labelled(order, addresses))
            as fn(&str, &'static [&'static str]) -> _,
        made,
    ] {
        run(
            vec![make("7", &["http://1"]), make("x", &["http://2"])],
            &["http://2"],
        )
        .await;
        run(vec![make("x", &["http://3"])], &["http://3"]).await;
        run(vec![make("x", &["http://4"])], &["http://4"]).await;
        std::fs::remove_file(directory.path().join("kept")).unwrap();
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Absent,
    Good(u8),
    /// A service with invalid labels.
    Bad(u8),
    /// A service with labels that claim the cluster of another service.
    Claims(u8, u8),
    Failed,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Property: independent of labels and restarts, a service that serves and whose address is known
    /// serves at that address.
    #[test]
    fn what_serves_serves_at_its_current_address(
        cycles in prop::collection::vec(
            (
                prop::collection::vec(
                    prop_oneof![
                        Just(Act::Absent), any::<u8>().prop_map(Act::Good), any::<u8>().prop_map(Act::Bad),
                        any::<u8>().prop_map(Act::Bad), (0..3_u8, any::<u8>()).prop_map(|(o, v)| Act::Claims(o, v)),
                        Just(Act::Failed),
                    ],
                    3,
                ),
                any::<bool>(),
            ),
            1..8,
        ),
    ) {
        let evaluator = Evaluator {
            source: "script".into(),
            parser: Arc::new(KeyValueLabels::new()),
            filters: Vec::new(),
            compile: CompileOptions::default(),
            unread_grace: Duration::from_secs(60),
        };
        let described = |i: usize, cluster: usize, order: &str, version: u8| {
            let labels = [
                ("proxy.enable".to_owned(), "true".to_owned()),
                ("proxy.cluster.id".to_owned(), format!("c{cluster}")),
                ("proxy.routes.main.path".to_owned(), format!("/{i}")),
                ("proxy.routes.main.order".to_owned(), order.to_owned()),
            ];
            let address = format!("http://s{i}-{version}");
            DiscoveredService::labelled(format!("s{i}"), labels, [destination(&address)])
        };
        let mut registry = Registry::new(false, None);
        for (acts, restart) in cycles {
            if restart {
                let kept: KeptState = registry.kept();
                registry = Registry::new(false, None);
                registry.restore(kept);
                registry.without_answer();
            }
            let services = acts.iter().enumerate().filter_map(|(i, act)| Some(match *act {
                Act::Absent => return None,
                Act::Good(version) => described(i, i, "1", version),
                Act::Bad(version) => described(i, i, "x", version),
                Act::Claims(other, version) => described(i, usize::from(other), "1", version),
                Act::Failed => DiscoveredService::failed(format!("s{i}"), Problem::error("", "x", "x")),
            }));
            let mut problems = Problems::new();
            let mut answer: Vec<_> = registry
                .arrange(services.collect(), &mut problems)
                .into_iter()
                .map(|service| {
                    let remembered = registry.remembered(&service);
                    let evaluation = remembered.unwrap_or_else(|| evaluator.evaluate(&service));
                    (service, evaluation)
                })
                .collect();
            let in_doubt = registry.in_doubt(&answer);
            evaluator.add_fallbacks(&mut answer, in_doubt);
            let settled = registry.answer(answer, &[], Instant::now());
            for (i, act) in acts.iter().enumerate() {
                let current = match act {
                    Act::Good(version) | Act::Bad(version) | Act::Claims(_, version) => format!("http://s{i}-{version}"),
                    Act::Absent | Act::Failed => continue,
                };
                let own = format!("http://s{i}-");
                let clusters = settled.config.clusters.values();
                let served = clusters.flat_map(|cluster| cluster.destinations.values());
                for destination in served.filter(|d| d.address.starts_with(&own)) {
                    prop_assert_eq!(&destination.address, &current);
                }
                // No service has another's destinations.
                let clusters = settled.config.clusters.values();
                for cluster in clusters {
                    prop_assert_eq!(cluster.destinations.len(), 1);
                }
            }
            for service in &settled.outcome.quarantined {
                prop_assert_eq!(service.last_known_good.is_some(), service.destinations.is_some());
            }
            let compiled = proxy_model::Snapshot::compile(settled.config, &CompileOptions::default());
            prop_assert!(compiled.is_ok());
        }
    }
}
