//! Clients of HTTP/2 that do not take what they have asked for, or take it slowly.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use futures_util::stream;
use http_body::Frame as BodyFrame;
use http_body_util::StreamBody;
use testkit::raw::frame;
use tokio::io::duplex;
use tokio::time::sleep;

use super::*;
use crate::server::http2::peer::{INITIAL_WINDOW_SIZE, Peer};

/// A handler that responds with the number of bytes in the path.
fn sized() -> Handler {
    Handler::new(|request| async move {
        let size = request.uri().path()[1..].parse().unwrap();
        text(&"x".repeat(size))
    })
}

/// Endless data at once.
fn flood() -> Handler {
    Handler::new(|_| async {
        let data = || BodyFrame::data(Bytes::from_static(&[b'x'; 65_536]));
        let frames = stream::repeat_with(move || Ok::<_, BoxError>(data()));
        Response::new(StreamBody::new(frames).boxed_unsync())
    })
}

async fn peer(bench: &Bench, handler: Handler, window: u32) -> (Peer, JoinHandle<()>) {
    let (client, task) = bench.connect(handler);
    let settings = [(INITIAL_WINDOW_SIZE, window)];
    (Peer::open(client.stream, &settings).await, task)
}

/// Streams 1, 3 and so on.
fn streams(count: u32) -> impl Iterator<Item = u32> + Clone {
    (0..count).map(|number| number * 2 + 1)
}

/// Cases 241 and 251: neither another stream that is read, nor anything that the client sends, opens the window of a
/// stream.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_taken_is_reset_whatever_goes_on_beside_it() {
    local(async {
        for trickle in [0, 1] {
            let bench = Bench::new(Limits::default());
            let (mut peer, task) = peer(&bench, flood(), 0).await;
            let begin = Instant::now();
            for stream in streams(11) {
                peer.get(stream, "/").await;
            }
            for tick in 0..1200 {
                peer.open_window(0, 1000).await;
                peer.open_window(21, 1000).await;
                peer.ping().await;
                if trickle > 0 && tick % 400 == 0 {
                    for stream in streams(10) {
                        peer.open_window(stream, trickle).await;
                    }
                }
                sleep(Duration::from_millis(50)).await;
            }
            for stream in streams(10) {
                let (when, code) = peer.end_of(stream).await;
                assert_eq!(code, Some(frame::CANCEL), "{stream}");
                let waited = when - begin;
                assert!(waited >= secs(30) && waited < secs(31), "{waited:?}");
            }
            assert!(peer.content(21).len() > 1_000_000, "it was read");
            let is_reset =
                |frame: &frame::Frame| frame.stream == 21 && frame.kind == frame::RST_STREAM;
            assert!(!peer.frames().iter().any(is_reset));
            assert!(!task.is_finished(), "the others go on");
            let counts = bench.metrics.counts();
            assert_eq!((counts.slow_clients, counts.active_requests), (10, 1));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_taken_slowly_but_steadily_is_served() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut peer, _task) = peer(&bench, sized(), 0).await;
        peer.get(1, "/75000").await;
        for _ in 0..300 {
            peer.open_window(1, 250).await;
            peer.open_window(0, 250).await;
            sleep(secs(1)).await;
        }
        assert_eq!(peer.end_of(1).await.1, None);
        assert_eq!(peer.content(1).len(), 75_000);
        assert_eq!(bench.metrics.counts().slow_clients, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_rejection_that_is_not_taken_is_reset_as_well() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut peer, _task) = peer(&bench, flood(), 0).await;
        let begin = Instant::now();
        peer.send(Peer::head(1, "TRACE", "/", true)).await;
        let (when, code) = peer.end_of(1).await;
        assert_eq!((when - begin, code), (secs(30), Some(frame::CANCEL)));
    })
    .await;
}

/// Large windows promise nothing: a client that opens them and does not read its socket has little handed over to it.
#[tokio::test(start_paused = true)]
async fn streams_wait_together_for_a_socket_that_is_not_read() {
    const STREAMS: u32 = 100;
    local(async {
        let bench = Bench::new(Limits::default());
        let (near, far) = duplex(1024);
        let pulled = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&pulled);
        let handler = Handler::new(move |_| {
            let count = Arc::clone(&count);
            let data = move || {
                count.fetch_add(1, Relaxed);
                BodyFrame::data(Bytes::from_static(&[b'x'; 65_536]))
            };
            let frames = stream::repeat_with(move || Ok::<_, BoxError>(data()));
            async { Response::new(StreamBody::new(frames).boxed_unsync()) }
        });
        let task = bench.serve(far, handler);
        let settings = [(INITIAL_WINDOW_SIZE, (1 << 31) - 1)];
        let mut peer = Peer::open_slow(near, &settings, 1024, secs(3600)).await;
        peer.open_window(0, (1 << 31) - 1 - 65_535).await;
        for stream in streams(STREAMS) {
            peer.get(stream, "/").await;
        }
        sleep(secs(5)).await;
        // 128 KiB are with the connection, and few parts are left over: one each time that there was a little room.
        let pulled = pulled.load(Relaxed);
        assert!((2..=6).contains(&pulled), "{pulled}");
        assert!(!task.is_finished());
    })
    .await;
}

/// Streams share a slow connection; the client cannot choose which one gets its capacity.
#[tokio::test(start_paused = true)]
async fn streams_share_a_connection_that_is_slow() {
    const STREAMS: u32 = 20;
    local(async {
        // Twenty times 240 bytes a second are asked for. Of 6.8 KiB each has a frame of 16 KiB in 48 s.
        for (pause, resets) in [(150, 0..=0), (300, 1..=STREAMS - 5)] {
            let bench = Bench::new(Limits::default());
            let (near, far) = duplex(1024);
            let task = bench.serve(far, flood());
            let settings = [(INITIAL_WINDOW_SIZE, 1 << 30)];
            let pause = Duration::from_millis(pause);
            let mut peer = Peer::open_slow(near, &settings, 1024, pause).await;
            peer.open_window(0, 1 << 30).await;
            for stream in streams(STREAMS) {
                peer.get(stream, "/").await;
            }
            for _ in 0..60 {
                // Else it is asked whether it is there.
                peer.ping().await;
                sleep(secs(5)).await;
            }
            assert!(!task.is_finished());
            let slow = u32::try_from(bench.metrics.counts().slow_clients).unwrap();
            assert!(resets.contains(&slow), "{slow} with {pause:?}");
        }
    })
    .await;
}

/// Unsent data keeps a connection from being idle.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_still_being_written_is_waited_for() {
    local(async {
        // Without a drain for longer than an idle connection is kept, with one longer than for the end of one.
        for (pause, drains) in [(3, false), (1, true)] {
            let bench = Bench::new(Limits::default());
            let (near, far) = duplex(1024);
            let task = bench.serve(far, sized());
            let mut peer = Peer::open_slow(near, &[], 1024, secs(pause)).await;
            peer.get(1, "/60000").await;
            sleep(secs(1)).await;
            assert_eq!(bench.metrics.counts().active_requests, 0, "handed over");
            if drains {
                bench.worker.drain();
            }
            assert_eq!(peer.end_of(1).await.1, None);
            assert_eq!(peer.content(1).len(), 60_000);
            task.await.unwrap();
        }
    })
    .await;
}

/// A service's body in one piece is handed over as the client's window has room for it.
#[tokio::test(start_paused = true)]
async fn a_large_piece_is_sent_by_the_room_that_there_is() {
    const SIZE: usize = 1 << 20;
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut peer, _task) = peer(&bench, sized(), 65_535).await;
        peer.get(1, &format!("/{SIZE}")).await;
        for _ in 0..130 {
            sleep(secs(1)).await;
            peer.open_window(1, 8 * 1024).await;
            peer.open_window(0, 8 * 1024).await;
        }
        assert_eq!(peer.end_of(1).await.1, None);
        assert_eq!(peer.content(1).len(), SIZE);

        let begin = Instant::now();
        peer.get(3, &format!("/{SIZE}")).await;
        let (when, code) = peer.end_of(3).await;
        assert_eq!((when - begin, code), (secs(30), Some(frame::CANCEL)));
        assert!(peer.content(3).len() < 2 * 65_535);
    })
    .await;
}

/// A client that goes on sending gets to read the answer for which its body was not needed, whatever it asks for
/// after that.
#[tokio::test(start_paused = true)]
async fn what_may_still_come_of_a_stream_is_read_before_the_end() {
    local(async {
        let limits = Limits {
            requests_per_connection: 2,
            ..Limits::default()
        };
        let bench = Bench::new(limits);
        let (mut peer, task) = peer(&bench, Handler::path(), 65_535).await;
        peer.send(Peer::head(1, "POST", "/", false)).await;
        peer.end_of(1).await;
        peer.get(3, "/").await;
        let (_, ping) = peer.wait_for(|frame| frame.kind == frame::PING).await;
        peer.send(frame::Frame::new(frame::PING, frame::ACK, 0, ping.payload))
            .await;
        sleep(secs(1)).await;
        assert!(!task.is_finished(), "it is still read from");
        sleep(secs(2)).await;
        assert!(task.is_finished());
    })
    .await;
}
