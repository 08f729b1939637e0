//! The transfer of a request and its response: one state machine for both directions, which
//! [`forward`](super::forward) polls.

use std::task::{Context, Poll, ready};

use http::StatusCode;
use tokio::time::Instant;

use super::downstream::{Backpressure, Download, Downstream, ExchangeStateOf, FinalHead, Record};
use super::failure::{Failure, ResponseFailure, UploadFailure};
use super::filtering::Filtering;
use super::resolved_route::ResolvedRoute;
use crate::cluster::Picked;
use crate::error::{Cause, ForwardErrorKind};
use crate::http1::{Framing, RawResponse, RequestInfo, Status, parse_response};
use crate::progress::{End, Stage};
use crate::retry::Came;
use crate::upstream::{
    Http1Connection, MOST_INTERIM, SendError, is_late_rejection, response_limits,
};

/// The transfer of a request and its response over a destination's connection.
pub(crate) struct Relay<'e, D: Downstream> {
    pub(crate) down: &'e mut D,
    pub(crate) flow: &'e mut ExchangeStateOf<D>,
    pub(crate) route: &'e ResolvedRoute<'e>,
    /// The destination, with the counters of its requests in flight.
    pub(crate) picked: &'e Picked,
    pub(crate) filtering: &'e mut Filtering,
    pub(crate) connection: &'e mut Http1Connection,
}

impl<D: Downstream> Relay<'_, D> {
    /// Sends the request; ready when the head of the response is ready for the client.
    #[inline]
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<StatusCode, Failure>> {
        loop {
            if let Err(failure) = self.poll_upload(cx) {
                return Poll::Ready(Err(failure));
            }
            if let Poll::Ready(begun) = self.poll_final(cx) {
                return Poll::Ready(begun.map_err(|cut| self.failure(&cut)));
            }
            let expired = self.poll_expired(cx).map(|failure| self.expired(failure));
            // The body was held back until now.
            if expired.is_ready() || !self.flow.outbound.take_opened() {
                return expired.map(Err);
            }
        }
    }

    /// The failure of an exchange that has expired. While a filter waits, the destination has responded.
    #[cold]
    fn expired(&self, failure: Failure) -> Failure {
        match (failure, self.filtering.waits_with()) {
            (Failure::Unanswered(_, instead), Some(status)) => {
                Failure::Suppressed(status, ForwardErrorKind::Extension, instead)
            }
            (failure, _) => failure,
        }
    }

    /// Ready when the final response is prepared for the client. Interim responses are forwarded; the
    /// route's removals of response headers apply to them, too.
    #[inline]
    fn poll_final(&mut self, cx: &mut Context<'_>) -> Poll<Result<StatusCode, ResponseFailure>> {
        let limits = response_limits();
        let asked = RequestInfo {
            method: self.route.method,
            upgrade: self.down.switch().is_some(),
        };
        loop {
            // A client that does not take its interim responses stops the reading of more.
            ready!(self.down.poll_interim(cx, &mut self.flow.download))?;
            let Http1Connection { io, input, .. } = &mut *self.connection;
            if !input.is_empty() {
                let table = self.flow.download.table();
                match parse_response(input.filled(), asked, &limits, table) {
                    Ok(Status::Complete(response)) if response.is_interim() => {
                        self.pass_interim(&response)?;
                        continue;
                    }
                    Ok(Status::Complete(response)) => {
                        return self.poll_begin(cx, &response);
                    }
                    Ok(Status::Partial) => {}
                    Err(rejection) => {
                        tracing::debug!(target: crate::observe::targets::REQUEST, %rejection, "response rejected");
                        return Poll::Ready(Err(ResponseFailure::meaningless(
                            "its head has no one meaning",
                        )));
                    }
                }
            }
            match ready!(input.poll_read_head(io, cx, || self.down.taking())) {
                Ok(1..) => self.flow.progress.has_news = true,
                // With TLS 1.3, a destination rejects the client certificate after the handshake, at the first read.
                Err(error) if input.is_empty() && is_late_rejection(&error) => {
                    return Poll::Ready(Err(ResponseFailure::Untrusted));
                }
                // Without a byte of a response the request may be retried; after an interim response it may not.
                Ok(0) | Err(_) if input.is_empty() && self.flow.interim == 0 => {
                    return Poll::Ready(Err(self.silence()));
                }
                Ok(0) | Err(_) => {
                    return Poll::Ready(Err(ResponseFailure::Unanswered(
                        End::Closed,
                        "the connection was closed within the head",
                    )));
                }
            }
        }
    }

    /// Returns the failure of a connection that brought nothing.
    #[cold]
    fn silence(&self) -> ResponseFailure {
        let Some(failed) = self.connection.failed() else {
            return ResponseFailure::Silence;
        };
        match failed.came {
            Came::Nothing | Came::Unprocessed => ResponseFailure::Silence,
            Came::Something => {
                let end = match failed.error.is_malformed_response() {
                    true => End::Malformed,
                    false => End::Closed,
                };
                ResponseFailure::Unanswered(end, "its stream failed")
            }
        }
    }

    fn pass_interim(&mut self, response: &RawResponse) -> Result<(), ResponseFailure> {
        if response.framing() == Framing::Tunnel {
            // No switch was requested, so the following bytes have no meaning.
            return Err(ResponseFailure::meaningless("it switches protocols"));
        }
        self.flow.interim += 1;
        if self.flow.interim > MOST_INTERIM {
            return Err(ResponseFailure::meaningless(
                "it has too many interim responses",
            ));
        }
        let (download, input) = (&mut self.flow.download, &mut self.connection.input);
        self.down
            .pass_interim(response, download, input, self.route.plan)?;
        self.flow.progress.passed_interim(input);
        if response.status() == StatusCode::CONTINUE.as_u16() {
            self.flow.outbound.open_gate();
        }
        Ok(())
    }

    /// Ready when the final response is prepared for the client. Filters may wait with it.
    #[inline]
    fn poll_begin(
        &mut self,
        cx: &mut Context<'_>,
        response: &RawResponse,
    ) -> Poll<Result<StatusCode, ResponseFailure>> {
        let status = StatusCode::from_u16(response.status());
        let status = status.map_err(|_| ResponseFailure::meaningless("it has no status"))?;
        // Only an exchange that may switch can carry a tunnel.
        if response.framing() == Framing::Tunnel && self.down.switch().is_none() {
            return Poll::Ready(Err(ResponseFailure::meaningless("it switches protocols")));
        }
        let received = (
            self.connection.input.filled(),
            response,
            &*self.flow.download.table(),
        );
        let client = || self.down.connection();
        ready!(
            self.filtering
                .poll_response(cx, self.route, client, status, received)
        )?;
        let final_head = FinalHead {
            response,
            status,
            route: self.route,
            is_stopped: self.flow.progress.is_stopped(),
            picked: self.picked,
        };
        let download = &mut self.flow.download;
        self.down
            .begin_response(cx, final_head, download, self.connection, self.filtering)?;
        self.flow.progress.answered(self.flow.outbound.stage());
        if self.flow.outbound.is_gated() {
            self.answered_at_gate(status);
        }
        Poll::Ready(Ok(status))
    }

    /// Decides about a body that the destination has not asked for: with a success it reads the body.
    #[cold]
    fn answered_at_gate(&mut self, status: StatusCode) {
        if status.is_success() {
            self.flow.outbound.open_gate();
            return;
        }
        // The destination may still wait for the body. Only the end of its connection tells that none will come.
        self.down.stop_upload(&mut self.flow.upload);
        self.flow.outbound.end();
    }

    /// Forwards the response body, and the rest of the request; ready when the response is
    /// complete. Returns true if the request is complete, too.
    #[inline]
    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Failure>> {
        // The upload goes on while the response comes.
        if let Err(failure) = self.poll_upload(cx) {
            return Poll::Ready(Err(failure));
        }
        if !self.flow.download.is_done() {
            let has_news = &mut self.flow.progress.has_news;
            let download = &mut self.flow.download;
            match self
                .down
                .poll_response(cx, download, self.connection, has_news)
            {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(cut)) => return Poll::Ready(Err(self.failure(&cut))),
                Poll::Pending => return self.poll_expired(cx).map(Err),
            }
        }
        Poll::Ready(Ok(self.flow.outbound.stage() == Stage::Done))
    }

    /// Forwards the rest of a request after its response is complete. Failures only close
    /// connections.
    pub(crate) fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_upload(cx).is_ok() {
            if self.flow.outbound.stage() == Stage::Done {
                return Poll::Ready(());
            }
            if self.connection.poll_refused(cx).is_pending()
                && !matches!(ready!(self.poll_expired(cx)), Failure::Disconnected(_))
            {
                self.connection.give_up_upload();
            }
        }
        self.stop_upload(UploadFailure::Destination { is_unsent: false });
        Poll::Ready(())
    }

    /// Records that the response is complete before the request.
    #[cold]
    pub(crate) fn answered_early(&mut self) {
        self.flow.count(&self.picked.in_flight, self.down.record());
        if let Some(record) = self.down.record() {
            record.completed_early();
        }
    }

    #[inline]
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        match self.flow.outbound.stage() {
            Stage::Done => Ok(()),
            _ => self.send(cx),
        }
    }

    fn send(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        let Http1Connection { io, input, .. } = &mut *self.connection;
        let flow = &mut *self.flow;
        // A response before the end of the request forbids reuse, so it is looked for before each write.
        if flow.outbound.has_begun() && flow.download.is_unanswered() {
            flow.progress.look_ahead(input, io, cx);
        }
        let has_news = &mut flow.progress.has_news;
        let polled = self
            .down
            .poll_upload(cx, &mut flow.upload, &mut flow.outbound, io, has_news);
        match polled {
            Poll::Pending | Poll::Ready(Ok(())) => Ok(()),
            Poll::Ready(Err(broken)) => self.upload_broke(cx, broken),
        }
    }

    #[cold]
    fn upload_broke(&mut self, cx: &mut Context<'_>, broken: UploadFailure) -> Result<(), Failure> {
        let download = &mut self.flow.download;
        // A reset also breaks the upload, but it is a cancellation and no malformed body.
        if self.down.poll_reset(cx, download).is_ready() {
            return Err(self.disconnected(Cause::ClientGone));
        }
        if broken.is_malformed() {
            self.down.note_malformed();
        }
        let download = &self.flow.download;
        if let Some(failure) = broken.failure(download.is_unanswered(), download.is_done()) {
            return Err(failure);
        }
        self.stop_upload(broken);
        Ok(())
    }

    /// Ends the upload early, while the response continues.
    fn stop_upload(&mut self, broken: UploadFailure) {
        self.down.stop_upload(&mut self.flow.upload);
        self.flow.outbound.end();
        self.flow.progress.stop(broken);
    }

    /// Returns the failure for a client that has disconnected, or is disconnected for this cause.
    #[cold]
    fn disconnected(&mut self, cause: Cause) -> Failure {
        self.down.disconnected();
        let kind = match self.flow.download.is_unanswered() {
            true => ForwardErrorKind::RequestCanceled,
            false => ForwardErrorKind::ResponseBodyCanceled,
        };
        Failure::Disconnected(kind.because(cause))
    }

    #[cold]
    fn failure(&mut self, cut: &ResponseFailure) -> Failure {
        let (end, why) = match *cut {
            ResponseFailure::Unanswered(end, why) => (end, why),
            // The whole request is still in memory, so that another connection can send it.
            ResponseFailure::Silence if self.flow.outbound.is_kept() => return Failure::Stale,
            ResponseFailure::Silence => (End::Closed, "it closed without an answer"),
            ResponseFailure::Untrusted => return Failure::Untrusted,
            ResponseFailure::Destination(why) => (End::Closed, why),
            ResponseFailure::MalformedBody(why) => (End::BrokenBody, why),
            ResponseFailure::Extension(status) => {
                let instead = StatusCode::INTERNAL_SERVER_ERROR;
                return Failure::Suppressed(status, ForwardErrorKind::Extension, instead);
            }
            ResponseFailure::Trailers => return Failure::Truncated(ForwardErrorKind::Extension),
            // No byte went to the client, so it can still get an error.
            ResponseFailure::Disagreed(status) => {
                let (kind, instead) = End::Unrepresentable.verdict(Stage::Done, true);
                return Failure::Suppressed(status, kind, instead);
            }
            ResponseFailure::BrokenBody(status) => {
                let (kind, instead) = End::BrokenBody.verdict(Stage::Done, true);
                return Failure::Suppressed(status, kind, instead);
            }
            ResponseFailure::Client => return self.disconnected(Cause::ClientGone),
        };
        tracing::debug!(target: crate::observe::targets::REQUEST, ?end, why, "the destination failed");
        let upload = self.flow.outbound.stage();
        let is_unanswered = self.flow.download.is_unanswered();
        let failure = self.flow.progress.failure(end, upload, is_unanswered);
        let cause = self.connection.failed().and_then(SendError::cause);
        match (failure, cause) {
            // A stopped upload has a cause of its own already.
            (Failure::Unanswered(kind, status), Some(cause))
                if !self.flow.progress.is_stopped() =>
            {
                Failure::Unanswered(kind.because(cause), status)
            }
            (failure, _) => failure,
        }
    }

    /// Ready when a timeout has expired or the client has disconnected. Must be polled while the
    /// exchange waits.
    #[inline]
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Failure> {
        let flow = &mut *self.flow;
        // The exchange waits, so the response has not arrived as a whole.
        flow.whole = None;
        // The counters stay current while a long exchange waits.
        flow.count(&self.picked.in_flight, self.down.record());
        let has_sent_all = flow.outbound.stage() == Stage::Done;
        let gone = self
            .down
            .poll_disconnected(cx, &mut flow.download, has_sent_all);
        if let Poll::Ready(cause) = gone {
            return Poll::Ready(self.disconnected(cause));
        }
        flow.progress.note_news();
        if self
            .down
            .note_memory(cx, &mut flow.download, self.connection)
        {
            return Poll::Ready(Failure::Disconnected(
                ForwardErrorKind::ResponseBodyCanceled.because(Cause::ClientMemory),
            ));
        }
        let is_unanswered = flow.download.is_unanswered();
        let idle_due = flow.progress.due(is_unanswered);
        let limit = flow.progress.limit(is_unanswered);
        loop {
            let unacknowledged = self.down.backpressure(&mut flow.download);
            if unacknowledged != Backpressure::Nothing {
                flow.outbound.forget();
            }
            // A minimum data rate replaces the activity timeout of the cluster, but no timeout of the route.
            let due = match (unacknowledged, limit) {
                (Backpressure::Nothing | Backpressure::Idle, _) => idle_due,
                (Backpressure::Rate(due), None) => due,
                (Backpressure::Rate(due), Some(limit)) => due.min(limit),
                (Backpressure::Elsewhere | Backpressure::JustNow, None) => return Poll::Pending,
                (Backpressure::Elsewhere | Backpressure::JustNow, Some(limit)) => limit,
            };
            if let Some(gate_due) = flow.outbound.gate_due()
                && gate_due < due
            {
                ready!(self.down.poll_due(cx, gate_due));
                flow.outbound.open_gate();
                // `poll_head` sees the opened gate, and sends the body.
                return Poll::Pending;
            }
            if let Some(pace_due) = flow.outbound.pace_due()
                && pace_due < due
            {
                ready!(self.down.poll_due(cx, pace_due));
                if flow.outbound.is_too_slow() {
                    if let Some(record) = self.down.record() {
                        record.upload_is_too_slow();
                    }
                    let (end, upload) = (End::TooSlow, flow.outbound.stage());
                    return Poll::Ready(flow.progress.failure(end, upload, is_unanswered));
                }
                // A new window of the data rate has begun, so its deadline is another.
                continue;
            }
            ready!(self.down.poll_due(cx, due));
            if let Backpressure::Nothing | Backpressure::JustNow = unacknowledged {
                let upload = flow.outbound.stage();
                return Poll::Ready(flow.progress.timed_out(upload, is_unanswered));
            }
            // The timeout of the route ends the exchange even if the client reads fast enough.
            let pressure = match limit {
                Some(limit) if limit <= Instant::now() => Backpressure::Idle,
                _ => unacknowledged,
            };
            if self.down.gives_up(&mut flow.download, pressure) {
                return Poll::Ready(Failure::Disconnected(
                    ForwardErrorKind::ResponseBodyCanceled.because(Cause::ClientTooSlow),
                ));
            }
        }
    }
}
