//! What is the same of every exchange while it goes on, whatever version of HTTP its client speaks.

use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use super::failure::Failure;
use super::upload::{Broken, Stage};
use crate::forward::ForwardErrorKind;
use crate::forward::timeout::after;
use crate::stream::{ByteStream, ReadBuffer};

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// When the response must have begun.
    pub(super) head_due: Option<Instant>,
    /// How long nothing may happen.
    pub(super) activity: Duration,
    /// When something happened last.
    pub(super) last: Instant,
}

/// What has happened in an exchange, and what it means for the rest.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) patience: Patience,
    /// Why the upload ended, if that is not the end of all.
    stopped: Option<Broken>,
    /// Bytes moved, in either direction, at a time that was not looked at yet.
    pub(super) has_news: bool,
    /// The final response began before the request had ended, as far as that is known.
    is_early: bool,
}

impl Progress {
    #[inline]
    pub(super) fn new(patience: Patience) -> Self {
        Self {
            patience,
            stopped: None,
            has_news: false,
            is_early: false,
        }
    }

    /// Begins anew over another connection, which there is now.
    pub(super) fn again(&mut self) {
        self.stopped = None;
        self.is_early = false;
        self.patience.last = Instant::now();
    }

    /// Looks at what has come of a response, before the next part of its request is sent.
    pub(super) fn look_ahead<U: ByteStream>(
        &mut self,
        input: &mut ReadBuffer,
        destination: &mut U,
        cx: &mut Context<'_>,
    ) {
        // A failure is seen again where the response is read.
        if input.is_empty()
            && let Poll::Ready(Ok(1..)) = input.poll_read(destination, cx)
        {
            self.has_news = true;
        }
        self.is_early = !input.is_empty();
    }

    /// What had come of a response was an interim one, which may come while the request is sent, and `is_all`.
    pub(super) fn passed_interim(&mut self, is_all: bool) {
        self.is_early &= !is_all;
    }

    /// The response has begun, while the request was at this stage.
    #[inline]
    pub(super) fn answered(&mut self, upload: Stage) {
        self.is_early |= upload != Stage::Done;
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

    /// Why it fails for which `kind` seems to be the reason: if the upload had ended before, for that.
    pub(super) fn cause(&self, kind: ForwardErrorKind) -> ForwardErrorKind {
        self.stopped.as_ref().map_or(kind, Broken::kind)
    }

    /// When it has taken too long, unless something happens.
    #[inline]
    pub(super) fn due(&self, is_unanswered: bool) -> Instant {
        let idle = after(self.patience.last, self.patience.activity);
        match self.patience.head_due {
            Some(head) if is_unanswered => head.min(idle),
            _ => idle,
        }
    }

    /// Looks at the clock if something happened since it last did.
    #[inline]
    pub(super) fn note_news(&mut self) {
        if std::mem::take(&mut self.has_news) {
            self.patience.last = Instant::now();
        }
    }

    /// Whether all of the request went through, which is at this stage, so that its connections can carry another one.
    ///
    /// Not behind a response that began before its request had ended: a destination that does not read that to its end may take
    /// what is left for the next one.
    #[inline]
    pub(super) fn has_sent_all(&self, upload: Stage) -> bool {
        !self.is_stopped() && !self.is_early && upload == Stage::Done
    }
}
