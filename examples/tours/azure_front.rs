//! cargo run --package tours --example azure_front
//!
//! Proxies that join and leave a Serf cluster, and an Azure load balancer whose pool follows them.
//! Only Azure is emulated: its address is printed, and Azure's own clients can query it.
//!
//! The example starts the agents; `cargo xtask peers serf` fetches the program.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::arm::{ArmClient, TowerTransport};
use azure_loadbalancer::discovery::ClusterNodes;
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, EmulatorServer};
use azure_loadbalancer::execute::{FollowOptions, ReconcileError, Reconciled, follow};
use azure_loadbalancer::service::ServicePort;
use azure_loadbalancer::sources::memory;
use azure_loadbalancer::{Config, Executor, Service};
use discovery_serf::{SerfDiscoverer, SerfOptions};
use examples::{Failure, once, wait_unless_once};
use serde_json::{Value, json};
use testkit::serf::{Serf, SerfAgent};
use tokio::sync::watch;

/// The cluster detects a crash in five to eight seconds; everything else takes a second or two.
const PATIENCE: Duration = Duration::from_secs(60);

/// The port of the proxies.
const PROXY_PORT: u16 = 30_080;

/// The scope of all resources.
const NETWORK: &str = "/subscriptions/demo/resourceGroups/front/providers/Microsoft.Network";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let Some(serf) = Serf::find() else {
        return match once() {
            true => Ok(()),
            false => Err("there is no program `serf`: `cargo xtask peers serf` fetches it".into()),
        };
    };
    tokio::select! {
        ended = story(&serf) => ended,
        // The agents end with this function.
        stopped = tokio::signal::ctrl_c() => Ok(stopped?),
    }
}

async fn story(serf: &Serf) -> Result<(), Failure> {
    println!("1. an Azure in memory, with a network and a security group");
    let emulator = azure()?;
    let server = EmulatorServer::start("127.0.0.1:0", emulator.clone()).await?;
    let balancer = format!(
        "{}{NETWORK}/loadBalancers/front?api-version=2025-05-01",
        server.endpoint()
    );
    println!("   curl '{balancer}'");

    println!("2. a Serf cluster: an agent beside each of two proxies");
    let first = proxy(serf, "proxy-1", None).await;
    let second = proxy(serf, "proxy-2", Some(&first)).await;

    println!("3. a service asks for a public address in front of them");
    let mut web = Service::new("shop", "web");
    web.ports = vec![ServicePort::tcp(80, PROXY_PORT)];
    // A proxy listens at its own address: packets must arrive there at its port, and not at port 80
    // of the public address.
    let floating = keys::DISABLE_FLOATING_IP.to_owned();
    web.annotations.insert(floating, "true".to_owned());
    let front = Front::start(&emulator, &first, web)?;
    front.until(&[&first, &second]).await?;
    front.arrives_at_the_proxies()?;
    let address = emulator.with(|machine| {
        let addresses = machine.resources().into_iter();
        let mut addresses =
            addresses.filter_map(|one| one["properties"]["ipAddress"].as_str().map(str::to_owned));
        addresses.next()
    });
    println!("   it is reached at {}", address.unwrap_or_default());

    println!("4. a third proxy joins");
    let mut third = proxy(serf, "proxy-3", Some(&first)).await;
    front.until(&[&first, &second, &third]).await?;

    wait_unless_once().await?;
    println!("5. its agent is killed: its node fails, and the pool is without it");
    third.kill().await;
    front.until(&[&first, &second]).await?;
    server.shutdown().await;
    Ok(())
}

/// An Azure with the resources that an administrator has created.
fn azure() -> Result<Emulator, Failure> {
    let emulator = Emulator::new(EmulatorOptions::default().id_casing_seed(1));
    emulator.with(|machine| {
        machine.add_group("demo", "front", "westeurope");
        let plain = || json!({ "location": "westeurope" });
        machine.put(&format!("{NETWORK}/virtualNetworks/net"), plain())?;
        machine.put(&format!("{NETWORK}/networkSecurityGroups/nsg"), plain())
    })?;
    Ok(emulator)
}

/// Starts an agent with tags that mark its node as a proxy.
async fn proxy(serf: &Serf, name: &str, joins: Option<&SerfAgent>) -> SerfAgent {
    let mut agent = serf
        .agent(name)
        .tag("service", "proxy")
        .tag("http-port", &PROXY_PORT.to_string());
    if let Some(other) = joins {
        agent = agent.join(other);
    }
    let agent = agent.start().await;
    println!("   {}", agent.command_line());
    agent
}

/// The reconciler, which follows the cluster and updates the load balancer.
struct Front {
    emulator: Emulator,
    reconciled: watch::Receiver<u64>,
}

impl Front {
    fn start(emulator: &Emulator, agent: &SerfAgent, service: Service) -> Result<Self, Failure> {
        let config = Config {
            cluster_name: "front".to_owned(),
            vnet_name: "net".to_owned(),
            security_group_name: Some("nsg".to_owned()),
            ..Config::new("demo", "front", "westeurope")
        };
        let client = ArmClient::builder(TowerTransport::new(emulator.clone())).build()?;
        let executor = Executor::new(client, config)?;
        let discovered = SerfDiscoverer::new(SerfOptions::of([agent.rpc_addr().to_string()]))
            .runner()
            .start();
        let (_, mut services) = memory(vec![service]);
        let (told, reconciled) = watch::channel(0);
        tokio::spawn(async move {
            let mut nodes = ClusterNodes::new(&discovered, "service:proxy");
            let mut tell = |report: &Result<Reconciled, ReconcileError>| {
                match report {
                    Ok(report) => {
                        let calls = report.calls;
                        println!("   {} reads, {} writes", calls.reads, calls.writes);
                        for (service, error) in report.errors() {
                            eprintln!("   {service}: {error}");
                        }
                        for (node, error) in &report.rejected_nodes {
                            eprintln!("   {node}: {error}");
                        }
                    }
                    Err(error) => eprintln!("   {error}"),
                }
                told.send_modify(|count| *count += 1);
            };
            follow(
                &executor,
                &mut services,
                &mut nodes,
                &FollowOptions::default(),
                &mut tell,
            )
            .await;
        });
        Ok(Self {
            emulator: emulator.clone(),
            reconciled,
        })
    }

    /// Waits until the pool has the machines of these agents.
    async fn until(&self, agents: &[&SerfAgent]) -> Result<(), Failure> {
        let started = Instant::now();
        let wanted: BTreeSet<IpAddr> = agents
            .iter()
            .map(|agent| agent.gossip_addr().ip())
            .collect();
        let mut reconciled = self.reconciled.clone();
        let wait = reconciled.wait_for(|_| self.pool() == wanted);
        tokio::time::timeout(PATIENCE, wait).await??;
        println!("   the pool is {wanted:?} after {:.1?}", started.elapsed());
        Ok(())
    }

    /// Checks that rule and probe lead to the address of the proxies.
    fn arrives_at_the_proxies(&self) -> Result<(), Failure> {
        let balancer = self.balancer();
        let rule = &balancer["properties"]["loadBalancingRules"][0]["properties"];
        let probe = &balancer["properties"]["probes"][0]["properties"];
        let found = (
            &rule["backendPort"],
            &rule["enableFloatingIP"],
            &probe["port"],
        );
        if found != (&json!(PROXY_PORT), &json!(false), &json!(PROXY_PORT)) {
            return Err(format!("packets do not arrive at the proxies: {rule} {probe}").into());
        }
        println!("   packets for port 80 arrive at port {PROXY_PORT} of the proxies");
        Ok(())
    }

    fn balancer(&self) -> Value {
        let id = format!("{NETWORK}/loadBalancers/front");
        let balancer = self.emulator.with(|machine| machine.get(&id));
        balancer.unwrap_or_default()
    }

    fn pool(&self) -> BTreeSet<IpAddr> {
        let pool = self.balancer()["properties"]["backendAddressPools"][0].clone();
        let members = pool["properties"]["loadBalancerBackendAddresses"].as_array();
        let addresses = members
            .into_iter()
            .flatten()
            .map(|member| &member["properties"]["ipAddress"]);
        addresses
            .filter_map(Value::as_str)
            .filter_map(|text| text.parse().ok())
            .collect()
    }
}
