//! One request and its response, both directions at once as far as they must be. [`exchange`](super::exchange) polls it.

use std::task::{Context, Poll, ready};

use http::StatusCode;

use super::downstream::{Download, Downstream, FinalHead, FlowOf, Untaken};
use super::failure::{Broken, Cut, Failure};
use super::filtering::Filtering;
use super::resolved_route::ResolvedRoute;
use crate::error::ForwardErrorKind;
use crate::http1::{Asked, Framing, RawResponse, Status, parse_response};
use crate::observe::InFlightGuard;
use crate::progress::{End, Stage};
use crate::server::metrics::WorkerMetrics;
use crate::upstream::{Http1Connection, MOST_INTERIM, response_limits};

/// One request and its response between a client and a destination's connection, while both are in use.
pub(super) struct Relay<'e, D: Downstream> {
    pub(super) down: &'e mut D,
    pub(super) flow: &'e mut FlowOf<D>,
    pub(super) route: &'e ResolvedRoute<'e>,
    /// The request in flight at its destination.
    pub(super) flight: &'e InFlightGuard,
    pub(super) filtering: &'e mut Filtering,
    pub(super) connection: &'e mut Http1Connection,
}

impl<D: Downstream> Relay<'_, D> {
    /// Sends the request, and waits until the head of the response is ready for the client.
    #[inline]
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<StatusCode, Failure>> {
        if let Err(failure) = self.poll_upload(cx) {
            return Poll::Ready(Err(failure));
        }
        let begun = match self.poll_final(cx) {
            Poll::Ready(Ok(response)) => self.begin(cx, &response),
            Poll::Ready(Err(cut)) => Err(cut),
            Poll::Pending => return self.poll_expired(cx).map(Err),
        };
        Poll::Ready(begun.map_err(|cut| self.failure(&cut)))
    }

    /// Waits for the head of the final response, which is at the front of the connection's input then. Interim responses are passed
    /// on meanwhile, with what the route takes away from responses taken away from them as well.
    #[inline]
    fn poll_final(&mut self, cx: &mut Context<'_>) -> Poll<Result<RawResponse, Cut>> {
        let limits = response_limits();
        let asked = Asked {
            method: self.route.method,
            upgrade: false,
        };
        loop {
            ready!(self.down.poll_interim(cx, &mut self.flow.download))?;
            let Http1Connection { io, input, .. } = &mut *self.connection;
            if !input.is_empty() {
                let table = self.flow.download.table();
                match parse_response(input.filled(), asked, &limits, table) {
                    Ok(Status::Complete(response)) if response.is_interim() => {
                        self.pass_interim(&response)?;
                        continue;
                    }
                    Ok(Status::Complete(response)) => return Poll::Ready(Ok(response)),
                    Ok(Status::Partial) => {}
                    Err(refusal) => {
                        tracing::debug!(target: crate::observe::targets::REQUEST, %refusal, "response refused");
                        return Poll::Ready(Err(Cut::meaningless("its head has no one meaning")));
                    }
                }
            }
            match ready!(input.poll_read(io, cx)) {
                Ok(1..) => self.flow.progress.has_news = true,
                Ok(0) | Err(_) if input.is_empty() && self.flow.interim == 0 => {
                    return Poll::Ready(Err(Cut::Silence));
                }
                Ok(0) | Err(_) => {
                    return Poll::Ready(Err(Cut::Unanswered(
                        End::Closed,
                        "the connection was closed within the head",
                    )));
                }
            }
        }
    }

    fn pass_interim(&mut self, response: &RawResponse) -> Result<(), Cut> {
        if response.framing() == Framing::Tunnel {
            // Nobody asked for it, so nobody knows what follows.
            return Err(Cut::meaningless("it switches protocols"));
        }
        self.flow.interim += 1;
        if self.flow.interim > MOST_INTERIM {
            return Err(Cut::meaningless("it has too many interim responses"));
        }
        let (download, input) = (&mut self.flow.download, &mut self.connection.input);
        self.down
            .pass_interim(response, download, input, self.route.plan)?;
        self.flow.progress.passed_interim(input);
        Ok(())
    }

    /// Makes the head for the client.
    #[inline]
    fn begin(&mut self, cx: &mut Context<'_>, response: &RawResponse) -> Result<StatusCode, Cut> {
        let status = StatusCode::from_u16(response.status());
        let status = status.map_err(|_| Cut::meaningless("it has no status"))?;
        if response.framing() == Framing::Tunnel {
            return Err(Cut::meaningless("it switches protocols"));
        }
        let final_head = FinalHead {
            response,
            status,
            route: self.route,
            is_stopped: self.flow.progress.is_stopped(),
        };
        let download = &mut self.flow.download;
        self.down
            .begin_response(cx, final_head, download, self.connection, self.filtering)?;
        self.flow.progress.answered(self.flow.outbound.stage());
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

    /// Passes on what is left of a request whose client has its response. What becomes of it ends nothing but connections.
    pub(super) fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_upload(cx).is_ok() {
            if self.flow.outbound.stage() == Stage::Done {
                return Poll::Ready(());
            }
            ready!(self.poll_expired(cx));
        }
        self.stop_upload(Broken::Destination { is_unsent: false });
        Poll::Ready(())
    }

    /// The client has its response, though there is more of its request.
    #[cold]
    pub(super) fn answered_early(&mut self) {
        self.flow.count(self.flight, self.down.record());
        if let Some(record) = self.down.record() {
            record.complete();
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
    fn upload_broke(&mut self, cx: &mut Context<'_>, broken: Broken) -> Result<(), Failure> {
        let download = &mut self.flow.download;
        if self.down.poll_reset(cx, download).is_ready() {
            return Err(self.gone());
        }
        if broken.is_malformed() {
            WorkerMetrics::add(&self.down.state().metrics().malformed);
        }
        let download = &self.flow.download;
        if let Some(failure) = broken.failure(download.is_unanswered(), download.is_done()) {
            return Err(failure);
        }
        self.stop_upload(broken);
        Ok(())
    }

    /// Sends no more of the request, while its response goes on.
    fn stop_upload(&mut self, broken: Broken) {
        self.down.stop_upload(&mut self.flow.upload);
        self.flow.outbound.end();
        self.flow.progress.stop(broken);
    }

    /// The client has gone.
    #[cold]
    fn gone(&mut self) -> Failure {
        self.down.gone();
        Failure::Gone(match self.flow.download.is_unanswered() {
            true => ForwardErrorKind::RequestCanceled,
            false => ForwardErrorKind::ResponseBodyCanceled,
        })
    }

    #[cold]
    fn failure(&mut self, cut: &Cut) -> Failure {
        let (end, why) = match *cut {
            Cut::Unanswered(end, why) => (end, why),
            Cut::Silence if self.flow.outbound.is_kept() => return Failure::Stale,
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
            Cut::Client => return self.gone(),
        };
        tracing::debug!(target: crate::observe::targets::REQUEST, ?end, why, "the destination failed");
        let upload = self.flow.outbound.stage();
        let is_unanswered = self.flow.download.is_unanswered();
        self.flow.progress.failure(end, upload, is_unanswered)
    }

    /// Ready when it took too long, or when the client has gone.
    #[inline]
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Failure> {
        let flow = &mut *self.flow;
        flow.whole = None;
        flow.count(self.flight, self.down.record());
        let has_sent_all = flow.outbound.stage() == Stage::Done;
        let gone = self.down.poll_gone(cx, &mut flow.download, has_sent_all);
        if gone.is_ready() {
            return Poll::Ready(self.gone());
        }
        flow.progress.note_news();
        let input = &self.connection.input;
        if self.down.hold(cx, &mut flow.download, input) {
            return Poll::Ready(Failure::Gone(ForwardErrorKind::ResponseBodyCanceled));
        }
        let is_unanswered = flow.download.is_unanswered();
        let idle_due = flow.progress.due(is_unanswered);
        loop {
            let untaken = self.down.untaken(&mut flow.download);
            // A client of which a rate is asked is held to that alone.
            let due = match untaken {
                Untaken::Nothing | Untaken::Idle => idle_due,
                Untaken::Rate(due) => due,
                Untaken::Elsewhere => return Poll::Pending,
            };
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
                continue;
            }
            ready!(self.down.poll_due(cx, due));
            if untaken == Untaken::Nothing {
                let upload = flow.outbound.stage();
                return Poll::Ready(flow.progress.timed_out(upload, is_unanswered));
            }
            if self.down.is_given_up(&mut flow.download, untaken) {
                return Poll::Ready(Failure::Gone(ForwardErrorKind::ResponseBodyCanceled));
            }
        }
    }
}
