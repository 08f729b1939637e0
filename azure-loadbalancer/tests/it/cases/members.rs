use std::time::Duration;

use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::config::{Config, LoadBalancerSku, PoolMembership};
use azure_loadbalancer::node::{Readiness, labels};
use azure_loadbalancer::resources::{
    ArmId, ProvisioningState, ScaleSet, ScaleSetInstance, SubResource,
};
use azure_loadbalancer::{Node, plan};
use serde_json::json;

use crate::support::*;

fn standard() -> Config {
    Config {
        load_balancer_sku: LoadBalancerSku::Standard,
        ..note()
    }
}

fn pools(azure: &Azure, nic: usize) -> Vec<String> {
    let configuration = &azure.snapshot.network_interfaces[nic]
        .properties
        .ip_configurations[0];
    let pools = configuration
        .properties
        .load_balancer_backend_address_pools
        .iter();
    let names = pools.filter_map(|pool| Some(pool.id.as_ref()?.parent()?.name().to_owned()));
    names.collect()
}

pub(super) fn nodes(count: u8) -> Vec<Node> {
    (0..count)
        .map(|i| {
            Node::new(
                format!("n{i}"),
                format!("10.0.5.{i}").parse().expect("it is valid"),
            )
        })
        .collect()
}

pub(super) fn members(azure: &Azure) -> Vec<String> {
    let pool = &azure
        .balancer_named("testCluster")
        .properties
        .backend_address_pools[0];
    let mut names: Vec<_> = pool
        .properties
        .load_balancer_backend_addresses
        .iter()
        .flatten()
        .map(|a| a.name.clone())
        .collect();
    names.sort();
    names
}

// Case H2.
#[test]
fn machines_of_the_set_join_the_pool_once() {
    let (mut azure, nodes) = cluster(4, 2);
    let services = [
        service("a", &[80]),
        with(service("b", &[80]), keys::MODE, "as-1"),
        internal("c", &[80]),
    ];
    azure.converge(&note(), &services, &nodes);
    assert_eq!(
        [pools(&azure, 0), pools(&azure, 2)],
        [
            ["testCluster", "testCluster-internal"],
            ["testCluster", "testCluster-internal"]
        ]
    );
    assert_eq!([pools(&azure, 1), pools(&azure, 3)], [["as-1"], ["as-1"]]);
    assert_eq!(
        azure.converge(&note(), &services, &nodes).1,
        Vec::<String>::new()
    );
}

// Case H4.
#[test]
fn with_standard_load_balancers_all_sets_join() {
    let (mut azure, mut nodes) = cluster(4, 2);
    nodes[1]
        .labels
        .insert(labels::CONTROL_PLANE.to_owned(), String::new());
    nodes[2]
        .labels
        .insert(labels::EXCLUDED.to_owned(), String::new());
    azure.snapshot.network_interfaces[3]
        .properties
        .provisioning_state = Some(ProvisioningState::Failed);
    azure.converge(&standard(), &[service("a", &[80])], &nodes);
    assert_eq!(pools(&azure, 0), ["testCluster"]);
    for nic in 1..4 {
        assert!(pools(&azure, nic).is_empty(), "{nic}");
    }
}

#[test]
fn nodes_of_other_groups_and_of_no_group_take_no_part() {
    let (mut azure, mut nodes) = cluster(3, 1);
    nodes[0]
        .labels
        .insert(labels::RESOURCE_GROUP.to_owned(), "other".to_owned());
    nodes[1]
        .labels
        .insert(labels::MANAGED.to_owned(), "false".to_owned());
    nodes[2]
        .labels
        .insert(labels::RESOURCE_GROUP.to_owned(), "RG".to_owned());
    azure.converge(&note(), &[service("a", &[80])], &nodes);
    assert_eq!(
        [
            pools(&azure, 0).len(),
            pools(&azure, 1).len(),
            pools(&azure, 2).len()
        ],
        [0, 0, 1]
    );
}

// Case H5.
#[test]
fn a_machine_is_in_one_standard_load_balancer_of_each_kind() {
    let (mut azure, nodes) = cluster(1, 1);
    let other = standard()
        .load_balancer_id("other")
        .child("backendAddressPools", "p");
    let properties = &mut azure.snapshot.network_interfaces[0]
        .properties
        .ip_configurations[0]
        .properties;
    properties
        .load_balancer_backend_address_pools
        .push(SubResource::to(other));
    // The pool of another load balancer is not checked by the resource manager of these tests.
    let services = [service("a", &[80]), internal("b", &[80])];
    let plan = plan(&standard(), &services, &nodes, &azure.snapshot);
    let joins: Vec<_> = plan
        .actions
        .iter()
        .filter(|a| a.operation.verb() == "put networkInterface")
        .collect();
    assert_eq!(joins.len(), 1);
    assert_eq!(joins[0].reasons.len(), 1);
    assert!(joins[0].reasons[0].contains("testCluster-internal"));
}

fn scale_set(azure: &mut Azure, instances: usize) -> Vec<Node> {
    let id = ArmId::of_provider(
        "subscription",
        "rg",
        "Microsoft.Compute",
        "virtualMachineScaleSets",
        "VMSS",
    );
    let profile = json!({"networkInterfaceConfigurations": [{"name": "nic", "properties": {"primary": true,
        "ipConfigurations": [{"name": "ip", "properties": {"primary": true}}]}}]});
    let set: ScaleSet = serde_json::from_value(json!({"id": id, "name": "VMSS",
        "properties": {"virtualMachineProfile": {"networkProfile": profile}}}))
    .expect("it is valid");
    azure.snapshot.scale_sets.push(set);
    (0..instances)
        .map(|index| {
            let own = id.child("virtualMachines", &index.to_string());
            let instance: ScaleSetInstance = serde_json::from_value(json!({"id": own, "name": format!("vmss_{index}"),
                "properties": {"latestModelApplied": true, "networkProfileConfiguration": profile}})).expect("it is valid");
            azure.snapshot.scale_set_instances.push(instance);
            let provider_id = Some(format!("azure://{own}").to_uppercase().replace("AZURE://", "azure://"));
            Node { provider_id, ..Node::new(format!("node{index}"), format!("10.0.6.{index}").parse().expect("it is valid")) }
        })
        .collect()
}

// Case H8.
#[test]
fn a_scale_set_joins_by_its_model_and_leaves_before_the_load_balancer_goes() {
    let mut azure = empty();
    let nodes = scale_set(&mut azure, 2);
    let (_, log) = azure.converge(&standard(), &[service("a", &[80])], &nodes);
    let model = log
        .iter()
        .position(|line| line == "put virtualMachineScaleSet VMSS")
        .expect("the model");
    assert_eq!(log[model + 1], "upgrade virtualMachineScaleSet VMSS");
    assert!(log[..model].contains(&"put loadBalancer testCluster".to_owned()));
    // A machine that has not followed is upgraded alone.
    let properties = &mut azure.snapshot.scale_set_instances[1].properties;
    properties.network_profile_configuration = None;
    properties.latest_model_applied = Some(false);
    let (_, log) = azure.converge(&standard(), &[service("a", &[80])], &nodes);
    assert_eq!(log, ["upgrade virtualMachineScaleSet VMSS"]);
    let (_, log) = azure.converge(&standard(), &[deleting(service("a", &[80]))], &nodes);
    assert_eq!(
        log,
        [
            "put networkSecurityGroup nsg",
            "put virtualMachineScaleSet VMSS",
            "upgrade virtualMachineScaleSet VMSS",
            "delete loadBalancer testCluster",
            "delete publicIPAddress testCluster-aa"
        ]
    );
}

// Case H12.
#[test]
fn pools_of_addresses_follow_the_nodes_in_any_order() {
    let mut azure = empty();
    let services = [service("a", &[80])];
    azure.converge(&current(), &services, &nodes(3));
    assert_eq!(members(&azure), ["n0", "n1", "n2"]);
    let mut turned = nodes(3);
    turned.reverse();
    assert_eq!(
        azure.converge(&current(), &services, &turned).1,
        Vec::<String>::new()
    );
    let (_, log) = azure.converge(&current(), &services, &nodes(5)[1..]);
    assert_eq!(log, ["put backendAddressPool testCluster"]);
    assert_eq!(members(&azure), ["n1", "n2", "n3", "n4"]);
    // Together with another change it is one write.
    let (_, log) = azure.converge(&current(), &[service("a", &[81])], &nodes(2));
    assert_eq!(
        log,
        [
            "put loadBalancer testCluster",
            "put networkSecurityGroup nsg"
        ]
    );
}

// Case H13.
#[test]
fn a_node_that_is_shortly_not_ready_stays_and_does_not_join() {
    let mut azure = empty();
    let services = [service("a", &[80])];
    azure.converge(&current(), &services, &nodes(2));
    let with_state = |seconds| {
        let mut nodes = nodes(3);
        for node in &mut nodes[1..] {
            node.readiness = Readiness::NotReady(Duration::from_secs(seconds));
        }
        nodes
    };
    assert_eq!(
        azure.converge(&current(), &services, &with_state(59)).1,
        Vec::<String>::new()
    );
    azure.converge(&current(), &services, &with_state(60));
    assert_eq!(members(&azure), ["n0"]);
}

#[test]
fn a_service_that_cannot_be_does_not_keep_nodes_from_the_others() {
    let mut azure = empty();
    azure.converge(&current(), &[service("a", &[80])], &nodes(2));
    let broken = with(service("a", &[80]), keys::TCP_IDLE_TIMEOUT, "x");
    let (plan, log) = azure.converge(&current(), &[broken], &nodes(3));
    assert!(plan.services[&key("a")].error.is_some());
    assert_eq!(log, ["put backendAddressPool testCluster"]);
}

#[test]
fn members_of_the_other_kind_stay_and_are_told() {
    let interfaces = json!({ "backendIPConfigurations": [{ "id": "/x/ipConfigurations/c" }], "loadBalancerBackendAddresses": [{ "name": "nic_c", "properties": {} }] });
    let addresses = json!({ "loadBalancerBackendAddresses": [{ "name": "n", "properties": { "ipAddress": "10.0.0.7" } }] });
    let by_interface = Config {
        backend_pool_type: PoolMembership::NetworkInterface,
        ..current()
    };
    for (config, members, mend) in [
        (current(), interfaces, "nodeIPConfiguration"),
        (by_interface, addresses, "backendPoolType nodeIP,"),
    ] {
        let (mut azure, mut members_of_cluster) = cluster(2, 1);
        members_of_cluster.extend(nodes(2));
        azure.converge(&current(), &[service("a", &[80])], &[]);
        let mut document = serde_json::to_value(&azure.snapshot.load_balancers[0]).unwrap();
        let pool = &mut document["properties"]["backendAddressPools"][0];
        pool["properties"] = members.clone();
        azure.snapshot.load_balancers[0] = serde_json::from_value(document).unwrap();

        let services = [service("a", &[80]), service("b", &[81])];
        let (plan, log) = azure.converge(&config, &services, &members_of_cluster);
        let told: Vec<_> = plan
            .warnings
            .iter()
            .map(|warning| warning.what.as_str())
            .collect();
        assert!(told.iter().any(|what| what.contains(mend)), "{told:?}");
        assert!(
            log.iter().all(|line| !line.contains("networkInterface")),
            "{log:?}"
        );
        let after = serde_json::to_value(&azure.snapshot.load_balancers[0]).unwrap();
        let pool = &after["properties"]["backendAddressPools"][0]["properties"];
        for (field, value) in members.as_object().unwrap() {
            assert_eq!(pool[field], *value, "{field}");
        }
        assert_eq!(plan.services[&key("b")].error, None);
        assert_eq!(azure.frontends("testCluster").len(), 2);
    }
}

/// A node that cannot be read keeps its memberships, since its readiness is unknown.
#[test]
fn a_node_that_cannot_be_read_stays_where_it_is() {
    let mut azure = empty();
    let node = |number: u8| Node::new(format!("n{number}"), [10, 0, 1, number].into());
    let services = [with(
        service("web", &[80]),
        keys::DISABLE_FLOATING_IP,
        "true",
    )];
    azure.converge(&current(), &services, &[node(1), node(2)]);
    let unreadable = |name: &str| Node {
        name: name.to_owned(),
        unreadable: Some("no addresses".to_owned()),
        ..Node::default()
    };
    // Another node seems to have its address by now, and a third was never a member.
    let twin = Node::new("twin", [10, 0, 1, 1].into());
    let nodes = [unreadable("n1"), twin, node(3), unreadable("n4")];
    let (plan, _) = azure.converge(&current(), &services, &nodes);
    let pool = &azure.balancer_named("testCluster").properties;
    let entries = pool.backend_address_pools[0]
        .properties
        .load_balancer_backend_addresses
        .as_ref();
    let names: Vec<_> = entries.expect("members").iter().map(|e| &e.name).collect();
    assert_eq!(names, ["n1", "n3"]);
    let rule = azure.security_rules()[0].properties.clone();
    assert_eq!(rule.destination_address_prefixes, ["10.0.1.1", "10.0.1.3"]);
    // An excluded node leaves all the same.
    let mut excluded = unreadable("n1");
    excluded
        .labels
        .insert(labels::EXCLUDED.to_owned(), String::new());
    let (_, log) = azure.converge(&current(), &services, &[excluded, node(3)]);
    assert!(
        log.contains(&"put backendAddressPool testCluster".to_owned()),
        "{log:?}"
    );
    for name in ["n1", "n4"] {
        let says = format!("node {name} cannot be read: no addresses");
        assert!(plan.warnings.iter().any(|one| one.what.contains(&says)));
    }
}

#[test]
fn a_machine_whose_node_cannot_be_read_does_not_join() {
    let (mut azure, mut nodes) = cluster(2, 1);
    nodes[0].unreadable = Some("no addresses".to_owned());
    let (_, log) = azure.converge(&note(), &[service("web", &[80])], &nodes);
    assert!(
        log.contains(&"put networkInterface nic-1".to_owned()),
        "{log:?}"
    );
    assert!(
        !log.contains(&"put networkInterface nic-0".to_owned()),
        "{log:?}"
    );
}

/// Packets for a floating address would reach a machine that does not accept them.
#[test]
fn a_node_that_answers_at_its_own_address_only_gets_no_floating_ones_unwarned() {
    let mut azure = empty();
    let own = Node {
        own_address_only: true,
        ..Node::new("n1", [10, 0, 1, 1].into())
    };
    let floats = service("floats", &[80]);
    let plain = with(service("plain", &[81]), keys::DISABLE_FLOATING_IP, "true");
    let services = [floats, plain];
    let (plan, _) = azure.converge(&current(), &services, std::slice::from_ref(&own));
    let warned: Vec<_> = plan
        .warnings
        .iter()
        .filter(|one| one.what.contains(keys::DISABLE_FLOATING_IP))
        .filter_map(|one| Some(one.service.as_ref()?.name.as_str()))
        .collect();
    assert_eq!(warned, ["floats"]);
    let of_kubernetes = Node {
        own_address_only: false,
        ..own
    };
    let (plan, _) = azure.converge(&current(), &services, &[of_kubernetes]);
    assert_eq!(plan.warnings, []);
}

pub(super) fn warned(plan: &azure_loadbalancer::Plan, words: &str) -> bool {
    plan.warnings.iter().any(|one| one.what.contains(words))
}

/// The pool keeps its members, and their security rules, because a controller that sees no node has more
/// often lost its own view.
#[test]
fn a_pool_keeps_its_members_while_no_node_takes_part() {
    let not_ready = |number: u8| Node {
        readiness: Readiness::NotReady(Duration::from_secs(3_600)),
        ..Node::new(format!("n{number}"), [10, 0, 5, number].into())
    };
    let services = [with(
        service("web", &[80]),
        keys::DISABLE_FLOATING_IP,
        "true",
    )];
    let untold = [
        vec![],
        vec![not_ready(0), not_ready(1)],
        vec![Node {
            readiness: Readiness::NotReady(Duration::from_secs(1)),
            ..Node::new("stranger", [10, 0, 5, 9].into())
        }],
    ];
    for nodes_now in untold {
        let mut azure = empty();
        azure.converge(&current(), &services, &nodes(2));
        let (plan, log) = azure.converge(&current(), &services, &nodes_now);
        assert_eq!(log, Vec::<String>::new(), "{nodes_now:?}");
        assert_eq!(members(&azure), ["n0", "n1"]);
        assert!(
            warned(&plan, "keeps its members (2)"),
            "{:?}",
            plan.warnings
        );
        assert!(plan.pools_kept);
        // One participating node is enough for the others to leave.
        let (plan, _) = azure.converge(&current(), &services, &nodes(1));
        assert_eq!(members(&azure), ["n0"]);
        assert!(!plan.pools_kept && plan.warnings.is_empty(), "{plan:#?}");
        // Zero accepts an empty list.
        let at_once = Config {
            empty_grace: Some(Duration::ZERO),
            ..current()
        };
        let (plan, _) = azure.converge(&at_once, &services, &nodes_now);
        assert_eq!(members(&azure), Vec::<String>::new());
        assert!(warned(&plan, "no node answers for its services"));
    }
}

/// Nodes that are explicitly excluded leave, even as the last ones.
#[test]
fn the_last_members_leave_when_they_are_told_to() {
    let mut azure = empty();
    let services = [service("web", &[80])];
    azure.converge(&current(), &services, &nodes(2));
    let mut excluded = nodes(1);
    excluded[0]
        .labels
        .insert(labels::EXCLUDED.to_owned(), String::new());
    azure.converge(&current(), &services, &excluded);
    assert_eq!(members(&azure), ["n1"]);
    let mut all = nodes(2);
    for node in &mut all {
        node.labels
            .insert(labels::EXCLUDED.to_owned(), String::new());
    }
    let (plan, _) = azure.converge(&current(), &services, &all);
    assert_eq!(members(&azure), Vec::<String>::new());
    assert!(warned(&plan, "none of 2 known nodes takes part"));
}

/// Interfaces leave the cluster's pool with their nodes, but not if no node is known.
#[test]
fn interfaces_leave_with_their_nodes() {
    let config = Config {
        backend_pool_type: PoolMembership::NetworkInterface,
        ..current()
    };
    let services = [service("a", &[80])];
    let (start, nodes) = {
        let (mut azure, nodes) = cluster(3, 1);
        azure.converge(&config, &services, &nodes);
        (azure, nodes)
    };
    let label = |node: &Node, key: &str, value: &str| {
        let mut node = node.clone();
        node.labels.insert(key.to_owned(), value.to_owned());
        node
    };
    let not_ready = |node: &Node, seconds: u64| Node {
        readiness: Readiness::NotReady(Duration::from_secs(seconds)),
        ..node.clone()
    };
    let unreadable = |node: &Node| Node {
        unreadable: Some("of two minds".to_owned()),
        ..not_ready(node, 3_600)
    };
    let unknown = Node::new("elsewhere", [10, 0, 1, 99].into());
    let [a, b, c] = [&nodes[0], &nodes[1], &nodes[2]].map(Clone::clone);
    for (about, now, members) in [
        ("all", vec![a.clone(), b.clone(), c.clone()], [1, 1, 1]),
        ("one is gone", vec![a.clone(), b.clone()], [1, 1, 0]),
        (
            "one is excluded",
            vec![a.clone(), b.clone(), label(&c, labels::EXCLUDED, "")],
            [1, 1, 0],
        ),
        (
            "one is unmanaged",
            vec![a.clone(), b.clone(), label(&c, labels::MANAGED, "false")],
            [1, 1, 0],
        ),
        (
            "one is not ready",
            vec![a.clone(), b.clone(), not_ready(&c, 3_600)],
            [1, 1, 0],
        ),
        (
            "one is not ready for a moment",
            vec![a.clone(), b.clone(), not_ready(&c, 10)],
            [1, 1, 1],
        ),
        (
            "one cannot be read",
            vec![a.clone(), b.clone(), unreadable(&c)],
            [1, 1, 1],
        ),
        (
            "names do not fit",
            vec![a.clone(), b.clone(), unknown],
            [1, 1, 1],
        ),
        ("nobody is seen", vec![], [1, 1, 1]),
        (
            "nobody is ready",
            vec![not_ready(&a, 3_600), not_ready(&b, 3_600)],
            [1, 1, 1],
        ),
        (
            "nobody is ready, one is told to go",
            vec![not_ready(&a, 3_600), label(&b, labels::EXCLUDED, "")],
            [1, 0, 1],
        ),
    ] {
        let mut azure = start.clone();
        let (_, log) = azure.converge(&config, &services, &now);
        let found = [0, 1, 2].map(|nic| pools(&azure, nic).len());
        assert_eq!(found, members, "{about}");
        let writes = members.iter().filter(|count| **count == 0).count();
        assert_eq!(log.len(), writes, "{about}: {log:?}");
        // A returning node becomes a member again.
        azure.converge(&config, &services, &nodes);
        assert_eq!(
            [0, 1, 2].map(|nic| pools(&azure, nic).len()),
            [1, 1, 1],
            "{about}"
        );
    }
    // In the edition of 2018 no node leaves.
    let (mut azure, nodes) = cluster(2, 1);
    azure.converge(&note(), &services, &nodes);
    let (_, log) = azure.converge(&note(), &services, &nodes[..1]);
    assert_eq!(log, Vec::<String>::new());
}
