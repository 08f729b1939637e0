//! The request body of a client of HTTP/1.1, forwarded without changes.

use std::task::{Context, Poll, ready};

use http::StatusCode;

use crate::forward::exchange::body::{Body, Part};
use crate::forward::exchange::downstream;
use crate::forward::exchange::failure::UploadFailure;
use crate::forward::exchange::outbound::Outbound;
use crate::http1::{HeadLimits, HeadTable, write_trailers};
use crate::stream::{ByteStream, ReadBuffer};

/// The state of a request body. [`Outbound`] has the bytes in front of it.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    body: Body,
    /// The parsed part of the client's input that is sent next.
    part: Part,
    /// The remaining limit of the body in bytes.
    allowed: u64,
    /// The limits of trailers.
    limits: HeadLimits,
}

impl downstream::Upload for Upload {
    #[inline]
    fn is_empty(&self) -> bool {
        self.body.has_ended() && self.part == Part::default()
    }

    #[inline]
    fn needs_more(&self) -> bool {
        !self.body.has_ended()
    }

    #[inline]
    fn rest(&mut self) {}
}

impl Upload {
    /// Resets the state for another request.
    #[inline]
    pub(super) fn restart(&mut self, body: Body) {
        self.body = body;
        self.part = Part::default();
    }

    /// Parses the part of the body that arrived with the head. `allowed`: the limit of the body in
    /// bytes.
    pub(super) fn begin(
        &mut self,
        allowed: u64,
        limits: HeadLimits,
        input: &ReadBuffer,
        table: &mut HeadTable,
        outbound: &mut Outbound,
    ) -> Result<(), UploadFailure> {
        self.allowed = allowed;
        self.limits = limits;
        match input.is_empty() {
            true => Ok(()),
            false => self.look(input, table, outbound),
        }
    }

    /// Drops the rest of the body.
    pub(super) fn stop(&mut self) {
        self.body = Body::Ended;
        self.part = Part::default();
    }

    /// Sends available bytes; ready when all are sent. Sets `has_news` on progress.
    #[inline]
    pub(super) fn poll<C, U>(
        &mut self,
        cx: &mut Context<'_>,
        (client, input, table): (&mut C, &mut ReadBuffer, &mut HeadTable),
        outbound: &mut Outbound,
        destination: &mut U,
        has_news: &mut bool,
    ) -> Poll<Result<(), UploadFailure>>
    where
        C: ByteStream,
        U: ByteStream,
    {
        loop {
            if outbound.front.len() + self.part.bytes > 0 {
                ready!(self.poll_write(cx, input, outbound, destination, has_news))?;
            }
            if self.part.trailers > 0 {
                let count = std::mem::take(&mut self.part.trailers);
                write_trailers(&input.filled()[..count], table, &mut outbound.front);
                input.consume(count);
                continue;
            }
            if self.body.has_ended() {
                outbound.end();
                input.rest();
                return Poll::Ready(Ok(()));
            }
            outbound.wait_for_client();
            match ready!(input.poll_read(client, cx)) {
                Ok(0) | Err(_) => {
                    return Poll::Ready(Err(UploadFailure::client(StatusCode::BAD_REQUEST)));
                }
                Ok(count) => outbound.arrived(count as u64),
            }
            *has_news = true;
            self.look(input, table, outbound)?;
        }
    }

    #[inline]
    fn poll_write<U: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut ReadBuffer,
        outbound: &mut Outbound,
        destination: &mut U,
        has_news: &mut bool,
    ) -> Poll<Result<(), UploadFailure>> {
        let parts = [&[], &input.filled()[..self.part.bytes]];
        ready!(outbound.poll_write(cx, parts, destination, has_news))?;
        input.consume(self.part.bytes);
        outbound.sent += self.part.content;
        self.part.bytes = 0;
        self.part.content = 0;
        Poll::Ready(Ok(()))
    }

    /// Parses the next part of the body in the client's input.
    #[inline]
    fn look(
        &mut self,
        input: &ReadBuffer,
        table: &mut HeadTable,
        outbound: &mut Outbound,
    ) -> Result<(), UploadFailure> {
        let part = self.body.follow(input.filled(), &self.limits, table);
        self.part = part.map_err(|refusal| UploadFailure::Client {
            status: refusal.status(),
            is_malformed: !refusal.is_of_limit(),
        })?;
        outbound.received += self.part.content;
        match self.allowed.checked_sub(self.part.content) {
            Some(rest) => self.allowed = rest,
            None => return Err(UploadFailure::client(StatusCode::PAYLOAD_TOO_LARGE)),
        }
        Ok(())
    }
}
