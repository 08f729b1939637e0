//! Responses that begin before their requests have ended.

use testkit::raw::RawOrigin;
#[cfg(feature = "http2")]
use testkit::raw::frame::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::yield_now;
use tokio::time::Instant;

use super::scene::{connected, local, read_to, serve, serve_disguised};
use crate::ProxyService;
#[cfg(feature = "http2")]
use crate::server::http2::peer::Peer;

/// The parts of a response that a destination sends before and after it has all of the request.
const ANSWERS: [(&str, &str); 5] = [
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ""),
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "ok"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", "\r\nok"),
    (
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 2",
        "00 OK\r\nContent-Length: 2\r\n\r\nok",
    ),
    ("H", "TTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
];

/// Responses after the whole request: only interim ones come before its end.
const LATE: [(&str, &str); 2] = [
    ("", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    (
        "HTTP/1.1 102 Processing\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ),
];

fn answers() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    let early = ANSWERS.map(|(before, behind)| (before, behind, true));
    let late = LATE.map(|(before, behind)| (before, behind, false));
    early.into_iter().chain(late)
}

type Serve = fn(ProxyService, usize) -> DuplexStream;

/// The ways that requests of HTTP/1.1 may take.
const WAYS: [(&str, Serve); 2] = [("bytes", serve), ("http types", serve_disguised)];

const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n";

async fn destination() -> (DuplexStream, ProxyService) {
    let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
    let (destination, transport) = duplex(1024);
    let (service, lease) = connected(&origin.url(), transport).await;
    lease.release(Instant::now());
    (destination, service)
}

/// Lets all others do what there is for them to do.
async fn let_all_run() {
    for _ in 0..20 {
        yield_now().await;
    }
}

/// Returns true if the proxy has closed its connection.
async fn is_closed(destination: &mut DuplexStream) -> bool {
    let_all_run().await;
    let mut byte = [0];
    tokio::select! {
        biased;
        read = destination.read(&mut byte) => {
            assert_eq!(read.unwrap(), 0, "nothing more is asked");
            true
        }
        () = yield_now() => false,
    }
}

/// The destination may take what is left of the request for the next one, so that there must be none.
#[tokio::test]
async fn close_the_connection_however_little_of_them_was_there() {
    for (way, serve) in WAYS {
        for (before, behind, is_early) in answers() {
            // Whether the proxy sees what came before the client goes on.
            for is_seen in [true, false] {
                let what = format!("{way}: {before:?}, {behind:?}, {is_seen}");
                local(async {
                    let (mut destination, service) = destination().await;
                    let mut client = serve(service, 1024);
                    client.write_all(HEAD).await.unwrap();
                    read_to(&mut destination, "\r\n\r\n").await;
                    destination.write_all(before.as_bytes()).await.unwrap();
                    if is_seen {
                        let_all_run().await;
                    }
                    client.write_all(b"body").await.unwrap();
                    read_to(&mut destination, "body").await;
                    destination.write_all(behind.as_bytes()).await.unwrap();
                    read_to(&mut client, "\r\n\r\nok").await;
                    assert_eq!(is_closed(&mut destination).await, is_early, "{what}");
                })
                .await;
            }
        }
    }
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn do_so_for_a_stream_as_well() {
    for (before, behind, is_early) in answers() {
        for is_seen in [true, false] {
            local(async {
                let (mut destination, service) = destination().await;
                let mut peer = Peer::open(serve(service, 64 * 1024), &[]).await;
                peer.send(Peer::head(1, "POST", "/", false)).await;
                read_to(&mut destination, "\r\n\r\n").await;
                destination.write_all(before.as_bytes()).await.unwrap();
                if is_seen {
                    let_all_run().await;
                }
                peer.send(Frame::data(1, "body", true)).await;
                read_to(&mut destination, "4\r\nbody\r\n0\r\n\r\n").await;
                destination.write_all(behind.as_bytes()).await.unwrap();
                assert_eq!(peer.end_of(1).await.1, None);
                let is_closed = is_closed(&mut destination).await;
                assert_eq!(is_closed, is_early, "{before:?}, {behind:?}, {is_seen}");
            })
            .await;
        }
    }
}
