//! The state of one exchange, which the thread reuses. [`relay`](super::relay) drives it.

use std::task::Context;
use std::time::Duration;

use tokio::time::Instant;

use super::downstream::{Download, Record, Upload};
use super::failure::{Failure, UploadFailure};
use super::outbound::Outbound;
use crate::observe::{InFlightGuard, Sample};
use crate::progress::{Deadlines, End, Stage};
use crate::retry::Attempts;
use crate::stream::{ByteStream, ReadBuffer};
use crate::upstream::Early;

/// The number of states that a thread keeps: the concurrent requests of a busy thread. They take a
/// third of a MiB, and their tables at most 2 MiB.
pub(crate) const MOST: usize = 1024;

/// The progress of one request and its response. The thread reuses it, so that idle connections
/// need no memory for it.
#[derive(Debug)]
pub(crate) struct ExchangeState<U, D> {
    /// The request head, and later the framing of the body.
    pub(crate) outbound: Outbound,
    pub(crate) upload: U,
    pub(crate) download: D,
    pub(crate) progress: ExchangeProgress,
    /// The attempts to send the request.
    pub(crate) attempts: Attempts,
    /// The number of interim responses (1xx).
    pub(crate) interim: u32,
    /// The time of the response and its latency, if the whole response arrived with its head and
    /// the exchange has not waited since.
    pub(crate) whole: Option<(Instant, Option<Sample>)>,
}

impl<U: Upload, D: Download> ExchangeState<U, D> {
    /// Resets the state for a request with this head. The upload is reset by
    /// [`Downstream::begin_upload`](super::downstream::Downstream::begin_upload).
    #[inline]
    pub(crate) fn begin(&mut self, head: Vec<u8>, progress: ExchangeProgress) {
        self.outbound = Outbound::new(head);
        self.download.restart();
        self.progress = progress;
        self.attempts = Attempts::first();
        self.interim = 0;
        self.whole = None;
    }

    /// Keeps the request for a retry if it has no body.
    #[inline]
    pub(crate) fn keep_request(&mut self) {
        // Content is not kept, so a body cannot be sent again.
        if self.upload.is_empty() {
            self.outbound.keep();
        }
    }

    /// Restarts over another connection.
    pub(crate) fn again(&mut self) {
        self.outbound.again();
        self.download.restart();
        self.interim = 0;
        self.progress.again();
    }

    /// Returns true if the destination's connection can carry another request, provided that no
    /// more bytes arrived.
    #[inline]
    pub(crate) fn is_reusable(&self) -> bool {
        self.download.is_done()
            && self.download.is_persistent()
            && self.progress.has_sent_all(self.outbound.stage())
    }

    /// Records that the response head is ready for the client, after `elapsed` if that is known.
    #[inline]
    pub(crate) fn begun(&mut self, now: Instant, elapsed: Option<Sample>) {
        let has_all = self.outbound.stage() == Stage::Done && self.download.has_all();
        self.whole = has_all.then_some((now, elapsed));
    }

    /// Returns the end of the exchange, and its duration if that is known. A response that arrived
    /// at once needs no second reading of the clock.
    #[inline]
    pub(crate) fn ended(&self) -> (Instant, Option<Sample>) {
        self.whole.unwrap_or_else(|| (Instant::now(), None))
    }

    /// Adds the bytes since the last call to the counters.
    #[inline]
    pub(crate) fn count(&mut self, flight: &InFlightGuard, record: Option<&mut impl Record>) {
        let sent = self.outbound.take_uncounted();
        // Most requests have no body, and need no update of the counters.
        if sent > 0 {
            flight.sent(sent);
        }
        let received = self.download.take_uncounted();
        if received > 0 {
            flight.received(received);
        }
        if let Some(record) = record {
            record.moved(self.outbound.received, self.download.sent());
        }
    }

    /// Returns true if the whole request was read.
    #[inline]
    pub(crate) fn has_read_request(&self) -> bool {
        !self.progress.is_stopped() && self.outbound.stage() == Stage::Done
    }
}

impl<U: Upload, D: Download> Default for ExchangeState<U, D> {
    fn default() -> Self {
        // Never used: `begin` sets the progress before the state is polled.
        let deadlines = Deadlines {
            head: None,
            includes_body: false,
            activity: Duration::MAX,
        };
        Self {
            outbound: Outbound::default(),
            upload: U::default(),
            download: D::default(),
            progress: ExchangeProgress::new(deadlines, Instant::now()),
            attempts: Attempts::first(),
            interim: 0,
            whole: None,
        }
    }
}

/// The events of an exchange that later decisions depend on.
#[derive(Debug)]
pub(crate) struct ExchangeProgress {
    pub(crate) deadlines: Deadlines,
    /// The time when the connection was available.
    pub(crate) since: Instant,
    /// The time of the last noted activity.
    last: Instant,
    /// The reason for the early end of the upload, if the exchange continues.
    stopped: Option<UploadFailure>,
    /// True if bytes were transferred in either direction since [`note_news`](Self::note_news).
    pub(crate) has_news: bool,
    early: Early,
}

impl ExchangeProgress {
    #[inline]
    pub(crate) fn new(deadlines: Deadlines, since: Instant) -> Self {
        Self {
            deadlines,
            since,
            last: since,
            stopped: None,
            has_news: false,
            early: Early::default(),
        }
    }

    /// Restarts over another connection, which is available now.
    pub(crate) fn again(&mut self) {
        self.stopped = None;
        self.early = Early::default();
        self.since = Instant::now();
        self.last = self.since;
    }

    /// Reads early parts of the response before the next part of the request is sent.
    pub(crate) fn look_ahead<U: ByteStream>(
        &mut self,
        input: &mut ReadBuffer,
        destination: &mut U,
        cx: &mut Context<'_>,
    ) {
        self.has_news |= self.early.look(input, destination, cx);
    }

    /// Records that the early bytes were an interim response; `rest` is left.
    pub(crate) fn passed_interim(&mut self, rest: &ReadBuffer) {
        self.early.passed_interim(rest);
    }

    /// Records that the response has begun while the upload was at this stage.
    #[inline]
    pub(crate) fn answered(&mut self, upload: Stage) {
        self.early.answered(upload == Stage::Done);
        self.has_news = true;
    }

    /// Returns true if the upload ended early.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Records an early end of the upload that does not end the exchange.
    pub(crate) fn stop(&mut self, broken: UploadFailure) {
        self.stopped = Some(broken);
    }

    /// Returns the failure for this end of the exchange. An earlier failure of the upload is the
    /// cause, except if the destination's response is malformed.
    #[cold]
    pub(crate) fn failure(&self, end: End, upload: Stage, is_unanswered: bool) -> Failure {
        let (kind, status) = end.verdict(upload, is_unanswered);
        let kind = match &self.stopped {
            Some(broken) if end != End::Malformed => broken.kind(),
            _ => kind,
        };
        match is_unanswered {
            true => Failure::Unanswered(kind, status),
            false => Failure::Truncated(kind),
        }
    }

    /// Returns the next timeout if there is no activity until then.
    #[inline]
    pub(crate) fn due(&self, is_unanswered: bool) -> Instant {
        self.deadlines.due(self.last, is_unanswered)
    }

    /// Returns the time at which the exchange times out, whatever its progress.
    #[inline]
    pub(crate) fn limit(&self, is_unanswered: bool) -> Option<Instant> {
        self.deadlines.limit(is_unanswered)
    }

    /// Returns the failure when the timeout is [due](Self::due).
    #[cold]
    pub(crate) fn timed_out(&self, upload: Stage, is_unanswered: bool) -> Failure {
        let now = Instant::now();
        let end = self.deadlines.expired(self.last, is_unanswered, now);
        self.failure(end.unwrap_or(End::Idle), upload, is_unanswered)
    }

    /// Reads the clock if there was activity since the last call.
    #[inline]
    pub(crate) fn note_news(&mut self) {
        if std::mem::take(&mut self.has_news) {
            self.last = Instant::now();
        }
    }

    /// Returns true if the whole request was sent before the response began, so that the connection
    /// can be reused.
    #[inline]
    pub(crate) fn has_sent_all(&self, upload: Stage) -> bool {
        !self.is_stopped() && !self.early.is_known() && upload == Stage::Done
    }
}
