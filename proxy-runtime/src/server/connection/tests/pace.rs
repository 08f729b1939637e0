use std::future::poll_fn;

use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::time::{sleep, timeout};

use super::*;

fn upload(content_type: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: t\r\ncontent-type: {content_type}\r\ncontent-length: 10000000\r\n\r\n"
    )
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_stalls_is_answered_with_408() {
    local(async {
        let bench = Bench::new(Limits::default());
        let mut client = bench.client(Handler::length());
        client.send(upload("text/plain")).await;
        client.send("some bytes").await;
        let begin = Instant::now();
        let response = client.read_response().await;
        assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
        assert_elapsed(begin, secs(30));
        assert_eq!(bench.metrics.counts().slow_clients, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_trickles_is_answered_with_408() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::length());
        let begin = Instant::now();
        client.send(upload("text/plain")).await;
        // 239 bytes a second.
        for _ in 0..30 {
            sleep(Duration::from_millis(999)).await;
            client.send(vec![b'x'; 238]).await;
        }
        let response = client.read_response().await;
        assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
        assert!(begin.elapsed() < secs(32), "{:?}", begin.elapsed());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_keeps_up_may_take_as_long_as_it_likes() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::length());
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 75000\r\n\r\n")
            .await;
        for _ in 0..300 {
            sleep(secs(1)).await;
            client.send(vec![b'x'; 250]).await;
        }
        assert!(client.read_response().await.ends_with("\r\n75000"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_read_is_not_the_clients_fault() {
    local(async {
        let handler = Handler::new(|request| async move {
            let mut body = request.into_body();
            let mut length = 0;
            while let Some(frame) = body.frame().await {
                length += frame.unwrap().data_ref().unwrap().len();
                sleep(secs(100)).await;
            }
            text(&length.to_string())
        });
        let mut client = Bench::new(Limits::default()).client(handler);
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        for _ in 0..10 {
            client.send("1\r\nx\r\n").await;
            sleep(secs(100)).await;
        }
        client.send("0\r\n\r\n").await;
        assert!(client.read_response().await.ends_with("\r\n10"));
    })
    .await;
}

/// There is no gRPC over HTTP/1.1, whatever a client says.
#[tokio::test(start_paused = true)]
async fn a_content_type_takes_nothing_out_of_the_limit() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::length());
        client
            .send(
                "POST / HTTP/1.1\r\nhost: t\r\nte: trailers\r\nconnection: te\r\n\
                 content-type: application/grpc+proto\r\ncontent-length: 2\r\n\r\nx",
            )
            .await;
        let begin = Instant::now();
        let response = client.read_response().await;
        assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
        assert_elapsed(begin, secs(30));
    })
    .await;
}

/// Requests with the fields of gRPC calls, and similar ones without.
#[cfg(feature = "http2")]
#[tokio::test(start_paused = true)]
async fn calls_of_grpc_may_be_silent() {
    local(async {
        for (method, content_type, te, status) in [
            ("POST", "application/grpc", Some("trailers"), 200),
            ("POST", "application/grpc+proto", Some("trailers"), 200),
            ("POST", "application/grpc;a=b", Some("trailers"), 200),
            ("PUT", "application/grpc", Some("trailers"), 408),
            ("POST", "application/grpc", None, 408),
            ("POST", "application/grpc-web", Some("trailers"), 408),
            ("POST", "application/grpcs", Some("trailers"), 408),
            ("POST", "text/plain", Some("trailers"), 408),
        ] {
            let bench = Bench::new(Limits::default());
            let (client, _task) = bench.connect(Handler::length());
            let (sender, connection) = h2::client::handshake(client.stream).await.unwrap();
            let connection = tokio::task::spawn_local(connection);
            let mut request = Request::builder()
                .method(method)
                .uri("http://t.example/")
                .header("content-type", content_type);
            if let Some(te) = te {
                request = request.header("te", te);
            }
            let mut sender = sender.ready().await.unwrap();
            let request = request.body(()).unwrap();
            let (response, mut upload) = sender.send_request(request, false).unwrap();
            sleep(secs(1000)).await;
            // A rejected client is not read any more.
            let _ = upload.send_data(Bytes::from_static(b"x"), true);
            let given = response.await.unwrap().status();
            assert_eq!(given, status, "{method} {content_type} {te:?}");
            connection.abort();
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_rate_can_be_switched_off() {
    local(async {
        let limits = Limits {
            data_rate: None,
            ..Limits::default()
        };
        let mut client = Bench::new(limits).client(Handler::length());
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 1\r\n\r\n")
            .await;
        sleep(secs(1000)).await;
        client.send("x").await;
        assert!(client.read_response().await.ends_with("\r\n1"));
    })
    .await;
}

/// Endless data at once.
fn flood() -> Handler {
    Handler::new(|_| async {
        let frames = stream::repeat_with(|| {
            Ok::<_, BoxError>(Frame::data(Bytes::from_static(&[b'x'; 8192])))
        });
        Response::new(StreamBody::new(frames).boxed_unsync())
    })
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_cut() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut client, task) = bench.connect(flood());
        let begin = Instant::now();
        client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
        task.await.unwrap();
        // Looked at every five seconds, a whole window of 30 s is found between 35 and 40.
        assert!(begin.elapsed() >= secs(30), "{:?}", begin.elapsed());
        assert!(begin.elapsed() <= secs(40), "{:?}", begin.elapsed());
        let counts = bench.metrics.counts();
        assert_eq!((counts.slow_clients, counts.active_requests), (1, 0));
        drop(client);
    })
    .await;
}

/// The body is polled just when the connection checks the client's pace.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_cut_although_it_sends() {
    local(async {
        let bench = Bench::new(Limits::default());
        let handler = Handler::new(|request| async {
            let mut pause = Box::pin(sleep(secs(5)));
            let asked = poll_fn(|cx| Poll::Ready(pause.as_mut().poll(cx))).await;
            assert!(asked.is_pending());
            tokio::task::spawn_local(async move {
                let mut body = request.into_body();
                pause.await;
                while let Some(Ok(_)) = body.frame().await {
                    sleep(secs(1)).await;
                }
            });
            let frames = stream::repeat_with(|| {
                Ok::<_, BoxError>(Frame::data(Bytes::from_static(&[b'x'; 8192])))
            });
            Response::new(StreamBody::new(frames).boxed_unsync())
        });
        let (mut client, task) = bench.connect(handler);
        let begin = Instant::now();
        client.send(upload("text/plain")).await;
        let (_unread, mut sending) = tokio::io::split(client.stream);
        tokio::task::spawn_local(
            async move { while sending.write_all(&[b'x'; 4096]).await.is_ok() {} },
        );
        timeout(secs(60), task).await.unwrap().unwrap();
        assert!(begin.elapsed() >= secs(30), "{:?}", begin.elapsed());
        assert!(begin.elapsed() <= secs(40), "{:?}", begin.elapsed());
        assert_eq!(bench.metrics.counts().slow_clients, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_but_steadily_is_served() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut client, task) = bench.connect(flood());
        client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
        let mut buffer = [0; 2000];
        for _ in 0..200 {
            sleep(secs(5)).await;
            client.stream.read_exact(&mut buffer).await.unwrap();
        }
        assert!(!task.is_finished());
        assert_eq!(bench.metrics.counts().slow_clients, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_response_that_waits_for_its_source_is_not_cut() {
    local(async {
        let handler = Handler::new(|_| async {
            let frames = stream::unfold(0, |count| async move {
                if count == 10 {
                    return None;
                }
                sleep(secs(100)).await;
                Some((
                    Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"x"))),
                    count + 1,
                ))
            });
            let frames: Pin<Box<dyn stream::Stream<Item = _> + Send>> = Box::pin(frames);
            Response::new(StreamBody::new(frames).boxed_unsync())
        });
        let bench = Bench::new(Limits::default());
        let mut client = bench.client(handler);
        client
            .send("GET / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n")
            .await;
        let response = client.read_to_end().await;
        assert!(response.ends_with("\r\n0\r\n\r\n"), "{response}");
        assert_eq!(bench.metrics.counts().slow_clients, 0);
    })
    .await;
}

/// Each time that it takes something counts.
#[tokio::test(start_paused = true)]
async fn a_client_of_which_no_rate_is_asked_takes_something_now_and_then() {
    local(async {
        let bench = Bench::new(Limits {
            data_rate: None,
            ..Limits::default()
        });
        let handler = Handler::new(|_| async { text(&"x".repeat(100_000)) });
        let (mut client, task) = bench.connect(handler);
        client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
        for _ in 0..3 {
            sleep(secs(90)).await;
            client.stream.read_exact(&mut [0; 1000]).await.unwrap();
        }
        let begin = Instant::now();
        let ended = timeout(secs(1000), task).await;
        ended.expect("it ends").unwrap();
        assert_elapsed(begin, secs(100));
    })
    .await;
}
