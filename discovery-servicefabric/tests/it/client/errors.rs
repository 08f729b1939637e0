//! Tests of error responses and of the number of attempts.

use discovery_servicefabric::client::TransportErrorKind;
use discovery_servicefabric::{CallError, CallErrorKind, ClusterCalls};
use serde_json::json;

use crate::client::support::{Act, Gateway, bare, error, ok, page, text, with_header};

use CallErrorKind::{Busy, Denied, Failed, Gone, Malformed, Rejected, TimedOut, Unreachable};

/// Returns the error of a call with this response, and the number of attempts.
async fn failing(act: Act) -> (CallError, usize) {
    let gateway = Gateway::always(act);
    let error = gateway.client().replicas("p").await.unwrap_err();
    (error, gateway.seen().len())
}

#[tokio::test(start_paused = true)]
async fn every_status_and_code_has_a_kind_and_a_number_of_attempts() {
    let cases = [
        (400, "E_INVALIDARG", Rejected, 1),
        (400, "FABRIC_E_INVALID_PARTITION_KEY", Rejected, 1),
        (400, "FABRIC_E_INVALID_NAME_URI", Rejected, 1),
        (400, "FABRIC_E_INVALID_ADDRESS", Rejected, 1),
        (400, "FABRIC_E_SERVICE_TYPE_NOT_REGISTERED", Rejected, 1),
        (400, "FABRIC_E_CONFIGURATION_SECTION_NOT_FOUND", Rejected, 1),
        (400, "FABRIC_E_VALUE_EMPTY", Rejected, 1),
        (400, "FABRIC_E_INVALID_FOR_STATELESS_SERVICES", Rejected, 1),
        (400, "FABRIC_E_NODE_IS_UP", Rejected, 1),
        (404, "FABRIC_E_NODE_NOT_FOUND", Gone, 1),
        (404, "FABRIC_E_APPLICATION_TYPE_NOT_FOUND", Gone, 1),
        (404, "FABRIC_E_APPLICATION_NOT_FOUND", Gone, 1),
        (404, "FABRIC_E_SERVICE_TYPE_NOT_FOUND", Gone, 1),
        (404, "FABRIC_E_SERVICE_DOES_NOT_EXIST", Gone, 1),
        (404, "FABRIC_E_PARTITION_NOT_FOUND", Gone, 1),
        (404, "FABRIC_E_REPLICA_DOES_NOT_EXIST", Gone, 1),
        (404, "FABRIC_E_NAME_DOES_NOT_EXIST", Gone, 1),
        (404, "FABRIC_E_PROPERTY_DOES_NOT_EXIST", Gone, 1),
        (404, "FABRIC_E_SERVICE_MANIFEST_NOT_FOUND", Gone, 1),
        (404, "FABRIC_E_HEALTH_ENTITY_NOT_FOUND", Gone, 1),
        // The response is about another entity than the requested one.
        (404, "FABRIC_E_CODE_PACKAGE_NOT_FOUND", Rejected, 1),
        (404, "FABRIC_E_ENDPOINT_NOT_FOUND", Rejected, 1),
        (404, "FABRIC_E_DNS_SERVICE_NOT_FOUND", Rejected, 1),
        (409, "FABRIC_E_SERVICE_ALREADY_EXISTS", Rejected, 1),
        (409, "FABRIC_E_HEALTH_STALE_REPORT", Rejected, 1),
        (409, "FABRIC_E_HEALTH_MAX_REPORTS_REACHED", Rejected, 1),
        (409, "FABRIC_E_SEQUENCE_NUMBER_CHECK_FAILED", Rejected, 1),
        (413, "FABRIC_E_VALUE_TOO_LARGE", Rejected, 1),
        (500, "E_FAIL", Failed, 2),
        (500, "SerializationError", Failed, 2),
        (500, "FABRIC_E_NODE_IS_UP", Failed, 2),
        (500, "FABRIC_E_TIMEOUT", TimedOut, 3),
        (503, "FABRIC_E_NO_WRITE_QUORUM", Busy, 3),
        (503, "FABRIC_E_NOT_PRIMARY", Busy, 3),
        (503, "FABRIC_E_NOT_READY", Busy, 3),
        (503, "FABRIC_E_RECONFIGURATION_PENDING", Busy, 3),
        (503, "FABRIC_E_SERVICE_OFFLINE", Busy, 3),
        (503, "E_ABORT", Busy, 3),
        (504, "FABRIC_E_TIMEOUT", TimedOut, 3),
        (504, "FABRIC_E_COMMUNICATION_ERROR", TimedOut, 3),
        (504, "FABRIC_E_OPERATION_NOT_COMPLETE", TimedOut, 3),
    ];
    for (status, code, kind, attempts) in cases {
        let (error, made) = failing(error(status, code)).await;
        assert_eq!((error.kind(), made), (kind, attempts), "{status} {code}");
        assert_eq!(error.status(), Some(status));
        assert_eq!(error.code(), Some(code));
        assert_eq!(error.call(), "GET /Partitions/p/$/GetReplicas");
        assert_eq!(error.is_gone(), kind == Gone);
        let message = error.to_string();
        assert!(
            message.contains(code) && message.contains("says the gateway"),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_without_words_is_nothing_that_a_gateway_says_of_an_entity() {
    let html = "<html>404 Not Found</html>";
    let unrelated = r#"{"error":{"code":"NotFound"}}"#;
    let no_code = r#"{"Error":{"Message":"FABRIC_E_PARTITION_NOT_FOUND"}}"#;
    let null_code = r#"{"Error":{"Code":null,"Message":null}}"#;
    let cases = [
        (404, "", Malformed, 1),
        (404, html, Malformed, 1),
        (404, unrelated, Malformed, 1),
        (404, no_code, Malformed, 1),
        (404, null_code, Malformed, 1),
        (400, "", Rejected, 1),
        (401, "", Denied, 1),
        (403, "", Denied, 1),
        (405, "", Rejected, 1),
        (408, "", TimedOut, 3),
        (410, "", Rejected, 1),
        (414, "", Rejected, 1),
        (429, "", Busy, 3),
        (500, "", Failed, 2),
        (501, "", Failed, 2),
        (502, "", Unreachable, 3),
        (503, html, Busy, 3),
        (504, "", TimedOut, 3),
        (599, "", Failed, 2),
        (302, "", Malformed, 1),
        (304, "", Malformed, 1),
        (700, "", Malformed, 1),
    ];
    for (status, body, kind, attempts) in cases {
        // After a rejected call without a token, the client requests the issuer of tokens.
        let gateway = Gateway::new(move |seen| match seen.uri.contains("GetAadMetadata") {
            true => ok(json!({"type": "aad", "metadata": null})),
            false => text(status, body),
        });
        let error = gateway.client().replicas("p").await.unwrap_err();
        let seen = gateway.seen();
        let made = seen
            .iter()
            .filter(|seen| seen.uri.contains("GetReplicas"))
            .count();
        assert_eq!((error.kind(), made), (kind, attempts), "{status} {body}");
        assert_eq!(error.status(), Some(status));
        assert_eq!(error.code(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn transport_errors_are_tried_again_where_that_can_help() {
    use TransportErrorKind::{
        CertificateRejected, Connect, Interrupted, NotTls, TooLarge, Untrusted,
    };
    let cases = [
        (Connect, Unreachable, 3),
        (Interrupted, Unreachable, 3),
        (TransportErrorKind::TimedOut, TimedOut, 3),
        (Untrusted, Unreachable, 1),
        (NotTls, Unreachable, 1),
        (CertificateRejected, Denied, 1),
        (TooLarge, Malformed, 1),
    ];
    for (transport, kind, attempts) in cases {
        let (error, made) = failing(Act::Fail(transport)).await;
        assert_eq!((error.kind(), made), (kind, attempts), "{transport:?}");
        assert_eq!(error.status(), None);
        assert!(
            error.to_string().contains("https://gateway:19080"),
            "{error}"
        );
        assert!(
            error.chain().contains("as the script says"),
            "{}",
            error.chain()
        );
    }
}

/// Each of these would make services or destinations disappear if it were taken for a list.
#[tokio::test]
async fn lists_of_what_has_no_name_are_no_lists() {
    let client = |items: serde_json::Value| Gateway::acts([page(items, "")]).client();
    let nameless =
        || serde_json::json!([{"Name": "fabric:/a", "ServiceKind": "Stateless"}, {"Id": "b"}]);
    let no_id = serde_json::json!([
        {"ServiceKind": "Stateless", "ReplicaStatus": "Ready", "InstanceId": "1", "Address": "a"},
        {"ServiceKind": "Stateless", "ReplicaStatus": "Ready", "Address": "b"}
    ]);
    let no_version = serde_json::json!([{"Name": "T", "Version": null}]);
    for error in [
        client(nameless()).application_types().await.unwrap_err(),
        client(no_version).application_types().await.unwrap_err(),
        client(nameless())
            .service_types("T", "1")
            .await
            .unwrap_err(),
        client(nameless()).properties("s").await.unwrap_err(),
        client(serde_json::json!([{"Name": "fabric:/a/b", "TypeName": null}]))
            .services("a")
            .await
            .unwrap_err(),
        client(no_id).replicas("p").await.unwrap_err(),
        client(nameless()).applications().await.unwrap_err(),
        client(nameless()).services("a").await.unwrap_err(),
        client(nameless()).partitions("s").await.unwrap_err(),
        client(nameless()).replicas("p").await.unwrap_err(),
        client(serde_json::Value::Null)
            .services("a")
            .await
            .unwrap_err(),
        client(serde_json::Value::Null)
            .replicas("p")
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), Malformed, "{error}");
    }
}

#[tokio::test]
async fn no_content_means_gone_only_where_one_thing_was_asked_for() {
    let client = |act| Gateway::acts([act]).client();
    let error = client(bare(204))
        .service_manifest("t", "1", "m")
        .await
        .unwrap_err();
    assert_eq!((error.kind(), error.status()), (Gone, Some(204)), "{error}");
    // If these were empty lists everything would disappear.
    for error in [
        client(bare(204)).applications().await.unwrap_err(),
        client(bare(204)).services("a").await.unwrap_err(),
        client(bare(204)).partitions("s").await.unwrap_err(),
        client(bare(204)).replicas("p").await.unwrap_err(),
        client(bare(204)).application_types().await.unwrap_err(),
        client(bare(204)).service_types("t", "1").await.unwrap_err(),
        // The properties that override labels would be lost, and a service open that they had closed.
        client(bare(204)).properties("n").await.unwrap_err(),
        client(bare(204)).replica_ids().await.unwrap_err(),
        client(bare(204)).cluster_version().await.unwrap_err(),
    ] {
        assert_eq!(
            (error.kind(), error.status()),
            (Malformed, Some(204)),
            "{error}"
        );
    }
    for body in ["", "{}", "null", "[{}", r#"{"ContinuationToken":""}"#] {
        let error = client(text(200, body)).applications().await.unwrap_err();
        assert_eq!(error.kind(), Malformed, "{body}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn common_mistakes_are_explained() {
    let say = |act: Act, hint: &'static str| async move {
        let message = failing(act).await.0.to_string();
        assert!(message.contains(hint), "{message}");
    };
    let unauthorized = |challenge| with_header(bare(401), "www-authenticate", challenge);
    say(unauthorized("Negotiate"), "Kerberos").await;
    say(unauthorized("negotiate, NTLM"), "Kerberos").await;
    say(
        unauthorized("Bearer authorization_uri=\"x\""),
        "wants a bearer token",
    )
    .await;
    say(bare(401), "wants a bearer token").await;
    say(bare(403), "client certificate is missing").await;
    say(bare(404), "the endpoint may be that of another program").await;
    say(
        Act::Fail(TransportErrorKind::NotTls),
        "begins with `http://`",
    )
    .await;
    say(Act::Fail(TransportErrorKind::Untrusted), "thumbprint").await;
    say(
        Act::Fail(TransportErrorKind::CertificateRejected),
        "client certificate",
    )
    .await;
    say(
        with_header(bare(302), "location", "https://login.example/x"),
        "not followed to `https://login.example/x`",
    )
    .await;

    // A broken connection over TLS does not show anything about the scheme.
    let (error, _) = failing(Act::Fail(TransportErrorKind::Interrupted)).await;
    assert!(!error.to_string().contains("https://`"), "{error}");
    for act in [
        Act::Fail(TransportErrorKind::Interrupted),
        text(400, "The plain HTTP request was sent to HTTPS port"),
    ] {
        let gateway = Gateway::always(act);
        let client = discovery_servicefabric::client::Client::builder("http://gateway:19080");
        let error = client
            .transport(gateway)
            .build()
            .unwrap()
            .applications()
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("begins with `https://`"),
            "{error}"
        );
    }
}
