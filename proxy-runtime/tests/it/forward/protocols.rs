//! HTTP/1.1 and HTTP/2 on either side, and the forms of responses.

use http::{Response, StatusCode};
use testkit::body;
use testkit::client::Connection;
use testkit::faults;
use testkit::origin::{Echo, Origin, OriginBuilder, Protocols};
use testkit::raw::{RawClient, RawOrigin};

use crate::forward::front::{Front, config, config_with, h2c};

async fn clients(front: &Front) -> [Connection; 2] {
    [front.http1().await, front.http2().await]
}

#[tokio::test]
async fn every_version_on_one_side_goes_with_every_version_on_the_other() {
    let http1 = Origin::builder().protocols(Protocols::Http1).start_echo();
    let http2 = Origin::builder().protocols(Protocols::Http2).start_echo();
    for (config, version) in [
        (config(&[&http1.url()]), "HTTP/1.1"),
        (config_with(&[&http2.url()], &h2c()), "HTTP/2.0"),
    ] {
        let front = Front::start(&config);
        for mut client in clients(&front).await {
            for content in ["", "with a body"] {
                let request = client
                    .request("POST", "/x?y")
                    .body(body::full(content))
                    .unwrap();
                let answer = client.send(request).await.unwrap();
                assert_eq!(answer.status, 200);
                let echo: Echo = answer.json();
                assert_eq!(echo.version, version);
                assert_eq!(echo.path_and_query(), "/x?y");
                assert_eq!(echo.body_text.as_deref(), Some(content));
            }
        }
        front.settled().await;
    }
}

#[tokio::test]
async fn many_requests_share_one_http2_connection() {
    let origin = Origin::builder().protocols(Protocols::Http2).start_echo();
    let front = Front::start(&config_with(&[&origin.url()], &h2c()));
    let client = front.http2().await;
    let requests = (0..50).map(|i| {
        let mut client = client.share().unwrap();
        async move {
            let echo: Echo = client.get(&format!("/{i}")).await.unwrap().json();
            assert_eq!(echo.path_and_query(), format!("/{i}"));
        }
    });
    futures_util::future::join_all(requests).await;
    assert_eq!(origin.traffic().counts().accepted, 1);
    front.settled().await;
}

#[tokio::test]
async fn a_further_http2_connection_is_opened_when_streams_are_used_up() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let opened = gate.clone();
    let origin = OriginBuilder::default()
        .protocols(Protocols::Http2)
        .max_concurrent_streams(2)
        .start(move |_| {
            let gate = gate.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                Response::new(body::full("done"))
            }
        });
    let front = Front::start(&config_with(&[&origin.url()], &h2c()));
    let client = front.http2().await;
    // The first response tells the proxy the maximum number of streams.
    opened.add_permits(1);
    client.share().unwrap().get("/").await.unwrap();
    let requests: Vec<_> = (0..6)
        .map(|_| {
            let mut client = client.share().unwrap();
            tokio::spawn(async move { client.get("/").await.unwrap().text() })
        })
        .collect();
    origin.traffic().wait_for_requests(7).await;
    assert!(origin.traffic().counts().accepted >= 3);
    opened.add_permits(6);
    for request in requests {
        assert_eq!(request.await.unwrap(), "done");
    }
    front.settled().await;
}

/// A response of each form, as an HTTP/1.1 origin sends it, and the client's view of it.
#[tokio::test]
async fn responses_keep_their_form() {
    for (answer, method, status, content) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "GET",
            200,
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
            "GET",
            200,
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            "HEAD",
            200,
            "",
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", "GET", 204, ""),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\n",
            "GET",
            304,
            "",
        ),
        (
            "HTTP/1.1 404 Nope\r\nContent-Length: 0\r\n\r\n",
            "GET",
            404,
            "",
        ),
        (
            "HTTP/1.1 299 Odd\r\nContent-Length: 1\r\n\r\nx",
            "GET",
            299,
            "x",
        ),
    ] {
        let origin = RawOrigin::answering(answer);
        let front = Front::to(origin.url());
        for mut client in clients(&front).await {
            // Twice, so that the connection to the origin must be reusable after the first time.
            for _ in 0..2 {
                let request = client.request(method, "/").body(body::empty()).unwrap();
                let response = client.send(request).await.unwrap();
                assert_eq!(response.status, status, "{answer:?}");
                assert_eq!(response.text(), content, "{answer:?}");
            }
        }
        assert_eq!(origin.traffic().counts().accepted, 1, "{answer:?}");
        front.settled().await;
    }
}

#[tokio::test]
async fn lengths_are_told_to_the_client() {
    for (answer, method, length) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "GET",
            Some("5"),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            "HEAD",
            Some("5"),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "GET",
            Some("0"),
        ),
        (
            "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
            "GET",
            None,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            "GET",
            None,
        ),
    ] {
        let origin = RawOrigin::answering(answer);
        let front = Front::to(origin.url());
        let mut client = RawClient::connect(front.server.addr()).await.unwrap();
        let request = format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n");
        client.write_all(request).await.unwrap();
        let response = client.read_response_to(method).await.unwrap();
        assert_eq!(response.header("content-length"), length, "{answer:?}");
    }
}

#[tokio::test]
async fn interim_responses_are_left_out() {
    let origin = faults::early_hints(3);
    let front = Front::to(origin.url());
    for mut client in clients(&front).await {
        let answer = client.get("/").await.unwrap();
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (StatusCode::OK, "hello")
        );
        assert!(answer.interim.is_empty());
    }
}

#[tokio::test]
async fn a_body_that_ends_with_the_connection_is_whole() {
    let origin = faults::ends_body_by_close();
    let front = Front::to(origin.url());
    for mut client in clients(&front).await {
        assert_eq!(client.get("/").await.unwrap().text(), faults::PARTIAL);
    }
    front.connections(0, 0).await;
}

#[tokio::test]
async fn reasons_in_words_are_passed_on() {
    let origin = RawOrigin::answering("HTTP/1.1 200 All Good\r\nContent-Length: 0\r\n\r\n");
    let front = Front::to(origin.url());
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let response = RawClient::exchange(front.server.addr(), request)
        .await
        .unwrap();
    assert_eq!(response.head.reason, "All Good");
}

#[tokio::test]
async fn http10_is_spoken_to_a_cluster_that_asks_for_it() {
    let origin = RawOrigin::answering("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let settings = serde_json::json!({ "HttpRequest": { "Version": "1.0" } });
    let front = Front::start(&config_with(&[&origin.url()], &settings));
    let mut client = front.http1().await;
    assert_eq!(client.get("/").await.unwrap().text(), "ok");
    assert!(origin.recording(0).text().starts_with("GET / HTTP/1.0\r\n"));
}
