use futures_util::stream;
use http::Version;
use http_body::Frame;
use http_body_util::StreamBody;
use parking_lot::Mutex;

use super::*;
use crate::server::access_log::AccessRecord;
use crate::server::outcome::Outcome;
use crate::stream::OnUpgrade;

/// Keeps what it is given.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<Line>>);

#[derive(Clone, Debug, PartialEq)]
struct Line {
    method: String,
    host: String,
    target: String,
    version: Version,
    status: Option<u16>,
    bytes: (u64, u64),
    duration: Duration,
    outcome: Outcome,
    rejection: Option<&'static str>,
    user_agent: Option<String>,
}

impl AccessLogSink for Log {
    fn log(&self, record: &AccessRecord<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.lock().push(Line {
            method: record.method.to_owned(),
            host: text(record.host),
            target: format!("{}?{}", record.path, record.query.unwrap_or("-")),
            version: record.version,
            status: record.status.map(|status| status.as_u16()),
            bytes: (record.bytes_received, record.bytes_sent),
            duration: record.duration,
            outcome: record.outcome,
            rejection: record.rejection,
            user_agent: record.user_agent.map(text),
        });
    }
}

impl Log {
    fn only(&self) -> Line {
        let lines = self.0.lock();
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines[0].clone()
    }
}

fn bench() -> (Bench, Arc<Log>) {
    let log = Arc::new(Log::default());
    let sink: Arc<dyn AccessLogSink> = log.clone();
    (Bench::with_log(Limits::default(), Some(sink)), log)
}

#[tokio::test(start_paused = true)]
async fn a_request_is_logged_as_it_was_sent() {
    local(async {
        let (bench, log) = bench();
        let handler = Handler::new(|request| async {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            tokio::time::sleep(secs(3)).await;
            text(&"x".repeat(body.len() * 2))
        });
        let mut client = bench.client(handler);
        client
            .send(
                "POST /a/../b?c=d HTTP/1.1\r\nhost: t.example:80\r\nuser-agent: me\r\n\
                 content-length: 5\r\n\r\nhello",
            )
            .await;
        client.read_response().await;
        let line = log.only();
        assert_eq!(
            line,
            Line {
                method: "POST".into(),
                host: "t.example:80".into(),
                target: "/a/../b?c=d".into(),
                version: Version::HTTP_11,
                status: Some(200),
                bytes: (5, 10),
                duration: line.duration,
                outcome: Outcome::Complete,
                rejection: None,
                user_agent: Some("me".into()),
            }
        );
        assert!(line.duration >= secs(3) && line.duration < secs(4));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_head_request_is_complete_without_a_body() {
    local(async {
        let (bench, log) = bench();
        let mut client = bench.client(Handler::path());
        client
            .send("HEAD /a HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n")
            .await;
        let response = client.read_to_end().await;
        assert!(response.contains("content-length: 2\r\n"), "{response}");
        let line = log.only();
        assert_eq!((line.bytes, line.outcome), ((0, 0), Outcome::Complete));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_logged_with_its_reason() {
    local(async {
        let (bench, log) = bench();
        let mut client = bench.client(Handler::path());
        client.send("TRACE / HTTP/1.1\r\nhost: t\r\n\r\n").await;
        client.read_response().await;
        let line = log.only();
        assert_eq!(line.status, Some(405));
        assert_eq!(line.rejection, Some("the method is not allowed"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_is_logged_with_what_is_wrong() {
    local(async {
        let (bench, log) = bench();
        let mut client = bench.client(Handler::path());
        client.send("GET / HTTP/1.1\r\nhost: a b\r\n\r\n").await;
        client.read_response().await;
        let line = log.only();
        assert_eq!((line.method.as_str(), line.status), ("", Some(400)));
        assert_eq!(line.rejection, Some("the Host field is not a host"));
        let counts = bench.metrics.counts();
        assert_eq!((counts.malformed_requests, counts.requests), (1, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_is_logged_as_aborted() {
    local(async {
        let (bench, log) = bench();
        let handler = Handler::new(|_| std::future::pending());
        let (mut client, task) = bench.connect(handler);
        client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
        tokio::task::yield_now().await;
        drop(client);
        task.await.unwrap();
        let line = log.only();
        assert_eq!((line.status, line.outcome), (None, Outcome::Aborted));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_asks_for_is_logged_as_received() {
    local(async {
        let (bench, log) = bench();
        let mut client = bench.client(Handler::new(|_| async { text("ok") }));
        client
            .send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nhello")
            .await;
        client.read_response().await;
        assert_eq!(log.only().bytes, (5, 2));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_is_logged_as_failed() {
    local(async {
        let (bench, log) = bench();
        let handler = Handler::new(|_| async {
            let frames: [Result<_, BoxError>; 2] = [
                Ok(Frame::data(Bytes::from_static(b"part"))),
                Err("the rest is lost".into()),
            ];
            Response::new(StreamBody::new(stream::iter(frames)).boxed_unsync())
        });
        let mut client = bench.client(handler);
        client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
        let response = client.read_to_end().await;
        assert!(!response.ends_with("0\r\n\r\n"), "{response}");
        let line = log.only();
        assert_eq!((line.bytes.1, line.outcome), (4, Outcome::Failed));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_is_logged_at_its_end_with_what_passed() {
    local(async {
        let (bench, log) = bench();
        let handler = Handler::new(|mut request| async move {
            let upgrade = request.extensions_mut().remove::<OnUpgrade>().unwrap();
            tokio::task::spawn_local(async move {
                let mut tunnel = upgrade.await.unwrap();
                let mut bytes = [0; 5];
                tunnel.read_exact(&mut bytes).await.unwrap();
                tunnel.write_all(&bytes[..3]).await.unwrap();
                tunnel.shutdown().await.unwrap();
            });
            let mut response = status(101);
            let headers = response.headers_mut();
            headers.insert("connection", "upgrade".parse().unwrap());
            headers.insert("upgrade", "foo".parse().unwrap());
            response
        });
        let mut client = bench.client(handler);
        client
            .send("GET /ws HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: foo\r\n\r\nhe")
            .await;
        let response = client.read_response().await;
        assert!(response.starts_with("HTTP/1.1 101 "), "{response}");
        assert!(log.0.lock().is_empty(), "the tunnel lasts");
        assert_eq!(bench.metrics.counts().active_connections, 1);
        client.send("llo").await;
        assert_eq!(client.read_to_end().await, "hel");
        bench.worker.empty().await;
        let line = log.only();
        assert_eq!(line.status, Some(101));
        assert_eq!(line.outcome, Outcome::Complete);
        assert_eq!(line.bytes, (5, 3));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_none_is_logged_as_the_500_that_the_client_gets() {
    local(async {
        for code in [101, 103] {
            let (bench, log) = bench();
            let mut client = bench.client(Handler::new(move |_| async move { status(code) }));
            client.send("GET /a HTTP/1.1\r\nhost: t\r\n\r\n").await;
            let response = client.read_to_end().await;
            assert!(response.starts_with("HTTP/1.1 500 "), "{response}");
            let (_, body) = response.split_once("\r\n\r\n").unwrap();
            let line = log.only();
            assert_eq!(line.status, Some(500));
            assert_eq!(line.outcome, Outcome::Complete);
            assert_eq!(line.bytes, (0, body.len() as u64));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_download_that_is_broken_off_is_logged_with_what_was_written() {
    local(async {
        let (bench, log) = bench();
        let handler = Handler::new(|_| async { text(&"x".repeat(10_000_000)) });
        let (mut client, task) = bench.connect(handler);
        client.send("GET /a HTTP/1.1\r\nhost: t\r\n\r\n").await;
        client.stream.read_exact(&mut [0; 100]).await.unwrap();
        drop(client);
        task.await.unwrap();
        let line = log.only();
        assert_eq!((line.status, line.outcome), (Some(200), Outcome::Aborted));
        assert!((1..=16 * 1024).contains(&line.bytes.1), "{line:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_switch_that_the_client_did_not_see_is_logged_as_aborted() {
    local(async {
        let (bench, log) = bench();
        let handler = Handler::new(|_| async {
            let mut response = status(101);
            let value = "x".repeat(20 * 1024).parse().unwrap();
            response.headers_mut().insert("x-long", value);
            response
        });
        let (mut client, task) = bench.connect(handler);
        client
            .send("GET /ws HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: foo\r\n\r\n")
            .await;
        client.stream.read_exact(&mut [0; 100]).await.unwrap();
        drop(client);
        task.await.unwrap();
        let line = log.only();
        assert_eq!((line.bytes, line.outcome), ((0, 0), Outcome::Aborted));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_takes_too_long_is_logged() {
    local(async {
        let (bench, log) = bench();
        let mut client = bench.client(Handler::path());
        client.send("GET / HTTP/1.1\r\n").await;
        let response = client.read_to_end().await;
        assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
        let line = log.only();
        assert_eq!((line.method.as_str(), line.status), ("", Some(408)));
        assert_eq!(line.rejection, Some("the request's head took too long"));
        assert_eq!(line.duration, secs(10));
        let counts = bench.metrics.counts();
        assert_eq!((counts.malformed_requests, counts.header_timeouts), (0, 1));
    })
    .await;
}
