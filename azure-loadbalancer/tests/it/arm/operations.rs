//! Asynchronous writes, and pages.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use azure_loadbalancer::arm::{ArmErrorKind, Precondition};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::arm::script::{Script, answer, lb};

const POLL: &str = "https://arm.test/subscriptions/s/providers/Microsoft.Network/locations/w/operations/1?api-version=x";
const UPDATING: &str = r#"{"name":"lb","properties":{"provisioningState":"Updating"}}"#;
const DONE: &str = r#"{"name":"lb","properties":{"provisioningState":"Succeeded"}}"#;

async fn put(script: &Script) -> Result<Value, azure_loadbalancer::ArmError> {
    script
        .client()
        .put(&lb(), &json!({}), Precondition::None)
        .await
}

#[tokio::test(start_paused = true)]
async fn a_write_is_followed_until_it_is_over() {
    let script = Script::new(vec![
        answer(
            201,
            &[("azure-asyncoperation", POLL), ("retry-after", "45")],
            UPDATING,
        ),
        answer(200, &[("retry-after", "4")], r#"{"status":"InProgress"}"#),
        answer(200, &[], r#"{"status":"Fancy"}"#),
        answer(200, &[], r#"{"status":"succeeded"}"#),
    ]);
    put(&script).await.unwrap();
    let asked = script.asked();
    assert_eq!(asked[1].request.uri(), POLL);
    // Twice as requested, then the default: 2 s, and by the third poll grown by half twice.
    assert_eq!(
        asked
            .iter()
            .map(|asked| asked.at.as_millis())
            .collect::<Vec<_>>(),
        [0, 45_000, 49_000, 53_500]
    );
}

/// Keeps the events of a thread as text.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A write of a minute is reported after 5 s, and each time that the wait has doubled.
#[tokio::test(start_paused = true)]
async fn a_write_under_way_is_reported() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let later = [("azure-asyncoperation", POLL), ("retry-after", "12")];
    let mut answers = vec![answer(201, &later, UPDATING)];
    let under_way = || answer(200, &[("retry-after", "12")], r#"{"status":"InProgress"}"#);
    answers.extend((0..4).map(|_| under_way()));
    answers.push(answer(200, &[], r#"{"status":"Succeeded"}"#));
    put(&Script::new(answers)).await.unwrap();
    let lines = lines.0.lock();
    let waits = lines.iter().filter_map(|line| {
        let line = line.contains("not done yet").then_some(line)?;
        assert!(line.contains("PUT loadBalancers/lb"), "{line}");
        Some(line.split_once("waited=")?.1.trim().to_owned())
    });
    let waits: Vec<_> = waits
        .map(|wait| wait.split(['.', 's']).next().unwrap().to_owned())
        .collect();
    assert_eq!(waits, ["5", "10", "20", "40"], "{lines:?}");
}

/// Polls are limited to ten per second, however short the requested wait.
#[tokio::test(start_paused = true)]
async fn a_write_is_not_followed_as_fast_as_the_network_is() {
    let now = [("azure-asyncoperation", POLL), ("retry-after", "0")];
    let mut answers = vec![answer(201, &now, UPDATING)];
    answers.extend(
        (0..20).map(|_| answer(200, &[("retry-after", "0")], r#"{"status":"InProgress"}"#)),
    );
    answers.push(answer(200, &[], r#"{"status":"Succeeded"}"#));
    let script = Script::new(answers);
    put(&script).await.unwrap();
    let asked = script.asked();
    let waits = asked.windows(2).map(|two| two[1].at - two[0].at);
    assert!(waits.min().unwrap() >= std::time::Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_later_is_an_error_with_its_code() {
    for (status, ending) in [
        ("Failed", "it was taken and has failed"),
        ("Canceled", "it was taken and was cancelled"),
    ] {
        let body =
            json!({ "status": status, "error": { "code": "SubnetIsFull", "message": "no room" } });
        let script = Script::new(vec![
            answer(
                200,
                &[("azure-asyncoperation", POLL), ("retry-after", "0")],
                UPDATING,
            ),
            answer(200, &[], &body.to_string()),
        ]);
        let error = put(&script).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.code()),
            (ArmErrorKind::Operation, Some("SubnetIsFull"))
        );
        assert_eq!(
            error.to_string(),
            format!("PUT loadBalancers/lb: SubnetIsFull: {ending}: no room")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn without_an_address_the_resource_itself_tells() {
    let script = Script::new(vec![
        answer(200, &[], UPDATING),
        answer(200, &[], UPDATING),
        answer(200, &[], DONE),
    ]);
    put(&script).await.unwrap();
    let asked = script.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2].request.method(), "GET");
    // Without any state it is complete.
    let script = Script::new(vec![answer(200, &[], "{}")]);
    put(&script).await.unwrap();
}

// Case F23: a deletion expects 404.
#[tokio::test(start_paused = true)]
async fn a_deletion_is_followed_by_its_location() {
    let script = Script::new(vec![
        answer(202, &[("location", POLL)], ""),
        answer(202, &[], ""),
        answer(204, &[], ""),
        answer(204, &[], ""),
        answer(404, &[], ""),
    ]);
    let client = script.client();
    client.delete(&lb(), Precondition::None).await.unwrap();
    assert_eq!(script.asked().len(), 3);
    client.delete(&lb(), Precondition::None).await.unwrap();
    client.delete(&lb(), Precondition::None).await.unwrap();
    let counts = client.counts();
    assert_eq!((counts.writes, counts.polls), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn what_is_never_over_is_given_up() {
    let mut answers = vec![answer(201, &[("azure-asyncoperation", POLL)], UPDATING)];
    answers.extend((0..60).map(|_| answer(200, &[], r#"{"status":"InProgress"}"#)));
    let script = Script::new(answers);
    let error = put(&script).await.unwrap_err();
    assert_eq!(error.kind(), ArmErrorKind::TimedOut);
    assert!(script.times().last().unwrap() <= &900);
}

#[tokio::test(start_paused = true)]
async fn a_token_does_not_go_to_another_host() {
    let elsewhere = POLL.replace("arm.test", "arm.test.evil");
    let script = Script::new(vec![answer(
        201,
        &[("azure-asyncoperation", &elsewhere)],
        UPDATING,
    )]);
    let error = put(&script).await.unwrap_err();
    assert_eq!(error.kind(), ArmErrorKind::Malformed);
    assert!(error.to_string().contains("arm.test.evil"), "{error}");
    let page = r#"{"value":[],"nextLink":"http://arm.test/x"}"#;
    let script = Script::new(vec![answer(200, &[], page)]);
    let error = script
        .client()
        .list::<Value>("/subscriptions/s/x")
        .await
        .unwrap_err();
    assert_eq!(
        error.kind(),
        ArmErrorKind::Malformed,
        "not over plain HTTP either"
    );
}

#[tokio::test(start_paused = true)]
async fn pages_are_read_to_the_end_and_not_in_circles() {
    let page = |value: &str, next: &str| {
        answer(
            200,
            &[],
            &format!(r#"{{"value":[{value}],"nextLink":"{next}"}}"#),
        )
    };
    let script = Script::new(vec![
        page("1,2", "https://arm.test/p2?a=b"),
        page("3", "/p3"),
        page("4", ""),
    ]);
    assert_eq!(
        script.client().list::<u32>("/p1").await.unwrap(),
        [1, 2, 3, 4]
    );
    let script = Script::new(vec![page("1", "/p2"), page("1", "/p2")]);
    assert_eq!(
        script.client().list::<u32>("/p1").await.unwrap_err().kind(),
        ArmErrorKind::Malformed
    );
    let missing = r#"{"error":{"code":"ResourceGroupNotFound","message":""}}"#;
    let script = Script::new(vec![answer(404, &[], missing)]);
    assert!(script.client().list::<u32>("/p1").await.unwrap().is_empty());
}
