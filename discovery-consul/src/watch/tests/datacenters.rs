//! Several datacenters.

use super::*;
use crate::client::FollowOptions;
use crate::testing::Fault;
use HealthStatus::{Critical, Passing};

fn two() -> FakeConsul {
    let consul = consul_with(2);
    consul.add_datacenter("vla");
    consul.register("vla", "v1", checked("s0000", "v-0", 80));
    consul
}

fn all() -> WatchOptions {
    let follow = FollowOptions::default().with_wait(Duration::from_secs(5));
    WatchOptions::default()
        .with_datacenters(Datacenters::All)
        .with_follow(follow)
}

fn names(watched: &Watched) -> Vec<String> {
    let state = watched.state();
    let datacenters = state.datacenters.iter();
    datacenters.map(|dc| dc.datacenter.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn only_the_own_datacenter_is_watched_unless_more_are_wanted() {
    let watched = Watched::start(&two(), WatchOptions::default()).await;
    assert_eq!(names(&watched), ["sas"]);
    assert_eq!(watched.state().own.as_deref(), Some("sas"));
    let listed = Datacenters::Listed(vec!["vla".into(), "sas".into()]);
    let options = WatchOptions::default().with_datacenters(listed);
    let watched = Watched::start(&two(), options.with_own_datacenter("sas")).await;
    assert_eq!(names(&watched), ["sas", "vla"]);
    assert_eq!(watched.consul.count("agent/self"), 0, "it was told");
}

#[tokio::test(start_paused = true)]
async fn indexes_and_failures_of_one_datacenter_are_no_matter_to_another() {
    let consul = two();
    let mut watched = Watched::start(&consul, all()).await;
    watched.has("vla", "s0000", &[("v-0", Passing)]).await;
    for fault in [
        Fault::Status(
            500,
            "rpc error getting client: failed to get conn: connection refused",
        ),
        Fault::Hang,
    ] {
        consul.fail_in("vla", "", fault);
        watched.pass(120).await;
        assert!(watched.datacenter("vla").failure.is_some());
        assert_eq!(watched.datacenter("sas").failure, None);
        assert_eq!(watched.instances("vla"), 1, "last known good");
        let started = tokio::time::Instant::now();
        consul.set_check("sas", "s0000-0", Critical);
        let now = [
            ("s0000-0", Critical),
            ("s0000-1", Passing),
            ("s0000-2", Passing),
        ];
        watched.has("sas", "s0000", &now).await;
        assert!(
            started.elapsed() < Duration::from_secs(1),
            "{:?}",
            started.elapsed()
        );
        consul.heal();
        consul.set_check("sas", "s0000-0", Passing);
        watched
            .when("vla is back", |state| {
                state.datacenters[1].failure.is_none()
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_datacenter_that_hangs_from_the_beginning_delays_no_other() {
    let consul = two();
    consul.fail_in("vla", "", Fault::Hang);
    let mut watched = Watched::begin(&consul, all());
    let started = tokio::time::Instant::now();
    watched
        .when("sas is complete", |state| {
            state.datacenters.first().is_some_and(|sas| sas.is_complete)
        })
        .await;
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
    assert!(!watched.datacenter("vla").is_complete);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_datacenter_is_an_error_of_its_own() {
    let options = all().with_datacenters(Datacenters::Listed(vec!["atlantis".into()]));
    let mut watched = Watched::begin(&two(), options);
    watched
        .when("it is said", |state| {
            state.datacenters.iter().any(|dc| dc.failure.is_some())
        })
        .await;
    let failure = watched.datacenter("atlantis").failure.clone().unwrap();
    assert!(failure.contains("No path to datacenter"), "{failure}");
    watched.pass(1).await;
    assert_eq!(watched.instances("sas"), 6);
}

#[tokio::test(start_paused = true)]
async fn new_datacenters_are_found_and_old_ones_kept_for_a_while() {
    let consul = two();
    let mut watched = Watched::start(&consul, all()).await;
    consul.add_datacenter("iva");
    watched
        .when("iva", |state| state.datacenters.len() == 3)
        .await;
    assert_eq!(names(&watched), ["sas", "iva", "vla"]);
    consul.fail("catalog/datacenters", Fault::Status(500, "boom"));
    watched.pass(3600).await;
    assert_eq!(names(&watched).len(), 3, "an error removes nothing");
    consul.fail("catalog/datacenters", Fault::Empty);
    watched.pass(300).await;
    assert_eq!(names(&watched).len(), 3);
    watched.pass(600).await;
    assert_eq!(names(&watched), ["sas"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_say_where_it_is_is_asked_until_it_does() {
    let consul = two();
    consul.fail("agent/self", Fault::Status(403, "Permission denied"));
    let mut watched = Watched::begin(&consul, WatchOptions::default());
    watched
        .when("it is said", |state| state.failure.is_some())
        .await;
    let failure = watched.state().failure.clone().unwrap();
    assert!(failure.contains("say which datacenter it is"), "{failure}");
    consul.heal();
    watched.when("it says", |state| state.own.is_some()).await;
}

/// A policy for services and nodes is enough.
#[tokio::test(start_paused = true)]
async fn a_token_that_may_not_read_agents_takes_the_datacenter_from_the_catalog() {
    let consul = two();
    consul.register("sas", "n1", ServiceDefinition::new("consul", 8300));
    consul.fail("agent/self", Fault::Status(403, "Permission denied"));
    let watched = Watched::start(&consul, WatchOptions::default()).await;
    assert_eq!(watched.state().own.as_deref(), Some("sas"));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_may_read_nothing_is_told_what_is_missing() {
    let consul = two();
    consul.fail("agent/self", Fault::Status(403, "Permission denied"));
    let mut watched = Watched::begin(&consul, WatchOptions::default());
    watched
        .when("it is said", |state| state.failure.is_some())
        .await;
    let failure = watched.state().failure.clone().unwrap();
    for right in ["service_prefix", "node_prefix", "agent_prefix"] {
        assert!(failure.contains(right), "{failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_datacenters_that_hangs_holds_no_news_up() {
    let consul = two();
    let mut watched = Watched::start(&consul, all()).await;
    consul.fail("catalog/datacenters", Fault::Hang);
    // The next list is requested meanwhile, and hangs for ten seconds.
    for nth in 0..60 {
        let status = if nth % 2 == 0 { Critical } else { Passing };
        let started = tokio::time::Instant::now();
        consul.set_check("sas", "s0000-0", status);
        let now = [
            ("s0000-0", status),
            ("s0000-1", Passing),
            ("s0000-2", Passing),
        ];
        watched.has("sas", "s0000", &now).await;
        let took = started.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}");
        watched.pass(1).await;
    }
    assert!(consul.count("catalog/datacenters") > 1);
}
