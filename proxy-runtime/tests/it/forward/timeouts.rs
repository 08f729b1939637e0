//! Timeouts.
//!
//! Time is virtual here. It advances when no task has work to do, in steps of at most a second,
//! since the proxy's driver wakes up every second.

use std::io::{Read, Write};
use std::task::{Context, Waker};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use serde_json::json;
use testkit::body;
use testkit::client::ClientError;
use testkit::faults;
use testkit::origin::{Incoming, Origin};
use testkit::raw::RawClient;
use tower_service::Service;

use crate::forward::front::{Front, config, config_with, config_with_route, h2c};

fn ten_seconds() -> serde_json::Value {
    json!({ "HttpRequest": { "ActivityTimeout": "00:00:10" } })
}

/// The other meaning of `Timeout`, which is YARP's: the body of the response counts.
#[tokio::test(start_paused = true)]
async fn a_timeout_may_include_the_body() {
    // Between two parts, so that the destination is what is waited for.
    let timeout = json!({ "Timeout": "00:00:10.5", "TimeoutIncludesBody": true });
    // `/20` is a body of twenty parts, one a second.
    let origin = Origin::start(|request: Request<Incoming>| async move {
        let parts = request.uri().path()[1..].parse().unwrap();
        let (mut send, response) = body::channel(1);
        tokio::spawn(async move {
            for _ in 0..parts {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if send.send_data("part ".into()).await.is_err() {
                    return;
                }
            }
        });
        Response::new(response)
    });
    for cluster in [json!({}), h2c()] {
        let mut config = config_with(&[&origin.url()], &cluster);
        config["Routes"] = config_with_route(&[], &timeout)["Routes"].take();
        let front = Front::start(&config);
        for mut client in [front.http1().await, front.http2().await] {
            assert_eq!(client.get("/8").await.unwrap().text(), "part ".repeat(8));
            let error = client.get("/20").await.unwrap_err();
            let received = error.truncated().expect("the head had come").text().len();
            assert!((40..=50).contains(&received), "{received} by {cluster}");
        }
        front.settled().await;
        assert_eq!(front.errors("ResponseBodyDestination"), 2, "{cluster}");
        assert_eq!(front.errors("RequestTimedOut"), 0, "{cluster}");
    }
}

/// The party of a service that was waited for is at fault when the time is over, even if more of the response comes at
/// the same moment.
#[tokio::test]
async fn who_was_waited_for_has_exceeded_the_time_of_a_service() {
    /// Enough for the head of the response, also on a busy machine.
    const TIME: Duration = Duration::from_secs(1);
    let timeout = json!({ "Timeout": "00:00:01", "TimeoutIncludesBody": true });
    for (is_late, kind) in [
        (true, "ResponseBodyDestination"),
        (false, "ResponseBodyCanceled"),
    ] {
        let (go_on, told) = std::sync::mpsc::channel();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let origin = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1024];
            assert!(stream.read(&mut head).unwrap() > 0);
            let first = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\nfirst";
            stream.write_all(first).unwrap();
            told.recv().unwrap();
            stream.write_all(b"other").unwrap();
            let _ = told.recv();
        });
        let front = Front::start(&config_with_route(&[&url], &timeout));
        let request = Request::get("http://h/").body(body::empty()).unwrap();
        let response = front.proxy.service().call(request).await.unwrap();
        let mut body = response.into_body();
        let part = body.frame().await.unwrap().unwrap();
        assert_eq!(part.into_data().unwrap(), "first");
        if is_late {
            // From now on the destination is waited for.
            let mut next = std::pin::pin!(body.frame());
            let mut cx = Context::from_waker(Waker::noop());
            assert!(next.as_mut().poll(&mut cx).is_pending());
        }
        go_on.send(()).unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "nothing is polled meanwhile, so that both are known at once"
        )]
        std::thread::sleep(TIME * 2);
        let mut ended = body.frame().await.unwrap();
        if let Ok(part) = ended {
            assert_eq!(part.into_data().unwrap(), "other");
            ended = body.frame().await.unwrap();
        }
        assert!(ended.is_err());
        drop((body, go_on));
        front.settled().await;
        assert_eq!(front.errors(kind), 1, "late: {is_late}");
        origin.join().unwrap();
    }
}

/// A tunnel has no end that the timeout could be about, on either path.
#[tokio::test(start_paused = true)]
async fn a_tunnel_outlives_a_timeout_that_includes_the_body() {
    let origin = Origin::upgrade_echo();
    let timeout = json!({ "Timeout": "00:00:10", "TimeoutIncludesBody": true });
    let front = Front::start(&config_with_route(&[&origin.url()], &timeout));
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    let request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
    client.write_all(request).await.unwrap();
    assert_eq!(client.read_response_head().await.unwrap().status, 101);
    tokio::time::sleep(Duration::from_secs(60)).await;
    client.write_all("hello").await.unwrap();
    assert_eq!(client.read_exact(5).await.unwrap(), b"hello");
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_says_nothing_is_504() {
    for origin in [faults::never_answers(), faults::stops_mid_head()] {
        let front = Front::start(&config_with(&[&origin.url()], &ten_seconds()));
        for mut client in [front.http1().await, front.http2().await] {
            assert_eq!(client.get("/").await.unwrap().status, 504);
        }
        front.settled().await;
        assert_eq!(front.errors("RequestTimedOut"), 2);
        // A cancelled request leaves no connection behind.
        front.connections(0, 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_stops_is_cut_off() {
    for chunked in [false, true] {
        let origin = faults::stops_mid_body(chunked);
        let front = Front::start(&config_with(&[&origin.url()], &ten_seconds()));
        for mut client in [front.http1().await, front.http2().await] {
            let error = client.get("/").await.unwrap_err();
            let received = error.truncated().expect("the head and a part had come");
            assert_eq!(received.text(), faults::PARTIAL);
        }
        front.settled().await;
        assert_eq!(front.errors("ResponseBodyDestination"), 2);
        front.connections(0, 0).await;
    }
}

/// L07: the timeout limits silence, not the total time.
#[tokio::test(start_paused = true)]
async fn l07_slow_but_steady_is_fine() {
    let origin = faults::slow_body(30, Duration::from_secs(1));
    let front = Front::start(&config_with(&[&origin.url()], &ten_seconds()));
    let answer = front.http1().await.get("/").await.unwrap();
    assert_eq!(answer.text(), faults::PARTIAL.repeat(30));

    let origin = Origin::echo();
    let front = Front::start(&config_with(&[&origin.url()], &ten_seconds()));
    let mut client = front.http1().await;
    let (mut send, upload) = body::channel(1);
    let feed = tokio::spawn(async move {
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            send.send_data("part ".into()).await.unwrap();
        }
    });
    let request = client.request("POST", "/").body(upload).unwrap();
    let echo: testkit::origin::Echo = client.send(request).await.unwrap().json();
    assert_eq!(echo.body_length, 150);
    feed.await.unwrap();
}

/// The client declares a body and does not send it.
#[tokio::test(start_paused = true)]
async fn an_upload_that_stops_is_408() {
    let origin = Origin::echo();
    let front = Front::start(&config_with(&[&origin.url()], &ten_seconds()));
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    let request = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf";
    client.write_all(request).await.unwrap();
    assert_eq!(client.read_response().await.unwrap().status(), 408);
    front.settled().await;
    assert_eq!(front.errors("RequestBodyClient"), 1);
    front.connections(0, 0).await;
}

/// The origin does not read the body.
#[tokio::test(start_paused = true)]
async fn an_upload_that_is_not_read_is_504() {
    let origin = faults::never_reads();
    let front = Front::start(&config_with(&[&origin.url()], &ten_seconds()));
    let mut client = front.http1().await;
    let request = client
        .request("POST", "/")
        .body(body::endless(vec![b'x'; 64 * 1024]))
        .unwrap();
    match client.send(request).await {
        Ok(answer) => assert_eq!(answer.status, 504),
        // The server aborts the upload, perhaps before the response is read.
        Err(error) => assert!(
            matches!(error, ClientError::NoAnswer(_)),
            "{}",
            error.chain()
        ),
    }
    front.settled().await;
    assert_eq!(front.errors("RequestBodyDestination"), 1);
    front.connections(0, 0).await;
}

/// A route's timeout runs from the request to the head of its response, whatever data moves
/// meanwhile.
#[tokio::test(start_paused = true)]
async fn a_route_has_a_timeout_of_its_own() {
    let origin = faults::never_answers();
    let timeout = json!({ "Timeout": "00:00:10" });
    let front = Front::start(&config_with_route(&[&origin.url()], &timeout));
    let mut client = front.http1().await;
    let (mut send, upload) = body::channel(1);
    let feed = tokio::spawn(async move {
        while send.send_data("more ".into()).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let request = client.request("POST", "/").body(upload).unwrap();
    let answer = client.send(request).await.unwrap();
    assert_eq!(answer.status, 504);
    feed.await.unwrap();
    front.settled().await;

    // The body may take longer.
    let origin = faults::slow_body(20, Duration::from_secs(1));
    let front = Front::start(&config_with_route(&[&origin.url()], &timeout));
    let answer = front.http1().await.get("/").await.unwrap();
    assert_eq!(answer.text(), faults::PARTIAL.repeat(20));
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_does_not_accept_is_504() {
    let port = faults::UnansweredPort::new();
    let front = Front::start(&config(&[&port.url()]));
    let started = tokio::time::Instant::now();
    assert_eq!(front.http1().await.get("/").await.unwrap().status, 504);
    assert!(started.elapsed() >= Duration::from_secs(15));
    front.settled().await;
    assert_eq!(front.errors("RequestTimedOut"), 1);
    assert_eq!(front.destination(0).connect_failures, 1);

    // The route's timeout cancels it.
    let timeout = json!({ "Timeout": "00:00:03" });
    let front = Front::start(&config_with_route(&[&port.url()], &timeout));
    assert_eq!(front.http1().await.get("/").await.unwrap().status, 504);
    front.settled().await;
    assert_eq!(front.destination(0).connect_failures, 1);
}

/// Transforms for failures apply to local replies (G23).
#[tokio::test(start_paused = true)]
async fn g23_the_proxys_own_errors_carry_the_routes_headers() {
    let port = faults::RefusingPort::new();
    let transforms = json!({ "Transforms": [
        { "ResponseHeader": "x-failed", "Set": "yes", "When": "Failure" },
        { "ResponseHeader": "x-ok", "Set": "yes" },
    ] });
    let front = Front::start(&config_with_route(&[&port.url()], &transforms));
    let answer = front.http1().await.get("/").await.unwrap();
    assert_eq!(answer.status, 502);
    assert_eq!(answer.header("x-failed"), Some("yes"));
    assert_eq!(answer.header("x-ok"), None);
}
