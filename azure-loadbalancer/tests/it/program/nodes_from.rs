//! Nodes of discovered clusters, as members of pools.
#![cfg(all(feature = "consul", feature = "serf", feature = "servicefabric"))]

use std::path::PathBuf;

use servicefabric_emulator::cluster::FabricName;
use servicefabric_emulator::gateway::{Emulator, Responder};
use servicefabric_emulator::topology::Topology;
use testkit::consul::Consul;
use testkit::peers::{self, PeerOutput};
use testkit::serf::Serf;
use testkit::time::eventually;
use tokio::process::Command;

use super::{ended, example, program, state};

pub(super) struct Files {
    directory: tempfile::TempDir,
    state: PathBuf,
    config: PathBuf,
}

impl Files {
    pub(super) fn new() -> Self {
        let (directory, state) = state();
        let services = r#"{"kind": "Service", "metadata": {"name": "web", "namespace": "shop", "annotations":
            {"service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip": "true"}},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30080}]}}"#;
        std::fs::write(directory.path().join("services.json"), services).unwrap();
        let config = directory.path().join("azure.json");
        std::fs::copy(example("azure.json"), &config).unwrap();
        Self {
            directory,
            state,
            config,
        }
    }

    pub(super) fn command(&self, command: &str, source: &str, cluster: &str) -> Command {
        let path = self.directory.path().join("nodes.yaml");
        std::fs::write(&path, source).unwrap();
        let mut made = program();
        made.arg(command).arg("--config").arg(&self.config);
        made.arg("--services")
            .arg(self.directory.path().join("services.json"));
        made.arg("--nodes-from")
            .arg(path)
            .args(["--nodes-cluster", cluster]);
        made.arg("--state").arg(&self.state);
        made
    }

    pub(super) async fn plan(&self, source: &str, cluster: &str) -> PeerOutput {
        peers::output(self.command("plan", source, cluster)).await
    }

    pub(super) fn has_member(&self, address: &str) -> bool {
        let text = std::fs::read_to_string(&self.state).unwrap();
        text.contains(&format!("\"ipAddress\": \"{address}\""))
    }
}

#[tokio::test]
async fn proxies_in_a_serf_cluster_are_members_while_they_live() {
    let Some(serf) = Serf::find() else { return };
    let files = Files::new();
    let proxy = |name: &str| {
        serf.agent(name)
            .tag("service", "proxy")
            .tag("http-port", "30080")
    };
    let first = proxy("proxy-1").start().await;
    let source = format!("SerfDiscovery:\n  Agents: ['{}']\n", first.rpc_addr());
    let address = first.gossip_addr().ip().to_string();
    eventually("the proxy is in the plan", async || {
        files
            .plan(&source, "service:proxy")
            .await
            .stdout
            .contains(&address)
    })
    .await;
    let unknown = files.plan(&source, "service:other").await;
    ended(&unknown, 1);
    assert!(
        unknown
            .stderr
            .contains("there is no cluster \"service:other\"; known are service:proxy"),
        "{}",
        unknown.stderr
    );
    let mut watching = files.command("apply", &source, "Service:Proxy");
    watching.arg("--watch");
    let mut watching = peers::spawn(watching);
    watching.wait_for_output("shop/web: 20.0.0.1").await;
    eventually("it is a member", async || files.has_member(&address)).await;
    let second = proxy("proxy-2").join(&first).start().await;
    let other = second.gossip_addr().ip().to_string();
    eventually("so is the other", async || files.has_member(&other)).await;
    assert!(files.has_member(&address));
    watching.terminate();
    assert_eq!(watching.wait().await.code(), Some(0));
}

#[tokio::test]
async fn instances_of_a_service_of_consul_are_members() {
    let Some(consul) = Consul::find() else { return };
    let files = Files::new();
    let agent = consul.datacenter("dc1").start().await;
    let service = r#"{"Name": "proxy", "ID": "p1", "Address": "10.30.0.7", "Port": 30080, "Tags": ["proxy.enable=true"]}"#;
    let answer = agent
        .call("PUT", "/v1/agent/service/register", service)
        .await;
    assert_eq!(answer.status, 200);
    let source = format!(
        "{{ \"ConsulDiscovery\": {{ \"Address\": \"{}\" }} }}",
        agent.url()
    );
    eventually("the instance is in the plan", async || {
        files
            .plan(&source, "proxy")
            .await
            .stdout
            .contains("10.30.0.7")
    })
    .await;
    let applied = peers::output(files.command("apply", &source, "proxy")).await;
    ended(&applied, 0);
    assert!(files.has_member("10.30.0.7"));
}

/// Starts a Service Fabric cluster with two ready instances. Returns its address as well.
async fn fabric() -> (Emulator, String) {
    let topology = r#"
        [cluster]
        health_report_interval = 0

        [[application_types]]
        name = "ShopType"

        [application_types.service_types.ProxyType.labels]
        YARP.Enable = true
        YARP.Routes.proxy.Hosts = "shop.example"

        [applications.Shop]
        type = "ShopType"
        services.Proxy = { type = "ProxyType", instances = 2 }
    "#;
    let emulator = Emulator::builder(Topology::from_toml(topology).unwrap())
        .listen("127.0.0.1:0")
        .workload(Responder::default())
        .start()
        .await
        .unwrap();
    let proxy = FabricName::parse("fabric:/Shop/Proxy").unwrap();
    eventually("the instances are ready", async || {
        emulator.with_cluster(|cluster| {
            let partitions = cluster.partitions(&proxy, &Default::default()).unwrap();
            let replicas = partitions.items.iter().flat_map(|p| p.replicas.values());
            replicas.filter(|replica| replica.is_resolvable()).count() == 2
        })
    })
    .await;
    let source = format!(
        "ServiceFabricDiscovery:\n  Gateways: ['{}']\n  DiscoverInsecureHttpDestinations: true\n  ReportServicesHealth: true\n",
        emulator.endpoint()
    );
    (emulator, source)
}

#[tokio::test]
async fn instances_of_a_service_of_service_fabric_are_members() {
    let (_fabric, source) = fabric().await;
    let files = Files::new();
    let mut apply = files.command("apply", &source, "fabric:/Shop/Proxy");
    apply.arg("--watch");
    let mut watching = peers::spawn(apply);
    // A reader of machines reports no health of services.
    watching
        .wait_for_output("no health is reported by this program")
        .await;
    watching.wait_for_output("shop/web: 20.0.0.1").await;
    eventually("the member is there", async || {
        files.has_member("127.0.0.1")
    })
    .await;
    watching.terminate();
    assert_eq!(watching.wait().await.code(), Some(0));
}

#[tokio::test]
async fn a_source_that_breaks_ends_no_program_that_runs() {
    const BROKEN: &str = "SerfDiscovery: [";
    let (_fabric, source) = fabric().await;
    let files = Files::new();
    let lock = files.directory.path().join("lock");
    let held = std::fs::File::create(&lock).unwrap();
    held.lock().unwrap();
    let command = |source: &str| {
        let mut command = files.command("apply", source, "fabric:/Shop/Proxy");
        command.arg("--watch").arg("--leader-lock").arg(&lock);
        command
    };
    // A program that stands by reports errors at once, and not only when it has to lead.
    ended(&peers::output(command(BROKEN)).await, 1);
    let mut program = peers::spawn(command(&source));
    program.wait_for_output("standing by").await;
    let path = files.directory.path().join("nodes.yaml");
    std::fs::write(path, BROKEN).unwrap();
    drop(held);
    program.wait_for_output("cannot be opened again").await;
    program.wait_for_output("shop/web: 20.0.0.1").await;
    eventually("the member is there", async || {
        files.has_member("127.0.0.1")
    })
    .await;
    // A changed configuration does not end a leader either.
    let good = std::fs::read_to_string(&files.config).unwrap();
    let changed = good.replacen('{', r#"{ "disableOutboundSNAT": true,"#, 1);
    std::fs::write(&files.config, changed).unwrap();
    program
        .wait_for_output("the configuration has changed and is in force")
        .await;
    eventually("it is followed", async || {
        let text = std::fs::read_to_string(&files.state).unwrap();
        text.contains("\"disableOutboundSnat\": true")
    })
    .await;
    assert!(files.has_member("127.0.0.1"));
    program.terminate();
    assert_eq!(program.wait().await.code(), Some(0));
}

#[tokio::test]
async fn what_is_wrong_with_a_source_is_told() {
    let files = Files::new();
    for (source, expected) in [
        (
            "{}",
            "it names no source; it may have ConsulDiscovery or SerfDiscovery or ServiceFabricDiscovery",
        ),
        ("SerfDiscovery: {Agent: [x]}", "/SerfDiscovery/Agent"),
        ("SerfDiscovery: {}\nConsulDiscovery: {}", "several sources"),
        ("Serf: {}", "/Serf"),
        (
            "SerfDiscovery: [",
            "did not find expected node content (line 2",
        ),
        (
            "SerfDiscovery: {Agents: ['127.0.0.1:1']}",
            "nothing is known yet",
        ),
    ] {
        let planned = files.plan(source, "service:proxy").await;
        ended(&planned, 1);
        assert!(
            planned.stderr.contains(expected),
            "{source}: {}",
            planned.stderr
        );
    }
    let mut alone = program();
    alone.arg("plan").arg("--config").arg(example("azure.json"));
    alone.arg("--services").arg(example("services.json"));
    alone.args(["--nodes-from", "x"]);
    let alone = peers::output(alone).await;
    ended(&alone, 2);
    assert!(alone.stderr.contains("--nodes-cluster"), "{}", alone.stderr);
}
