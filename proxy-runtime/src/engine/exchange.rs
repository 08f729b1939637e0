//! One request and its response, both directions at once as far as they must be.

use std::task::{Context, Poll};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::body::Body;
use super::client_head::ForClient;
use super::download::{Cut, Download};
use super::filtering::Filtering;
use super::plan::HeadPlan;
use super::request::Run;
use super::upload::{Broken, Stage, Upload};
use crate::forward::ForwardErrorKind;
use crate::forward::timeout::after;
use crate::http1::{Asked, HeadLimits, HeadTable, OutgoingConnection};
use crate::observe::Sample;
use crate::server::http1::{Client, Transport};
use crate::server::metrics::WorkerMetrics;
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

/// How far one request and its response have come. Kept for the next request by the thread when they are over, so that
/// connections without one have no room for it.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) upload: Upload,
    pub(super) download: Download,
    /// The response's head, and then its trailers.
    pub(super) table: HeadTable,
    pub(super) patience: Patience,
    /// How large a request's trailers may be.
    pub(super) limits: HeadLimits,
    /// Whether the client's connection closes after this response, which it is told.
    pub(super) is_last: bool,
    /// Why the upload ended, if that is not the end of all.
    stopped: Option<Broken>,
    has_news: bool,
    /// The response began before the request had ended.
    is_early: bool,
    /// When the response was there and how long that took, if it is known, of a response that was there at once and has not been
    /// waited for since.
    whole: Option<(Instant, Option<Sample>)>,
}

impl Flow {
    /// Begins with a request of this head and body, in the place of an exchange that is over.
    #[inline]
    pub(super) fn begin(&mut self, head: Vec<u8>, body: Body, asked: Asked, patience: Patience) {
        self.upload.restart(head, body);
        self.download.restart(asked);
        self.table.clear();
        self.patience = patience;
        self.is_last = false;
        self.stopped = None;
        self.has_news = false;
        self.is_early = false;
        self.whole = None;
    }

    /// Begins anew over another connection.
    pub(super) fn again(&mut self, asked: Asked) {
        self.upload.again();
        self.download.restart(asked);
        self.table.clear();
        self.stopped = None;
    }

    /// Whether the destination's connection can carry another request, if nothing more came over it.
    ///
    /// Not behind a response that began before its request had ended: a destination that does not read that to its end may take
    /// what is left for the next one.
    #[inline]
    pub(super) fn is_reusable(&self) -> bool {
        self.download.is_done()
            && self.download.is_persistent
            && self.stopped.is_none()
            && !self.is_early
    }

    /// The head of the response is ready for the client now, for which the request may be known to have taken so long.
    #[inline]
    pub(super) fn begun(&mut self, now: Instant, elapsed: Option<Sample>) {
        let has_all = self.upload.stage() == Stage::Done && self.download.has_all();
        self.whole = has_all.then_some((now, elapsed));
    }

    /// When the exchange ended, which it just did, and how long it took, if that is known. To hand over what was there at once takes
    /// no time that would be worth another look at the clock.
    #[inline]
    pub(super) fn ended(&self) -> (Instant, Option<Sample>) {
        self.whole.unwrap_or_else(|| (Instant::now(), None))
    }

    /// Whether all of the request was read, so that the next one follows.
    #[inline]
    pub(super) fn has_read_request(&self) -> bool {
        self.stopped.is_none() && self.upload.stage() == Stage::Done
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            upload: Upload::default(),
            download: Download::default(),
            table: HeadTable::new(),
            patience: Patience {
                head_due: None,
                activity: Duration::MAX,
                last: Instant::now(),
            },
            limits: HeadLimits::default(),
            is_last: false,
            stopped: None,
            has_news: false,
            is_early: false,
            whole: None,
        }
    }
}

/// One request and its response.
pub(super) struct Exchange<'e, T: Transport, U> {
    pub(super) client: &'e mut Client<T>,
    pub(super) flow: &'e mut Flow,
    pub(super) run: &'e Run<'e>,
    /// What the route does to heads.
    pub(super) plan: &'e HeadPlan,
    pub(super) filtering: &'e mut Filtering,
    /// The destination's connection, and what was read from it.
    pub(super) io: &'e mut U,
    pub(super) input: &'e mut ReadBuffer,
}

/// Why an exchange ended before its end.
#[derive(Debug)]
pub(super) enum Failure {
    /// Not a byte was sent: it can be tried over another connection.
    Unsent,
    /// The connection, which had been idle, was closed without a byte of a response, and the request may be sent twice.
    Stale,
    /// The client can be told this status.
    Unanswered(ForwardErrorKind, StatusCode),
    /// A filter failed at the response of this status.
    Extension(StatusCode),
    /// The client has got a part of the response.
    Cut(ForwardErrorKind),
    /// The client has gone.
    Gone(ForwardErrorKind),
}

impl Failure {
    /// The connection is not one of HTTP/1.1.
    pub(super) const UNSPOKEN: Self =
        Self::Unanswered(ForwardErrorKind::Request, StatusCode::BAD_GATEWAY);

    /// Nothing has happened for too long, or the response has not begun in time.
    #[cold]
    pub(super) fn timed_out(stage: Stage, is_unanswered: bool) -> Self {
        let (kind, status) = match stage {
            Stage::Done => (
                ForwardErrorKind::RequestTimedOut,
                StatusCode::GATEWAY_TIMEOUT,
            ),
            Stage::Client => (
                ForwardErrorKind::RequestBodyClient,
                StatusCode::REQUEST_TIMEOUT,
            ),
            Stage::Destination => (
                ForwardErrorKind::RequestBodyDestination,
                StatusCode::GATEWAY_TIMEOUT,
            ),
        };
        match (is_unanswered, stage) {
            (true, _) => Self::Unanswered(kind, status),
            (false, Stage::Done) => Self::Cut(ForwardErrorKind::ResponseBodyDestination),
            (false, _) => Self::Cut(kind),
        }
    }
}

impl<T, U> Exchange<'_, T, U>
where
    T: Transport,
    U: ByteStream,
{
    /// Sends the request, and waits until the head of the response is ready for the client.
    #[inline]
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<StatusCode, Failure>> {
        if let Err(failure) = self.poll_upload(cx) {
            return Poll::Ready(Err(failure));
        }
        let is_last = self.flow.is_last || self.flow.stopped.is_some() || self.client.is_closing();
        let connection = match is_last {
            true => OutgoingConnection::Close,
            false => OutgoingConnection::Default,
        };
        let outgoing = ForClient {
            plan: self.plan,
            connection,
            shown: self.filtering.shown(self.run, self.client.state.info),
        };
        let polled = self.flow.download.poll_head(
            cx,
            (&mut self.client.io, &mut self.client.output),
            (&mut *self.io, &mut *self.input),
            &mut self.flow.table,
            outgoing,
        );
        match polled {
            Poll::Ready(Ok(status)) => {
                self.flow.is_last = is_last;
                self.flow.is_early = self.flow.upload.stage() != Stage::Done;
                self.flow.has_news = true;
                Poll::Ready(Ok(status))
            }
            Poll::Ready(Err(cut)) => Poll::Ready(Err(self.failure(&cut))),
            Poll::Pending => self.poll_expired(cx).map(Err),
        }
    }

    /// Passes the body on, and what is left of the request; ready when both are complete.
    #[inline]
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        if let Err(failure) = self.poll_upload(cx) {
            return Poll::Ready(Err(failure));
        }
        if !self.flow.download.is_done() {
            let polled = self.flow.download.poll_body(
                cx,
                (&mut self.client.io, &mut self.client.output),
                (&mut *self.io, &mut *self.input),
                &mut self.flow.table,
                &mut self.flow.has_news,
            );
            match polled {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(cut)) => return Poll::Ready(Err(self.failure(&cut))),
                Poll::Pending => return self.poll_expired(cx).map(Err),
            }
        }
        if self.flow.upload.stage() == Stage::Done {
            return Poll::Ready(Ok(()));
        }
        // The client has its response. What becomes of the rest of its request ends nothing but its connection.
        self.poll_expired(cx).map(|_| {
            self.flow.upload.stop();
            self.flow.stopped = Some(Broken::Destination { is_unsent: false });
            Ok(())
        })
    }

    #[inline]
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        match self.flow.upload.stage() {
            Stage::Done => Ok(()),
            Stage::Client | Stage::Destination => self.send(cx),
        }
    }

    fn send(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        let polled = self.flow.upload.poll(
            cx,
            (&mut self.client.io, &mut self.client.input),
            &mut *self.io,
            &self.flow.limits,
            &mut self.client.table,
            &mut self.flow.has_news,
        );
        match polled {
            Poll::Pending | Poll::Ready(Ok(())) => Ok(()),
            Poll::Ready(Err(broken)) => self.upload_broke(broken),
        }
    }

    #[cold]
    fn upload_broke(&mut self, broken: Broken) -> Result<(), Failure> {
        let kind = broken.kind();
        if broken.is_malformed() {
            WorkerMetrics::add(&self.client.state.metrics().malformed);
        }
        match &broken {
            Broken::Destination { is_unsent: true } => Err(Failure::Unsent),
            Broken::Client { status, .. } if self.flow.download.is_unanswered() => {
                Err(Failure::Unanswered(kind, *status))
            }
            Broken::Client { .. } if !self.flow.download.is_done() => Err(Failure::Cut(kind)),
            // The destination may have answered before it closed, and the client has its answer.
            Broken::Client { .. } | Broken::Destination { .. } => {
                self.flow.upload.stop();
                self.flow.stopped = Some(broken);
                Ok(())
            }
        }
    }

    #[cold]
    fn failure(&self, cut: &Cut) -> Failure {
        let broken = self.flow.stopped.as_ref().map(Broken::kind);
        let (kind, why) = match *cut {
            Cut::Unanswered(kind, why) => (kind, why),
            Cut::Silence if self.flow.upload.is_kept() => return Failure::Stale,
            Cut::Silence => (ForwardErrorKind::Request, "it closed without an answer"),
            Cut::Destination(why) => (ForwardErrorKind::ResponseBodyDestination, why),
            Cut::Extension(status) => return Failure::Extension(status),
            Cut::Client => return Failure::Gone(ForwardErrorKind::ResponseBodyCanceled),
        };
        tracing::debug!(target: crate::observe::targets::REQUEST, error = kind.as_str(), why, "the destination failed");
        let kind = broken.unwrap_or(kind);
        match self.flow.download.is_unanswered() {
            true => Failure::Unanswered(kind, StatusCode::BAD_GATEWAY),
            false => Failure::Cut(kind),
        }
    }

    /// Ready when it took too long, or when the client has gone.
    #[inline]
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Failure> {
        self.flow.whole = None;
        // In this order, since the first may be due sooner.
        let is_gone = (self.flow.upload.stage() == Stage::Done
            && self.client.poll_gone(cx).is_ready())
            || self
                .client
                .clock
                .poll_slow_reader(cx, &self.client.state)
                .is_ready();
        if is_gone {
            return Poll::Ready(Failure::Gone(match self.flow.download.is_unanswered() {
                true => ForwardErrorKind::RequestCanceled,
                false => ForwardErrorKind::ResponseBodyCanceled,
            }));
        }
        if self.flow.upload.poll_too_slow(cx).is_ready() {
            return Poll::Ready(self.too_slow());
        }
        if std::mem::take(&mut self.flow.has_news) {
            self.flow.patience.last = Instant::now();
        }
        let is_unanswered = self.flow.download.is_unanswered();
        if !is_unanswered && self.flow.download.waits_for_client(&self.client.output) {
            // A client that does not take its response is the server's to notice.
            return Poll::Pending;
        }
        let idle = after(self.flow.patience.last, self.flow.patience.activity);
        let due = match self.flow.patience.head_due {
            Some(head) if is_unanswered => head.min(idle),
            _ => idle,
        };
        if self.client.clock.poll_due(cx, due).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(Failure::timed_out(self.flow.upload.stage(), is_unanswered))
    }

    #[cold]
    fn too_slow(&self) -> Failure {
        WorkerMetrics::add(&self.client.state.metrics().slow_clients);
        let kind = ForwardErrorKind::RequestBodyClient;
        match self.flow.download.is_unanswered() {
            true => Failure::Unanswered(kind, StatusCode::REQUEST_TIMEOUT),
            false => Failure::Cut(kind),
        }
    }
}
