//! Uploads: the side that they wait for, the bytes that count as sent, and the report of their end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proxy_model::compiled::ClusterIndex;
use testkit::raw::RawOrigin;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, pause, resume, sleep};

use super::scene::{ACTIVITY_TIMEOUT, connected_with, local, read_to, serve_by, worker};
use crate::ProxyService;
use crate::error::ForwardErrorKind;
use crate::server::handler::{ProxyHandler, ServiceHandler};
use crate::server::{AccessLogSink, AccessRecord, Limits};
use crate::upstream::{Resetting, Scripted};

/// True for the path over `http` types.
const WAYS: [bool; 2] = [false, true];

#[derive(Debug, Default)]
struct Log(Mutex<Vec<Line>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    status: Option<u16>,
    error: Option<ForwardErrorKind>,
    upstream: Option<SocketAddr>,
    has_time_to_head: bool,
}

impl AccessLogSink for Log {
    fn log(&self, record: &AccessRecord<'_>) {
        let exchange = record.exchange;
        self.0.lock().push(Line {
            status: record.status.map(|status| status.as_u16()),
            error: exchange.and_then(|exchange| exchange.error),
            upstream: exchange.and_then(|exchange| exchange.upstream),
            has_time_to_head: exchange.is_some_and(|exchange| exchange.time_to_head.is_some()),
        });
    }
}

impl Log {
    /// The line of the only request.
    async fn only(&self) -> Line {
        // What it was counted by is dropped behind its answer.
        sleep(Duration::from_secs(1)).await;
        let lines = self.0.lock();
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines[0]
    }
}

struct Scene {
    client: DuplexStream,
    service: ProxyService,
    log: Arc<Log>,
}

impl Scene {
    async fn new(is_typed: bool, settings: &str, destination: impl Scripted + 'static) -> Self {
        let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
        let (service, lease) = connected_with(&origin.url(), settings, destination).await;
        pause();
        lease.release(Instant::now());
        let log = Arc::<Log>::default();
        let (worker, _) = worker(Limits::default(), Some(log.clone()));
        let (client, far) = duplex(64 * 1024);
        match is_typed {
            true => serve_by(far, ServiceHandler(service.clone()), worker),
            false => serve_by(far, ProxyHandler::new(service.clone()), worker),
        }
        Self {
            client,
            service,
            log,
        }
    }

    /// Status and error of the only request.
    async fn ended(&mut self) -> (u16, Option<ForwardErrorKind>) {
        read_to(&mut self.client, "\r\n\r\n").await;
        let Line { status, error, .. } = self.log.only().await;
        (status.unwrap(), error)
    }

    /// Bytes of bodies that the destination was sent.
    fn sent(&self) -> u64 {
        let generation = self.service.shared().load_full();
        let cluster = generation.cluster(ClusterIndex(0));
        cluster.destinations()[0].metrics().bytes_sent()
    }
}

/// The last part of a body was not sent when it was taken.
#[tokio::test]
async fn a_destination_that_does_not_take_a_body_is_waited_for_however_it_is_framed() {
    let content = "x".repeat(20_000);
    for (what, head, body) in [
        ("length", "Content-Length: 20000", content.clone()),
        (
            "chunks",
            "Transfer-Encoding: chunked",
            format!("4e20\r\n{content}\r\n0\r\n\r\n"),
        ),
    ] {
        for is_typed in WAYS {
            let what = format!("{what}, typed: {is_typed}");
            local(async {
                let (mut destination, transport) = duplex(1024);
                let mut scene = Scene::new(is_typed, "", transport).await;
                let head = format!("POST / HTTP/1.1\r\nHost: h\r\n{head}\r\n\r\n");
                scene.client.write_all(head.as_bytes()).await.unwrap();
                scene.client.write_all(body.as_bytes()).await.unwrap();
                read_to(&mut destination, "\r\n\r\n").await;
                let begin = Instant::now();
                let error = Some(ForwardErrorKind::RequestBodyDestination);
                assert_eq!(scene.ended().await, (504, error), "{what}");
                let waited = begin.elapsed().as_secs();
                let range = ACTIVITY_TIMEOUT..=ACTIVITY_TIMEOUT + 2;
                assert!(range.contains(&waited), "{what}: {waited} s");
                assert_eq!(
                    scene.sent(),
                    0,
                    "{what}: none of the parts has left as a whole"
                );
                resume();
            })
            .await;
        }
    }
}

/// After the whole request was taken, the exchange waits for the destination's response.
#[tokio::test]
async fn a_destination_that_has_taken_all_is_waited_for_otherwise() {
    for is_typed in WAYS {
        local(async {
            let (mut destination, transport) = duplex(1024);
            let mut scene = Scene::new(is_typed, "", transport).await;
            let request = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody";
            scene.client.write_all(request).await.unwrap();
            read_to(&mut destination, "body").await;
            let error = Some(ForwardErrorKind::RequestTimedOut);
            assert_eq!(scene.ended().await, (504, error), "typed: {is_typed}");
            assert_eq!(scene.sent(), 4, "typed: {is_typed}");
            resume();
        })
        .await;
    }
}

/// The client was asked for more at that moment, which it never sends.
#[tokio::test]
async fn a_destination_that_breaks_a_body_off_is_not_the_clients_fault() {
    for is_typed in WAYS {
        local(async {
            let mut scene = Scene::new(is_typed, "", Resetting::after(1000, false).silent()).await;
            let head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10000\r\n\r\n";
            scene.client.write_all(head).await.unwrap();
            sleep(Duration::from_secs(1)).await;
            scene.client.write_all(&[b'x'; 2000]).await.unwrap();
            let (status, error) = scene.ended().await;
            assert_eq!(status, 504, "typed: {is_typed}");
            assert_ne!(error, Some(ForwardErrorKind::RequestBodyClient));
            assert_eq!(scene.sent(), 0, "typed: {is_typed}");
            resume();
        })
        .await;
    }
}

#[tokio::test]
async fn what_is_rejected_of_a_body_was_not_sent() {
    for is_typed in WAYS {
        local(async {
            let (mut destination, transport) = duplex(1024);
            let limit = r#","MaxRequestBodySize":3"#;
            let mut scene = Scene::new(is_typed, limit, transport).await;
            let head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
            scene.client.write_all(head).await.unwrap();
            scene.client.write_all(b"2\r\nab\r\n").await.unwrap();
            read_to(&mut destination, "ab\r\n").await;
            scene.client.write_all(b"2\r\ncd\r\n").await.unwrap();
            let error = Some(ForwardErrorKind::RequestBodyClient);
            assert_eq!(scene.ended().await, (413, error), "typed: {is_typed}");
            assert_eq!(scene.sent(), 2, "typed: {is_typed}");
            let mut rest = Vec::new();
            destination.read_to_end(&mut rest).await.unwrap();
            assert!(rest.is_empty(), "typed: {is_typed}: {rest:?}");
            resume();
        })
        .await;
    }
}

/// A destination that has answered is told of, whatever the program makes of its answer.
#[tokio::test]
async fn a_filter_that_fails_at_a_response_has_a_destination_behind_it() {
    for is_typed in WAYS {
        local(async {
            let (mut destination, transport) = duplex(1024);
            let filters = r#","Filters":["breaks"]"#;
            let mut scene = Scene::new(is_typed, filters, transport).await;
            let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
            scene.client.write_all(request).await.unwrap();
            read_to(&mut destination, "\r\n\r\n").await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            destination.write_all(answer).await.unwrap();
            let error = Some(ForwardErrorKind::Extension);
            assert_eq!(scene.ended().await, (500, error), "typed: {is_typed}");
            let line = scene.log.only().await;
            assert!(line.upstream.is_some(), "typed: {is_typed}: {line:?}");
            assert!(line.has_time_to_head, "typed: {is_typed}: {line:?}");
            resume();
        })
        .await;
    }
}

/// The log has the destination also for responses that are not forwarded to a stream.
#[cfg(feature = "http2")]
#[tokio::test]
async fn a_response_that_a_stream_does_not_get_has_a_destination_in_the_log() {
    use crate::server::http2::peer::Peer;

    const BROKEN: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n";
    const WHOLE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let broken = (502, ForwardErrorKind::ResponseBodyDestination);
    let failed = (500, ForwardErrorKind::Extension);
    for is_typed in WAYS {
        for (settings, response, (status, error)) in [
            ("", BROKEN, broken),
            (r#","Filters":["breaks"]"#, BROKEN, broken),
            (r#","Filters":["breaks"]"#, WHOLE, failed),
        ] {
            let what = format!("typed: {is_typed}{settings}, {error:?}");
            local(async {
                let (mut destination, transport) = duplex(1024);
                let scene = Scene::new(is_typed, settings, transport).await;
                let mut peer = Peer::open(scene.client, &[]).await;
                peer.get(1, "/").await;
                read_to(&mut destination, "\r\n\r\n").await;
                destination.write_all(response).await.unwrap();
                assert_eq!(peer.end_of(1).await.1, None, "{what}");
                let line = scene.log.only().await;
                assert_eq!(line.status, Some(status), "{what}");
                assert_eq!(line.error, Some(error), "{what}");
                assert!(line.upstream.is_some(), "{what}: {line:?}");
                resume();
            })
            .await;
        }
    }
}

/// A client that takes its request back has not sent it wrongly.
#[cfg(feature = "http2")]
#[tokio::test]
async fn a_client_that_resets_its_upload_has_cancelled_its_request() {
    use testkit::raw::frame::{CANCEL, DATA, Frame};

    use crate::server::http2::peer::Peer;

    for (is_typed, settings) in [(false, ""), (true, ""), (false, r#","Layers":["pass"]"#)] {
        for is_answered in [false, true] {
            let what = format!("typed: {is_typed}{settings}, answered: {is_answered}");
            local(async {
                let (mut destination, transport) = duplex(1024);
                let Scene {
                    client,
                    service,
                    log,
                } = Scene::new(is_typed, settings, transport).await;
                let mut peer = Peer::open(client, &[]).await;
                peer.send(Peer::head(1, "POST", "/", false)).await;
                peer.send(Frame::data(1, "part", false)).await;
                read_to(&mut destination, "part\r\n").await;
                if is_answered {
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart";
                    destination.write_all(answer).await.unwrap();
                    peer.wait_for(|frame| frame.kind == DATA).await;
                }
                peer.send(Frame::reset(1, CANCEL)).await;
                let (status, kind) = match is_answered {
                    true => (Some(200), ForwardErrorKind::ResponseBodyCanceled),
                    false => (None, ForwardErrorKind::RequestCanceled),
                };
                let line = log.only().await;
                assert_eq!((line.status, line.error), (status, None), "{what}");
                let generation = service.shared().load_full();
                let cluster = generation.cluster(ClusterIndex(0));
                let errors = cluster.live().metrics().errors.iter();
                let errors: Vec<_> = errors.filter(|(_, count)| *count > 0).collect();
                assert_eq!(errors, [(kind, 1)], "{what}");
                let end = destination.read(&mut [0]).await.unwrap();
                assert_eq!(end, 0, "{what}: it is cancelled there");
                resume();
            })
            .await;
        }
    }
}
