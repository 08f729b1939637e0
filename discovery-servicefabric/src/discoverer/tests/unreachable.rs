//! Tests that only the services that requests cannot reach are refreshed at once.

use discovery_core::Unreachable;
use proxy_model::config::DestinationConfig;
use tokio::time::Instant;

use super::*;
use crate::calls::CallErrorKind;
use crate::model::ReplicaRole;

/// Returns a discoverer in the middle of a period, after everything has settled.
async fn settled(cluster: &FakeCluster, options: ServiceFabricOptions) -> Running {
    let running = Running::start(&with_options(cluster, options));
    running.report(12).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    calls(cluster);
    running
}

fn calls(cluster: &FakeCluster) -> Vec<String> {
    let calls = cluster.all_calls();
    cluster.forget_calls();
    calls
}

impl Running {
    /// A request fails every 20 ms until `address` serves. Returns how long that took.
    async fn fails_until(&self, service: &str, address: &str) -> Duration {
        let begun = Instant::now();
        let serves = |destination: &DestinationConfig| destination.address == address;
        loop {
            let config = self.config();
            let clusters = config.clusters.values();
            if clusters.flat_map(|c| c.destinations.values()).any(serves) {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{address}");
            self.provider
                .unreachable(&service.into(), Unreachable::Destination);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The emulator that is started again has the same ids on other ports, which the probe cannot see.
#[tokio::test(start_paused = true)]
async fn instances_that_moved_with_their_ids_are_found_at_once() {
    let cluster = cluster();
    let running = settled(&cluster, ServiceFabricOptions::default()).await;
    cluster.edit(|contents| {
        contents.instances("a1", &[(1, "https://moved:1")]);
    });
    let took = running
        .fails_until("fabric:/A/S1", "https://moved:1/")
        .await;
    assert!(took < Duration::from_millis(300), "{took:?}");
    // Only the requested services were read.
    let calls = calls(&cluster);
    let expected = ["partitions A~S1", "replicas a1"];
    assert_eq!(calls[..2], expected, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_primary_costs_two_seconds_beyond_the_election() {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .application_type("T", "1", [])
            .service_type("T", "1", "S", LABELS)
            .application("fabric:/A", "T", "1", []);
        let replicas = vec![(1, "https://one:1"), (2, "https://two:2")];
        contents.stateful("fabric:/A/Db", "S", [("p", replicas)]);
    });
    let mut options = ServiceFabricOptions::default();
    options.labels.replica_selection = crate::labels::ReplicaSelection::PrimaryOnly;
    let running = settled(&cluster, options).await;
    assert_eq!(addresses_in(&running.config()), ["https://one:1/"]);
    let role = |id: i64, role: ReplicaRole| {
        cluster.edit(|contents| {
            for replica in contents.replicas.get_mut("p").unwrap() {
                if replica.replica_id == id {
                    replica.replica_role = role.clone();
                }
            }
        });
    };
    // The primary has failed, and none is elected for seven seconds: the service has no destination for a
    // while.
    role(1, ReplicaRole::None);
    let elected = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        role(2, ReplicaRole::Primary);
    };
    let failing = running.fails_until("fabric:/A/Db", "https://two:2/");
    let (took, ()) = tokio::join!(failing, elected);
    assert!(took < Duration::from_secs(9), "{took:?}");
}

/// The cluster is away, for a long time, and comes back with everything elsewhere.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_comes_back_elsewhere_is_found_within_two_seconds() {
    for away in [3, 20, 600] {
        let cluster = cluster();
        let running = settled(&cluster, ServiceFabricOptions::default()).await;
        for call in [
            "application_types",
            "applications",
            "service_types",
            "services",
            "partitions",
            "replicas",
            "replica_ids",
        ] {
            cluster.fail(call, CallErrorKind::Unreachable);
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(away) {
            running
                .provider
                .unreachable(&"fabric:/A/S1".into(), Unreachable::Destination);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(running.state(), discovery_core::SourceState::Failing);
        assert_eq!(addresses_in(&running.config())[0], "https://a1/");
        cluster.edit(|contents| {
            contents.instances("a1", &[(1, "https://moved:1")]);
        });
        cluster.heal();
        let took = running
            .fails_until("fabric:/A/S1", "https://moved:1/")
            .await;
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
}

/// The cost of hints: while requests fail, reads of the one service, and afterwards no more than before.
#[tokio::test(start_paused = true)]
async fn a_refresh_adds_no_call_once_requests_succeed_again() {
    let hour = Duration::from_secs(3_600);
    let in_an_hour = async |cluster: &FakeCluster| {
        calls(cluster);
        tokio::time::sleep(hour).await;
        let of = calls(cluster)
            .into_iter()
            .filter(|call| call.starts_with("partitions A~S1") || call.starts_with("replicas a1"));
        of.count()
    };
    let quiet = cluster();
    let _undisturbed = settled(&quiet, ServiceFabricOptions::default()).await;
    let expected = in_an_hour(&quiet).await;

    let cluster = cluster();
    let running = settled(&cluster, ServiceFabricOptions::default()).await;
    cluster.edit(|contents| {
        contents.instances("a1", &[(1, "https://moved:1")]);
    });
    running
        .fails_until("fabric:/A/S1", "https://moved:1/")
        .await;
    let refreshing = calls(&cluster).len();
    assert!((2..=6).contains(&refreshing), "{refreshing}");
    // The next refresh may be under way.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let found = in_an_hour(&cluster).await;
    assert!(
        found.abs_diff(expected) <= 1,
        "{found} calls, {expected} without it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_exist_costs_nothing() {
    let cluster = cluster();
    let running = settled(&cluster, ServiceFabricOptions::default()).await;
    running
        .provider
        .unreachable(&"fabric:/No/Such".into(), Unreachable::Cluster);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(calls(&cluster), [""; 0]);
}
