//! A request on its way out.

use std::io;
use std::num::NonZeroU64;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, request};
use http_body::{Body, Frame};

use super::super::io::UpstreamIo;
use super::output::Output;
use super::request_head::{self, RequestFraming, write_field};
use super::{Http1Error, Keep};
use crate::http1::{CHUNK_END, ChunkHead, LAST_CHUNK};
use crate::progress::OutgoingBody;
use crate::stream::poll_write_all;

/// Maximum size of data that is copied behind the head. Larger data is a separate part of a vectored write.
const COPIED: usize = 4 * 1024;

/// Number of bytes that are collected before they are written.
const GATHERED: usize = 16 * 1024;

/// The end of the last chunk with data, and the empty last chunk.
const CHUNK_END_AND_LAST: &[u8; 7] = b"\r\n0\r\n\r\n";

/// Writes a request: its head, then its body. Parts that are ready leave in one write.
///
/// A body of another length than the head declares is an error, after which the connection cannot be used.
#[derive(Debug)]
pub(crate) struct RequestWriter {
    body: OutgoingBody,
    framing: RequestFraming,
    /// Bytes that are written first.
    front: Output,
    /// Bytes that are written second, uncopied.
    data: Bytes,
    /// Bytes that are written last, such as the end of a chunk.
    tail: &'static [u8],
    /// Number of content bytes in the three parts.
    content: u64,
    /// Number of bytes of the three parts that are written.
    written: usize,
    /// True if the three parts end the request.
    is_last: bool,
    /// True if the transport has received any byte.
    is_begun: bool,
    /// The conditions under which the body is kept for a retry.
    keep: Keep,
    /// The frames read from the body, if it is kept.
    taken: Vec<Frame<Bytes>>,
}

impl RequestWriter {
    /// Creates a writer for the request with this head. It does nothing until polled.
    ///
    /// `keep` decides when [`into_again`](Self::into_again) returns the body.
    pub(super) fn new(
        head: &request::Parts,
        body: OutgoingBody,
        keep: Keep,
    ) -> Result<Self, Http1Error> {
        let framing = RequestFraming::of(head, body.is_end_stream())?;
        let mut front = Output::acquire();
        request_head::write(head, framing, &mut front);
        let is_last = matches!(framing, RequestFraming::None | RequestFraming::Length(0));
        Ok(Self {
            body,
            framing,
            front,
            data: Bytes::new(),
            tail: b"",
            content: 0,
            written: 0,
            is_last,
            is_begun: false,
            keep: Keep {
                if_sent: keep.if_sent && is_last,
                ..keep
            },
            taken: Vec::new(),
        })
    }

    /// Returns true if the request has no body and may be sent again after it was sent.
    pub(super) fn is_repeatable(&self) -> bool {
        self.keep.if_sent
    }

    /// Returns true if the transport has received any byte.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Returns the complete body for a retry, if the transport has received no byte, or if the request has no body
    /// and may be sent again.
    pub(super) fn into_again(self) -> Option<OutgoingBody> {
        let is_unsent = self.keep.if_unsent && !self.is_begun;
        if !is_unsent && !self.is_repeatable() {
            return None;
        }
        let mut body = self.body;
        body.put_back(self.taken);
        Some(body)
    }

    /// Continues writing. Ready when the network has received the whole request.
    ///
    /// # Errors
    ///
    /// [`Http1Error::Write`]: the destination reads no more; it may have responded. Others: the body failed or has another
    /// length, so the connection must be closed.
    pub(super) fn poll(
        &mut self,
        io: &mut UpstreamIo,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Http1Error>> {
        loop {
            let filled = self.poll_fill(cx)?;
            if self.has_output() {
                let before = self.written;
                let polled = self.poll_write(io, cx);
                // Progress resets the activity timeout, also if a write ends a wait.
                let has_moved = match polled {
                    Poll::Ready(_) => before > 0,
                    Poll::Pending => self.written != before,
                };
                if has_moved {
                    self.body.has_moved();
                }
                match polled {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => {
                        self.body.broke_at_destination();
                        return Poll::Ready(Err(Http1Error::Write(error)));
                    }
                    Poll::Pending => {
                        self.body.wait_for_destination();
                        return Poll::Pending;
                    }
                }
            }
            if self.is_last {
                // Releases the client's connection, which the body may hold.
                self.body.end();
                return Poll::Ready(Ok(()));
            }
            ready!(filled);
        }
    }

    fn has_output(&self) -> bool {
        !self.front.is_empty() || !self.data.is_empty()
    }

    /// Collects the frames that the body has ready. Pending when the body is.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Http1Error>> {
        // A write in progress must be repeated with the same bytes.
        while self.written == 0
            && !self.is_last
            && self.data.is_empty()
            && self.front.len() < GATHERED
        {
            let frame = ready!(self.body.poll_part(cx));
            match frame.transpose().map_err(Http1Error::Body)? {
                Some(frame) => {
                    if self.keep.if_unsent && !self.is_begun {
                        self.taken.push(copy(&frame));
                    }
                    self.push(frame)?;
                }
                None => self.end(&HeaderMap::new())?,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn push(&mut self, frame: Frame<Bytes>) -> Result<(), Http1Error> {
        match frame.into_data() {
            Ok(data) => self.push_data(data),
            Err(other) => self.end(&other.into_trailers().unwrap_or_default()),
        }
    }

    fn push_data(&mut self, data: Bytes) -> Result<(), Http1Error> {
        let Some(size) = NonZeroU64::new(data.len() as u64) else {
            // A chunk of this size would end the body.
            return Ok(());
        };
        self.content += size.get();
        let is_last = match &mut self.framing {
            RequestFraming::None => return Err(Http1Error::BodyTooLong),
            RequestFraming::Length(left) => {
                *left = left
                    .checked_sub(size.get())
                    .ok_or(Http1Error::BodyTooLong)?;
                *left == 0
            }
            RequestFraming::Chunked => {
                let head = ChunkHead::new(size);
                self.front.extend_from_slice(head.as_bytes());
                self.body.is_end_stream()
            }
        };
        let tail: &'static [u8] = match self.framing {
            RequestFraming::Chunked if is_last => CHUNK_END_AND_LAST,
            RequestFraming::Chunked => CHUNK_END,
            RequestFraming::None | RequestFraming::Length(_) => b"",
        };
        if data.len() <= COPIED {
            self.front.extend_from_slice(&data);
            self.front.extend_from_slice(tail);
        } else {
            self.data = data;
            self.tail = tail;
        }
        self.is_last = is_last;
        Ok(())
    }

    /// Ends the body. Only chunked bodies can have trailers (RFC 9112 section 7.1.2).
    fn end(&mut self, trailers: &HeaderMap) -> Result<(), Http1Error> {
        match self.framing {
            RequestFraming::Length(left) if left > 0 => return Err(Http1Error::BodyTooShort),
            RequestFraming::Chunked if trailers.is_empty() => {
                self.front.extend_from_slice(LAST_CHUNK)
            }
            RequestFraming::Chunked => {
                self.front.extend_from_slice(b"0\r\n");
                for (name, value) in trailers {
                    write_field(name, value, &mut self.front);
                }
                self.front.extend_from_slice(b"\r\n");
            }
            RequestFraming::None | RequestFraming::Length(_) => {}
        }
        self.is_last = true;
        Ok(())
    }

    fn poll_write(&mut self, io: &mut UpstreamIo, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TLS buffers data before it reports a byte as written.
        self.is_begun |= io.is_tls();
        let parts = [&self.front[..], &self.data[..], self.tail];
        let polled = poll_write_all(io, cx, parts, &mut self.written);
        self.is_begun |= self.written > 0;
        ready!(polled)?;
        self.body.sent(std::mem::take(&mut self.content));
        self.taken = Vec::new();
        self.front.clear();
        self.data = Bytes::new();
        self.tail = b"";
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

fn copy(frame: &Frame<Bytes>) -> Frame<Bytes> {
    match frame.data_ref() {
        Some(data) => Frame::data(data.clone()),
        None => Frame::trailers(frame.trailers_ref().cloned().unwrap_or_default()),
    }
}
