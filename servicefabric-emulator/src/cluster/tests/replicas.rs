//! Replicas: placement, counts, processes, primaries, addresses.

use crate::cluster::testing::{SHOP, cluster, name, partition_of, pass, process, ready};
use crate::cluster::{
    Effect, ErrorCode, PartitionKey, PartitionStatus, ReplicaRole, ReplicaStatus, ServiceUpdate,
};
use crate::health::{EntityKey, HealthQuery, HealthState};
use crate::hosting::{Span, Timestamp, TypeStatus};

const WEB: &str = "fabric:/Shop/Web";
const STORE: &str = "fabric:/Shop/Store";

#[test]
fn instances_are_spread_and_answer() {
    let cluster = cluster(SHOP);
    let found = ready(&cluster, WEB);
    let nodes: std::collections::BTreeSet<&String> = found.iter().map(|(node, _)| node).collect();
    assert_eq!((found.len(), nodes.len()), (3, 3));
    for (node, address) in &found {
        let ip = &cluster.node(node).unwrap().address;
        let parsed: serde_json::Value = serde_json::from_str(address).unwrap();
        let http = parsed["Endpoints"]["http"].as_str().unwrap();
        let https = parsed["Endpoints"]["https"].as_str().unwrap();
        assert!(http.starts_with(&format!("http://{ip}:2")), "{address}");
        assert!(https.starts_with(&format!("https://{ip}:2")), "{address}");
        assert_ne!(http[4..], https[5..], "each listener has a port of its own");
    }
    assert_eq!(partition_of(&cluster, WEB).status, PartitionStatus::Ready);
}

#[test]
fn counts_are_followed_up_and_down() {
    let mut cluster = cluster(SHOP);
    for (count, expected) in [(5, 5), (1, 1), (9, 5), (0, 0), (-1, 5), (2, 2)] {
        let update = ServiceUpdate {
            instance_count: Some(count),
            ..ServiceUpdate::default()
        };
        cluster.update_service(&name(WEB), update).unwrap();
        pass(&mut cluster, 1);
        assert_eq!(ready(&cluster, WEB).len(), expected, "{count}");
    }
}

#[test]
fn what_cannot_be_placed_is_told_and_placed_when_it_can() {
    let mut cluster = cluster(SHOP);
    let update = ServiceUpdate {
        instance_count: Some(6),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(WEB), update).unwrap();
    let partition = EntityKey::Partition(partition_of(&cluster, WEB).id);
    assert_eq!(cluster.health_state(&partition), HealthState::Warning);
    assert_eq!(
        cluster.health_state(&EntityKey::Cluster),
        HealthState::Warning
    );
    let update = ServiceUpdate {
        instance_count: Some(5),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(WEB), update).unwrap();
    assert_eq!(cluster.health_state(&EntityKey::Cluster), HealthState::Ok);
}

#[test]
fn a_crash_gives_another_instance_on_the_same_node() {
    let mut cluster = cluster(SHOP);
    let before = partition_of(&cluster, WEB).replicas.clone();
    let victim = before.values().next().unwrap().clone();
    cluster
        .crash_code_package(&victim.node, &process("WebPkg"), 1)
        .unwrap();
    assert_eq!(ready(&cluster, WEB).len(), 2);
    assert!(
        cluster.replica(victim.key).is_none(),
        "an instance does not come back"
    );
    // The back-off after the first crash is 15 s.
    pass(&mut cluster, 20);
    let after = partition_of(&cluster, WEB);
    let heir = after
        .replicas
        .values()
        .find(|replica| replica.node == victim.node)
        .unwrap();
    assert_eq!(heir.status, ReplicaStatus::Ready);
    assert_ne!(heir.address, victim.address);
    assert!(heir.key.replica > victim.key.replica);
}

#[test]
fn a_process_that_keeps_crashing_drives_its_instance_to_another_node() {
    let mut cluster = cluster(SHOP);
    let victim = partition_of(&cluster, WEB)
        .replicas
        .values()
        .next()
        .unwrap()
        .clone();
    let deployed = EntityKey::Node(victim.node.clone());
    assert_eq!(cluster.health_state(&deployed), HealthState::Ok);
    // Back-offs of 15, 22.5 and 33.75 s: the third is longer than the grace of 30 s.
    for wait in [16, 23, 1] {
        cluster
            .crash_code_package(&victim.node, &process("WebPkg"), 1)
            .unwrap();
        pass(&mut cluster, wait);
    }
    let application = EntityKey::Application(name("fabric:/Shop"));
    assert_eq!(
        cluster.health_state(&application),
        HealthState::Error,
        "three crashes in a row"
    );
    // The type is disabled 30 s after the crash, and the next poll of the reconfiguration agent finds that.
    let crashed_at = cluster.now().as_millis() - 1000;
    let back = Timestamp::from_millis(crashed_at + 33_749);
    assert_eq!(ready(&cluster, WEB).len(), 2);
    cluster.advance(back);
    let service_types = cluster
        .deployed_service_types(&victim.node, &name("fabric:/Shop"))
        .unwrap();
    let web = service_types
        .iter()
        .find(|found| &*found.service_type == "WebType")
        .unwrap();
    assert_eq!(web.status, TypeStatus::Disabled);
    // The process starts again, and crashes at once: the type is disabled for longer than the agent's period.
    pass(&mut cluster, 1);
    cluster
        .crash_code_package(&victim.node, &process("WebPkg"), 1)
        .unwrap();
    pass(&mut cluster, 46);
    let partition = partition_of(&cluster, WEB);
    assert!(
        partition
            .replicas
            .values()
            .all(|replica| replica.node != victim.node)
    );
    assert_eq!(ready(&cluster, WEB).len(), 3, "another node has it");
}

#[test]
fn each_partition_of_a_stateful_service_has_one_primary() {
    let cluster = cluster(SHOP);
    let page = cluster
        .partitions(&name(STORE), &Default::default())
        .unwrap();
    assert_eq!(page.items.len(), 2);
    for partition in page.items {
        let roles: Vec<ReplicaRole> = partition
            .replicas
            .values()
            .map(|found| found.role)
            .collect();
        assert_eq!(
            roles
                .iter()
                .filter(|role| **role == ReplicaRole::Primary)
                .count(),
            1
        );
        let secondaries = roles
            .iter()
            .filter(|role| **role == ReplicaRole::ActiveSecondary);
        assert_eq!(secondaries.count(), 2);
        assert_eq!(partition.epoch.configuration_version, 1);
    }
}

#[test]
fn a_primary_whose_node_goes_is_followed_by_a_secondary_and_comes_back_as_one() {
    let mut cluster = cluster(SHOP);
    let id = partition_of(&cluster, STORE).id;
    let primary = cluster.partition(id).unwrap().primary().unwrap().clone();
    cluster.stop_node(&primary.node).unwrap();
    let partition = cluster.partition(id).unwrap();
    let heir = partition.primary().unwrap();
    assert_ne!(heir.key, primary.key);
    assert_eq!(partition.epoch.configuration_version, 2);
    assert_eq!(partition.status, PartitionStatus::Ready);
    let down = cluster.replica(primary.key).unwrap();
    assert_eq!(
        (down.status, down.role),
        (ReplicaStatus::Down, ReplicaRole::ActiveSecondary)
    );
    assert_eq!(down.address, "");
    cluster.start_node(&primary.node).unwrap();
    pass(&mut cluster, 20);
    let back = cluster.replica(primary.key).unwrap();
    assert_eq!(
        (back.status, back.role),
        (ReplicaStatus::Ready, ReplicaRole::ActiveSecondary)
    );
    assert_eq!(cluster.health_state(&EntityKey::Cluster), HealthState::Ok);
}

#[test]
fn a_replica_that_stays_away_is_replaced() {
    let mut cluster = cluster(SHOP);
    let update = ServiceUpdate {
        replica_restart_wait: Some(Span::from_secs(60)),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(STORE), update).unwrap();
    let id = partition_of(&cluster, STORE).id;
    let primary = cluster.partition(id).unwrap().primary().unwrap().clone();
    cluster.stop_node(&primary.node).unwrap();
    pass(&mut cluster, 59);
    assert!(cluster.replica(primary.key).is_some());
    pass(&mut cluster, 2);
    assert!(cluster.replica(primary.key).is_none());
    assert_eq!(cluster.partition(id).unwrap().replicas.len(), 3);
    // When the node returns, it does not keep the dropped replica.
    cluster.start_node(&primary.node).unwrap();
    pass(&mut cluster, 60);
    assert!(!cluster.is_hosted(primary.key));
}

#[test]
fn too_few_replicas_are_a_loss_of_quorum_until_they_are_back() {
    let mut cluster = cluster(SHOP);
    let id = partition_of(&cluster, STORE).id;
    let nodes: Vec<_> = cluster
        .partition(id)
        .unwrap()
        .replicas
        .values()
        .map(|found| found.node.clone())
        .collect();
    cluster.stop_node(&nodes[0]).unwrap();
    cluster.stop_node(&nodes[1]).unwrap();
    let partition = cluster.partition(id).unwrap();
    assert_eq!(partition.status, PartitionStatus::InQuorumLoss);
    let health = cluster
        .health(&EntityKey::Partition(id), &HealthQuery::default())
        .unwrap();
    assert_eq!(health.state, HealthState::Error);
    pass(&mut cluster, 10);
    cluster.start_node(&nodes[0]).unwrap();
    pass(&mut cluster, 20);
    let partition = cluster.partition(id).unwrap();
    assert_eq!(partition.status, PartitionStatus::Ready);
    assert_eq!(partition.last_quorum_loss, Span::from_secs(10));
}

#[test]
fn a_new_primary_takes_as_long_as_the_topology_says() {
    let text = format!("cluster.reconfiguration_time = \"5s\"\n{SHOP}");
    let mut cluster = cluster(&text);
    let id = partition_of(&cluster, STORE).id;
    let primary = cluster.partition(id).unwrap().primary().unwrap().clone();
    cluster.stop_node(&primary.node).unwrap();
    assert_eq!(
        cluster.partition(id).unwrap().status,
        PartitionStatus::Reconfiguring
    );
    pass(&mut cluster, 4);
    assert_eq!(
        cluster.partition(id).unwrap().status,
        PartitionStatus::Reconfiguring
    );
    pass(&mut cluster, 2);
    let partition = cluster.partition(id).unwrap();
    assert_eq!(partition.status, PartitionStatus::Ready);
    assert_ne!(partition.primary().unwrap().key, primary.key);
}

#[test]
fn a_primary_moves_to_a_node_that_has_no_replica_yet() {
    let whole = SHOP.replace(
        "partitions = { ranges = { count = 2, low = 0, high = 9 } }",
        "",
    );
    let slow = "[[behaviours]]\nmanifest = \"StorePkg\"\ndownload_time = \"30s\"\n";
    let mut cluster = cluster(&(whole + slow));
    pass(&mut cluster, 60);
    let id = partition_of(&cluster, STORE).id;
    let old = cluster.partition(id).unwrap().primary().unwrap().clone();
    let nodes = |cluster: &crate::cluster::Cluster| -> std::collections::BTreeSet<String> {
        let partition = cluster.partition(id).unwrap();
        let replicas = partition.replicas.values();
        replicas.map(|found| found.node.to_string()).collect()
    };
    let before = nodes(&cluster);
    let free = (0..5)
        .map(|number| format!("_Node_{number}"))
        .find(|name| !before.contains(name))
        .unwrap();
    cluster.move_primary(id, Some(&free)).unwrap();
    pass(&mut cluster, 29);
    let meanwhile = cluster.partition(id).unwrap().primary().unwrap();
    assert_eq!(
        meanwhile.key, old.key,
        "it stays until the other one is built"
    );
    assert_eq!(meanwhile.status, ReplicaStatus::Ready);
    pass(&mut cluster, 30);
    let new = cluster.partition(id).unwrap().primary().unwrap().clone();
    assert_eq!(*new.node, *free);
    let mut expected = before;
    expected.remove(&*old.node);
    expected.insert(free);
    assert_eq!(nodes(&cluster), expected);

    let there = cluster.move_primary(id, Some(&new.node)).unwrap_err();
    assert_eq!(there.code, ErrorCode::InvalidArgument);
}

#[test]
fn replicas_are_moved_and_removed_on_request() {
    let mut cluster = cluster(SHOP);
    let id = partition_of(&cluster, STORE).id;
    let secondary = |cluster: &crate::cluster::Cluster| {
        let partition = cluster.partition(id).unwrap();
        let mut replicas = partition.replicas.values();
        replicas
            .find(|found| found.role == ReplicaRole::ActiveSecondary)
            .unwrap()
            .clone()
    };
    let heir = secondary(&cluster);
    cluster.move_primary(id, Some(&heir.node)).unwrap();
    assert_eq!(
        cluster.partition(id).unwrap().primary().unwrap().key,
        heir.key
    );

    let moved = secondary(&cluster);
    cluster.move_secondary(id, &moved.node, None).unwrap();
    pass(&mut cluster, 1);
    assert!(cluster.replica(moved.key).is_none());
    assert_eq!(cluster.partition(id).unwrap().replicas.len(), 3);

    cluster.remove_replica(&heir.node, heir.key, false).unwrap();
    pass(&mut cluster, 1);
    let partition = cluster.partition(id).unwrap();
    assert_eq!(partition.replicas.len(), 3);
    assert!(
        partition
            .primary()
            .is_some_and(|primary| primary.status == ReplicaStatus::Ready)
    );

    let web = partition_of(&cluster, WEB).clone();
    let taken: Vec<&str> = web.replicas.values().map(|found| &*found.node).collect();
    let free = ["_Node_0", "_Node_1", "_Node_2", "_Node_3", "_Node_4"];
    let free = free.into_iter().find(|node| !taken.contains(node)).unwrap();
    cluster
        .move_instance(web.id, Some(taken[0]), Some(free))
        .unwrap();
    pass(&mut cluster, 1);
    let nodes: Vec<String> = ready(&cluster, WEB)
        .into_iter()
        .map(|(node, _)| node)
        .collect();
    assert!(nodes.len() == 3 && nodes.iter().any(|node| node == free));
    assert!(!nodes.iter().any(|node| node == taken[0]));
}

#[test]
fn a_restarted_replica_keeps_its_id_and_hands_over_before() {
    let mut cluster = cluster(SHOP);
    let id = partition_of(&cluster, STORE).id;
    let primary = cluster.partition(id).unwrap().primary().unwrap().clone();
    cluster.restart_replica(&primary.node, primary.key).unwrap();
    pass(&mut cluster, 20);
    let partition = cluster.partition(id).unwrap();
    assert_ne!(partition.primary().unwrap().key, primary.key);
    assert_eq!(
        partition.replicas[&primary.key.replica].status,
        ReplicaStatus::Ready
    );
}

#[test]
fn a_drained_instance_is_listed_but_not_resolved() {
    let mut cluster = cluster(SHOP);
    cluster.set_resolve_cache(Span::ZERO);
    let update = ServiceUpdate {
        instance_count: Some(2),
        instance_close_delay: Some(Span::from_secs(30)),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(WEB), update).unwrap();
    let resolved = cluster
        .resolve(&name(WEB), &PartitionKey::None, None)
        .unwrap();
    assert_eq!(resolved.endpoints.len(), 2);
    assert_eq!(ready(&cluster, WEB).len(), 3, "it still answers");
    pass(&mut cluster, 29);
    assert_eq!(ready(&cluster, WEB).len(), 3);
    pass(&mut cluster, 2);
    assert_eq!(ready(&cluster, WEB).len(), 2);
}

#[test]
fn a_stale_answer_is_renewed_when_it_is_challenged() {
    let mut cluster = cluster(SHOP);
    cluster.set_resolve_cache(Span::INFINITE);
    let web = name(WEB);
    let first = cluster.resolve(&web, &PartitionKey::None, None).unwrap();
    let update = ServiceUpdate {
        instance_count: Some(1),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&web, update).unwrap();
    pass(&mut cluster, 3600);
    let stale = cluster.resolve(&web, &PartitionKey::None, None).unwrap();
    assert_eq!(stale, first);
    let fresh = cluster
        .resolve(&web, &PartitionKey::None, Some(&stale.version))
        .unwrap();
    assert_eq!(fresh.endpoints.len(), 1);
    assert_ne!(fresh.version, stale.version);
    // A query with an older version gets the current content of the cache.
    let again = cluster
        .resolve(&web, &PartitionKey::None, Some(&stale.version))
        .unwrap();
    assert_eq!(again, fresh);
}

#[test]
fn workloads_publish_what_they_listen_on() {
    let topology = crate::topology::Topology::from_toml(SHOP).unwrap();
    let mut cluster = crate::cluster::Cluster::new(&topology).unwrap();
    cluster.take_effects();
    cluster.attach_workloads();
    let update = ServiceUpdate {
        instance_count: Some(4),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(WEB), update).unwrap();
    let effects = cluster.take_effects();
    let [Effect::Open(opened)] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert_eq!(opened.service.as_str(), WEB);
    let listeners: Vec<&str> = opened
        .listeners
        .iter()
        .map(|found| found.name.as_str())
        .collect();
    assert_eq!(listeners, ["http", "https"]);
    let replica = cluster.replica(opened.replica).unwrap();
    assert_eq!(replica.status, ReplicaStatus::InBuild);
    cluster.advance(Timestamp::from_secs(100));
    let address = r#"{"Endpoints":{"http":"http://127.0.0.1:8080"}}"#;
    cluster.publish_address(opened.replica, address).unwrap();
    let replica = cluster.replica(opened.replica).unwrap();
    assert_eq!(
        (replica.status, replica.address.as_str()),
        (ReplicaStatus::Ready, address)
    );
    assert_eq!(replica.last_in_build, Span::from_secs(100));

    cluster
        .crash_code_package(&opened.node, &process("WebPkg"), 1)
        .unwrap();
    let closed = Effect::Close {
        replica: opened.replica,
        aborted: true,
    };
    assert!(cluster.take_effects().contains(&closed));
}

#[test]
fn a_workload_that_cannot_listen_is_tried_elsewhere_and_told() {
    let topology = crate::topology::Topology::from_toml(SHOP).unwrap();
    let mut cluster = crate::cluster::Cluster::new(&topology).unwrap();
    cluster.attach_workloads();
    let update = ServiceUpdate {
        instance_count: Some(4),
        ..ServiceUpdate::default()
    };
    cluster.take_effects();
    cluster.update_service(&name(WEB), update).unwrap();
    let Some(Effect::Open(first)) = cluster.take_effects().pop() else {
        panic!("nothing is opened");
    };
    cluster
        .open_failed(first.replica, "address in use")
        .unwrap();
    let partition = EntityKey::Partition(first.replica.partition);
    assert_eq!(cluster.health_state(&partition), HealthState::Warning);
    let Some(Effect::Open(second)) = cluster.take_effects().pop() else {
        panic!("it is not tried again");
    };
    assert_ne!(first.node, second.node);
    cluster.publish_address(second.replica, "tcp://x").unwrap();
    assert_eq!(cluster.health_state(&partition), HealthState::Ok);
}

#[test]
fn addresses_can_be_anything() {
    let mut cluster = cluster(SHOP);
    let replica = partition_of(&cluster, WEB)
        .replicas
        .values()
        .next()
        .unwrap()
        .clone();
    for address in ["", "not json", "{\"Endpoints\":{\"\":\"https://x/y\"}}"] {
        cluster
            .override_address(replica.key, Some(address))
            .unwrap();
        assert_eq!(cluster.replica(replica.key).unwrap().address, address);
    }
    cluster.override_address(replica.key, None).unwrap();
    assert_eq!(
        cluster.replica(replica.key).unwrap().address,
        replica.address
    );
}

#[test]
fn addresses_flap() {
    let mut cluster = cluster(SHOP);
    let key = partition_of(&cluster, WEB)
        .replicas
        .values()
        .next()
        .unwrap()
        .key;
    cluster.flap_address(key, Span::from_secs(2)).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..5 {
        seen.insert(cluster.replica(key).unwrap().address.clone());
        pass(&mut cluster, 2);
    }
    assert_eq!(seen.len(), 5);
    cluster.flap_address(key, Span::ZERO).unwrap();
    let before = cluster.replica(key).unwrap().address.clone();
    pass(&mut cluster, 60);
    assert_eq!(cluster.replica(key).unwrap().address, before);
}

#[test]
fn a_partition_can_be_shown_in_any_status() {
    let mut cluster = cluster(SHOP);
    let id = partition_of(&cluster, STORE).id;
    for status in [
        PartitionStatus::InQuorumLoss,
        PartitionStatus::Reconfiguring,
    ] {
        cluster.override_partition_status(id, Some(status)).unwrap();
        pass(&mut cluster, 1);
        assert_eq!(cluster.partition(id).unwrap().status, status);
    }
    cluster.override_partition_status(id, None).unwrap();
    assert_eq!(
        cluster.partition(id).unwrap().status,
        PartitionStatus::Ready
    );
}
