//! A cluster in an emulated Azure, with resources of other owners.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};

use azure_loadbalancer::arm::{ArmClient, ArmOptions, RetryPolicy, TowerTransport};
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, Fault, FaultAction};
use azure_loadbalancer::execute::ExecutorOptions;
use azure_loadbalancer::service::ServicePort;
use azure_loadbalancer::{Config, Executor, Node, Service};
use bytes::Bytes;
use http::{Method, Request, Response};
use proptest::prelude::{Strategy, any};
use serde_json::{Value, json};
use tower_service::Service as TowerService;

pub(crate) const NETWORK: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";

pub(crate) fn network(kind: &str, name: &str) -> String {
    format!("{NETWORK}/{kind}/{name}")
}

/// Returns the configuration of an exclusive cluster; for others see `neighbours`.
pub(crate) fn config() -> Config {
    Config {
        exclusive_security_group: true,
        cluster_name: "testCluster".to_owned(),
        vnet_name: "vnet".to_owned(),
        subnet_name: "subnet".to_owned(),
        security_group_name: Some("nsg".to_owned()),
        primary_vm_set: "as".to_owned(),
        ..Config::new("s", "rg", "westus")
    }
}

/// Creates an Azure with a network, a security group with a foreign rule, a user's address, and a foreign
/// load balancer.
pub(crate) fn azure(options: EmulatorOptions) -> Emulator {
    let emulator = Emulator::new(options);
    emulator.with(|machine| {
        machine.add_group("s", "rg", "westus");
        // The group in which some services want their public addresses.
        machine.add_group("s", "rg2", "westus");
        let subnet = |name: &str, prefix: &str| json!({ "name": name, "properties": { "addressPrefix": prefix } });
        let subnets = [subnet("subnet", "10.0.0.0/16"), subnet("sub2", "10.1.0.0/16")];
        let vnet = json!({ "location": "westus", "properties": { "subnets": subnets } });
        machine.put(&network("virtualNetworks", "vnet"), vnet).unwrap();
        let rule = json!({ "name": "of-others", "properties": {
            "protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": 500, "sourcePortRange": "*",
            "destinationPortRange": "22", "sourceAddressPrefix": "10.9.0.0/16", "destinationAddressPrefix": "10.0.0.0/16",
        } });
        let group = json!({ "location": "westus", "properties": { "securityRules": [rule] } });
        machine.put(&network("networkSecurityGroups", "nsg"), group).unwrap();
        for name in ["user-ip", "foreign-ip"] {
            let address = json!({ "location": "westus", "sku": { "name": "Standard" }, "properties": { "publicIPAllocationMethod": "Static" } });
            machine.put(&network("publicIPAddresses", name), address).unwrap();
        }
        let foreign = json!({ "location": "westus", "sku": { "name": "Standard" }, "properties": {
            "frontendIPConfigurations": [{ "name": "f", "properties": { "publicIPAddress": { "id": network("publicIPAddresses", "foreign-ip") } } }],
        } });
        machine.put(&network("loadBalancers", "of-others"), foreign).unwrap();
    });
    emulator
}

/// The address of `user-ip`.
pub(crate) const USER_IP: &str = "20.0.0.1";

/// Returns a client over another transport.
pub(crate) fn client_through<S>(service: S, retry: RetryPolicy) -> ArmClient
where
    S: TowerService<Request<Bytes>, Response = Response<Bytes>> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    S::Future: Send,
{
    let mut options = ArmOptions::default();
    options.retry = retry;
    ArmClient::builder(TowerTransport::new(service))
        .options(options)
        .build()
        .unwrap()
}

pub(crate) fn executor(emulator: &Emulator) -> Executor {
    executor_of(emulator, &config())
}

pub(crate) fn executor_of(emulator: &Emulator, config: &Config) -> Executor {
    let client = client_through(emulator.clone(), RetryPolicy::default());
    Executor::with_options(client, config.clone(), ExecutorOptions::default()).unwrap()
}

/// Generates configurations of the same cluster, exclusive in its security group or not.
pub(crate) fn configs() -> impl Strategy<Value = Config> {
    any::<bool>().prop_map(|exclusive_security_group| Config {
        exclusive_security_group,
        ..config()
    })
}

/// A service with these TCP ports.
pub(crate) fn service(name: &str, ports: &[u16]) -> Service {
    Service {
        ports: ports
            .iter()
            .map(|port| ServicePort::tcp(*port, port + 10_000))
            .collect(),
        ..Service::new("default", name)
    }
}

/// The same with an annotation.
pub(crate) fn annotated(mut service: Service, key: &str, value: &str) -> Service {
    service.annotations.insert(
        format!("service.beta.kubernetes.io/{key}"),
        value.to_owned(),
    );
    service
}

pub(crate) fn internal(service: Service) -> Service {
    annotated(service, "azure-load-balancer-internal", "true")
}

/// The same with its public address in another resource group.
pub(crate) fn elsewhere(service: Service) -> Service {
    annotated(service, "azure-load-balancer-resource-group", "rg2")
}

pub(crate) fn nodes(count: u8) -> Vec<Node> {
    (1..=count).map(|number| node(number, number)).collect()
}

pub(crate) fn node(number: u8, last: u8) -> Node {
    let address = IpAddr::V4(Ipv4Addr::new(10, 0, 9, last));
    Node::new(format!("vm-{number}"), address)
}

/// Returns all resources, without fields that change with every write, by id in lower case.
pub(crate) fn contents(emulator: &Emulator) -> BTreeMap<String, Value> {
    let all = emulator.with(|machine| {
        machine.finish_operations();
        machine.resources()
    });
    all.into_iter()
        .map(|one| (one["id"].as_str().unwrap().to_lowercase(), stable(one)))
        .collect()
}

fn stable(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("etag");
            for field in fields.values_mut() {
                *field = stable(field.take());
            }
        }
        Value::Array(items) => {
            for item in items.iter_mut() {
                *item = stable(item.take());
            }
            // Lists of the resource manager have no meaningful order.
            items.sort_by_key(Value::to_string);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

/// Runs a future in virtual time.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// Returns a fault that responds with this status and code.
pub(crate) fn answer(status: u16, code: &str) -> Fault {
    Fault::new(FaultAction::Answer {
        status,
        code: code.to_owned(),
        retry_after: None,
    })
}

/// Forbids listing the public addresses of the subscription.
pub(crate) fn forbid_the_list(emulator: &Emulator) {
    let forbidden = answer(403, "AuthorizationFailed")
        .method(&Method::GET)
        .path("/subscriptions/s/providers/Microsoft.Network/publicIPAddresses")
        .times(1_000);
    emulator.with(|machine| machine.inject(forbidden));
}

/// Checks that no request was invalid.
#[track_caller]
pub(crate) fn assert_nothing_rejected(emulator: &Emulator) {
    let rejected: Vec<_> = emulator.with(|machine| {
        let requests = machine.requests().into_iter();
        requests
            .filter(|one| matches!(one.status, Some(400 | 404 | 405)))
            .filter(|one| one.method != "GET")
            .collect()
    });
    assert!(rejected.is_empty(), "{rejected:#?}");
}
