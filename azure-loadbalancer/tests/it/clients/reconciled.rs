//! The resources that the reconciler has written, read by other clients.

use std::net::IpAddr;

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::arm::{ArmClient, TowerTransport};
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, EmulatorServer};
use azure_loadbalancer::service::ServicePort;
use azure_loadbalancer::{Config, Executor, Node, Service};
use serde_json::{Value, json};
use testkit::peers;

use super::{LIMIT, checked, run_with};

/// Starts a server in which the reconciler has made two services reachable. Returns its report about them.
async fn reconciled() -> (EmulatorServer, Value) {
    let emulator = Emulator::new(EmulatorOptions::default().id_casing_seed(7));
    emulator.with(|machine| {
        machine.add_group("s", "rg", "westus");
        let network = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
        let subnet = json!({ "name": "subnet", "properties": { "addressPrefix": "10.0.0.0/16" } });
        let vnet = json!({ "location": "westus", "properties": { "subnets": [subnet] } });
        let made = machine.put(&format!("{network}/virtualNetworks/vnet"), vnet);
        made.expect("a network");
        let group = json!({ "location": "westus" });
        let made = machine.put(&format!("{network}/networkSecurityGroups/nsg"), group);
        made.expect("a security group");
    });
    let client = ArmClient::builder(TowerTransport::new(emulator.clone())).build();
    let config = Config {
        cluster_name: "front".to_owned(),
        vnet_name: "vnet".to_owned(),
        subnet_name: "subnet".to_owned(),
        security_group_name: Some("nsg".to_owned()),
        ..Config::new("s", "rg", "westus")
    };
    let executor = Executor::new(client.expect("a client"), config).expect("it can be used");
    let mut web = Service::new("shop", "web");
    web.ports = vec![ServicePort::tcp(80, 30_080)];
    web.client_affinity = true;
    web.source_ranges = vec!["192.0.2.0/24".to_owned()];
    for (key, value) in [(keys::DNS_LABEL, "web"), (keys::TCP_IDLE_TIMEOUT, "10")] {
        web.annotations.insert(key.to_owned(), value.to_owned());
    }
    let mut db = Service::new("shop", "db");
    db.ports = vec![ServicePort::tcp(5_432, 30_432)];
    let is_internal = (keys::INTERNAL.to_owned(), "true".to_owned());
    db.annotations.extend([is_internal]);
    let addresses = ["10.0.9.1", "10.0.9.2"];
    let nodes: Vec<Node> = addresses
        .iter()
        .map(|address| {
            Node::new(
                format!("n-{address}"),
                address.parse::<IpAddr>().expect("an address"),
            )
        })
        .collect();
    let services = [web, db];
    let report = executor
        .reconcile(&services, &nodes)
        .await
        .expect("it is read");
    assert!(
        report.is_converged() && report.errors().is_empty(),
        "{report:#?}"
    );
    let reached = |service: &Service| report.services[&service.key].ingress[0].ip.to_string();
    let told =
        json!({ "web": reached(&services[0]), "db": reached(&services[1]), "nodes": addresses });
    let server = EmulatorServer::start("127.0.0.1:0", emulator).await;
    (server.expect("nothing is in the way"), told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_library_for_python_reads_what_the_reconciler_has_written() {
    let (server, told) = reconciled().await;
    let script = "reconciled_checks.py";
    if let Some(checked) = run_with(script, &server.endpoint(), &told.to_string()).await {
        assert_eq!(checked, ["external", "internal", "security"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_library_for_node_reads_and_writes() {
    let Some(modules) = peers::node_module("@azure/arm-network") else {
        return;
    };
    let Some(node) = peers::find("node") else {
        return;
    };
    let (server, told) = reconciled().await;
    // Modules are looked up from where the script lies, which is why it lies beside them while it runs.
    let place = tempfile::tempdir().expect("a directory can be made");
    let script = place.path().join("arm_network.mjs");
    std::fs::write(&script, include_str!("node/arm_network.mjs")).expect("it can be written");
    #[cfg(unix)]
    std::os::unix::fs::symlink(modules, place.path().join("node_modules")).expect("a link");
    let mut command = node.command();
    command
        .arg(&script)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", place.path())
        .env("NO_PROXY", "*")
        .env("ENDPOINT", server.endpoint())
        .env("EXPECTED", told.to_string());
    let done = peers::output_within(LIMIT, command).await.expect_success();
    assert_eq!(checked(&done.stdout), ["reconciled", "writes", "deletions"]);
}
