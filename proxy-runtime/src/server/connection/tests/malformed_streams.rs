//! Clients of HTTP/2 that break the protocol: what concerns one stream ends that stream, and what concerns the
//! connection ends it with the code that RFC 9113 names.

use testkit::raw::frame::{self, Frame};
use tokio::time::sleep;

use super::*;
use crate::server::http2::peer::Peer;

const COMPRESSION_ERROR: u32 = 9;
const FLOW_CONTROL_ERROR: u32 = 3;
const FRAME_SIZE_ERROR: u32 = 6;

/// The tables are told of in SECURITY.md, with how many cases they have.
fn assert_documented(table: &str, cases: usize) {
    let documented = concat!(env!("CARGO_MANIFEST_DIR"), "/../SECURITY.md");
    let documented = std::fs::read_to_string(documented).unwrap();
    let row = format!("| HTTP/2, {table} | {cases} |");
    assert!(
        documented.contains(&row),
        "SECURITY.md does not have {row:?}"
    );
}

fn with(fields: &[(&str, &str)]) -> Frame {
    let complete = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "h"),
        (":path", "/a"),
    ];
    Frame::headers(3, &[&complete[..], fields].concat(), true)
}

fn at_path(path: &str) -> Frame {
    Peer::head(3, "GET", path, true)
}

/// A block of HPACK as it is.
fn block(bytes: &[u8]) -> Frame {
    Frame::new(
        frame::HEADERS,
        frame::END_HEADERS | frame::END_STREAM,
        3,
        bytes,
    )
}

/// RFC 9113 section 8.1.1: a request that is malformed is an error of its stream, so that others beside it go on.
#[tokio::test(start_paused = true)]
async fn a_malformed_request_ends_its_stream_alone() {
    let own_parent = [&3_u32.to_be_bytes()[..], &[16], b"\x82\x84\x86\x41\x01t"].concat();
    let upper_coded = b"\x82\x84\x86\x41\x01t\x00\x81\xfc\x011";
    let cases = [
        ("upper case", with(&[("X-A", "1")])),
        ("coded upper case", block(upper_coded)),
        ("white space in a name", with(&[("x a", "1")])),
        ("a line feed in a value", with(&[("x-a", "1\n2")])),
        ("a NUL in a value", with(&[("x-a", "\0")])),
        ("an unknown pseudo-header field", with(&[(":foo", "1")])),
        ("a status", with(&[(":status", "200")])),
        ("a fragment", at_path("/a#b")),
        ("a connection's field", with(&[("connection", "close")])),
        ("a method", Peer::head(3, "G T", "/", true)),
    ];
    assert_documented("malformed requests", cases.len());
    for (what, frame) in cases {
        local(async {
            let bench = Bench::new(Limits::default());
            let handler = Handler::new(|request| async move {
                if request.uri().path() == "/slow" {
                    sleep(secs(5)).await;
                }
                text("done")
            });
            let (client, _task) = bench.connect(handler);
            let mut peer = Peer::open(client.stream, &[]).await;
            peer.get(1, "/slow").await;
            peer.send(frame).await;
            peer.get(5, "/").await;
            let reset = peer.end_of(3).await.1;
            assert_eq!(reset, Some(frame::PROTOCOL_ERROR), "{what}");
            assert_eq!(peer.end_of(5).await.1, None, "{what}");
            assert_eq!(peer.end_of(1).await.1, None, "{what}");
            assert_eq!(bench.metrics.counts().requests, 2, "{what}");
        })
        .await;
    }
    // RFC 9113 has nothing against what was an error before it.
    local(async {
        let bench = Bench::new(Limits::default());
        let (client, _task) = bench.connect(Handler::path());
        let mut peer = Peer::open(client.stream, &[]).await;
        let flags = frame::END_HEADERS | frame::END_STREAM | 0x20;
        peer.send(Frame::new(frame::HEADERS, flags, 3, own_parent))
            .await;
        peer.end_of(3).await;
        peer.get(5, "/").await;
        assert_eq!(peer.end_of(5).await.1, None);
    })
    .await;
}

/// Fields have numbers for as long as the connection is there, also those that came with a malformed request.
#[tokio::test(start_paused = true)]
async fn numbers_of_fields_outlive_a_malformed_request() {
    local(async {
        let bench = Bench::new(Limits::default());
        let handler = Handler::new(|request| async move {
            let value = request.headers().get("x-b").cloned();
            text(
                value
                    .map_or_else(|| "-".to_owned(), |value| format!("{value:?}"))
                    .as_str(),
            )
        });
        let (client, _task) = bench.connect(handler);
        let mut peer = Peer::open(client.stream, &[]).await;
        let begin = b"\x82\x84\x86\x41\x01t";
        // X-A is 63 then, and x-b 62.
        let bad = [&begin[..], b"\x40\x03X-A\x011\x40\x03x-b\x012"].concat();
        peer.send(block(&bad)).await;
        assert_eq!(peer.end_of(3).await.1, Some(frame::PROTOCOL_ERROR));
        let flags = frame::END_HEADERS | frame::END_STREAM;
        let good = [&begin[..], b"\xbf"].concat();
        // The authority has a number as well: of these, 62 is the last one.
        peer.send(Frame::new(frame::HEADERS, flags, 5, good)).await;
        assert_eq!(peer.end_of(5).await.1, None);
        assert_eq!(peer.content(5), b"\"2\"");
        let bad_again = [&begin[..], b"\xc1"].concat();
        peer.send(Frame::new(frame::HEADERS, flags, 7, bad_again))
            .await;
        assert_eq!(peer.end_of(7).await.1, Some(frame::PROTOCOL_ERROR));
    })
    .await;
}

/// RFC 9113 section 8.1.
#[tokio::test(start_paused = true)]
async fn pseudo_header_fields_in_trailers_are_malformed() {
    local(async {
        for (name, value) in [(":path", "/evil"), (":status", "200"), (":method", "GET")] {
            let bench = Bench::new(Limits::default());
            let (client, _task) = bench.connect(Handler::length());
            let mut peer = Peer::open(client.stream, &[]).await;
            peer.send(Peer::head(1, "POST", "/", false)).await;
            peer.send(Frame::data(1, "body", false)).await;
            peer.send(Frame::headers(1, &[("x-sum", "1")], true)).await;
            assert_eq!(peer.end_of(1).await.1, None);
            peer.send(Peer::head(3, "POST", "/", false)).await;
            peer.send(Frame::data(3, "body", false)).await;
            peer.send(Frame::headers(3, &[(name, value)], true)).await;
            let reset = peer.end_of(3).await.1;
            assert_eq!(reset, Some(frame::PROTOCOL_ERROR), "{name}");
            peer.get(5, "/").await;
            assert_eq!(peer.end_of(5).await.1, None);
        }
    })
    .await;
}

/// RFC 9113 sections 4.2, 4.3, 6.5.2 and others.
#[tokio::test(start_paused = true)]
async fn a_connection_ends_with_the_code_of_the_rfc() {
    let window =
        |stream, bytes: u32| Frame::new(frame::WINDOW_UPDATE, 0, stream, bytes.to_be_bytes());
    let padded = frame::END_HEADERS | frame::END_STREAM | 8;
    let cases = [
        ("HPACK: number 0", block(b"\x80"), COMPRESSION_ERROR),
        (
            "HPACK: half a string",
            block(b"\x82\x00\x05ab"),
            COMPRESSION_ERROR,
        ),
        (
            "HPACK: wrong padding",
            block(b"\x00\x81\x00\x01b"),
            COMPRESSION_ERROR,
        ),
        (
            "HPACK: too large a table",
            block(b"\x3f\xe2\x1f"),
            COMPRESSION_ERROR,
        ),
        (
            "PING of 7",
            Frame::new(frame::PING, 0, 0, [0; 7]),
            FRAME_SIZE_ERROR,
        ),
        (
            "SETTINGS of 5",
            Frame::new(frame::SETTINGS, 0, 0, [0; 5]),
            FRAME_SIZE_ERROR,
        ),
        (
            "SETTINGS that acknowledge more",
            Frame::new(frame::SETTINGS, frame::ACK, 0, [0; 6]),
            FRAME_SIZE_ERROR,
        ),
        (
            "WINDOW_UPDATE of 3",
            Frame::new(frame::WINDOW_UPDATE, 0, 0, [1; 3]),
            FRAME_SIZE_ERROR,
        ),
        (
            "RST_STREAM of 5",
            Frame::new(frame::RST_STREAM, 0, 1, [0; 5]),
            FRAME_SIZE_ERROR,
        ),
        (
            "GOAWAY of 7",
            Frame::new(frame::GOAWAY, 0, 0, [0; 7]),
            FRAME_SIZE_ERROR,
        ),
        (
            "PRIORITY of 4",
            Frame::new(frame::PRIORITY, 0, 1, [0; 4]),
            FRAME_SIZE_ERROR,
        ),
        (
            "HEADERS of 16,385",
            block(&[0x82; 16_385]),
            FRAME_SIZE_ERROR,
        ),
        (
            "DATA of 16,385",
            Frame::data(1, vec![0; 16_385], true),
            FRAME_SIZE_ERROR,
        ),
        (
            "a window of 2^31",
            Frame::settings(&[(4, 1 << 31)]),
            FLOW_CONTROL_ERROR,
        ),
        (
            "a window beyond 2^31",
            window(0, (1 << 31) - 1),
            FLOW_CONTROL_ERROR,
        ),
        ("a window of 0 more", window(0, 0), frame::PROTOCOL_ERROR),
        (
            "padding longer than all",
            Frame::new(frame::HEADERS, padded, 3, *b"\x09\x82\x84"),
            frame::PROTOCOL_ERROR,
        ),
        (
            "an even stream",
            Peer::head(2, "GET", "/", true),
            frame::PROTOCOL_ERROR,
        ),
        (
            "CONTINUATION of nothing",
            Frame::new(frame::CONTINUATION, frame::END_HEADERS, 1, *b"\x82"),
            frame::PROTOCOL_ERROR,
        ),
        (
            "settings of a stream",
            Frame::new(frame::SETTINGS, 0, 1, []),
            frame::PROTOCOL_ERROR,
        ),
        (
            "a field without a name",
            block(b"\x82\x84\x86\x00\x00\x011"),
            frame::PROTOCOL_ERROR,
        ),
    ];
    assert_documented("broken connections", cases.len());
    for (what, frame, code) in cases {
        local(async {
            let bench = Bench::new(Limits::default());
            let (client, task) = bench.connect(Handler::path());
            let mut peer = Peer::open(client.stream, &[]).await;
            peer.send(Peer::head(1, "POST", "/", false)).await;
            let bytes = frame.encode();
            // In one piece, or one byte after the other.
            peer.try_send_bytes(&bytes[..5]).await;
            sleep(secs(1)).await;
            peer.try_send_bytes(&bytes[5..]).await;
            assert_eq!(peer.end().await.1, Some(code), "{what}");
            drop(peer);
            task.await.unwrap();
            assert_eq!(bench.metrics.counts().malformed_requests, 1, "{what}");
        })
        .await;
    }
}

/// RFC 9113 section 6.9: of a stream, it is that stream's error.
#[tokio::test(start_paused = true)]
async fn a_window_update_of_nothing_ends_its_stream_alone() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (client, _task) = bench.connect(Handler::length());
        let mut peer = Peer::open(client.stream, &[]).await;
        peer.send(Peer::head(1, "POST", "/", false)).await;
        peer.send(Peer::head(3, "POST", "/", false)).await;
        peer.open_window(1, 0).await;
        assert_eq!(peer.end_of(1).await.1, Some(frame::PROTOCOL_ERROR));
        peer.send(Frame::data(3, "body", true)).await;
        assert_eq!(peer.end_of(3).await.1, None);
        assert_eq!(peer.content(3), b"4");
    })
    .await;
}

/// A head in several frames is the same as in one; another frame between them is an error.
#[tokio::test(start_paused = true)]
async fn heads_come_in_pieces() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (client, _task) = bench.connect(Handler::path());
        let mut peer = Peer::open(client.stream, &[]).await;
        let whole = Peer::head(1, "GET", "/pieces", true).payload;
        let frames = [
            Frame::new(frame::HEADERS, frame::END_STREAM, 1, &whole[..10]),
            Frame::new(frame::CONTINUATION, 0, 1, &whole[10..20]),
            Frame::new(frame::CONTINUATION, 0, 1, []),
            Frame::new(frame::CONTINUATION, frame::END_HEADERS, 1, &whole[20..]),
            Peer::head(3, "GET", "/whole", true),
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        for byte in bytes.chunks(1) {
            assert!(peer.try_send_bytes(byte).await);
            tokio::task::yield_now().await;
        }
        peer.end_of(1).await;
        assert_eq!(peer.content(1), b"/pieces");
        peer.end_of(3).await;
        assert_eq!(peer.content(3), b"/whole");
        peer.send(Frame::new(frame::HEADERS, frame::END_STREAM, 5, &whole[..]))
            .await;
        peer.ping().await;
        assert_eq!(peer.end().await.1, Some(frame::PROTOCOL_ERROR));
    })
    .await;
}

/// The time for a head is that of HTTP/1.1, however its end is put off.
#[tokio::test(start_paused = true)]
async fn a_head_that_is_not_completed_is_given_up() {
    let part = Frame::new(frame::HEADERS, frame::END_STREAM, 1, *b"\x82\x84").encode();
    for (what, begun, drip) in [
        ("no END_HEADERS", &part[..], false),
        ("half a frame", &part[..10], false),
        ("half a frame's head", &part[..4], false),
        ("empty CONTINUATION frames", &part[..], true),
    ] {
        local(async {
            let bench = Bench::new(Limits::default());
            let (client, task) = bench.connect(Handler::path());
            let mut peer = Peer::open(client.stream, &[]).await;
            sleep(secs(20)).await;
            let begin = Instant::now();
            assert!(peer.try_send_bytes(begun).await);
            if drip {
                sleep(secs(8)).await;
                peer.send(Frame::new(frame::CONTINUATION, 0, 1, [])).await;
            }
            let (when, code) = peer.end().await;
            assert_eq!(code, Some(frame::NO_ERROR), "{what}");
            let elapsed = when - begin;
            assert!(
                (secs(10)..secs(11)).contains(&elapsed),
                "{what} {elapsed:?}"
            );
            drop(peer);
            task.await.unwrap();
            assert_eq!(bench.metrics.counts().header_timeouts, 1, "{what}");
        })
        .await;
    }
}

/// A frame that has come in part is no head while an upload pauses.
#[tokio::test(start_paused = true)]
async fn an_upload_may_pause_anywhere() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (client, _task) = bench.connect(Handler::length());
        let mut peer = Peer::open(client.stream, &[]).await;
        peer.send(Peer::head(1, "POST", "/", false)).await;
        let data = Frame::data(1, "body", true).encode();
        assert!(peer.try_send_bytes(&data[..4]).await);
        sleep(secs(15)).await;
        assert!(peer.try_send_bytes(&data[4..]).await);
        assert_eq!(peer.end_of(1).await.1, None);
        assert_eq!(peer.content(1), b"4");
    })
    .await;
}

/// Resetting streams costs something, and so there is an end to it.
#[tokio::test(start_paused = true)]
async fn many_malformed_requests_end_the_connection() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (client, _task) = bench.connect(Handler::path());
        let mut peer = Peer::open(client.stream, &[]).await;
        let mut stream = 1;
        let fields = [("X", "1")];
        while peer.try_send(Frame::headers(stream, &fields, true)).await && stream < 8000 {
            stream += 2;
            tokio::task::yield_now().await;
        }
        assert_eq!(peer.end().await.1, Some(frame::ENHANCE_YOUR_CALM));
    })
    .await;
}
