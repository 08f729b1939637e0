//! Faulty HTTP/2 origins (prior knowledge), frame by frame.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::PARTIAL;
use crate::raw::frame::{self, Frame};
use crate::raw::{RawConnection, RawOrigin};

/// Resets every stream with this code instead of a response.
#[track_caller]
pub fn resets_streams(code: u32) -> RawOrigin {
    answers(move |stream| vec![Frame::reset(stream, code)])
}

/// Sends 200 with [`PARTIAL`] of the body, and resets the stream with this code.
#[track_caller]
pub fn resets_mid_body(code: u32) -> RawOrigin {
    answers(move |stream| {
        vec![
            Frame::headers(stream, &[(":status", "200")], false),
            Frame::data(stream, PARTIAL, false),
            Frame::reset(stream, code),
        ]
    })
}

/// Sends 200 with [`PARTIAL`] and resets with `NO_ERROR`: the response is complete, and the rest of
/// the request is not needed (RFC 9113 8.1).
#[track_caller]
pub fn answers_and_stops_upload() -> RawOrigin {
    answers(|stream| {
        vec![
            Frame::headers(stream, &[(":status", "200")], false),
            Frame::data(stream, PARTIAL, true),
            Frame::reset(stream, frame::NO_ERROR),
        ]
    })
}

/// Responds to every request with these frames, for their stream.
#[track_caller]
pub fn answers<A>(answer: A) -> RawOrigin
where
    A: Fn(u32) -> Vec<Frame> + Clone + Send + Sync + 'static,
{
    RawOrigin::script(move |connection| {
        let answer = answer.clone();
        async move {
            let mut session = Session::start(connection).await?;
            loop {
                let stream = session.next_request().await?;
                session.send(&answer(stream)).await?;
            }
        }
    })
}

/// Sends GOAWAY instead of the first response of each connection, reports that not even that stream
/// was processed, and closes: such a request may be retried on another connection (RFC 9113 6.8).
#[track_caller]
pub fn goes_away() -> RawOrigin {
    RawOrigin::script(|connection| async move {
        let mut session = Session::start(connection).await?;
        session.next_request().await?;
        session.send(&[Frame::goaway(0, frame::NO_ERROR)]).await?;
        session.connection.half_close().await?;
        session.connection.never_answer().await
    })
}

/// Responds 200 to the first request of each connection, and sends GOAWAY right behind it. Further requests get no
/// response.
#[track_caller]
pub fn goes_away_after_answer() -> RawOrigin {
    RawOrigin::script(|connection| async move {
        let mut session = Session::start(connection).await?;
        let stream = session.next_request().await?;
        let answer = Frame::headers(stream, &[(":status", "200")], true);
        session.send(&[answer]).await?;
        let goaway = Frame::goaway(stream, frame::NO_ERROR);
        session.send(&[goaway]).await?;
        session.connection.never_answer().await
    })
}

/// Responds 200 to the first request of each connection, and closes its side right after, without GOAWAY. Each close
/// adds a permit to `closed`.
#[track_caller]
pub fn closes_after_answer(closed: &Arc<Semaphore>) -> RawOrigin {
    let closed = Arc::clone(closed);
    RawOrigin::script(move |connection| {
        let closed = Arc::clone(&closed);
        async move {
            let mut session = Session::start(connection).await?;
            let stream = session.next_request().await?;
            let answer = Frame::headers(stream, &[(":status", "200")], true);
            session.send(&[answer]).await?;
            session.connection.half_close().await?;
            closed.add_permits(1);
            // A close with unread bytes would be a reset, which may take the response along.
            session.connection.never_answer().await
        }
    })
}

/// Closes each connection instead of a response to its first request, without GOAWAY.
#[track_caller]
pub fn closes_before_answer() -> RawOrigin {
    RawOrigin::script(|connection| async move {
        let mut session = Session::start(connection).await?;
        session.next_request().await.map(drop)
    })
}

/// Responds 200 to the first request of each connection, and allows no further stream on it (RFC
/// 9113 6.5.2).
#[track_caller]
pub fn allows_one_request() -> RawOrigin {
    answers(|stream| {
        vec![
            Frame::settings(&[(frame::MAX_CONCURRENT_STREAMS, 0)]),
            Frame::headers(stream, &[(":status", "200")], true),
        ]
    })
}

/// Allows no stream with its first settings, and responds to none.
#[track_caller]
pub fn allows_nothing() -> RawOrigin {
    RawOrigin::script(|connection| async move {
        let none = &[(frame::MAX_CONCURRENT_STREAMS, 0)];
        let mut session = Session::start_with(connection, none).await?;
        loop {
            session.next_request().await?;
        }
    })
}

/// Sends `count` interim responses to each request, and then 200.
#[track_caller]
pub fn early_hints(count: usize) -> RawOrigin {
    answers(move |stream| {
        let hint = Frame::headers(stream, &[(":status", "103")], false);
        let mut frames = vec![hint; count];
        frames.push(Frame::headers(stream, &[(":status", "200")], true));
        frames
    })
}

/// Agrees to each extended `CONNECT` (RFC 8441) with this status, and sends [`PARTIAL`] through the tunnel.
#[track_caller]
pub fn agrees_with(status: &'static str) -> RawOrigin {
    RawOrigin::script(move |connection| async move {
        let allowed = &[(frame::ENABLE_CONNECT_PROTOCOL, 1)];
        let mut session = Session::start_with(connection, allowed).await?;
        loop {
            let stream = session.next_request().await?;
            session
                .send(&[
                    Frame::headers(stream, &[(":status", status)], false),
                    Frame::data(stream, PARTIAL, false),
                ])
                .await?;
        }
    })
}

/// Follows the protocol, but responds to no request.
#[track_caller]
pub fn never_answers() -> RawOrigin {
    answers(|_| Vec::new())
}

/// Accepts and sends nothing at all, not even its SETTINGS.
#[track_caller]
pub fn never_starts() -> RawOrigin {
    super::never_answers()
}

/// A connection after both prefaces (RFC 9113 3.4).
struct Session {
    connection: RawConnection,
    /// The highest stream that was opened.
    newest: u32,
}

impl Session {
    async fn start(connection: RawConnection) -> io::Result<Self> {
        Self::start_with(connection, &[]).await
    }

    async fn start_with(
        mut connection: RawConnection,
        settings: &[(u16, u32)],
    ) -> io::Result<Self> {
        let preface = connection.read_exact(frame::PREFACE.len()).await?;
        if preface != frame::PREFACE {
            let message = format!("not HTTP/2: {}", preface.escape_ascii());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        connection
            .write_all(Frame::settings(settings).encode())
            .await?;
        Ok(Self {
            connection,
            newest: 0,
        })
    }

    /// Reads to the end of the next header block that opens a stream, acknowledges other frames as
    /// required, and counts a request.
    async fn next_request(&mut self) -> io::Result<u32> {
        loop {
            let frame = self.connection.read_frame().await?;
            match frame.kind {
                frame::SETTINGS | frame::PING if !frame.has(frame::ACK) => {
                    // A PING is echoed, SETTINGS are acknowledged without content.
                    let content = if frame.kind == frame::PING {
                        frame.payload
                    } else {
                        Vec::new()
                    };
                    let ack = Frame::new(frame.kind, frame::ACK, 0, content);
                    self.connection.write_all(ack.encode()).await?;
                }
                // Header blocks of a known stream are trailers of an earlier request.
                frame::HEADERS | frame::CONTINUATION
                    if frame.has(frame::END_HEADERS) && frame.stream > self.newest =>
                {
                    self.newest = frame.stream;
                    self.connection.count_request();
                    return Ok(frame.stream);
                }
                _ => {}
            }
        }
    }

    async fn send(&mut self, frames: &[Frame]) -> io::Result<()> {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        self.connection.write_all(bytes).await
    }
}
