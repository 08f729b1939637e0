//! Statuses that follow reconciliations.

use std::time::Duration;

use azure_loadbalancer::arm::{ArmClient, TowerTransport};
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, Fault, FaultAction};
use azure_loadbalancer::execute::{FollowOptions, follow};
use azure_loadbalancer::sources::memory;
use azure_loadbalancer::{Config, Executor};
use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::kubernetes::server::{Server, error};
use crate::kubernetes::{event, list};

fn executor() -> Executor {
    executor_of(&Emulator::new(EmulatorOptions::default()))
}

/// Creates an executor that writes to this Azure.
fn executor_of(emulator: &Emulator) -> Executor {
    emulator.with(|machine| {
        machine.add_group("s", "rg", "westus");
        let network =
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet";
        machine
            .put(network, json!({ "location": "westus" }))
            .unwrap();
        let group =
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/networkSecurityGroups/nsg";
        machine
            .put(group, json!({ "location": "westus" }))
            .unwrap();
    });
    let config = Config {
        vnet_name: "vnet".to_owned(),
        security_group_name: Some("nsg".to_owned()),
        ..Config::new("s", "rg", "westus")
    };
    let client = ArmClient::builder(TowerTransport::new(emulator.clone()))
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

/// Returns the sent patches: service and addresses.
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

/// A request that cannot be met becomes one event of the service, and causes no retry.
#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_an_event() {
    let server = Server::default();
    let mut wrong = balanced("web", "LoadBalancer", 1);
    wrong["metadata"]["annotations"] =
        json!({ "service.beta.kubernetes.io/azure-load-balancer-internal": "True" });
    server.answer(200, &list(&[wrong], 1, ""));
    let events = server.stream();
    server.answer_patch(403, &error(403, "not yours"));
    let client = server.client();
    let following = tokio::spawn(async move {
        let mut statuses = client.status_writer().with_events();
        let mut services = client.services();
        let (_, mut nodes) = memory(Vec::new());
        let mut pace = FollowOptions::default();
        pace.resync = Duration::from_secs(20);
        follow(&executor(), &mut services, &mut nodes, &pace, &mut statuses).await;
    });
    let written = || {
        let all = server.patches().into_iter();
        let events = all.filter(|(path, _)| path == "/api/v1/namespaces/shop/events");
        let reasons = events.map(|(_, body)| {
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["involvedObject"]["name"], "web");
            body["reason"].as_str().unwrap().to_owned()
        });
        reasons.collect::<Vec<_>>()
    };
    sleep(Duration::from_secs(100)).await;
    assert_eq!(written(), ["SyncLoadBalancerFailed"]);
    events.send(&event("MODIFIED", &balanced("web", "LoadBalancer", 2)));
    sleep(Duration::from_secs(100)).await;
    assert_eq!(written(), ["EnsuredLoadBalancer"]);
    following.abort();
}

/// Returns the sent patches of finalizers: true if one is added.
fn finalizers(server: &Server) -> Vec<bool> {
    let all = server.patches().into_iter();
    let of_services = all.filter(|(path, _)| path == "/api/v1/namespaces/shop/services/web");
    let patches = of_services.map(|(_, body)| {
        let body: Value = serde_json::from_slice(&body).unwrap();
        let metadata = body["metadata"].as_object().unwrap();
        let (field, names) = metadata.iter().next().unwrap();
        assert_eq!(*names, json!([FINALIZER]));
        match field.as_str() {
            "finalizers" => true,
            "$deleteFromPrimitiveList/finalizers" => false,
            other => panic!("{other}"),
        }
    });
    patches.collect()
}

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// The finalizer of a deleted service is removed when no resources are left, and not before.
#[tokio::test(start_paused = true)]
async fn a_finalizer_goes_when_nothing_is_left() {
    for puts in [false, true] {
        let server = Server::default();
        server.answer(200, &list(&[balanced("web", "LoadBalancer", 1)], 1, ""));
        let events = server.stream();
        let client = server.client();
        let following = tokio::spawn(async move {
            let mut statuses = client.status_writer();
            if puts {
                statuses = statuses.with_finalizers();
            }
            let mut services = client.services();
            let (_, mut nodes) = memory(Vec::new());
            let mut pace = FollowOptions::default();
            pace.resync = Duration::from_secs(20);
            follow(&executor(), &mut services, &mut nodes, &pace, &mut statuses).await;
        });
        let pass = |seconds| sleep(Duration::from_secs(seconds));
        pass(10).await;
        assert_eq!(finalizers(&server), vec![true; usize::from(puts)]);
        let mut there = balanced("web", "LoadBalancer", 2);
        there["metadata"]["finalizers"] = json!(["of-others/x", FINALIZER]);
        events.send(&event("MODIFIED", &there));
        pass(60).await;
        assert_eq!(finalizers(&server), [false; 0]);
        // A mistake in a deleted service does not matter, and the patch is retried.
        server.answer_patch(403, &error(403, "not yours"));
        there["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        there["metadata"]["resourceVersion"] = json!("3");
        events.send(&event("MODIFIED", &there));
        pass(60).await;
        let sent = finalizers(&server);
        assert!(
            sent.len() >= 2 && sent.iter().all(|comes| !comes),
            "{sent:?}"
        );
        following.abort();
    }
}

/// A deleted service keeps its finalizer as long as the removal of one of its resources fails: without it the object
/// would be gone, and the resource would have no owner.
#[tokio::test(start_paused = true)]
async fn a_finalizer_stays_while_a_deletion_fails() {
    let kinds = [
        (Method::DELETE, "publicIPAddresses"),
        (Method::DELETE, "loadBalancers"),
        (Method::PUT, "networkSecurityGroups"),
    ];
    for (method, kind) in kinds {
        for status in [403, 409, 500] {
            let server = Server::default();
            let mut there = balanced("web", "LoadBalancer", 1);
            there["metadata"]["finalizers"] = json!([FINALIZER]);
            server.answer(200, &list(&[there.clone()], 1, ""));
            let events = server.stream();
            let client = server.client();
            let emulator = Emulator::new(EmulatorOptions::default());
            let executor = executor_of(&emulator);
            let following = tokio::spawn(async move {
                let (mut services, mut statuses) = (client.services(), client.status_writer());
                let (_, mut nodes) = memory(Vec::new());
                let pace = FollowOptions::default();
                follow(&executor, &mut services, &mut nodes, &pace, &mut statuses).await;
            });
            let pass = |seconds| sleep(Duration::from_secs(seconds));
            let left = || {
                let all = emulator.with(|machine| machine.resources());
                let is_of_service = |one: &&Value| {
                    let id = one["id"].as_str().unwrap();
                    !id.contains("virtualNetworks") && !id.contains("networkSecurityGroups")
                };
                let rules = all.iter().map(|one| &one["properties"]["securityRules"]);
                let rules = rules.filter_map(Value::as_array).map(Vec::len);
                all.iter().filter(is_of_service).count() + rules.sum::<usize>()
            };
            pass(60).await;
            assert!(left() >= 3, "{}", left());
            let fault = Fault::new(FaultAction::Answer {
                status,
                code: "NotNow".to_owned(),
                retry_after: None,
            });
            let fault = fault.method(&method).path(kind).times(1_000_000);
            emulator.with(|machine| machine.inject(fault));
            there["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            there["metadata"]["resourceVersion"] = json!("2");
            events.send(&event("MODIFIED", &there));
            pass(3_600).await;
            assert!(left() > 0, "{method} {kind} {status}");
            let sent = finalizers(&server);
            assert_eq!(sent, [false; 0], "{method} {kind} {status}");
            emulator.with(|machine| machine.clear_faults());
            pass(600).await;
            assert_eq!(left(), 0, "{method} {kind} {status}");
            let sent = finalizers(&server);
            assert!(!sent.is_empty(), "{method} {kind} {status}");
            assert!(sent.iter().all(|comes| !comes), "{sent:?}");
            following.abort();
        }
    }
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

    // Unchanged statuses are not written, and neither are those of services that were never reachable.
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

/// Returns a service with a status.
fn published(name: &str, kind: &str, version: u32, ingress: &Value) -> Value {
    let mut service = balanced(name, kind, version);
    service["status"] = json!({ "loadBalancer": ingress });
    service
}

#[tokio::test(start_paused = true)]
async fn what_a_status_says_is_looked_at() {
    let server = Server::default();
    let reached = json!({ "ingress": [{ "ip": "20.0.0.1", "ipMode": "VIP" }] });
    let stale = json!({ "ingress": [{ "ip": "20.0.0.9" }] });
    let services = [
        published("db", "ClusterIP", 1, &json!({})),
        // It has stopped requesting a load balancer while no program was running.
        published("old", "ClusterIP", 2, &stale),
        published("web", "LoadBalancer", 3, &reached),
    ];
    server.answer(200, &list(&services, 3, ""));
    let events = server.stream();
    let client = server.client();
    let following = tokio::spawn(async move {
        let (mut services, mut statuses) = (client.services(), client.status_writer());
        let (_, mut nodes) = memory(Vec::new());
        let pace = FollowOptions::default();
        follow(&executor(), &mut services, &mut nodes, &pace, &mut statuses).await;
    });
    let pass = |seconds| sleep(Duration::from_secs(seconds));
    let of = |name: &str| format!("/api/v1/namespaces/shop/services/{name}/status");
    let address = vec!["20.0.0.1".to_owned()];
    pass(60).await;
    // A correct status is not written.
    assert_eq!(patches(&server), [(of("old"), Vec::new())]);
    events.send(&event(
        "MODIFIED",
        &published("old", "ClusterIP", 4, &json!({})),
    ));
    // Another program empties one: it is written again.
    events.send(&event(
        "MODIFIED",
        &published("web", "LoadBalancer", 5, &json!({})),
    ));
    pass(30).await;
    assert_eq!(patches(&server), [(of("web"), address.clone())]);
    // The next changes are not answered as fast as they come.
    for version in 6..26 {
        let status = if version % 2 == 0 { &reached } else { &stale };
        let told = published("web", "LoadBalancer", version, status);
        events.send(&event("MODIFIED", &told));
        pass(2).await;
    }
    pass(100).await;
    let written = patches(&server);
    assert!((1..=3).contains(&written.len()), "{written:?}");
    assert_eq!(written[0], (of("web"), address));
    following.abort();
}
