//! Fixtures of tests: clusters, nodes and names.

use super::entity::{Node, NodeStatus, Partition, ReplicaStatus};
use super::{Cluster, FabricName, PageRequest};
use crate::hosting::{PackageKey, ProcessKey, Timestamp};
use crate::topology::Topology;

/// A node that is up.
pub(crate) fn node(name: &str) -> Node {
    Node {
        name: name.into(),
        address: "10.0.0.4".to_owned(),
        node_type: "Node".to_owned(),
        upgrade_domain: "0".to_owned(),
        fault_domain: "fd:/0".to_owned(),
        code_version: "9.1".to_owned(),
        config_version: "1.0".to_owned(),
        status: NodeStatus::Up,
        is_seed_node: true,
        id: String::new(),
        instance_id: 1,
        up_at: None,
        down_at: None,
        deactivation: None,
        properties: Vec::new(),
    }
}

/// A cluster of five nodes with a stateless and a stateful service.
pub(crate) const SHOP: &str = r#"
    [[application_types]]
    name = "ShopType"
    parameters = { Host = "z", Lb = "RoundRobin" }
    [application_types.service_types.WebType]
    labels = { YARP.Enable = true }
    endpoints = { http = {}, https = {} }
    [application_types.service_types.StoreType]
    kind = "stateful"

    [[application_types]]
    name = "ShopType"
    version = "2.0.0"
    based_on = "1.0.0"
    [application_types.service_types.WebType.labels]
    YARP.Routes.r1.Path = "/v2"

    [applications.Shop]
    type = "ShopType"
    parameters = { Host = "a.example" }
    [applications.Shop.services.Web]
    type = "WebType"
    instances = 3
    [applications.Shop.services.Store]
    type = "StoreType"
    partitions = { ranges = { count = 2, low = 0, high = 9 } }
"#;

/// Returns the cluster of a topology, after a second.
pub(crate) fn cluster(text: &str) -> Cluster {
    let topology = Topology::from_toml(text).unwrap_or_else(|error| panic!("{error}"));
    let mut cluster = Cluster::new(&topology).unwrap_or_else(|error| panic!("{error}"));
    cluster.advance(Timestamp::from_secs(1));
    cluster
}

pub(crate) fn name(text: &str) -> FabricName {
    FabricName::parse(text).unwrap()
}

/// The only partition of a service, or its first.
pub(crate) fn partition_of<'a>(cluster: &'a Cluster, service: &str) -> &'a Partition {
    let page = cluster
        .partitions(&name(service), &PageRequest::default())
        .unwrap();
    page.items[0]
}

/// The ready instances of a service: nodes and addresses.
pub(crate) fn ready(cluster: &Cluster, service: &str) -> Vec<(String, String)> {
    let page = cluster
        .partitions(&name(service), &PageRequest::default())
        .unwrap();
    let replicas = page
        .items
        .iter()
        .flat_map(|partition| partition.replicas.values());
    let ready = replicas.filter(|replica| replica.status == ReplicaStatus::Ready);
    ready
        .map(|replica| (replica.node.to_string(), replica.address.clone()))
        .collect()
}

/// Advances the cluster by `seconds`.
pub(crate) fn pass(cluster: &mut Cluster, seconds: u64) {
    let to = cluster.now().as_millis() + seconds * 1000;
    cluster.advance(Timestamp::from_millis(to));
}

/// The process that hosts the instances of a service type in the shared package of `fabric:/Shop`.
pub(crate) fn process(manifest: &str) -> ProcessKey {
    PackageKey::shared("fabric:/Shop", manifest).process("Code")
}
