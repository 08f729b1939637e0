//! What is the same of every exchange while it goes on, whatever version of HTTP its client speaks.

use std::task::Context;

use tokio::time::Instant;

use super::failure::Failure;
use super::upload::Broken;
use crate::progress::{Deadlines, End, Stage};
use crate::stream::{ByteStream, ReadBuffer};
use crate::upstream::Early;

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

    /// Begins anew over another connection, which there is now.
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

    /// What an end of the upload before its end means for the exchange. `None`: the response may come, or has come, all the same.
    #[cold]
    pub(super) fn broke(
        broken: &Broken,
        is_unanswered: bool,
        is_answered: bool,
    ) -> Option<Failure> {
        match broken {
            Broken::Destination { is_unsent: true } => Some(Failure::Unsent),
            Broken::Client { status, .. } if is_unanswered => {
                Some(Failure::Unanswered(broken.kind(), *status))
            }
            Broken::Client { .. } if !is_answered => Some(Failure::Cut(broken.kind())),
            // The destination may have answered before it closed, and the client has its answer.
            Broken::Client { .. } | Broken::Destination { .. } => None,
        }
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
