//! Clients that disconnect at every point.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use testkit::body;
use testkit::faults;
use testkit::origin::{Origin, Protocols};
use testkit::raw::frame::Frame;
use testkit::raw::{RawClient, RawOrigin};
use tower_service::Service;

use crate::forward::front::{Front, config, config_with, h2c};

#[tokio::test]
async fn a_client_that_goes_away_ends_the_request_at_the_origin() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection.never_answer().await
    });
    let front = Front::to(origin.url());
    // The behaviour of a server whose client disconnects.
    let mut service = front.proxy.service();
    let request = Request::get("http://h/").body(body::empty()).unwrap();
    let called = tokio::spawn(async move { service.call(request).await.map(drop) });
    origin.traffic().wait_for_requests(1).await;
    called.abort();
    origin.traffic().wait_for_open(0).await;
    front.settled().await;
    front.wait_for_errors("RequestCanceled", 1).await;

    let mut client = front.http2().await;
    let request = client.request("GET", "/").body(body::empty()).unwrap();
    let sent = tokio::spawn(async move { client.send(request).await.map(drop) });
    origin.traffic().wait_for_requests(2).await;
    sent.abort();
    origin.traffic().wait_for_open(0).await;
    front.settled().await;
    front.wait_for_errors("RequestCanceled", 2).await;
}

#[tokio::test]
async fn an_endless_body_ends_with_its_client() {
    let origin = faults::endless_body();
    let front = Front::to(origin.url());
    for mut client in [front.http1().await, front.http2().await] {
        let request = client.request("GET", "/").body(body::empty()).unwrap();
        let mut response = client.send_streaming(request).await.unwrap();
        for _ in 0..10 {
            response.frame().await.unwrap().unwrap();
        }
        drop((response, client));
        origin.traffic().wait_for_open(0).await;
        front.settled().await;
    }
    front.wait_for_errors("ResponseBodyCanceled", 2).await;
    front.connections(0, 0).await;
}

/// Over HTTP/2 to the origin the stream is reset, and the connection lives on.
#[tokio::test]
async fn an_http2_stream_is_reset_and_its_connection_kept() {
    let reset = Arc::new(tokio::sync::Notify::new());
    let seen = reset.clone();
    let origin = Origin::builder()
        .protocols(Protocols::Http2)
        .start(move |request| {
            let seen = seen.clone();
            async move {
                if request.uri().path() == "/short" {
                    return Response::new(body::full("short"));
                }
                let (mut send, answer) = body::channel(1);
                tokio::spawn(async move {
                    while send.send_data("more".into()).await.is_ok() {}
                    seen.notify_one();
                });
                Response::new(answer)
            }
        });
    let front = Front::start(&config_with(&[&origin.url()], &h2c()));
    let mut client = front.http1().await;
    let request = client.request("GET", "/long").body(body::empty()).unwrap();
    let mut response = client.send_streaming(request).await.unwrap();
    response.frame().await.unwrap().unwrap();
    drop((response, client));
    testkit::time::guarded("the reset", reset.notified()).await;
    front.settled().await;
    assert_eq!(
        front.http1().await.get("/short").await.unwrap().text(),
        "short"
    );
    assert_eq!(origin.traffic().counts().accepted, 1);
}

#[tokio::test]
async fn an_upload_that_breaks_off_is_never_taken_for_whole() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await.map(drop)
    });
    let front = Front::to(origin.url());
    for request in [
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let before = origin.traffic().requests();
        let mut client = RawClient::connect(front.server.addr()).await.unwrap();
        client.write_all(request).await.unwrap();
        origin.traffic().wait_for_requests(before + 1).await;
        drop(client);
        origin.traffic().wait_for_open(0).await;
    }
    for index in 0..2 {
        let read = origin.recording(index).outcome().await;
        assert!(read.is_err(), "the origin took a part for the whole");
    }
    front.settled().await;
    front.connections(0, 0).await;
}

/// L08: the upload ends early, before there is a response.
#[tokio::test]
async fn l08_a_body_that_fails_is_400() {
    let echo = Origin::builder().protocols(Protocols::Http1).start_echo();
    let echo2 = Origin::builder().protocols(Protocols::Http2).start_echo();
    for config in [config(&[&echo.url()]), config_with(&[&echo2.url()], &h2c())] {
        let front = Front::start(&config);
        let upload = body::failing("half", "the disk is gone");
        let request = Request::post("http://h/").body(upload).unwrap();
        let response = front.proxy.service().call(request).await.unwrap();
        assert_eq!(response.status(), 400);
        drop(response);
        front.settled().await;
        assert_eq!(front.errors("RequestBodyClient"), 1);
    }
}

/// The response is complete, but the destination neither reads the rest of the upload nor closes.
#[tokio::test(start_paused = true)]
async fn an_upload_that_nobody_reads_any_more_ends() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        connection.write_all(answer).await?;
        connection.hold().await
    });
    let settings = serde_json::json!({ "HttpRequest": { "ActivityTimeout": "00:00:10" } });
    let front = Front::start(&config_with(&[&origin.url()], &settings));
    let upload = body::endless(vec![b'x'; 64 * 1024]);
    let request = Request::post("http://h/").body(upload).unwrap();
    let mut service = front.proxy.service();
    let response = service.call(request).await.unwrap();
    let content = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(content, "ok");
    front.settled().await;
    front.connections(0, 0).await;
}

/// The same over HTTP/2, where the destination grants no more window: with a complete response, and
/// with a client that disconnects in the middle of one. No connection is kept with unfinished
/// streams.
#[tokio::test(start_paused = true)]
async fn an_upload_that_an_http2_origin_takes_no_more_of_ends() {
    for is_whole in [true, false] {
        let origin = faults::h2::answers(move |stream| {
            vec![
                Frame::headers(stream, &[(":status", "200")], false),
                Frame::data(stream, "ok", is_whole),
            ]
        });
        let mut config = config_with(&[&origin.url()], &h2c());
        config["Clusters"]["c"]["HttpRequest"]["ActivityTimeout"] = "00:00:10".into();
        let front = Front::start(&config);
        let upload = body::endless(vec![b'x'; 64 * 1024]);
        let request = Request::post("http://h/").body(upload).unwrap();
        let mut service = front.proxy.service();
        let response = service.call(request).await.unwrap();
        let mut content = response.into_body();
        let first = content.frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "ok");
        if is_whole {
            assert!(content.frame().await.is_none());
        }
        // A concurrent request is not affected, whatever its duration.
        let beside = Request::get("http://h/").body(body::empty()).unwrap();
        let beside = service.call(beside).await.unwrap();
        drop(content);
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        drop(beside);
        front.settled().await;
        front.connections(0, 0).await;
    }
}

/// F36: the request is dropped after each number of polls, until it completes. Nothing is left
/// behind.
#[tokio::test]
async fn f36_dropped_at_any_poll_nothing_leaks() {
    let echo = Origin::builder().protocols(Protocols::Http1).start_echo();
    let echo2 = Origin::builder().protocols(Protocols::Http2).start_echo();
    for config in [config(&[&echo.url()]), config_with(&[&echo2.url()], &h2c())] {
        let front = Front::start(&config);
        let service = front.proxy.service();
        let mut polls = 0;
        loop {
            let mut service = service.clone();
            let upload = body::frames([Ok(body::data("some ")), Ok(body::data("content"))]);
            let request = Request::post("http://h/").body(upload).unwrap();
            let whole = async {
                let response = service.call(request).await.unwrap();
                response.into_body().collect().await.map(drop).unwrap();
            };
            if finishes_within(whole, polls).await {
                break;
            }
            front.settled().await;
            polls += 1;
            assert!(polls < 200, "a request of a few bytes takes fewer polls");
        }
        assert!(polls > 2, "it was dropped on the way {polls} times");
        front.settled().await;
        drop(service);
        // Connections belong to the pool, and end with it.
        front.connections(0, 0).await;
    }
}

/// Polls `future` on its wake-ups at most `polls` times, and then drops it. Returns true if it
/// completed.
async fn finishes_within(future: impl Future<Output = ()>, polls: usize) -> bool {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[tokio::test]
async fn a_body_tells_how_it_ended() {
    let origin = Origin::start(|_| async { Response::new(body::full("12345")) });
    let broken = faults::stops_mid_body(false);
    for (url, read, bytes, error) in [
        (origin.url(), true, 5, None),
        (broken.url(), false, 0, Some("ResponseBodyCanceled")),
    ] {
        let front = Front::to(url);
        let request = Request::get("http://h/").body(body::empty()).unwrap();
        let mut response = front.proxy.service().call(request).await.unwrap();
        let info = response
            .extensions()
            .get::<proxy_runtime::forward::ExchangeInfo>()
            .unwrap()
            .clone();
        assert_eq!(info.route.as_ref().unwrap(), &"all");
        assert_eq!(info.cluster.as_ref().unwrap(), &"c");
        assert_eq!(info.destination.as_ref().unwrap(), &"d0");
        assert!(info.upstream.is_some() && info.time_to_head.is_some());
        assert_eq!(info.error, None);
        let (tell, told) = std::sync::mpsc::channel();
        let first = tell.clone();
        response
            .body_mut()
            .on_end(move |end| first.send(end).unwrap());
        response
            .body_mut()
            .on_end(move |end| tell.send(end).unwrap());
        if read {
            let mut body = response.into_body();
            while body.frame().await.is_some() {}
            assert!(body.is_end_stream());
        } else {
            drop(response);
        }
        let ends: Vec<_> = told.try_iter().collect();
        assert_eq!(ends.len(), 2, "each hook once");
        for end in ends {
            assert_eq!(end.bytes, bytes);
            assert_eq!(end.error.map(|kind| kind.as_str()), error);
        }
    }
}
