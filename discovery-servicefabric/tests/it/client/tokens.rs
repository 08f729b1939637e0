//! Bearer tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use discovery_servicefabric::client::{
    BearerToken, StaticToken, TokenError, TokenFile, TransportErrorKind, token_fn,
};
use discovery_servicefabric::model::{HealthInformation, HealthState};
use discovery_servicefabric::{CallErrorKind, ClusterCalls, HealthEntity};
use serde_json::json;

use crate::client::support::{Act, Gateway, Seen, bare, ok, text};

fn token(text: &str) -> BearerToken {
    BearerToken::new(text).unwrap()
}

/// Creates a gateway that accepts one token, and reports the issuer to everyone.
fn wanting(accepted: &'static str) -> Gateway {
    Gateway::new(move |seen| {
        if seen.uri.contains("GetAadMetadata") {
            assert_eq!(seen.authorization, None, "anonymous");
            return ok(json!({"type": "aad", "metadata": {
                "authority": "https://login.example/tenant-1", "tenant": "tenant-1", "cluster": "app-1", "client": "c"}}));
        }
        match seen.authorization.as_deref() {
            Some(header) if header == format!("Bearer {accepted}") => ok(json!([])),
            _ => bare(401),
        }
    })
}

fn calls(gateway: &Gateway) -> Vec<String> {
    let name = |seen: &Seen| {
        let path = seen.target().split('?').next().unwrap();
        format!("{path} {}", seen.authorization.as_deref().unwrap_or("-"))
    };
    gateway.seen().iter().map(name).collect()
}

#[tokio::test]
async fn the_token_goes_with_every_call() {
    let gateway = wanting("abc");
    let client = gateway
        .builder()
        .token_source(StaticToken::new(token("abc")))
        .build()
        .unwrap();
    client.applications().await.unwrap();
    let health = HealthInformation::new("YARP", "X", HealthState::Ok);
    client
        .report_health(&HealthEntity::Cluster, &health, false)
        .await
        .unwrap();
    assert_eq!(
        calls(&gateway),
        [
            "/Applications Bearer abc",
            "/$/ReportClusterHealth Bearer abc"
        ]
    );
}

#[tokio::test]
async fn a_rejected_token_is_asked_for_anew_once() {
    let gateway = wanting("new");
    let source = token_fn(|rejected: Option<BearerToken>| async move {
        Ok(token(if rejected == Some(token("old")) {
            "new"
        } else {
            "old"
        }))
    });
    let client = gateway.builder().token_source(source).build().unwrap();
    client.applications().await.unwrap();
    assert_eq!(
        calls(&gateway),
        ["/Applications Bearer old", "/Applications Bearer new"]
    );

    // A report was rejected before it was executed, so it may be repeated.
    let health = HealthInformation::new("YARP", "X", HealthState::Ok);
    client
        .report_health(&HealthEntity::Cluster, &health, false)
        .await
        .unwrap();
    assert_eq!(gateway.seen().len(), 4);

    // A second rejection ends the attempts.
    let gateway = wanting("never");
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let source = token_fn(move |_| {
        let n = counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok(token(&format!("t{n}"))) }
    });
    let client = gateway.builder().token_source(source).build().unwrap();
    let error = client.applications().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Denied);
    assert_eq!(
        calls(&gateway),
        [
            "/Applications Bearer t0",
            "/Applications Bearer t1",
            "/$/GetAadMetadata -"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_error_says_whose_token_is_wanted_and_no_token() {
    let gateway = wanting("other");
    let client = gateway
        .builder()
        .token_source(StaticToken::new(token("hunter2")))
        .build()
        .unwrap();
    for _ in 0..3 {
        let message = client.applications().await.unwrap_err().chain();
        for part in [
            "expired",
            "authority https://login.example/tenant-1",
            "tenant tenant-1",
            "resource app-1",
        ] {
            assert!(message.contains(part), "{message}");
        }
        assert!(!message.contains("hunter2"), "{message}");
    }
    // The same token is not tried again, and the cluster is requested once for all errors of a minute.
    assert_eq!(
        calls(&gateway),
        [
            "/Applications Bearer hunter2",
            "/$/GetAadMetadata -",
            "/Applications Bearer hunter2",
            "/Applications Bearer hunter2"
        ]
    );
    tokio::time::advance(Duration::from_secs(61)).await;
    client.applications().await.unwrap_err();
    assert_eq!(gateway.seen().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn an_explanation_that_does_not_come_is_done_without() {
    for act in [
        Act::Hang,
        bare(404),
        bare(401),
        text(200, "{}"),
        text(200, "["),
        Act::Fail(TransportErrorKind::Connect),
    ] {
        let gateway = Gateway::new(move |seen| match seen.uri.contains("GetAadMetadata") {
            true => act.clone(),
            false => bare(401),
        });
        let started = tokio::time::Instant::now();
        let error = gateway.client().applications().await.unwrap_err();
        assert_eq!(
            (error.kind(), error.status()),
            (CallErrorKind::Denied, Some(401))
        );
        assert!(
            started.elapsed() < Duration::from_secs(6),
            "{:?}",
            started.elapsed()
        );
    }
}

#[tokio::test]
async fn a_gateway_that_repeats_the_token_is_not_repeated() {
    let body = json!({"Error": {"Code": "E_hunter2", "Message": "the token hunter2 is wrong"}});
    let gateway = Gateway::acts([text(200, r#"{"Items":"hunter2"}"#)]);
    let source = StaticToken::new(token("hunter2"));
    let client = gateway.builder().token_source(source).build().unwrap();
    let error = client.applications().await.unwrap_err().chain();
    assert!(
        error.contains("[token]") && !error.contains("hunter2"),
        "{error}"
    );
    for status in [400, 403] {
        let gateway = Gateway::acts([text(status, body.to_string())]);
        let client = gateway
            .builder()
            .token_source(StaticToken::new(token("hunter2")))
            .build()
            .unwrap();
        let error = client.applications().await.unwrap_err();
        assert!(
            error.to_string().contains("the token [token] is wrong"),
            "{error}"
        );
        let shown = format!("{error:?} {} {:?} {client:?}", error.chain(), error.code());
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

/// After a rejection the client reads the issuer of tokens, and a gateway may respond to that with the
/// token that it was sent.
#[tokio::test]
async fn a_gateway_that_names_the_token_as_an_issuer_is_not_repeated() {
    let gateway = Gateway::new(|seen| match seen.uri.contains("GetAadMetadata") {
        true => ok(json!({"metadata": {
            "authority": format!("https://{}hunter2", "x".repeat(188)),
            "tenant": "hunter2",
            "cluster": "the cluster",
        }})),
        false => bare(401),
    });
    let client = gateway
        .builder()
        .token_source(StaticToken::new(token("hunter2")))
        .build()
        .unwrap();
    let error = client.applications().await.unwrap_err().chain();
    assert!(
        error.contains("tenant [token], resource the cluster"),
        "{error}"
    );
    assert!(!error.contains("hunt"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nothing_is_sent() {
    let gateway = Gateway::acts([]);
    let source = token_fn(|_| async { Err(TokenError::new("the vault is sealed")) });
    let client = gateway.builder().token_source(source).build().unwrap();
    let error = client.applications().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Denied);
    assert!(
        error.chain().contains("the vault is sealed"),
        "{}",
        error.chain()
    );

    let source = token_fn(|_| std::future::pending());
    let client = gateway.builder().token_source(source).build().unwrap();
    let error = client.applications().await.unwrap_err();
    assert!(
        error.to_string().contains("no token was received in time"),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_that_was_rotated_is_picked_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, "new\n").unwrap();
    let gateway = wanting("new");
    let client = gateway
        .builder()
        .token_source(TokenFile::new(&path))
        .build()
        .unwrap();
    client.applications().await.unwrap();
    std::fs::write(&path, "newer-and-wrong\n").unwrap();
    client.applications().await.unwrap_err();
    std::fs::write(&path, "new\n").unwrap();
    client.applications().await.unwrap();
}
