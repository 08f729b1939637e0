//! The settings of all clusters.

use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::route::v3::route::Action;

use super::*;

const KEY: &str = "envoy/defaultSettings";

fn policies(snapshots: &Snapshots) -> Vec<i32> {
    let snapshot = snapshots.borrow().clone().unwrap();
    let clusters = snapshot.resources(ResourceType::Cluster).iter();
    let policy = |body: bytes::Bytes| Cluster::decode(body).unwrap().lb_policy;
    clusters
        .map(|cluster| policy(cluster.body(Subscription::Aggregated).clone()))
        .collect()
}

/// Every Envoy warms every cluster that has changed: never all at once.
#[tokio::test(start_paused = true)]
async fn new_settings_are_rolled_out_in_batches() {
    const SERVICES: usize = 100;
    let consul = FakeConsul::new("sas");
    let names = (0..SERVICES).map(|n| format!("{{name: s{n:03}, provides: [{{name: http}}]}}"));
    let names: Vec<_> = names.collect();
    let sources = consul_says(&consul, &format!("services: [{}]", names.join(", ")));
    let (_pipeline, mut snapshots) = served_of(sources, PipelineOptions::default()).await;
    let built_in = policies(&snapshots)[0];
    let renewed = |snapshots: &Snapshots| {
        let policies = policies(snapshots).into_iter();
        policies.filter(|policy| *policy != built_in).count()
    };
    consul.put("sas", KEY, br#"{"cds": {"lb_policy": "RING_HASH"}}"#);
    let mut before = 0;
    let mut begun = None;
    while before < SERVICES {
        snapshots.changed().await.unwrap();
        let now = renewed(&snapshots);
        assert!(now - before <= 20, "{} at once", now - before);
        before = now;
        begun.get_or_insert_with(Instant::now);
    }
    let took = begun.unwrap().elapsed();
    assert!(took >= Duration::from_secs(4), "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// Case K17: a key that is missing for a moment changes nothing, and one that stays missing means the
/// built-in settings.
#[tokio::test(start_paused = true)]
async fn that_the_settings_are_gone_is_believed_after_a_second_look() {
    let consul = FakeConsul::new("sas");
    let text = br#"{"cds": {"lb_policy": "RING_HASH"}}"#;
    consul.put("sas", KEY, text);
    consul.register(
        "sas",
        "node",
        instance("j", 80).with_tag("domain-j.example"),
    );
    let sources = Sources::new().with_consul(consul.client(), ConsulSourceOptions::default());
    let (_pipeline, mut snapshots) = served_of(sources, PipelineOptions::default()).await;
    let first = snapshots.borrow_and_update().clone();
    let client = consul.client();
    client.kv_delete(KEY).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    consul.put("sas", KEY, text);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(*snapshots.borrow(), first);

    client.kv_delete(KEY).await.unwrap();
    let gone_at = Instant::now();
    until(&mut snapshots, |snapshots| *snapshots.borrow() != first).await;
    assert!(gone_at.elapsed() >= Duration::from_secs(5));
}

/// Cases C04 and K17.
#[tokio::test(start_paused = true)]
async fn settings_that_cannot_be_used_leave_those_that_were_good() {
    let consul = FakeConsul::new("sas");
    let key = "envoy/defaultSettings";
    consul.put(
        "sas",
        key,
        br#"{"rds": {"route": {"upstream_timeout": "7s"}}}"#,
    );
    consul.register(
        "sas",
        "node",
        instance("j", 80).with_tag("domain-j.example"),
    );
    let sources = Sources::new().with_consul(consul.client(), ConsulSourceOptions::default());
    let (pipeline, mut snapshots) = served_of(sources, PipelineOptions::default()).await;
    let first = snapshots.borrow_and_update().clone();
    consul.put("sas", key, b"{");
    let mut status = pipeline.status();
    let wait = status.wait_for(|status| {
        status.sources.iter().any(|source| {
            source
                .problems
                .iter()
                .any(|p| p.contains("last known good"))
        })
    });
    timeout(Duration::from_secs(60), wait)
        .await
        .unwrap()
        .unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(*snapshots.borrow(), first);
}

/// Case K07: settings that a token may no longer read stay unchanged, and those that it never could read
/// are the built-in ones.
#[tokio::test(start_paused = true)]
async fn settings_that_may_not_be_read_are_those_that_were_good_or_the_built_in_ones() {
    let denied = || Fault::Status(403, "Permission denied");
    let consul = FakeConsul::new("sas");
    consul.put(
        "sas",
        "envoy/defaultSettings",
        br#"{"rds": {"route": {"upstream_timeout": "7s"}}}"#,
    );
    consul.register(
        "sas",
        "node",
        instance("j", 80).with_tag("domain-j.example"),
    );
    let sources = || Sources::new().with_consul(consul.client(), ConsulSourceOptions::default());
    let timeout_of = |snapshots: &Snapshots| {
        let snapshot = snapshots.borrow().clone().unwrap();
        let resource = snapshot.resources(ResourceType::Route).get("main").unwrap();
        let body = resource.body(Subscription::Aggregated).clone();
        let routes = RouteConfiguration::decode(body).unwrap();
        let route = &routes.virtual_hosts[0].routes[0];
        let Some(Action::Route(action)) = &route.action else {
            panic!("{route:?}");
        };
        action.timeout.unwrap().seconds
    };
    let pipeline = Pipeline::start(sources(), PipelineOptions::default());
    let mut snapshots = pipeline.snapshots();
    until(&mut snapshots, |snapshots| snapshots.borrow().is_some()).await;
    consul.fail("kv/", denied());
    consul.put("sas", "envoy/defaultSettings", b"{}");
    let mut status = pipeline.status();
    let told =
        status.wait_for(|status| status.sources.iter().any(|source| source.failure.is_some()));
    timeout(Duration::from_secs(600), told)
        .await
        .unwrap()
        .unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(timeout_of(&snapshots), 7);

    let second = Pipeline::start(sources(), PipelineOptions::default());
    let mut snapshots = second.snapshots();
    until(&mut snapshots, |snapshots| snapshots.borrow().is_some()).await;
    assert_eq!(timeout_of(&snapshots), 10);
}
