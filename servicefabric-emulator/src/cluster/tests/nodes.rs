//! Tests of deactivation and restarts of nodes.

use crate::cluster::testing::{SHOP, cluster, name, partition_of, pass, ready};
use crate::cluster::{
    DeactivationIntent, NodeStatus, NodeStatusFilter, PageRequest, PartitionStatus, ReplicaRole,
    ReplicaStatus, ServiceUpdate,
};
use crate::health::{EntityKey, HealthState};
use crate::hosting::Span;

const WEB: &str = "fabric:/Shop/Web";
const STORE: &str = "fabric:/Shop/Store";

#[test]
fn a_node_that_is_deactivated_is_emptied_in_good_order() {
    let mut cluster = cluster(SHOP);
    let update = ServiceUpdate {
        instance_close_delay: Some(Span::from_secs(10)),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(WEB), update).unwrap();
    let node = partition_of(&cluster, WEB)
        .replicas
        .values()
        .next()
        .unwrap()
        .node
        .clone();
    cluster
        .deactivate_node(&node, DeactivationIntent::RemoveData)
        .unwrap();
    assert_eq!(cluster.node(&node).unwrap().status, NodeStatus::Disabling);
    pass(&mut cluster, 5);
    assert_eq!(
        ready(&cluster, WEB).len(),
        4,
        "the new one is there before the old one goes"
    );
    pass(&mut cluster, 6);
    assert_eq!(ready(&cluster, WEB).len(), 3);
    assert_eq!(cluster.replicas_on(&node).count(), 0);
    assert_eq!(cluster.node(&node).unwrap().status, NodeStatus::Disabled);
    let page = cluster
        .partitions(&name(STORE), &PageRequest::default())
        .unwrap();
    for partition in page.items {
        assert_eq!(partition.replicas.len(), 3);
        assert_eq!(partition.status, PartitionStatus::Ready);
    }
    cluster.activate_node(&node).unwrap();
    assert_eq!(cluster.node(&node).unwrap().status, NodeStatus::Up);
}

#[test]
fn a_restart_keeps_persisted_replicas_on_their_node() {
    let mut cluster = cluster(SHOP);
    let id = partition_of(&cluster, STORE).id;
    let primary = cluster.partition(id).unwrap().primary().unwrap().clone();
    cluster
        .deactivate_node(&primary.node, DeactivationIntent::Restart)
        .unwrap();
    let partition = cluster.partition(id).unwrap();
    assert_ne!(partition.primary().unwrap().key, primary.key);
    assert_eq!(
        partition.replicas[&primary.key.replica].status,
        ReplicaStatus::Down
    );
    assert_eq!(
        cluster.node(&primary.node).unwrap().status,
        NodeStatus::Disabled
    );
    cluster.activate_node(&primary.node).unwrap();
    pass(&mut cluster, 20);
    let back = cluster.replica(primary.key).unwrap();
    assert_eq!(
        (back.status, back.role),
        (ReplicaStatus::Ready, ReplicaRole::ActiveSecondary)
    );
}

#[test]
fn a_paused_node_keeps_what_it_has_and_takes_nothing() {
    let mut cluster = cluster(SHOP);
    let before = ready(&cluster, WEB);
    let node = before[0].0.clone();
    cluster
        .deactivate_node(&node, DeactivationIntent::Pause)
        .unwrap();
    assert_eq!(cluster.node(&node).unwrap().status, NodeStatus::Disabled);
    assert_eq!(ready(&cluster, WEB), before);
    let update = ServiceUpdate {
        instance_count: Some(5),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(WEB), update).unwrap();
    pass(&mut cluster, 1);
    assert_eq!(
        ready(&cluster, WEB).len(),
        5,
        "its own still counts, and there are four others"
    );
    cluster.activate_node(&node).unwrap();
    assert_eq!(cluster.node(&node).unwrap().status, NodeStatus::Up);
}

#[test]
fn instances_everywhere_follow_the_nodes() {
    let text = SHOP.replace("instances = 3", "instances = -1");
    let mut cluster = cluster(&text);
    assert_eq!(ready(&cluster, WEB).len(), 5);
    cluster.stop_node("_Node_2").unwrap();
    pass(&mut cluster, 1);
    assert_eq!(ready(&cluster, WEB).len(), 4);
    cluster
        .deactivate_node("_Node_3", DeactivationIntent::RemoveNode)
        .unwrap();
    pass(&mut cluster, 1);
    assert_eq!(ready(&cluster, WEB).len(), 3);
    cluster.start_node("_Node_2").unwrap();
    cluster.activate_node("_Node_3").unwrap();
    pass(&mut cluster, 20);
    assert_eq!(ready(&cluster, WEB).len(), 5);
}

#[test]
fn a_node_that_goes_takes_its_instances_along_and_has_another_life_after() {
    let mut cluster = cluster(SHOP);
    let node = ready(&cluster, WEB)[0].0.clone();
    let life = cluster.node(&node).unwrap().instance_id;
    cluster.stop_node(&node).unwrap();
    let found = cluster.node(&node).unwrap();
    assert_eq!((found.status, found.up_at), (NodeStatus::Down, None));
    let key = EntityKey::Node(node.as_str().into());
    assert_eq!(cluster.health_state(&key), HealthState::Error);
    pass(&mut cluster, 1);
    assert_eq!(ready(&cluster, WEB).len(), 3, "others take their place");
    let down = NodeStatusFilter::from_word("down").unwrap();
    assert_eq!(cluster.nodes(down, &PageRequest::default()).items.len(), 1);
    cluster.start_node(&node).unwrap();
    let found = cluster.node(&node).unwrap();
    assert!(found.status == NodeStatus::Up && found.instance_id > life);
    assert_eq!(cluster.health_state(&key), HealthState::Ok);
}

#[test]
fn constraints_that_are_changed_move_what_they_forbid() {
    let text = SHOP.replace(
        "[[application_types]]\n    name = \"ShopType\"\n    parameters",
        "[cluster]\n    nodes = [{ node_type = \"A\" }, { node_type = \"A\" }, { node_type = \"A\" }, { node_type = \"B\" }, { node_type = \"B\" }, { node_type = \"B\" }]\n    [[application_types]]\n    name = \"ShopType\"\n    parameters",
    );
    let mut cluster = cluster(&text);
    for (service, node_type, count) in [
        ("fabric:/Shop/Web", "A", 3),
        ("fabric:/Shop/Web", "B", 3),
        ("fabric:/Shop/Store", "A", 3),
        ("fabric:/Shop/Store", "B", 3),
    ] {
        let update = ServiceUpdate {
            placement_constraints: Some(format!("NodeType == {node_type}")),
            ..ServiceUpdate::default()
        };
        cluster.update_service(&name(service), update).unwrap();
        pass(&mut cluster, 600);
        let nodes = ready(&cluster, service);
        assert!(nodes.len() >= count, "{service} on {node_type}: {nodes:?}");
        for (node, _) in nodes {
            assert_eq!(
                cluster.node(&node).unwrap().node_type,
                node_type,
                "{service}"
            );
        }
    }
    // If no node is allowed, running replicas stay: the cluster never removes the last one.
    let update = ServiceUpdate {
        placement_constraints: Some("NodeType == C".to_owned()),
        ..ServiceUpdate::default()
    };
    cluster
        .update_service(&name("fabric:/Shop/Web"), update)
        .unwrap();
    pass(&mut cluster, 600);
    assert_eq!(ready(&cluster, "fabric:/Shop/Web").len(), 3);
}

#[test]
fn constraints_keep_services_on_their_nodes() {
    let text = r#"
        [[cluster.nodes]]
        node_type = "Front"
        [[cluster.nodes]]
        node_type = "Back"
        properties = { Disk = "Fast" }
        [[cluster.nodes]]
        node_type = "Back"
        [[application_types]]
        name = "ShopType"
        service_types.WebType = { placement_constraints = "NodeType == Front" }
        service_types.DbType = {}
        [applications.Shop]
        type = "ShopType"
        services.Web = { type = "WebType", instances = -1 }
        services.Db = { type = "DbType", placement_constraints = "NodeType == Back && Disk == Fast" }
    "#;
    let mut cluster = cluster(text);
    let nodes = |cluster: &crate::cluster::Cluster, service: &str| {
        let ready = ready(cluster, service).into_iter().map(|(node, _)| node);
        ready.collect::<Vec<String>>()
    };
    assert_eq!(nodes(&cluster, WEB), ["_Node_0"]);
    assert_eq!(nodes(&cluster, "fabric:/Shop/Db"), ["_Node_1"]);
    let update = ServiceUpdate {
        placement_constraints: Some("NodeType != Front".to_owned()),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(WEB), update).unwrap();
    pass(&mut cluster, 1);
    assert_eq!(nodes(&cluster, WEB).len(), 2);
}
