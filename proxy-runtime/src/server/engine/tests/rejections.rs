//! Bodies of requests that are rejected: the same on each way that a request may take.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use testkit::raw::RawOrigin;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, pause, resume, sleep};

use super::scene::{connected_with, local, read_to, serve_by, worker};
use crate::ProxyService;
use crate::error::ForwardErrorKind;
use crate::server::Limits;
use crate::server::handler::{ProxyHandler, ServiceHandler};
use crate::server::{AccessLogSink, AccessRecord, ServerMetrics};

/// The response to a request, with its log line and counters.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// The status line and the sorted fields of the response, without the value of the date.
    head: Vec<String>,
    body: String,
    log: Vec<Line>,
    /// Rejected requests, slow clients and malformed requests.
    counts: (u64, u64, u64),
    /// The statuses that the route's durations are counted with.
    #[cfg(feature = "metrics")]
    durations: Vec<u16>,
}

/// Status, rejection and error of a request.
type Line = (Option<u16>, Option<&'static str>, Option<ForwardErrorKind>);

#[derive(Debug, Default)]
struct Log(Mutex<Vec<Line>>);

impl AccessLogSink for Log {
    fn log(&self, record: &AccessRecord<'_>) {
        let status = record.status.map(|status| status.as_u16());
        let error = record.exchange.and_then(|exchange| exchange.error);
        let line = (status, record.rejection, error);
        self.0.lock().push(line);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Bytes,
    Types,
    /// The proxy is not in disguise: its route has a layer.
    Layered,
}

const WAYS: [Way; 3] = [Way::Bytes, Way::Types, Way::Layered];

/// The reason why a body is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    LargerThanTheServerAllows,
    LargerThanTheRouteAllows,
    TooManyTrailers,
    TooLargeTrailers,
    Slow,
    Silent,
}

impl Case {
    fn limits(self) -> Limits {
        let limits = Limits::default();
        match self {
            Self::LargerThanTheServerAllows => Limits {
                body_bytes: Some(3),
                ..limits
            },
            Self::TooManyTrailers => Limits {
                header_fields: 8,
                ..limits
            },
            Self::TooLargeTrailers => Limits {
                header_bytes: 1024,
                ..limits
            },
            _ => limits,
        }
    }

    /// The expected status and reason, and true if the server rejects.
    fn expected(self) -> (u16, &'static str, bool) {
        match self {
            Self::LargerThanTheServerAllows => (413, "Payload Too Large", true),
            Self::LargerThanTheRouteAllows => (413, "Payload Too Large", false),
            Self::TooManyTrailers | Self::TooLargeTrailers => {
                (431, "Request Header Fields Too Large", true)
            }
            Self::Slow => (408, "Request Timeout", true),
            Self::Silent => (408, "Request Timeout", false),
        }
    }
}

/// A client's connection, and what is seen of it from outside.
struct Scene {
    client: DuplexStream,
    service: ProxyService,
    log: Arc<Log>,
    metrics: ServerMetrics,
}

async fn scene(way: Way, case: Case) -> Scene {
    let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
    let (mut destination, transport) = duplex(1024);
    let mut settings =
        r#","Transforms":[{"ResponseHeader":"X-Of-Route","Set":"yes","When":"Always"}]"#.to_owned();
    if way == Way::Layered {
        settings += r#","Layers":["pass"]"#;
    }
    if case == Case::LargerThanTheRouteAllows {
        settings += r#","MaxRequestBodySize":3"#;
    }
    let (service, lease) = connected_with(&origin.url(), &settings, transport).await;
    pause();
    lease.release(Instant::now());
    // It takes what it gets, and says nothing.
    tokio::task::spawn_local(async move {
        let _ = tokio::io::copy(&mut destination, &mut tokio::io::sink()).await;
    });
    let log = Arc::<Log>::default();
    let (worker, metrics) = worker(case.limits(), Some(log.clone()));
    let (client, far) = duplex(64 * 1024);
    match way {
        Way::Types => serve_by(far, ServiceHandler(service.clone()), worker),
        Way::Bytes | Way::Layered => serve_by(far, ProxyHandler::new(service.clone()), worker),
    }
    Scene {
        client,
        service,
        log,
        metrics,
    }
}

#[cfg(feature = "metrics")]
fn durations(service: &ProxyService) -> Vec<u16> {
    let generation = service.shared().load_full();
    let route = generation.route(proxy_model::compiled::RouteIndex(0));
    let mut statuses = Vec::new();
    route.metrics().durations().for_each(|labels, _| {
        statuses.extend(labels.map(|labels| labels.status()));
    });
    statuses
}

impl Seen {
    #[cfg_attr(
        not(feature = "metrics"),
        expect(unused_variables, reason = "it is the service that counts durations")
    )]
    fn new(
        mut head: Vec<String>,
        body: String,
        service: &ProxyService,
        log: &Log,
        metrics: &ServerMetrics,
    ) -> Self {
        head.sort_unstable();
        let counts = metrics.counts();
        Self {
            head,
            body,
            log: log.0.lock().clone(),
            counts: (
                counts.rejected_requests,
                counts.slow_clients,
                counts.malformed_requests,
            ),
            #[cfg(feature = "metrics")]
            durations: durations(service),
        }
    }

    fn check(&self, case: Case, what: &str) {
        let (status, reason, is_ours) = case.expected();
        assert_eq!(self.body, format!("{status} {reason}\n"), "{what}");
        assert!(
            self.head.contains(&"x-of-route: yes".to_owned()),
            "{what}: {self:?}"
        );
        let rejection = is_ours.then_some("the request's body was rejected");
        let error = Some(ForwardErrorKind::RequestBodyClient);
        assert_eq!(self.log, [(Some(status), rejection, error)], "{what}");
        let is_slow = u64::from(case == Case::Slow);
        assert_eq!(self.counts, (is_ours.into(), is_slow, 0), "{what}");
        #[cfg(feature = "metrics")]
        assert_eq!(self.durations, [status], "{what}");
    }
}

async fn over_http1(way: Way, case: Case, at_once: bool) -> Seen {
    let Scene {
        mut client,
        service,
        log,
        metrics,
    } = scene(way, case).await;
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = match case {
        Case::LargerThanTheServerAllows | Case::LargerThanTheRouteAllows => {
            "2\r\nab\r\n3\r\ncde\r\n".to_owned()
        }
        Case::TooManyTrailers => format!("1\r\na\r\n0\r\n{}\r\n", "x: y\r\n".repeat(9)),
        Case::TooLargeTrailers => format!("1\r\na\r\n0\r\nx: {}\r\n\r\n", "y".repeat(2000)),
        Case::Slow | Case::Silent => "1\r\na\r\n".to_owned(),
    };
    if at_once {
        let request = head.to_owned() + &body;
        client.write_all(request.as_bytes()).await.unwrap();
    } else {
        client.write_all(head.as_bytes()).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        client.write_all(body.as_bytes()).await.unwrap();
    }
    if case == Case::Slow {
        for _ in 0..5 {
            sleep(Duration::from_secs(5)).await;
            client.write_all(b"1\r\na\r\n").await.unwrap();
        }
    }
    let head = read_to(&mut client, "\r\n\r\n").await;
    let mut body = String::new();
    // As with whatever is rejected.
    client.read_to_string(&mut body).await.unwrap();
    let head = head
        .trim_end()
        .lines()
        .map(|line| match line.split_once(": ") {
            Some(("date", _)) => "date".to_owned(),
            Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
            None => line.to_owned(),
        });
    let seen = Seen::new(head.collect(), body, &service, &log, &metrics);
    assert!(
        seen.head.contains(&"connection: close".to_owned()),
        "{seen:?}"
    );
    seen
}

#[tokio::test]
async fn a_rejected_body_is_the_same_on_all_ways() {
    for case in [
        Case::LargerThanTheServerAllows,
        Case::LargerThanTheRouteAllows,
        Case::TooManyTrailers,
        Case::TooLargeTrailers,
        Case::Slow,
        Case::Silent,
    ] {
        let mut all = Vec::new();
        for way in WAYS {
            for at_once in [true, false] {
                let what = format!("{case:?}, {way:?}, {at_once}");
                let seen = local(over_http1(way, case, at_once)).await;
                resume();
                seen.check(case, &what);
                all.push((what, seen));
            }
        }
        let (_, first) = &all[0];
        for (what, seen) in &all {
            assert_eq!(seen, first, "{what}");
        }
    }
}

#[cfg(feature = "http2")]
async fn over_http2(way: Way, case: Case) -> Seen {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, Request};

    let Scene {
        client,
        service,
        log,
        metrics,
    } = scene(way, case).await;
    let (sender, connection) = h2::client::handshake(client).await.unwrap();
    let connection = tokio::task::spawn_local(connection);
    let mut sender = sender.ready().await.unwrap();
    let request = Request::post("http://h/").body(()).unwrap();
    let (response, mut upload) = sender.send_request(request, false).unwrap();
    upload.send_data(Bytes::from_static(b"ab"), false).unwrap();
    sleep(Duration::from_secs(1)).await;
    match case {
        Case::LargerThanTheServerAllows | Case::LargerThanTheRouteAllows => {
            upload.send_data(Bytes::from_static(b"cde"), false).unwrap();
        }
        Case::TooManyTrailers | Case::TooLargeTrailers => {
            let mut trailers = HeaderMap::new();
            for _ in 0..9 {
                trailers.append("x", HeaderValue::from_static("y"));
            }
            upload.send_trailers(trailers).unwrap();
        }
        Case::Slow => {
            for _ in 0..5 {
                sleep(Duration::from_secs(5)).await;
                upload.send_data(Bytes::from_static(b"a"), false).unwrap();
            }
        }
        Case::Silent => {}
    }
    let (head, mut body) = response.await.unwrap().into_parts();
    let mut text = Vec::new();
    while let Some(data) = body.data().await {
        text.extend_from_slice(&data.unwrap());
    }
    // What it was counted by is dropped after its last byte was sent.
    sleep(Duration::from_secs(1)).await;
    let mut lines = vec![head.status.to_string()];
    lines.extend(
        head.headers
            .iter()
            .map(|(name, value)| match name.as_str() {
                "date" => "date".to_owned(),
                name => format!("{name}: {}", value.to_str().unwrap()),
            }),
    );
    connection.abort();
    Seen::new(
        lines,
        String::from_utf8(text).unwrap(),
        &service,
        &log,
        &metrics,
    )
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn that_of_a_stream_is_as_well() {
    for case in [
        Case::LargerThanTheServerAllows,
        Case::LargerThanTheRouteAllows,
        Case::TooManyTrailers,
        Case::Slow,
        Case::Silent,
    ] {
        let mut all = Vec::new();
        for way in WAYS {
            let what = format!("{case:?}, {way:?}");
            let seen = local(over_http2(way, case)).await;
            resume();
            seen.check(case, &what);
            all.push((what, seen));
        }
        let (_, first) = &all[0];
        for (what, seen) in &all {
            assert_eq!(seen, first, "{what}");
        }
    }
}
