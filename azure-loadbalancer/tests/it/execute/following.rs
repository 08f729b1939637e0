//! Changing services and nodes.

use std::time::Duration;

use azure_loadbalancer::Config;
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, Fault, FaultAction};
use azure_loadbalancer::execute::{FollowOptions, ReconcileError, Reconciled, follow};
use azure_loadbalancer::sources::memory;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::execute::world::*;

#[tokio::test(start_paused = true)]
async fn what_changes_is_followed_and_what_fails_is_tried_again() {
    let emulator = azure(EmulatorOptions::default());
    let (services, mut service_source) = memory(vec![service("a", &[80])]);
    let (members, mut node_source) = memory(nodes(2));
    let (told, mut reports) = mpsc::unbounded_channel();
    let executor = executor(&emulator);
    let task = tokio::spawn(async move {
        follow(
            &executor,
            &mut service_source,
            &mut node_source,
            &FollowOptions::default(),
            &mut |report: &Result<Reconciled, ReconcileError>| {
                let shown = report.as_ref().map(|report| report.calls.writes);
                told.send(shown.map_err(ToString::to_string)).unwrap();
            },
        )
        .await;
    });
    let mut next = async || {
        timeout(Duration::from_secs(3_600), reports.recv())
            .await
            .unwrap()
            .unwrap()
    };
    assert!(
        next().await.unwrap() >= 3,
        "an address, a load balancer, a security group"
    );

    // Many simultaneous changes count as one.
    for count in 3..8 {
        members.publish(nodes(count));
    }
    services.publish(vec![service("a", &[80, 81])]);
    assert!(next().await.unwrap() <= 2);

    // The resource manager is unreachable for a while.
    let down = FaultAction::Answer {
        status: 403,
        code: "AuthorizationFailed".to_owned(),
        retry_after: None,
    };
    emulator.with(|machine| machine.inject(Fault::new(down).times(2)));
    members.publish(nodes(1));
    assert!(next().await.is_err());
    assert!(next().await.is_err());
    assert_eq!(next().await.unwrap(), 1);

    // A drift is corrected periodically.
    emulator.with(|machine| {
        let mut group = machine
            .get(&network("networkSecurityGroups", "nsg"))
            .unwrap();
        group["properties"]["securityRules"] = serde_json::json!([]);
        machine
            .put(&network("networkSecurityGroups", "nsg"), group)
            .unwrap();
    });
    sleep(FollowOptions::default().resync).await;
    assert_eq!(next().await.unwrap(), 1);
    task.abort();
}

/// Returns the number of members of the cluster's pool.
fn members(emulator: &Emulator) -> usize {
    let all = contents(emulator);
    let Some(balancer) = all.get(&network("loadBalancers", "testCluster").to_lowercase()) else {
        return 0;
    };
    let pool = &balancer["properties"]["backendAddressPools"][0]["properties"];
    pool["loadBalancerBackendAddresses"]
        .as_array()
        .map_or(0, Vec::len)
}

/// Waits until the pool has this number of members, and returns the seconds that it took.
async fn time_until(emulator: &Emulator, count: usize) -> u64 {
    let began = Instant::now();
    while members(emulator) != count {
        assert!(began.elapsed() < Duration::from_secs(3_600), "{count}");
        sleep(Duration::from_millis(100)).await;
    }
    began.elapsed().as_secs()
}

/// A pool without eligible nodes keeps its members for `emptyGraceSeconds`, and not until the next resync. A node that
/// comes back, and a new configuration, neither shorten nor extend the time.
#[tokio::test(start_paused = true)]
async fn a_pool_without_nodes_is_empty_after_its_grace() {
    const GRACE: u64 = 120;
    let emulator = azure(EmulatorOptions::default().operation_requests(0));
    let with_grace = || Config {
        empty_grace: Some(Duration::from_secs(GRACE)),
        ..config()
    };
    let (_services, mut service_source) = memory(vec![service("a", &[80])]);
    let (published, mut node_source) = memory(nodes(2));
    let mut executor = executor_of(&emulator, &with_grace());
    let options = FollowOptions::default();
    assert!(options.resync > Duration::from_secs(2 * GRACE));
    let mut ignore = |_: &Result<Reconciled, ReconcileError>| {};
    let mut steps = Box::pin(async {
        time_until(&emulator, 2).await;
        // The nodes are away for a part of the grace, and come back.
        published.publish(Vec::new());
        sleep(Duration::from_secs(GRACE * 3 / 4)).await;
        assert_eq!(members(&emulator), 2);
        published.publish(nodes(1));
        time_until(&emulator, 1).await;
        published.publish(Vec::new());
        sleep(Duration::from_secs(GRACE / 2)).await;
        assert_eq!(members(&emulator), 1);
    });
    tokio::select! {
        () = follow(&executor, &mut service_source, &mut node_source, &options, &mut ignore) => {}
        () = &mut steps => {}
    }
    // The configuration changes: another executor continues with the same time.
    executor = executor_of(&emulator, &with_grace()).continuing(&executor);
    let (_nodes, mut node_source) = memory(Vec::new());
    let (_services, mut service_source) = memory(vec![service("a", &[80])]);
    let waited = tokio::select! {
        () = follow(&executor, &mut service_source, &mut node_source, &options, &mut ignore) => 0,
        waited = time_until(&emulator, 0) => waited,
    };
    // The time of the change, of the debounce and of the write.
    let left = GRACE / 2;
    assert!((left - 2..=left + 2).contains(&waited), "after {waited} s");
}
