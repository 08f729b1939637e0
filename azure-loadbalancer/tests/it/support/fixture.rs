//! The cluster under test.

use std::collections::BTreeMap;

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::Config;
use azure_loadbalancer::naming;
use azure_loadbalancer::resources::{
    ArmId, FrontendIpConfiguration, LoadBalancer, LoadBalancingRule, NetworkSecurityGroup, Probe,
    PublicIpAddress, SecurityRule, VirtualNetwork,
};
use azure_loadbalancer::service::ServicePort;
use azure_loadbalancer::{Node, Service, ServiceKey, Snapshot};
use serde_json::json;

use super::Azure;

/// Returns the configuration of 2018 with basic load balancers, but with the present maximum of rules.
pub(crate) fn note() -> Config {
    Config {
        maximum_load_balancer_rule_count: 250,
        ..named(Config::as_in_2018("subscription", "rg", "westus"))
    }
}

/// Returns the default configuration.
pub(crate) fn current() -> Config {
    named(Config::new("subscription", "rg", "westus"))
}

fn named(config: Config) -> Config {
    Config {
        cluster_name: "testCluster".to_owned(),
        vnet_name: "vnet".to_owned(),
        subnet_name: "subnet".to_owned(),
        security_group_name: Some("nsg".to_owned()),
        primary_vm_set: "as".to_owned(),
        ..config
    }
}

/// Returns a service whose UID is its name, with TCP ports.
pub(crate) fn service(name: &str, ports: &[u16]) -> Service {
    Service {
        uid: name.to_owned(),
        ports: ports
            .iter()
            .map(|port| ServicePort::tcp(*port, port + 10000))
            .collect(),
        ..Service::new("default", name)
    }
}

pub(crate) fn internal(name: &str, ports: &[u16]) -> Service {
    with(service(name, ports), keys::INTERNAL, "true")
}

pub(crate) fn with(mut service: Service, key: &str, value: &str) -> Service {
    service.annotations.insert(key.to_owned(), value.to_owned());
    service
}

pub(crate) fn at(mut service: Service, address: &str) -> Service {
    service.load_balancer_ip = Some(address.to_owned());
    service
}

pub(crate) fn ranges(mut service: Service, ranges: &[&str]) -> Service {
    service.source_ranges = ranges.iter().map(|range| (*range).to_owned()).collect();
    service
}

pub(crate) fn deleting(mut service: Service) -> Service {
    service.deleting = true;
    service
}

pub(crate) fn key(name: &str) -> ServiceKey {
    ServiceKey::new("default", name)
}

/// An empty cluster without machines.
pub(crate) fn empty() -> Azure {
    let network = current().virtual_network_id();
    let subnet = |name: &str, range: &str| json!({"id": network.child("subnets", name), "name": name, "properties": {"addressPrefix": range}});
    let vnet: VirtualNetwork = serde_json::from_value(json!({
        "id": network, "name": "vnet",
        "properties": {"subnets": [subnet("subnet", "10.0.0.0/16"), subnet("sub2", "10.2.0.0/16")]}
    }))
    .expect("a network");
    let group: NetworkSecurityGroup = serde_json::from_value(json!({
        "id": current().security_group_id(), "name": "nsg", "etag": "W/\"0\"", "properties": {"securityRules": []}
    }))
    .expect("a group");
    Azure::of(Snapshot {
        virtual_network: Some(vnet),
        security_group: Some(group),
        ..Snapshot::default()
    })
}

/// Returns a cluster with machines: `vm-i` is in set `as` if `i` is a multiple of `sets`, else in `as-{i mod
/// sets}`.
pub(crate) fn cluster(machines: usize, sets: usize) -> (Azure, Vec<Node>) {
    let mut azure = empty();
    let compute = |kind: &str, name: &str| {
        ArmId::of_provider("subscription", "rg", "Microsoft.Compute", kind, name)
    };
    let mut nodes = Vec::new();
    for index in 0..machines {
        let (vm, nic) = (format!("vm-{index}"), format!("nic-{index}"));
        let set = match index % sets {
            0 => "AS".to_owned(),
            other => format!("AS-{other}"),
        };
        let nic_id = ArmId::network("subscription", "rg", "networkInterfaces", &nic);
        azure.snapshot.virtual_machines.push(
            serde_json::from_value(json!({
                "id": compute("virtualMachines", &vm), "name": vm,
                "properties": {
                    "availabilitySet": {"id": compute("availabilitySets", &set)},
                    "networkProfile": {"networkInterfaces": [{"id": nic_id}]}
                }
            }))
            .expect("a machine"),
        );
        azure.snapshot.network_interfaces.push(
            serde_json::from_value(json!({
                "id": nic_id, "name": nic,
                "properties": {"ipConfigurations": [{"name": "ipconfig", "properties": {"privateIPAddress": format!("10.0.1.{index}")}}]}
            }))
            .expect("an interface"),
        );
        nodes.push(Node::new(
            vm,
            format!("10.0.1.{index}").parse().expect("an address"),
        ));
    }
    (azure, nodes)
}

impl Azure {
    pub(crate) fn balancer_named(&self, name: &str) -> &LoadBalancer {
        let mut all = self.snapshot.load_balancers.iter();
        all.find(|balancer| balancer.name == name)
            .unwrap_or_else(|| panic!("no {name}: {:?}", self.balancers()))
    }

    pub(crate) fn balancers(&self) -> Vec<String> {
        let mut names: Vec<_> = self
            .snapshot
            .load_balancers
            .iter()
            .map(|b| b.name.clone())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn frontends(&self, balancer: &str) -> Vec<&FrontendIpConfiguration> {
        sorted(
            &self
                .balancer_named(balancer)
                .properties
                .frontend_ip_configurations,
            |f| &f.name,
        )
    }

    pub(crate) fn rules(&self, balancer: &str) -> Vec<&LoadBalancingRule> {
        sorted(
            &self
                .balancer_named(balancer)
                .properties
                .load_balancing_rules,
            |rule| &rule.name,
        )
    }

    pub(crate) fn probes(&self, balancer: &str) -> Vec<&Probe> {
        sorted(&self.balancer_named(balancer).properties.probes, |probe| {
            &probe.name
        })
    }

    pub(crate) fn security_rules(&self) -> Vec<&SecurityRule> {
        let group = self.snapshot.security_group.as_ref().expect("a group");
        sorted(&group.properties.security_rules, |rule| &rule.name)
    }

    pub(crate) fn security_rule(&self, name: &str) -> &SecurityRule {
        let rules = self.security_rules();
        let found = rules.iter().find(|rule| rule.name == name);
        found.unwrap_or_else(|| panic!("no {name}: {:?}", names(&rules)))
    }

    pub(crate) fn public_ip(&self, name: &str) -> Option<&PublicIpAddress> {
        self.snapshot.public_ips.iter().find(|ip| ip.name == name)
    }

    /// Adds a public address.
    pub(crate) fn add_public_ip(
        &mut self,
        group: &str,
        name: &str,
        address: &str,
        sku: &str,
        tags: &[(&str, &str)],
    ) {
        let tags: BTreeMap<_, _> = tags.iter().copied().collect();
        self.snapshot.public_ips.push(
            serde_json::from_value(json!({
                "id": current().public_ip_id(group, name), "name": name, "tags": tags, "sku": {"name": sku},
                "etag": "W/\"0\"", "properties": {"ipAddress": address, "publicIPAllocationMethod": "Static"}
            }))
            .expect("a public address"),
        );
    }

    pub(crate) fn add_security_rule(&mut self, name: &str, priority: u16, destination: &str) {
        let group = self.snapshot.security_group.as_mut().expect("a group");
        group.properties.security_rules.push(
            serde_json::from_value(json!({"name": name, "properties": {
                "protocol": "Tcp", "sourcePortRange": "*", "destinationPortRange": "80",
                "sourceAddressPrefix": "Internet", "destinationAddressPrefix": destination,
                "access": "Allow", "priority": priority, "direction": "Inbound"
            }}))
            .expect("a rule"),
        );
    }
}

fn sorted<T>(parts: &[T], name: impl Fn(&T) -> &String) -> Vec<&T> {
    let mut sorted: Vec<_> = parts.iter().collect();
    sorted.sort_by(|a, b| name(a).cmp(name(b)));
    sorted
}

pub(crate) fn names<P>(parts: &[&azure_loadbalancer::resources::Resource<P>]) -> Vec<String> {
    parts.iter().map(|part| part.name.clone()).collect()
}

pub(crate) fn prefix(name: &str) -> String {
    naming::prefix(name)
}
