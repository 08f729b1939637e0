//! The body of a response.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use super::response_head::{limits, to_map};
use super::{Http1Connection, Http1Error};
use crate::http1::{ChunkTracker, Framing, PooledTable, RawResponse};
#[cfg(feature = "http2")]
use crate::upstream::http2::Http2Io;

/// Minimum size of chunk data that is passed on uncopied. Smaller chunks are copied into one buffer.
const WHOLE: usize = 8 * 1024;

/// The body of a response from an [`Http1Connection`].
///
/// The body is read only when polled. After its end or an error, polling returns `None`.
#[derive(Debug)]
pub(crate) struct Http1Body {
    rest: Remaining,
}

/// The unread part of a response.
#[derive(Debug)]
enum Remaining {
    Nothing,
    /// Reading failed, so the rest is unknown.
    Failed,
    Length(u64),
    Chunks(Box<Chunks>),
    /// All bytes until the connection closes.
    UntilClose,
    /// The frames of a stream of HTTP/2, with the bytes that a length still promises.
    #[cfg(feature = "http2")]
    Frames(Option<u64>),
}

#[derive(Debug)]
struct Chunks {
    tracker: ChunkTracker,
    table: PooledTable,
    /// Trailers that were read with the last data and not returned yet.
    trailers: Option<HeaderMap>,
}

type NextChunk = Option<Result<Frame<Bytes>, Http1Error>>;

impl Http1Body {
    /// Creates the body after a head. `table` may be any table, such as that of the head.
    pub(crate) fn new(
        head: &RawResponse,
        table: PooledTable,
        connection: &Http1Connection,
    ) -> Self {
        let rest = match head.framing() {
            Framing::None | Framing::Length(0) | Framing::Tunnel => Remaining::Nothing,
            #[cfg(feature = "http2")]
            framing if connection.is_stream() => Remaining::of_stream(connection, framing),
            Framing::Length(length) => Remaining::Length(length),
            Framing::Chunked => Remaining::Chunks(Box::new(Chunks {
                tracker: ChunkTracker::of_response(),
                table,
                trailers: None,
            })),
            Framing::UntilClose => Remaining::UntilClose,
        };
        #[cfg(not(feature = "http2"))]
        let _ = connection;
        Self { rest }
    }

    /// The body of a response that was read completely.
    pub(crate) fn read() -> Self {
        Self {
            rest: Remaining::Nothing,
        }
    }

    /// Returns true if the whole body was read.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.rest, Remaining::Nothing)
    }

    /// Polls the next frame.
    ///
    /// # Errors
    ///
    /// The response is incomplete or malformed.
    pub(crate) fn poll_frame(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<NextChunk> {
        let next = ready!(self.poll_rest(connection, cx));
        if let Some(Err(_)) = &next {
            self.rest = Remaining::Failed;
        }
        Poll::Ready(next)
    }

    fn poll_rest(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<NextChunk> {
        match &mut self.rest {
            Remaining::Nothing | Remaining::Failed => Poll::Ready(None),
            Remaining::Length(left) => {
                if connection.input.is_empty() && ready!(poll_read(connection, cx))? == 0 {
                    return Poll::Ready(Some(Err(Http1Error::Truncated)));
                }
                let there = connection.input.filled().len();
                // Bytes beyond the length stay in the input, which keeps the connection from being reused.
                let count = usize::try_from(*left).map_or(there, |left| left.min(there));
                *left -= count as u64;
                if *left == 0 {
                    self.rest = Remaining::Nothing;
                }
                Poll::Ready(Some(Ok(Frame::data(connection.input.take(count)))))
            }
            Remaining::UntilClose => {
                if connection.input.is_empty() && ready!(poll_read(connection, cx))? == 0 {
                    // RFC 9112 section 6.3: the end of the connection is the end of this body.
                    self.rest = Remaining::Nothing;
                    return Poll::Ready(None);
                }
                let there = connection.input.filled().len();
                Poll::Ready(Some(Ok(Frame::data(connection.input.take(there)))))
            }
            #[cfg(feature = "http2")]
            Remaining::Frames(left) => {
                let Some(stream) = connection.io.stream_mut() else {
                    return Poll::Ready(None);
                };
                let next = ready!(stream.poll_frame(cx));
                let data = match &next {
                    Some(Ok(frame)) => frame.data_ref().map_or(0, |data| data.len() as u64),
                    Some(Err(_)) | None => 0,
                };
                // `h2` checks most of it itself.
                if let Some(left) = left {
                    *left = left.checked_sub(data).ok_or(Http1Error::WrongLength)?;
                }
                if stream.has_ended() {
                    if left.is_some_and(|left| left > 0) && !matches!(next, Some(Err(_))) {
                        return Poll::Ready(Some(Err(Http1Error::WrongLength)));
                    }
                    self.rest = Remaining::Nothing;
                }
                Poll::Ready(next.map(|next| next.map_err(Http1Error::Stream)))
            }
            Remaining::Chunks(chunks) => {
                let next = ready!(chunks.poll_frame(connection, cx));
                if chunks.has_ended() {
                    self.rest = Remaining::Nothing;
                }
                Poll::Ready(next)
            }
        }
    }
}

#[cfg(feature = "http2")]
impl Remaining {
    /// The body on a stream of HTTP/2.
    fn of_stream(connection: &Http1Connection, framing: Framing) -> Self {
        match framing {
            Framing::Length(length) => Self::Frames(Some(length)),
            _ if connection.io.stream().is_some_and(Http2Io::has_ended) => Self::Nothing,
            _ => Self::Frames(None),
        }
    }
}

impl Chunks {
    /// Returns true if everything was returned, trailers included.
    fn has_ended(&self) -> bool {
        self.tracker.has_ended() && self.trailers.is_none()
    }

    fn poll_frame(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<NextChunk> {
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        loop {
            if !connection.input.is_empty() {
                let data = self.follow(connection)?;
                if !data.is_empty() {
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                if self.tracker.has_ended() {
                    let trailers = self.trailers.take();
                    return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
                }
            }
            // The input has no complete part: at most the start of a trailer section.
            if ready!(poll_read(connection, cx))? == 0 {
                return Poll::Ready(Some(Err(Http1Error::Truncated)));
            }
        }
    }

    /// Returns the content of the input: that of one large chunk, or of all chunks that have arrived.
    fn follow(&mut self, connection: &mut Http1Connection) -> Result<Bytes, Http1Error> {
        let input = &mut connection.input;
        let there = input.filled().len();
        let run = usize::try_from(self.tracker.remaining_data()).map_or(there, |n| n.min(there));
        if run >= WHOLE {
            self.tracker.skip_data(run as u64);
            return Ok(input.take(run));
        }
        // Small chunks are joined, so that their number does not set the number of writes to the client.
        let mut content = Vec::new();
        let progress =
            self.tracker
                .track_data(input.filled(), &limits(), &mut self.table, |data| {
                    if content.is_empty() {
                        // The content is shorter than the input, so the buffer never grows.
                        content.reserve_exact(there);
                    }
                    content.extend_from_slice(data);
                })?;
        input.consume(progress.consumed);
        if progress.trailers > 0 {
            let section = input.take(progress.trailers);
            self.trailers = Some(to_map(self.table.fields(), &section)?);
        }
        Ok(content.into())
    }
}

fn poll_read(
    connection: &mut Http1Connection,
    cx: &mut Context<'_>,
) -> Poll<Result<usize, Http1Error>> {
    connection
        .input
        .poll_read(&mut connection.io, cx)
        .map_err(Http1Error::Read)
}
