//! Requests that are rejected, before or while their body is read.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_rejection_is_a_fixed_text_and_closes() {
    local(async {
        let bench = Bench::new(Limits::default());
        let mut client = bench.client(Handler::path());
        client
            .send("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n")
            .await;
        let response = client.read_response().await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
        assert!(
            response.ends_with("\r\n\r\nthe request has more than one Host field"),
            "{response}"
        );
        assert_eq!(client.read_to_end().await, "");
        assert_eq!(bench.metrics.counts().malformed_requests, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_rejected_upload_is_read_and_discarded() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::path());
        let begin = Instant::now();
        client
            .send("POST / HTTP/1.1\r\nhost: a b\r\ncontent-length: 1000000\r\n\r\n")
            .await;
        // Much more than the pipe holds: it only fits if the server reads it.
        client.send(vec![b'x'; 1_000_000]).await;
        let response = client.read_response().await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        assert_eq!(client.read_to_end().await, "");
        // The server waits for the client's end no longer than this.
        drop(client);
        assert_elapsed(begin, Duration::ZERO);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn lingering_ends_with_a_client_that_does_not() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut client, task) = bench.connect(Handler::path());
        let begin = Instant::now();
        client
            .send("POST / HTTP/1.1\r\nhost: a b\r\ncontent-length: 5\r\n\r\n")
            .await;
        client.read_response().await;
        task.await.unwrap();
        assert_elapsed(begin, secs(2));
        bench.worker.empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn there_is_nothing_to_linger_for_after_a_whole_request() {
    local(async {
        let bench = Bench::new(Limits::default());
        let begin = Instant::now();
        for body in [
            "content-length: 5\r\n\r\nhello",
            "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ] {
            let (mut client, task) = bench.connect(Handler::length());
            client
                .send(format!(
                    "POST / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n{body}"
                ))
                .await;
            assert!(client.read_response().await.ends_with("\r\n5"));
            task.await.unwrap();
        }
        assert_elapsed(begin, Duration::ZERO);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_limit_is_rejected_before_it_is_sent() {
    local(async {
        let limits = Limits {
            body_bytes: Some(10),
            ..Limits::default()
        };
        let bench = Bench::new(limits);
        let mut client = bench.client(Handler::length());
        client
            .send(
                "POST / HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 11\r\n\r\n",
            )
            .await;
        let response = client.read_response().await;
        assert!(response.starts_with("HTTP/1.1 413 "), "{response}");

        let mut client = bench.client(Handler::length());
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 10\r\n\r\n0123456789")
            .await;
        assert!(client.read_response().await.ends_with("\r\n10"));
    })
    .await;
}

/// A service that is no proxy cannot know why the body ended, and is answered for.
#[tokio::test(start_paused = true)]
async fn trailers_beyond_the_limits_are_431() {
    local(async {
        let limits = Limits { header_fields: 4, header_bytes: 1024, ..Limits::default() };
        for trailers in ["x: y\r\n".repeat(5), format!("x: {}\r\n", "y".repeat(2000))] {
            let bench = Bench::new(limits.clone());
            let mut client = bench.client(Handler::length());
            client
                .send(format!(
                    "POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n{trailers}\r\n"
                ))
                .await;
            let response = client.read_response().await;
            assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
            assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
            assert!(
                response.ends_with("\r\n\r\nthe request's body was rejected"),
                "{response}"
            );
            let counts = bench.metrics.counts();
            assert_eq!((counts.rejected_requests, counts.malformed_requests), (1, 0));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_endless_body_is_cut_at_the_limit() {
    local(async {
        let limits = Limits {
            body_bytes: Some(100_000),
            ..Limits::default()
        };
        let mut client = Bench::new(limits).client(Handler::length());
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
        for _ in 0..30 {
            client.send(&chunk).await;
        }
        let response = client.read_response().await;
        assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
    })
    .await;
}
