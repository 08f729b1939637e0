//! Clusters of other kinds drive Envoys: the library serves any provider of a configuration.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use discovery_core::ConfigProvider;
use discovery_serf::{SerfDiscoverer, SerfOptions};
use discovery_servicefabric::client::Client;
use discovery_servicefabric::labels::LabelOptions;
use discovery_servicefabric::{ServiceFabric, ServiceFabricOptions};
use serde_json::Value;
use servicefabric_emulator::cluster::{FabricName, ServiceUpdate};
use servicefabric_emulator::gateway::{Emulator, Responder};
use servicefabric_emulator::topology::Topology;
use testkit::origin::{NamedOrigin, Origin};
use testkit::serf::{Serf, SerfAgent};
use testkit::time::eventually;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use xds_control_plane::bridge::{BridgeOptions, provide};
use xds_control_plane::pipeline::{Pipeline, PipelineOptions};
use xds_control_plane::server::{ServerOptions, XdsServer};
use xds_control_plane::sources::Sources;

use crate::fleet::programs::Envoy;
use crate::fleet::traffic::{get, until_answered};

/// A control plane in this process, which ends when this is dropped.
struct Served {
    address: SocketAddr,
    _pipeline: Pipeline,
    server: JoinHandle<()>,
}

impl Served {
    async fn start(name: &str, provider: impl ConfigProvider + 'static) -> Self {
        let provided = provide(provider, BridgeOptions::default());
        let sources = Sources::new().with_provided(name, provided);
        let pipeline = Pipeline::start(sources, PipelineOptions::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let server = XdsServer::new(pipeline.snapshots(), ServerOptions::default());
        let server = tokio::spawn(async move {
            let served = server.serve(listener, std::future::pending()).await;
            served.expect("it serves until it is ended");
        });
        Self {
            address,
            _pipeline: pipeline,
            server,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Returns the number of replicas that respond to enough requests to reach each. `None` if a request got 503.
async fn replicas(envoy: &Envoy) -> Option<usize> {
    let mut replicas = BTreeSet::new();
    for _ in 0..40 {
        let answer = get(envoy.address, "any.example", None).await;
        let said = match answer {
            Some((200, said)) => said,
            Some((503, _)) => return None,
            other => panic!("{other:?}"),
        };
        let said: Value = serde_json::from_str(&said).expect("it is JSON");
        assert_eq!(said["Service"], "fabric:/Shop/Web");
        replicas.insert(said["Replica"].to_string());
    }
    Some(replicas.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn envoy_follows_a_service_fabric_cluster() {
    const CLUSTER: &str = r#"
        [[application_types]]
        name = "ShopType"

        [application_types.service_types.WebType.labels]
        YARP.Enable = true
        YARP.Routes.web.Path = "/{**rest}"

        [applications.Shop]
        type = "ShopType"
        services.Web = { type = "WebType", instances = 2 }
    "#;
    let Some(envoy) = Envoy::find() else { return };
    let emulator = Emulator::builder(Topology::from_toml(CLUSTER).expect("it is a topology"))
        .listen("127.0.0.1:0")
        .workload(Responder::default())
        .start()
        .await
        .expect("it starts");
    let client = Client::builder(emulator.endpoint()).build();
    let options = ServiceFabricOptions::default()
        .with_discovery_period(Duration::from_millis(200))
        .with_fast_period(Duration::from_millis(100))
        .with_labels(LabelOptions::default().with_insecure_http(true));
    let fabric = ServiceFabric::new(client.expect("it is an address")).options(options);
    let plane = Served::start("servicefabric", fabric.runner().start()).await;
    let envoy = Envoy::start(&envoy, "envoy-1", [plane.address; 2]).await;
    eventually("both instances answer", async || {
        replicas(&envoy).await == Some(2)
    })
    .await;

    let set_instances = |count| {
        emulator.with_cluster(|cluster| {
            let update = ServiceUpdate {
                instance_count: Some(count),
                ..ServiceUpdate::default()
            };
            let web = FabricName::parse("fabric:/Shop/Web").expect("it is a name");
            cluster.update_service(&web, update)
        })
    };
    set_instances(1).expect("it may be so");
    // It is listed until it has ended, so requests before the next poll may fail.
    eventually("one instance is left", async || {
        replicas(&envoy).await == Some(1)
    })
    .await;
    set_instances(3).expect("it may be so");
    // Further joins are no reason to fail a request.
    eventually("three instances answer", async || {
        let answering = replicas(&envoy).await;
        answering.expect("every request is answered") == 3
    })
    .await;
    assert_eq!(
        envoy.stat("cluster_manager.cds.update_rejected").await,
        Some(0),
        "{}",
        envoy.output()
    );
    emulator.shutdown().await;
}

/// A member with a service that answers with the member's name.
async fn member(serf: &Serf, gateway: &SerfAgent, name: &str) -> (SerfAgent, NamedOrigin) {
    let agent = serf.agent(name).join(gateway).start().await;
    gateway.wait_for(name, "alive").await;
    let address = SocketAddr::new(agent.gossip_addr().ip(), 0);
    let origin = Origin::builder().bind(address).start_named(name);
    let port = origin.addr().port().to_string();
    for (key, value) in [
        ("route-path", "/{**rest}"),
        ("http-port", &port),
        ("service", "web"),
    ] {
        agent.set_tag(key, value).await;
    }
    (agent, origin)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn envoy_follows_a_serf_cluster() {
    let (Some(envoy), Some(serf)) = (Envoy::find(), Serf::find()) else {
        return;
    };
    let gateway = serf.agent("gateway").start().await;
    let (mut one, _one) = member(&serf, &gateway, "one").await;
    let options = SerfOptions::default().with_agents([gateway.rpc_addr().to_string()]);
    let provider = SerfDiscoverer::new(options).runner().start();
    let plane = Served::start("serf", provider).await;
    let envoy = Envoy::start(&envoy, "envoy-1", [plane.address; 2]).await;
    until_answered(envoy.address, "any.example", "one").await;

    // A member joins, and gets requests as well.
    let (_two, _origin) = member(&serf, &gateway, "two").await;
    until_answered(envoy.address, "any.example", "two").await;
    until_answered(envoy.address, "any.example", "one").await;

    // The first member leaves, but would still respond.
    one.leave().await;
    gateway.wait_for("one", "left").await;
    eventually("only the second one is asked", async || {
        for _ in 0..30 {
            let answer = get(envoy.address, "any.example", None).await;
            assert_eq!(answer.as_ref().map(|(status, _)| *status), Some(200));
            if answer != Some((200, "two".to_owned())) {
                return false;
            }
        }
        true
    })
    .await;
    assert_eq!(
        envoy.stat("cluster_manager.cds.update_rejected").await,
        Some(0),
        "{}",
        envoy.output()
    );
}
