//! The body of a response as it comes from a destination.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Frame, SizeHint};
use tracing::debug;

use crate::error::{ForwardError, ForwardErrorKind};
use crate::observe::targets;
use crate::progress::IdleTimer;
use crate::progress::SharedProgress;
use crate::progress::{End, Stage};
use crate::response::TrailerRules;
use crate::upstream::{IncomingBody, Lease};

/// The body of a response as it comes from a destination: read when it is asked for, counted and checked.
pub(crate) struct ResponseDownload {
    /// What comes, and the connection that it comes over, until all of it has come.
    source: Option<DownloadSource>,
    progress: Arc<SharedProgress>,
    /// What came with the head.
    first: Option<Frame<Bytes>>,
    /// Bytes that `Content-Length` still promises.
    promised: Option<u64>,
    trailers: TrailerRules,
    /// The client was given something, and has taken it when it asks for more.
    was_given: bool,
    idle: IdleTimer,
}

struct DownloadSource {
    incoming: IncomingBody,
    lease: Lease,
}

type NextFrame = Option<Result<Frame<Bytes>, ForwardErrorKind>>;

impl ResponseDownload {
    pub(crate) fn new(
        incoming: IncomingBody,
        progress: Arc<SharedProgress>,
        lease: Lease,
        promised: Option<u64>,
        trailers: TrailerRules,
    ) -> Self {
        Self {
            source: Some(DownloadSource { incoming, lease }),
            progress,
            first: None,
            promised,
            trailers,
            was_given: false,
            idle: IdleTimer::default(),
        }
    }

    /// Looks whether the body fails at once, while the client can still be told so. It does not wait for anything.
    pub(crate) fn begin(&mut self, cx: &mut Context<'_>) -> Result<(), ForwardError> {
        if self.ends_here() {
            self.finish();
            return Ok(());
        }
        let first = match self.poll_incoming(cx) {
            Poll::Ready(next) => next,
            Poll::Pending => None,
        };
        match first.transpose() {
            Ok(first) => {
                self.first = first;
                Ok(())
            }
            Err(kind) => Err(ForwardError::new(kind, StatusCode::BAD_GATEWAY)),
        }
    }

    /// Whether all content was given out. Trailers that the route adds may be left, which not every client can be told.
    pub(crate) fn is_whole(&self) -> bool {
        let source = self.source.as_ref();
        self.first.is_none() && source.is_none_or(|source| source.incoming.is_end_stream())
    }

    /// Whether nothing is left, which is known without asking.
    pub(crate) fn has_ended(&self) -> bool {
        self.first.is_none() && self.source.is_none()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().and_then(Frame::data_ref);
        let first = first.map_or(0, |data| data.len() as u64);
        match self.promised {
            Some(rest) => SizeHint::with_exact(first + rest),
            None if self.has_ended() => SizeHint::with_exact(0),
            None => SizeHint::default(),
        }
    }

    /// The next part, or the kind of what went wrong.
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<NextFrame> {
        let was_given = std::mem::replace(&mut self.was_given, true);
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        if let Poll::Ready(next) = self.poll_incoming(cx) {
            return Poll::Ready(next);
        }
        self.was_given = false;
        if was_given {
            self.progress.activity.touch();
        }
        ready!(self.idle.poll_expired(cx, &self.progress.activity));
        let (end, reason) = match self.progress.activity.is_over() {
            true => (End::Deadline, "it takes longer than the route's timeout"),
            false => (End::Idle, "nothing came for too long"),
        };
        Poll::Ready(Some(Err(self.broken(end, &reason))))
    }

    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<NextFrame> {
        let Some(DownloadSource { incoming, lease }) = &mut self.source else {
            return Poll::Ready(None);
        };
        let frame = ready!(lease.poll_frame(incoming, cx));
        self.progress.activity.touch();
        Poll::Ready(match frame {
            Some(Ok(frame)) => self.pass_on(frame),
            Some(Err(error)) => Some(Err(self.broken(End::Closed, &error))),
            None if self.promised.is_some_and(|rest| rest > 0) => Some(Err(
                self.broken(End::Closed, &"it is shorter than its Content-Length")
            )),
            None => self.end(HeaderMap::new()),
        })
    }

    fn pass_on(&mut self, frame: Frame<Bytes>) -> NextFrame {
        let data = match frame.into_data() {
            Ok(data) => data,
            // There are no frames but data and trailers.
            Err(other) => return self.end(other.into_trailers().unwrap_or_default()),
        };
        let length = data.len() as u64;
        self.progress.in_flight().metrics().received(length);
        if let Some(promised) = self.promised {
            let Some(rest) = promised.checked_sub(length) else {
                return Some(Err(
                    self.broken(End::BrokenBody, &"it is longer than its Content-Length")
                ));
            };
            self.promised = Some(rest);
        }
        if self.ends_here() {
            self.finish();
        }
        Some(Ok(Frame::data(data)))
    }

    /// Whether the body is over and nothing comes after it.
    fn ends_here(&self) -> bool {
        let source = self.source.as_ref();
        source.is_none_or(|source| source.incoming.is_end_stream()) && !self.trailers.may_add()
    }

    fn end(&mut self, mut trailers: HeaderMap) -> NextFrame {
        self.finish();
        self.trailers.apply(&mut trailers);
        (!trailers.is_empty()).then(|| Ok(Frame::trailers(trailers)))
    }

    /// The response is over: its connection can serve another one.
    fn finish(&mut self) {
        let Some(DownloadSource { incoming, lease }) = self.source.take() else {
            return;
        };
        lease.finish(&incoming);
    }

    /// The response is given up.
    fn cancel(&mut self) {
        self.source = None;
    }

    fn broken(&mut self, end: End, reason: &dyn std::fmt::Display) -> ForwardErrorKind {
        let (kind, _) = end.verdict(Stage::Done, false);
        self.cancel();
        debug!(
            target: targets::REQUEST,
            destination = %self.progress.in_flight().id(),
            error = kind.as_str(),
            %reason,
            "the response broke off",
        );
        kind
    }
}

impl Drop for ResponseDownload {
    fn drop(&mut self) {
        match self.is_whole() {
            true => self.finish(),
            false => self.cancel(),
        }
    }
}
