//! Retries of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use proxy_runtime::Proxy;
use proxy_runtime::upstream::UpstreamOptions;
use serde_json::json;
use testkit::body;
use testkit::faults::{self, RefusingPort};
use testkit::origin::{Echo, Origin};
use testkit::raw::RawOrigin;
use testkit::time::{eventually, guarded};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower_service::Service;

use crate::changed;
use crate::forward::front::{Front, config, config_with, h2c};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// F18: the origin closes idle connections at any time, and no request fails. Each request finds
/// the connection of the previous one, which may be closing at this moment.
#[tokio::test]
async fn f18_a_connection_that_closes_when_idle_fails_no_request() {
    let origin = faults::closes_after_answer();
    let front = Front::to(origin.url());
    let mut client = front.http1().await;
    for i in 0..1000 {
        let request = client
            .request("POST", "/")
            .body(body::full("content"))
            .unwrap();
        let answer = client.send(request).await.unwrap();
        assert_eq!(answer.status, 200, "request {i}");
    }
    front.settled().await;
}

/// A connection that the origin has closed makes room for its replacement.
#[tokio::test]
async fn a_closed_connection_makes_room_for_a_new_one() {
    let origin = faults::closes_after_answer();
    let settings = json!({ "HttpClient": { "MaxConnectionsPerServer": 1 } });
    let front = Front::start(&config_with(&[&origin.url()], &settings));
    let mut client = front.http1().await;
    for i in 0..50 {
        let answer = client.get("/").await.unwrap();
        assert_eq!(answer.status, 200, "request {i}");
        assert!(front.destination(0).connections <= 1);
    }
    front.settled().await;
    front.connections(0, 0).await;
}

/// The only permitted connection fails while others wait for it. The retry does not wait behind
/// them again, and costs them one connection in total.
#[tokio::test]
async fn a_second_try_waits_once_where_connections_are_few() {
    let origin = RawOrigin::script(|mut connection| async move {
        let is_first = connection.index() == 0;
        for served in 0.. {
            connection.read_whole_request().await?;
            if is_first && served == 1 {
                break;
            }
            connection
                .write_all("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .await?;
        }
        Ok(())
    });
    let settings = json!({ "HttpClient": { "MaxConnectionsPerServer": 1 } });
    let front = Front::start(&config_with(&[&origin.url()], &settings));
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = front.http1().await;
        clients.push(tokio::spawn(async move {
            for _ in 0..25 {
                assert_eq!(client.get("/").await.unwrap().status, 200);
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    // The first connection, that of a waiting request, and that of the retry.
    let accepted = origin.traffic().counts().accepted;
    assert!(accepted <= 3, "{accepted} connections");
    front.settled().await;
}

/// Each destination has its own queue, so a request goes elsewhere when one is full.
#[tokio::test]
async fn a_destination_with_too_many_waiting_is_passed_over() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let busy = Origin::start(move |_| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Response::new(body::full("busy"))
        }
    });
    let settings = json!({
        "LoadBalancingPolicy": "RoundRobin",
        "HttpClient": { "MaxConnectionsPerServer": 1 },
    });
    let options =
        || changed(|options: &mut UpstreamOptions| options.max_waiting_per_destination = 0);
    let start = |urls: &[&str]| {
        Front::build(
            &config_with(urls, &settings),
            Origin::builder(),
            Proxy::builder().upstream(options()),
        )
    };
    let free = Origin::echo();
    let front = start(&[&busy.url(), &free.url()]);
    let mut holding = front.http1().await;
    let held = tokio::spawn(async move { holding.get("/").await.unwrap().text() });
    busy.traffic().wait_for_requests(1).await;
    let mut client = front.http1().await;
    for i in 0..4 {
        assert_eq!(client.get("/").await.unwrap().status, 200, "request {i}");
    }
    assert_eq!(free.traffic().requests(), 4);
    opened.add_permits(1);
    assert_eq!(held.await.unwrap(), "busy");

    // If all are full, the client gets an error.
    let front = start(&[&busy.url(), &busy.url()]);
    let held: Vec<_> = (0..2)
        .map(|_| {
            let mut service = front.proxy.service();
            tokio::spawn(async move {
                let request = Request::get("http://h/").body(body::empty()).unwrap();
                service.call(request).await.unwrap().status()
            })
        })
        .collect();
    busy.traffic().wait_for_requests(3).await;
    assert_eq!(front.http1().await.get("/").await.unwrap().status, 503);
    opened.add_permits(2);
    for held in held {
        assert_eq!(held.await.unwrap(), 200);
    }
    front.settled().await;
}

/// The origin reads a second request and closes without a response. It may have processed it, so
/// only idempotent requests are retried.
#[tokio::test]
async fn a_request_that_was_sent_is_sent_again_only_if_that_does_no_harm() {
    for (method, status, connections) in [("POST", 502, 1), ("GET", 200, 2)] {
        for origin in [
            faults::closes_at_next_request(),
            faults::resets_at_next_request(),
        ] {
            let front = Front::to(origin.url());
            let mut client = front.http1().await;
            assert_eq!(client.get("/").await.unwrap().status, 200);
            let request = client.request(method, "/").body(body::empty()).unwrap();
            assert_eq!(client.send(request).await.unwrap().status, status);
            assert_eq!(origin.traffic().counts().accepted, connections);
            front.settled().await;
        }
    }
}

/// A destination that rejects a stream has not processed its request (RFC 9113 section 8.7). A
/// request without body is retried once; a body is gone.
#[tokio::test]
async fn a_refused_stream_is_tried_again_once() {
    for (origin, tries) in [
        (
            faults::h2::resets_streams(h2::Reason::REFUSED_STREAM.into()),
            2,
        ),
        (faults::h2::goes_away(), 2),
        (
            faults::h2::resets_streams(h2::Reason::INTERNAL_ERROR.into()),
            1,
        ),
        (faults::h2::resets_streams(h2::Reason::CANCEL.into()), 1),
    ] {
        let front = Front::start(&config_with(&[&origin.url()], &h2c()));
        let mut client = front.http1().await;
        assert_eq!(client.get("/").await.unwrap().status, 502);
        assert_eq!(origin.traffic().requests(), tries);
        let request = client
            .request("POST", "/")
            .body(body::full("content"))
            .unwrap();
        assert_eq!(client.send(request).await.unwrap().status, 502);
        assert_eq!(origin.traffic().requests(), tries + 1);
        front.settled().await;
    }
}

/// The destination may have processed the request, so another one gets only idempotent ones.
#[tokio::test]
async fn a_destination_of_http2_that_dies_is_passed_over() {
    for (method, content, status) in [
        ("GET", "", 200),
        ("DELETE", "", 200),
        ("POST", "", 502),
        ("PUT", "content", 502),
    ] {
        let dying = faults::h2::closes_before_answer();
        let other = Origin::echo();
        let mut settings = h2c();
        settings["LoadBalancingPolicy"] = json!("FirstAlphabetical");
        let front = Front::start(&config_with(&[&dying.url(), &other.url()], &settings));
        let mut client = front.http1().await;
        let request = client.request(method, "/").body(match content {
            "" => body::empty(),
            content => body::full(content),
        });
        let answer = guarded("the answer", client.send(request.unwrap())).await;
        assert_eq!(answer.unwrap().status, status, "{method} {content:?}");
        assert_eq!(dying.traffic().requests(), 1, "{method} {content:?}");
        assert_eq!(other.traffic().requests(), u64::from(status == 200));
        front.settled().await;
    }
}

/// Requests that a connection no longer accepts use another connection.
#[tokio::test]
async fn a_connection_on_which_no_stream_is_allowed_is_replaced() {
    for multiple in [true, false] {
        let origin = faults::h2::allows_one_request();
        let mut settings = h2c();
        settings["HttpClient"] = json!({ "EnableMultipleHttp2Connections": multiple });
        let front = Front::start(&config_with(&[&origin.url()], &settings));
        let mut client = front.http1().await;
        for i in 0..3 {
            let request = client.request("POST", "/").body(body::full("content"));
            let answer = guarded("the answer", client.send(request.unwrap())).await;
            assert_eq!(answer.unwrap().status, 200, "{multiple} {i}");
        }
        assert_eq!(origin.traffic().counts().accepted, 3, "{multiple}");
        front.settled().await;
    }
}

/// The client gets an error long before the cluster's `ActivityTimeout` of 100 s.
#[tokio::test]
async fn a_destination_that_allows_no_stream_at_all_fails_requests_soon() {
    let origin = faults::h2::allows_nothing();
    let front = Front::start(&config_with(&[&origin.url()], &h2c()));
    for method in ["GET", "POST"] {
        let mut client = front.http1().await;
        let request = client.request(method, "/").body(body::empty()).unwrap();
        let answer = guarded("the answer", client.send(request)).await;
        assert_eq!(answer.unwrap().status, 502, "{method}");
    }
    front.settled().await;
}

/// No request of a burst is lost: those that a destination without streams did not get go to another one, and so do
/// those that it may have got, if repeating them is harmless.
#[tokio::test]
async fn a_burst_passes_over_a_destination_that_allows_no_stream() {
    const BURST: usize = 20;
    for (method, may_be_repeated) in [("GET", true), ("POST", false)] {
        let none = faults::h2::allows_nothing();
        let other = Origin::echo();
        let mut settings = h2c();
        settings["LoadBalancingPolicy"] = json!("FirstAlphabetical");
        // All of them wait for one connection.
        settings["HttpClient"] = json!({ "EnableMultipleHttp2Connections": false });
        let front = Front::start(&config_with(&[&none.url(), &other.url()], &settings));
        let (service, mut burst) = (front.proxy.service(), JoinSet::new());
        for _ in 0..BURST {
            let mut service = service.clone();
            let request = Request::builder().method(method).uri("http://h/");
            let request = request.body(body::empty()).unwrap();
            burst.spawn(async move { service.call(request).await.unwrap().status() });
        }
        let answers = guarded("the answers", burst.join_all()).await;
        let failed = answers.iter().filter(|status| **status != 200).count();
        // The first request of each connection is sent before it is known that the destination allows none.
        let sent = none.traffic().requests() as usize;
        assert!(
            (1..=BURST / 2).contains(&sent),
            "{method}: {sent} of {BURST}"
        );
        assert_eq!(failed, if may_be_repeated { 0 } else { sent }, "{method}");
        front.settled().await;
    }
}

/// A body is sent once, from beginning to end, whatever happens to connections.
#[tokio::test]
async fn a_retried_upload_is_whole() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = connections.clone();
    let origin = RawOrigin::script(move |mut connection| {
        let counter = counter.clone();
        async move {
            counter.fetch_add(1, Ordering::SeqCst);
            let (_, body) = connection.read_whole_request().await?;
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            connection
                .write_all([answer.as_bytes(), &body].concat())
                .await
        }
    });
    let front = Front::to(origin.url());
    let mut client = front.http1().await;
    for content in ["first", "second", "third"] {
        let request = client
            .request("PUT", "/")
            .body(body::full(content))
            .unwrap();
        let answer = client.send(request).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.text().as_str()),
            (200, content)
        );
    }
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn an_http2_connection_that_says_goodbye_is_replaced() {
    let origin = Origin::echo();
    let front = Front::start(&config_with(&[&origin.url()], &h2c()));
    let mut client = front.http1().await;
    assert_eq!(client.get("/").await.unwrap().status, 200);
    origin.drain();
    // Every connection ends after one exchange from here on.
    for _ in 0..20 {
        let request = client
            .request("POST", "/")
            .body(body::full("content"))
            .unwrap();
        let answer = client.send(request).await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json::<Echo>().body_text.as_deref(), Some("content"));
    }
    front.settled().await;
}

/// The next POST finds a connection whose end has arrived, whether the proxy has read that or not.
#[tokio::test]
async fn an_idle_http2_connection_that_ends_fails_no_post() {
    const REQUESTS: u64 = 200;
    let closed = Arc::new(Semaphore::new(0));
    let goodbye = faults::h2::goes_away_after_answer();
    let closing = faults::h2::closes_after_answer(&closed);
    for (origin, closes) in [(goodbye, false), (closing, true)] {
        let front = Front::start(&config_with(&[&origin.url()], &h2c()));
        let mut client = front.http1().await;
        for i in 1..=REQUESTS {
            let request = client.request("POST", "/").body(body::empty()).unwrap();
            let answer = guarded("an answer", client.send(request)).await.unwrap();
            assert_eq!(answer.status, 200, "{closes} {i}: {}", answer.text());
            // Without GOAWAY it is not known if a request that overtook the end was processed.
            if closes {
                guarded("the end", closed.acquire()).await.unwrap().forget();
            }
        }
        let counts = origin.traffic().counts();
        assert!(counts.accepted >= REQUESTS, "{counts:?}");
        front.settled().await;
    }
}

/// F14: nothing was sent, so another destination may get the request with its body, even if it is
/// so busy that every policy that considers load prefers the refusing one.
#[tokio::test]
async fn f14_a_destination_that_rejects_is_passed_over() {
    const BUSY: usize = 8;
    let dead = RefusingPort::new();
    for policy in [
        "PowerOfTwoChoices",
        "RoundRobin",
        "Random",
        "LeastRequests",
        "FirstAlphabetical",
    ] {
        let origin = RawOrigin::script(|mut connection| async move {
            while let Ok((head, body)) = connection.read_whole_request().await {
                if head.target == "/busy" {
                    return connection.wait_for_close().await.map(drop);
                }
                assert_eq!(body, b"content");
                connection.write_all(OK).await?;
            }
            Ok(())
        });
        let settings = json!({ "LoadBalancingPolicy": policy });
        let front = Front::start(&config_with(&[&dead.url(), &origin.url()], &settings));
        let mut busy = JoinSet::new();
        for _ in 0..BUSY {
            let mut service = front.proxy.service();
            let request = Request::get("http://h/busy").body(body::empty()).unwrap();
            busy.spawn(async move { service.call(request).await.map(drop) });
        }
        eventually("it is busy", async || {
            front.destination(1).in_flight as usize == BUSY
        })
        .await;
        let mut client = front.http1().await;
        for _ in 0..40 {
            let request = client
                .request("POST", "/")
                .body(body::full("content"))
                .unwrap();
            let answer = client.send(request).await.unwrap();
            assert_eq!(answer.status, 200, "{policy}: {}", answer.text());
        }
        drop(busy);
        front.settled().await;
        let dead = front.destination(0);
        assert!(dead.connect_failures > 0, "{policy} never asks it");
        assert_eq!(dead.responses.success, 0);
        assert_eq!(
            dead.errors.get("Request").copied().unwrap_or(0),
            dead.connect_failures
        );
    }
}

/// At most three destinations are tried, not all.
#[tokio::test]
async fn no_more_than_two_other_destinations_are_tried() {
    let dead: Vec<_> = (0..5).map(|_| RefusingPort::new()).collect();
    let urls: Vec<_> = dead.iter().map(RefusingPort::url).collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let front = Front::start(&config(&urls));
    assert_eq!(front.http1().await.get("/").await.unwrap().status, 502);
    front.settled().await;
    let tried: u64 = (0..5).map(|i| front.destination(i).connect_failures).sum();
    assert_eq!(tried, 3);
}

/// A response of an origin is final, whatever its status.
#[tokio::test]
async fn errors_of_the_origin_are_not_retried() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = seen.clone();
    let handler = move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        async {
            let mut response = Response::new(body::full("busy"));
            *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            response
        }
    };
    let origin = Origin::start(handler);
    let front = Front::start(&config(&[&origin.url(), &origin.url()]));
    let answer = front.http1().await.get("/").await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), answer.text().as_str()),
        (503, "busy")
    );
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_connection_that_is_going_away_is_not_taken_for_the_only_one() {
    for multiple in [true, false] {
        let origin = Origin::echo();
        let mut settings = h2c();
        settings["HttpClient"] = json!({ "EnableMultipleHttp2Connections": multiple });
        let front = Front::start(&config_with(&[&origin.url()], &settings));
        let mut client = front.http1().await;
        assert_eq!(client.get("/").await.unwrap().status, 200);
        origin.drain();
        for _ in 0..10 {
            assert_eq!(client.get("/").await.unwrap().status, 200, "{multiple}");
        }
    }
}
