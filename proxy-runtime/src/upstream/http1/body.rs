//! The body of a response.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use super::response_head::{limits, to_map};
use super::{Http1Connection, Http1Error, RequestWriter};
use crate::http1::{ChunkTracker, Framing, PooledTable, RawResponse};

/// Minimum size of chunk data that is passed on uncopied. Smaller chunks are copied into one buffer.
const WHOLE: usize = 8 * 1024;

/// The body of a response from an [`Http1Connection`], and the unsent part of its request.
///
/// The body is read only when polled. After its end or an error, polling returns `None`.
#[derive(Debug)]
pub(crate) struct Http1Body {
    rest: Remaining,
    /// True if the destination keeps the connection open after this response.
    is_persistent: bool,
    sending: UploadState,
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
    /// No body: the connection is a tunnel.
    Tunnel,
}

/// The state of the request after the start of its response.
#[derive(Debug)]
pub(super) enum UploadState {
    /// All of it was sent.
    Done {
        /// True if it ended after the response had begun.
        is_late: bool,
    },
    /// The request is still being sent.
    Going(Box<RequestWriter>),
    /// Sending failed before the end.
    Broken,
}

#[derive(Debug)]
struct Chunks {
    tracker: ChunkTracker,
    table: PooledTable,
    /// Trailers that were read with the last data and not returned yet.
    trailers: Option<HeaderMap>,
}

/// The work that is left when a response is over.
#[derive(Debug)]
pub(crate) enum Rest {
    /// No work: the connection can carry another request.
    Nothing,
    /// Send the rest of the request, then close the connection. A destination that responded early may read the rest as
    /// another request.
    Upload(Box<RequestWriter>),
    /// Close the connection.
    Close,
}

type NextChunk = Option<Result<Frame<Bytes>, Http1Error>>;

impl Http1Body {
    pub(super) fn new(head: &RawResponse, table: PooledTable, sending: UploadState) -> Self {
        let rest = match head.framing() {
            Framing::None | Framing::Length(0) => Remaining::Nothing,
            Framing::Length(length) => Remaining::Length(length),
            Framing::Chunked => Remaining::Chunks(Box::new(Chunks {
                tracker: ChunkTracker::new(),
                table,
                trailers: None,
            })),
            Framing::UntilClose => Remaining::UntilClose,
            Framing::Tunnel => Remaining::Tunnel,
        };
        Self {
            rest,
            is_persistent: head.is_persistent(),
            sending,
        }
    }

    /// The body of a response whose request another part sends. `table` may be any table, such as that of the head.
    pub(crate) fn received(head: &RawResponse, table: PooledTable) -> Self {
        Self::new(head, table, UploadState::Done { is_late: false })
    }

    /// The body of a response that was read completely.
    pub(crate) fn read(head: &RawResponse) -> Self {
        Self {
            rest: Remaining::Nothing,
            is_persistent: head.is_persistent(),
            sending: UploadState::Done { is_late: false },
        }
    }

    /// Returns true if the whole body was read.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.rest, Remaining::Nothing)
    }

    /// Returns true if a tunnel follows the head instead of a body.
    pub(crate) fn is_tunnel(&self) -> bool {
        matches!(self.rest, Remaining::Tunnel)
    }

    /// Polls the next frame, and sends more of the request.
    ///
    /// # Errors
    ///
    /// The response is incomplete or malformed, or the client's body failed.
    pub(crate) fn poll_frame(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<NextChunk> {
        let next = match self.poll_upload(connection, cx) {
            Ok(()) => ready!(self.poll_rest(connection, cx)),
            Err(error) => Some(Err(error)),
        };
        if let Some(Err(_)) = &next {
            self.rest = Remaining::Failed;
        }
        Poll::Ready(next)
    }

    /// Ends the response, and returns what to do with the connection.
    pub(crate) fn into_rest(self) -> Rest {
        match self.sending {
            // An unread rest would be taken for the next response.
            _ if !self.is_persistent || !matches!(self.rest, Remaining::Nothing) => Rest::Close,
            UploadState::Done { is_late: false } => Rest::Nothing,
            UploadState::Going(upload) => Rest::Upload(upload),
            UploadState::Done { is_late: true } | UploadState::Broken => Rest::Close,
        }
    }

    fn poll_upload(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Result<(), Http1Error> {
        let UploadState::Going(upload) = &mut self.sending else {
            return Ok(());
        };
        match upload.poll(&mut connection.io, cx) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => self.sending = UploadState::Done { is_late: true },
            // A destination may respond and close because it rejects the rest, so its response still counts.
            Poll::Ready(Err(Http1Error::Write(_))) => self.sending = UploadState::Broken,
            Poll::Ready(Err(error)) => {
                self.sending = UploadState::Broken;
                return Err(error);
            }
        }
        Ok(())
    }

    fn poll_rest(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<NextChunk> {
        match &mut self.rest {
            Remaining::Nothing | Remaining::Failed | Remaining::Tunnel => Poll::Ready(None),
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
                    self.rest = Remaining::Nothing;
                    return Poll::Ready(None);
                }
                let there = connection.input.filled().len();
                Poll::Ready(Some(Ok(Frame::data(connection.input.take(there)))))
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
