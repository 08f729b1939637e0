//! One request and its response, both directions at once as far as they must be.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::body::Body;
use super::client_head::ForClient;
use super::download::{Cut, Download};
use super::failure::Failure;
use super::filtering::Filtering;
use super::plan::HeadPlan;
use super::progress::{Patience, Progress};
use super::request::Run;
use super::upload::{Broken, Stage, Upload};
use crate::forward::ForwardErrorKind;
use crate::http1::{Asked, HeadLimits, HeadTable, OutgoingConnection};
use crate::observe::Sample;
use crate::server::http1::{Client, Transport};
use crate::server::metrics::WorkerMetrics;
use crate::stream::{ByteStream, ReadBuffer};

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
    /// Whether the client's connection closes after this response, which it is told.
    pub(super) is_last: bool,
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
        self.progress = Progress::new(patience);
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

    /// Sends no more of the request, while its response goes on.
    fn stop_upload(&mut self, broken: Broken) {
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
            progress: Progress::new(Patience {
                head_due: None,
                activity: Duration::MAX,
                last: Instant::now(),
            }),
            limits: HeadLimits::default(),
            is_last: false,
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
        let is_last =
            self.flow.is_last || self.flow.progress.is_stopped() || self.client.is_closing();
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
            &mut self.flow.progress,
        );
        match polled {
            Poll::Ready(Ok(status)) => {
                self.flow.is_last = is_last;
                let upload = self.flow.upload.outbound.stage();
                self.flow.progress.answered(upload);
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
                &mut self.flow.progress.has_news,
            );
            match polled {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(cut)) => return Poll::Ready(Err(self.failure(&cut))),
                Poll::Pending => return self.poll_expired(cx).map(Err),
            }
        }
        if self.flow.upload.outbound.stage() == Stage::Done {
            return Poll::Ready(Ok(()));
        }
        // The client has its response. What becomes of the rest of its request ends nothing but its connection.
        self.poll_expired(cx).map(|_| {
            self.flow
                .stop_upload(Broken::Destination { is_unsent: false });
            Ok(())
        })
    }

    #[inline]
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        match self.flow.upload.outbound.stage() {
            Stage::Done => Ok(()),
            Stage::Client | Stage::Destination => self.send(cx),
        }
    }

    fn send(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        if self.flow.upload.outbound.has_begun() && self.flow.download.is_unanswered() {
            self.flow.progress.look_ahead(self.input, self.io, cx);
        }
        let polled = self.flow.upload.poll(
            cx,
            (&mut self.client.io, &mut self.client.input),
            &mut *self.io,
            &self.flow.limits,
            &mut self.client.table,
            &mut self.flow.progress.has_news,
        );
        match polled {
            Poll::Pending | Poll::Ready(Ok(())) => Ok(()),
            Poll::Ready(Err(broken)) => self.upload_broke(broken),
        }
    }

    #[cold]
    fn upload_broke(&mut self, broken: Broken) -> Result<(), Failure> {
        if broken.is_malformed() {
            WorkerMetrics::add(&self.client.state.metrics().malformed);
        }
        let download = &self.flow.download;
        let failure = Progress::broke(&broken, download.is_unanswered(), download.is_done());
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.flow.stop_upload(broken);
        Ok(())
    }

    #[cold]
    fn failure(&self, cut: &Cut) -> Failure {
        let (kind, why) = match *cut {
            Cut::Unanswered(kind, why) => (kind, why),
            Cut::Silence if self.flow.upload.outbound.is_kept() => return Failure::Stale,
            Cut::Silence => (ForwardErrorKind::Request, "it closed without an answer"),
            Cut::Destination(why) => (ForwardErrorKind::ResponseBodyDestination, why),
            Cut::Extension(status) => return Failure::Extension(status),
            Cut::Client => return Failure::Gone(ForwardErrorKind::ResponseBodyCanceled),
        };
        tracing::debug!(target: crate::observe::targets::REQUEST, error = kind.as_str(), why, "the destination failed");
        let kind = self.flow.progress.cause(kind);
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
        let is_gone = (self.flow.upload.outbound.stage() == Stage::Done
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
        let is_unanswered = self.flow.download.is_unanswered();
        self.flow.progress.note_news();
        let has_rate = self.client.state.worker.limits.data_rate.is_some();
        let is_untaken = !is_unanswered && self.flow.download.waits_for_client(&self.client.output);
        if is_untaken && has_rate {
            // A client that does not take its response is the server's to notice.
            return Poll::Pending;
        }
        let due = self.flow.progress.due(is_unanswered);
        let outbound = &mut self.flow.upload.outbound;
        while let Some(pace_due) = outbound.pace_due().filter(|pace_due| *pace_due < due) {
            ready!(self.client.clock.poll_due(cx, pace_due));
            if outbound.is_too_slow() {
                WorkerMetrics::add(&self.client.state.metrics().slow_clients);
                return Poll::Ready(Failure::too_slow(is_unanswered));
            }
        }
        let expired = self.client.clock.poll_due(cx, due);
        expired.map(|()| match is_untaken {
            true => Failure::Gone(ForwardErrorKind::ResponseBodyCanceled),
            false => Failure::timed_out(outbound.stage(), is_unanswered),
        })
    }
}
