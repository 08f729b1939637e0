//! Changing services and nodes.

use std::time::Duration;

use azure_loadbalancer::emulator::{EmulatorOptions, Fault, FaultAction};
use azure_loadbalancer::execute::{FollowOptions, ReconcileError, Reconciled, follow};
use azure_loadbalancer::sources::memory;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

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
