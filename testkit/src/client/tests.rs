use std::time::Duration;

use http::Response;
use http_body_util::BodyExt;

use super::{ClientError, Connection, Load, Protocol};
use crate::body;
use crate::faults;
use crate::origin::{Echo, Origin};
use crate::raw::RawOrigin;

#[tokio::test]
async fn whole_answer_is_collected() {
    let origin = RawOrigin::answering(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
         HTTP/1.1 201 Created\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 2\r\n\r\n",
    );
    let mut client = Connection::http1(origin.addr()).await.unwrap();
    assert_eq!(client.protocol(), Protocol::Http1);
    for _ in 0..2 {
        let answer = client.get("/").await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.text().as_str()),
            (201, "hello")
        );
        assert_eq!(answer.header("x-a"), Some("1"));
        assert_eq!(answer.trailers.unwrap()["x-t"], "2");
        let interim: Vec<_> = answer
            .interim
            .iter()
            .map(|interim| (interim.status.as_u16(), &interim.headers["link"]))
            .collect();
        assert_eq!(interim, [(103, &http::HeaderValue::from_static("</a>"))]);
    }
    assert_eq!(origin.traffic().counts().accepted, 1);
}

#[tokio::test]
async fn closed_connection_is_told_from_a_lost_request() {
    let origin = faults::closes_after_answer();
    let mut client = Connection::http1(origin.addr()).await.unwrap();
    client.get("/").await.unwrap();
    client.closed().await;
    assert!(client.is_closed());
    let error = client.get("/").await.unwrap_err();
    assert!(matches!(error, ClientError::NotSent(_)), "{error:?}");

    let origin = faults::closes_before_answer();
    let mut client = Connection::http1(origin.addr()).await.unwrap();
    let error = client.get("/").await.unwrap_err();
    assert!(matches!(error, ClientError::NoAnswer(_)), "{error:?}");
}

#[tokio::test]
async fn handles_of_one_http2_connection_share_it() {
    let origin = Origin::echo();
    let mut first = Connection::http2(origin.addr()).await.unwrap();
    let mut second = first.share().unwrap();
    let (a, b) = tokio::join!(first.get("/a"), second.get("/b"));
    assert_eq!(a.unwrap().json::<Echo>().path_and_query(), "/a");
    assert_eq!(b.unwrap().json::<Echo>().path_and_query(), "/b");
    assert_eq!(origin.traffic().counts().accepted, 1);
    drop(first);
    second.get("/c").await.unwrap();
    drop(second);
    origin.traffic().wait_for_open(0).await;
    assert!(
        Connection::http1(origin.addr())
            .await
            .unwrap()
            .share()
            .is_none()
    );
}

#[tokio::test]
async fn dropping_a_send_cancels_the_exchange() {
    for http2 in [false, true] {
        let (gone, seen) = tokio::sync::mpsc::unbounded_channel();
        let origin = Origin::start(move |request| {
            let gone = gone.clone();
            async move {
                let broken = request.into_body().collect().await.is_err();
                gone.send(broken).unwrap();
                Response::new(body::empty())
            }
        });
        let mut client = match http2 {
            false => Connection::http1(origin.addr()).await.unwrap(),
            true => Connection::http2(origin.addr()).await.unwrap(),
        };
        let (_sender, upload) = body::channel(1);
        let request = client.request("POST", "/").body(upload).unwrap();
        let started = origin.traffic().wait_for_requests(1);
        tokio::select! {
            answer = client.send(request) => panic!("{answer:?}"),
            _ = started => {}
        }
        if !http2 {
            drop(client);
        }
        let mut seen = seen;
        assert_eq!(
            crate::time::guarded("the handler", seen.recv()).await,
            Some(true)
        );
    }
}

#[tokio::test]
async fn load_counts_what_was_done() {
    for http2 in [false, true] {
        let origin = Origin::named("a");
        let load = Load::new(origin.addr()).connections(3).path("/x");
        let load = if http2 { load.http2() } else { load };
        let running = load.start();
        running.wait_for_finished(50).await;
        let report = running.stop().await;
        report.assert_no_failure();
        assert_eq!((report.connections, report.reconnects), (3, 0));
        assert_eq!(report.succeeded, origin.served());
    }
}

#[tokio::test]
async fn load_ends_at_its_greatest_number_or_duration() {
    let origin = Origin::named("a");
    let report = Load::new(origin.addr())
        .max_requests(25)
        .start()
        .finish()
        .await;
    assert_eq!(
        (report.finished, report.succeeded, origin.served()),
        (25, 25, 25)
    );

    let silent = faults::never_answers();
    let load = Load::new(silent.addr())
        .connections(1)
        .max_duration(Duration::from_millis(500))
        .request_limit(Duration::from_millis(700));
    let report = load.start().finish().await;
    assert_eq!(report.failed["no answer within 700ms"], 1);
}

#[tokio::test]
async fn load_rests_between_requests_until_it_is_stopped() {
    let origin = Origin::named("a");
    let begun = std::time::Instant::now();
    let pause = Duration::from_millis(10);
    let load = Load::new(origin.addr()).connections(1).pause(pause);
    load.max_requests(4).start().finish().await;
    assert!(begun.elapsed() >= pause * 3);

    let pause = Duration::from_secs(3600);
    let load = Load::new(origin.addr()).connections(2).pause(pause).start();
    load.wait_for_finished(2).await;
    let report = crate::time::guarded("its end", load.stop()).await;
    assert_eq!(report.finished, 2);
}

#[tokio::test]
async fn load_counts_failures_by_reason() {
    let origin = Origin::named("a");
    origin.set_healthy(false);
    let load = Load::new(origin.addr())
        .connections(1)
        .request(|connection, number| {
            let path = if number % 2 == 0 { "/health" } else { "/" };
            connection.request("GET", path).body(body::empty()).unwrap()
        });
    let report = load.max_requests(10).start().finish().await;
    assert_eq!((report.succeeded, report.failures()), (5, 5));
    assert_eq!(report.failed["status 503"], 5);

    let nobody = faults::RefusingPort::new();
    let report = Load::new(nobody.addr())
        .max_requests(4)
        .start()
        .finish()
        .await;
    let (reason, count) = report.failed.first_key_value().unwrap();
    assert!(
        reason.starts_with("cannot connect: Connection refused"),
        "{reason}"
    );
    assert_eq!((*count, report.connections), (4, 0));

    let picky = Load::new(origin.addr()).expect(|answer| match answer.text().as_str() {
        "b" => Ok(()),
        other => Err(format!("{other} answered")),
    });
    let report = picky.max_requests(3).start().finish().await;
    assert_eq!(report.failed["a answered"], 3);
}

#[tokio::test]
#[should_panic(expected = "3 × status 503")]
async fn report_names_the_failures() {
    let origin = Origin::named("a");
    origin.set_healthy(false);
    let load = Load::new(origin.addr()).path("/health").max_requests(3);
    let mut report = load.start().finish().await;
    report.succeeded = 1;
    report.assert_no_failure();
}

#[tokio::test]
#[should_panic(expected = "the load did nothing")]
async fn load_that_did_nothing_proves_nothing() {
    let origin = Origin::named("a");
    let report = Load::new(origin.addr())
        .max_requests(0)
        .start()
        .finish()
        .await;
    report.assert_no_failure();
}

#[tokio::test]
async fn load_follows_an_orderly_close_without_failure() {
    // Each connection serves one request and closes.
    let origin = RawOrigin::answering_once(
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
    );
    let load = Load::new(origin.addr()).connections(2).max_requests(20);
    let report = load.start().finish().await;
    report.assert_no_failure();
    assert_eq!((report.connections, report.succeeded), (20, 20));
    assert!(report.reconnects >= 18, "{report}");
}

#[tokio::test]
async fn load_sees_a_request_lost_on_a_reused_connection() {
    let origin = faults::closes_at_next_request();
    let load = Load::new(origin.addr()).connections(1).max_requests(4);
    let report = load.start().finish().await;
    assert_eq!((report.succeeded, report.failures()), (2, 2), "{report}");
}

#[tokio::test]
async fn load_follows_connections_that_are_drained() {
    let origin = Origin::named("a");
    let load = Load::new(origin.addr()).http2().connections(2).start();
    for round in 1..=20 {
        load.wait_for_finished(round * 20).await;
        origin.drain();
    }
    let report = load.stop().await;
    report.assert_no_failure();
    assert!(report.reconnects >= 20, "{report}");
}
