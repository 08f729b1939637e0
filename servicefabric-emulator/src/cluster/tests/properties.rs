//! Properties that hold after any sequence of operations.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::cluster::testing::{SHOP, cluster, name, pass, process};
use crate::cluster::{
    Cluster, DeactivationIntent, Effect, ErrorCode, NodeStatus, NodeStatusFilter, PageRequest,
    PartitionStatus, ReplicaRef, ReplicaRole, ReplicaStatus, ServiceScale, ServiceUpdate,
    UpgradeRequest,
};
use crate::health::{EntityKey, EntityKind, HealthReport, HealthState};
use crate::hosting::Span;

/// An operation on a cluster. Numbers are taken modulo the number of candidates.
#[derive(Clone, Debug)]
enum Operation {
    Pass(u64),
    Scale(i32),
    Replicas(u32),
    Stop(usize),
    Start(usize),
    Deactivate(usize, DeactivationIntent),
    Activate(usize),
    Crash(usize, bool),
    MoveInstance,
    MovePrimary(usize),
    Remove(usize, bool),
    Restart(usize),
    Upgrade(bool),
    RollBack,
    Report(usize, HealthState),
    Delay(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let intent = prop_oneof![
        Just(DeactivationIntent::Pause),
        Just(DeactivationIntent::Restart),
        Just(DeactivationIntent::RemoveData),
        Just(DeactivationIntent::RemoveNode),
    ];
    let state = prop_oneof![
        Just(HealthState::Ok),
        Just(HealthState::Warning),
        Just(HealthState::Error)
    ];
    prop_oneof![
        4 => (0_u64..100).prop_map(Pass),
        2 => (-1_i32..7).prop_map(Scale),
        1 => (2_u32..6).prop_map(Replicas),
        2 => (0_usize..5).prop_map(Stop),
        2 => (0_usize..5).prop_map(Start),
        1 => ((0_usize..5), intent).prop_map(|(node, intent)| Deactivate(node, intent)),
        1 => (0_usize..5).prop_map(Activate),
        3 => ((0_usize..5), any::<bool>()).prop_map(|(node, web)| Crash(node, web)),
        1 => Just(MoveInstance),
        1 => (0_usize..5).prop_map(MovePrimary),
        1 => ((0_usize..20), any::<bool>()).prop_map(|(index, force)| Remove(index, force)),
        1 => (0_usize..20).prop_map(Restart),
        1 => any::<bool>().prop_map(Upgrade),
        1 => Just(RollBack),
        1 => ((0_usize..20), state).prop_map(|(index, state)| Report(index, state)),
        1 => (0_u64..30).prop_map(Delay),
    ]
}

const WEB: &str = "fabric:/Shop/Web";
const STORE: &str = "fabric:/Shop/Store";

fn replica_at(cluster: &Cluster, index: usize) -> Option<crate::cluster::Replica> {
    let all: Vec<_> = cluster
        .partitions
        .values()
        .flat_map(|found| found.replicas.values())
        .collect();
    (!all.is_empty()).then(|| all[index % all.len()].clone())
}

/// Performs an operation. Rejections are fine, since many operations are impossible at times.
fn perform(cluster: &mut Cluster, operation: &Operation) {
    let node = |index: usize| format!("_Node_{index}");
    let shop = name("fabric:/Shop");
    let _ = match operation {
        Operation::Pass(seconds) => {
            pass(cluster, *seconds);
            Ok(())
        }
        Operation::Scale(count) => {
            let update = ServiceUpdate {
                instance_count: Some(*count),
                ..ServiceUpdate::default()
            };
            cluster.update_service(&name(WEB), update)
        }
        Operation::Replicas(count) => {
            let update = ServiceUpdate {
                target_replica_set_size: Some(*count),
                ..ServiceUpdate::default()
            };
            cluster.update_service(&name(STORE), update)
        }
        Operation::Delay(seconds) => {
            let delay = Some(Span::from_secs(*seconds));
            let update = ServiceUpdate {
                instance_close_delay: delay,
                ..ServiceUpdate::default()
            };
            cluster.update_service(&name(WEB), update)
        }
        Operation::Stop(index) => cluster.stop_node(&node(*index)),
        Operation::Start(index) => cluster.start_node(&node(*index)),
        Operation::Deactivate(index, intent) => cluster.deactivate_node(&node(*index), *intent),
        Operation::Activate(index) => cluster.activate_node(&node(*index)),
        Operation::Crash(index, web) => {
            let process = process(if *web { "WebPkg" } else { "StorePkg" });
            cluster.crash_code_package(&node(*index), &process, 1)
        }
        Operation::MoveInstance => {
            let id = *cluster
                .service(&name(WEB))
                .unwrap()
                .partitions
                .first()
                .unwrap();
            cluster.move_instance(id, None, None)
        }
        Operation::MovePrimary(index) => {
            let id = *cluster
                .service(&name(STORE))
                .unwrap()
                .partitions
                .first()
                .unwrap();
            cluster.move_primary(id, Some(&node(*index)))
        }
        Operation::Remove(index, force) => match replica_at(cluster, *index) {
            Some(replica) => cluster.remove_replica(&replica.node, replica.key, *force),
            None => Ok(()),
        },
        Operation::Restart(index) => match replica_at(cluster, *index) {
            Some(replica) => cluster.restart_replica(&replica.node, replica.key),
            None => Ok(()),
        },
        Operation::Upgrade(forward) => {
            let version = if *forward { "2.0.0" } else { "1.0.0" };
            let request = UpgradeRequest::new(version).with_wait(Span::from_secs(5));
            cluster.upgrade_application(&shop, request)
        }
        Operation::RollBack => cluster.roll_back_upgrade(&shop),
        Operation::Report(index, state) => {
            let key = replica_at(cluster, *index).map(|replica| EntityKey::Replica(replica.key));
            let report = HealthReport::new("test", "p", *state)
                .with_ttl(Span::from_secs(50), index % 2 == 0);
            cluster.report_health(key.unwrap_or(EntityKey::Cluster), report, index % 3 == 0)
        }
    };
}

fn check(cluster: &Cluster) {
    let mut on_nodes = 0;
    for entry in cluster.nodes.values() {
        on_nodes += entry.replicas.len();
        for key in &entry.replicas {
            let replica = cluster
                .replica(*key)
                .expect("a node has only replicas that there are");
            assert_eq!(replica.node, entry.node.name);
        }
        for hosted in entry.host.replicas() {
            let key = crate::cluster::failover::replica_ref(&hosted.placement.replica).unwrap();
            assert!(
                cluster.replica(key).is_some(),
                "hosting has {key}, which nobody knows"
            );
        }
        assert_eq!(entry.host.is_up(), entry.node.status != NodeStatus::Down);
    }
    let mut total = 0;
    for partition in cluster.partitions.values() {
        total += partition.replicas.len();
        let primaries = partition
            .replicas
            .values()
            .filter(|found| found.role == ReplicaRole::Primary);
        assert!(primaries.count() <= 1, "{partition:#?}");
        for replica in partition.replicas.values() {
            assert!(
                cluster
                    .health
                    .state(&EntityKey::Replica(replica.key))
                    .is_some()
            );
            if replica.status == ReplicaStatus::Ready {
                assert!(!replica.address.is_empty());
                assert_ne!(
                    cluster.node(&replica.node).unwrap().status,
                    NodeStatus::Down
                );
                assert!(cluster.is_hosted(replica.key), "{replica:?}");
            } else if replica.status == ReplicaStatus::Down {
                assert_eq!(replica.address, "");
            }
        }
        let staying = partition
            .replicas
            .values()
            .filter(|found| found.is_counted());
        let nodes: BTreeSet<_> = staying.clone().map(|found| &found.node).collect();
        assert_eq!(
            nodes.len(),
            staying.count(),
            "a node has one replica of a partition: {partition:#?}"
        );
    }
    assert_eq!(on_nodes, total);
    let counts = cluster.health.statistics(&EntityKey::Cluster).unwrap();
    assert_eq!(counts.of(EntityKind::Replica).total(), total as u64);
    assert_eq!(counts.of(EntityKind::Node).total(), 5);
    check_health(cluster, &EntityKey::Cluster);
}

/// Checks that the state of an entity is that of its worst event and of its worst child.
fn check_health(cluster: &Cluster, key: &EntityKey) -> HealthState {
    let events = cluster
        .health
        .events(key)
        .iter()
        .map(|event| event.state())
        .max();
    let mut worst = events.unwrap_or(HealthState::Ok);
    let children: Vec<EntityKey> = cluster
        .health
        .children(key)
        .map(|(child, _)| child.clone())
        .collect();
    for child in children {
        worst = worst.max(check_health(cluster, &child));
    }
    assert_eq!(cluster.health_state(key), worst, "{key}");
    worst
}

/// Checks that the cluster recovers fully once all nodes are up and active.
fn check_recovery(cluster: &mut Cluster) {
    for index in 0..5 {
        cluster.start_node(&format!("_Node_{index}")).unwrap();
        cluster.activate_node(&format!("_Node_{index}")).unwrap();
    }
    // Longer than the wait for replicas that are down, than an upgrade, and than the longest back-off here.
    for _ in 0..6 {
        pass(cluster, 3600);
        check(cluster);
    }
    let up = cluster.nodes(
        NodeStatusFilter::from_word("Up").unwrap(),
        &PageRequest::default(),
    );
    assert_eq!(up.items.len(), 5);
    for partition in cluster.partitions.values() {
        let ready = partition
            .replicas
            .values()
            .filter(|found| found.status == ReplicaStatus::Ready);
        let wanted = match partition.scale {
            ServiceScale::Stateless {
                instance_count: -1, ..
            } => 5,
            ServiceScale::Stateless { instance_count, .. } => {
                usize::try_from(instance_count).unwrap().min(5)
            }
            ServiceScale::Stateful { target, .. } => target as usize,
        };
        assert_eq!(ready.count(), wanted, "{partition:#?}");
        assert_eq!(partition.replicas.len(), wanted);
        assert_eq!(partition.status, PartitionStatus::Ready);
    }
    assert!(cluster.upgrades.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold_and_all_recovers(operations in prop::collection::vec(operation(), 1..40)) {
        let mut cluster = cluster(SHOP);
        for operation in &operations {
            perform(&mut cluster, operation);
            check(&cluster);
        }
        check_recovery(&mut cluster);
    }

    #[test]
    fn the_same_operations_give_the_same_cluster(operations in prop::collection::vec(operation(), 1..40)) {
        let run = || {
            let mut cluster = cluster(SHOP);
            for operation in &operations {
                perform(&mut cluster, operation);
            }
            format!("{cluster:?}")
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn it_does_not_matter_in_how_many_steps_time_passes(
        operations in prop::collection::vec(operation(), 1..20),
        step in 1_u64..7,
    ) {
        let run = |step: u64| {
            let mut cluster = cluster(SHOP);
            for operation in &operations {
                perform(&mut cluster, operation);
                for _ in 0..(60 / step) {
                    pass(&mut cluster, step);
                }
                pass(&mut cluster, 60 % step);
            }
            format!("{:?}", cluster.partitions)
        };
        prop_assert_eq!(run(step), run(60));
    }

    #[test]
    fn workloads_are_opened_and_closed_in_pairs(
        operations in prop::collection::vec((operation(), 0_u32..4), 1..40),
    ) {
        let topology = crate::topology::Topology::from_toml(SHOP).unwrap();
        let mut cluster = Cluster::with_workloads(&topology).unwrap();
        let mut open = BTreeSet::new();
        for (operation, failing) in &operations {
            perform(&mut cluster, operation);
            serve(&mut cluster, &mut open, *failing == 0);
            check(&cluster);
        }
        for index in 0..5 {
            cluster.start_node(&format!("_Node_{index}")).unwrap();
            cluster.activate_node(&format!("_Node_{index}")).unwrap();
        }
        for _ in 0..200 {
            pass(&mut cluster, 120);
            serve(&mut cluster, &mut open, false);
        }
        let replicas = cluster.partitions.values().flat_map(|found| found.replicas.values());
        let keys: BTreeSet<ReplicaRef> = replicas.map(|replica| replica.key).collect();
        prop_assert_eq!(keys, open);
        check_recovery(&mut cluster);
    }
}

/// Serves the requests to workloads until there are none. The first replica to open may fail.
fn serve(cluster: &mut Cluster, open: &mut BTreeSet<ReplicaRef>, mut fail: bool) {
    loop {
        let effects = cluster.take_effects();
        if effects.is_empty() {
            return;
        }
        for effect in effects {
            match effect {
                Effect::Open(opened) => {
                    let key = opened.replica;
                    assert!(open.insert(key), "{key} is opened twice");
                    let result = if std::mem::take(&mut fail) {
                        cluster.open_failed(key, "no port")
                    } else {
                        cluster.publish_address(key, "http://127.0.0.1:80")
                    };
                    // The replica may have gone or be down already. A later effect closes it then.
                    if let Err(error) = result {
                        let gone = matches!(
                            error.code,
                            ErrorCode::ReplicaDoesNotExist | ErrorCode::NotReady
                        );
                        assert!(gone, "{error}");
                    }
                }
                Effect::Close { replica, .. } => {
                    assert!(
                        open.remove(&replica),
                        "{replica} is closed without being open"
                    );
                }
                Effect::Role { replica, .. } => {
                    assert!(open.contains(&replica), "{replica} is not open")
                }
            }
        }
    }
}
