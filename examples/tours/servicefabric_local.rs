//! cargo run --package tours --example servicefabric_local
//!
//! Service Fabric without a cluster, step by step: a local cluster from a short description, a
//! proxy that discovers its services over the REST API, a scale-out, a crash, and an invalid label.

use std::sync::Arc;
use std::time::Duration;

use discovery_core::{Merge, MergedState};
use discovery_servicefabric::client::Client;
use discovery_servicefabric::labels::LabelOptions;
use discovery_servicefabric::{ServiceFabric, ServiceFabricOptions};
use examples::{Failure, get, wait_unless_once};
use proxy_runtime::Proxy;
use proxy_runtime::server::{Listener, Server};
use servicefabric_emulator::cluster::{FabricName, PropertyValue, ServiceUpdate};
use servicefabric_emulator::gateway::{Emulator, Responder};
use servicefabric_emulator::health::{EntityKey, HealthQuery, HealthState};
use servicefabric_emulator::hosting::PackageKey;
use servicefabric_emulator::topology::Topology;
use tokio::sync::watch;

/// A cluster of five nodes. The labels are those of a service manifest.
const CLUSTER: &str = r#"
    [cluster]
    health_report_interval = 0

    [hosting]
    ActivationRetryBackoffInterval = "1s"

    [[application_types]]
    name = "ShopType"

    [application_types.service_types.WebType.labels]
    YARP.Enable = true
    YARP.EnableDynamicOverrides = true
    YARP.Routes.web.Path = "/shop/{**rest}"
    YARP.Backend.LoadBalancingPolicy = "RoundRobin"

    [applications.Shop]
    type = "ShopType"
    services.Web = { type = "WebType", instances = 2 }
"#;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let web = FabricName::parse("fabric:/Shop/Web")?;

    println!("1. a local cluster, with a small HTTP server in each replica");
    let emulator = Emulator::builder(Topology::from_toml(CLUSTER)?)
        .listen("127.0.0.1:0")
        .workload(Responder::default())
        .start()
        .await?;
    println!("   its REST gateway is {}", emulator.endpoint());

    println!("2. a source that asks that gateway");
    let options = ServiceFabricOptions::default()
        .with_discovery_period(Duration::from_millis(200))
        .with_always_send_immediate_health_reports(true)
        .with_labels(LabelOptions::default().with_insecure_http(true));
    let client = Client::builder(emulator.endpoint()).build()?;
    let discoverer = ServiceFabric::new(client).options(options).discoverer();
    let merged = Merge::new().provider(discoverer.runner().start()).start();
    let mut state = merged.subscribe();
    destinations(&mut state, 2).await?;
    for decision in discoverer.decisions().decisions {
        println!(
            "   {}: {:?} {:?}",
            decision.name, decision.verdict, decision.reasons
        );
    }

    println!("3. a proxy that follows it");
    let (proxy, driver) = Proxy::builder().snapshots(merged.snapshots()).build()?;
    tokio::spawn(driver);
    let server = Server::for_proxy(&proxy)
        .with_listener(Listener::http("127.0.0.1:0".parse()?))
        .bind()?;
    let address = server.local_addrs()[0];
    let running = server.start()?;
    println!("   curl http://{address}/shop/cart");
    let mut generations = proxy.generations();
    generations
        .wait_for(|_| !proxy.snapshot().routes().is_empty())
        .await?;
    assert_eq!(get(address, "/shop/cart").await?.status, 200);

    println!("4. scale-out: the service gets a third instance");
    let update = ServiceUpdate {
        instance_count: Some(3),
        ..ServiceUpdate::default()
    };
    emulator.with_cluster(|cluster| cluster.update_service(&web, update))?;
    destinations(&mut state, 3).await?;

    println!("5. crash: the process on the first node exits; it is started again after a back-off");
    let process = PackageKey::shared("fabric:/Shop", "WebPkg").process("Code");
    let node = emulator.with_cluster(|cluster| {
        let node = cluster
            .nodes(
                servicefabric_emulator::cluster::NodeStatusFilter::default(),
                &Default::default(),
            )
            .items
            .into_iter()
            .map(|node| Arc::clone(&node.name))
            .find(|node| cluster.replicas_on(node).next().is_some())?;
        cluster.crash_code_package(&node, &process, 3).ok()?;
        Some(node)
    });
    println!("   it was on {}", node.as_deref().unwrap_or("no node"));
    destinations(&mut state, 2).await?;
    assert_eq!(get(address, "/shop/cart").await?.status, 200);
    destinations(&mut state, 3).await?;

    println!(
        "6. a bad label: the service keeps its last known good form, and the cluster gets a report"
    );
    let bad = PropertyValue::String("/shop/{oops".to_owned());
    emulator.with_cluster(|cluster| cluster.put_property(&web, "YARP.Routes.web.Path", bad, ""))?;
    let told = until(&mut state, |state| !state.problems.is_empty()).await?;
    for problem in &told.problems {
        println!("   {problem}");
    }
    assert_eq!(get(address, "/shop/cart").await?.status, 200);
    println!("   the cluster says: {}", reported(&emulator, &web).await);

    println!("7. the label is corrected");
    emulator.with_cluster(|cluster| cluster.delete_property(&web, "YARP.Routes.web.Path"))?;
    until(&mut state, |state| state.problems.is_empty()).await?;

    wait_unless_once().await?;
    running.shutdown(Duration::from_secs(5)).await;
    emulator.shutdown().await;
    Ok(())
}

/// Waits for the health report of the service. Returns its description.
async fn reported(emulator: &Emulator, service: &FabricName) -> String {
    let entity = EntityKey::Service(service.clone());
    loop {
        let health =
            emulator.with_cluster(|cluster| cluster.health(&entity, &HealthQuery::default()));
        let events = health.into_iter().flat_map(|health| health.events);
        let mut warnings = events.filter(|event| event.state() == HealthState::Warning);
        if let Some(warning) = warnings.next() {
            return warning.report.description;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the only cluster has `count` destinations.
async fn destinations(
    state: &mut watch::Receiver<Arc<MergedState>>,
    count: usize,
) -> Result<(), Failure> {
    let has = |state: &MergedState| {
        let mut clusters = state.snapshot.clusters().iter();
        clusters
            .next()
            .is_some_and(|c| c.destinations().len() == count)
    };
    until(state, has).await?;
    println!("   the service has {count} destinations");
    Ok(())
}

async fn until(
    state: &mut watch::Receiver<Arc<MergedState>>,
    wanted: impl Fn(&MergedState) -> bool,
) -> Result<Arc<MergedState>, Failure> {
    Ok(Arc::clone(&*state.wait_for(|state| wanted(state)).await?))
}
