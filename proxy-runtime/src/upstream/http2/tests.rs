//! Connections to a peer that the test plays, on a clock that stands still unless everybody waits.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use h2::{Reason, server};
use http::Response;
use testkit::raw::frame::{self, Frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, timeout};

use super::{Http2Connection, Http2Io};
use crate::retry::{Came, Sent};
use crate::upstream::io::UpstreamIo;
use crate::upstream::transport::UpstreamTransport;

async fn connection() -> (Arc<Http2Connection>, DuplexStream) {
    let (near, far) = duplex(256 * 1024);
    let io = UpstreamIo::uncounted(UpstreamTransport::Scripted(Box::new(near)));
    let connection = Http2Connection::handshake(io, ([127, 0, 0, 1], 80).into());
    (Arc::new(connection.await.unwrap()), far)
}

/// A request that is on the connection until it is dropped.
struct Asked {
    io: Http2Io,
    head: String,
}

fn get(connection: &Arc<Http2Connection>, path: &str) -> Asked {
    connection.enter();
    let head = format!("GET {path} HTTP/1.1\r\nHost: h.example\r\n\r\n");
    let io = Http2Io::new(Arc::clone(connection), head.as_bytes()).unwrap();
    Asked { io, head }
}

fn post(connection: &Arc<Http2Connection>) -> Asked {
    connection.enter();
    let head = "POST / HTTP/1.1\r\nHost: h.example\r\nContent-Length: 7\r\n\r\n".to_owned();
    let io = Http2Io::new(Arc::clone(connection), head.as_bytes()).unwrap();
    Asked { io, head }
}

/// Returns the stream behind the head of its response, or how much was sent and came.
async fn answered(asked: Asked) -> Result<(u16, Http2Io), (Sent, Came)> {
    let Asked { mut io, head } = asked;
    let mut text = Vec::new();
    let asking = async {
        io.write_all(head.as_bytes()).await?;
        io.read_buf(&mut text).await
    };
    match asking.await {
        Ok(_) => {
            let text = String::from_utf8(text).unwrap();
            let status = text.strip_prefix("HTTP/1.1 ").unwrap();
            Ok((status[..3].parse().unwrap(), io))
        }
        Err(_) => {
            let failed = io.failed().unwrap();
            Err((failed.sent, failed.came))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_gives_no_sign_of_life_is_given_up() {
    let (connection, mut far) = connection().await;
    far.write_all(&Frame::settings(&[]).encode()).await.unwrap();
    // Takes everything, and says nothing more.
    tokio::spawn(async move { while far.read_u8().await.is_ok() {} });
    let began = Instant::now();
    let failed = answered(get(&connection, "/")).await.err().unwrap();
    let took = began.elapsed();
    assert!(
        took >= Duration::from_secs(40) && took < Duration::from_secs(41),
        "{took:?}"
    );
    assert_eq!(failed, (Sent::Something, Came::Something));
    assert!(!connection.is_open());
}

/// The frames that were written so far on a connection that is open, without the preface.
async fn frames_so_far(far: &mut DuplexStream) -> Vec<(u8, u32)> {
    let (frames, has_ended) = last_frames(far).await;
    assert!(!has_ended);
    frames
}

/// The frames that were written so far, and true if the connection has ended behind them.
async fn last_frames(far: &mut DuplexStream) -> (Vec<(u8, u32)>, bool) {
    let mut bytes = Vec::new();
    let reading = async { while far.read_buf(&mut bytes).await.is_ok_and(|count| count > 0) {} };
    // The clock goes on when there is nothing left to read.
    let has_ended = timeout(Duration::from_millis(1), reading).await.is_ok();
    let mut rest = bytes.strip_prefix(frame::PREFACE).unwrap_or(&bytes);
    let mut frames = Vec::new();
    while let [a, b, c, kind, _, stream @ ..] = rest {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        frames.push((*kind, u32::from_be_bytes(stream[..4].try_into().unwrap())));
        rest = &rest[9 + length..];
    }
    (frames, has_ended)
}

/// Only the first request of a burst is sent before the destination has said how many it allows.
#[tokio::test(start_paused = true)]
async fn requests_of_a_burst_are_unsent_when_the_destination_allows_none() {
    let (connection, mut far) = connection().await;
    let burst: Vec<_> = (0..5)
        .map(|_| tokio::spawn(answered(get(&connection, "/"))))
        .collect();
    let opened = |frames: Vec<(u8, u32)>| {
        let headers = frames
            .into_iter()
            .filter(|(kind, _)| *kind == frame::HEADERS);
        headers.map(|(_, stream)| stream).collect::<Vec<_>>()
    };
    assert_eq!(opened(frames_so_far(&mut far).await), [1]);
    let none = Frame::settings(&[(frame::MAX_CONCURRENT_STREAMS, 0)]);
    far.write_all(&none.encode()).await.unwrap();
    let mut outcomes = Vec::new();
    for request in burst {
        outcomes.push(request.await.unwrap().err().unwrap());
    }
    let unsent = (Sent::Nothing, Came::Nothing);
    assert_eq!(outcomes[0], (Sent::Something, Came::Nothing));
    assert_eq!(outcomes[1..], [unsent; 4]);
    assert_eq!(opened(frames_so_far(&mut far).await), [0_u32; 0]);
    assert!(!connection.is_open());
}

/// An upload that was handed over when the destination's word arrives is not sent, and fails without a wait.
#[tokio::test(start_paused = true)]
async fn an_upload_that_is_not_opened_any_more_fails_at_once() {
    let (connection, mut far) = connection().await;
    let allow = |streams| Frame::settings(&[(frame::MAX_CONCURRENT_STREAMS, streams)]).encode();
    far.write_all(&allow(5)).await.unwrap();
    frames_so_far(&mut far).await;
    let began = Instant::now();
    // The task of the connection reads this only when the request is handed over.
    far.write_all(&allow(0)).await.unwrap();
    let failed = answered(post(&connection)).await.err().unwrap();
    assert_eq!(failed, (Sent::Something, Came::Nothing));
    assert_eq!(began.elapsed(), Duration::ZERO);
    let sent = frames_so_far(&mut far).await;
    assert!(
        sent.iter().all(|(kind, _)| *kind != frame::HEADERS),
        "{sent:?}"
    );
    assert!(!connection.is_open());
}

/// A destination closes an idle connection as the next upload is sent. Its word has arrived, and the connection's task
/// has not read it yet. Nothing of the upload is sent, so that it can be sent over another connection.
#[tokio::test(start_paused = true)]
async fn an_upload_is_not_sent_over_an_idle_connection_that_was_closed() {
    let none = Frame::settings(&[(frame::MAX_CONCURRENT_STREAMS, 0)]);
    for (word, name) in [
        (Some(Frame::goaway(1, frame::NO_ERROR)), "GOAWAY"),
        (Some(none), "no stream is allowed"),
        (None, "closed"),
    ] {
        let (connection, mut far) = connection().await;
        let many = Frame::settings(&[(frame::MAX_CONCURRENT_STREAMS, 5)]);
        far.write_all(&many.encode()).await.unwrap();
        let first = tokio::spawn(answered(get(&connection, "/")));
        frames_so_far(&mut far).await;
        let response = Frame::headers(1, &[(":status", "200")], true);
        far.write_all(&response.encode()).await.unwrap();
        let (status, io) = first.await.unwrap().ok().unwrap();
        assert_eq!(status, 200, "{name}");
        drop(io);
        connection.leave();
        frames_so_far(&mut far).await;
        let began = Instant::now();
        let mut far = Some(far);
        match (word, &mut far) {
            (Some(word), Some(far)) => far.write_all(&word.encode()).await.unwrap(),
            _ => far = None,
        }
        let failed = answered(post(&connection)).await.err();
        let is_unsent = matches!(
            failed,
            Some((Sent::Nothing, Came::Nothing | Came::Unprocessed))
        );
        assert!(is_unsent, "{name}: {failed:?}");
        assert_eq!(began.elapsed(), Duration::ZERO, "{name}");
        assert!(!connection.is_open(), "{name}");
        if let Some(far) = &mut far {
            let (sent, _) = last_frames(far).await;
            let opened = sent.iter().any(|(kind, _)| *kind == frame::HEADERS);
            assert!(!opened, "{name}: {sent:?}");
        }
    }
}

/// The word that no stream is allowed any more comes with the response that the others wait for.
#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_a_stream_are_unsent_when_none_is_allowed_any_more() {
    let (connection, mut far) = connection().await;
    let one = Frame::settings(&[(frame::MAX_CONCURRENT_STREAMS, 1)]);
    far.write_all(&one.encode()).await.unwrap();
    let first = tokio::spawn(answered(get(&connection, "/")));
    frames_so_far(&mut far).await;
    assert!(connection.may_allow_nothing().is_none());
    let waiting: Vec<_> = (0..3)
        .map(|_| tokio::spawn(answered(get(&connection, "/"))))
        .collect();
    let sent = frames_so_far(&mut far).await;
    assert!(sent.iter().all(|(kind, _)| *kind != frame::HEADERS));
    let last = [
        Frame::settings(&[(frame::MAX_CONCURRENT_STREAMS, 0)]),
        Frame::headers(1, &[(":status", "200")], true),
    ];
    let last: Vec<u8> = last.iter().flat_map(Frame::encode).collect();
    far.write_all(&last).await.unwrap();
    assert_eq!(first.await.unwrap().ok().unwrap().0, 200);
    for request in waiting {
        let failed = request.await.unwrap().err();
        assert_eq!(failed, Some((Sent::Nothing, Came::Nothing)));
    }
}

/// A destination that allows one stream and has no WebSockets says no more than is assumed without its word.
#[tokio::test(start_paused = true)]
async fn settings_that_say_what_was_assumed_are_known() {
    let (connection, mut far) = connection().await;
    let one = Frame::settings(&[(frame::MAX_CONCURRENT_STREAMS, 1)]);
    far.write_all(&one.encode()).await.unwrap();
    let began = Instant::now();
    assert!(!connection.allows_connect().await);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_slow_destination_that_answers_pings_is_waited_for() {
    let (connection, far) = connection().await;
    tokio::spawn(async move {
        let mut peer = server::handshake(far).await.unwrap();
        let mut held = Vec::new();
        while let Some(Ok(request)) = peer.accept().await {
            held.push(request);
        }
    });
    let waiting = answered(get(&connection, "/"));
    assert!(timeout(Duration::from_secs(300), waiting).await.is_err());
    assert!(connection.is_open());
}

/// A request is not sent before the destination allows it a stream, nor after it was cancelled.
#[tokio::test]
async fn cancelled_requests_that_wait_for_a_stream_hold_up_no_other() {
    let (connection, far) = connection().await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut peer = server::Builder::new()
            .max_concurrent_streams(1)
            .handshake::<_, bytes::Bytes>(far)
            .await
            .unwrap();
        while let Some(Ok((request, respond))) = peer.accept().await {
            tell.send((request.uri().path().to_owned(), respond))
                .unwrap();
        }
    });
    let first = tokio::spawn(answered(get(&connection, "/1")));
    let (path, mut respond) = told.recv().await.unwrap();
    assert_eq!(path, "/1");
    // One waits for the destination to allow a stream, the other one for its turn.
    let both = async {
        let (second, third) = (get(&connection, "/2"), get(&connection, "/3"));
        tokio::join!(answered(second), answered(third))
    };
    assert!(timeout(Duration::from_millis(20), both).await.is_err());
    let last = tokio::spawn(answered(get(&connection, "/4")));
    tokio::task::yield_now().await;
    respond.send_response(Response::new(()), true).unwrap();
    assert_eq!(first.await.unwrap().ok().unwrap().0, 200);
    let (path, mut respond) = told.recv().await.unwrap();
    assert_eq!(path, "/4");
    respond.send_response(Response::new(()), true).unwrap();
    assert_eq!(last.await.unwrap().ok().unwrap().0, 200);
}

/// `h2` keeps the end of a complete response across a reset. Any other reset cuts the response, also one
/// without an error.
#[tokio::test]
async fn a_reset_without_an_error_cuts_a_response_that_has_not_ended() {
    let (connection, far) = connection().await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel::<()>();
    tokio::spawn(async move {
        let mut peer = server::handshake(far).await.unwrap();
        let mut streams = Vec::new();
        loop {
            tokio::select! {
                accepted = peer.accept() => {
                    let Some(Ok((_, mut respond))) = accepted else { return };
                    let mut stream = respond.send_response(Response::new(()), false).unwrap();
                    stream.send_data(bytes::Bytes::from("part"), false).unwrap();
                    streams.push(stream);
                }
                Some(()) = told.recv() => {
                    for stream in &mut streams {
                        stream.send_reset(Reason::NO_ERROR);
                    }
                }
            }
        }
    });
    let (_, mut body) = answered(get(&connection, "/")).await.ok().unwrap();
    let part = poll_fn(|cx| body.poll_frame(cx)).await;
    let part = part.unwrap().unwrap().into_data().unwrap();
    assert_eq!(part, "part");
    tell.send(()).unwrap();
    let end = poll_fn(|cx| body.poll_frame(cx)).await;
    assert!(matches!(end, Some(Err(_))), "{end:?}");
}

/// The chunks of a request become data and trailers, wherever they are cut, and responses come in either form.
#[tokio::test]
async fn bodies_are_the_same_on_a_stream() {
    let (connection, far) = connection().await;
    tokio::spawn(async move {
        let mut peer = server::handshake(far).await.unwrap();
        while let Some(Ok((request, mut respond))) = peer.accept().await {
            tokio::spawn(async move {
                let mut body = request.into_body();
                let mut content = Vec::new();
                while let Some(data) = body.data().await {
                    let data = data.unwrap();
                    body.flow_control().release_capacity(data.len()).unwrap();
                    content.extend_from_slice(&data);
                }
                let trailers = body.trailers().await.unwrap();
                let mut stream = respond.send_response(Response::new(()), false).unwrap();
                stream.send_data(content.into(), false).unwrap();
                stream.send_trailers(trailers.unwrap_or_default()).unwrap();
            });
        }
    });
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = "5\r\nhello\r\n7\r\n, world\r\n0\r\nx-sum: 42\r\n\r\n";
    for piece in [1, 2, 3, 7, body.len()] {
        connection.enter();
        let mut io = Http2Io::new(Arc::clone(&connection), head.as_bytes()).unwrap();
        io.write_all(head.as_bytes()).await.unwrap();
        for part in body.as_bytes().chunks(piece) {
            io.write_all(part).await.unwrap();
        }
        let mut text = String::new();
        io.read_to_string(&mut text).await.unwrap();
        let (head, text) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        let expected = "c\r\nhello, world\r\n0\r\nx-sum: 42\r\n\r\n";
        assert_eq!(text, expected, "pieces of {piece}");
    }
}

/// The end of a request needs no window.
#[tokio::test]
async fn framing_without_content_needs_no_window() {
    let (connection, far) = connection().await;
    tokio::spawn(async move {
        let mut peer = server::Builder::new()
            .initial_window_size(0)
            .handshake::<_, bytes::Bytes>(far)
            .await
            .unwrap();
        while let Some(Ok((request, mut respond))) = peer.accept().await {
            tokio::spawn(async move {
                let mut body = request.into_body();
                while let Some(data) = body.data().await {
                    assert!(data.unwrap().is_empty());
                }
                respond.send_response(Response::new(()), true).unwrap();
            });
        }
    });
    connection.enter();
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut io = Http2Io::new(Arc::clone(&connection), head.as_bytes()).unwrap();
    io.write_all(head.as_bytes()).await.unwrap();
    let ending = io.write_all(b"0\r\n\r\n");
    testkit::time::guarded("the end of the request", ending)
        .await
        .unwrap();
    let mut text = Vec::new();
    io.read_buf(&mut text).await.unwrap();
    assert!(text.starts_with(b"HTTP/1.1 200 OK\r\n"));
}
