//! The body of a response.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use super::response_head::{limits, to_map};
use super::{Http1Connection, Http1Error, RequestWriter};
use crate::http1::{ChunkTracker, Framing, PooledTable, RawResponse};

/// Data of a chunk that is handed on as it is, rather than copied together with that of other chunks.
const WHOLE: usize = 8 * 1024;

/// The body of a response that comes over an [`Http1Connection`], and what is left of the request.
///
/// It reads when it is polled, and no further than it was asked to. Polled after its end or an error, it has ended.
#[derive(Debug)]
pub(crate) struct Http1Body {
    rest: Remaining,
    /// Whether the destination keeps the connection after this response.
    is_persistent: bool,
    sending: UploadState,
}

/// What is left of a response.
#[derive(Debug)]
enum Remaining {
    Nothing,
    /// It failed: what is left is not known.
    Failed,
    Length(u64),
    Chunks(Box<Chunks>),
    /// All that comes until the connection closes.
    UntilClose,
    /// It is no body: the connection is a tunnel.
    Tunnel,
}

/// What has become of the request when its response has begun.
#[derive(Debug)]
pub(super) enum UploadState {
    /// All of it was sent.
    Done {
        /// After the response had begun.
        is_late: bool,
    },
    /// It is being sent.
    Going(Box<RequestWriter>),
    /// It was not sent to its end.
    Broken,
}

#[derive(Debug)]
struct Chunks {
    tracker: ChunkTracker,
    table: PooledTable,
    /// What comes behind the last data.
    trailers: Option<HeaderMap>,
}

/// What is to be done when a response is over.
#[derive(Debug)]
pub(crate) enum Rest {
    /// Nothing: another request can be sent.
    Nothing,
    /// To send the rest of the request, and then to close the connection: a destination that answers before it has all of a
    /// request may take what is left for the next one.
    Upload(Box<RequestWriter>),
    /// To close the connection.
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

    /// The body of a response whose request is sent by somebody else. `table` is that of the head, or any other one.
    #[cfg(all(feature = "http2", feature = "server"))]
    pub(crate) fn received(head: &RawResponse, table: PooledTable) -> Self {
        Self::new(head, table, UploadState::Done { is_late: false })
    }

    /// The same of a response that was read whole.
    #[cfg(all(feature = "http2", feature = "server"))]
    pub(crate) fn read(head: &RawResponse) -> Self {
        Self {
            rest: Remaining::Nothing,
            is_persistent: head.is_persistent(),
            sending: UploadState::Done { is_late: false },
        }
    }

    /// Whether all of it was read.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.rest, Remaining::Nothing)
    }

    /// Whether it is no body, but the beginning of a tunnel.
    pub(crate) fn is_tunnel(&self) -> bool {
        matches!(self.rest, Remaining::Tunnel)
    }

    /// The next part. Sends on what is left of the request as well.
    ///
    /// # Errors
    ///
    /// What had come does not make a whole response, or the request failed on the client's side.
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

    /// What is to be done with the connection. The response is not needed any more.
    pub(crate) fn into_rest(self) -> Rest {
        match self.sending {
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
            // A destination may well have answered because it wants no more.
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
    /// Whether all of it was handed out.
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
            // What is there is the beginning of a trailer section, or nothing.
            if ready!(poll_read(connection, cx))? == 0 {
                return Poll::Ready(Some(Err(Http1Error::Truncated)));
            }
        }
    }

    /// The content of what was read: of one large chunk, or of all that are there.
    fn follow(&mut self, connection: &mut Http1Connection) -> Result<Bytes, Http1Error> {
        let input = &mut connection.input;
        let there = input.filled().len();
        let run = usize::try_from(self.tracker.remaining_data()).map_or(there, |n| n.min(there));
        if run >= WHOLE {
            self.tracker.skip_data(run as u64);
            return Ok(input.take(run));
        }
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
