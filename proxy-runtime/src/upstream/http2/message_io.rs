//! A stream of HTTP/2 as the exchange sees it: a connection of HTTP/1.1 for one request and its response.
//!
//! The exchange writes and reads heads in one form, that of HTTP/1.1. Here a head becomes the fields of a stream and
//! back. The body of a request is written in the framing of its head. The body of a response can be read in either
//! form: as frames, without a copy ([`Http2Io::poll_frame`]), or as bytes in the framing of its head.

use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::header::CONTENT_LENGTH;
use http::{Method, Request, StatusCode};
use http_body::Frame;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tracing::debug;

use super::carrier::Place;
use super::message_head::StreamHead;
use super::message_text::Text;
use super::message_upload::{MOST_FRAMING, UploadBody};
use super::opening::{AllowedNothing, OpenedStream, open};
use super::{Http2Connection, MAX_SEND_BUFFER};
use crate::http1::{ChunkHead, LAST_CHUNK};
use crate::observe::targets;
use crate::retry::Sent;
use crate::upstream::error::SendError;

/// The framing around content without a length.
const CHUNKED: &[u8] = b"transfer-encoding: chunked\r\n";

/// The agreement to a WebSocket.
const SWITCHED: &[u8] = b"connection: upgrade\r\nupgrade: websocket\r\n";

/// A request and its response on a stream, or about to be.
///
/// Dropped before the end, it resets the stream with `CANCEL`.
pub(crate) struct Http2Io {
    connection: Arc<Http2Connection>,
    step: Step,
    /// The length of the request's head, written as HTTP/1.1.
    head_length: usize,
    is_head: bool,
    upload: UploadBody,
    /// The request's side of the stream, until all was sent.
    send: Option<SendStream<Bytes>>,
    /// True while the destination's windows have no room.
    is_blocked: bool,
    /// A wait for the word that the destination allows no requests, as long as its settings are not known.
    allowed_nothing: Option<AllowedNothing>,
    /// True if the response has chunks where it is read as bytes.
    is_chunked: bool,
    is_data_over: bool,
    has_ended: bool,
    text: Text,
    data: Bytes,
    failed: Option<Box<SendError>>,
    place: Option<Place>,
}

/// The progress of a stream.
enum Step {
    /// The head is complete but not sent yet.
    Prepared(Option<Box<Request<()>>>),
    /// Waits for a stream.
    Opening(Pin<Box<dyn Future<Output = Result<OpenedStream, SendError>> + Send + Sync>>),
    /// Waits for the head of the response. The number is the turn in which the stream is opened.
    Sent(ResponseFuture, usize),
    /// The body of the response follows.
    Answered(RecvStream),
    Failed,
}

impl Http2Io {
    /// The stream for a request with this head in HTTP/1.1. `None` if it makes no request of HTTP/2.
    pub(in crate::upstream) fn new(connection: Arc<Http2Connection>, head: &[u8]) -> Option<Self> {
        let StreamHead {
            request,
            length,
            upload,
        } = StreamHead::read(head, connection.is_tls)?;
        Some(Self {
            allowed_nothing: connection.may_allow_nothing(),
            connection,
            head_length: length,
            is_head: *request.method() == Method::HEAD,
            step: Step::Prepared(Some(Box::new(request))),
            upload,
            send: None,
            is_blocked: false,
            is_chunked: false,
            is_data_over: false,
            has_ended: false,
            text: Text::default(),
            data: Bytes::new(),
            failed: None,
            place: None,
        })
    }

    /// The failure of the stream before the head of a response, if it has failed.
    pub(crate) fn failed(&self) -> Option<&SendError> {
        self.failed.as_deref()
    }

    /// Returns true if the body of the response was read to its end, as far as is known without polling.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
            || match &self.step {
                Step::Answered(receive) => receive.is_end_stream(),
                _ => false,
            }
    }

    /// Gives up the rest of a request that the destination has not read for too long after its complete response.
    ///
    /// Unread data keeps its part of the connection's window even after the end of the stream, so the connection
    /// takes no further request.
    pub(crate) fn give_up_upload(&self) {
        if self.is_blocked {
            self.connection.retire();
        }
    }

    /// Ready when the destination takes no more of the request.
    pub(crate) fn poll_refused(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.send {
            Some(send) => send.poll_reset(cx).map(drop),
            None => Poll::Pending,
        }
    }

    /// Polls the next frame of the response's body, whose head was read.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let Step::Answered(receive) = &mut self.step else {
            return Poll::Ready(None);
        };
        if self.has_ended {
            return Poll::Ready(None);
        }
        let next = ready!(poll_next(receive, &mut self.is_data_over, cx));
        // All but data is the last of a body: trailers, an error, or the end.
        if !matches!(&next, Some(Ok(frame)) if frame.is_data()) {
            self.has_ended = true;
        }
        // A reset without an error may follow a complete response (RFC 9113 section 8.1): `h2` keeps the end of that.
        // An error here is a response that was cut, whatever its code.
        Poll::Ready(next)
    }

    fn fail(&mut self, failed: SendError) -> io::Error {
        debug!(target: targets::REQUEST, error = &failed.error as &dyn std::error::Error, "the stream failed");
        self.step = Step::Failed;
        self.failed = Some(Box::new(failed));
        io::ErrorKind::ConnectionReset.into()
    }

    /// Ready when it is known that the destination allows no request.
    fn poll_allowed_nothing(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let Some(allowed_nothing) = &mut self.allowed_nothing else {
            return Poll::Pending;
        };
        ready!(allowed_nothing.as_mut().poll(cx));
        Poll::Ready(self.fail(SendError::not_allowed(Sent::Something)))
    }

    /// Ready when the head of the request is sent.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Step::Prepared(request) = &mut self.step {
            let Some(request) = request.take() else {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            };
            let has_body = !matches!(self.upload, UploadBody::Length(0));
            let opening = open(Arc::clone(&self.connection), *request, has_body);
            self.step = Step::Opening(Box::pin(opening));
        }
        let Step::Opening(opening) = &mut self.step else {
            return Poll::Ready(Ok(()));
        };
        match opening.as_mut().poll(cx) {
            Poll::Ready(Ok(opened)) => {
                self.send = opened.send;
                self.place = Some(opened.place);
                self.step = Step::Sent(opened.response, opened.turn);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(failed)) => Poll::Ready(Err(self.fail(failed))),
            // The destination may forbid all requests, which the wait for a stream would not notice.
            Poll::Pending => self.poll_allowed_nothing(cx).map(Err),
        }
    }

    /// Sends bytes of the body. Returns the number of accepted bytes.
    fn poll_upload(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all = slices.iter().map(|slice| slice.len()).sum::<usize>();
        let Some(send) = &mut self.send else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        // One large body must not take the whole window of the connection from other streams.
        send.reserve_capacity(all.clamp(1, MAX_SEND_BUFFER));
        let room = loop {
            match send.capacity() {
                // Framing of HTTP/1.1 is not sent over HTTP/2, so it needs no window.
                0 if self.upload.is_framing(slices) => break MOST_FRAMING,
                0 => {}
                room => break room,
            }
            match send.poll_capacity(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => {
                    return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
                }
                Poll::Pending => {
                    self.is_blocked = true;
                    return Poll::Pending;
                }
            }
        };
        self.is_blocked = false;
        // More than the window allows would be buffered by `h2` without bound.
        let accepted = room.min(all);
        let mut content = Vec::with_capacity(accepted);
        let mut left = accepted;
        for slice in slices {
            let part = &slice[..slice.len().min(left)];
            left -= part.len();
            if self.upload.follow(part, &mut content).is_err() {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
        }
        let is_last = self.upload.has_ended();
        let trailers = self.upload.take_trailers();
        let has_trailers = trailers.is_some();
        let mut sent = Ok(());
        // A frame without content is sent only to end the stream.
        if !content.is_empty() || (is_last && !has_trailers) {
            sent = send.send_data(content.into(), is_last && !has_trailers);
        }
        if let Some(trailers) = trailers
            && sent.is_ok()
        {
            // Trailers need no window: unused capacity returns to the connection for other streams.
            send.reserve_capacity(0);
            sent = send.send_trailers(trailers);
        }
        if is_last {
            self.send = None;
        }
        Poll::Ready(match sent {
            Ok(()) => Ok(accepted),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        })
    }

    /// Gets the next head; ready when its text is there.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Step::Sent(response, turn) = &mut self.step else {
            return match &self.step {
                Step::Failed => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                // The sender of the request waits for the stream.
                _ => Poll::Pending,
            };
        };
        if let Some(failed) = self.connection.not_opened(*turn) {
            return Poll::Ready(Err(self.fail(failed)));
        }
        if let Poll::Ready(Some(Ok(interim))) = response.poll_informational(cx) {
            self.text
                .write_head(interim.status(), interim.headers(), b"");
            return Poll::Ready(Ok(()));
        }
        match Pin::new(response).poll(cx) {
            Poll::Ready(Ok(response)) => {
                let (head, receive) = response.into_parts();
                if matches!(self.upload, UploadBody::Tunnel) && head.status.is_success() {
                    // RFC 8441 section 5.
                    let status = StatusCode::SWITCHING_PROTOCOLS;
                    self.text.write_head(status, &head.headers, SWITCHED);
                    self.step = Step::Answered(receive);
                    return Poll::Ready(Ok(()));
                }
                // RFC 9110 section 6.4.1: such responses have no body.
                let has_none = self.is_head
                    || matches!(
                        head.status,
                        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
                    );
                // HTTP/2 marks the end of a body itself. HTTP/1.1 needs chunks if there is no length.
                self.is_chunked = !has_none && !head.headers.contains_key(CONTENT_LENGTH);
                let framing = match self.is_chunked {
                    true => CHUNKED,
                    false => b"",
                };
                self.text.write_head(head.status, &head.headers, framing);
                self.step = Step::Answered(receive);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => {
                let failed = self.connection.failed(error);
                Poll::Ready(Err(self.fail(failed)))
            }
            Poll::Pending => self.poll_allowed_nothing(cx).map(Err),
        }
    }

    /// Gets the next part of the body as bytes. Returns false behind the last.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if self.has_ended {
            return Poll::Ready(Ok(false));
        }
        match ready!(self.poll_frame(cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    if let Some(size) = NonZeroU64::new(data.len() as u64)
                        && self.is_chunked
                    {
                        self.text.write(ChunkHead::new(size).as_bytes());
                        self.text.end = b"\r\n";
                    }
                    self.data = data;
                }
                // A body with a length has no trailers (RFC 9110 section 6.5).
                Err(frame) if self.is_chunked => {
                    self.text.write(b"0\r\n");
                    let trailers = frame.into_trailers().unwrap_or_default();
                    self.text.write_fields(&trailers);
                    self.text.write(b"\r\n");
                }
                Err(_) => {}
            },
            None if self.is_chunked => self.text.write(LAST_CHUNK),
            None => {}
            // RFC 9113 section 8.5: what CANCEL is to a tunnel, an end is to a connection.
            Some(Err(error))
                if matches!(self.upload, UploadBody::Tunnel)
                    && matches!(error.reason(), Some(Reason::NO_ERROR | Reason::CANCEL)) =>
            {
                return Poll::Ready(Ok(false));
            }
            Some(Err(error)) => {
                debug!(target: targets::REQUEST, %error, "the response broke off");
                let kind = match error.is_library() {
                    true => io::ErrorKind::InvalidData,
                    false => io::ErrorKind::ConnectionReset,
                };
                return Poll::Ready(Err(kind.into()));
            }
        }
        Poll::Ready(Ok(true))
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if matches!(self.step, Step::Prepared(_) | Step::Opening(_)) {
            ready!(self.poll_open(cx))?;
            return Poll::Ready(Ok(self.head_length));
        }
        self.poll_upload(cx, slices)
    }
}

/// The next data of a stream, or its trailers behind the last.
fn poll_next(
    receive: &mut RecvStream,
    is_data_over: &mut bool,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
    if !*is_data_over {
        match ready!(receive.poll_data(cx)) {
            Some(Ok(data)) => {
                // It only fails for more than was received.
                let _ = receive.flow_control().release_capacity(data.len());
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => *is_data_over = true,
        }
    }
    let trailers = ready!(receive.poll_trailers(cx));
    Poll::Ready(
        trailers
            .transpose()
            .map(|trailers| trailers.map(Frame::trailers)),
    )
}

impl AsyncRead for Http2Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        loop {
            this.text.read(buf);
            if this.text.is_empty() {
                let count = this.data.len().min(buf.remaining());
                buf.put_slice(&this.data[..count]);
                this.data.advance(count);
            }
            if this.text.is_empty() && this.data.is_empty() && !this.text.end.is_empty() {
                let end = std::mem::take(&mut this.text.end);
                this.text.write(end);
                this.text.read(buf);
            }
            if buf.filled().len() > before || buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            match this.step {
                Step::Answered(_) => {
                    if !ready!(this.poll_bytes(cx))? && this.text.is_empty() {
                        // To the reader, nothing read is the end of the connection.
                        return Poll::Ready(Ok(()));
                    }
                }
                _ => ready!(this.poll_head(cx))?,
            }
        }
    }
}

impl AsyncWrite for Http2Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: the connection sends what was written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the request's side of a tunnel.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(mut send) = self.send.take() {
            let ended = send.send_data(Bytes::new(), true);
            return Poll::Ready(ended.map_err(|_| io::ErrorKind::BrokenPipe.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl std::fmt::Debug for Http2Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http2Io").finish_non_exhaustive()
    }
}
