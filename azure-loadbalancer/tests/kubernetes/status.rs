//! Statuses follow what is reconciled.

use std::time::Duration;

use azure_loadbalancer::arm::{ArmClient, TowerTransport};
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions};
use azure_loadbalancer::execute::{FollowOptions, follow};
use azure_loadbalancer::sources::memory;
use azure_loadbalancer::{Config, Executor};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::server::{Server, error};
use crate::{event, list};

fn executor() -> Executor {
    let emulator = Emulator::new(EmulatorOptions::default());
    emulator.with(|machine| {
        machine.add_group("s", "rg", "westus");
        let network =
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet";
        machine
            .put(network, json!({ "location": "westus" }))
            .unwrap();
    });
    let config = Config {
        vnet_name: "vnet".to_owned(),
        ..Config::new("s", "rg", "westus")
    };
    let client = ArmClient::builder(TowerTransport::new(emulator))
        .build()
        .unwrap();
    Executor::new(client, config).unwrap()
}

fn balanced(name: &str, kind: &str, version: u32) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "shop", "resourceVersion": version.to_string() },
        "spec": { "type": kind, "ports": [{ "port": 80, "nodePort": 30080 }] },
    })
}

/// The patches that were sent: which service, and which addresses.
fn patches(server: &Server) -> Vec<(String, Vec<String>)> {
    let all = server.patches();
    let shown = all.into_iter().map(|(path, body)| {
        let body: Value = serde_json::from_slice(&body).unwrap();
        let ingress = body["status"]["loadBalancer"]["ingress"]
            .as_array()
            .unwrap()
            .clone();
        let addresses = ingress
            .iter()
            .map(|one| one["ip"].as_str().unwrap().to_owned());
        (path, addresses.collect())
    });
    shown.collect()
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_still_reached_keeps_its_status() {
    let server = Server::default();
    server.answer(200, &list(&[balanced("web", "LoadBalancer", 1)], 1, ""));
    let events = server.stream();
    let client = server.client();
    let following = tokio::spawn(async move {
        let (mut services, mut statuses) = (client.services(), client.status_writer());
        let (_, mut nodes) = memory(Vec::new());
        let pace = FollowOptions::default();
        follow(&executor(), &mut services, &mut nodes, &pace, &mut statuses).await;
    });
    let pass = |seconds| sleep(Duration::from_secs(seconds));
    pass(60).await;
    assert_eq!(patches(&server).len(), 1);
    let mut moved = balanced("web", "LoadBalancer", 2);
    moved["metadata"]["annotations"] = json!({
        "service.beta.kubernetes.io/azure-load-balancer-internal": "true",
        "service.beta.kubernetes.io/azure-load-balancer-internal-subnet": "nope",
    });
    events.send(&event("MODIFIED", &moved));
    pass(60).await;
    assert_eq!(patches(&server), []);
    following.abort();
}

#[tokio::test(start_paused = true)]
async fn where_services_are_reached_is_in_their_status() {
    let server = Server::default();
    let web = "/api/v1/namespaces/shop/services/web/status".to_owned();
    server.answer(
        200,
        &list(
            &[
                balanced("web", "LoadBalancer", 1),
                balanced("db", "ClusterIP", 2),
            ],
            2,
            "",
        ),
    );
    let events = server.stream();
    // The first attempt fails, so there is another one after a while.
    server.answer_patch(500, &error(500, "etcd"));
    let client = server.client();
    let following = tokio::spawn(async move {
        let (mut services, mut statuses) = (client.services(), client.status_writer());
        let (_, mut nodes) = memory(Vec::new());
        let mut pace = FollowOptions::default();
        pace.resync = Duration::from_secs(20);
        follow(&executor(), &mut services, &mut nodes, &pace, &mut statuses).await;
    });
    let pass = |seconds| sleep(Duration::from_secs(seconds));
    pass(60).await;
    let address = vec!["20.0.0.1".to_owned()];
    let (first, second) = ((web.clone(), address.clone()), (web.clone(), address));
    assert_eq!(patches(&server), [first, second]);

    // What has not changed is not written, and what was never reached is not either.
    pass(100).await;
    assert_eq!(patches(&server), []);
    events.send(&event("MODIFIED", &balanced("web", "ClusterIP", 3)));
    pass(60).await;
    assert_eq!(patches(&server), [(web, Vec::new())]);
    events.send(&event("DELETED", &balanced("web", "ClusterIP", 4)));
    pass(60).await;
    assert_eq!(patches(&server), []);
    following.abort();
}
