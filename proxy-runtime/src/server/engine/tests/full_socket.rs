//! Streams of HTTP/2 whose client does not read its socket: what is read from their destinations meanwhile, and how
//! they go on.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use testkit::raw::RawOrigin;
use testkit::raw::frame::{END_STREAM, Frame, HEADERS, RST_STREAM};
use tokio::io::{AsyncWriteExt, DuplexStream, copy, duplex, split};
use tokio::task::spawn_local;
use tokio::time::{Instant, pause, sleep};

use super::scene::{
    ACTIVITY_TIMEOUT, connected_over, local, read_to, serve, serve_by, serve_disguised, worker,
};
use crate::ProxyService;
use crate::error::Cause;
use crate::server::handler::{ProxyHandler, ServiceHandler};
use crate::server::http2::peer::{INITIAL_WINDOW_SIZE, Peer};
use crate::server::shared::WorkerShared;
use crate::server::{AccessLogSink, AccessRecord, Limits};

const STREAMS: u32 = 10;

/// Bytes that the transport of a destination takes before they are read.
const PIPE: usize = 64 * 1024;

/// Bytes of a response that has an end.
const SIZE: usize = 300_000;

const LARGEST: u32 = (1 << 31) - 1;

type Serve = fn(ProxyService, usize) -> DuplexStream;

/// The ways that requests may take.
const WAYS: [(&str, Serve); 2] = [("bytes", serve), ("http types", serve_disguised)];

/// The bytes that each destination could write, by the path of its request, and the time at which it could write no
/// more.
#[derive(Clone, Default)]
struct Given(Rc<RefCell<ByPath>>);

type ByPath = BTreeMap<String, (usize, Option<Instant>)>;

impl Given {
    fn bytes(&self) -> usize {
        self.0.borrow().values().map(|(bytes, _)| bytes).sum()
    }

    fn ends(&self) -> Vec<Instant> {
        let given = self.0.borrow();
        given.values().filter_map(|(_, end)| *end).collect()
    }

    fn end_of(&self, stream: u32) -> Option<Instant> {
        let given = self.0.borrow();
        let (_, end) = given
            .iter()
            .find(|(path, _)| path.ends_with(&format!("/{stream}")))?
            .1;
        *end
    }
}

/// A destination that answers one request: first with a head, and a second later with more than a client reads, or for
/// the path `/whole` with chunks and trailers.
async fn answer(mut stream: DuplexStream, given: Given) {
    let request = read_to(&mut stream, "\r\n\r\n").await;
    let path = request.split(' ').nth(1).unwrap().to_owned();
    let is_whole = path.starts_with("/whole");
    let framing = match is_whole {
        true => "Transfer-Encoding: chunked",
        false => "Content-Length: 1073741824",
    };
    let head = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    if is_whole {
        for _ in 0..SIZE / 1000 {
            stream.write_all(b"3e8\r\n").await.unwrap();
            stream.write_all(&[b'x'; 1000]).await.unwrap();
            stream.write_all(b"\r\n").await.unwrap();
        }
        stream.write_all(b"0\r\nx-sum: 7\r\n\r\n").await.unwrap();
        sleep(Duration::from_secs(3600)).await;
        return;
    }
    while stream.write_all(&[b'x'; 1000]).await.is_ok() {
        given.0.borrow_mut().entry(path.clone()).or_default().0 += 1000;
    }
    given.0.borrow_mut().entry(path).or_default().1 = Some(Instant::now());
}

/// The causes for which requests ended.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<Option<Cause>>>);

impl AccessLogSink for Log {
    fn log(&self, record: &AccessRecord<'_>) {
        self.0.lock().push(record.cause());
    }
}

/// Destinations for all streams. From then on the clock is the test's.
async fn destinations() -> (ProxyService, Given) {
    destinations_that(answer).await
}

/// The same that answer otherwise.
async fn destinations_that<F>(answer: fn(DuplexStream, Given) -> F) -> (ProxyService, Given)
where
    F: Future<Output = ()> + 'static,
{
    let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
    let given = Given::default();
    let (mut fars, mut transports) = (Vec::new(), Vec::new());
    for _ in 0..STREAMS {
        let (far, transport) = duplex(PIPE);
        fars.push(far);
        transports.push(transport);
    }
    let (service, leases) = connected_over(&origin.url(), "", transports).await;
    pause();
    for far in fars {
        spawn_local(answer(far, given.clone()));
    }
    for lease in leases {
        lease.release(Instant::now());
    }
    (service, given)
}

/// Streams 1, 3 and so on.
fn streams() -> impl Iterator<Item = u32> {
    (0..STREAMS).map(|number| 2 * number + 1)
}

/// A client with the largest windows that there are, which reads so many bytes at a time. It has requested the path
/// with each stream.
async fn client(client: DuplexStream, path: &str, bytes: usize, pause: Duration) -> Peer {
    let settings = [(INITIAL_WINDOW_SIZE, LARGEST)];
    let mut peer = Peer::open_slow(client, &settings, bytes, pause).await;
    peer.open_window(0, LARGEST - 65_535).await;
    for stream in streams() {
        peer.get(stream, &format!("{path}/{stream}")).await;
    }
    peer
}

const NEVER: Duration = Duration::from_secs(36_000);

async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

#[tokio::test]
async fn one_stream_reads_ahead_and_the_others_leave_it_with_their_destinations() {
    for (way, serve) in WAYS {
        local(async {
            let (service, given) = destinations().await;
            let _peer = client(serve(service, 1024), "/endless", 1024, NEVER).await;
            seconds(5).await;
            // 128 KiB are with the connection, and one read is left over.
            let most = 128 * 1024 + PIPE + STREAMS as usize * PIPE;
            let given = given.bytes();
            assert!(given <= most, "{way}: {given} bytes, more than {most}");
            tokio::time::resume();
        })
        .await;
    }
}

/// A destination whose response has come before its request, with more than a client reads.
async fn overflow(mut stream: DuplexStream, given: Given) {
    let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n".to_vec();
    bytes.resize(1000, b'x');
    let path = {
        let request = read_to(&mut stream, "\r\n\r\n").await;
        request.split(' ').nth(1).unwrap().to_owned()
    };
    // The first streams fill the socket and what is held for it.
    sleep(Duration::from_secs(1)).await;
    while stream.write_all(&bytes).await.is_ok() {
        given.0.borrow_mut().entry(path.clone()).or_default().0 += 1000;
        bytes.fill(b'x');
    }
}

#[tokio::test]
async fn heads_of_streams_whose_client_reads_nothing_are_read_into_little_memory() {
    for (way, serve) in WAYS {
        local(async {
            let (service, given) = destinations_that(overflow).await;
            let _peer = client(serve(service, 1024), "/endless", 1024, NEVER).await;
            seconds(5).await;
            let given: Vec<_> = given.0.borrow().values().map(|(bytes, _)| *bytes).collect();
            assert_eq!(given.len(), STREAMS as usize, "{way}");
            // Of most destinations, only a head and the bytes behind it were read.
            let is_little = |bytes: &&usize| **bytes <= PIPE + 1000;
            let little = given.iter().filter(is_little).count();
            assert!(little >= STREAMS as usize - 4, "{way}: {given:?}");
            tokio::time::resume();
        })
        .await;
    }
}

#[tokio::test]
async fn streams_of_a_client_that_reads_slowly_take_turns() {
    // Over `http` types it also depends on the order in which bodies arrive.
    for ((way, serve), part) in WAYS.into_iter().zip([2, 10]) {
        local(async {
            let (service, _given) = destinations().await;
            let pause = Duration::from_millis(100);
            let peer = client(serve(service, PIPE), "/endless", 16 * 1024, pause).await;
            seconds(60).await;
            let each: Vec<_> = streams().map(|stream| peer.content(stream).len()).collect();
            let sum: usize = each.iter().sum();
            assert!(sum > 8_000_000, "{way}: {each:?}");
            let least = sum / STREAMS as usize / part;
            assert!(each.iter().all(|&one| one > least), "{way}: {each:?}");
            tokio::time::resume();
        })
        .await;
    }
}

#[tokio::test]
async fn streams_end_with_their_trailers_although_the_client_reads_slowly() {
    for (way, serve) in WAYS {
        local(async {
            let (service, _given) = destinations().await;
            let pause = Duration::from_millis(100);
            let peer = client(serve(service, PIPE), "/whole", 16 * 1024, pause).await;
            all_is_there(way, &peer).await;
            tokio::time::resume();
        })
        .await;
    }
}

async fn all_is_there(way: &str, peer: &Peer) {
    for stream in streams() {
        assert_eq!(peer.end_of(stream).await.1, None, "{way}: {stream}");
        assert_eq!(peer.content(stream).len(), SIZE, "{way}: {stream}");
        let is_trailers = |frame: &Frame| {
            frame.stream == stream && frame.kind == HEADERS && frame.has(END_STREAM)
        };
        assert!(peer.frames().iter().any(is_trailers), "{way}: {stream}");
    }
}

/// The destinations were not read meanwhile.
#[tokio::test]
async fn a_client_that_begins_to_read_late_does_not_make_its_destinations_late() {
    local(async {
        let (service, _given) = destinations().await;
        let server = serve(service, 1024);
        let (near, far) = duplex(1024);
        let (mut from_client, mut to_client) = split(far);
        let (mut from_server, mut to_server) = split(server);
        spawn_local(async move { copy(&mut from_client, &mut to_server).await });
        spawn_local(async move {
            seconds(2 * ACTIVITY_TIMEOUT).await;
            copy(&mut from_server, &mut to_client).await
        });
        let peer = client(near, "/whole", usize::MAX, Duration::ZERO).await;
        all_is_there("late", &peer).await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_given_up_and_no_destination_is_blamed() {
    for (rate, least, most) in [
        (Limits::default().data_rate, 30, 42),
        (None, ACTIVITY_TIMEOUT, ACTIVITY_TIMEOUT + 3),
    ] {
        local(async {
            let (service, given) = destinations().await;
            let log = Arc::<Log>::default();
            let limits = Limits {
                data_rate: rate,
                ..Limits::default()
            };
            let begin = Instant::now();
            let (near, far) = duplex(1024);
            let sink = Arc::clone(&log) as Arc<dyn AccessLogSink>;
            serve_by(
                far,
                ProxyHandler::new(service),
                worker(limits, Some(sink)).0,
            );
            let _peer = client(near, "/endless", 1024, NEVER).await;
            seconds(most).await;
            let ends: Vec<_> = given.ends().iter().map(|end| *end - begin).collect();
            assert_eq!(ends.len(), STREAMS as usize, "{ends:?}");
            let least = Duration::from_secs(least);
            assert!(ends.iter().all(|&end| end >= least), "{ends:?}");
            let causes = log.0.lock();
            assert_eq!(**causes, [Some(Cause::ClientTooSlow); STREAMS as usize]);
            tokio::time::resume();
        })
        .await;
    }
}

/// Serves a client by handlers of both kinds.
fn serve_both(way: &str, client: DuplexStream, service: ProxyService, worker: Arc<WorkerShared>) {
    match way {
        "bytes" => serve_by(client, ProxyHandler::new(service), worker),
        _ => serve_by(client, ServiceHandler(service), worker),
    }
}

#[tokio::test]
async fn the_budget_of_the_process_counts_what_streams_hold_and_ends_their_connection() {
    const KIB: u64 = 1024;
    for (way, _) in WAYS {
        // What the connection holds, and what was read for its streams.
        for (budget, is_enough) in [(10_000 * KIB, true), (40 * KIB, false)] {
            local(async {
                let (service, _given) = destinations().await;
                let (worker, metrics) = worker(Limits::default(), None);
                let worker = Arc::into_inner(worker).unwrap().with_memory(budget);
                let (near, far) = duplex(1024);
                serve_both(way, far, service, Arc::new(worker));
                let _peer = client(near, "/endless", 1024, NEVER).await;
                seconds(5).await;
                let counts = metrics.counts();
                match is_enough {
                    true => {
                        let held = counts.held_bytes;
                        assert!((64 * KIB..=256 * KIB).contains(&held), "{way}: {held}");
                        assert_eq!(counts.shed_connections, 0, "{way}");
                    }
                    false => {
                        assert_eq!(counts.shed_connections, 1, "{way}");
                        assert_eq!(counts.held_bytes, 0, "{way}: it is free again");
                    }
                }
                tokio::time::resume();
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_stream_that_its_client_resets_lets_go_of_its_destination_at_once() {
    for (way, serve) in WAYS {
        local(async {
            let (service, given) = destinations().await;
            let mut peer = client(serve(service, 1024), "/endless", 1024, NEVER).await;
            seconds(5).await;
            for stream in streams().skip(1) {
                assert_eq!(given.end_of(stream), None, "{way}");
                let begin = Instant::now();
                peer.send(Frame::new(RST_STREAM, 0, stream, 8_u32.to_be_bytes()))
                    .await;
                sleep(Duration::from_millis(10)).await;
                let end = given.end_of(stream);
                assert!(
                    end.is_some_and(|end| end - begin < Duration::from_millis(10)),
                    "{way}: {stream}"
                );
            }
            tokio::time::resume();
        })
        .await;
    }
}
