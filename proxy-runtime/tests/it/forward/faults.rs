//! Failing origins, and the effect on clients.

use std::net::SocketAddr;
use std::sync::Arc;

use discovery_core::{Unreachable, UnreachableClusters};
use futures_util::FutureExt;
use proxy_runtime::Proxy;
use proxy_runtime::health::Health;
use serde_json::json;
use testkit::client::{ClientError, Connection};
use testkit::faults;
use testkit::origin::Origin;
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::guarded;

use crate::forward::front::{Front, config_with, h2c};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

async fn clients(front: &Front) -> [Connection; 2] {
    [front.http1().await, front.http2().await]
}

/// Any error before the head of the response is a 502, and leaves nothing behind.
#[tokio::test]
async fn no_valid_head_is_502() {
    let origins: [(&str, RawOrigin); 10] = [
        ("closes", faults::closes_before_answer()),
        ("resets", faults::resets_before_answer()),
        ("resets on accept", faults::resets_on_accept()),
        ("garbage", faults::garbage()),
        ("a head of 1 MB", faults::head_of_bytes(1 << 20)),
        ("10,000 fields", faults::head_with_fields(10_000)),
        ("a head without end", faults::endless_head()),
        (
            "an upgrade that nobody asked for",
            faults::switches_unasked(),
        ),
        ("interim responses without end", faults::endless_interim()),
        (
            "two lengths",
            RawOrigin::answering(
                "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n\
                 1\r\nx\r\n0\r\n\r\n",
            ),
        ),
    ];
    for (what, origin) in origins {
        let front = Front::to(origin.url());
        for mut client in clients(&front).await {
            let answer = client.get("/").await.unwrap();
            assert_eq!(answer.status, 502, "{what}");
            assert_eq!(answer.text(), "502 Bad Gateway\n", "{what}");
        }
        front.settled().await;
        front.wait_for_errors("Request", 2).await;
        front.connections(0, 0).await;
    }
}

#[tokio::test]
async fn a_dead_origin_is_502() {
    let port = faults::RefusingPort::new();
    let front = Front::to(port.url());
    for mut client in clients(&front).await {
        assert_eq!(client.get("/").await.unwrap().status, 502);
    }
    front.settled().await;
    assert_eq!(front.errors("Request"), 2);
    assert_eq!(front.destination(0).connect_failures, 2);
}

/// Unreachable clusters are reported over every protocol, and reachable ones are not.
#[tokio::test]
async fn clusters_that_cannot_be_reached_are_reported() {
    let (port, origin) = (faults::RefusingPort::new(), Origin::builder().start_echo());
    let (dead, alive) = (port.url(), origin.url());
    for (addresses, seen) in [
        (vec![&*dead], Some((Unreachable::Destination, 502))),
        (vec![&*dead, &*alive], Some((Unreachable::Destination, 200))),
        (vec![], Some((Unreachable::Cluster, 503))),
        (vec![&*alive], None),
    ] {
        let reported = Arc::new(UnreachableClusters::new());
        let proxy = Proxy::builder().unreachable(Arc::clone(&reported));
        let config = config_with(
            &addresses,
            &json!({ "LoadBalancingPolicy": "FirstAlphabetical" }),
        );
        let front = Front::build(&config, Origin::builder(), proxy);
        for mut client in clients(&front).await {
            let answer = client.get("/").await.unwrap();
            match seen {
                Some((seen, status)) => {
                    assert_eq!(answer.status, status);
                    // Reports are rate limited.
                    let next = guarded("report", reported.next()).await;
                    assert_eq!(next, [("c".into(), seen)]);
                }
                None => {
                    assert_eq!(answer.status, 200);
                    assert_eq!(reported.next().now_or_never(), None);
                }
            }
        }
        front.settled().await;
    }
}

/// A cluster of which checks have taken out all destinations is reported as one that has none.
#[tokio::test]
async fn a_cluster_whose_destinations_are_all_unhealthy_is_reported() {
    let origin = Origin::builder().start_echo();
    let reported = Arc::new(UnreachableClusters::new());
    let proxy = Proxy::builder().unreachable(Arc::clone(&reported));
    let url = origin.url();
    // The default policy would use all of them in that case.
    let policy = json!({ "HealthCheck": { "AvailableDestinationsPolicy": "HealthyAndUnknown" } });
    let config = config_with(&[&url, &url], &policy);
    let front = Front::build(&config, Origin::builder(), proxy);
    let set_all = |health| {
        for id in ["d0", "d1"] {
            assert!(front.proxy.set_health(&"c".into(), &id.into(), health));
        }
    };
    set_all(Health::Unhealthy);
    for mut client in clients(&front).await {
        assert_eq!(client.get("/").await.unwrap().status, 503);
        let next = guarded("report", reported.next()).await;
        assert_eq!(next, [("c".into(), Unreachable::Cluster)]);
    }
    set_all(Health::Healthy);
    for mut client in clients(&front).await {
        assert_eq!(client.get("/").await.unwrap().status, 200);
        assert_eq!(reported.next().now_or_never(), None);
    }
    front.settled().await;
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_502() {
    let front = Front::to("http://does-not-exist.invalid/");
    let mut client = front.http1().await;
    assert_eq!(client.get("/").await.unwrap().status, 502);
    front.settled().await;
}

async fn truncated_http1(addr: SocketAddr) {
    let mut client = RawClient::connect(addr).await.unwrap();
    client.write_all(GET).await.unwrap();
    match client.read_response_head().await {
        Ok(head) => {
            assert!(matches!(head.status, 200 | 502), "{}", head.status);
            if head.status == 200 {
                // Whatever part of the body arrived, its end did not.
                let rest = match client.read_to_end().await {
                    Ok(rest) => rest,
                    Err(_) => client.buffered().to_vec(),
                };
                assert!(!rest.ends_with(b"0\r\n\r\n"), "{}", rest.escape_ascii());
                assert!(rest.len() < 100);
            }
        }
        Err(error) => panic!("{error}"),
    }
}

/// F16: a truncated body is detectable in every version of the client. If the origin fails before
/// anything was forwarded, the client gets a 502 (L13).
#[tokio::test]
async fn a_truncated_body_is_seen_to_be_truncated() {
    for (what, origin) in [
        ("closes, length", faults::closes_mid_body()),
        ("resets, length", faults::resets_mid_body()),
        ("closes, chunked", faults::closes_mid_chunk()),
        ("resets, chunked", faults::resets_mid_chunk()),
        ("malformed chunk", faults::malformed_chunk()),
    ] {
        let front = Front::to(origin.url());
        truncated_http1(front.server.addr()).await;
        match front.http2().await.get("/").await {
            Ok(answer) => assert_eq!(answer.status, 502, "{what}: a clean end"),
            Err(error) => {
                assert!(
                    matches!(error, ClientError::Truncated { .. }),
                    "{what}: {}",
                    error.chain()
                );
                assert_eq!(
                    error.h2_reason(),
                    Some(h2::Reason::INTERNAL_ERROR),
                    "{what}"
                );
            }
        }
        front.settled().await;
        front.wait_for_errors("ResponseBodyDestination", 2).await;
        front.connections(0, 0).await;
    }
}

/// Reset codes of an origin have no meaning between client and proxy: `REFUSED_STREAM` would allow
/// a retry.
#[tokio::test]
async fn resets_are_translated() {
    for reason in [
        h2::Reason::REFUSED_STREAM,
        h2::Reason::CANCEL,
        h2::Reason::ENHANCE_YOUR_CALM,
    ] {
        let origin = faults::h2::resets_mid_body(reason.into());
        let front = Front::start(&config_with(&[&origin.url()], &h2c()));
        match front.http2().await.get("/").await {
            Ok(answer) => assert_eq!(answer.status, 502),
            Err(error) => assert_eq!(error.h2_reason(), Some(h2::Reason::INTERNAL_ERROR)),
        }
        truncated_http1(front.server.addr()).await;

        let origin = faults::h2::resets_streams(reason.into());
        let front = Front::start(&config_with(&[&origin.url()], &h2c()));
        assert_eq!(front.http2().await.get("/").await.unwrap().status, 502);
        front.settled().await;
    }
}

/// The limit is that of HTTP/1.1.
#[tokio::test]
async fn interim_responses_over_http2_have_a_limit() {
    for (count, status) in [(16, 200), (17, 502)] {
        let origin = faults::h2::early_hints(count);
        let front = Front::start(&config_with(&[&origin.url()], &h2c()));
        for mut client in clients(&front).await {
            assert_eq!(client.get("/").await.unwrap().status, status, "{count}");
        }
        front.settled().await;
    }
}

/// A complete response that does not need the rest of the upload (RFC 9113 section 8.1).
#[tokio::test]
async fn a_reset_without_error_after_the_whole_answer_is_fine() {
    let origin = faults::h2::answers_and_stops_upload();
    let front = Front::start(&config_with(&[&origin.url()], &h2c()));
    for mut client in clients(&front).await {
        let request = client
            .request("POST", "/")
            .body(testkit::body::full("hello"))
            .unwrap();
        let answer = client.send(request).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.text().as_str()),
            (200, faults::PARTIAL)
        );
    }
    front.settled().await;
}

/// Bytes after a response belong to no request: the next one must not get them.
#[tokio::test]
async fn a_response_that_nobody_asked_for_is_never_delivered() {
    let origin = faults::body_longer_than_told();
    let front = Front::to(origin.url());
    let mut client = front.http1().await;
    for _ in 0..5 {
        let answer = client.get("/").await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.text().as_str()),
            (200, faults::PARTIAL)
        );
        assert!(answer.header("x-evil").is_none());
    }
    front.settled().await;
}

/// The origin responds during the upload, and the client aborts it. Further bytes on that
/// connection belong to no request, so it is not used again.
#[tokio::test]
async fn an_early_answer_is_never_taken_for_the_next_one() {
    let origin = faults::answers_early();
    let front = Front::to(origin.url());
    for i in 0..10 {
        let mut client = front.http1().await;
        let (mut send, upload) = testkit::body::channel(1);
        let request = client.request("POST", "/").body(upload).unwrap();
        send.send_data("first".into()).await.unwrap();
        let response = client.send_streaming(request).await.unwrap();
        drop((response, client));
        // Another client at the same time.
        let answer = front.http1().await.get("/").await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.text().as_str()),
            (200, faults::PARTIAL),
            "request {i}"
        );
        drop(send);
    }
    front.settled().await;
}

#[tokio::test]
async fn an_answer_while_the_upload_goes_on_is_passed_on() {
    let origin = faults::answers_early();
    let front = Front::to(origin.url());
    for mut client in clients(&front).await {
        let (mut send, upload) = testkit::body::channel(1);
        let request = client.request("POST", "/").body(upload).unwrap();
        send.send_data("first".into()).await.unwrap();
        let response = client.send_streaming(request).await.unwrap();
        let content = http_body_util::BodyExt::collect(response)
            .await
            .unwrap()
            .to_bytes();
        assert_eq!(content, faults::PARTIAL);
        // The upload may end at any time, or never.
        let _ = send.send_data("second".into()).await;
        drop(send);
        front.settled().await;
    }
}

/// L12: the response is complete, so the client keeps it.
#[tokio::test]
async fn l12_an_upload_that_fails_after_the_answer_changes_nothing() {
    let origin = faults::answers_early_and_resets();
    let front = Front::to(origin.url());
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    let request = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n";
    client.write_all(request).await.unwrap();
    let response = client.read_response().await.unwrap();
    assert_eq!(
        (response.status(), response.text().as_str()),
        (200, faults::PARTIAL)
    );
    let _ = client.write_all(vec![b'x'; 100_000]).await;
    drop(client);
    front.settled().await;
    front.connections(0, 0).await;
}

/// An unknown transfer coding must not reach the client as content.
#[tokio::test]
async fn an_unknown_transfer_coding_is_502() {
    for coding in [
        "xchunked",
        "gzip, chunked",
        "chunked\r\nTransfer-Encoding: chunked",
    ] {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        );
        let origin = RawOrigin::answering(answer);
        let front = Front::to(origin.url());
        for mut client in clients(&front).await {
            assert_eq!(client.get("/").await.unwrap().status, 502, "{coding}");
        }
        front.settled().await;
    }
}

/// Many cookies are no error.
#[tokio::test]
async fn a_head_of_hundreds_of_fields_is_passed_on() {
    let origin = faults::head_with_fields(500);
    let front = Front::to(origin.url());
    let answer = front.http1().await.get("/").await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.headers.len() >= 500);
}
