//! The part of an upload that does not depend on the version of HTTP: head, framing, data rate.

use std::task::{Context, Poll, ready};

use tokio::time::Instant;

use super::failure::UploadFailure;
use crate::progress::{DataRate, Pace, Stage};
use crate::stream::{ByteStream, poll_write_all, recycled};

/// The state of an upload, except for its content.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    /// Bytes to send in front of content: the head, later the framing of the body. A
    /// [kept](Self::keep) head stays after it was sent.
    pub(crate) front: Vec<u8>,
    /// True if the head, which is the whole request, is kept for a retry.
    is_kept: bool,
    /// Bytes written of the front and the following content.
    written: usize,
    stage: Stage,
    /// True if no byte was written.
    is_unsent: bool,
    /// Body bytes received from the client.
    pub(crate) received: u64,
    /// Body bytes sent.
    pub(crate) sent: u64,
    /// Body bytes already counted for the destination.
    counted: u64,
    /// The minimum data rate of the client, while the body is waited for.
    pace: Option<Pace>,
    gate: Gate,
}

/// The wait of a body for the destination's `100 Continue` (RFC 9110 section 10.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gate {
    /// The body does not wait.
    #[default]
    None,
    /// The body waits until this time at the latest.
    Closed(Instant),
    /// The body no longer waits, and was not polled since.
    Opened,
}

impl Outbound {
    /// Returns the state of a request with this head.
    #[inline]
    pub(crate) fn new(head: Vec<u8>) -> Self {
        Self {
            front: head,
            is_kept: false,
            written: 0,
            stage: Stage::Destination,
            is_unsent: true,
            received: 0,
            sent: 0,
            counted: 0,
            pace: None,
            gate: Gate::None,
        }
    }

    /// Keeps the head of a request without a body for a retry.
    #[inline]
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Returns true if the whole request is kept for a retry.
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Restarts over another connection. The head is no longer kept.
    pub(crate) fn again(&mut self) {
        self.is_kept = false;
        self.written = 0;
        self.stage = Stage::Destination;
        self.is_unsent = true;
    }

    #[inline]
    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// Returns true if a byte was written over this connection.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        !self.is_unsent
    }

    /// Records that the client is waited for.
    #[inline]
    pub(crate) fn wait_for_client(&mut self) {
        self.stage = Stage::Client;
    }

    /// Ends the upload, and releases memory: an exchange that waits for its response holds only a
    /// kept head.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.stage = Stage::Done;
        if !self.is_kept() {
            self.rest();
        } else if self.front.capacity() >= recycled::SMALL {
            self.shrink();
        }
    }

    /// Frees a kept head. Called while the client does not take the response: the head is not needed any more, and
    /// the pool would grow by one for each such client.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if self.stage == Stage::Done && self.is_kept {
            self.is_kept = false;
            self.front = Vec::new();
        }
    }

    /// Copies a long kept head into a buffer of its own size.
    #[cold]
    fn shrink(&mut self) {
        let own = self.front.as_slice().to_vec();
        recycled::release(std::mem::replace(&mut self.front, own));
    }

    /// Releases the buffer.
    #[inline]
    pub(crate) fn rest(&mut self) {
        self.is_kept = false;
        if self.front.capacity() > 0 {
            recycled::release(std::mem::take(&mut self.front));
        }
    }

    /// Returns the body bytes sent since the last call.
    #[inline]
    pub(crate) fn take_uncounted(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.sent);
        self.sent - before
    }

    /// Holds the body back until the destination asks for it, or until `due`.
    #[cold]
    pub(crate) fn wait_for_continue(&mut self, due: Instant) {
        self.gate = Gate::Closed(due);
    }

    /// Returns true if the body is held back.
    #[inline]
    pub(crate) fn is_gated(&self) -> bool {
        matches!(self.gate, Gate::Closed(_))
    }

    /// Records that all but a held back body was sent.
    pub(crate) fn wait_at_gate(&mut self) {
        self.stage = Stage::Continue;
    }

    /// The time at which the body is not held back any more.
    #[inline]
    pub(crate) fn gate_due(&self) -> Option<Instant> {
        match self.gate {
            Gate::Closed(due) => Some(due),
            Gate::None | Gate::Opened => None,
        }
    }

    /// Sends the body, if it was held back.
    #[cold]
    pub(crate) fn open_gate(&mut self) {
        if self.is_gated() {
            self.gate = Gate::Opened;
        }
    }

    /// Returns true if the body was held back until now.
    #[inline]
    pub(crate) fn take_opened(&mut self) -> bool {
        let is_opened = self.gate == Gate::Opened;
        if is_opened {
            self.gate = Gate::None;
        }
        is_opened
    }

    /// Enforces a minimum data rate.
    pub(crate) fn pace(&mut self, rate: DataRate) {
        self.pace = Some(Pace::new(rate));
    }

    /// Records body bytes from the client.
    #[inline]
    pub(crate) fn arrived(&mut self, content: u64) {
        if let Some(pace) = &mut self.pace {
            pace.moved(content);
        }
    }

    /// Returns the next check of the [data rate](Self::is_too_slow) while the client is waited for.
    #[inline]
    pub(crate) fn pace_due(&mut self) -> Option<Instant> {
        // Only a client that is waited for can be too slow.
        match (&mut self.pace, self.stage) {
            (Some(pace), Stage::Client) => pace.due(),
            _ => None,
        }
    }

    /// Checks the data rate at the end of a window. Returns true if it was too low; otherwise a new
    /// window begins.
    #[cold]
    pub(crate) fn is_too_slow(&mut self) -> bool {
        let Some(pace) = &mut self.pace else {
            return false;
        };
        let is_too_slow = pace.is_too_slow();
        pace.renew(Instant::now());
        is_too_slow
    }

    /// Sends `parts`, the first of which is replaced by the front; ready when all are written. Sets
    /// `has_news` on progress, except for the first write.
    #[inline]
    pub(crate) fn poll_write<U: ByteStream, const N: usize>(
        &mut self,
        cx: &mut Context<'_>,
        parts: [&[u8]; N],
        destination: &mut U,
        has_news: &mut bool,
    ) -> Poll<Result<(), UploadFailure>> {
        self.stage = Stage::Destination;
        let (was_unsent, before) = (self.is_unsent, self.written);
        let mut parts: [&[u8]; N] = parts;
        parts[0] = &self.front;
        let polled = poll_write_all(destination, cx, parts, &mut self.written);
        self.is_unsent &= self.written == 0;
        // The first write follows the start of the progress at once, and needs no new reading of the clock.
        *has_news |= self.written != before && !was_unsent;
        ready!(polled).map_err(|_| UploadFailure::Destination {
            is_unsent: self.is_unsent,
        })?;
        self.written = 0;
        // The next front is the framing of content.
        if !self.is_kept() {
            self.front.clear();
        }
        Poll::Ready(Ok(()))
    }
}
