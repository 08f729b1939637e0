//! Tests that events which must not remove instances do not.

use super::*;
use crate::client::{Consistency, FollowOptions};
use crate::testing::Fault;
use HealthStatus::{Critical, Passing};

fn options() -> WatchOptions {
    let follow = FollowOptions::default().with_wait(Duration::from_secs(5));
    WatchOptions::default().with_follow(follow)
}

#[tokio::test(start_paused = true)]
async fn no_error_takes_anything_away() {
    for fault in [
        Fault::Status(500, "No cluster leader"),
        Fault::Status(403, "ACL not found"),
        Fault::Status(429, ""),
        Fault::Reset,
        Fault::Hang,
        Fault::Garbage,
        Fault::EmptyWithoutLeader,
    ] {
        let consul = consul_with(5);
        let mut watched = Watched::start(&consul, options()).await;
        consul.fail("", fault);
        watched.pass(300).await;
        assert_eq!(watched.instances("sas"), 15, "{fault:?}");
        let failure = watched.datacenter("sas").failure.clone();
        assert!(failure.is_some(), "{fault:?}");
        // And back: what has changed meanwhile is found, with and without a check.
        consul.set_check("sas", "s0001-1", Critical);
        consul.register(
            "sas",
            "n7",
            ServiceDefinition::new("s0002", 80).with_id("bare"),
        );
        consul.heal();
        let now = [
            ("s0001-0", Passing),
            ("s0001-1", Critical),
            ("s0001-2", Passing),
        ];
        watched.has("sas", "s0001", &now).await;
        watched
            .when("the bare one", |state| {
                state.datacenters[0].services["s0002"].instances.len() == 4
            })
            .await;
        watched
            .when("it answers", |state| state.datacenters[0].failure.is_none())
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_be_read_keeps_its_last_known_good_state_and_the_others_go_on() {
    let consul = consul_with(5);
    let mut watched = Watched::start(&consul, options()).await;
    consul.fail("health/service/s0001", Fault::Status(500, "boom"));
    consul.set_check("sas", "s0001-0", Critical);
    consul.set_check("sas", "s0002-0", Critical);
    let other = [
        ("s0002-0", Critical),
        ("s0002-1", Passing),
        ("s0002-2", Passing),
    ];
    watched.has("sas", "s0002", &other).await;
    watched
        .when("it is said", |state| {
            state.datacenters[0]
                .unread
                .keys()
                .any(|name| **name == *"s0001")
        })
        .await;
    let old = [
        ("s0001-0", Passing),
        ("s0001-1", Passing),
        ("s0001-2", Passing),
    ];
    watched.has("sas", "s0001", &old).await;
    consul.heal();
    let new = [
        ("s0001-0", Critical),
        ("s0001-1", Passing),
        ("s0001-2", Passing),
    ];
    watched.has("sas", "s0001", &new).await;
    assert!(watched.datacenter("sas").unread.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_empty_service_is_believed() {
    let consul = consul_with(5);
    let mut watched = Watched::start(&consul, options()).await;
    for nth in 0..3 {
        consul.deregister("sas", &format!("n{nth}"), &format!("s0001-{nth}"));
    }
    watched
        .when("it is gone", |state| {
            !state.datacenters[0].services.contains_key("s0001")
        })
        .await;
    assert_eq!(watched.instances("sas"), 12);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lost_its_memory_is_not_believed_at_once() {
    let consul = consul_with(5);
    let mut watched = Watched::start(&consul, options()).await;
    watched.pass(20).await;
    consul.forget("sas");
    watched
        .when("it is noticed", |state| state.datacenters[0].held == 15)
        .await;
    assert_eq!(watched.instances("sas"), 15);
    // The services register themselves again, one at another port.
    for service in 0..5 {
        for nth in 0..3 {
            let name = format!("s{service:04}");
            let port = if service == 2 { 81 } else { 80 };
            let instance = checked(&name, &format!("{name}-{nth}"), port);
            consul.register("sas", &format!("n{nth}"), instance);
        }
    }
    watched
        .when("nothing is held", |state| state.datacenters[0].held == 0)
        .await;
    watched.pass(30).await;
    assert_eq!(watched.instances("sas"), 15);
    let ports = &watched.datacenter("sas").services["s0002"].instances;
    assert!(ports.iter().all(|instance| instance.port == 81));
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_for_good_goes_after_a_second_look() {
    let consul = consul_with(5);
    let mut watched = Watched::start(&consul, options()).await;
    watched.pass(20).await;
    consul.forget("sas");
    consul.register("sas", "n0", checked("fresh", "fresh", 80));
    watched
        .when("it is noticed", |state| state.datacenters[0].held == 15)
        .await;
    watched.has("sas", "fresh", &[("fresh", Passing)]).await;
    let noticed = tokio::time::Instant::now();
    watched
        .when("it is believed", |state| state.datacenters[0].held == 0)
        .await;
    assert!(
        noticed.elapsed() >= Duration::from_secs(9),
        "{:?}",
        noticed.elapsed()
    );
    assert_eq!(watched.instances("sas"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_lost_its_rights_takes_nothing_away_ever() {
    let consul = consul_with(5);
    let mut watched = Watched::start(&consul, options()).await;
    consul.fail("catalog", Fault::Empty);
    consul.fail("health", Fault::Empty);
    watched
        .when("it is noticed", |state| state.datacenters[0].is_hidden)
        .await;
    watched.pass(3600).await;
    assert_eq!(watched.instances("sas"), 15);
    assert_eq!(watched.datacenter("sas").held, 15);
    consul.heal();
    watched
        .when("it sees again", |state| {
            let datacenter = &state.datacenters[0];
            !datacenter.is_hidden && datacenter.held == 0
        })
        .await;
    assert_eq!(watched.instances("sas"), 15);
}

#[tokio::test(start_paused = true)]
async fn an_empty_stale_answer_is_asked_for_at_the_leader() {
    let consul = consul_with(3);
    let stale = options().with_consistency(Consistency::Stale);
    let watched = Watched::start(&consul, stale).await;
    consul.fail_stale("", Fault::Empty);
    watched.pass(120).await;
    assert_eq!(watched.instances("sas"), 9);
    assert_eq!(watched.datacenter("sas").held, 0);
    assert_eq!(watched.datacenter("sas").failure, None);
    // Only doubtful results cost a second query.
    consul.heal();
    watched.pass(20).await;
    let leaders = || {
        let requests = consul.requests();
        requests
            .iter()
            .filter(|r| r.path != "agent/self" && r.parameter("stale").is_none())
            .count()
    };
    let before = leaders();
    watched.pass(120).await;
    assert_eq!(leaders(), before);
}

/// A service whose first read fails is not known, which is something else than having no instances.
#[tokio::test(start_paused = true)]
async fn nothing_is_complete_before_every_service_was_read_once() {
    let consul = consul_with(3);
    consul.fail("health/service/s0001", Fault::Status(500, "boom"));
    let mut watched = Watched::begin(&consul, options());
    let unknown = |state: &WatchState| {
        let datacenter = state.datacenters.first();
        datacenter.is_some_and(|dc| dc.unknown.iter().any(|name| **name == *"s0001"))
    };
    watched.when("it is said", unknown).await;
    watched.pass(5).await;
    assert!(!watched.datacenter("sas").is_complete);
    consul.heal();
    watched
        .when("complete", |state| state.datacenters[0].is_complete)
        .await;
    assert_eq!(watched.instances("sas"), 9);
    assert!(watched.datacenter("sas").unknown.is_empty());
}

/// A service that can never be read, such as one called `..`, holds back only itself.
#[tokio::test(start_paused = true)]
async fn a_service_that_can_never_be_read_does_not_hold_what_is_gone_elsewhere() {
    let consul = consul_with(5);
    let mut watched = Watched::start(&consul, options()).await;
    consul.fail("health/service/s0001", Fault::Status(404, "no such path"));
    consul.set_check("sas", "s0001-0", Critical);
    watched.pass(120).await;
    for service in ["s0002", "s0003", "s0004"] {
        for nth in 0..3 {
            let id = format!("{service}-{nth}");
            consul.deregister("sas", &format!("n{nth}"), &id);
        }
    }
    watched
        .when("it is noticed", |state| state.datacenters[0].held > 0)
        .await;
    watched.pass(60).await;
    assert_eq!(watched.datacenter("sas").held, 0);
    assert_eq!(
        watched.instances("sas"),
        6,
        "with those that cannot be read"
    );
}

/// One that was never read and is gone is not asked for any more.
#[tokio::test(start_paused = true)]
async fn a_service_that_was_never_read_is_forgotten_when_it_is_gone() {
    let consul = consul_with(3);
    consul.fail("health/service/odd", Fault::Status(404, "no such path"));
    let mut watched = Watched::start(&consul, options()).await;
    consul.register("sas", "n0", checked("odd", "odd", 80));
    let is_unread = |state: &WatchState| !state.datacenters[0].unread.is_empty();
    watched.when("it is said", is_unread).await;
    consul.deregister("sas", "n0", "odd");
    watched
        .when("it is forgotten", |state| !is_unread(state))
        .await;
    assert_eq!(watched.instances("sas"), 9);
}

/// An unreadable service delays the others only for a limited time.
#[tokio::test(start_paused = true)]
async fn a_service_that_can_never_be_read_is_waited_for_only_so_long() {
    let consul = consul_with(3);
    consul.fail("health/service/s0001", Fault::Status(500, "boom"));
    let mut watched = Watched::begin(&consul, options());
    let begun = tokio::time::Instant::now();
    watched
        .when("complete", |state| {
            state.datacenters.first().is_some_and(|dc| dc.is_complete)
        })
        .await;
    let grace = options().unread_grace;
    let took = begun.elapsed();
    assert!(took >= grace && took < grace * 2, "{took:?}");
    assert_eq!(watched.datacenter("sas").unknown.len(), 1);
    assert_eq!(watched.instances("sas"), 6);
}

/// Periodic reads continue all the time, and do not keep removed instances.
#[tokio::test(start_paused = true)]
async fn in_a_large_and_far_datacenter_what_is_gone_goes_at_once() {
    let consul = consul_with(2000);
    // 33 reads a second are wanted, of 150 ms each, and five of them at a time are not done before the next are due.
    consul.fail("health/service/", Fault::Slow(Duration::from_millis(150)));
    let often = options().with_reread(Duration::from_secs(60)).with_reads(8);
    let mut watched = Watched::start(&consul, often).await;
    watched.pass(70).await;
    let gone_at = tokio::time::Instant::now();
    consul.deregister("sas", "n1", "s0007-1");
    let left = [("s0007-0", Passing), ("s0007-2", Passing)];
    watched.has("sas", "s0007", &left).await;
    let took = gone_at.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn one_read_that_hangs_does_not_keep_what_is_gone_elsewhere() {
    let consul = consul_with(10);
    let mut watched = Watched::start(&consul, options()).await;
    watched.pass(20).await;
    consul.fail("health/service/s0003", Fault::Hang);
    let gone_at = tokio::time::Instant::now();
    consul.set_check("sas", "s0003-1", Critical);
    consul.deregister("sas", "n1", "s0007-1");
    let left = [("s0007-0", Passing), ("s0007-2", Passing)];
    watched.has("sas", "s0007", &left).await;
    let took = gone_at.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(watched.datacenter("sas").held, 0);
}

/// The only instance of the only service, which no share of anything protects.
#[tokio::test(start_paused = true)]
async fn one_instance_does_not_vanish_because_the_history_begins_anew() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n0", checked("web", "web", 80));
    // The history has to be longer than the next one.
    for port in 81..90 {
        consul.register("sas", "n0", checked("web", "web", port));
    }
    let mut watched = Watched::start(&consul, options()).await;
    watched.pass(20).await;
    consul.forget("sas");
    watched
        .when("it is noticed", |state| state.datacenters[0].held == 1)
        .await;
    assert_eq!(watched.instances("sas"), 1);
    consul.register("sas", "n0", checked("web", "web", 80));
    watched
        .when("nothing is held", |state| state.datacenters[0].held == 0)
        .await;
    watched.pass(60).await;
    assert_eq!(watched.instances("sas"), 1);
    // A loss without any doubt applies at once.
    let gone_at = tokio::time::Instant::now();
    consul.deregister("sas", "n0", "web");
    watched.has("sas", "web", &[]).await;
    let took = gone_at.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// Reads of a distant datacenter are so slow that one is always pending.
#[tokio::test(start_paused = true)]
async fn one_where_something_always_changes_is_complete_all_the_same() {
    let consul = consul_with(500);
    consul.fail("", Fault::Slow(Duration::from_millis(250)));
    let flipping = consul.clone();
    let flips = tokio::spawn(async move {
        for nth in 0_usize.. {
            let status = [Critical, Passing][nth / 500 % 2];
            let check = format!("s{:04}-0", nth % 500);
            flipping.set_check("sas", &check, status);
            // More than can be read in that time.
            sleep(Duration::from_millis(5)).await;
        }
    });
    let mut watched = Watched::begin(&consul, WatchOptions::default());
    let complete = watched.when("complete", |state| {
        state.datacenters.first().is_some_and(|dc| dc.is_complete)
    });
    tokio::time::timeout(Duration::from_secs(60), complete)
        .await
        .expect("it is complete although there are always news");
    assert_eq!(watched.instances("sas"), 1500);
    flips.abort();
}

/// Consul accepts these names. No time is lost on them, at the start or later.
#[tokio::test(start_paused = true)]
async fn services_that_no_url_can_name_are_reported_and_not_read() {
    let consul = FakeConsul::new("sas");
    for name in [".", "..", "web"] {
        consul.register("sas", "n1", checked(name, name, 80));
    }
    let started = tokio::time::Instant::now();
    let mut watched = Watched::start(&consul, WatchOptions::default()).await;
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
    let state = watched.datacenter("sas");
    let names: Vec<_> = state.unread.keys().map(|name| &**name).collect();
    assert_eq!(names, [".", ".."]);
    assert!(state.unread["."].contains("another one"));
    assert!(state.services.contains_key("web"));
    consul.deregister("sas", "n1", "..");
    consul.deregister("sas", "n1", ".");
    watched
        .when("forgotten", |state| state.datacenters[0].unread.is_empty())
        .await;
    let requests = consul.requests();
    let asked = requests
        .iter()
        .filter(|request| request.path.contains("%2E"));
    assert_eq!(asked.count(), 0);
}
