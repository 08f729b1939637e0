//! The state of one request on its way, which the thread keeps for the next; [`relay`](super::relay) drives it.

use std::time::Duration;

use tokio::time::Instant;

use super::body::Body;
use super::download::Download;
use super::progress::Progress;
use super::upload::{Broken, Upload};
use crate::http1::{Asked, HeadLimits, HeadTable};
use crate::observe::{InFlightGuard, Sample};
use crate::progress::{Deadlines, Stage};
use crate::retry::Attempts;
use crate::server::connection::RequestRecord;
use crate::spare::{Lend, Spare};

/// As many as requests are under way at a time on a busy thread: a third of a MiB, and at most 2 MiB for their tables.
const MOST: usize = 1024;

thread_local! {
    static SPARE: Spare<Box<Flow>, MOST> = const { Spare::new() };
}

/// How far one request and its response have come. Kept for the next request by the thread when they are over, so that
/// connections without one have no room for it.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) upload: Upload,
    pub(super) download: Download,
    /// The response's head, and then its trailers.
    pub(super) table: HeadTable,
    pub(super) progress: Progress,
    /// How large a request's trailers may be.
    pub(super) limits: HeadLimits,
    /// The attempts to have it answered.
    pub(super) attempts: Attempts,
    /// Whether the client's connection closes after this response, which it is told.
    pub(super) is_last: bool,
    /// When the response was there and how long that took, if it is known, of a response that was there at once and has not been
    /// waited for since.
    pub(super) whole: Option<(Instant, Option<Sample>)>,
}

impl Flow {
    /// State that an exchange can [begin](Self::begin) with.
    #[inline]
    pub(super) fn lend() -> Box<Self> {
        SPARE.lend().unwrap_or_default()
    }

    /// Keeps the state of an exchange that is over.
    #[inline]
    pub(super) fn give_back(mut self: Box<Self>) {
        self.upload.outbound.rest();
        self.table.trim();
        SPARE.keep(self);
    }

    /// Begins with a request of this head and body, in the place of an exchange that is over.
    #[inline]
    pub(super) fn begin(&mut self, head: Vec<u8>, body: Body, asked: Asked, progress: Progress) {
        self.upload.restart(head, body);
        self.download.restart(asked);
        self.table.clear();
        self.progress = progress;
        self.attempts = Attempts::first();
        self.is_last = false;
        self.whole = None;
    }

    /// Begins anew over another connection.
    pub(super) fn again(&mut self, asked: Asked) {
        self.upload.outbound.again();
        self.download.restart(asked);
        self.table.clear();
        self.progress.again();
    }

    /// Whether the destination's connection can carry another request, if nothing more came over it.
    #[inline]
    pub(super) fn is_reusable(&self) -> bool {
        self.download.is_done()
            && self.download.is_persistent
            && self.progress.has_sent_all(self.upload.outbound.stage())
    }

    /// The head of the response is ready for the client now, for which the request may be known to have taken so long.
    #[inline]
    pub(super) fn begun(&mut self, now: Instant, elapsed: Option<Sample>) {
        let has_all = self.upload.outbound.stage() == Stage::Done && self.download.has_all();
        self.whole = has_all.then_some((now, elapsed));
    }

    /// When the exchange ended, which it just did, and how long it took, if that is known. To hand over what was there at once takes
    /// no time that would be worth another look at the clock.
    #[inline]
    pub(super) fn ended(&self) -> (Instant, Option<Sample>) {
        self.whole.unwrap_or_else(|| (Instant::now(), None))
    }

    /// Counts what has moved since this was last done.
    #[inline]
    pub(super) fn count(&mut self, flight: &InFlightGuard, record: Option<&mut RequestRecord>) {
        let sent = self.upload.outbound.take_uncounted();
        if sent > 0 {
            flight.sent(sent);
        }
        let received = self.download.take_uncounted();
        if received > 0 {
            flight.received(received);
        }
        if let Some(record) = record {
            record.received = self.upload.outbound.received;
            record.sent = self.download.sent();
        }
    }

    /// Sends no more of the request, while its response goes on.
    pub(super) fn stop_upload(&mut self, broken: Broken) {
        self.upload.stop();
        self.progress.stop(broken);
    }

    /// Whether all of the request was read, so that the next one follows.
    #[inline]
    pub(super) fn has_read_request(&self) -> bool {
        !self.progress.is_stopped() && self.upload.outbound.stage() == Stage::Done
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            upload: Upload::default(),
            download: Download::default(),
            table: HeadTable::new(),
            progress: Progress::new(
                Deadlines {
                    head: None,
                    activity: Duration::MAX,
                },
                Instant::now(),
            ),
            limits: HeadLimits::default(),
            attempts: Attempts::first(),
            is_last: false,
            whole: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_large() {
        for (grown, kept) in [(100, 100), (1000, 32)] {
            let mut flow = Flow::lend();
            flow.table = HeadTable::grown_to(grown);
            flow.give_back();
            assert_eq!(Flow::lend().table.room(), kept);
        }
    }
}
