use tokio::sync::Notify;
use tokio::time::sleep;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_connection_serves_many_requests() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::path());
        for path in ["/1", "/2", "/3"] {
            let response = client.get(path).await;
            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
            assert!(response.ends_with(path), "{response}");
            assert!(!response.contains("connection"), "{response}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn pipelined_requests_are_answered_in_order() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::path());
        let request = |path| format!("GET {path} HTTP/1.1\r\nhost: t\r\n\r\n");
        client.send(request("/1") + &request("/2")).await;
        assert!(client.read_response().await.ends_with("/1"));
        assert!(client.read_response().await.ends_with("/2"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_after_the_header_timeout() {
    local(async {
        let bench = Bench::new(Limits::default());
        let begin = Instant::now();
        let mut client = bench.client(Handler::path());
        assert_eq!(client.read_to_end().await, "");
        assert_elapsed(begin, secs(10));
        assert_eq!(bench.metrics.counts().header_timeouts, 1);
    })
    .await;
}

/// Case 281: bytes do not extend the time.
#[tokio::test(start_paused = true)]
async fn a_slow_head_is_answered_with_408_after_the_header_timeout() {
    local(async {
        let bench = Bench::new(Limits::default());
        let begin = Instant::now();
        let mut client = bench.client(Handler::path());
        client.send("GET / HTTP/1.1\r\n").await;
        sleep(secs(5)).await;
        client.send("host: t").await;
        assert_eq!(
            client.read_to_end().await,
            "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        assert_elapsed(begin, secs(10));
        assert_eq!(bench.metrics.counts().header_timeouts, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_second_head_has_its_own_time() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::path());
        client.get("/1").await;
        sleep(secs(60)).await;
        let begin = Instant::now();
        client.send("GET / HTTP/1.1\r\n").await;
        let rest = client.read_to_end().await;
        assert!(rest.starts_with("HTTP/1.1 408 "), "{rest}");
        assert_elapsed(begin, secs(10));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_the_keep_alive_time() {
    local(async {
        let bench = Bench::new(Limits::default());
        let mut client = bench.client(Handler::path());
        client.get("/1").await;
        sleep(secs(70)).await;
        client.get("/2").await;
        let begin = Instant::now();
        assert_eq!(client.read_to_end().await, "");
        assert_elapsed(begin, secs(75));
        assert_eq!(bench.metrics.counts().header_timeouts, 0);
    })
    .await;
}

/// Old clients send one behind a body, and it is no part of anything (RFC 9112 section 2.2).
#[tokio::test(start_paused = true)]
async fn an_empty_line_between_two_requests_leaves_the_connection_idle() {
    local(async {
        let bench = Bench::new(Limits::default());
        let mut client = bench.client(Handler::length());
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nhello\r\n")
            .await;
        assert!(client.read_response().await.ends_with("\r\n5"));
        sleep(secs(70)).await;
        assert!(client.get("/").await.ends_with("\r\n0"));
        let begin = Instant::now();
        for _ in 0..3 {
            // Nor do they keep it.
            sleep(secs(20)).await;
            client.send("\r\n").await;
        }
        assert_eq!(client.read_to_end().await, "");
        assert_elapsed(begin, secs(75));
        assert_eq!(bench.metrics.counts().header_timeouts, 0);
    })
    .await;
}

/// The same in two segments: half of it is no more of a request than the whole.
#[tokio::test(start_paused = true)]
async fn an_empty_line_in_two_parts_leaves_the_connection_idle() {
    local(async {
        let bench = Bench::new(Limits::default());
        let mut client = bench.client(Handler::length());
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nhello\r")
            .await;
        assert!(client.read_response().await.ends_with("\r\n5"));
        sleep(secs(30)).await;
        client.send("\n").await;
        sleep(secs(40)).await;
        client.get("/").await;
        client.send("\r").await;
        sleep(secs(70)).await;
        // The rest comes with the next request.
        client.send("\nGET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
        assert!(client.read_response().await.ends_with("\r\n0"));
        let begin = Instant::now();
        sleep(secs(20)).await;
        client.send("\r").await;
        assert_eq!(client.read_to_end().await, "");
        assert_elapsed(begin, secs(75));
        assert_eq!(bench.metrics.counts().header_timeouts, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_carriage_return_is_no_empty_line() {
    local(async {
        let bench = Bench::new(Limits::default());
        let mut client = bench.client(Handler::path());
        client.get("/1").await;
        client.send("\r").await;
        sleep(secs(1)).await;
        client.send("GET /2 HTTP/1.1\r\nhost: t\r\n\r\n").await;
        let response = client.read_to_end().await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        assert_eq!(bench.metrics.counts().malformed_requests, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_long_request_is_no_idle_connection() {
    local(async {
        let handler = Handler::new(|_| async {
            sleep(secs(1000)).await;
            text("late")
        });
        let mut client = Bench::new(Limits::default()).client(handler);
        assert!(client.get("/").await.ends_with("late"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_last_request_of_a_connection_is_announced() {
    local(async {
        let limits = Limits {
            requests_per_connection: 2,
            ..Limits::default()
        };
        let mut client = Bench::new(limits).client(Handler::path());
        assert!(!client.get("/1").await.contains("connection"));
        assert!(client.get("/2").await.contains("\r\nconnection: close\r\n"));
        assert_eq!(client.read_to_end().await, "");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_old_connection_ends_with_its_next_response() {
    local(async {
        let limits = Limits {
            connection_age: secs(60),
            ..Limits::default()
        };
        let mut client = Bench::new(limits).client(Handler::path());
        sleep(secs(5)).await;
        assert!(!client.get("/1").await.contains("connection"));
        // Older than 60 s and its 10 %.
        sleep(secs(62)).await;
        assert!(client.get("/2").await.contains("\r\nconnection: close\r\n"));
        assert_eq!(client.read_to_end().await, "");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_drained_connection_serves_a_request_that_was_on_its_way() {
    local(async {
        let bench = Bench::new(Limits::default());
        let mut client = bench.client(Handler::path());
        client.get("/1").await;
        bench.worker.drain();
        sleep(Duration::from_millis(400)).await;
        let response = client.get("/2").await;
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
        assert!(response.ends_with("/2"), "{response}");
        assert_eq!(client.read_to_end().await, "");
        bench.worker.empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_drained_after_the_grace() {
    local(async {
        let bench = Bench::new(Limits::default());
        let mut used = bench.client(Handler::path());
        used.get("/1").await;
        let mut fresh = bench.client(Handler::path());
        sleep(secs(3)).await;
        let begin = Instant::now();
        bench.worker.drain();
        assert_eq!(used.read_to_end().await, "");
        assert_eq!(fresh.read_to_end().await, "");
        assert_elapsed(begin, Duration::from_millis(500));
        bench.worker.empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_in_flight_is_drained_with_its_response() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handler = Handler::new({
            let (begun, go_on) = (begun.clone(), go_on.clone());
            move |_| {
                let (begun, go_on) = (begun.clone(), go_on.clone());
                async move {
                    begun.notify_one();
                    go_on.notified().await;
                    text("done")
                }
            }
        });
        let mut client = bench.client(handler);
        client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
        begun.notified().await;
        bench.worker.drain();
        sleep(secs(20)).await;
        go_on.notify_one();
        let response = client.read_response().await;
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
        assert!(response.ends_with("done"), "{response}");
        assert_eq!(client.read_to_end().await, "");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn idle_connections_give_way_at_the_limit() {
    local(async {
        let bench = Bench::new(Limits {
            connections: Some(2),
            ..Limits::default()
        });
        let handler = Handler::new(|request| async move {
            if request.uri().path() == "/slow" {
                sleep(secs(5)).await;
            }
            text("done")
        });
        let mut idle = bench.client(handler.clone());
        assert!(!idle.get("/").await.contains("connection"));
        sleep(secs(5)).await;
        let begin = Instant::now();
        let mut busy = bench.client(handler);
        busy.send("GET /slow HTTP/1.1\r\nhost: t\r\n\r\n").await;
        assert_eq!(idle.read_to_end().await, "");
        assert_elapsed(begin, Duration::from_millis(500));
        // There is room again, so that the other one may stay.
        assert!(!busy.read_response().await.contains("connection"));
        assert_eq!(bench.metrics.counts().connection_limit_reached, 1);
    })
    .await;
}

/// At the limit, a client that has sent a byte gets a little more time than a silent one, and less than without the
/// limit.
#[tokio::test(start_paused = true)]
async fn so_do_those_whose_request_is_not_there_yet() {
    local(async {
        let bench = Bench::new(Limits {
            connections: Some(2),
            ..Limits::default()
        });
        let mut slow = bench.client(Handler::path());
        slow.send("GET / HTTP/1.1\r\n").await;
        sleep(secs(3)).await;
        let begin = Instant::now();
        let _other = bench.worker.enter();
        let rest = slow.read_to_end().await;
        assert!(rest.starts_with("HTTP/1.1 408 "), "{rest}");
        assert_elapsed(begin, secs(2));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connections_end_with_their_response_at_the_limit() {
    local(async {
        let bench = Bench::new(Limits {
            connections: Some(1),
            ..Limits::default()
        });
        for path in ["/1", "/2"] {
            let mut client = bench.client(Handler::path());
            let response = client.get(path).await;
            assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
            assert_eq!(client.read_to_end().await, "");
            bench.worker.empty().await;
        }
        assert_eq!(bench.metrics.counts().connection_limit_reached, 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_the_misfortune_of_one_request() {
    local(async {
        let bench = Bench::new(Limits::default());
        let handler = Handler::new(|request| async move {
            assert_ne!(request.uri().path(), "/panic", "as intended");
            text("fine")
        });
        let mut client = bench.client(handler.clone());
        let response = client.get("/panic").await;
        assert!(response.starts_with("HTTP/1.1 500 "), "{response}");
        assert!(!response.contains("intended"), "{response}");
        assert!(bench.client(handler).get("/").await.ends_with("fine"));
        assert_eq!(bench.metrics.counts().panics, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connections_and_requests_are_counted() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut client, task) = bench.connect(Handler::path());
        client.get("/1").await;
        client.get("/2").await;
        let counts = bench.metrics.counts();
        assert_eq!(
            (counts.accepted_connections, counts.active_connections),
            (1, 1)
        );
        assert_eq!((counts.requests, counts.active_requests), (2, 0));
        drop(client);
        task.await.unwrap();
        assert_eq!(bench.metrics.counts().active_connections, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_its_request() {
    local(async {
        let bench = Bench::new(Limits::default());
        let begun = Arc::new(Notify::new());
        let handler = Handler::new({
            let begun = begun.clone();
            move |_| {
                let begun = begun.clone();
                async move {
                    begun.notify_one();
                    std::future::pending().await
                }
            }
        });
        let (mut client, task) = bench.connect(handler);
        client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
        begun.notified().await;
        assert_eq!(bench.metrics.counts().active_requests, 1);
        drop(client);
        task.await.unwrap();
        assert_eq!(bench.metrics.counts().active_requests, 0);
    })
    .await;
}
