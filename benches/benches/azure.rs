//! Plans for many services: all new, all in order, and with one change.

use std::hint::black_box;
use std::time::Duration;

use azure_loadbalancer::plan::{Action, Operation};
use azure_loadbalancer::resources::AllocationMethod;
use azure_loadbalancer::service::ServicePort;
use azure_loadbalancer::{Config, Node, Service, Snapshot, plan};
use benches::Scale;
use criterion::{Criterion, Throughput};
use serde_json::json;

/// Number of nodes.
const NODES: u8 = 50;

/// Number of services: the maximum of frontends of a load balancer.
const MOST: usize = 600;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    let many = Scale::of_this_run().limit(MOST);
    let config = config();
    let services: Vec<_> = (0..many).map(service).collect();
    let nodes: Vec<_> = (0..NODES)
        .map(|index| Node::new(format!("node-{index}"), [10, 0, 1, index].into()))
        .collect();
    let empty = empty(&config);
    let settled = settle(&config, &services, &nodes, empty.clone());
    let mut changed = services.clone();
    if let Some(service) = changed.last_mut() {
        service.ports.push(ServicePort::tcp(443, 30_443));
    }
    check(&config, &services, &changed, &nodes, &empty, &settled);

    let mut group = criterion.benchmark_group(format!("azure/{many}"));
    group.throughput(Throughput::Elements(many as u64));
    for (name, services, from) in [
        ("all-new", &services, &empty),
        ("settled", &services, &settled),
        ("one-change", &changed, &settled),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| plan(&config, black_box(services), &nodes, black_box(from)));
        });
    }
    group.finish();
    criterion.final_summary();
}

/// Asserts correct plans: a write for each address and each other resource; no write; and writes of
/// two resources.
fn check(
    config: &Config,
    services: &[Service],
    changed: &[Service],
    nodes: &[Node],
    empty: &Snapshot,
    settled: &Snapshot,
) {
    let new = plan(config, services, nodes, empty);
    assert_eq!(
        new.actions.len(),
        services.len() + 1,
        "addresses and a load balancer"
    );
    assert!(plan(config, services, nodes, settled).is_done());
    let verbs: Vec<_> = plan(config, changed, nodes, settled)
        .actions
        .iter()
        .map(|action| action.operation.verb())
        .collect();
    assert_eq!(verbs, ["put loadBalancer", "put networkSecurityGroup"]);
}

fn config() -> Config {
    Config {
        vnet_name: "vnet".to_owned(),
        security_group_name: Some("nsg".to_owned()),
        // All services share one load balancer here.
        maximum_load_balancer_rule_count: 10_000,
        maximum_interface_rule_count: 10_000,
        ..Config::new("subscription", "group", "westeurope")
    }
}

fn service(index: usize) -> Service {
    let mut service = Service::new("default", &format!("service-{index}"));
    service.ports.push(ServicePort::tcp(80, 30_080));
    service
}

fn empty(config: &Config) -> Snapshot {
    let group = json!({"id": config.security_group_id(), "name": "nsg", "properties": {}});
    Snapshot {
        security_group: Some(serde_json::from_value(group).expect("a security group")),
        ..Snapshot::default()
    }
}

/// Applies plans until nothing is left to do, like a resource manager without failures.
fn settle(config: &Config, services: &[Service], nodes: &[Node], mut state: Snapshot) -> Snapshot {
    for _ in 0..4 {
        let next = plan(config, services, nodes, &state);
        if next.is_done() {
            break;
        }
        for action in &next.actions {
            write(&mut state, action);
        }
    }
    state
}

fn write(state: &mut Snapshot, action: &Action) {
    match &action.operation {
        Operation::PutPublicIp { resource, .. } => {
            let mut resource = (**resource).clone();
            let count = state.public_ips.len();
            resource.properties.ip_address = Some(format!("20.0.{}.{}", count / 250, count % 250));
            state.public_ips.push(resource);
        }
        Operation::PutLoadBalancer { resource, .. } => {
            let mut resource = (**resource).clone();
            for frontend in &mut resource.properties.frontend_ip_configurations {
                let method = &mut frontend.properties.private_ip_allocation_method;
                method.get_or_insert(AllocationMethod::Dynamic);
            }
            state.load_balancers = vec![resource];
        }
        Operation::PutSecurityGroup { resource, .. } => {
            state.security_group = Some((**resource).clone());
        }
        other => panic!("not among what is planned here: {other}"),
    }
}
