//! Random services and clusters.

use std::net::Ipv4Addr;
use std::time::Duration;

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::{Config, Edition, FlipOrder, LoadBalancerSku, PoolMembership};
use azure_loadbalancer::node::Readiness;
use azure_loadbalancer::service::ServicePort;
use azure_loadbalancer::{Node, Service};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Azure, cluster, current, note};

const MACHINES: u8 = 6;

/// Node ports are above all ports of services.
pub(crate) const FIRST_NODE_PORT: u16 = 20_000;

/// The generated request of a service.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    internal: bool,
    subnet: bool,
    ports: Vec<(bool, u16)>,
    /// The index of one of a few addresses.
    address: Option<u8>,
    mode: Option<u8>,
    shared: bool,
    ranges: u8,
    local: bool,
    floating: bool,
    elsewhere: bool,
    deny: bool,
}

impl Asked {
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let ports = proptest::collection::btree_set((any::<bool>(), 80..84u16), 1..4);
        let often_none = |values: u8| prop_oneof![3 => Just(None), 1 => (0..values).prop_map(Some)];
        let rarely = || proptest::bool::weighted(0.2);
        (
            (any::<bool>(), rarely(), ports, often_none(3), often_none(4)),
            (
                any::<bool>(),
                0..3u8,
                rarely(),
                proptest::bool::weighted(0.8),
                rarely(),
                rarely(),
            ),
        )
            .prop_map(
                |(
                    (internal, subnet, ports, address, mode),
                    (shared, ranges, local, floating, elsewhere, deny),
                )| Self {
                    internal,
                    subnet,
                    ports: ports.into_iter().collect(),
                    address,
                    mode,
                    shared,
                    ranges,
                    local,
                    floating,
                    elsewhere,
                    deny,
                },
            )
    }

    /// Returns the present services of a list.
    fn services(list: &[Option<Self>], config: &Config) -> Vec<Service> {
        let there = list
            .iter()
            .enumerate()
            .filter_map(|(index, asked)| Some((index, asked.as_ref()?)));
        there
            .map(|(index, asked)| asked.service(&format!("svc{index}"), config))
            .collect()
    }

    pub(crate) fn service(&self, name: &str, config: &Config) -> Service {
        let number: u16 = name.bytes().last().map_or(0, u16::from);
        let mut service = Service::new("default", name);
        service.ports = self
            .ports
            .iter()
            .map(|(tcp, port)| {
                let node_port = FIRST_NODE_PORT + number * 100 + port;
                if *tcp {
                    ServicePort::tcp(*port, node_port)
                } else {
                    ServicePort::udp(*port, node_port)
                }
            })
            .collect();
        service.load_balancer_ip = self.address.map(|which| match self.internal {
            true => format!("10.0.9.{which}"),
            false => format!("9.9.9.{which}"),
        });
        service.source_ranges = match self.ranges {
            0 => vec![],
            1 => vec!["10.0.0.0/8".to_owned()],
            _ => vec!["10.0.0.0/8".to_owned(), "192.168.0.0/16".to_owned()],
        };
        service.local_traffic_only = self.local;
        service.health_check_node_port = Some(32_000);
        let mut say = |is: bool, key: &str, value: &str| {
            if is {
                service.annotations.insert(key.to_owned(), value.to_owned());
            }
        };
        say(self.internal, keys::INTERNAL, "true");
        say(
            self.internal && self.subnet && self.address.is_none(),
            keys::INTERNAL_SUBNET,
            "sub2",
        );
        say(self.shared, keys::SHARED_RULE, "true");
        say(!self.floating, keys::DISABLE_FLOATING_IP, "true");
        say(
            self.elsewhere && self.address.is_none(),
            keys::RESOURCE_GROUP,
            "rg2",
        );
        say(self.deny, keys::DENY_ALL_EXCEPT_RANGES, "true");
        if let (Some(mode), false) = (self.mode, config.is_standard()) {
            say(
                true,
                keys::MODE,
                ["__auto__", "as-1", "as", "as,as-1"][usize::from(mode % 4)],
            );
        }
        service
    }
}

/// The generated node of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    readiness: Readiness,
    unreadable: bool,
    /// The address of another machine in place of its own.
    address: Option<u8>,
}

fn told() -> impl Strategy<Value = Told> {
    let readiness = prop_oneof![
        6 => Just(Readiness::Ready),
        1 => Just(Readiness::NotReady(Duration::from_secs(10))),
        1 => Just(Readiness::NotReady(Duration::from_secs(3_600))),
    ];
    let address = proptest::option::weighted(0.15, 0..MACHINES);
    (readiness, proptest::bool::weighted(0.1), address).prop_map(
        |(readiness, unreadable, address)| Told {
            readiness,
            unreadable,
            address,
        },
    )
}

impl Told {
    fn node(&self, number: u8) -> Node {
        let name = format!("vm-{number}");
        if self.unreadable {
            return Node {
                name,
                readiness: Readiness::NotReady(Duration::MAX),
                unreadable: Some("of two minds".to_owned()),
                ..Node::default()
            };
        }
        let address = Ipv4Addr::new(10, 0, 1, self.address.unwrap_or(number));
        Node {
            readiness: self.readiness,
            ..Node::new(name, address.into())
        }
    }
}

/// The inputs of one plan: five services and the nodes of the machines, each present or absent.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    services: Vec<Option<Asked>>,
    machines: Vec<Option<Told>>,
}

impl Step {
    pub(crate) fn services(&self, config: &Config) -> Vec<Service> {
        Asked::services(&self.services, config)
    }

    pub(crate) fn nodes(&self) -> Vec<Node> {
        let there = (0..).zip(&self.machines);
        there
            .filter_map(|(number, told)| Some(told.as_ref()?.node(number)))
            .collect()
    }
}

/// Generates up to three steps.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let service = proptest::option::weighted(0.7, Asked::any());
    let services = proptest::collection::vec(service, 5);
    let machines = prop_oneof![
        8 => proptest::collection::vec(proptest::option::weighted(0.6, told()), usize::from(MACHINES)),
        1 => Just(Vec::new()),
    ];
    let step = (services, machines).prop_map(|(services, machines)| Step { services, machines });
    proptest::collection::vec(step, 1..4)
}

/// Generates configurations of all editions, SKUs, kinds of membership and orders.
pub(crate) fn configs() -> impl Strategy<Value = Config> {
    let flags = proptest::array::uniform3(any::<bool>());
    (0..4u8, flags).prop_map(|(kind, [break_first, few, exclusive])| Config {
        flip_order: if break_first {
            FlipOrder::BreakFirst
        } else {
            FlipOrder::MakeBeforeBreak
        },
        maximum_load_balancer_rule_count: if few { 6 } else { 250 },
        maximum_interface_rule_count: if few { 8 } else { 299 },
        // Without exclusive rights, unproven rules stay: pools of interfaces do not contain the addresses of
        // departed nodes, and the edition of 2018 did not check.
        exclusive_security_group: exclusive || kind < 3,
        ..match kind {
            0 => note(),
            1 => Config {
                edition: Edition::Current,
                ..note()
            },
            2 => Config {
                load_balancer_sku: LoadBalancerSku::Standard,
                backend_pool_type: PoolMembership::NetworkInterface,
                ..current()
            },
            _ => current(),
        }
    })
}

/// Machines, and all of them as nodes.
pub(crate) fn machines(config: &Config) -> (Azure, Vec<Node>) {
    let (mut azure, nodes) = cluster(usize::from(MACHINES), 2);
    let sku = if config.is_standard() {
        "Standard"
    } else {
        "Basic"
    };
    for which in 0..3 {
        azure.add_public_ip(
            "rg",
            &format!("theirs-{which}"),
            &format!("9.9.9.{which}"),
            sku,
            &[],
        );
    }
    (azure, nodes)
}

/// Adds resources of other owners to the same resource group, load balancer and security group.
pub(crate) fn with_noise(azure: &mut Azure, config: &Config) {
    let sku = if config.is_standard() {
        "Standard"
    } else {
        "Basic"
    };
    azure.add_public_ip("rg", "theirs-front", "9.9.8.1", sku, &[]);
    azure.add_public_ip(
        "rg",
        "theirs-tagged",
        "9.9.8.2",
        sku,
        &[
            ("service", "default/svc0"),
            ("kubernetes-cluster-name", "other"),
        ],
    );
    azure.add_security_rule("theirs", 501, "*");
    azure.add_security_rule("theirs-TCP-80-Internet", 4095, "9.9.9.0");
    let id = config.load_balancer_id("testCluster");
    let frontend = id.child("frontendIPConfigurations", "theirs");
    let rule = json!({"frontendIPConfiguration": {"id": frontend}, "backendAddressPool": {"id": id.child("backendAddressPools", "theirs")},
        "protocol": "Tcp", "frontendPort": 80, "backendPort": 80, "enableFloatingIP": true, "idleTimeoutInMinutes": 4,
        "enableTcpReset": false, "disableOutboundSnat": false});
    azure.snapshot.load_balancers.push(
        serde_json::from_value(json!({
            "id": id, "name": "testCluster", "location": "westus", "sku": {"name": sku}, "etag": "W/\"0\"",
            "properties": {
                "frontendIPConfigurations": [{"name": "theirs", "id": frontend, "properties": {
                    "privateIPAllocationMethod": "Dynamic",
                    "publicIPAddress": {"id": config.public_ip_id("rg", "theirs-front")}}}],
                "backendAddressPools": [{"name": "theirs", "properties": {}}],
                "probes": [{"name": "theirs", "properties": {"protocol": "Tcp", "port": 1}}],
                "loadBalancingRules": [{"name": "theirs", "properties": rule}]
            }
        }))
        .expect("a load balancer"),
    );
}
