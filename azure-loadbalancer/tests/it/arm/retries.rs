//! Retries, and gates.

use std::time::Duration;

use azure_loadbalancer::arm::{ArmErrorKind, ArmOptions, Precondition};
use azure_loadbalancer::resources::{ArmId, LoadBalancer};
use serde_json::{Value, json};

use crate::arm::script::{Script, answer, lb};

const LB: &str = r#"{"name":"lb","properties":{}}"#;

// Case G13.
#[tokio::test(start_paused = true)]
async fn what_may_be_better_next_time_is_asked_again() {
    for first in [
        answer(500, &[], ""),
        answer(408, &[], ""),
        answer(503, &[("retry-after", "9")], ""),
        None,
    ] {
        let asks_for_nine = first
            .as_ref()
            .is_some_and(|answer| answer.headers().contains_key("retry-after"));
        let script = Script::new(vec![first, answer(200, &[], LB)]);
        let client = script.client();
        let found: LoadBalancer = client.get(&lb()).await.unwrap().unwrap();
        assert_eq!(found.name, "lb");
        let times = script.times();
        // 5 s, plus up to as much jitter.
        let range = if asks_for_nine { 9..=9 } else { 5..=10 };
        assert!(times[0] == 0 && range.contains(&times[1]), "{times:?}");
        let counts = client.counts();
        assert_eq!((counts.reads, counts.retries), (2, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn waits_grow_and_end() {
    let script = Script::new((0..6).map(|_| answer(500, &[], "")).collect());
    let mut options = ArmOptions::default();
    options.retry.jitter = 0.0;
    let client = script.builder().options(options).build().unwrap();
    let error = client.get::<Value>(&lb()).await.unwrap_err();
    assert_eq!(error.kind(), ArmErrorKind::Server);
    assert_eq!(script.times(), [0, 5, 12, 23, 40, 65]);
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_not_asked_again() {
    for (status, kind) in [
        (400, ArmErrorKind::Rejected),
        (403, ArmErrorKind::Forbidden),
        (409, ArmErrorKind::Conflict),
        (412, ArmErrorKind::PreconditionFailed),
    ] {
        let script = Script::new(vec![answer(
            status,
            &[],
            r#"{"error":{"code":"X","message":"m"}}"#,
        )]);
        let error = script.client().get::<Value>(&lb()).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (kind, Some("X")));
        assert_eq!(
            error.to_string(),
            format!("GET loadBalancers/lb: {status} X: m")
        );
    }
    let script = Script::new(vec![answer(404, &[], "")]);
    assert!(script.client().get::<Value>(&lb()).await.unwrap().is_none());
    let script = Script::new(vec![answer(200, &[], "<html>")]);
    let error = script.client().get::<Value>(&lb()).await.unwrap_err();
    assert_eq!(error.kind(), ArmErrorKind::Malformed);
}

// Case G11.
#[tokio::test(start_paused = true)]
async fn after_429_no_call_of_the_class_is_made_before_its_time() {
    let script = Script::new(vec![
        answer(429, &[("retry-after", "7")], ""),
        // A write does not wait for reads.
        answer(200, &[], LB),
        answer(200, &[], LB),
        answer(200, &[], LB),
    ]);
    let client = script.client();
    let (first, second, third) = (client.clone(), client.clone(), client.clone());
    let (a, b, c) = tokio::join!(
        async move { first.get::<Value>(&lb()).await },
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            second
                .put::<Value>(&lb(), &json!({}), Precondition::None)
                .await
        },
        async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            third.get::<Value>(&lb()).await
        },
    );
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(script.times(), [0, 1, 7, 7]);
    assert_eq!(client.counts().throttled, 1);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_is_closed_for_long_is_an_error_at_once() {
    let script = Script::new(vec![answer(429, &[("retry-after", "3600")], "")]);
    let client = script.client();
    for _ in 0..2 {
        let error = client.get::<Value>(&lb()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.is_retriable()),
            (ArmErrorKind::Throttled, true)
        );
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3_600)));
    }
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_say_what_they_must() {
    let script = Script::new(vec![
        answer(200, &[], LB),
        answer(200, &[], LB),
        answer(200, &[], r#"{"value":[]}"#),
    ]);
    let client = script.client();
    let _: Value = client
        .put(&lb(), &json!({ "a": 1 }), Precondition::Matches("W/\"7\""))
        .await
        .unwrap();
    let _: Value = client
        .put(&lb(), &json!({}), Precondition::IsNew)
        .await
        .unwrap();
    let _: Vec<Value> = client
        .list("/subscriptions/s/providers/Microsoft.Compute/virtualMachines")
        .await
        .unwrap();
    let asked = script.asked();
    assert_eq!(
        asked[0].request.uri(),
        "https://arm.test/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/lb?api-version=2025-05-01"
    );
    assert_eq!(asked[0].header("if-match"), Some("W/\"7\""));
    assert_eq!(asked[0].request.body(), &r#"{"a":1}"#);
    assert_eq!(asked[1].header("if-none-match"), Some("*"));
    assert_eq!(
        asked[2].request.uri().query(),
        Some("api-version=2026-04-01")
    );
    let id = asked[0].header("x-ms-client-request-id").unwrap();
    assert!(id.len() == 36 && id.as_bytes()[14] == b'4', "{id}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_path_is_not_sent() {
    let client = Script::new(Vec::new()).client();
    for id in ["", "lb", "/subscriptions/../x", "/a/./b"] {
        let error = client.get::<Value>(&ArmId::new(id)).await.unwrap_err();
        assert_eq!(error.kind(), ArmErrorKind::Rejected, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_is_not_waited_for() {
    #[derive(Clone)]
    struct Silent;
    #[async_trait::async_trait]
    impl azure_loadbalancer::arm::Transport for Silent {
        async fn send(
            &self,
            _: http::Request<bytes::Bytes>,
            _: usize,
        ) -> Result<http::Response<bytes::Bytes>, azure_loadbalancer::arm::TransportError> {
            std::future::pending().await
        }
    }
    let mut options = ArmOptions::default();
    options.retry.tries = 2;
    let client = azure_loadbalancer::arm::ArmClient::builder(Silent)
        .options(options)
        .build()
        .unwrap();
    let error = client.get::<Value>(&lb()).await.unwrap_err();
    assert_eq!(error.kind(), ArmErrorKind::TimedOut);
    assert_eq!(
        error.to_string(),
        "GET loadBalancers/lb: no answer from https://management.azure.com within 60s"
    );
}
