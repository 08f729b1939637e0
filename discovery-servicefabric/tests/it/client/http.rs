//! The built-in transport over real sockets.

use std::time::Duration;

use discovery_servicefabric::client::{Client, ClientOptions, ReqwestOptions};
use discovery_servicefabric::{CallErrorKind, ClusterCalls};
use http::{Request, Response, StatusCode, Version};
use testkit::certs::{Alpn, CertificateAuthority};
use testkit::faults;
use testkit::origin::{Incoming, Origin};
use testkit::raw::RawOrigin;
use testkit::time::guarded;

fn client(endpoint: impl Into<String>) -> Client {
    let options = ClientOptions::default()
        .with_attempts(2)
        .with_backoff(Duration::from_millis(1))
        .with_max_answer(10_000);
    Client::builder(endpoint).options(options).build().unwrap()
}

#[tokio::test]
async fn requests_arrive_as_they_were_meant() {
    let origin = Origin::start(|request: Request<Incoming>| async move {
        let uri = request.uri().to_string();
        assert_eq!(request.headers()["accept"], "application/json");
        assert!(
            request.headers()["user-agent"]
                .to_str()
                .unwrap()
                .starts_with("discovery-servicefabric/")
        );
        let body = format!(
            r#"[{{"Name":"{}","TypeName":"T"}}]"#,
            uri.replace('"', "%22")
        );
        Response::new(testkit::body::full(body))
    });
    let client = client(origin.url());
    for (id, path) in [
        ("a~b'(c)!$&*+,;=:@-._", "a~b'(c)!$&*+,;=:@-._"),
        ("ü %41|^", "%C3%BC%20%41%7C%5E"),
        ("a\\b", "a%5Cb"),
    ] {
        let found = guarded("an answer", client.services(id)).await.unwrap();
        assert_eq!(
            found[0].name,
            format!("/Applications/{path}/$/GetServices?api-version=6.0&timeout=30")
        );
    }
}

#[tokio::test]
async fn both_versions_of_http_are_spoken() {
    let authority = CertificateAuthority::new("ca");
    for (alpn, version) in [
        (Alpn::Both, Version::HTTP_2),
        (Alpn::Http1, Version::HTTP_11),
        (Alpn::Absent, Version::HTTP_11),
    ] {
        let origin = Origin::builder()
            .tls(authority.issue(&["127.0.0.1"]).server_config(alpn))
            .start(|request: Request<Incoming>| async move {
                Response::new(testkit::body::full(format!(
                    r#"{{"Version":"{:?}"}}"#,
                    request.version()
                )))
            });
        let trust = discovery_servicefabric::client::ServerTrust::authorities_pem(
            authority.certificate_pem().as_bytes(),
        );
        let client = Client::builder(origin.url())
            .server_trust(trust.unwrap())
            .build()
            .unwrap();
        let spoken = guarded("an answer", client.cluster_version())
            .await
            .unwrap();
        assert_eq!(spoken, format!("{version:?}"));
    }
}

#[tokio::test]
async fn bodies_are_read_up_to_the_limit() {
    let answer = |length: usize| {
        let items = "1,".repeat((length - 2) / 2);
        let body = format!(
            "[{items}{}]",
            if length.is_multiple_of(2) { "" } else { " " }
        );
        assert_eq!(body.len(), length);
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    for (length, reason) in [
        (10_000, "not one of a gateway"),
        (10_001, "larger than 10000 bytes"),
    ] {
        let origin = RawOrigin::answering(answer(length));
        let error = guarded("an answer", client(origin.url()).applications())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Malformed);
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(origin.traffic().requests(), 1, "not tried again");
    }
    // Without a length, and without an end.
    let origin = faults::endless_body();
    let error = guarded("the end", client(origin.url()).applications())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("larger than 10000 bytes"),
        "{error}"
    );
    // A length that is announced is not waited for.
    let origin = RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n");
    let error = guarded("the end", client(origin.url()).applications())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("larger than 10000 bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn broken_exchanges_are_tried_again_and_explained() {
    for origin in [
        faults::resets_on_accept(),
        faults::closes_before_answer(),
        faults::resets_before_answer(),
        faults::closes_mid_body(),
        faults::resets_mid_body(),
        faults::garbage(),
        faults::malformed_chunk(),
        faults::endless_head(),
    ] {
        let error = guarded("an error", client(origin.url()).applications())
            .await
            .unwrap_err();
        assert_eq!(
            error.kind(),
            CallErrorKind::Unreachable,
            "{}",
            error.chain()
        );
        assert!(
            error.to_string().contains("begins with `https://`"),
            "{error}"
        );
        assert!(
            origin.traffic().counts().accepted >= 2,
            "{:?}",
            origin.traffic().counts()
        );
    }
    let port = faults::RefusingPort::new();
    let error = guarded(
        "an error",
        client(format!("http://{}", port.addr())).applications(),
    )
    .await
    .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Unreachable);
    assert!(error.to_string().contains("cannot connect"), "{error}");
    assert!(!error.chain().contains("api-version"), "{}", error.chain());
}

#[tokio::test]
async fn a_connection_that_is_not_made_in_time_is_given_up() {
    let port = faults::UnansweredPort::new();
    let options = ReqwestOptions::default().with_connect_timeout(Duration::from_millis(50));
    let client = Client::builder(format!("http://{}", port.addr()))
        .options(ClientOptions::default().with_attempts(1))
        .http(options)
        .build()
        .unwrap();
    let error = guarded("an error", client.applications())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Unreachable);
    assert!(
        error.to_string().contains("was not made in time"),
        "{error}"
    );
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = Origin::named("target");
    let place = target.url();
    for status in [301, 302, 303, 307, 308] {
        let place = place.clone();
        let origin = Origin::start(move |_: Request<Incoming>| {
            let place = place.clone();
            async move {
                let mut response = Response::new(testkit::body::full(""));
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                response
                    .headers_mut()
                    .insert("location", place.parse().unwrap());
                response
            }
        });
        let error = guarded("an error", client(origin.url()).applications())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Malformed);
        assert_eq!(error.status(), Some(status));
    }
    assert_eq!(target.traffic().requests(), 0);
}

#[tokio::test]
async fn a_call_that_is_dropped_closes_its_connection() {
    let origin = faults::never_answers();
    let client = client(origin.url());
    let call = tokio::spawn(async move { client.applications().await });
    origin.traffic().wait_for_connections(1).await;
    origin.recordings()[0].wait_for("\r\n\r\n").await;
    call.abort();
    let counts = origin.traffic().wait_for_closed(1).await;
    assert_eq!(counts.accepted, 1);
}
