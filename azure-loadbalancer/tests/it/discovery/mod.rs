//! The rules of a load balancer as services, read from the emulator.

use std::collections::BTreeMap;

use azure_loadbalancer::arm::token::ClientCredentials;
use azure_loadbalancer::arm::{ArmClient, Precondition, TowerTransport};
use azure_loadbalancer::discovery::LoadBalancerDiscoverer;
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, Fault, FaultAction};
use azure_loadbalancer::resources::ArmId;
use discovery_core::{DiscoverErrorKind, DiscoveredService, Discoverer, ServiceContent};
use serde_json::{Value, json};

use crate::arm::script::{Script, answer};

fn id(kind: &str, name: &str) -> ArmId {
    ArmId::network("s", "rg", kind, name)
}

fn client() -> ArmClient {
    let emulator = Emulator::new(EmulatorOptions::default());
    emulator.with(|machine| machine.add_group("s", "rg", "westus"));
    ArmClient::builder(TowerTransport::new(emulator))
        .build()
        .expect("a client")
}

async fn put(client: &ArmClient, id: &ArmId, body: Value) {
    let written: Result<Value, _> = client.put(id, &body, Precondition::IsNew).await;
    written.unwrap_or_else(|error| panic!("{id}: {error}"));
}

/// A load balancer with three rules over a pool of addresses and one of network interfaces.
async fn set_up(client: &ArmClient) -> ArmId {
    let balancer = id("loadBalancers", "lb");
    let network = id("virtualNetworks", "vnet");
    let subnet = network.child("subnets", "subnet");
    put(
        client,
        &network,
        json!({"location": "westus", "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"name": "subnet", "properties": {"addressPrefix": "10.0.0.0/24"}}]
        }}),
    )
    .await;
    let front = balancer.child("frontendIPConfigurations", "front");
    let pool = |name: &str| json!({"id": balancer.child("backendAddressPools", name)});
    let rule = |name: &str, protocol: &str, pool: Value, ports: (u16, u16), floating: bool| {
        json!({"name": name, "properties": {"frontendIPConfiguration": {"id": front}, "backendAddressPool": pool,
            "protocol": protocol, "frontendPort": ports.0, "backendPort": ports.1, "enableFloatingIP": floating}})
    };
    put(client, &balancer, json!({
        "location": "westus", "sku": {"name": "Standard"},
        "tags": {"proxy.enable": "true", "web:proxy.enable": "false", "api:proxy.routes.r.hosts": "api.example"},
        "properties": {
            "frontendIPConfigurations": [{"name": "front", "properties": {"subnet": {"id": subnet}}}],
            "backendAddressPools": [
                {"name": "byAddress", "properties": {"loadBalancerBackendAddresses": [
                    {"name": "a", "properties": {"ipAddress": "10.0.0.11"}},
                    {"name": "b", "properties": {"ipAddress": "10.0.0.12"}}
                ], "virtualNetwork": {"id": network}}},
                {"name": "byInterface"}
            ],
            "loadBalancingRules": [
                rule("web", "Tcp", pool("byAddress"), (80, 8080), false),
                rule("api", "Tcp", pool("byInterface"), (81, 8081), false),
                rule("direct", "Tcp", pool("byAddress"), (82, 82), true),
                rule("dns", "Udp", pool("byAddress"), (53, 5353), false)
            ]
        }
    })).await;
    put(client, &id("networkInterfaces", "nic"), json!({"location": "westus", "properties": {"ipConfigurations": [
        {"name": "ip", "properties": {"subnet": {"id": subnet}, "privateIPAllocationMethod": "Static", "privateIPAddress": "10.0.0.21",
            "loadBalancerBackendAddressPools": [pool("byInterface")]}}
    ]}})).await;
    balancer
}

fn addresses(service: &DiscoveredService) -> Vec<&str> {
    let ServiceContent::Labelled(labelled) = &service.content else {
        return Vec::new();
    };
    labelled
        .destinations
        .values()
        .map(|destination| destination.address.as_str())
        .collect()
}

#[tokio::test]
async fn each_rule_is_a_service_with_the_members_of_its_pool() {
    let client = client();
    let balancer = set_up(&client).await;
    let before = client.counts().reads;
    let found = LoadBalancerDiscoverer::new(client.clone(), balancer)
        .discover()
        .await
        .expect("it is read");
    assert_eq!(client.counts().reads - before, 2);
    let services: BTreeMap<&str, &DiscoveredService> = found
        .services
        .iter()
        .map(|service| (&*service.name, service))
        .collect();
    assert_eq!(
        services.keys().copied().collect::<Vec<_>>(),
        ["api", "direct", "web"]
    );
    assert_eq!(
        addresses(services["web"]),
        ["http://10.0.0.11:8080", "http://10.0.0.12:8080"]
    );
    assert_eq!(addresses(services["api"]), ["http://10.0.0.21:8081"]);
    assert_eq!(services["direct"].content, ServiceContent::NotEnabled);
    assert_eq!(services["direct"].problems.len(), 1);
    let labels = |name: &str| match &services[name].content {
        ServiceContent::Labelled(labelled) => labelled.labels.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        labels("web").get("proxy.enable").map(String::as_str),
        Some("false")
    );
    assert_eq!(
        labels("api").get("proxy.enable").map(String::as_str),
        Some("true")
    );
    assert_eq!(
        labels("api")
            .get("proxy.routes.r.hosts")
            .map(String::as_str),
        Some("api.example")
    );
    assert_eq!((labels("web").len(), labels("api").len()), (1, 2));
}

/// Rejected credentials are told as that, with the status.
#[tokio::test]
async fn a_rejected_identity_is_no_missing_answer() {
    for (status, kind) in [
        (401, DiscoverErrorKind::Rejected),
        (403, DiscoverErrorKind::Rejected),
        (400, DiscoverErrorKind::Permanent),
    ] {
        let emulator = Emulator::new(EmulatorOptions::default());
        let answer = FaultAction::Answer {
            status,
            code: "No".to_owned(),
            retry_after: None,
        };
        // A rejected token is replaced once.
        emulator.with(|machine| machine.inject(Fault::new(answer).times(9)));
        let client = ArmClient::builder(TowerTransport::new(emulator));
        let client = client.build().expect("a client");
        let found = LoadBalancerDiscoverer::new(client, id("loadBalancers", "lb"));
        let error = found.discover().await.expect_err("it is rejected");
        assert_eq!(error.kind(), kind, "{status}");
        let chain = error.chain();
        assert!(chain.contains(&status.to_string()), "{chain}");
    }
}

/// An authority that rejects the secret is told as that, and one that is unreachable or has no such thing is not.
#[tokio::test(start_paused = true)]
async fn a_secret_that_the_authority_rejects_is_no_missing_answer() {
    let says = |code: &str| format!(r#"{{"error":"{code}","error_description":"AADSTS7000215"}}"#);
    for (status, body, kind) in [
        (400, says("invalid_client"), DiscoverErrorKind::Rejected),
        (
            400,
            says("unauthorized_client"),
            DiscoverErrorKind::Rejected,
        ),
        (400, says("invalid_grant"), DiscoverErrorKind::Rejected),
        (401, says("invalid_client"), DiscoverErrorKind::Rejected),
        (403, String::new(), DiscoverErrorKind::Rejected),
        (400, says("invalid_scope"), DiscoverErrorKind::Permanent),
        (404, String::new(), DiscoverErrorKind::Permanent),
        (
            503,
            says("temporarily_unavailable"),
            DiscoverErrorKind::Transient,
        ),
        (0, String::new(), DiscoverErrorKind::Transient),
    ] {
        let told = || (status > 0).then(|| answer(status, &[], &body)).flatten();
        let authority = Script::new((0..20).map(|_| told()).collect());
        let secret =
            ClientCredentials::with_secret(TowerTransport::new(authority), "t", "app", "s");
        let client = ArmClient::builder(TowerTransport::new(Emulator::new(
            EmulatorOptions::default(),
        )))
        .tokens(secret.authority("http://localhost:1"))
        .build()
        .expect("a client");
        let found = LoadBalancerDiscoverer::new(client, id("loadBalancers", "lb"));
        // Also within the second in which the failure is shared.
        for _ in 0..2 {
            let error = found.discover().await.expect_err("there is no token");
            assert_eq!(error.kind(), kind, "{status} {body}: {}", error.chain());
        }
    }
}

#[tokio::test]
async fn a_load_balancer_that_is_missing_is_an_error_and_not_nothing() {
    let missing = LoadBalancerDiscoverer::new(client(), id("loadBalancers", "lb")).with_https();
    let error = missing.discover().await.expect_err("it is not there");
    assert_eq!(error.kind(), DiscoverErrorKind::Permanent);
}
