//! One bad service harms no other.

use proptest::prelude::*;
use proxy_model::Problem;

use super::super::registry::Registry;
use super::*;
use crate::discovery::Discovery;
use crate::report::ServiceOutcome;

fn failed(name: &str) -> DiscoveredService {
    DiscoveredService::failed(
        name,
        Problem::error("", "manifest", "the manifest cannot be read"),
    )
}

#[tokio::test(start_paused = true)]
async fn a_bad_service_keeps_its_last_known_good_rules_and_recovers() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a1"), service("b", "http://b1")]);
    source.answer([broken("a"), service("b", "http://b2")]);
    source.answer([broken("a"), service("b", "http://b2")]);
    source.answer([service("a", "http://a2"), service("b", "http://b2")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;

    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["a=http://broken", "b=http://b2"]);
    let path = &state.config.as_ref().unwrap().routes[0].r#match.path;
    assert_eq!(path.as_deref(), Some("/a"));
    assert_eq!(quarantined(&state), ["a"]);
    assert!(
        state
            .problems
            .iter()
            .all(|p| p.pointer.starts_with("/Services/a/Routes/a/"))
    );
    assert_eq!(state.status.state, SourceState::Live);

    let state = after_cycles(&source, &provider, 3).await;
    let service = &state.status.quarantined[0];
    let interval = Duration::from_secs(27);
    assert!(service.since.age() >= interval, "{:?}", service.since.age());
    assert!(service.last_known_good.unwrap().age() >= interval * 2);

    let state = after_cycles(&source, &provider, 4).await;
    assert_eq!(serving(&state), ["a=http://a2", "b=http://b2"]);
    assert!(state.status.quarantined.is_empty());
    assert!(state.problems.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_be_read_keeps_its_last_known_good_form() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    source.answer([failed("a"), failed("new"), service("b", "http://b")]);
    source.answer([service("b", "http://b")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["a=http://a", "b=http://b"]);
    assert_eq!(quarantined(&state), ["a", "new"]);
    assert!(state.status.quarantined[1].last_known_good.is_none());
    assert_eq!(state.status.changes, 1);
    // The source now reports its removal.
    let state = after_cycles(&source, &provider, 3).await;
    assert_eq!(serving(&state), ["b=http://b"]);
    assert!(state.status.quarantined.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_group_that_cannot_be_listed_keeps_its_services() {
    let source = ScriptedDiscoverer::new("script");
    let of = |group: &str, name: &str| {
        service(name, &format!("http://{name}")).in_group(group.to_owned())
    };
    let reason = Problem::warning("", "listing", "the application cannot be listed");
    source.answer([of("app1", "a"), of("app1", "b"), of("app2", "c")]);
    source.answer_with(Discovery::new(vec![]).group_failed("app1", reason.clone()));
    source.answer_with(Discovery::new(vec![of("app1", "a")]).group_failed("app2", reason));
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["a=http://a", "b=http://b"]);
    assert_eq!(state.problems.iter().next().unwrap().code, "listing");
    let report = source.wait_for_reports(2).await[1].clone();
    assert!(
        matches!(report.services[0].outcome, ServiceOutcome::Kept { last_known_good_age } if last_known_good_age > Duration::ZERO)
    );
    // The group can be listed again, and services missing from it are removed.
    let state = after_cycles(&source, &provider, 3).await;
    assert_eq!(serving(&state), ["a=http://a"]);
}

#[tokio::test(start_paused = true)]
async fn the_first_service_that_claims_an_id_has_it() {
    let source = ScriptedDiscoverer::new("script");
    let claims = |name: &str, cluster: &str| {
        DiscoveredService::configured(name, fragment(cluster, &format!("http://{name}")))
    };
    source.answer([
        claims("2", "ORDERS"),
        claims("1", "orders"),
        claims("3", "other"),
    ]);
    let provider = Runner::new(source.clone()).options(options()).start();
    let state = after_cycles(&source, &provider, 1).await;
    assert_eq!(serving(&state), ["orders=http://1", "other=http://3"]);
    assert_eq!(quarantined(&state), ["2"]);
    let problems: Vec<_> = state.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "error at /Services/2/Clusters/ORDERS: the service `1` already has a cluster `ORDERS`",
            "error at /Services/2/Routes/ORDERS: the service `1` already has a route `ORDERS`",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_order_of_the_answer_can_decide() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([
        DiscoveredService::configured("2", fragment("orders", "http://2")),
        DiscoveredService::configured("1", fragment("orders", "http://1")),
    ]);
    let provider = Runner::new(source.clone())
        .options(options().with_keep_order(true))
        .start();
    let state = after_cycles(&source, &provider, 1).await;
    assert_eq!(serving(&state), ["orders=http://2"]);
    assert_eq!(quarantined(&state), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn a_clash_that_comes_later_leaves_both_as_they_were() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    // `b` now claims the cluster of `a` too.
    source.answer([
        service("a", "http://a"),
        DiscoveredService::configured("b", fragment("a", "http://b")),
    ]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["a=http://a", "b=http://b"]);
    assert_eq!(quarantined(&state), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn too_many_services_are_rejected_as_a_whole() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a")]);
    source.answer((0..11).map(|i| service(&format!("s{i}"), "http://s")));
    let provider = Runner::new(source.clone())
        .options(options().with_max_services(10))
        .start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(state.status.state, SourceState::Failing);
    assert_eq!(serving(&state), ["a=http://a"]);
}

#[tokio::test(start_paused = true)]
async fn a_sudden_disappearance_is_confirmed_first() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    // An agent that has just started knows only itself.
    source.answer([service("agent", "http://agent")]);
    let rule = ConfirmRemoval::default()
        .with_settle(Duration::from_secs(10))
        .with_recheck(Duration::from_secs(2));
    let provider = Runner::new(source.clone())
        .options(options().with_confirm_removal(rule))
        .start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(
        serving(&state),
        ["a=http://a", "agent=http://agent", "b=http://b"]
    );
    let next = state.status.next_cycle.unwrap() - Instant::now();
    assert!(next <= Duration::from_secs(2));
    // It is polled again every 2 s, and trusted after 10 s.
    let begun = Instant::now();
    let mut states = provider.subscribe();
    let gone = states.wait_for(|state| serving(state) == ["agent=http://agent"]);
    tokio::time::timeout(LONG, gone).await.unwrap().unwrap();
    let elapsed = begun.elapsed();
    assert!(
        elapsed >= Duration::from_secs(9) && elapsed <= Duration::from_secs(13),
        "{elapsed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn services_that_come_back_in_time_were_never_gone() {
    let source = ScriptedDiscoverer::new("script");
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    source.answer([]);
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    source.answer([service("a", "http://a")]);
    let provider = Runner::new(source.clone())
        .options(options().with_confirm_removal(ConfirmRemoval::default()))
        .start();
    for cycles in 1..=3 {
        let state = after_cycles(&source, &provider, cycles).await;
        assert_eq!(serving(&state), ["a=http://a", "b=http://b"]);
        assert_eq!(state.status.changes, 1);
    }
    // One of two is an ordinary removal.
    let state = after_cycles(&source, &provider, 4).await;
    assert_eq!(serving(&state), ["a=http://a"]);
}

/// The behaviour of a service in one cycle of the property test.
#[derive(Clone, Copy, Debug)]
enum Act {
    Absent,
    Good(u8),
    Bad,
    Failed,
    NotEnabled,
    Claims(u8),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Property: ids are unique, a good service that claims only its own ids serves in its current form,
    /// and a listed service that was good before serves in some form unless another one took its id.
    #[test]
    fn good_services_always_serve(
        cycles in prop::collection::vec(
            prop::collection::vec(
                prop_oneof![
                    Just(Act::Absent), (0..3_u8).prop_map(Act::Good), Just(Act::Bad), Just(Act::Failed),
                    Just(Act::NotEnabled), (0..4_u8).prop_map(Act::Claims),
                ],
                4,
            ),
            1..6,
        ),
        keep_order: bool,
    ) {
        let evaluator = Evaluator {
            source: "script".into(),
            parser: Arc::new(KeyValueLabels::new()),
            filters: Vec::new(),
            compile: CompileOptions::default(),
            unread_grace: Duration::from_secs(60),
        };
        let mut registry = Registry::new(keep_order, None);
        for acts in cycles {
            let services = acts.iter().enumerate().filter_map(|(i, act)| {
                let name = format!("s{i}");
                Some(match *act {
                    Act::Absent => return None,
                    Act::Good(version) => service(&name, &format!("http://{name}-{version}")),
                    Act::Bad => broken(&name),
                    Act::Failed => failed(&name),
                    Act::NotEnabled => DiscoveredService::not_enabled(name),
                    Act::Claims(other) => DiscoveredService::configured(
                        name.clone(),
                        fragment(&format!("S{other}"), &format!("http://{name}")),
                    ),
                })
            });
            let mut problems = proxy_model::Problems::new();
            let answer = registry
                .arrange(services.collect(), &mut problems)
                .into_iter()
                .map(|service| {
                    let evaluation = registry
                        .remembered(&service)
                        .unwrap_or_else(|| evaluator.evaluate(&service));
                    (service, evaluation)
                })
                .collect();
            let settled = registry.answer(answer, &[], Instant::now());

            let listed = acts.iter().filter(|act| !matches!(act, Act::Absent)).count();
            prop_assert_eq!(settled.outcome.services.len(), listed);
            prop_assert!(settled.config.clusters.len() <= listed);
            for (i, act) in acts.iter().enumerate() {
                if matches!(act, Act::NotEnabled) {
                    let report = settled.outcome.services.iter().find(|s| *s.name == *format!("s{i}"));
                    prop_assert_eq!(&report.unwrap().outcome, &ServiceOutcome::NotEnabled);
                }
                let Act::Good(version) = act else { continue };
                let contested = acts.iter().enumerate().any(|(j, other)| {
                    j != i && matches!(other, Act::Claims(claimed) if usize::from(*claimed) == i)
                }) || settled.outcome.quarantined.iter().any(|q| q.last_known_good.is_some());
                if !contested {
                    let cluster = &settled.config.clusters[&ClusterId::new(format!("s{i}"))];
                    let address = format!("http://s{i}-{version}");
                    prop_assert_eq!(&cluster.destinations[0].address, &address);
                }
            }
            let compiled = proxy_model::Snapshot::compile(settled.config, &CompileOptions::default());
            prop_assert!(compiled.is_ok());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_service_is_missing_for_as_long_as_it_is_missing() {
    let rule = ConfirmRemoval::default().with_share(0.5);
    let options = options()
        .with_interval(Duration::from_secs(1))
        .with_jitter(0.0)
        .with_confirm_removal(rule);
    let all = || ["a", "b", "c", "d"].map(|name| service(name, "http://x"));
    let source = ScriptedDiscoverer::new("script");
    source.answer(all());
    // Half of them are missing, and five seconds later the others are too.
    for _ in 0..5 {
        source.answer(all().into_iter().skip(2));
    }
    source.answer([]);
    let provider = Runner::new(source.clone()).options(options.clone()).start();
    let names = |state: &ProviderState| -> String {
        let clusters = state.config.as_ref().unwrap().clusters.keys();
        clusters.map(|id| id.as_str()).collect()
    };
    for (cycle, expected) in [(7, "abcd"), (11, "abcd"), (12, "cd"), (16, "cd"), (17, "")] {
        let state = after_cycles(&source, &provider, cycle).await;
        assert_eq!(names(&state), expected, "{cycle}");
    }

    // A service that comes back starts over when it is missing again.
    let source = ScriptedDiscoverer::new("script");
    let both = || [service("a", "http://a"), service("b", "http://b")];
    source.answer(both());
    source.answer([]);
    for _ in 0..8 {
        source.answer(both().into_iter().take(1));
    }
    source.answer([]);
    let provider = Runner::new(source.clone()).options(options).start();
    for (cycle, expected) in [(10, "ab"), (11, "ab"), (12, "a"), (20, "a"), (21, "")] {
        let state = after_cycles(&source, &provider, cycle).await;
        assert_eq!(names(&state), expected, "{cycle}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_does_not_get_what_an_established_service_has() {
    let claims = |name: &str, cluster: &str| {
        DiscoveredService::configured(name, fragment(cluster, &format!("http://{name}")))
    };
    for keep_order in [false, true] {
        let source = ScriptedDiscoverer::new("script");
        source.answer([claims("shop", "shop")]);
        source.answer([claims("aaa", "Shop"), claims("shop", "shop")]);
        // It is invalid, and its last known good rules still have the id.
        source.answer([claims("aaa", "Shop"), broken("shop")]);
        source.answer([claims("aaa", "Shop")]);
        // Two exchange their ids: neither is in the other's way.
        source.answer([claims("aaa", "x"), claims("bbb", "y")]);
        source.answer([claims("aaa", "y"), claims("bbb", "x")]);
        let options = options().with_keep_order(keep_order);
        let provider = Runner::new(source.clone()).options(options).start();
        for (cycle, expected, bad) in [
            (2, &["shop=http://shop"][..], &["aaa"][..]),
            (3, &["shop=http://broken"], &["aaa", "shop"]),
            (4, &["Shop=http://aaa"], &[]),
            (5, &["x=http://aaa", "y=http://bbb"], &[]),
            (6, &["y=http://aaa", "x=http://bbb"], &[]),
        ] {
            let state = after_cycles(&source, &provider, cycle).await;
            assert_eq!(serving(&state), expected, "{cycle}");
            assert_eq!(quarantined(&state), bad, "{cycle}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_order_of_the_same_routes_is_another_configuration() {
    let mut first = fragment("a", "http://a");
    // Both match the same requests, so the first takes them all.
    first.routes.extend(fragment("b", "http://b").routes);
    first.routes[1].r#match = first.routes[0].r#match.clone();
    let mut second = first.clone();
    second.routes.reverse();
    let source = ScriptedDiscoverer::new("script");
    source.answer([DiscoveredService::configured("s", first)]);
    source.answer([DiscoveredService::configured("s", second.clone())]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    let config = state.config.as_ref().unwrap();
    assert!(config.routes.keys().eq(second.routes.keys()));
}

/// Routes may be one service and their clusters others, as an xDS control plane has them.
#[tokio::test(start_paused = true)]
async fn a_cluster_of_another_service_is_there() {
    let source = ScriptedDiscoverer::new("script");
    let mut routes = fragment("a~/b", "http://a");
    let clusters = ProxyConfig {
        clusters: std::mem::take(&mut routes.clusters),
        ..ProxyConfig::default()
    };
    let routes = DiscoveredService::configured("routes main", routes);
    let clusters = DiscoveredService::configured("cluster a", clusters);
    source.answer([routes.clone(), clusters]);
    source.answer([routes]);
    let provider = Runner::new(source.clone()).options(options()).start();
    let state = after_cycles(&source, &provider, 1).await;
    assert!(state.problems.is_empty(), "{}", state.problems);
    let state = after_cycles(&source, &provider, 2).await;
    let codes: Vec<_> = state.problems.iter().map(|p| &*p.code).collect();
    assert_eq!(codes, ["unknown_cluster"]);
}
