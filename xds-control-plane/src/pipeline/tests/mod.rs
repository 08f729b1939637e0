//! Tests of lanes and readiness in virtual time, with a scripted registry and Consul.

mod canary;
mod datacenters;
mod quarantine;
mod restart;
mod settings;
mod world;

use std::time::Duration;

use discovery_consul::client::HealthStatus;
use discovery_consul::testing::{FakeConsul, Fault};
use discovery_consul::watch::Datacenters;
use prost::Message;
use tokio::time::{Instant, sleep, timeout};
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;

use self::world::{
    Kept, Snapshots, consul_says, hosts, instance, ports_of, registry, served, served_of, until,
};
use super::*;
use crate::snapshot::{ResourceType, Subscription};
use crate::sources::{ConsulSourceOptions, Reading};

const SHOP: &str = "services: [{name: shop, provides: [{name: http}]}]";

#[tokio::test(start_paused = true)]
async fn nothing_is_served_before_every_source_was_read() {
    let (say, told) = registry();
    let (provide, provided) = watch::channel(Reading::default());
    let sources = Sources::new()
        .with_registry(told)
        .with_provided("other", provided);
    let pipeline = Pipeline::start(sources, PipelineOptions::default());
    let mut snapshots = pipeline.snapshots();
    say.send(SHOP.to_owned()).unwrap();
    assert!(
        timeout(Duration::from_secs(60), snapshots.changed())
            .await
            .is_err()
    );
    let ready: Vec<_> = pipeline
        .status()
        .borrow()
        .sources
        .iter()
        .map(|s| (s.name.to_string(), s.is_ready))
        .collect();
    assert_eq!(
        ready,
        [("registry".to_owned(), true), ("other".to_owned(), false)]
    );
    let other = crate::assemble::testing::service("other", "b");
    provide.send_modify(|reading| reading.value = Some(Arc::new(vec![Arc::new(other)])));
    until(&mut snapshots, |snapshots| {
        served(snapshots, ResourceType::Cluster) == ["b", "shop-http"]
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn configuration_waits_for_quiet_but_not_for_ever() {
    let (say, told) = registry();
    let pipeline = Pipeline::start(
        Sources::new().with_registry(told),
        PipelineOptions::default(),
    );
    let mut snapshots = pipeline.snapshots();
    say.send(SHOP.to_owned()).unwrap();
    until(&mut snapshots, |snapshots| {
        !served(snapshots, ResourceType::Cluster).is_empty()
    })
    .await;
    snapshots.borrow_and_update();

    // Every 60 ms another service: never quiet.
    let begun = Instant::now();
    let chatter = tokio::spawn(async move {
        for round in 0..40 {
            let names = (0..=round).map(|n| format!("{{name: s{n}, provides: [{{name: http}}]}}"));
            let names: Vec<_> = names.collect();
            say.send(format!(
                "services: [{{name: shop, provides: [{{name: http}}]}}, {}]",
                names.join(", ")
            ))
            .unwrap();
            sleep(Duration::from_millis(60)).await;
        }
    });
    let mut published = Vec::new();
    while served(&snapshots, ResourceType::Cluster).len() < 41 {
        snapshots.changed().await.unwrap();
        published.push(begun.elapsed());
    }
    chatter.await.unwrap();
    assert!(
        published[0] >= Duration::from_millis(100) && published[0] <= Duration::from_millis(1100),
        "{published:?}"
    );
    assert!(
        published.len() <= 4,
        "each change makes every Envoy warm: {published:?}"
    );
}

/// Case K01 and the fast lane: an instance that turns critical is removed at once, without other changes.
#[tokio::test(start_paused = true)]
async fn endpoints_overtake_configuration() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "node", instance("shop-http", 80));
    consul.register("sas", "node", instance("shop-http", 81));
    let (say, told) = registry();
    let sources = Sources::new()
        .with_registry(told)
        .with_consul(consul.client(), ConsulSourceOptions::default());
    let options = PipelineOptions {
        config_quiet: Duration::from_secs(20),
        config_max: Duration::from_secs(60),
        ..PipelineOptions::default()
    };
    let pipeline = Pipeline::start(sources, options);
    let mut snapshots = pipeline.snapshots();
    say.send(SHOP.to_owned()).unwrap();
    until(&mut snapshots, |snapshots| {
        snapshots.borrow().is_some() && ports_of(snapshots, "shop-http") == [80, 81]
    })
    .await;
    let before = snapshots.borrow().clone().unwrap();

    let flipped = Instant::now();
    consul.set_check("sas", "shop-http-81", HealthStatus::Critical);
    until(&mut snapshots, |snapshots| {
        ports_of(snapshots, "shop-http") == [80]
    })
    .await;
    let took = flipped.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    let after = snapshots.borrow().clone().unwrap();
    for kind in [
        ResourceType::Cluster,
        ResourceType::Route,
        ResourceType::Listener,
    ] {
        assert!(
            Arc::ptr_eq(before.resources(kind), after.resources(kind)),
            "{kind}"
        );
    }
}

/// Cases K16 and C15: a tag makes a host, and its removal takes it away.
#[tokio::test(start_paused = true)]
async fn a_tag_makes_a_host() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "node", instance("j", 80));
    let sources = Sources::new().with_consul(consul.client(), ConsulSourceOptions::default());
    let (_pipeline, mut snapshots) = served_of(sources, PipelineOptions::default()).await;
    assert_eq!(hosts(&snapshots), <[String; 0]>::default());
    let tagged = Instant::now();
    consul.register(
        "sas",
        "node",
        instance("j", 80).with_tag("domain-j.example"),
    );
    until(&mut snapshots, |snapshots| hosts(snapshots) == ["j"]).await;
    assert!(
        tagged.elapsed() < Duration::from_secs(1),
        "{:?}",
        tagged.elapsed()
    );
    consul.register("sas", "node", instance("j", 80));
    until(&mut snapshots, |snapshots| hosts(snapshots).is_empty()).await;
}

/// Requests move to other datacenters only after a successful empty result; an outage of the own datacenter
/// moves none.
#[tokio::test(start_paused = true)]
async fn an_outage_of_the_own_datacenter_moves_nobody() {
    let consul = FakeConsul::new("sas");
    consul.add_datacenter("vla");
    consul.register("sas", "near", instance("shop-http", 80));
    consul.register("vla", "far", instance("shop-http", 81));
    let (say, told) = registry();
    let mut options = ConsulSourceOptions::default();
    options.watch = options.watch.with_datacenters(Datacenters::All);
    let sources = Sources::new()
        .with_registry(told)
        .with_consul(consul.client(), options);
    let pipeline = Pipeline::start(sources, PipelineOptions::default());
    let mut snapshots = pipeline.snapshots();
    say.send(SHOP.to_owned()).unwrap();
    until(&mut snapshots, |snapshots| snapshots.borrow().is_some()).await;
    assert_eq!(ports_of(&snapshots, "shop-http"), [80, 81]);
    let before = snapshots.borrow_and_update().clone();

    consul.fail_in("sas", "", Fault::Status(500, "No cluster leader"));
    let mut status = pipeline.status();
    let told =
        status.wait_for(|status| status.sources.iter().any(|source| source.failure.is_some()));
    timeout(Duration::from_secs(600), told)
        .await
        .unwrap()
        .unwrap();
    sleep(Duration::from_secs(120)).await;
    assert_eq!(*snapshots.borrow(), before);

    consul.heal();
    consul.set_check("sas", "shop-http-80", HealthStatus::Critical);
    until(&mut snapshots, |snapshots| {
        ports_of(snapshots, "shop-http") == [81]
    })
    .await;
    let told =
        status.wait_for(|status| status.sources.iter().all(|source| source.failure.is_none()));
    timeout(Duration::from_secs(600), told)
        .await
        .unwrap()
        .unwrap();
}

/// Case K15: a flapping instance costs no more updates than the lane allows, and the last state is correct.
#[tokio::test(start_paused = true)]
async fn an_instance_that_flaps_does_not_flood() {
    let consul = FakeConsul::new("sas");
    consul.register(
        "sas",
        "node",
        instance("j", 80).with_tag("domain-j.example"),
    );
    consul.register("sas", "node", instance("j", 81));
    let sources = Sources::new().with_consul(consul.client(), ConsulSourceOptions::default());
    let (_pipeline, mut snapshots) = served_of(sources, PipelineOptions::default()).await;
    let before = snapshots.borrow_and_update().clone().unwrap();
    let flapping = async {
        for flip in 0..201 {
            let status = if flip % 2 == 0 {
                HealthStatus::Critical
            } else {
                HealthStatus::Passing
            };
            consul.set_check("sas", "j-81", status);
            sleep(Duration::from_millis(50)).await;
        }
    };
    let mut published = 0;
    let counting = async {
        loop {
            snapshots.changed().await.unwrap();
            published += 1;
        }
    };
    tokio::select! {
        () = flapping => {}
        () = counting => {}
    }
    assert!(published <= 202, "{published} for 201 flips");
    until(&mut snapshots, |snapshots| ports_of(snapshots, "j") == [80]).await;
    let after = snapshots.borrow().clone().unwrap();
    for kind in [
        ResourceType::Cluster,
        ResourceType::Route,
        ResourceType::Listener,
    ] {
        assert_eq!(before.resources(kind), after.resources(kind), "{kind}");
    }
}

/// Serves the configuration of any provider of a gateway: here a written one, in place of a Service Fabric
/// or Serf cluster.
#[tokio::test]
async fn configuration_of_the_family_is_served_too() {
    use discovery_core::StaticProvider;
    use proxy_model::json::read_reverse_proxy;

    let text = r#"{"ReverseProxy": {
        "Routes": {"shop": {"ClusterId": "shop", "Match": {"Hosts": ["shop.example"], "Path": "/{**rest}"}}},
        "Clusters": {"shop": {"Destinations": {"d1": {"Address": "http://10.0.0.1:8080/"}}}}
    }}"#;
    let provider = StaticProvider::new("file", read_reverse_proxy(text).unwrap());
    let provided = crate::bridge::provide(provider, crate::bridge::BridgeOptions::default());
    let sources = Sources::new().with_provided("gateway", provided);
    let pipeline = Pipeline::start(sources, PipelineOptions::default());
    let mut snapshots = pipeline.snapshots();
    until(&mut snapshots, |snapshots| {
        served(snapshots, ResourceType::Cluster) == ["shop"]
    })
    .await;
    assert_eq!(ports_of(&snapshots, "shop"), [8080]);
    assert_eq!(pipeline.status().borrow().quarantined, []);
}
