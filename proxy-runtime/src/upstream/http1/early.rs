//! Responses that begin before their requests have ended.

use std::task::{Context, Poll};

use crate::stream::{ByteStream, ReadBuffer};

/// True if the final response began before its request had ended.
///
/// After such a response the connection carries no other request: a destination that does not read the rest of a
/// request may take it for the next one.
#[derive(Debug, Default)]
pub(crate) struct Early(bool);

impl Early {
    /// Checks for a response before the next part of the request is sent. Returns true if the socket was read for
    /// that.
    pub(crate) fn look<S: ByteStream>(
        &mut self,
        input: &mut ReadBuffer,
        destination: &mut S,
        cx: &mut Context<'_>,
    ) -> bool {
        // A failure is seen again where the response is read.
        let has_read =
            input.is_empty() && matches!(input.poll_read(destination, cx), Poll::Ready(Ok(1..)));
        self.0 = !input.is_empty();
        has_read
    }

    /// Records that the first bytes were an informational response, which may arrive during the request, and that
    /// `rest` is left.
    pub(crate) fn passed_interim(&mut self, rest: &ReadBuffer) {
        self.0 &= !rest.is_empty();
    }

    /// The final response is there, now that the request was sent so far.
    #[inline]
    pub(crate) fn answered(&mut self, has_sent_all: bool) {
        self.0 |= !has_sent_all;
    }

    /// Returns true if the response is known to be early.
    #[inline]
    pub(crate) fn is_known(&self) -> bool {
        self.0
    }
}
