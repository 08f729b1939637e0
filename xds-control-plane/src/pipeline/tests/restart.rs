//! Tests of a restart while the sources are incomplete.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_was_served_last_is_served_after_a_restart_until_the_sources_are_there() {
    let kept = Kept::new();
    let (say, told) = registry();
    let first = Pipeline::start(Sources::new().with_registry(told), kept.options());
    let mut snapshots = first.snapshots();
    say.send(SHOP.to_owned()).unwrap();
    until(&mut snapshots, |snapshots| snapshots.borrow().is_some()).await;
    let served_first = snapshots.borrow().clone();
    kept.by(first).await;

    let (say, told) = registry();
    let second = Pipeline::start(Sources::new().with_registry(told), kept.options());
    let mut snapshots = second.snapshots();
    let begun = Instant::now();
    until(&mut snapshots, |snapshots| snapshots.borrow().is_some()).await;
    assert!(begun.elapsed() >= Duration::from_secs(10));
    assert_eq!(*snapshots.borrow(), served_first);
    assert!(*second.readiness().borrow(), "nobody knows better by now");
    let mut status = second.status();
    timeout(
        Duration::from_secs(60),
        status.wait_for(|status| status.is_kept),
    )
    .await
    .unwrap()
    .unwrap();
    say.send("services: [{name: other, provides: [{name: http}]}]".to_owned())
        .unwrap();
    until(&mut snapshots, |snapshots| {
        served(snapshots, ResourceType::Cluster) == ["other-http"]
    })
    .await;
    timeout(
        Duration::from_secs(60),
        status.wait_for(|status| !status.is_kept),
    )
    .await
    .unwrap()
    .unwrap();
}

/// The kept snapshot may be old: readable sources are waited for, and readiness is not reported before.
#[tokio::test(start_paused = true)]
async fn what_was_served_last_is_not_served_while_sources_are_being_read() {
    let kept = Kept::new();
    let consul = consul();
    let (first, _) = served_of(sources(&consul), kept.options()).await;
    assert!(*first.readiness().borrow());
    first.stop().await;
    assert!(kept.path().exists(), "it is kept when it stops");

    consul.deregister("sas", "near", "a-http-80");
    consul.register("sas", "near", instance("a-http", 90));
    consul.fail("", Fault::Slow(Duration::from_secs(2)));
    let begun = Instant::now();
    let (second, snapshots) = served_of(sources(&consul), kept.options()).await;
    assert_eq!(
        ports_of(&snapshots, "a-http"),
        [90],
        "{:?}",
        begun.elapsed()
    );
    assert!(begun.elapsed() >= Duration::from_secs(2));
    drop(second);

    // One that fails may do so for long.
    consul.fail("", Fault::Status(500, "No cluster leader"));
    let begun = Instant::now();
    let (third, snapshots) = served_of(sources(&consul), kept.options()).await;
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(ports_of(&snapshots, "a-http"), [80]);
    let mut ready = third.readiness();
    assert!(!*ready.borrow(), "another control plane may know better");
    let _ = timeout(Duration::from_secs(60), ready.wait_for(|ready| *ready))
        .await
        .unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(10));
}

/// A Consul with `a` and `b` in the own datacenter, and `b` in another one.
fn consul() -> FakeConsul {
    let consul = FakeConsul::new("sas");
    consul.add_datacenter("vla");
    consul.register("sas", "near", instance("a-http", 80));
    consul.register("sas", "near", instance("b-http", 81));
    consul.register("vla", "far", instance("b-http", 82));
    consul
}

const BOTH: &str =
    "services: [{name: a, provides: [{name: http}]}, {name: b, provides: [{name: http}]}]";

fn sources(consul: &FakeConsul) -> Sources {
    consul_says(consul, BOTH)
}

fn has_endpoints(snapshots: &Snapshots, cluster: &str) -> bool {
    served(snapshots, ResourceType::Endpoint)
        .iter()
        .any(|name| name == cluster)
}

/// A failed read is no proof that a service has no instance here.
#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_be_read_at_first_is_waited_for() {
    let consul = consul();
    consul.fail_in("sas", "health/service/b", Fault::Status(500, "boom"));
    let pipeline = Pipeline::start(sources(&consul), PipelineOptions::default());
    let mut snapshots = pipeline.snapshots();
    sleep(Duration::from_secs(8)).await;
    assert!(snapshots.borrow().is_none());
    let status = pipeline.status().borrow().clone();
    let consul_status = status.sources.iter().find(|s| &*s.name == "consul");
    let failure = consul_status.and_then(|status| status.failure.clone());
    assert!(failure.is_some_and(|why| why.contains("b-http") && why.contains("boom")));
    consul.heal();
    until(&mut snapshots, |snapshots| snapshots.borrow().is_some()).await;
    assert_eq!(ports_of(&snapshots, "b-http"), [81, 82]);
}

/// A service that stays unreadable does not delay the others, and is not sent with empty endpoints.
#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_be_read_for_long_keeps_the_endpoints_that_it_had() {
    let kept = Kept::new();
    let consul = consul();
    let tagged = |port| instance("j", port).with_tag("domain-j.example");
    consul.register("sas", "near", tagged(83));
    let first = Pipeline::start(sources(&consul), kept.options());
    kept.by(first).await;

    for name in ["b", "j"] {
        let path = format!("health/service/{name}");
        consul.fail_in("sas", &path, Fault::Status(500, "boom"));
    }
    consul.set_check("vla", "b-http-82", HealthStatus::Critical);
    consul.register("sas", "near", instance("a-http", 90));
    for (options, is_kept) in [(kept.options(), true), (PipelineOptions::default(), false)] {
        let pipeline = Pipeline::start(sources(&consul), options);
        let mut snapshots = pipeline.snapshots();
        until(&mut snapshots, |snapshots| {
            snapshots.borrow().is_some() && ports_of(snapshots, "a-http") == [80, 90]
        })
        .await;
        assert_eq!(
            served(&snapshots, ResourceType::Cluster),
            ["a-http", "b-http", "j"]
                .iter()
                .take(2 + usize::from(is_kept))
                .copied()
                .collect::<Vec<_>>()
        );
        assert_eq!(has_endpoints(&snapshots, "b-http"), is_kept);
        if is_kept {
            // The distant one is known to be dead.
            assert_eq!(ports_of(&snapshots, "b-http"), [81]);
            assert_eq!(ports_of(&snapshots, "j"), [83]);
            assert!(hosts(&snapshots).contains(&"j".to_owned()));
        }
        if !is_kept {
            consul.heal();
            until(&mut snapshots, |snapshots| {
                has_endpoints(snapshots, "b-http") && ports_of(snapshots, "b-http") == [81]
            })
            .await;
            until(&mut snapshots, |snapshots| has_endpoints(snapshots, "j")).await;
        }
    }
}

/// A registry that starts together with the control plane has nothing yet, and takes nothing away.
#[tokio::test(start_paused = true)]
async fn what_was_served_last_stays_until_the_registry_says_twice_that_it_is_gone() {
    let kept = Kept::new();
    let (say, told) = registry();
    let first = Pipeline::start(Sources::new().with_registry(told), kept.options());
    say.send(BOTH.to_owned()).unwrap();
    kept.by(first).await;

    let (say, told) = registry();
    say.send("services: []".to_owned()).unwrap();
    let second = Pipeline::start(Sources::new().with_registry(told), kept.options());
    let mut snapshots = second.snapshots();
    sleep(Duration::from_secs(3)).await;
    assert!(snapshots.borrow().is_none());
    say.send(BOTH.to_owned()).unwrap();
    until(&mut snapshots, |snapshots| snapshots.borrow().is_some()).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(
        served(&snapshots, ResourceType::Cluster),
        ["a-http", "b-http"]
    );
}
