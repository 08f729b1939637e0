//! A request body that arrives in frames, and is sent as HTTP/1.1.

use std::num::NonZeroU64;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};

use super::downstream;
use super::failure::UploadFailure;
use super::outbound::Outbound;
use crate::error::Allowance;
use crate::head::headers::strip_trailers;
use crate::http1::{CHUNK_END, ChunkHead, Framing, LAST_CHUNK};
use crate::stream::ByteStream;

/// The largest number of frames that are sent with one write.
const FRAMES: usize = 8;

/// The end of a chunk, and of the body.
const CHUNK_AND_BODY_END: &[u8] = b"\r\n0\r\n\r\n";

/// The frames of a request body.
pub(crate) trait Frames {
    /// Ready with the next data, or with `None` after the last.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, UploadFailure>>>;

    /// Ready with the trailers after the last data.
    fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, UploadFailure>>;

    /// Returns true if nothing follows the data that was polled.
    fn has_ended(&self) -> bool;

    /// Records that the destination has taken `bytes`.
    fn taken(&mut self, bytes: usize);
}

/// The limits of a request body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowed {
    /// Bytes of content.
    pub(crate) content: Allowance,
    /// Trailer fields.
    pub(crate) trailers: usize,
}

/// The state of a request body. [`Outbound`] has the bytes in front of it.
///
/// The client's window opens by the bytes that were written to the destination.
#[derive(Debug, Default)]
pub(crate) struct FramesUpload {
    /// Up to [`FRAMES`] received frames. Allocated with the first one.
    frames: Vec<Bytes>,
    /// The framing after the data: the end of a chunk, or nothing.
    end: &'static [u8],
    is_chunked: bool,
    /// True if the whole body was read.
    has_all: bool,
    /// The rest of the body in bytes, if its length is known.
    left: Option<u64>,
    /// The remaining limits.
    limits: Allowed,
}

impl downstream::Upload for FramesUpload {
    fn is_empty(&self) -> bool {
        // The end of a chunked body must be sent, too, though it has no content.
        self.has_all && self.frames.is_empty() && !self.is_chunked
    }

    fn rest(&mut self) {
        // Frames of a body that was not sent to its end: the state is reused, perhaps much later.
        self.frames = Vec::new();
        self.end = b"";
    }

    fn needs_more(&self) -> bool {
        !self.has_all
    }
}

impl FramesUpload {
    /// The start of a request body. `has_body`: false if there is none.
    pub(crate) fn new(framing: Framing, has_body: bool, limits: Allowed) -> Self {
        let left = match framing {
            Framing::Length(length) => Some(length),
            _ => None,
        };
        Self {
            frames: Vec::new(),
            end: b"",
            is_chunked: framing == Framing::Chunked,
            left,
            has_all: !has_body || left == Some(0),
            limits,
        }
    }

    /// Drops the rest of the body, and returns its part of the connection's window to the client.
    pub(crate) fn stop(&mut self, body: &mut Option<impl Frames>) {
        self.release(body);
        *body = None;
        self.frames = Vec::new();
    }

    /// Releases the received frames; returns their size.
    fn release(&mut self, body: &mut Option<impl Frames>) -> usize {
        if self.frames.is_empty() {
            return 0;
        }
        let content = self.frames.drain(..).map(|frame| frame.len()).sum();
        // The client gets back the window that the dropped content took.
        if let Some(body) = body {
            body.taken(content);
        }
        content
    }

    /// Sends available bytes; ready when all are sent. Sets `has_news` on progress.
    pub(crate) fn poll<U: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Option<impl Frames>,
        outbound: &mut Outbound,
        destination: &mut U,
        has_news: &mut bool,
    ) -> Poll<Result<(), UploadFailure>> {
        if !outbound.has_begun() && self.frames.is_empty() && !self.has_all && !outbound.is_gated()
        {
            // The received part of the body is sent with the head.
            if let Poll::Ready(read) = self.poll_read(cx, body, outbound) {
                read?;
            }
        }
        loop {
            if outbound.front.len() + self.frames.len() + self.end.len() > 0 {
                ready!(self.poll_write(cx, body, outbound, destination, has_news))?;
            }
            if self.has_all {
                self.frames = Vec::new();
                outbound.end();
                *body = None;
                return Poll::Ready(Ok(()));
            }
            if outbound.is_gated() {
                outbound.wait_at_gate();
                return Poll::Pending;
            }
            outbound.wait_for_client();
            ready!(self.poll_read(cx, body, outbound))?;
            *has_news = true;
        }
    }

    fn poll_write<U: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Option<impl Frames>,
        outbound: &mut Outbound,
        destination: &mut U,
        has_news: &mut bool,
    ) -> Poll<Result<(), UploadFailure>> {
        let polled = match self.frames.len() {
            // A request without a body needs no array of ten slices.
            0 => outbound.poll_write(cx, [&[], self.end], destination, has_news),
            _ => {
                let mut parts = [b"".as_slice(); FRAMES + 2];
                for (part, frame) in parts[1..].iter_mut().zip(&self.frames) {
                    *part = frame;
                }
                parts[FRAMES + 1] = self.end;
                outbound.poll_write(cx, parts, destination, has_news)
            }
        };
        ready!(polled)?;
        self.end = b"";
        // The client's window opens only for bytes that the destination has taken.
        outbound.sent += self.release(body) as u64;
        Poll::Ready(Ok(()))
    }

    /// Reads available frames; ready when a frame or the end has arrived.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Option<impl Frames>,
        outbound: &mut Outbound,
    ) -> Poll<Result<(), UploadFailure>> {
        let Some(body) = body else {
            self.has_all = true;
            return Poll::Ready(Ok(()));
        };
        let mut content = 0;
        let mut has_ended = false;
        while self.frames.len() < FRAMES && !self.has_all {
            match body.poll_data(cx) {
                Poll::Ready(Some(Ok(data))) => {
                    self.has_all = body.has_ended();
                    if !data.is_empty() {
                        content += data.len() as u64;
                        if self.frames.is_empty() {
                            self.frames.reserve_exact(FRAMES);
                        }
                        self.frames.push(data);
                    }
                }
                Poll::Ready(Some(Err(broken))) => return Poll::Ready(Err(broken)),
                Poll::Ready(None) => {
                    has_ended = true;
                    break;
                }
                Poll::Pending if self.frames.is_empty() => return Poll::Pending,
                // The frames at hand are sent first. More may arrive meanwhile.
                Poll::Pending => break,
            }
        }
        outbound.received += content;
        if let Err(status) = self.limits.content.take(content) {
            return Poll::Ready(Err(UploadFailure::client(status)));
        }
        if let Some(left) = &mut self.left {
            // `h2` checks lengths itself; other servers may not.
            let Some(rest) = left.checked_sub(content) else {
                return Poll::Ready(Err(UploadFailure::client(StatusCode::BAD_REQUEST)));
            };
            // The destination would wait for the rest of a body that is too short.
            if (has_ended || self.has_all) && rest > 0 {
                return Poll::Ready(Err(UploadFailure::client(StatusCode::BAD_REQUEST)));
            }
            *left = rest;
            // The destination has the whole body. The end of the stream may arrive later.
            self.has_all |= rest == 0;
        }
        outbound.arrived(content);
        if let Some(size) = NonZeroU64::new(content) {
            self.frame(size, outbound);
        } else if has_ended {
            let trailers = ready!(body.poll_trailers(cx))?;
            let count = trailers.as_ref().map_or(0, HeaderMap::len);
            if count > self.limits.trailers {
                let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                return Poll::Ready(Err(UploadFailure::client(status)));
            }
            self.has_all = true;
            self.end_body(trailers, outbound);
        } else if self.has_all {
            self.end_body(None, outbound);
        }
        Poll::Ready(Ok(()))
    }

    /// Writes the framing of received frames, which become one chunk.
    fn frame(&mut self, size: NonZeroU64, outbound: &mut Outbound) {
        if self.is_chunked {
            let head = ChunkHead::new(size);
            outbound.front.extend_from_slice(head.as_bytes());
            // One write for the end of the chunk and of the body.
            self.end = match self.has_all {
                true => CHUNK_AND_BODY_END,
                false => CHUNK_END,
            };
        }
    }

    /// Writes the end of a chunked body. A body with a length has no trailers (RFC 9110 section
    /// 6.5).
    fn end_body(&mut self, trailers: Option<HeaderMap>, outbound: &mut Outbound) {
        if !self.is_chunked {
            return;
        }
        let Some(mut trailers) = trailers else {
            self.end = LAST_CHUNK;
            return;
        };
        // Trailers must not change framing or routing (RFC 9110 section 6.5.1).
        strip_trailers(&mut trailers);
        outbound.front.extend_from_slice(b"0\r\n");
        for (name, value) in &trailers {
            write_field(name, value.as_bytes(), &mut outbound.front);
        }
        self.end = CHUNK_END;
    }
}

fn write_field(name: &HeaderName, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::downstream::Upload;
    use super::*;

    /// A request that counts as empty is kept as its head alone.
    #[test]
    fn a_chunked_body_without_content_is_not_empty() {
        for (framing, has_body, expected) in [
            (Framing::None, false, true),
            (Framing::Length(0), true, true),
            (Framing::Chunked, true, false),
        ] {
            let mut upload = FramesUpload::new(framing, has_body, Allowed::default());
            upload.has_all = true;
            assert_eq!(upload.is_empty(), expected, "{framing:?}");
        }
    }

    #[test]
    fn a_state_that_is_kept_holds_no_frames() {
        let mut upload = FramesUpload::new(Framing::Chunked, true, Allowed::default());
        upload.frames.push(Bytes::from_static(b"content"));
        upload.end = CHUNK_END;
        upload.rest();
        assert_eq!((upload.frames.capacity(), upload.end), (0, &b""[..]));
    }
}
