//! The effects of the nodes' life on the cluster.

use crate::cluster::testing::{SHOP, cluster, name, partition_of, pass, process};
use crate::cluster::{Cluster, ReplicaStatus};
use crate::health::EntityKey;

const STORE: &str = "fabric:/Shop/Store";

/// A stateful service whose process needs 50 s to restart, so that its type is disabled first.
fn slow_restarts(replicas: u32) -> Cluster {
    cluster(&format!(
        r#"
        [hosting]
        ActivationRetryBackoffExponentiationBase = "constant"
        ActivationRetryBackoffInterval = 50
        [[application_types]]
        name = "ShopType"
        [application_types.service_types.StoreType]
        kind = "stateful"
        [applications.Shop]
        type = "ShopType"
        [applications.Shop.services.Store]
        type = "StoreType"
        replicas = {replicas}
        "#
    ))
}

#[test]
fn a_persisted_replica_survives_a_crash_that_disables_its_type() {
    for replicas in [1, 3] {
        let mut cluster = slow_restarts(replicas);
        let before = partition_of(&cluster, STORE).clone();
        let primary = before.primary().unwrap().clone();
        cluster
            .crash_code_package(&primary.node, &process("StorePkg"), 1)
            .unwrap();
        // The replica is requested after the type was disabled.
        pass(&mut cluster, 48);
        let down = cluster
            .replica(primary.key)
            .expect("its state is on the disk");
        assert_eq!(down.status, ReplicaStatus::Down);
        pass(&mut cluster, 5);
        let back = cluster.replica(primary.key).unwrap();
        assert_eq!(
            (back.status, &back.node),
            (ReplicaStatus::Ready, &primary.node)
        );
        let after = partition_of(&cluster, STORE);
        assert_eq!(after.replicas.len(), before.replicas.len());
        assert_eq!(
            after.epoch.data_loss_version,
            before.epoch.data_loss_version
        );
    }
}

/// Returns the entities of nodes that the health store has below an application, as texts.
fn deployed(cluster: &Cluster, node: &str) -> Vec<String> {
    let application = EntityKey::Application(name("fabric:/Shop"));
    let mut found = Vec::new();
    for (key, _) in cluster.health_store().children(&application) {
        if matches!(key, EntityKey::DeployedApplication { node: on, .. } if &**on == node) {
            found.push(format!("{key:?}"));
            let below = cluster.health_store().children(key);
            found.extend(below.map(|(key, _)| format!("{key:?}")));
        }
    }
    found
}

#[test]
fn nothing_deployed_is_left_of_a_node_that_stopped() {
    let mut cluster = cluster(SHOP);
    let primary = partition_of(&cluster, STORE).primary().unwrap().clone();
    assert!(!deployed(&cluster, &primary.node).is_empty());
    cluster.stop_node(&primary.node).unwrap();
    pass(&mut cluster, 100);
    assert_eq!(deployed(&cluster, &primary.node), Vec::<String>::new());
}

#[test]
fn a_package_that_was_given_up_is_not_in_the_health_store() {
    let text = format!(
        r#"{SHOP}
        [[behaviours]]
        manifest = "WebPkg"
        activation_failures = 1000
        [hosting]
        ActivationMaxFailureCount = 2
        "#
    );
    let mut cluster = cluster(&text);
    let application = name("fabric:/Shop");
    let nodes = ["_Node_0", "_Node_1", "_Node_2", "_Node_3", "_Node_4"];
    let mut seen = 0;
    // Attempts happen at 0 and 10 s, and again whenever a replica is polled.
    for _ in 0..20 {
        for node in nodes {
            let hosted = cluster.deployed_packages(node, &application).unwrap();
            let stored = deployed(&cluster, node);
            let packages = stored
                .iter()
                .filter(|key| key.starts_with("DeployedServicePackage"));
            assert_eq!(
                packages.count(),
                hosted.len(),
                "{node} at {}: {hosted:?}, {stored:?}",
                cluster.now()
            );
            seen += hosted.len();
        }
        pass(&mut cluster, 2);
    }
    assert!(seen > 0);
}
