//! Tests of hostile responses.

use discovery_servicefabric::client::ClientOptions;
use discovery_servicefabric::{CallErrorKind, ClusterCalls};
use proptest::prelude::*;
use serde_json::json;

use crate::client::support::{Gateway, error, text};

#[tokio::test]
async fn a_transport_that_ignores_the_limit_is_checked() {
    let options = ClientOptions::default().with_max_answer(1_000);
    for status in [200, 500] {
        let gateway = Gateway::acts([text(status, "[".repeat(1_001))]);
        let client = gateway.builder().options(options.clone()).build().unwrap();
        let error = client.applications().await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Malformed);
        assert!(
            error.to_string().contains("larger than 1000 bytes"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_is_not_the_answer_is_malformed_and_told_in_one_short_line() {
    let deep = "[".repeat(500_000);
    let bodies = [
        "not json".to_owned(),
        "<html>\r\n\u{1b}[2J</html>".to_owned(),
        deep.clone(),
        format!(r#"{{"Items":[{{"Parameters":{deep}"#),
        format!(r#"{{"Items":[{{"Unknown":{deep}"#),
        r#"{"Items":"many"}"#.to_owned(),
        r#"{"Items":[1,2]}"#.to_owned(),
        r#"{"Items":[{"Name":7}]}"#.to_owned(),
        r#"{"Items":[],"ContinuationToken":7}"#.to_owned(),
        format!(
            r#"{{"Items":[{{"Name":{{"{}\u001b":1}}}}]}}"#,
            "x".repeat(100_000)
        ),
        format!(
            r#"{{"Items":[{{"HealthState":["{}"]}}]}}"#,
            "\u{7}".repeat(1_000)
        ),
        r#"{"Items":[]} trailing"#.to_owned(),
        "\u{feff}".to_owned(),
    ];
    for body in bodies {
        let gateway = Gateway::acts([text(200, body.clone())]);
        let error = gateway.client().applications().await.unwrap_err();
        let shown: String = body.chars().take(60).collect();
        assert_eq!(error.kind(), CallErrorKind::Malformed, "{shown}");
        let message = error.chain();
        assert!(message.len() < 600, "{message}");
        assert!(!message.contains(char::is_control), "{message:?}");
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_no_harm() {
    let gateway = Gateway::acts([
        text(200, "\u{feff}{\"Items\":[]}"),
        text(
            404,
            "\u{feff}{\"Error\":{\"Code\":\"FABRIC_E_PARTITION_NOT_FOUND\"}}",
        ),
    ]);
    let client = gateway.client();
    assert!(client.applications().await.unwrap().is_empty());
    assert!(client.replicas("p").await.unwrap_err().is_gone());
}

#[tokio::test]
async fn what_the_peer_says_of_an_error_is_bounded_and_cleaned() {
    let body = json!({"Error": {
        "Code": format!("E_\u{1b}[31m{}", "C".repeat(5_000)),
        "Message": format!("line\r\nline\u{202e}{}", "M".repeat(5_000)),
    }});
    let gateway = Gateway::acts([text(400, body.to_string())]);
    let error = gateway.client().applications().await.unwrap_err();
    let message = error.to_string();
    assert!(message.len() < 1_000, "{}", message.len());
    assert!(
        !message.contains(|c: char| c.is_control() || c == '\u{202e}'),
        "{message:?}"
    );
    let code = error.code().unwrap();
    assert!(
        code.len() < 200 && !code.contains(char::is_control),
        "{code:?}"
    );

    // A novel is no error of a gateway.
    let novel =
        json!({"Error": {"Code": "FABRIC_E_PARTITION_NOT_FOUND", "Message": "x".repeat(100_000)}});
    let gateway = Gateway::acts([text(404, novel.to_string())]);
    assert!(!gateway.client().replicas("p").await.unwrap_err().is_gone());
}

#[tokio::test]
async fn an_incomplete_health_chunk_is_not_taken_for_the_whole() {
    let one_of_two = json!({"ApplicationHealthStateChunks": {"TotalCount": "2", "Items": [{"ApplicationName": "fabric:/A"}]}});
    let negative = json!({"ApplicationHealthStateChunks": {"TotalCount": -1, "Items": []}});
    for body in [
        one_of_two,
        negative,
        json!({"HealthState": "Ok"}),
        json!({}),
    ] {
        let gateway = Gateway::acts([text(200, body.to_string())]);
        let error = gateway.client().replica_ids().await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Malformed, "{body}");
    }
    let gateway = Gateway::acts([error(413, "FABRIC_E_VALUE_TOO_LARGE")]);
    assert_eq!(
        gateway.client().replica_ids().await.unwrap_err().kind(),
        CallErrorKind::Rejected
    );
}

proptest! {
    #[test]
    fn no_bytes_and_no_status_are_too_odd(status in 200_u16..1000, body in any::<Vec<u8>>(), json in "[\\[\\]{}\":,a-zA-Z0-9 ]{0,60}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            for body in [body, json.into_bytes()] {
                let gateway = Gateway::always(text(status, body));
                let client = gateway.client();
                for error in [
                    client.applications().await.err(),
                    client.replicas("p").await.err(),
                    client.replica_ids().await.err(),
                    client.properties("n").await.err(),
                ].into_iter().flatten() {
                    assert!(!error.chain().contains(char::is_control), "{}", error.chain());
                }
            }
        });
    }
}
