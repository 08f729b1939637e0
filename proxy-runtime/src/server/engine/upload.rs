//! A request on its way to a destination: its head, and its body as it comes.

use std::task::{Context, Poll, ready};

use http::StatusCode;

use super::body::{Body, Part};
use super::outbound::Outbound;
use crate::error::ForwardErrorKind;
use crate::http1::{HeadLimits, HeadTable, write_trailers};
use crate::stream::{ByteStream, ReadBuffer};

/// A request on its way to a destination.
#[derive(Debug, Default)]
pub(super) struct Upload {
    /// The head, and later the trailers.
    pub(super) outbound: Outbound,
    body: Body,
    /// What of the client's bytes comes behind them.
    part: Part,
    /// Content that the request may still have.
    allowed: u64,
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
        self.outbound = Outbound::new(head);
        self.body = body;
        self.part = Part::default();
        self.allowed = u64::MAX;
    }

    /// Keeps the request, which may be sent a second time, if it has no body.
    #[inline]
    pub(super) fn keep(&mut self) {
        if self.body.has_ended() && self.part == Part::default() {
            self.outbound.keep();
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

    /// Sends no more, though there may be more.
    pub(super) fn stop(&mut self) {
        self.outbound.end();
        self.body = Body::Ended;
        self.part = Part::default();
    }

    /// Sends what there is; ready when all is sent. `has_news` is set when something moved.
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
            if self.outbound.front.len() + self.part.bytes > 0 {
                ready!(self.poll_write(cx, input, destination, has_news))?;
            }
            if self.part.trailers > 0 {
                let count = std::mem::take(&mut self.part.trailers);
                write_trailers(&input.filled()[..count], table, &mut self.outbound.front);
                input.consume(count);
                continue;
            }
            if self.body.has_ended() {
                self.outbound.end();
                input.rest();
                return Poll::Ready(Ok(()));
            }
            self.outbound.wait_for_client();
            match ready!(input.poll_read(client, cx)) {
                Ok(0) | Err(_) => {
                    return Poll::Ready(Err(Broken::client(StatusCode::BAD_REQUEST)));
                }
                Ok(count) => self.outbound.arrived(count as u64),
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
        has_news: &mut bool,
    ) -> Poll<Result<(), Broken>> {
        let parts = [&[], &input.filled()[..self.part.bytes]];
        ready!(self.outbound.poll_write(cx, parts, destination, has_news))?;
        input.consume(self.part.bytes);
        self.outbound.sent += self.part.content;
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
            is_malformed: !refusal.is_of_limit(),
        })?;
        self.outbound.received += self.part.content;
        match self.allowed.checked_sub(self.part.content) {
            Some(rest) => self.allowed = rest,
            None => return Err(Broken::client(StatusCode::PAYLOAD_TOO_LARGE)),
        }
        Ok(())
    }
}
