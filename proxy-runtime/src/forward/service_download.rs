//! The response to the caller of a tower service, as far as the exchange has received it.

use std::task::Poll;

use super::exchange::downstream::Download;
use super::exchange::incoming::Incoming;
use crate::http1::{HeadTable, PooledTable};
use crate::response::ResponseSlot;

/// The state of a response.
#[derive(Default)]
pub(crate) struct ServiceDownload {
    /// The fields of the head.
    pub(super) table: PooledTable,
    /// The response, after its head was moved to the slot.
    pub(super) begun: Option<Incoming>,
    /// True if the whole response was moved to the slot.
    pub(super) is_done: bool,
    /// True if the caller has not taken the last frame.
    pub(super) is_full: bool,
    pub(super) hold: Hold,
    /// True if the caller had not taken the last frame when it was not polled, so that it was waited for.
    pub(super) waited_for_caller: bool,
}

/// The reading of a body for a caller whose client takes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hold {
    #[default]
    None,
    /// The poll that brings the head reads no more: the caller polls again for the body.
    Begun,
    /// Reading waits until the caller polls again.
    Waits,
}

impl Download for ServiceDownload {
    fn restart(&mut self) {
        self.table.release();
        self.begun = None;
        self.is_done = false;
        self.is_full = false;
        self.hold = Hold::None;
        self.waited_for_caller = false;
    }

    fn rest(&mut self) {
        self.restart();
    }

    fn table(&mut self) -> &mut HeadTable {
        &mut self.table
    }

    fn is_unanswered(&self) -> bool {
        self.begun.is_none()
    }

    fn has_all(&self) -> bool {
        self.begun.as_ref().is_some_and(Incoming::has_all)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn is_persistent(&self) -> bool {
        self.begun.as_ref().is_some_and(Incoming::is_persistent)
    }

    fn take_uncounted(&mut self) -> u64 {
        self.begun.as_mut().map_or(0, Incoming::take_uncounted)
    }

    fn sent(&self) -> u64 {
        self.begun.as_ref().map_or(0, Incoming::sent)
    }
}

impl ServiceDownload {
    /// Notes at the beginning of a poll which party was waited for since the last one.
    pub(super) fn note_caller(&mut self, slot: &ResponseSlot) {
        // Data in the slot is of this poll: the caller takes it after each.
        if !(self.is_full && slot.has_data()) {
            self.waited_for_caller = self.is_full || self.hold == Hold::Waits;
        }
    }

    /// Ready when the body may be read. That is not before the caller, which has the head of the response, polls again.
    pub(super) fn poll_hold(&mut self, has_news: &mut bool) -> Poll<()> {
        match self.hold {
            Hold::None => {}
            Hold::Begun => {
                self.hold = Hold::Waits;
                return Poll::Pending;
            }
            Hold::Waits => {
                self.hold = Hold::None;
                // The caller waits for the destination from now on.
                *has_news = true;
            }
        }
        Poll::Ready(())
    }

    /// Returns true if the caller has something to take, or to poll for.
    pub(super) fn waits_for_caller(&self) -> bool {
        (self.is_full || self.hold == Hold::Waits) && !self.is_done
    }

    /// Moves received data to the slot. Ready unless the caller must take the last part first.
    pub(super) fn poll_put(&mut self, slot: &ResponseSlot, has_news: &mut bool) -> Poll<()> {
        let Some(incoming) = &mut self.begun else {
            return Poll::Ready(());
        };
        if self.is_full {
            if slot.has_data() {
                return Poll::Pending;
            }
            self.is_full = false;
            // The caller waits for the destination from now on.
            *has_news = true;
        }
        if !incoming.data.is_empty() {
            slot.put_data(std::mem::take(&mut incoming.data));
            self.is_full = true;
        }
        if incoming.has_ended()
            && let Some(trailers) = incoming.trailers.take()
        {
            // Trailers have a place of their own, and need not wait until the data is taken.
            slot.put_trailers(trailers);
        }
        self.is_done = incoming.has_all();
        Poll::Ready(())
    }
}
