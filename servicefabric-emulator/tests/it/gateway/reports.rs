//! Health reports: rejected, queued and stored.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Gateway, text};

const WEB: &str = "/Services/Shop~Web";

fn report() -> Value {
    json!({"SourceId": "Watchdog", "Property": "Speed", "HealthState": "Warning"})
}

/// Returns a report with some changed members.
fn with(members: Value) -> Value {
    let mut report = report();
    let (Value::Object(report_members), Value::Object(members)) = (&mut report, members) else {
        panic!("both are objects");
    };
    report_members.extend(members);
    report
}

impl Gateway {
    /// Returns the event that the watchdog reported about a service, if it exists.
    async fn event(&self) -> Option<Value> {
        let health = self.get(&format!("{WEB}/$/GetHealth")).await;
        let events = health.json["HealthEvents"].as_array().cloned();
        events
            .into_iter()
            .flatten()
            .find(|event| event["SourceId"] == "Watchdog")
    }
}

#[tokio::test]
async fn every_entity_takes_reports() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Web").await;
    let instance = gateway.replica(&partition).await;
    let (node, instance) = (text(&instance["NodeName"]), text(&instance["InstanceId"]));
    for (path, health) in [
        (
            "/$/ReportClusterHealth".to_owned(),
            "/$/GetClusterHealth".to_owned(),
        ),
        (
            "/Nodes/_Node_1/$/ReportHealth".to_owned(),
            "/Nodes/_Node_1/$/GetHealth".to_owned(),
        ),
        (
            "/Applications/Shop/$/ReportHealth".to_owned(),
            "/Applications/Shop/$/GetHealth".to_owned(),
        ),
        (
            format!("{WEB}/$/ReportHealth"),
            format!("{WEB}/$/GetHealth"),
        ),
        (
            format!("/Partitions/{partition}/$/ReportHealth"),
            format!("/Partitions/{partition}/$/GetHealth"),
        ),
        (
            format!(
                "/Partitions/{partition}/$/GetReplicas/{instance}/$/ReportHealth?ServiceKind=Stateless"
            ),
            format!("/Partitions/{partition}/$/GetReplicas/{instance}/$/GetHealth"),
        ),
        (
            format!("/Nodes/{node}/$/GetApplications/Shop/$/ReportHealth"),
            format!("/Nodes/{node}/$/GetApplications/Shop/$/GetHealth"),
        ),
        (
            format!(
                "/Nodes/{node}/$/GetApplications/Shop/$/GetServicePackages/WebPkg/$/ReportHealth"
            ),
            format!("/Nodes/{node}/$/GetApplications/Shop/$/GetServicePackages/WebPkg/$/GetHealth"),
        ),
    ] {
        let separator = if path.contains('?') { '&' } else { '?' };
        let reply = gateway
            .post(&format!("{path}{separator}Immediate=true"), report())
            .await;
        reply.expect_empty(200);
        let events = gateway.get(&health).await.json["HealthEvents"].to_string();
        assert!(events.contains("Watchdog"), "{path}: {events}");
    }
}

#[tokio::test]
async fn what_is_no_report_is_rejected() {
    let gateway = Gateway::start().await;
    let path = format!("{WEB}/$/ReportHealth?Immediate=true");
    for (body, why) in [
        (with(json!({"SourceId": ""})).to_string(), "an empty source"),
        (
            with(json!({"SourceId": "System.Mine"})).to_string(),
            "a source of the system",
        ),
        (
            with(json!({"SourceId": "sYSTEM.mine"})).to_string(),
            "the same in another case",
        ),
        (
            with(json!({"Property": ""})).to_string(),
            "an empty property",
        ),
        (
            with(json!({"HealthState": "Invalid"})).to_string(),
            "Invalid",
        ),
        (
            with(json!({"HealthState": "Unknown"})).to_string(),
            "Unknown",
        ),
        (
            with(json!({"HealthState": "ok"})).to_string(),
            "another case",
        ),
        (with(json!({"HealthState": 1})).to_string(), "a number"),
        (
            with(json!({"TimeToLiveInMilliSeconds": "P1D"})).to_string(),
            "days without a T",
        ),
        (
            with(json!({"TimeToLiveInMilliSeconds": "90"})).to_string(),
            "no duration",
        ),
        (
            with(json!({"TimeToLiveInMilliSeconds": 90})).to_string(),
            "a number as duration",
        ),
        (
            with(json!({"SequenceNumber": "many"})).to_string(),
            "no number",
        ),
        (
            with(json!({"RemoveWhenExpired": "yes"})).to_string(),
            "no flag",
        ),
        (
            json!({"SourceId": "a", "Property": "b"}).to_string(),
            "no state",
        ),
        (json!([]).to_string(), "no object"),
        ("{".to_owned(), "no JSON"),
        (String::new(), "nothing"),
    ] {
        let reply = gateway.post(&path, &body).await;
        assert_eq!((reply.status, reply.code()), (400, "E_INVALIDARG"), "{why}");
    }
    assert_eq!(gateway.event().await, None);
    let flag = gateway
        .post(&format!("{WEB}/$/ReportHealth?Immediate=now"), report())
        .await;
    flag.expect_error(400, "E_INVALIDARG");
}

#[tokio::test]
async fn members_that_nobody_knows_are_read_over() {
    let gateway = Gateway::start().await;
    let body = with(json!({
        "HealthReportId": "r", "Colour": "red", "Description": null,
        "TimeToLiveInMilliSeconds": null, "SequenceNumber": 7,
    }));
    let reply = gateway
        .post(&format!("{WEB}/$/ReportHealth?Immediate=true"), body)
        .await;
    reply.expect_empty(200);
    let event = gateway.event().await.expect("it was taken");
    assert_eq!(event["SequenceNumber"], "7");
}

#[tokio::test]
async fn long_descriptions_are_cut() {
    let gateway = Gateway::start().await;
    let body = with(json!({"Description": "ä".repeat(10_000)}));
    gateway
        .post(&format!("{WEB}/$/ReportHealth?Immediate=true"), body)
        .await
        .expect_empty(200);
    let event = gateway.event().await.expect("it was taken");
    let length = text(&event["Description"]).len();
    assert!((4_000..=4_096).contains(&length), "{length}");
}

#[tokio::test]
async fn replicas_want_the_kind_of_their_service() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Web").await;
    let instance = text(&gateway.replica(&partition).await["InstanceId"]);
    let path = format!("/Partitions/{partition}/$/GetReplicas/{instance}");
    for (query, status) in [
        ("", 400),
        ("?ServiceKind=", 400),
        ("?ServiceKind=Invalid", 400),
        ("?ServiceKind=0", 400),
        ("?ReplicaHealthReportServiceKind=Stateless", 400),
        ("?ServiceKind=Stateless", 200),
        ("?ServiceKind=1", 200),
        ("?api-version=3.0", 200),
    ] {
        let reply = gateway
            .post(&format!("{path}/$/ReportHealth{query}"), report())
            .await;
        assert_eq!(reply.status, status, "{query}: {}", reply.json);
    }
    let missing = gateway
        .post(&format!("{path}/$/ReportHealth"), report())
        .await;
    assert!(
        text(&missing.json["Error"]["Message"])
            .contains("required parameter is missing: ServiceKind")
    );
    // The id is not that of a replica, so the report has no entity.
    let wrong = gateway
        .post(
            &format!("{path}/$/ReportHealth?ServiceKind=Stateful&Immediate=true"),
            with(json!({"SourceId": "Wrong"})),
        )
        .await;
    wrong.expect_empty(200);
    let health = gateway.get(&format!("{path}/$/GetHealth")).await;
    assert!(!health.json.to_string().contains("Wrong"));
}

#[tokio::test]
async fn reports_wait_for_their_batch() {
    let gateway = Gateway::start().await;
    gateway
        .post(&format!("{WEB}/$/ReportHealth"), report())
        .await
        .expect_empty(200);
    assert_eq!(gateway.event().await, None);
    gateway.emulator.advance(Duration::from_secs(30));
    assert!(gateway.event().await.is_some());
}

#[tokio::test]
async fn a_short_life_can_end_before_the_batch() {
    let gateway = Gateway::start().await;
    let body = with(json!({"TimeToLiveInMilliSeconds": "PT15S", "RemoveWhenExpired": true}));
    gateway
        .post(&format!("{WEB}/$/ReportHealth"), body)
        .await
        .expect_empty(200);
    for _ in 0..6 {
        gateway.emulator.advance(Duration::from_secs(5));
        assert_eq!(gateway.event().await, None);
    }
}

#[tokio::test]
async fn the_batch_can_be_switched_off() {
    let gateway = Gateway::of(super::builder().report_interval(Duration::ZERO)).await;
    gateway
        .post(&format!("{WEB}/$/ReportHealth"), report())
        .await
        .expect_empty(200);
    assert!(gateway.event().await.is_some());
}

#[tokio::test]
async fn reports_end_with_their_time() {
    let gateway = Gateway::start().await;
    let path = format!("{WEB}/$/ReportHealth?Immediate=true");
    let removed = with(json!({"TimeToLiveInMilliSeconds": "PT1M30S", "RemoveWhenExpired": true}));
    gateway.post(&path, removed).await.expect_empty(200);
    gateway.emulator.advance(Duration::from_secs(89));
    assert!(gateway.event().await.is_some());
    gateway.emulator.advance(Duration::from_secs(2));
    assert_eq!(gateway.event().await, None);

    let kept = with(json!({"TimeToLiveInMilliSeconds": "PT90S"}));
    gateway.post(&path, kept).await.expect_empty(200);
    gateway.emulator.advance(Duration::from_secs(91));
    let event = gateway.event().await.expect("it stays");
    assert_eq!(event["IsExpired"], true);
    let health = gateway.get(&format!("{WEB}/$/GetHealth")).await;
    assert_eq!(health.json["AggregatedHealthState"], "Error");
}

#[tokio::test]
async fn older_numbers_are_stale() {
    let gateway = Gateway::start().await;
    let path = format!("{WEB}/$/ReportHealth?Immediate=true");
    let numbered = |number: &str| with(json!({"SequenceNumber": number}));
    gateway.post(&path, numbered("7")).await.expect_empty(200);
    gateway
        .post(&path, numbered("6"))
        .await
        .expect_error(409, "FABRIC_E_HEALTH_STALE_REPORT");
    gateway.post(&path, numbered("8")).await.expect_empty(200);
    gateway.post(&path, report()).await.expect_empty(200);
    let event = gateway.event().await.expect("it was taken");
    assert!(text(&event["SequenceNumber"]).len() > 10, "{event}");
}

#[tokio::test]
async fn reports_about_nobody_vanish() {
    let gateway = Gateway::start().await;
    let path = "/Services/Shop~Nothing/$/ReportHealth?Immediate=true";
    gateway.post(path, report()).await.expect_empty(200);
    gateway
        .get("/Services/Shop~Nothing/$/GetHealth")
        .await
        .expect_error(404, "FABRIC_E_HEALTH_ENTITY_NOT_FOUND");
}
