//! The state of one exchange, which the thread keeps for the next; [`relay`](super::relay) drives it.

use std::task::Context;
use std::time::Duration;

use tokio::time::Instant;

use super::downstream::{Download, Upload};
use super::failure::{Broken, Failure};
use super::outbound::Outbound;
use crate::observe::{InFlightGuard, Sample};
use crate::progress::{Deadlines, End, Stage};
use crate::retry::Attempts;
use crate::server::connection::RequestRecord;
use crate::stream::{ByteStream, ReadBuffer};
use crate::upstream::Early;

/// As many as requests are under way at a time on a busy thread: a third of a MiB, and at most 2 MiB for their tables.
pub(super) const MOST: usize = 1024;

/// How far one request and its response have come. Kept for the next request by the thread when they are over, so that
/// connections without one have no room for it.
#[derive(Debug)]
pub(super) struct Flow<U, D> {
    /// The request's head, and later what frames its body.
    pub(super) outbound: Outbound,
    pub(super) upload: U,
    pub(super) download: D,
    pub(super) progress: Progress,
    /// The attempts to have it answered.
    pub(super) attempts: Attempts,
    /// Interim responses that came.
    pub(super) interim: u32,
    /// When the response was there and how long that took, if it is known, of a response that was there at once and has not been
    /// waited for since.
    pub(super) whole: Option<(Instant, Option<Sample>)>,
}

impl<U: Upload, D: Download> Flow<U, D> {
    /// Begins with a request of this head, in the place of an exchange that is over. Its body is begun by who knows it.
    #[inline]
    pub(super) fn begin(&mut self, head: Vec<u8>, progress: Progress) {
        self.outbound = Outbound::new(head);
        self.download.restart();
        self.progress = progress;
        self.attempts = Attempts::first();
        self.interim = 0;
        self.whole = None;
    }

    /// Keeps the request, which may be sent a second time, if it has no body.
    #[inline]
    pub(super) fn keep_request(&mut self) {
        if self.upload.is_empty() {
            self.outbound.keep();
        }
    }

    /// Begins once more over another connection.
    pub(super) fn again(&mut self) {
        self.outbound.again();
        self.download.restart();
        self.interim = 0;
        self.progress.again();
    }

    /// Whether the destination's connection can carry another request, if nothing more came over it.
    #[inline]
    pub(super) fn is_reusable(&self) -> bool {
        self.download.is_done()
            && self.download.is_persistent()
            && self.progress.has_sent_all(self.outbound.stage())
    }

    /// The head of the response is ready for the client now, for which the request may be known to have taken so long.
    #[inline]
    pub(super) fn begun(&mut self, now: Instant, elapsed: Option<Sample>) {
        let has_all = self.outbound.stage() == Stage::Done && self.download.has_all();
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
        let sent = self.outbound.take_uncounted();
        if sent > 0 {
            flight.sent(sent);
        }
        let received = self.download.take_uncounted();
        if received > 0 {
            flight.received(received);
        }
        if let Some(record) = record {
            record.received = self.outbound.received;
            record.sent = self.download.sent();
        }
    }

    /// Whether all of the request was read, so that the next one follows.
    #[inline]
    pub(super) fn has_read_request(&self) -> bool {
        !self.progress.is_stopped() && self.outbound.stage() == Stage::Done
    }
}

impl<U: Upload, D: Download> Default for Flow<U, D> {
    fn default() -> Self {
        let deadlines = Deadlines {
            head: None,
            activity: Duration::MAX,
        };
        Self {
            outbound: Outbound::default(),
            upload: U::default(),
            download: D::default(),
            progress: Progress::new(deadlines, Instant::now()),
            attempts: Attempts::first(),
            interim: 0,
            whole: None,
        }
    }
}

/// What has happened in an exchange, and what it means for the rest.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) deadlines: Deadlines,
    /// When there was a connection.
    pub(super) since: Instant,
    /// When something happened last, as far as that was looked at.
    last: Instant,
    /// Why the upload ended, if that is not the end of all.
    stopped: Option<Broken>,
    /// Bytes moved, in either direction, at a time that was not looked at yet.
    pub(super) has_news: bool,
    early: Early,
}

impl Progress {
    #[inline]
    pub(super) fn new(deadlines: Deadlines, since: Instant) -> Self {
        Self {
            deadlines,
            since,
            last: since,
            stopped: None,
            has_news: false,
            early: Early::default(),
        }
    }

    /// Begins once more over another connection, which there is now.
    pub(super) fn again(&mut self) {
        self.stopped = None;
        self.early = Early::default();
        self.since = Instant::now();
        self.last = self.since;
    }

    /// Looks at what has come of a response, before the next part of its request is sent.
    pub(super) fn look_ahead<U: ByteStream>(
        &mut self,
        input: &mut ReadBuffer,
        destination: &mut U,
        cx: &mut Context<'_>,
    ) {
        self.has_news |= self.early.look(input, destination, cx);
    }

    /// What came first was an interim response, and there is no more than this left.
    pub(super) fn passed_interim(&mut self, rest: &ReadBuffer) {
        self.early.passed_interim(rest);
    }

    /// The response has begun, while the request was at this stage.
    #[inline]
    pub(super) fn answered(&mut self, upload: Stage) {
        self.early.answered(upload == Stage::Done);
        self.has_news = true;
    }

    /// Whether the request ended before its end.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// The upload ended for a reason that does not end the exchange.
    pub(super) fn stop(&mut self, broken: Broken) {
        self.stopped = Some(broken);
    }

    /// What this end of the exchange means, while its request is at this stage. If that had ended before, that is the reason,
    /// but for what the destination says.
    #[cold]
    pub(super) fn failure(&self, end: End, upload: Stage, is_unanswered: bool) -> Failure {
        let (kind, status) = end.verdict(upload, is_unanswered);
        let kind = match &self.stopped {
            Some(broken) if end != End::Meaningless => broken.kind(),
            _ => kind,
        };
        match is_unanswered {
            true => Failure::Unanswered(kind, status),
            false => Failure::Cut(kind),
        }
    }

    /// When it has taken too long, unless something happens.
    #[inline]
    pub(super) fn due(&self, is_unanswered: bool) -> Instant {
        self.deadlines.due(self.last, is_unanswered)
    }

    /// The same, now that it is [due](Self::due).
    #[cold]
    pub(super) fn timed_out(&self, upload: Stage, is_unanswered: bool) -> Failure {
        let now = Instant::now();
        let end = self.deadlines.expired(self.last, is_unanswered, now);
        self.failure(end.unwrap_or(End::Idle), upload, is_unanswered)
    }

    /// Looks at the clock if something happened since it last did.
    #[inline]
    pub(super) fn note_news(&mut self) {
        if std::mem::take(&mut self.has_news) {
            self.last = Instant::now();
        }
    }

    /// Whether all of the request, which is at this stage, went through in time, so that its connections can carry another one.
    #[inline]
    pub(super) fn has_sent_all(&self, upload: Stage) -> bool {
        !self.is_stopped() && !self.early.is_known() && upload == Stage::Done
    }
}
