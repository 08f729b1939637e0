//! Clients of HTTP/2 that do more than they may.

use std::cell::Cell;

use futures_util::stream;
use http_body::Frame as BodyFrame;
use http_body_util::StreamBody;
use testkit::raw::frame::{self, Frame};
use tokio::time::{sleep, timeout};

use super::*;
use crate::server::http2::peer::Peer;
use crate::server::limits::Http2Limits;

/// Requests that are never answered, and how many there have been.
fn hole() -> (Handler, Rc<Cell<u32>>) {
    let count = Rc::new(Cell::new(0));
    let begun = Rc::clone(&count);
    let handler = Handler::new(move |_| {
        begun.set(begun.get() + 1);
        std::future::pending()
    });
    (handler, count)
}

/// CVE-2023-44487, by a client that lets each request begin.
#[tokio::test(start_paused = true)]
async fn resets_of_streams_that_are_served_end_the_connection() {
    local(async {
        let per_connection = Http2Limits {
            resets_per_connection: 20,
            ..Http2Limits::default()
        };
        for (limits, pause, most) in [
            (Http2Limits::default(), Duration::ZERO, 100),
            (Http2Limits::default(), Duration::from_millis(11), 500),
            (per_connection, secs(1), 20),
        ] {
            let bench = Bench::new(Limits {
                http2: limits,
                ..Limits::default()
            });
            let (handler, begun) = hole();
            let (client, task) = bench.connect(handler);
            let mut peer = Peer::open(client.stream, &[]).await;
            let mut stream = 1;
            while peer.try_send(Peer::head(stream, "GET", "/", true)).await && stream < 4000 {
                let before = begun.get();
                // Polls until it has begun, or never will.
                for _ in 0..100 {
                    if begun.get() > before {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                if !peer.try_send(Frame::reset(stream, frame::CANCEL)).await {
                    break;
                }
                sleep(pause).await;
                stream += 2;
            }
            assert_eq!(peer.end().await.1, Some(frame::ENHANCE_YOUR_CALM));
            // One more may have come with the last reset.
            assert!((most + 1..=most + 2).contains(&begun.get()), "{begun:?}");
            drop(peer);
            task.await.unwrap();
            let counts = bench.metrics.counts();
            assert_eq!((counts.active_requests, counts.malformed_requests), (0, 1));
        }
    })
    .await;
}

/// A stream that is reset after its response costs nothing.
#[tokio::test(start_paused = true)]
async fn resets_after_the_response_do_not_count() {
    local(async {
        let limits = Http2Limits {
            resets_per_second: 0,
            ..Http2Limits::default()
        };
        let bench = Bench::new(Limits {
            http2: limits,
            ..Limits::default()
        });
        let (client, _task) = bench.connect(Handler::path());
        let mut peer = Peer::open(client.stream, &[]).await;
        for stream in [1, 3, 5] {
            peer.get(stream, "/").await;
            assert_eq!(peer.end_of(stream).await.1, None);
            peer.send(Frame::reset(stream, frame::CANCEL)).await;
        }
        sleep(secs(1)).await;
        assert!(!peer.has_ended());
    })
    .await;
}

/// GOAWAY binds clients that do not want to know of it as well.
#[tokio::test(start_paused = true)]
async fn a_connection_has_a_last_request() {
    local(async {
        let http2 = Http2Limits {
            concurrent_streams: 5,
            ..Http2Limits::default()
        };
        let limits = Limits {
            http2,
            ..Limits::default()
        };
        let by_count = Limits {
            requests_per_connection: 10,
            ..limits.clone()
        };
        let by_age = Limits {
            connection_age: secs(10),
            ..limits
        };
        for (limits, pause, most) in [
            (by_count, Duration::from_millis(10), 10),
            (by_age, secs(1), 11),
        ] {
            let bench = Bench::new(limits);
            let (client, task) = bench.connect(Handler::path());
            // It answers no ping, and so does not tell that it has read of the end.
            let mut peer = Peer::open(client.stream, &[]).await;
            for number in 0..40 {
                let stream = number * 2 + 1;
                if !peer.try_send(Peer::head(stream, "GET", "/", true)).await {
                    break;
                }
                sleep(pause).await;
            }
            // It is idle, however much is asked for.
            timeout(secs(5), peer.end()).await.unwrap();
            let frames = peer.frames();
            let ends = frames.iter().filter(|frame| frame.kind == frame::DATA);
            let answered = ends.filter(|frame| frame.has(frame::END_STREAM)).count();
            assert!((9..=most + 5).contains(&answered), "{answered}");
            assert_eq!(bench.metrics.counts().requests, answered as u64);
            for reset in frames
                .iter()
                .filter(|frame| frame.kind == frame::RST_STREAM)
            {
                assert_eq!(reset.error_code(), Some(frame::REFUSED_STREAM));
            }
            drop(peer);
            task.await.unwrap();
        }
    })
    .await;
}

impl Bench {
    /// A connection of HTTP/2 from its first byte on, as a TLS handshake agrees on it.
    fn connect_http2(&self, handler: Handler) -> (Client, JoinHandle<()>) {
        let (near, far) = tokio::io::duplex(16 * 1024);
        let info = ConnectionInfo::new(([192, 0, 2, 7], 4711).into());
        let state = ConnectionState::new(self.worker.clone(), info, Instant::now());
        let io = ConnectionIo::new(far, state.clone(), self.worker.enter());
        let served = Rc::new(Served::new(ServiceHandler(handler)));
        let task = tokio::task::spawn_local(crate::server::http2::serve(io, served, state));
        (Client { stream: near }, task)
    }
}

/// A client that is about to ask while the server begins to drain is answered, and told.
#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_a_client_that_is_opening_its_connection() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut client, task) = bench.connect_http2(Handler::path());
        sleep(Duration::from_millis(100)).await;
        bench.worker.drain();
        sleep(Duration::from_millis(100)).await;
        client.send(frame::PREFACE).await;
        sleep(Duration::from_millis(100)).await;
        client.send(Frame::settings(&[]).encode()).await;
        let head = Peer::head(1, "GET", "/", true);
        client.send(head.encode()).await;
        let mut bytes = Vec::new();
        client.stream.read_to_end(&mut bytes).await.unwrap();
        let has = |frame: &Frame| {
            let frame = frame.encode();
            bytes.windows(frame.len()).any(|window| window == frame)
        };
        assert!(has(&Frame::data(1, "/", true)));
        assert!(has(&Frame::goaway(u32::MAX >> 1, frame::NO_ERROR)));
        task.await.unwrap();

        // A client without a request is not waited for.
        for said in [b"".as_slice(), frame::PREFACE] {
            let (mut silent, task) = bench.connect_http2(Handler::path());
            silent.send(said).await;
            let begin = Instant::now();
            task.await.unwrap();
            assert!(begin.elapsed() < secs(4), "{:?}", begin.elapsed());
        }
    })
    .await;
}

/// Cases 245 and 246. A client that receives data may send more pings, as clients of gRPC do.
#[tokio::test(start_paused = true)]
async fn floods_of_ping_and_settings_end_the_connection() {
    local(async {
        let ping = Frame::new(frame::PING, 0, 0, [0; 8]);
        let pong = Frame::new(frame::PING, frame::ACK, 0, [0; 8]);
        for (flood, pause, ends) in [
            (&ping, 0, true),
            (&ping, 9, true),
            (&ping, 11, false),
            (&Frame::settings(&[]), 19, true),
            (&Frame::settings(&[]), 21, false),
            (&pong, 0, false),
        ] {
            let bench = Bench::new(Limits::default());
            let (client, _task) = bench.connect(Handler::path());
            let mut peer = Peer::open(client.stream, &[]).await;
            for _ in 0..1000 {
                // In two parts, as they may come.
                let bytes = flood.encode();
                if !peer.try_send_bytes(&bytes[..5]).await
                    || !peer.try_send_bytes(&bytes[5..]).await
                {
                    break;
                }
                sleep(Duration::from_millis(pause)).await;
            }
            assert_eq!(peer.has_ended(), ends, "{flood:?} every {pause} ms");
            if ends {
                assert_eq!(peer.end().await.1, Some(frame::ENHANCE_YOUR_CALM));
            }
        }

        let bench = Bench::new(Limits::default());
        let (client, _task) = bench.connect(Handler::path());
        let mut peer = Peer::open(client.stream, &[]).await;
        for number in 0..1000 {
            let stream = number * 2 + 1;
            peer.get(stream, "/").await;
            peer.end_of(stream).await;
            peer.ping().await;
        }
    })
    .await;
}

/// Case 255.
#[tokio::test(start_paused = true)]
async fn settings_that_are_not_acknowledged_end_the_connection() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (client, task) = bench.connect(Handler::path());
        let begin = Instant::now();
        let mut peer = Peer::open_unacknowledged(client.stream).await;
        let mut stream = 1;
        while !peer.has_ended() {
            peer.try_send(Peer::head(stream, "GET", "/", true)).await;
            stream += 2;
            sleep(secs(1)).await;
        }
        assert!((10..=11).contains(&begin.elapsed().as_secs()));
        const SETTINGS_TIMEOUT: u32 = 4;
        assert_eq!(peer.end().await.1, Some(SETTINGS_TIMEOUT));
        assert_eq!(bench.metrics.counts().header_timeouts, 1);
        drop(peer);
        task.await.unwrap();
    })
    .await;
}

/// Frames without an answer still cost the reading.
#[tokio::test(start_paused = true)]
async fn floods_of_frames_without_an_answer_end_the_connection() {
    const UNKNOWN: u8 = 0xfa;
    local(async {
        let update = Frame::new(frame::WINDOW_UPDATE, 0, 0, 1_u32.to_be_bytes());
        let priority = Frame::new(frame::PRIORITY, 0, 1, [0, 0, 0, 0, 15]);
        let unknown = Frame::new(UNKNOWN, 0, 0, *b"grease");
        // Of a PING that was never sent.
        let pong = Frame::new(frame::PING, frame::ACK, 0, [0; 8]);
        // So many of each in a second.
        for (flood, count, ends) in [
            (&update, 2000, true),
            (&update, 1000, false),
            (&priority, 2000, true),
            (&priority, 500, false),
            (&unknown, 2000, true),
            (&unknown, 500, false),
            (&pong, 2000, true),
            (&pong, 500, false),
        ] {
            let bench = Bench::new(Limits::default());
            let (handler, _) = hole();
            let (client, _task) = bench.connect(handler);
            let mut peer = Peer::open(client.stream, &[]).await;
            peer.get(1, "/").await;
            for number in 0..4 * count {
                if number % 10 == 0 {
                    sleep(secs(1) * 10 / count).await;
                }
                if !peer.try_send(flood.clone()).await {
                    break;
                }
            }
            assert_eq!(peer.has_ended(), ends, "{flood:?}, {count} a second");
            if ends {
                assert_eq!(peer.end().await.1, Some(frame::ENHANCE_YOUR_CALM));
            }
        }
    })
    .await;
}

/// RFC 9113 section 6.9: even with two frames for each piece of data, and with all of them at the end.
#[tokio::test(start_paused = true)]
async fn what_was_sent_to_a_client_may_be_acknowledged() {
    const PIECES: u32 = 5000;
    local(async {
        let handler = Handler::new(|_| async {
            let piece = || BodyFrame::data(Bytes::from_static(b"x"));
            let pieces = (0..PIECES).map(move |_| Ok::<_, BoxError>(piece()));
            Response::new(StreamBody::new(stream::iter(pieces)).boxed_unsync())
        });
        let bench = Bench::new(Limits::default());
        let (client, _task) = bench.connect(handler);
        let mut peer = Peer::open(client.stream, &[]).await;
        peer.get(1, "/").await;
        peer.end_of(1).await;
        peer.get(3, "/").await;
        sleep(secs(2)).await;
        for _ in 0..PIECES {
            peer.open_window(0, 1).await;
            peer.open_window(0, 1).await;
        }
        peer.get(5, "/").await;
        assert_eq!(peer.end_of(5).await.1, None);
    })
    .await;
}

/// docs/operate.md, "Limits": two limits of `h2` that cannot be set.
#[tokio::test(start_paused = true)]
async fn small_frames_of_data_have_a_limit() {
    local(async {
        for (length, most) in [(10, 2131), (0, 100)] {
            let bench = Bench::new(Limits::default());
            let (handler, _) = hole();
            let (client, _task) = bench.connect(handler);
            let mut peer = Peer::open(client.stream, &[]).await;
            peer.send(Peer::head(1, "POST", "/", false)).await;
            let mut sent = 0;
            while sent < 10_000
                && peer
                    .try_send(Frame::data(1, vec![b'x'; length], false))
                    .await
            {
                tokio::task::yield_now().await;
                if peer.has_ended() {
                    break;
                }
                sent += 1;
            }
            assert_eq!(peer.end().await.1, Some(frame::ENHANCE_YOUR_CALM));
            // Some more may be on the way when it ends.
            assert!((most..most + 4).contains(&sent), "{sent} of {length}");
        }
    })
    .await;
}
