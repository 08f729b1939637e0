//! cargo bench --package azure-loadbalancer --bench calls
//!
//! Numbers of calls for 1, 100 and 1,000 services: to create them, without a change, with a change of all, and
//! to remove them. Two of five are internal, since a load balancer has at most 600 frontends.
//!
//! For comparison, the numbers of the provider in Kubernetes until 1.13 for the external ones alone without a
//! change, counted from its source: 7 reads for each service, and one or two for each node, which makes 7 + N
//! to 7 + 2N.

use std::time::Instant;

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::arm::{ArmClient, CallCounts, TowerTransport};
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions};
use azure_loadbalancer::service::ServicePort;
use azure_loadbalancer::{Config, Executor, Node, Service};
use serde_json::json;

const NODES: u8 = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    println!(
        "Calls of the resource manager with {NODES} nodes: reads + writes + questions about writes\n"
    );
    println!(
        "{:>9} {:>22} {:>14} {:>20} {:>20} {:>26}",
        "services", "created", "unchanged", "all changed", "removed", "unchanged, original"
    );
    // Cargo passes `--bench` when it measures, and not when it only tests that the program works.
    let most = if std::env::args().any(|argument| argument == "--bench") {
        1_000
    } else {
        100
    };
    for count in [1, 100, 1_000] {
        if count <= most {
            runtime.block_on(row(count))?;
        }
    }
    Ok(())
}

async fn row(count: u32) -> Result<(), Box<dyn std::error::Error>> {
    let emulator = Emulator::new(EmulatorOptions::default());
    let base = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
    emulator.with(|machine| {
        machine.add_group("s", "rg", "westus");
        let subnets =
            json!([{ "name": "subnet", "properties": { "addressPrefix": "10.0.0.0/16" } }]);
        machine.put(
            &format!("{base}/virtualNetworks/vnet"),
            json!({ "location": "westus", "properties": { "subnets": subnets } }),
        )?;
        machine.put(
            &format!("{base}/networkSecurityGroups/nsg"),
            json!({ "location": "westus" }),
        )
    })?;
    let config = Config {
        vnet_name: "vnet".to_owned(),
        subnet_name: "subnet".to_owned(),
        security_group_name: Some("nsg".to_owned()),
        maximum_load_balancer_rule_count: 10_000,
        maximum_interface_rule_count: 10_000,
        ..Config::new("s", "rg", "westus")
    };
    let client = ArmClient::builder(TowerTransport::new(emulator)).build()?;
    let executor = Executor::new(client, config)?;
    let nodes: Vec<_> = (1..=NODES)
        .map(|number| Node::new(format!("n{number}"), [10, 0, 200, number].into()))
        .collect();
    let mut services: Vec<_> = (0..count)
        .map(|number| {
            let mut service = Service::new("default", &format!("s{number}"));
            service.ports = vec![ServicePort::tcp(80, 30_080)];
            if number % 5 > 2 {
                let internal = keys::INTERNAL.to_owned();
                service.annotations.insert(internal, "true".to_owned());
            }
            service
        })
        .collect();
    let external = (0..count).filter(|number| number % 5 <= 2).map(|_| 1);
    let external: u32 = external.sum();

    let began = Instant::now();
    let created = calls(&executor, &services, &nodes).await?;
    let unchanged = calls(&executor, &services, &nodes).await?;
    assert!(
        unchanged.writes == 0 && unchanged.reads <= 5,
        "{unchanged:?}"
    );
    for service in &mut services {
        service.client_affinity = true;
    }
    let changed = calls(&executor, &services, &nodes).await?;
    let removed = calls(&executor, &[], &nodes).await?;
    let (low, high) = (7 + u32::from(NODES), 7 + 2 * u32::from(NODES));
    println!(
        "{count:>9} {:>22} {:>14} {:>20} {:>20} {:>26}    {:.1} s",
        shown(created),
        shown(unchanged),
        shown(changed),
        shown(removed),
        format!("{} to {} reads", external * low, external * high),
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

async fn calls(
    executor: &Executor,
    services: &[Service],
    nodes: &[Node],
) -> Result<CallCounts, Box<dyn std::error::Error>> {
    let report = executor.reconcile(services, nodes).await?;
    if let Some((service, error)) = report.errors().into_iter().next() {
        return Err(format!("{service}: {error}").into());
    }
    assert!(report.is_converged(), "{:?}", report.left);
    Ok(report.calls)
}

fn shown(calls: CallCounts) -> String {
    format!("{} + {} + {}", calls.reads, calls.writes, calls.polls)
}
