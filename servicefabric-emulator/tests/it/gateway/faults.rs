//! Injected faults, seen by a client.

use std::time::Duration;

use serde_json::json;
use servicefabric_emulator::gateway::{Fault, FaultAction};
use testkit::client::ClientError;
use testkit::raw::RawClient;

use super::{Gateway, text};

const NODES: &str = "/Nodes?api-version=6.0";

#[tokio::test]
async fn calls_fail_as_often_as_they_are_told() {
    let gateway = Gateway::start().await;
    let faults = gateway.emulator.faults();
    faults
        .fail_next(2, "/Applications*", 503, "FABRIC_E_NOT_READY")
        .unwrap();
    gateway.get("/Nodes").await.json["Items"]
        .as_array()
        .expect("another path is not hit");
    for _ in 0..2 {
        gateway
            .get("/Applications/Shop/$/GetServices")
            .await
            .expect_error(503, "FABRIC_E_NOT_READY");
    }
    assert_eq!(gateway.get("/Applications").await.status, 200);
    assert_eq!(faults.hits(), 2);
}

#[tokio::test]
async fn a_failing_change_is_not_done() {
    let gateway = Gateway::start().await;
    gateway
        .emulator
        .faults()
        .fail_next(1, "/Names/*", 504, "FABRIC_E_TIMEOUT")
        .unwrap();
    let body = json!({"Name": "fabric:/New"});
    gateway
        .post("/Names/$/Create", &body)
        .await
        .expect_error(504, "FABRIC_E_TIMEOUT");
    gateway.get("/Names/New").await.expect_empty(404);
    gateway
        .post("/Names/$/Create", &body)
        .await
        .expect_empty(201);
}

#[tokio::test]
async fn bodies_can_be_missing_or_no_json() {
    let gateway = Gateway::start().await;
    let faults = gateway.emulator.faults();
    faults
        .inject(Fault::new("/Nodes", FaultAction::Empty { status: 500 }).times(1))
        .unwrap();
    gateway.get("/Nodes").await.expect_empty(500);
    let page = FaultAction::Text {
        status: 404,
        text: "<html>not here</html>".to_owned(),
    };
    faults.inject(Fault::new("/Nodes", page).times(1)).unwrap();
    let answer = gateway.connect().await.get(NODES).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), answer.text().as_str()),
        (404, "<html>not here</html>")
    );
    faults
        .inject(Fault::new("/Nodes", FaultAction::Cut { bytes: 20 }).times(1))
        .unwrap();
    let answer = gateway.connect().await.get(NODES).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 20));
}

#[tokio::test]
async fn connections_are_closed_before_and_in_the_middle_of_answers() {
    let gateway = Gateway::start().await;
    let faults = gateway.emulator.faults();
    faults
        .inject(Fault::new("/Nodes", FaultAction::Close).times(1))
        .unwrap();
    let error = gateway.connect().await.get(NODES).await.unwrap_err();
    assert!(matches!(error, ClientError::NoAnswer(_)), "{error:?}");
    faults
        .inject(Fault::new("/Nodes", FaultAction::CloseMidAnswer).times(1))
        .unwrap();
    let mut client = RawClient::connect(gateway.emulator.address())
        .await
        .unwrap();
    client
        .write_all(format!("GET {NODES} HTTP/1.1\r\nHost: a\r\n\r\n"))
        .await
        .unwrap();
    let head = client.read_response_head().await.unwrap();
    let length: usize = head.header("content-length").unwrap().parse().unwrap();
    let rest = client.read_to_end().await.unwrap_or_default();
    assert!(rest.len() < length, "{} of {length}", rest.len());
    assert_eq!(gateway.get("/Nodes").await.status, 200);
}

#[tokio::test]
async fn answers_come_late() {
    let gateway = Gateway::start().await;
    let delay = Duration::from_millis(200);
    gateway
        .emulator
        .faults()
        .delay_next(1, "/Nodes", delay)
        .unwrap();
    let began = std::time::Instant::now();
    assert_eq!(gateway.get("/Nodes").await.status, 200);
    assert!(began.elapsed() >= delay);
}

#[tokio::test]
async fn pages_are_short_empty_or_repeat_their_token() {
    let gateway = Gateway::start().await;
    let faults = gateway.emulator.faults();
    faults
        .inject(Fault::new("/Nodes", FaultAction::ShortPage { items: 0 }).times(1))
        .unwrap();
    let first = gateway.get("/Nodes").await.json;
    assert_eq!(first["Items"], json!([]));
    let token = text(&first["ContinuationToken"]);
    assert!(!token.is_empty());
    let rest = gateway
        .items(&format!("/Nodes?ContinuationToken={token}"))
        .await;
    assert_eq!(rest.len(), 3);

    faults.set_page_size(Some(1));
    faults
        .inject(Fault::new("/Nodes", FaultAction::RepeatToken))
        .unwrap();
    let first = gateway.get("/Nodes").await.json;
    let token = text(&first["ContinuationToken"]);
    for _ in 0..3 {
        let page = gateway
            .get(&format!("/Nodes?ContinuationToken={token}"))
            .await
            .json;
        assert_eq!(page["ContinuationToken"], token.as_str());
        assert_eq!(page["Items"][0]["Name"], "_Node_1");
    }
}

#[tokio::test]
async fn an_instance_that_drains_is_listed_but_not_resolved() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Web").await;
    let instance = gateway.replica(&partition).await;
    let (id, address) = (text(&instance["InstanceId"]), text(&instance["Address"]));
    gateway
        .post("/emulator/resolve-cache", json!({"Age": 0}))
        .await
        .expect_empty(200);
    gateway
        .post(
            &format!("/emulator/partitions/{partition}/replicas/{id}/drain"),
            json!({"For": "60s"}),
        )
        .await
        .expect_empty(200);
    let listed = gateway
        .items(&format!("/Partitions/{partition}/$/GetReplicas"))
        .await;
    let drained = listed
        .iter()
        .find(|found| found["InstanceId"] == id.as_str())
        .expect("it is still listed");
    assert_eq!(drained["ReplicaStatus"], "Ready");
    let resolved = gateway
        .get("/Services/Shop~Web/$/ResolvePartition")
        .await
        .json;
    let addresses: Vec<String> = resolved["Endpoints"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|endpoint| text(&endpoint["Address"]))
        .collect();
    assert!(!addresses.contains(&address), "{addresses:?}");
}

#[tokio::test]
async fn resolving_can_be_stale_until_it_is_challenged() {
    let gateway = Gateway::start().await;
    gateway
        .post("/emulator/resolve-cache", json!({"Age": "infinite"}))
        .await
        .expect_empty(200);
    let path = "/Services/Shop~Web/$/ResolvePartition";
    let before = gateway.get(path).await.json;
    let partition = gateway.partition("Shop~Web").await;
    let id = text(&gateway.replica(&partition).await["InstanceId"]);
    gateway
        .post(
            &format!("/emulator/partitions/{partition}/replicas/{id}/address"),
            json!({"Address": "moved"}),
        )
        .await
        .expect_empty(200);
    assert_eq!(gateway.get(path).await.json, before);
    let version = text(&before["Version"]);
    let after = gateway
        .get(&format!("{path}?PreviousRspVersion={version}"))
        .await
        .json;
    assert_ne!(after["Version"], before["Version"]);
    assert!(after["Endpoints"].to_string().contains("moved"), "{after}");
}

#[tokio::test]
async fn addresses_can_be_any_text() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Web").await;
    let id = text(&gateway.replica(&partition).await["InstanceId"]);
    let path = format!("/emulator/partitions/{partition}/replicas/{id}/address");
    let own = gateway.replica(&partition).await["Address"].clone();
    for address in [
        "",
        "not json",
        "{\"Endpoints\":{\"\":\"http://10.0.0.9:80\"}}",
    ] {
        gateway
            .post(&path, json!({"Address": address}))
            .await
            .expect_empty(200);
        assert_eq!(gateway.replica(&partition).await["Address"], address);
    }
    gateway
        .post(&path, json!({"Address": null}))
        .await
        .expect_empty(200);
    assert_eq!(gateway.replica(&partition).await["Address"], own);
}
