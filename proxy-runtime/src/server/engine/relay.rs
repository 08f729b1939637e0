//! Bytes from client to destination and back, both directions at once as far as they must be. [`run`](super::run) polls it.

use std::task::{Context, Poll, ready};

use http::StatusCode;

use super::client_head::ForClient;
use super::download::Cut;
use super::failure::Failure;
use super::filtering::Filtering;
use super::flow::Flow;
use super::progress::Progress;
use super::request::Run;
use super::upload::Broken;
use crate::error::ForwardErrorKind;
use crate::http1::{OutgoingConnection, RawResponse};
use crate::observe::InFlightGuard;
use crate::progress::{End, Stage};
use crate::server::http1::{Client, Transport};
use crate::server::metrics::WorkerMetrics;
use crate::stream::{ByteStream, ReadBuffer};

/// One request and its response between two connections, while both are in use.
pub(super) struct Relay<'e, T: Transport, U> {
    pub(super) client: &'e mut Client<T>,
    pub(super) flow: &'e mut Flow,
    pub(super) run: &'e Run<'e>,
    /// The request in flight at its destination.
    pub(super) flight: &'e InFlightGuard,
    pub(super) filtering: &'e mut Filtering,
    /// The destination's connection, and what was read from it.
    pub(super) io: &'e mut U,
    pub(super) input: &'e mut ReadBuffer,
}

impl<T, U> Relay<'_, T, U>
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
        let polled = self.flow.download.poll_head(
            cx,
            (&mut self.client.io, &mut self.client.output),
            (&mut *self.io, &mut *self.input),
            &mut self.flow.table,
            self.run.plan,
            &mut self.flow.progress,
        );
        let begun = match polled {
            Poll::Ready(Ok(response)) => self.begin(&response),
            Poll::Ready(Err(cut)) => Err(cut),
            Poll::Pending => return self.poll_expired(cx).map(Err),
        };
        Poll::Ready(begun.map_err(|cut| self.failure(&cut)))
    }

    /// Makes the head for the client.
    #[inline]
    fn begin(&mut self, response: &RawResponse) -> Result<StatusCode, Cut> {
        let is_last =
            self.flow.is_last || self.flow.progress.is_stopped() || self.client.is_closing();
        let connection = match is_last {
            true => OutgoingConnection::Close,
            false => OutgoingConnection::Default,
        };
        let outgoing = ForClient {
            plan: self.run.plan,
            connection,
            shown: self.filtering.shown(self.run, &self.client.state.info),
        };
        let status = self.flow.download.begin(
            response,
            self.input,
            &mut self.flow.table,
            &mut self.client.output,
            outgoing,
        )?;
        self.flow.is_last = is_last;
        let upload = self.flow.upload.outbound.stage();
        self.flow.progress.answered(upload);
        Ok(status)
    }

    /// Passes the body on, and of the request what is left meanwhile; ready when the response is complete, with whether the
    /// request is as well.
    #[inline]
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Failure>> {
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
        Poll::Ready(Ok(self.flow.upload.outbound.stage() == Stage::Done))
    }

    /// Passes on what is left of a request whose client has its response. What becomes of it ends nothing but connections.
    pub(super) fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_upload(cx).is_ok() {
            if self.flow.upload.outbound.stage() == Stage::Done {
                return Poll::Ready(());
            }
            ready!(self.poll_expired(cx));
        }
        self.flow
            .stop_upload(Broken::Destination { is_unsent: false });
        Poll::Ready(())
    }

    /// The client has its response, though there is more of its request.
    #[cold]
    pub(super) fn answered_early(&mut self) {
        self.flow.count(self.flight, self.client.record.as_mut());
        if let Some(record) = &mut self.client.record {
            record.complete();
        }
    }

    #[inline]
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        match self.flow.upload.outbound.stage() {
            Stage::Done => Ok(()),
            _ => self.send(cx),
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
        let (end, why) = match *cut {
            Cut::Unanswered(end, why) => (end, why),
            Cut::Silence if self.flow.upload.outbound.is_kept() => return Failure::Stale,
            Cut::Silence => (End::Closed, "it closed without an answer"),
            Cut::Destination(why) => (End::Closed, why),
            Cut::Extension(status) => {
                let instead = StatusCode::INTERNAL_SERVER_ERROR;
                return Failure::Withheld(status, ForwardErrorKind::Extension, instead);
            }
            Cut::Broken(status) => {
                let (kind, instead) = End::BrokenBody.verdict(Stage::Done, true);
                return Failure::Withheld(status, kind, instead);
            }
            Cut::Client => return Failure::Gone(ForwardErrorKind::ResponseBodyCanceled),
        };
        tracing::debug!(target: crate::observe::targets::REQUEST, ?end, why, "the destination failed");
        let upload = self.flow.upload.outbound.stage();
        let is_unanswered = self.flow.download.is_unanswered();
        self.flow.progress.failure(end, upload, is_unanswered)
    }

    /// Ready when it took too long, or when the client has gone.
    #[inline]
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Failure> {
        self.flow.whole = None;
        self.flow.count(self.flight, self.client.record.as_mut());
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
                if let Some(record) = &mut self.client.record {
                    record.upload_is_too_slow();
                }
                let (end, upload) = (End::TooSlow, outbound.stage());
                let progress = &self.flow.progress;
                return Poll::Ready(progress.failure(end, upload, is_unanswered));
            }
        }
        let expired = self.client.clock.poll_due(cx, due);
        expired.map(|()| match is_untaken {
            true => Failure::Gone(ForwardErrorKind::ResponseBodyCanceled),
            false => self
                .flow
                .progress
                .timed_out(outbound.stage(), is_unanswered),
        })
    }
}
