//! What is the same of every request on its way to a destination, wherever its content comes from.

use std::task::{Context, Poll, ready};

use tokio::time::Instant;

use super::failure::Broken;
use crate::progress::Stage;
use crate::server::DataRate;
use crate::server::connection::Pace;
use crate::stream::{ByteStream, poll_write_all, spare};

/// A request on its way to a destination, but for its content.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    /// What stands in front of content: the head, and later what frames the body, until it is sent. A head that is
    /// [kept](Self::keep) stays longer.
    pub(super) front: Vec<u8>,
    /// The head, which is all of the request, is kept when it was sent: it may be sent a second time.
    is_kept: bool,
    /// How much was written of the front and of what follows it.
    written: usize,
    stage: Stage,
    /// Nothing has been written.
    is_unsent: bool,
    /// Bytes of content that came from the client.
    pub(super) received: u64,
    /// Bytes of content that were sent.
    pub(super) sent: u64,
    /// How many of them were counted for the destination.
    counted: u64,
    /// How slow the client may be, while the rest of the body is waited for.
    pace: Option<Pace>,
}

impl Outbound {
    /// A request that begins with `head`.
    #[inline]
    pub(super) fn new(head: Vec<u8>) -> Self {
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
        }
    }

    /// Keeps the head of a request that has nothing else, and may be sent a second time.
    #[inline]
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Whether all of the request is there to be sent a second time.
    #[inline]
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Begins once more over another connection, and keeps the head no longer.
    pub(super) fn again(&mut self) {
        self.is_kept = false;
        self.written = 0;
        self.stage = Stage::Destination;
        self.is_unsent = true;
    }

    #[inline]
    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether something was written over this connection.
    #[inline]
    pub(super) fn has_begun(&self) -> bool {
        !self.is_unsent
    }

    /// The client is waited for.
    #[inline]
    pub(super) fn wait_for_client(&mut self) {
        self.stage = Stage::Client;
    }

    /// All of it was sent, or no more will be. Who waits for a response holds no more memory than what is kept takes.
    #[inline]
    pub(super) fn end(&mut self) {
        self.stage = Stage::Done;
        if !self.is_kept() {
            self.rest();
        } else if self.front.capacity() >= spare::SMALL {
            self.shrink();
        }
    }

    /// Exchanges the buffer of a head that is longer than what there are buffers for.
    #[cold]
    fn shrink(&mut self) {
        let own = self.front.as_slice().to_vec();
        spare::give_back(std::mem::replace(&mut self.front, own));
    }

    /// Gives back what the next request does not need, however this one ended.
    #[inline]
    pub(super) fn rest(&mut self) {
        self.is_kept = false;
        if self.front.capacity() > 0 {
            spare::give_back(std::mem::take(&mut self.front));
        }
    }

    /// Bytes of content that were sent since this was last asked.
    #[inline]
    pub(super) fn take_uncounted(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.sent);
        self.sent - before
    }

    /// Gives up on a client that is slower than `rate`.
    pub(super) fn pace(&mut self, rate: DataRate) {
        self.pace = Some(Pace::new(rate));
    }

    /// So much content has come from the client.
    #[inline]
    pub(super) fn arrived(&mut self, content: u64) {
        if let Some(pace) = &mut self.pace {
            pace.moved(content);
        }
    }

    /// When a client that is waited for [may be too slow](Self::is_too_slow), if nothing comes until then.
    #[inline]
    pub(super) fn pace_due(&mut self) -> Option<Instant> {
        match (&mut self.pace, self.stage) {
            (Some(pace), Stage::Client) => pace.due(),
            _ => None,
        }
    }

    /// Whether the client had a whole window, which is over now, and did not use it. Else another one begins.
    #[cold]
    pub(super) fn is_too_slow(&mut self) -> bool {
        let Some(pace) = &mut self.pace else {
            return false;
        };
        let is_too_slow = pace.is_too_slow();
        pace.renew(Instant::now());
        is_too_slow
    }

    /// Sends `parts`, of which the first is the place of the front; ready when they were taken. `has_news` is set when some of it was,
    /// but for what is sent at once: that it began is no news.
    #[inline]
    pub(super) fn poll_write<U: ByteStream, const N: usize>(
        &mut self,
        cx: &mut Context<'_>,
        parts: [&[u8]; N],
        destination: &mut U,
        has_news: &mut bool,
    ) -> Poll<Result<(), Broken>> {
        self.stage = Stage::Destination;
        let (was_unsent, before) = (self.is_unsent, self.written);
        let mut parts: [&[u8]; N] = parts;
        parts[0] = &self.front;
        let polled = poll_write_all(destination, cx, parts, &mut self.written);
        self.is_unsent &= self.written == 0;
        *has_news |= self.written != before && !was_unsent;
        ready!(polled).map_err(|_| Broken::Destination {
            is_unsent: self.is_unsent,
        })?;
        self.written = 0;
        if !self.is_kept() {
            self.front.clear();
        }
        Poll::Ready(Ok(()))
    }
}
