//! The activity timeout: the events that restart it, on each path of a request.

use std::time::Duration;

use testkit::raw::RawOrigin;
#[cfg(feature = "http2")]
use testkit::raw::frame::{CANCEL, Frame, RST_STREAM};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, pause, resume, sleep, timeout};

use super::scene::{
    ACTIVITY_TIMEOUT, connected_with, local, read_to, serve, serve_by, serve_disguised,
    serve_disguised_with, serve_with, worker,
};
use crate::ProxyService;
#[cfg(feature = "http2")]
use crate::server::handler::{ProxyHandler, ServiceHandler};
use crate::server::http2::peer::{INITIAL_WINDOW_SIZE, Peer};
use crate::server::{Limits, ServerMetrics};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

type Serve = fn(ProxyService, usize) -> DuplexStream;

/// The ways that requests of HTTP/1.1 may take.
const WAYS: [(&str, Serve); 2] = [("bytes", serve), ("http types", serve_disguised)];

/// A destination that takes so many bytes before it reads them, and the one connection that there may be to it. From
/// then on the clock is the test's.
async fn destination(capacity: usize) -> (DuplexStream, ProxyService) {
    destination_with("", capacity).await
}

/// The same behind a route with these settings.
async fn destination_with(settings: &str, capacity: usize) -> (DuplexStream, ProxyService) {
    let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
    let (destination, transport) = duplex(capacity);
    let (service, lease) = connected_with(&origin.url(), settings, transport).await;
    pause();
    lease.release(Instant::now());
    (destination, service)
}

/// The same with a client that has asked for something, and takes little before it reads.
async fn asked(serve: Serve, capacity: usize) -> (DuplexStream, DuplexStream) {
    let (mut destination, service) = destination(capacity).await;
    let mut client = serve(service, 1024);
    let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    client.write_all(request).await.unwrap();
    read_to(&mut destination, "\r\n\r\n").await;
    (destination, client)
}

async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

#[tokio::test]
async fn a_client_that_takes_its_response_late_does_not_make_the_destination_late() {
    for (way, serve) in WAYS {
        local(async {
            let (mut destination, mut client) = asked(serve, 512 * 1024).await;
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 240000\r\n\r\n";
            destination.write_all(head).await.unwrap();
            destination.write_all(&vec![b'x'; 200_000]).await.unwrap();
            seconds(ACTIVITY_TIMEOUT + 5).await;
            read_to(&mut client, "\r\n\r\n").await;
            client.read_exact(&mut vec![0; 200_000]).await.unwrap();
            seconds(1).await;
            let given = destination.write_all(&[b'x'; 40_000]).await;
            assert!(given.is_ok(), "{way}: {given:?}");
            let rest = client.read_exact(&mut [0; 40_000]).await;
            assert!(rest.is_ok(), "{way}: {rest:?}");
            resume();
        })
        .await;
    }
}

#[tokio::test]
async fn a_destination_that_takes_a_request_slowly_is_not_silent() {
    for (way, serve) in WAYS {
        local(async {
            let (mut destination, service) = destination(1024).await;
            let mut client = serve(service, 256 * 1024);
            let head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n";
            client.write_all(head).await.unwrap();
            client.write_all(&[b'x'; 100_000]).await.unwrap();
            read_to(&mut destination, "\r\n\r\n").await;
            for _ in 0..10 {
                seconds(ACTIVITY_TIMEOUT / 2).await;
                let taken = destination.read_exact(&mut [0; 10_000]).await;
                assert!(taken.is_ok(), "{way}: {taken:?}");
            }
            // What counts from here on is that it has all.
            seconds(ACTIVITY_TIMEOUT - 1).await;
            destination.write_all(ANSWER).await.unwrap();
            let answer = read_to(&mut client, "\r\n\r\nok").await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{way}: {answer}");
            resume();
        })
        .await;
    }
}

/// The parts of a response, which are sent at intervals of a little more than half of the timeout.
const SLOW: [&str; 4] = [
    "HTTP/1.1 102 Processing\r\n\r\n",
    "HTTP/1.1 200 OK\r\n",
    "Content-Length: 2\r\n",
    "\r\nok",
];

#[tokio::test]
async fn whatever_comes_of_a_response_is_something() {
    for (way, serve) in WAYS {
        local(async {
            let (mut destination, mut client) = asked(serve, 1024).await;
            for part in SLOW {
                seconds(ACTIVITY_TIMEOUT / 2 + 1).await;
                destination.write_all(part.as_bytes()).await.unwrap();
            }
            let answer = read_to(&mut client, "\r\n\r\nok").await;
            assert!(answer.contains("HTTP/1.1 200 OK\r\n"), "{way}: {answer}");
            resume();
        })
        .await;
    }
}

#[tokio::test]
async fn so_is_what_comes_while_the_request_is_sent() {
    for (way, serve) in WAYS {
        local(async {
            let (mut destination, service) = destination(1024).await;
            let mut client = serve(service, 1024);
            let head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nx";
            client.write_all(head).await.unwrap();
            read_to(&mut destination, "\r\n\r\nx").await;
            for _ in 0..3 {
                seconds(ACTIVITY_TIMEOUT / 2 + 1).await;
                destination.write_all(SLOW[0].as_bytes()).await.unwrap();
            }
            seconds(1).await;
            client.write_all(b"xxx").await.unwrap();
            read_to(&mut destination, "xxx").await;
            destination.write_all(ANSWER).await.unwrap();
            let answer = read_to(&mut client, "\r\n\r\nok").await;
            assert!(answer.contains("HTTP/1.1 200 OK\r\n"), "{way}: {answer}");
            resume();
        })
        .await;
    }
}

#[tokio::test]
async fn silence_after_that_is_too_long_from_then_on() {
    for (way, serve) in WAYS {
        local(async {
            let (mut destination, mut client) = asked(serve, 1024).await;
            seconds(ACTIVITY_TIMEOUT / 2 + 1).await;
            destination.write_all(SLOW[0].as_bytes()).await.unwrap();
            let last = Instant::now();
            let answer = read_to(&mut client, "504 Gateway Timeout\r\n").await;
            let waited = last.elapsed().as_secs();
            let range = ACTIVITY_TIMEOUT..=ACTIVITY_TIMEOUT + 1;
            assert!(range.contains(&waited), "{way}: {waited} s, {answer}");
            resume();
        })
        .await;
    }
}

fn without_rate() -> Limits {
    Limits {
        data_rate: None,
        ..Limits::default()
    }
}

/// There is no minimum data rate. Each time that the client takes something counts as activity.
#[tokio::test]
async fn a_client_that_takes_nothing_is_given_up() {
    let ways: [(&str, Serve); 2] = [
        ("bytes", |service, capacity| {
            serve_with(service, capacity, without_rate())
        }),
        ("http types", |service, capacity| {
            serve_disguised_with(service, capacity, without_rate())
        }),
    ];
    for (way, serve) in ways {
        local(async {
            let (mut destination, mut client) = asked(serve, 64 * 1024).await;
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n";
            destination.write_all(head).await.unwrap();
            let sending = tokio::task::spawn_local(async move {
                while destination.write_all(&[b'x'; 1000]).await.is_ok() {}
                Instant::now()
            });
            for _ in 0..3 {
                seconds(ACTIVITY_TIMEOUT - 2).await;
                client.read_exact(&mut [0; 500]).await.unwrap();
            }
            let begin = Instant::now();
            // Its end shows at the destination first.
            let end = timeout(Duration::from_secs(1000), sending).await;
            let waited = (end.expect("it ends").unwrap() - begin).as_secs();
            let range = ACTIVITY_TIMEOUT - 1..=ACTIVITY_TIMEOUT + 1;
            assert!(range.contains(&waited), "{way}: {waited} s");
            let mut taken = Vec::new();
            let _ = client.read_to_end(&mut taken).await;
            assert!(taken.len() < 300_000, "{way}: {}", taken.len());
            resume();
        })
        .await;
    }
}

/// The ways of a local reply, and how long the proxy waits for its client.
const OWN_ANSWERS: [(&str, u64); 2] = [
    ("bytes", ACTIVITY_TIMEOUT),
    ("http types", ACTIVITY_TIMEOUT),
];

/// A server by one of the ways, behind which is a destination that says nothing, and what the server counts.
async fn silent(way: &str, capacity: usize) -> (DuplexStream, DuplexStream, ServerMetrics) {
    let (destination, service) = destination(1024).await;
    let (worker, metrics) = worker(without_rate(), None);
    let (client, far) = duplex(capacity);
    match way {
        "bytes" => serve_by(far, ProxyHandler::new(service), worker),
        _ => serve_by(far, ServiceHandler(service), worker),
    }
    (client, destination, metrics)
}

#[tokio::test]
async fn nor_does_one_that_takes_no_answer_of_the_proxy_keep_its_place() {
    for (way, wait) in OWN_ANSWERS {
        local(async {
            let (mut client, _destination, metrics) = silent(way, 16).await;
            let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
            client.write_all(request).await.unwrap();
            seconds(ACTIVITY_TIMEOUT + wait - 1).await;
            assert_eq!(metrics.counts().active_connections, 1, "{way}");
            seconds(3).await;
            assert_eq!(metrics.counts().active_connections, 0, "{way}");
            resume();
        })
        .await;
    }
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn nor_does_a_stream() {
    for (way, wait) in OWN_ANSWERS {
        local(async {
            let (client, _destination, _) = silent(way, 64 * 1024).await;
            let mut peer = Peer::open(client, &[(INITIAL_WINDOW_SIZE, 0)]).await;
            let begin = Instant::now();
            peer.get(1, "/").await;
            let is_reset = |frame: &Frame| frame.kind == RST_STREAM;
            while !peer.frames().iter().any(is_reset) && begin.elapsed().as_secs() < 300 {
                // Else it is asked whether it is there.
                peer.ping().await;
                seconds(5).await;
            }
            let ended = timeout(Duration::from_secs(5), peer.end_of(1)).await;
            let (when, code) = ended.unwrap_or_else(|_| panic!("{way}: it does not end"));
            assert_eq!(code, Some(CANCEL), "{way}");
            let waited = (when - begin).as_secs() - ACTIVITY_TIMEOUT;
            assert!((wait..=wait + 2).contains(&waited), "{way}: {waited} s");
            resume();
        })
        .await;
    }
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn the_same_of_a_stream_whose_client_takes_its_response_late() {
    local(async {
        let (mut destination, service) = destination(256 * 1024).await;
        let client = serve(service, 64 * 1024);
        let mut peer = Peer::open(client, &[(INITIAL_WINDOW_SIZE, 0)]).await;
        peer.get(1, "/").await;
        read_to(&mut destination, "\r\n\r\n").await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n";
        destination.write_all(head).await.unwrap();
        destination.write_all(&[b'x'; 1000]).await.unwrap();
        seconds(ACTIVITY_TIMEOUT + 5).await;
        peer.open_window(1, 1001).await;
        peer.wait_for(|frame| frame.payload.len() == 1000).await;
        seconds(1).await;
        destination.write_all(b"x").await.unwrap();
        assert_eq!(peer.end_of(1).await.1, None);
    })
    .await;
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn and_of_one_whose_destination_takes_the_request_slowly() {
    local(async {
        let (mut destination, service) = destination(1024).await;
        let mut peer = Peer::open(serve(service, 256 * 1024), &[]).await;
        peer.send(Peer::head(1, "POST", "/", false)).await;
        for last in [false, false, true] {
            peer.send(Frame::data(1, "x".repeat(10_000), last)).await;
        }
        read_to(&mut destination, "\r\n\r\n").await;
        for _ in 0..6 {
            seconds(ACTIVITY_TIMEOUT / 2).await;
            let taken = destination.read_exact(&mut [0; 5000]).await;
            assert!(taken.is_ok(), "{taken:?}");
        }
        read_to(&mut destination, "0\r\n\r\n").await;
        seconds(ACTIVITY_TIMEOUT - 1).await;
        destination.write_all(ANSWER).await.unwrap();
        assert_eq!(peer.end_of(1).await.1, None);
    })
    .await;
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn and_of_one_whose_response_comes_bit_by_bit() {
    local(async {
        let (mut destination, service) = destination(1024).await;
        let mut peer = Peer::open(serve(service, 64 * 1024), &[]).await;
        peer.get(1, "/").await;
        read_to(&mut destination, "\r\n\r\n").await;
        for part in SLOW {
            seconds(ACTIVITY_TIMEOUT / 2 + 1).await;
            destination.write_all(part.as_bytes()).await.unwrap();
        }
        peer.wait_for(|frame| frame.payload == b"ok").await;
        assert_eq!(peer.end_of(1).await.1, None);
    })
    .await;
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn and_of_an_upload_whose_response_begins_bit_by_bit() {
    local(async {
        let (mut destination, service) = destination(1024).await;
        let mut peer = Peer::open(serve(service, 64 * 1024), &[]).await;
        peer.send(Peer::head(1, "POST", "/", false)).await;
        read_to(&mut destination, "\r\n\r\n").await;
        for _ in 0..3 {
            seconds(ACTIVITY_TIMEOUT / 2 + 1).await;
            destination.write_all(SLOW[0].as_bytes()).await.unwrap();
        }
        seconds(1).await;
        peer.send(Frame::data(1, "x", true)).await;
        read_to(&mut destination, "0\r\n\r\n").await;
        destination.write_all(ANSWER).await.unwrap();
        assert_eq!(peer.end_of(1).await.1, None);
    })
    .await;
}

/// Calls of gRPC are held to no rate, but not for ever; nor is anything else, where none is asked for. It is the
/// cluster's clock that says so, and not the server's limit of slow clients.
#[cfg(feature = "http2")]
#[tokio::test]
async fn a_call_whose_client_takes_nothing_ends_as_one_that_is_idle() {
    // What has come as a whole lets go of its destination at once; what goes on would hold it.
    for answer in [
        "Content-Length: 2\r\n\r\nok",
        "Content-Length: 20000\r\n\r\nok",
    ] {
        for (kind, limits) in [
            ("application/grpc", Limits::default()),
            ("text/plain", without_rate()),
        ] {
            for way in ["bytes", "http types", "layers"] {
                let what = format!("{way}, {kind}: {answer}");
                local(async {
                    let settings = match way {
                        "layers" => r#","Layers":["pass"]"#,
                        _ => "",
                    };
                    let (mut destination, service) = destination_with(settings, 1024).await;
                    let (worker, metrics) = worker(limits.clone(), None);
                    let (client, far) = duplex(64 * 1024);
                    match way {
                        "http types" => serve_by(far, ServiceHandler(service), worker),
                        _ => serve_by(far, ProxyHandler::new(service), worker),
                    }
                    let mut peer = Peer::open(client, &[(INITIAL_WINDOW_SIZE, 0)]).await;
                    peer.get(1, "/").await;
                    read_to(&mut destination, "\r\n\r\n").await;
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{answer}");
                    destination.write_all(head.as_bytes()).await.unwrap();
                    let mut begin = Instant::now();
                    for _ in 0..2 {
                        if answer.contains("20000") {
                            // It takes a byte in time.
                            seconds(ACTIVITY_TIMEOUT - 2).await;
                            begin = Instant::now();
                            peer.open_window(1, 1).await;
                            destination.write_all(b"x").await.unwrap();
                        }
                    }
                    let ended = timeout(Duration::from_secs(1000), peer.end_of(1)).await;
                    let (when, code) = ended.unwrap_or_else(|_| panic!("{what}: it does not end"));
                    assert_eq!(code, Some(CANCEL), "{what}");
                    let waited = (when - begin).as_secs();
                    let range = ACTIVITY_TIMEOUT..=ACTIVITY_TIMEOUT + 1;
                    assert!(range.contains(&waited), "{what}: {waited} s");
                    assert_eq!(metrics.counts().slow_clients, 0, "{what}");
                    resume();
                })
                .await;
            }
        }
    }
}
