//! The request body of a client of HTTP/1.1, forwarded without changes.

use std::task::{Context, Poll, ready};

use http::StatusCode;

use crate::error::Allowance;
use crate::forward::exchange::body::{Body, BodyPart};
use crate::forward::exchange::downstream;
use crate::forward::exchange::failure::UploadFailure;
use crate::forward::exchange::outbound::Outbound;
use crate::http1::{HeadLimits, HeadTable, write_trailers};
use crate::stream::{ByteStream, ReadBuffer};

/// The state of a request body. [`Outbound`] has the bytes in front of it.
#[derive(Debug, Default)]
pub(crate) struct Http1Upload {
    body: Body,
    /// The parsed part of the client's input that is sent next.
    part: BodyPart,
    /// The remaining limit of the body in bytes.
    allowed: Allowance,
    /// The limits of trailers.
    limits: HeadLimits,
}

impl downstream::Upload for Http1Upload {
    #[inline]
    fn is_empty(&self) -> bool {
        self.body.has_ended() && self.part == BodyPart::default()
    }

    #[inline]
    fn needs_more(&self) -> bool {
        !self.body.has_ended()
    }

    #[inline]
    fn rest(&mut self) {}
}

impl Http1Upload {
    /// Resets the state for another request.
    #[inline]
    pub(super) fn restart(&mut self, body: Body) {
        self.body = body;
        self.part = BodyPart::default();
    }

    /// Parses the part of the body that arrived with the head. `allowed`: the limit of the body in
    /// bytes.
    pub(super) fn begin(
        &mut self,
        allowed: Allowance,
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
        self.part = BodyPart::default();
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
                // The buffer is not needed while the response is awaited.
                input.rest();
                return Poll::Ready(Ok(()));
            }
            // From here on a delay counts as the client's, not the destination's.
            outbound.wait_for_client();
            match ready!(input.poll_read(client, cx)) {
                // The body has not ended, so the client has left in the middle of it.
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
        // The front takes the first place.
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
        self.part = part.map_err(|rejection| UploadFailure::Client {
            status: rejection.status(),
            is_malformed: !rejection.is_of_limit(),
        })?;
        outbound.received += self.part.content;
        let taken = self.allowed.take(self.part.content);
        taken.map_err(UploadFailure::client)
    }
}
