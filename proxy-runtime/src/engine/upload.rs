//! A request on its way to a destination: its head, and its body as it comes.

use std::task::{Context, Poll, ready};

use http::StatusCode;

use super::body::{Body, Part};
use crate::forward::ForwardErrorKind;
use crate::http1::{HeadLimits, HeadTable, write_trailers};
use crate::server::DataRate;
use crate::server::connection::UploadPace;
use crate::stream::{ByteStream, ReadBuffer, poll_write_all, spare};

/// A request on its way to a destination.
#[derive(Debug, Default)]
pub(super) struct Upload {
    /// The head, and later the trailers, until they are sent, or longer if they are [`kept`](Self::kept).
    outgoing: Vec<u8>,
    /// The head, which is all of the request, is kept when it was sent: it may be sent a second time.
    kept: Option<spare::Held>,
    body: Body,
    /// What of the client's bytes comes behind [`outgoing`](Self::outgoing).
    part: Part,
    /// How much of both was written.
    written: usize,
    /// Content that the request may still have.
    allowed: u64,
    stage: Stage,
    /// Nothing has been written.
    is_unsent: bool,
    /// Bytes of content that were sent.
    pub(super) sent: u64,
    /// How slow the client may be, while the rest of the body is waited for.
    pace: Option<Box<UploadPace>>,
}

/// Who it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nobody: all of it was sent.
    #[default]
    Done,
    /// The client, for more bytes.
    Client,
    /// The destination, which does not take what there is.
    Destination,
}

/// Why it ended before its end.
#[derive(Debug)]
pub(super) enum Broken {
    /// By what the client sent, or did not send.
    Client {
        status: StatusCode,
        /// What it sent has no meaning.
        is_malformed: bool,
    },
    /// The destination takes no more.
    Destination {
        /// Not a byte of it was taken.
        is_unsent: bool,
    },
}

impl Broken {
    const fn client(status: StatusCode) -> Self {
        Self::Client {
            status,
            is_malformed: false,
        }
    }

    pub(super) fn is_malformed(&self) -> bool {
        matches!(
            self,
            Self::Client {
                is_malformed: true,
                ..
            }
        )
    }

    pub(super) fn kind(&self) -> ForwardErrorKind {
        match self {
            Self::Client { .. } => ForwardErrorKind::RequestBodyClient,
            Self::Destination { .. } => ForwardErrorKind::RequestBodyDestination,
        }
    }
}

impl Upload {
    /// Begins with another request.
    #[inline]
    pub(super) fn restart(&mut self, head: Vec<u8>, body: Body) {
        self.outgoing = head;
        self.kept = None;
        self.body = body;
        self.part = Part::default();
        self.written = 0;
        self.allowed = u64::MAX;
        self.stage = Stage::Destination;
        self.is_unsent = true;
        self.sent = 0;
        self.pace = None;
    }

    /// Keeps the head of a request that has no body and may be sent a second time. Who waits for a response holds no buffer
    /// else, so not many may do so.
    #[inline]
    pub(super) fn keep(&mut self) {
        if self.body.has_ended() && self.part == Part::default() {
            self.kept = spare::Held::grant();
        }
    }

    /// Whether all of the request is there to be sent a second time.
    pub(super) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Begins anew over another connection, and keeps the head no longer.
    pub(super) fn again(&mut self) {
        self.kept = None;
        self.written = 0;
        self.stage = Stage::Destination;
        self.is_unsent = true;
    }

    /// Gives back what the next request does not need, however this one ended.
    #[inline]
    pub(super) fn rest(&mut self) {
        // Usually that was done when it was sent.
        self.kept = None;
        if self.outgoing.capacity() > 0 {
            spare::give_back(std::mem::take(&mut self.outgoing));
        }
    }

    /// Sets how much content the request may have at most.
    pub(super) fn allow(&mut self, most: u64) {
        self.allowed = most;
    }

    /// Whether more of the body is to come than there is.
    #[inline]
    pub(super) fn needs_more(&self) -> bool {
        !self.body.has_ended()
    }

    /// Gives up on a client that is slower than `rate`.
    #[cold]
    pub(super) fn pace(&mut self, rate: DataRate) {
        self.pace = Some(Box::new(UploadPace::new(rate)));
    }

    /// To be polled when there is nothing to do but wait: ready when it is for a client that is too slow.
    #[inline]
    pub(super) fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match (&mut self.pace, self.stage) {
            (Some(pace), Stage::Client) => pace.poll_too_slow(cx),
            _ => Poll::Pending,
        }
    }

    /// Looks at the beginning of the body, which came together with the head.
    #[inline]
    pub(super) fn begin(
        &mut self,
        input: &ReadBuffer,
        limits: &HeadLimits,
        table: &mut HeadTable,
    ) -> Result<(), Broken> {
        if !self.body.has_ended() && !input.is_empty() {
            self.look(input, limits, table)?;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// Sends no more, though there may be more.
    pub(super) fn stop(&mut self) {
        self.stage = Stage::Done;
        self.body = Body::Ended;
        self.part = Part::default();
    }

    /// Sends what there is; ready when all is sent. `has_news` is set when the client sent something.
    #[inline]
    pub(super) fn poll<C, U>(
        &mut self,
        cx: &mut Context<'_>,
        (client, input): (&mut C, &mut ReadBuffer),
        destination: &mut U,
        limits: &HeadLimits,
        table: &mut HeadTable,
        has_news: &mut bool,
    ) -> Poll<Result<(), Broken>>
    where
        C: ByteStream,
        U: ByteStream,
    {
        loop {
            if self.outgoing.len() + self.part.bytes > 0 {
                ready!(self.poll_write(cx, input, destination))?;
                if !self.is_kept() {
                    self.outgoing.clear();
                }
            }
            if self.part.trailers > 0 {
                let count = std::mem::take(&mut self.part.trailers);
                write_trailers(&input.filled()[..count], table, &mut self.outgoing);
                input.consume(count);
                continue;
            }
            if self.body.has_ended() {
                self.stage = Stage::Done;
                // Who waits for a response holds no buffer.
                if !self.is_kept() {
                    spare::give_back(std::mem::take(&mut self.outgoing));
                }
                input.rest();
                return Poll::Ready(Ok(()));
            }
            self.stage = Stage::Client;
            match ready!(input.poll_read(client, cx)) {
                Ok(0) | Err(_) => {
                    return Poll::Ready(Err(Broken::client(StatusCode::BAD_REQUEST)));
                }
                Ok(count) => {
                    if let Some(pace) = &mut self.pace {
                        pace.arrived(count as u64);
                    }
                }
            }
            *has_news = true;
            self.look(input, limits, table)?;
        }
    }

    #[inline]
    fn poll_write<U: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut ReadBuffer,
        destination: &mut U,
    ) -> Poll<Result<(), Broken>> {
        self.stage = Stage::Destination;
        let slices = [&*self.outgoing, &input.filled()[..self.part.bytes]];
        let polled = poll_write_all(destination, cx, slices, &mut self.written);
        self.is_unsent &= self.written == 0;
        ready!(polled).map_err(|_| Broken::Destination {
            is_unsent: self.is_unsent,
        })?;
        self.written = 0;
        input.consume(self.part.bytes);
        self.sent += self.part.content;
        self.part.bytes = 0;
        self.part.content = 0;
        Poll::Ready(Ok(()))
    }

    /// Finds out what of the client's bytes belongs to the body.
    #[inline]
    fn look(
        &mut self,
        input: &ReadBuffer,
        limits: &HeadLimits,
        table: &mut HeadTable,
    ) -> Result<(), Broken> {
        let part = self.body.follow(input.filled(), limits, table);
        self.part = part.map_err(|refusal| Broken::Client {
            status: refusal.status(),
            is_malformed: true,
        })?;
        match self.allowed.checked_sub(self.part.content) {
            Some(rest) => self.allowed = rest,
            None => return Err(Broken::client(StatusCode::PAYLOAD_TOO_LARGE)),
        }
        Ok(())
    }
}
