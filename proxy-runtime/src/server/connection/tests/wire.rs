//! Tests of the bytes on the wire, and of the number of writes.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::*;
use crate::stream::ByteStream;
use crate::stream::OnUpgrade;

/// Counts the writes of the server.
struct Counting {
    stream: DuplexStream,
    writes: Arc<AtomicUsize>,
}

impl ByteStream for Counting {}

impl Transport for Counting {
    fn reset_on_drop(&self) {}

    fn lingers_on_close(&self) -> bool {
        true
    }
}

impl AsyncRead for Counting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writes.fetch_add(1, Relaxed);
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let whole: Vec<u8> = slices
            .iter()
            .flat_map(|slice| slice.iter().copied())
            .collect();
        self.poll_write(cx, &whole)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Answers with these frames, which are there at once.
fn frames(frames: Vec<Frame<Bytes>>) -> Handler {
    let frames: Vec<Bytes> = frames
        .into_iter()
        .map(|frame| frame.into_data().unwrap())
        .collect();
    Handler::new(move |_| {
        let frames = frames.clone().into_iter();
        async move {
            let frames = frames.map(|data| Ok::<_, BoxError>(Frame::data(data)));
            Response::new(StreamBody::new(stream::iter(frames)).boxed_unsync())
        }
    })
}

fn data(size: usize) -> Frame<Bytes> {
    Frame::data(Bytes::from(vec![b'x'; size]))
}

/// Returns the response to `request`, which closes the connection, and the number of writes.
async fn exchange(handler: Handler, request: &str) -> (String, usize) {
    let bench = Bench::new(Limits::default());
    let (near, far) = tokio::io::duplex(1 << 20);
    let writes = Arc::new(AtomicUsize::new(0));
    let counting = Counting {
        stream: far,
        writes: writes.clone(),
    };
    let _task = bench.serve(counting, handler);
    let mut client = Client { stream: near };
    client.send(request).await;
    let response = client.read_to_end().await;
    (response, writes.load(Relaxed))
}

const CLOSE: &str = "GET /path HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_small_response_is_one_write() {
    local(async {
        let (response, writes) = exchange(Handler::path(), CLOSE).await;
        assert!(response.ends_with("\r\n\r\n/path"), "{response}");
        assert_eq!(writes, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn frames_that_are_there_at_once_are_one_write() {
    local(async {
        let small = (0..16).map(|_| data(10)).collect();
        let (response, writes) = exchange(frames(small), CLOSE).await;
        let chunks = "a\r\nxxxxxxxxxx\r\n".repeat(16) + "0\r\n\r\n";
        assert!(
            response.ends_with(&format!("\r\n\r\n{chunks}")),
            "{response}"
        );
        assert_eq!(writes, 1);

        // As many bytes as are held at most, at a time.
        let large = (0..16).map(|_| data(16 * 1024)).collect();
        let (response, writes) = exchange(frames(large), CLOSE).await;
        assert_eq!(response.matches('x').count(), 256 * 1024);
        assert_eq!(writes, 5);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn responses_have_a_date() {
    local(async {
        let (response, _) = exchange(Handler::path(), CLOSE).await;
        let date = response
            .lines()
            .find_map(|line| line.strip_prefix("date: "));
        assert!(date.unwrap().ends_with(" GMT"), "{response}");

        let handler = Handler::new(|_| async {
            let mut response = text("");
            let headers = response.headers_mut();
            headers.insert("date", "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap());
            response
        });
        let (response, _) = exchange(handler, CLOSE).await;
        assert_eq!(response.matches("date: ").count(), 1);
        assert!(response.contains("\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn http_1_0_is_answered_as_it_can_read() {
    local(async {
        let with = |field: &str| format!("GET /path HTTP/1.0\r\n{field}\r\n");
        let (response, _) = exchange(Handler::path(), &with("")).await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");

        // The end of the connection is the end of a body of unknown length.
        let handler = frames(vec![data(3), data(4)]);
        let (response, _) = exchange(handler, &with("connection: keep-alive\r\n")).await;
        assert!(!response.contains("transfer-encoding"), "{response}");
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
        assert!(response.ends_with("\r\n\r\nxxxxxxx"), "{response}");

        let mut client = Bench::new(Limits::default()).client(Handler::path());
        for _ in 0..2 {
            client.send(with("connection: keep-alive\r\n")).await;
            let response = client.read_response().await;
            assert!(
                response.contains("\r\nconnection: keep-alive\r\n"),
                "{response}"
            );
            assert!(response.ends_with("/path"), "{response}");
        }
    })
    .await;
}

fn with_trailers() -> Handler {
    Handler::new(|_| async {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-sum", "1".parse().unwrap());
        trailers.insert("content-length", "9".parse().unwrap());
        let frames: [Result<_, BoxError>; 2] = [
            Ok(Frame::data(Bytes::from_static(b"a"))),
            Ok(Frame::trailers(trailers)),
        ];
        Response::new(StreamBody::new(stream::iter(frames)).boxed_unsync())
    })
}

#[tokio::test(start_paused = true)]
async fn trailers_are_for_those_who_want_them() {
    local(async {
        let request = "GET / HTTP/1.1\r\nhost: t\r\nconnection: close, te\r\nte: trailers\r\n\r\n";
        let (response, _) = exchange(with_trailers(), request).await;
        assert!(
            response.ends_with("\r\n1\r\na\r\n0\r\nx-sum: 1\r\n\r\n"),
            "{response}"
        );
        let (response, _) = exchange(with_trailers(), CLOSE).await;
        assert!(response.ends_with("\r\n1\r\na\r\n0\r\n\r\n"), "{response}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn some_responses_have_no_body_whatever_the_service_says() {
    local(async {
        for (status, has_length) in [(204, false), (304, true)] {
            let handler = Handler::new(move |_| async move {
                let mut response = text("not to be written");
                *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
                response.headers_mut().insert("content-length", 17.into());
                response
            });
            let mut client = Bench::new(Limits::default()).client(handler);
            for _ in 0..2 {
                client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
                assert_eq!(
                    head.contains("content-length: 17\r\n"),
                    has_length,
                    "{head}"
                );
            }
        }
    })
    .await;
}

/// A body that is not as long as its head said must not look whole, nor spill into the next response.
#[tokio::test(start_paused = true)]
async fn a_body_of_another_length_than_announced_ends_the_connection() {
    local(async {
        for (size, sent) in [(3, 3), (7, 5)] {
            let handler = Handler::new(move |_| async move {
                let frames = [Ok::<_, BoxError>(data(size))];
                let body = StreamBody::new(stream::iter(frames)).boxed_unsync();
                let mut response = Response::new(body);
                response.headers_mut().insert("content-length", 5.into());
                response
            });
            let request = "GET / HTTP/1.1\r\nhost: t\r\n\r\n".repeat(2);
            let (response, _) = exchange(handler, &request).await;
            assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
            assert!(response.contains("content-length: 5\r\n"), "{response}");
            assert!(response.ends_with(&format!("\r\n\r\n{}", "x".repeat(sent))));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_rejection_comes_after_the_responses_before_it() {
    local(async {
        let request = "GET /1 HTTP/1.1\r\nhost: t\r\n\r\nGET  /2 HTTP/1.1\r\nhost: t\r\n\r\n";
        let (responses, _) = exchange(Handler::path(), request).await;
        let (first, second) = responses.split_once("/1HTTP/1.1 ").unwrap();
        assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{first}");
        assert!(second.starts_with("400 Bad Request\r\n"), "{second}");
        assert!(second.contains("\r\nconnection: close\r\n"), "{second}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_follows_an_upgrade_belongs_to_the_tunnel() {
    local(async {
        let handler = Handler::new(|mut request| async move {
            let upgrade = request.extensions_mut().remove::<OnUpgrade>().unwrap();
            tokio::task::spawn_local(async move {
                let mut tunnel = upgrade.await.unwrap();
                let mut bytes = [0; 10];
                tunnel.read_exact(&mut bytes).await.unwrap();
                tunnel.write_all(&bytes).await.unwrap();
            });
            let mut response = status(101);
            response
                .headers_mut()
                .insert("connection", "upgrade".parse().unwrap());
            response
                .headers_mut()
                .insert("upgrade", "foo".parse().unwrap());
            response
        });
        let mut client = Bench::new(Limits::default()).client(handler);
        client
            .send("GET / HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: foo\r\n\r\nearly")
            .await;
        let response = client.read_response().await;
        assert!(
            response.starts_with("HTTP/1.1 101 Switching Protocols\r\n"),
            "{response}"
        );
        assert!(
            response.contains("\r\nconnection: upgrade\r\n"),
            "{response}"
        );
        client.send("later").await;
        assert_eq!(client.read_to_end().await, "earlylater");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_interim_response_is_no_answer() {
    local(async {
        for interim in [101, 103] {
            let handler = Handler::new(move |request| async move {
                assert!(request.extensions().get::<OnUpgrade>().is_none());
                status(interim)
            });
            let (response, _) = exchange(handler, "GET / HTTP/1.1\r\nhost: t\r\n\r\n").await;
            assert!(response.starts_with("HTTP/1.1 500 "), "{response}");
            assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_offer_of_another_protocol_is_announced() {
    local(async {
        let handler = Handler::new(|_| async {
            let mut response = status(426);
            response
                .headers_mut()
                .insert("upgrade", "foo".parse().unwrap());
            response
        });
        let mut client = Bench::new(Limits::default()).client(handler.clone());
        let response = client.get("/").await;
        assert!(
            response.contains("\r\nconnection: upgrade\r\n"),
            "{response}"
        );
        let (response, _) = exchange(handler, CLOSE).await;
        assert!(
            response.contains("\r\nconnection: close, upgrade\r\n"),
            "{response}"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_only_begins_like_http_2_is_read_as_http_1() {
    local(async {
        let mut client = Bench::new(Limits::default()).client(Handler::path());
        for part in ["P", "RI", "NT /path HTTP/1.1\r\nhost: t\r\n\r\n"] {
            client.send(part).await;
            tokio::task::yield_now().await;
        }
        assert!(client.read_response().await.ends_with("\r\n\r\n/path"));
    })
    .await;
}
