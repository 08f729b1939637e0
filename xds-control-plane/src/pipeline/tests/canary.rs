//! Canaries that come and go.

use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;

use super::*;

const CANARY: &str = "services: [{name: shop, provides: [{name: http}], branches: [{name: new, canary_percent: 20}]}]";

/// The share of the canary in what is served.
fn share(snapshots: &Snapshots) -> u32 {
    let snapshot = snapshots.borrow().clone().unwrap();
    let resource = snapshot.resources(ResourceType::Route).get("main").unwrap();
    let body = resource.body(Subscription::Aggregated).clone();
    let routes = RouteConfiguration::decode(body).unwrap();
    let host = routes
        .virtual_hosts
        .iter()
        .find(|host| host.name == "shop-http");
    let route = host.unwrap().routes.last().unwrap();
    let Some(Action::Route(action)) = &route.action else {
        panic!("{route:?}");
    };
    let Some(ClusterSpecifier::WeightedClusters(weighted)) = &action.cluster_specifier else {
        panic!("{action:?}");
    };
    let canary = weighted
        .clusters
        .iter()
        .find(|cluster| cluster.name == "shop-new-http");
    canary.map_or(0, |canary| canary.weight.unwrap().value)
}

/// The canary's share is removed first, and its endpoints later. Otherwise requests would fail that its
/// service could handle. Clients apply routes and endpoints one after the other, so both must not be in one
/// snapshot.
#[tokio::test(start_paused = true)]
async fn a_canary_that_loses_its_last_instance_loses_its_share_first() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "node", instance("shop-http", 80));
    consul.register("sas", "node", instance("shop-new-http", 81));
    let sources = consul_says(&consul, CANARY);
    let pipeline = Pipeline::start(sources, PipelineOptions::default());
    let mut snapshots = pipeline.snapshots();
    until(&mut snapshots, |snapshots| {
        snapshots.borrow().is_some() && share(snapshots) == 20
    })
    .await;

    consul.set_check("sas", "shop-new-http-81", HealthStatus::Critical);
    let mut without_share = None;
    while ports_of(&snapshots, "shop-new-http") == [81] {
        snapshots.changed().await.unwrap();
        if share(&snapshots) == 0 {
            without_share.get_or_insert_with(Instant::now);
        }
    }
    let stayed = without_share.expect("the share goes first").elapsed();
    assert!(stayed >= Duration::from_secs(1), "{stayed:?}");
    assert!(ports_of(&snapshots, "shop-new-http").is_empty());

    // And back: it has an endpoint before it has a share. Meanwhile others of its service may move.
    consul.set_check("sas", "shop-new-http-81", HealthStatus::Passing);
    while share(&snapshots) == 0 {
        snapshots.changed().await.unwrap();
        assert!(share(&snapshots) == 0 || ports_of(&snapshots, "shop-new-http") == [81]);
    }
    consul.set_check("sas", "shop-new-http-81", HealthStatus::Critical);
    until(&mut snapshots, |snapshots| share(snapshots) == 0).await;
    consul.register("sas", "node", instance("shop-http", 82));
    until(&mut snapshots, |snapshots| {
        ports_of(snapshots, "shop-http") == [80, 82]
    })
    .await;
    assert_eq!(ports_of(&snapshots, "shop-new-http"), [81]);
    // One that is there again in time has never been away.
    consul.set_check("sas", "shop-new-http-81", HealthStatus::Passing);
    until(&mut snapshots, |snapshots| share(snapshots) == 20).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(ports_of(&snapshots, "shop-new-http"), [81]);
}

/// A service that loses its last instance has no one to take over its share.
#[tokio::test(start_paused = true)]
async fn a_service_that_loses_its_last_instance_loses_it_at_once() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "node", instance("shop-http", 80));
    consul.register("sas", "node", instance("shop-new-http", 81));
    let sources = consul_says(&consul, CANARY);
    let (_pipeline, mut snapshots) = served_of(sources, PipelineOptions::default()).await;
    let gone_at = Instant::now();
    consul.set_check("sas", "shop-http-80", HealthStatus::Critical);
    until(&mut snapshots, |snapshots| {
        ports_of(snapshots, "shop-http").is_empty()
    })
    .await;
    assert!(gone_at.elapsed() < Duration::from_secs(1));
}

/// The second one lingers too: clients do not know yet that its share is removed.
#[tokio::test(start_paused = true)]
async fn a_canary_that_loses_its_last_instance_while_another_one_lingers_keeps_it_as_long() {
    let consul = FakeConsul::new("sas");
    for (service, port) in [
        ("shop-http", 80),
        ("shop-new-http", 81),
        ("cart-http", 82),
        ("cart-new-http", 83),
    ] {
        consul.register("sas", "node", instance(service, port));
    }
    let both = CANARY.replace(
        "services: [",
        "services: [{name: cart, provides: [{name: http}], branches: [{name: new, canary_percent: 20}]}, ",
    );
    let sources = consul_says(&consul, &both);
    let (_pipeline, mut snapshots) = served_of(sources, PipelineOptions::default()).await;
    sleep(Duration::from_secs(5)).await;

    consul.set_check("sas", "cart-new-http-83", HealthStatus::Critical);
    sleep(Duration::from_millis(1700)).await;
    assert_eq!(ports_of(&snapshots, "cart-new-http"), [83]);
    consul.set_check("sas", "shop-new-http-81", HealthStatus::Critical);
    until(&mut snapshots, |snapshots| share(snapshots) == 0).await;
    let without_share = Instant::now();
    until(&mut snapshots, |snapshots| {
        ports_of(snapshots, "shop-new-http").is_empty()
    })
    .await;
    assert!(
        without_share.elapsed() >= Duration::from_secs(1),
        "{:?}",
        without_share.elapsed()
    );
}
