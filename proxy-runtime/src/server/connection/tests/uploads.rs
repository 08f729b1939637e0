//! Bodies of requests on HTTP/1.1.

use std::cell::RefCell;

use futures_util::FutureExt as _;
use http_body::Frame;
use tokio::sync::mpsc;

use super::*;

const EXPECT: &str =
    "POST / HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_client_is_told_to_continue_when_its_body_is_wanted() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::length());
        client.send(EXPECT).await;
        assert_eq!(
            client.read_response().await,
            "HTTP/1.1 100 Continue\r\n\r\n"
        );
        client.send("hello").await;
        assert!(client.read_response().await.ends_with("\r\n\r\n5"));
        // It has not waited, so there is nothing to tell.
        client.send(format!("{EXPECT}hello")).await;
        let response = client.read_response().await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_never_asked_for_ends_the_connection() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::path());
        client.send(EXPECT).await;
        let response = client.read_response().await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
        assert_eq!(client.read_to_end().await, "");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_small_body_that_nobody_reads_is_passed_over() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::path());
        for body in [
            "content-length: 5\r\n\r\nhello",
            "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ] {
            client
                .send(format!("POST /1 HTTP/1.1\r\nhost: t\r\n{body}"))
                .await;
            assert!(client.read_response().await.ends_with("/1"));
            assert!(client.get("/2").await.ends_with("/2"));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_large_body_that_nobody_reads_ends_the_connection_with_the_response() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut client, task) = bench.connect(Handler::path());
        client
            .send("POST /1 HTTP/1.1\r\nhost: t\r\ncontent-length: 1000000\r\n\r\n")
            .await;
        let begin = Instant::now();
        // More than the pipe holds: it only fits if it is read, so that no reset overtakes the response.
        client.send(vec![b'x'; 1_000_000]).await;
        let response = client.read_response().await;
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
        assert_eq!(client.read_to_end().await, "");
        drop(client);
        task.await.unwrap();
        assert_elapsed(begin, Duration::ZERO);
    })
    .await;
}

/// Behind the end of the connection the rest is read on for a while, so that no reset overtakes the response.
#[tokio::test(start_paused = true)]
async fn a_body_without_an_end_is_given_up_after_256_kib() {
    const KEPT: usize = 256 * 1024;
    const BEHIND: usize = 8 * 1024 * 1024;
    /// More than the pipe and the server's buffer hold.
    const BUFFERED: usize = 128 * 1024;
    local(async {
        let (mut client, task) = Bench::new(Limits::default()).connect(Handler::path());
        client
            .send("POST /1 HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        assert!(client.read_response().await.ends_with("/1"));
        let (mut responses, mut body) = tokio::io::split(client.stream);
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
        let (mut sent, mut sent_at_end) = (0, None);
        while body.write_all(chunk.as_bytes()).await.is_ok() {
            sent += chunk.len();
            assert!(sent < KEPT + BEHIND + BUFFERED, "it is read without an end");
            if sent_at_end.is_none()
                && let Some(read) = responses.read(&mut [0]).now_or_never()
            {
                assert_eq!(read.unwrap(), 0);
                sent_at_end = Some(sent);
            }
        }
        let sent_at_end = sent_at_end.unwrap();
        assert!(
            (KEPT..KEPT + BUFFERED).contains(&sent_at_end),
            "{sent_at_end}"
        );
        task.await.unwrap();
    })
    .await;
}

/// Reads the body to its end in another task, and answers with what it had.
fn elsewhere() -> Handler {
    Handler::new(|request| async {
        let (sender, mut frames) = mpsc::channel(1);
        tokio::task::spawn_local(async move {
            let mut body = request.into_body();
            while let Some(frame) = body.frame().await {
                sender.send(frame).await.unwrap();
            }
        });
        let (mut data, mut trailers) = (Vec::new(), String::new());
        while let Some(frame) = frames.recv().await {
            match frame.map(Frame::into_data) {
                Ok(Ok(part)) => data.extend_from_slice(&part),
                Ok(Err(frame)) => trailers = format!("{:?}", frame.into_trailers().unwrap()),
                Err(error) => return text(&error.to_string()),
            }
        }
        text(&format!("{} {trailers}", data.len()))
    })
}

#[tokio::test(start_paused = true)]
async fn a_body_may_be_read_by_another_task() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(elsewhere());
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 100000\r\n\r\n")
            .await;
        for _ in 0..10 {
            tokio::time::sleep(secs(1)).await;
            client.send([b'x'; 10_000]).await;
        }
        let response = client.read_response().await;
        assert!(response.ends_with("\r\n\r\n100000 "), "{response}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn chunks_and_trailers_arrive_however_they_come() {
    local(async {
        let bench = Bench::new(Limits::default());
        let body = "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nx-sum: 7\r\nauthorization: me\r\nX_Forwarded_For: me\r\nx-real-ip: me\r\n\r\n";
        let request =
            format!("POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n{body}");
        for size in [1, 7, request.len()] {
            let mut client = bench.client(elsewhere());
            for part in request.as_bytes().chunks(size) {
                client.send(part).await;
                tokio::task::yield_now().await;
            }
            let response = client.read_response().await;
            assert!(
                response.ends_with(r#"7 {"x-sum": "7"}"#),
                "{size}: {response}"
            );
            client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
            assert!(client.read_response().await.ends_with("\r\n\r\n0 "));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_breaks_its_body_off() {
    local(async {
        let bench = Bench::new(Limits::default());
        let mut client = bench.client(elsewhere());
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nhel")
            .await;
        client.stream.shutdown().await.unwrap();
        let response = client.read_to_end().await;
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
        assert!(
            response.ends_with("the request's body could not be read"),
            "{response}"
        );
        bench.worker.empty().await;
    })
    .await;
}

/// The connection reads no further than it is asked to.
#[tokio::test(start_paused = true)]
async fn a_body_waits_with_the_client_until_it_is_wanted() {
    local(async {
        let handler = Handler::new(|request| async {
            tokio::time::sleep(secs(10)).await;
            let body = request.into_body().collect().await.unwrap().to_bytes();
            text(&body.len().to_string())
        });
        let mut client = Bench::new(Limits::default()).client(handler);
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 200000\r\n\r\n")
            .await;
        let begin = Instant::now();
        client.send(vec![b'x'; 200_000]).await;
        assert!(begin.elapsed() >= secs(9), "{:?}", begin.elapsed());
        assert!(client.read_response().await.ends_with("\r\n\r\n200000"));
    })
    .await;
}

/// Many clients send a small body in a segment of its own, and the response must not race it.
#[tokio::test(start_paused = true)]
async fn a_small_body_that_nobody_reads_may_come_behind_its_response() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::path());
        for (framing, body) in [
            ("content-length: 5", "hello"),
            ("transfer-encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"),
        ] {
            client
                .send(format!("POST /1 HTTP/1.1\r\nhost: t\r\n{framing}\r\n\r\n"))
                .await;
            let response = client.read_response().await;
            assert!(!response.contains("connection: close"), "{response}");
            tokio::time::sleep(secs(1)).await;
            client.send(body).await;
            assert!(client.get("/2").await.ends_with("/2"));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_reads_and_that_does_not_come_ends_the_connection() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::path());
        client
            .send("POST /1 HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nhe")
            .await;
        client.read_response().await;
        let begin = Instant::now();
        assert_eq!(client.read_to_end().await, "");
        assert_elapsed(begin, secs(5));
    })
    .await;
}

/// Answers at once, and tells `sender` what a task of its own reads, once a second.
fn behind(sender: mpsc::UnboundedSender<String>) -> Handler {
    Handler::new(move |request| {
        let sender = sender.clone();
        async move {
            tokio::task::spawn_local(async move {
                let mut body = request.into_body();
                let mut read = 0;
                while let Some(frame) = body.frame().await {
                    match frame {
                        Ok(frame) => read += frame.data_ref().map_or(0, Bytes::len),
                        Err(error) => return drop(sender.send(error.to_string())),
                    }
                    if read == 8 {
                        return drop(sender.send("left".into()));
                    }
                    tokio::time::sleep(secs(1)).await;
                }
                let _ = sender.send(read.to_string());
            });
            status(202)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_body_is_read_on_behind_its_response() {
    local(async {
        let (sender, mut read) = mpsc::unbounded_channel();
        let mut client = Bench::new(Limits::default()).client(behind(sender));
        for (parts, expected) in [
            (["hello", "world"], "10"),
            // Who reads lets go of it, and the rest is passed over.
            (["hel", "lo wo"], "left"),
        ] {
            client
                .send(format!(
                    "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 10\r\n\r\n{}",
                    parts[0]
                ))
                .await;
            client.read_response().await;
            tokio::time::sleep(secs(10)).await;
            client.send(parts[1]).await;
            assert_eq!(read.recv().await.unwrap(), expected);
            if expected == "left" {
                client.send("rd").await;
            }
        }
        client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
        let response = client.read_response().await;
        assert!(response.starts_with("HTTP/1.1 202 "), "{response}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_behind_its_response_is_too_slow() {
    local(async {
        let (sender, mut read) = mpsc::unbounded_channel();
        let bench = Bench::new(Limits::default());
        let mut client = bench.client(behind(sender));
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 10\r\n\r\nhello")
            .await;
        client.read_response().await;
        assert_eq!(client.read_to_end().await, "");
        let told = read.recv().await.unwrap();
        assert_eq!(told, "the request's body arrives too slowly");
        assert_eq!(bench.metrics.counts().slow_clients, 1);
        bench.worker.empty().await;
    })
    .await;
}

/// A body that is kept and not read does not keep its connection for ever.
#[tokio::test(start_paused = true)]
async fn a_body_that_is_kept_unread_behind_its_response_is_let_go() {
    local(async {
        let kept = Rc::new(RefCell::new(None));
        let handler = Handler::new({
            let kept = kept.clone();
            move |request| {
                *kept.borrow_mut() = Some(request.into_body());
                async { status(202) }
            }
        });
        let mut client = Bench::new(Limits::default()).client(handler);
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 10\r\n\r\nhello")
            .await;
        client.read_response().await;
        let begin = Instant::now();
        assert_eq!(client.read_to_end().await, "");
        assert_elapsed(begin, secs(75));
        let mut body = kept.take().unwrap();
        assert!(body.frame().await.unwrap().is_err());
    })
    .await;
}
