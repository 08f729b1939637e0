//! Several gateways.

use std::time::Duration;

use discovery_servicefabric::client::{
    BearerToken, BuildError, Client, StaticToken, TransportErrorKind,
};
use discovery_servicefabric::model::{HealthInformation, HealthState};
use discovery_servicefabric::{CallErrorKind, ClusterCalls, HealthEntity};
use serde_json::json;

use crate::client::support::{Act, Gateway, bare, error, ok, with_header};

fn client(gateway: &Gateway) -> Client {
    Client::builder("https://a:1")
        .endpoint("https://b:2/")
        .endpoint("https://c:3/sf")
        .transport(gateway.clone())
        .build()
        .unwrap()
}

fn hosts(gateway: &Gateway) -> String {
    let seen = gateway.seen();
    seen.iter()
        .map(|seen| &seen.uri["https://".len()..][..1])
        .collect()
}

/// Creates gateways of which those in `down` cannot be reached.
fn without(down: &'static str, how: Act) -> Gateway {
    Gateway::new(
        move |seen| match down.contains(&seen.uri["https://".len()..][..1]) {
            true => how.clone(),
            false => ok(json!([])),
        },
    )
}

#[tokio::test(start_paused = true)]
async fn the_next_gateway_is_asked_at_once_and_kept() {
    for how in [
        Act::Fail(TransportErrorKind::Connect),
        Act::Fail(TransportErrorKind::Untrusted),
        Act::Fail(TransportErrorKind::NotTls),
        Act::Fail(TransportErrorKind::Interrupted),
        bare(502),
    ] {
        let gateway = without("ab", how.clone());
        let client = client(&gateway);
        client.applications().await.unwrap();
        client.applications().await.unwrap();
        assert_eq!(hosts(&gateway), "abcc", "{how:?}");
        let seen = gateway.seen();
        assert_eq!(
            seen[0].at, seen[2].at,
            "nobody waits before the others were asked"
        );
        assert_eq!(
            seen[2].uri,
            "https://c:3/sf/Applications?api-version=6.1&timeout=30"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_hangs_holds_the_start_up_for_seconds_only() {
    let gateway = without("ab", Act::Hang);
    let client = client(&gateway);
    let begun = tokio::time::Instant::now();
    client.applications().await.unwrap();
    assert!(
        begun.elapsed() <= Duration::from_secs(11),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(hosts(&gateway), "abc");

    // If all are slow, each has its time once all were tried.
    let gateway = without("abc", Act::Hang);
    let error = self::client(&gateway).applications().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::TimedOut);
    let seen = gateway.seen();
    let asked = seen[4].at - seen[3].at;
    assert!(asked >= Duration::from_secs(30), "{asked:?}");
}

/// A node may be drained, or its gateway broken, while all others respond.
#[tokio::test(start_paused = true)]
async fn a_gateway_that_answers_with_errors_of_its_own_is_left() {
    for how in [
        bare(500),
        error(500, "E_FAIL"),
        bare(503),
        error(503, "FABRIC_E_NOT_READY"),
        with_header(bare(503), "retry-after", "600"),
        bare(429),
        with_header(bare(429), "retry-after", "3600"),
        bare(504),
        bare(401),
        bare(403),
        bare(404),
        bare(302),
        Act::Fail(TransportErrorKind::CertificateRejected),
    ] {
        let gateway = without("ab", how.clone());
        let client = client(&gateway);
        client.applications().await.unwrap();
        client.applications().await.unwrap();
        assert_eq!(hosts(&gateway), "abcc", "{how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_gateway_says_of_the_question_is_believed() {
    for how in [
        bare(400),
        error(404, "FABRIC_E_APPLICATION_NOT_FOUND"),
        error(404, "FABRIC_E_SOMETHING_ELSE"),
    ] {
        let gateway = without("a", how.clone());
        client(&gateway).applications().await.unwrap_err();
        let hosts = hosts(&gateway);
        assert!(hosts.chars().all(|host| host == 'a'), "{how:?}: {hosts}");
    }
}

/// An error of the cluster is not the gateway's fault: each gateway is tried once, and the client stays
/// with the current one.
#[tokio::test(start_paused = true)]
async fn errors_of_a_cluster_are_asked_for_once_of_each_gateway() {
    for how in [
        bare(500),
        bare(503),
        bare(429),
        bare(504),
        bare(403),
        bare(404),
    ] {
        let gateway = without("abc", how.clone());
        let client = client(&gateway);
        client.applications().await.unwrap_err();
        client.applications().await.unwrap_err();
        assert_eq!(hosts(&gateway), "abcabc", "{how:?}");
    }
    // Two gateways and three attempts.
    let gateway = without("ab", bare(503));
    let two = Client::builder("https://a:1")
        .endpoint("https://b:2")
        .transport(gateway.clone())
        .build()
        .unwrap();
    two.applications().await.unwrap_err();
    assert_eq!(hosts(&gateway), "aba");
    // A gateway that is overloaded gets its pause.
    let seen = gateway.seen();
    assert!(seen[1].at - seen[0].at >= Duration::from_millis(125));
}

#[tokio::test(start_paused = true)]
async fn all_gateways_are_asked_in_every_round_with_a_wait_between() {
    let gateway = Gateway::always(Act::Fail(TransportErrorKind::Connect));
    let error = client(&gateway).applications().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Unreachable);
    assert_eq!(hosts(&gateway), "abcabcabc");
    let seen = gateway.seen();
    assert_eq!(seen[0].at, seen[2].at);
    assert!(seen[3].at - seen[2].at >= Duration::from_millis(125));
    assert_eq!(seen[3].at, seen[5].at);

    let gateway = Gateway::always(Act::Fail(TransportErrorKind::Untrusted));
    client(&gateway).applications().await.unwrap_err();
    assert_eq!(
        hosts(&gateway),
        "abc",
        "waiting does not make a certificate trusted"
    );
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_hangs_is_left() {
    let gateway = without("a", Act::Hang);
    let client = client(&gateway);
    client.applications().await.unwrap();
    client.applications().await.unwrap();
    assert_eq!(hosts(&gateway), "abb");
}

#[tokio::test(start_paused = true)]
async fn a_report_goes_elsewhere_only_if_it_was_not_sent() {
    let entity = HealthEntity::Cluster;
    let health = HealthInformation::new("YARP", "X", HealthState::Ok);
    let cases = [
        (Act::Fail(TransportErrorKind::Connect), "ab"),
        (Act::Fail(TransportErrorKind::Untrusted), "ab"),
        (Act::Fail(TransportErrorKind::Interrupted), "a"),
        (Act::Fail(TransportErrorKind::TimedOut), "a"),
        (Act::Hang, "a"),
        (bare(502), "a"),
        (bare(503), "a"),
        (bare(500), "a"),
    ];
    for (how, expected) in cases {
        let gateway = without("a", how.clone());
        let result = client(&gateway).report_health(&entity, &health, true).await;
        assert_eq!(hosts(&gateway), expected, "{how:?}");
        assert_eq!(result.is_ok(), expected == "ab");
    }
    let gateway = without("abc", Act::Fail(TransportErrorKind::Connect));
    client(&gateway)
        .report_health(&entity, &health, true)
        .await
        .unwrap_err();
    assert_eq!(hosts(&gateway), "abc", "one round");
}

#[tokio::test]
async fn what_is_no_gateway_is_rejected_when_the_client_is_built() {
    let gateway = Gateway::acts([]);
    let build = |first: &str, second: &str| {
        Client::builder(first)
            .endpoint(second)
            .transport(gateway.clone())
            .build()
    };
    build("http://a:1", "https://b:2").unwrap();
    for bad in [
        "",
        "b:2",
        "ftp://b",
        "https://",
        "https://u:p@b:2",
        "https://b:2?x",
    ] {
        let error = build("http://a:1", bad).unwrap_err();
        assert!(
            matches!(error, BuildError::Endpoint { .. }),
            "{bad}: {error}"
        );
    }
}

#[tokio::test]
async fn tokens_are_not_sent_in_the_clear() {
    let token = || StaticToken::new(BearerToken::new("secret").unwrap());
    let build = |endpoint: &str| {
        let gateway = Gateway::acts([]);
        Client::builder("https://a")
            .endpoint(endpoint)
            .transport(gateway)
            .token_source(token())
            .build()
    };
    for fine in [
        "https://b",
        "http://127.0.0.1:19080",
        "http://localhost:19080",
        "http://[::1]:1",
    ] {
        build(fine).unwrap();
    }
    for exposed in [
        "http://b:19080",
        "http://10.0.0.1",
        "http://localhost.example",
    ] {
        let error = build(exposed).unwrap_err();
        assert!(
            matches!(error, BuildError::TokenInTheClear { .. }),
            "{exposed}: {error}"
        );
    }
}
