//! Tests of retries.

use std::time::Duration;

use discovery_servicefabric::client::{ClientOptions, TransportErrorKind};
use discovery_servicefabric::{CallErrorKind, ClusterCalls};
use serde_json::json;
use tokio::time::Instant;

use crate::client::support::{Act, Gateway, bare, ok, page, with_header};

fn waits(gateway: &Gateway) -> Vec<Duration> {
    let seen = gateway.seen();
    seen.windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn waits_double_and_are_jittered() {
    for _ in 0..20 {
        let gateway = Gateway::always(bare(503));
        let options = ClientOptions::default()
            .with_attempts(7)
            .with_backoff(Duration::from_secs(1));
        let client = gateway.builder().options(options).build().unwrap();
        client.applications().await.unwrap_err();
        let waits = waits(&gateway);
        assert_eq!(waits.len(), 6);
        for (wait, longest) in waits.iter().zip([1_000, 2_000, 4_000, 5_000, 5_000, 5_000]) {
            let longest = Duration::from_millis(longest);
            // Timers have a resolution of 1 ms.
            assert!(
                *wait >= longest / 2 && *wait <= longest + Duration::from_millis(1),
                "{waits:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn success_ends_the_attempts() {
    let gateway = Gateway::acts([
        Act::Fail(TransportErrorKind::Interrupted),
        bare(503),
        page(json!([]), ""),
    ]);
    gateway.client().applications().await.unwrap();
    assert_eq!(gateway.seen().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_500_is_tried_once_more_whatever_came_before() {
    let gateway = Gateway::acts([bare(500), bare(503), bare(500)]);
    let error = gateway.client().applications().await.unwrap_err();
    assert_eq!(error.status(), Some(500));
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_respected() {
    let gateway = Gateway::acts([
        with_header(bare(503), "retry-after", "7"),
        with_header(bare(429), "retry-after", "0"),
        page(json!([]), ""),
    ]);
    gateway.client().applications().await.unwrap();
    let waits = waits(&gateway);
    assert_eq!(waits[0], Duration::from_secs(7));
    assert!(
        waits[1] >= Duration::from_millis(250),
        "our own wait still holds: {waits:?}"
    );

    // The wait is longer than the remaining time: the caller gets the error at once.
    let gateway = Gateway::acts([with_header(bare(503), "retry-after", "600")]);
    let started = Instant::now();
    let error = gateway.client().applications().await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(600)));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_hangs_costs_its_time_and_no_more() {
    let gateway = Gateway::acts([Act::Hang, ok(json!([]))]);
    gateway.client().applications().await.unwrap();
    let seen = gateway.seen();
    assert_eq!(seen[0].argument("timeout"), Some("30"));
    // The client waits longer than the time limit of the gateway, so that its response would have arrived.
    assert!(seen[1].at - seen[0].at >= Duration::from_secs(35));
    assert_eq!(
        seen[1].argument("timeout"),
        Some("19"),
        "what is left of the budget"
    );

    let gateway = Gateway::always(Act::Hang);
    let started = Instant::now();
    let error = gateway.client().applications().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::TimedOut);
    assert!(error.to_string().contains("no answer within"), "{error}");
    assert!(
        started.elapsed() <= Duration::from_millis(60_001),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_gateway_is_at_least_a_second_and_at_most_what_was_set() {
    let asked = |options: ClientOptions| async move {
        let gateway = Gateway::acts([ok(json!([]))]);
        let client = gateway.builder().options(options).build().unwrap();
        client.applications().await.unwrap();
        gateway.seen()[0].argument("timeout").unwrap().to_owned()
    };
    let options = ClientOptions::default();
    let set = |millis| {
        options
            .clone()
            .with_server_timeout(Duration::from_millis(millis))
    };
    assert_eq!(asked(set(12_900)).await, "12");
    assert_eq!(asked(set(0)).await, "1");
    assert_eq!(asked(set(600_000)).await, "55");
    assert_eq!(
        asked(options.clone().with_budget(Duration::from_millis(100))).await,
        "1"
    );
    assert_eq!(
        asked(
            options
                .with_budget(Duration::MAX)
                .with_server_timeout(Duration::MAX)
                .with_grace(Duration::MAX)
        )
        .await,
        "1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_makes_no_further_request() {
    let gateway = Gateway::always(bare(503));
    let client = gateway.client();
    let dropped = tokio::time::timeout(Duration::from_millis(1), client.applications()).await;
    dropped.unwrap_err();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(gateway.seen().len(), 1);
}
