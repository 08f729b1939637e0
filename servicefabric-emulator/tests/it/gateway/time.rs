//! Virtual time that follows the real clock.

use std::time::Duration;

use servicefabric_emulator::cluster::PageRequest;
use servicefabric_emulator::gateway::Emulator;
use servicefabric_emulator::hosting::Timestamp;
use testkit::body;
use testkit::time::eventually;

use super::{Gateway, builder, text, topology};

#[tokio::test(start_paused = true)]
async fn time_goes_as_fast_as_it_is_told() {
    let emulator = Emulator::builder(topology())
        .listen("127.0.0.1:0")
        .speed(10.0)
        .start()
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let now = emulator.now();
    assert!(now >= Timestamp::from_secs(60), "{now}");
    assert!(now < Timestamp::from_secs(61), "{now}");
    emulator.advance(Duration::from_secs(100));
    assert!(emulator.now() >= Timestamp::from_secs(160));
    emulator.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_due_happens_without_anybody_asking() {
    let emulator = Emulator::builder(topology())
        .listen("127.0.0.1:0")
        .speed(1.0)
        .start()
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    // An access brings the cluster to the present, so there is only one, and only the end counts.
    let ready = emulator.with_cluster(|cluster| {
        let page = PageRequest::default();
        let applications = cluster.applications(None, &page).items;
        applications
            .iter()
            .flat_map(|application| &application.services)
            .filter_map(|name| cluster.service(name))
            .flat_map(|service| &service.partitions)
            .filter_map(|id| cluster.partition(*id))
            .all(|partition| partition.status.as_str() == "Ready")
    });
    assert!(ready);
    emulator.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn by_hand_time_stands() {
    let emulator = builder().start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(emulator.now(), Timestamp::ZERO);
    emulator.advance(Duration::from_millis(1_500));
    assert_eq!(emulator.now(), Timestamp::from_millis(1_500));
    emulator.shutdown().await;
}

#[tokio::test]
async fn a_long_advance_gives_turns_to_others_and_ends_with_the_gateway() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Web").await;
    let replica = text(&gateway.replica(&partition).await["InstanceId"]);
    let flap = format!("/emulator/partitions/{partition}/replicas/{replica}/flap");
    gateway
        .post(&flap, r#"{"Every":"100ms"}"#)
        .await
        .expect_empty(200);
    let mut connection = gateway.connect().await;
    let request = connection
        .request("POST", "/emulator/time/advance")
        .body(body::full(r#"{"By":"744h"}"#))
        .expect("a request");
    let long = tokio::spawn(async move { connection.send(request).await.is_ok() });
    let begun = gateway.emulator.now();
    eventually("calls are answered while time is moved", async || {
        gateway.get("/Nodes").await.status == 200 && gateway.emulator.now() > begun
    })
    .await;
    assert!(!long.is_finished());
    gateway.emulator.shutdown().await;
    assert!(!long.await.expect("nobody aborts it"), "it was answered");
}
