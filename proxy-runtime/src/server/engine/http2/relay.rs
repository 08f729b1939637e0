//! A stream's request and response, both directions at once as far as they must be. [`run`](super::run) polls it.

use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::Reason;
use http::StatusCode;

use super::answer::{final_head, interim_head, is_grpc_response};
use super::download::{Gone, StreamDownload};
use super::small::take_whole;
use super::upload::StreamUpload;
use crate::error::ForwardErrorKind;
use crate::http1::{Asked, Framing, LentTable, RawResponse, Status, parse_response};
use crate::observe::InFlightGuard;
use crate::progress::{End, Stage};
use crate::server::connection::RequestRecord;
use crate::server::engine::failure::Failure;
use crate::server::engine::progress::Progress;
use crate::server::engine::upload::Broken;
use crate::server::http2::Client;
use crate::server::metrics::WorkerMetrics;
use crate::transform::HeadPlan;
use crate::upstream::{Http1Body, Http1Connection, MOST_INTERIM, response_limits as limits};

/// How far a stream's request and its response have come.
pub(super) struct StreamFlow {
    pub(super) upload: StreamUpload,
    pub(super) progress: Progress,
    asked: Asked,
    /// The fields of the response's head.
    table: LentTable,
    interim: u32,
    /// The response, once its head was sent.
    pub(super) download: Option<StreamDownload>,
}

impl StreamFlow {
    pub(super) fn new(upload: StreamUpload, asked: Asked, progress: Progress) -> Self {
        Self {
            upload,
            progress,
            asked,
            table: LentTable::default(),
            interim: 0,
            download: None,
        }
    }

    /// Begins anew over another connection.
    pub(super) fn again(&mut self) {
        self.upload.outbound.again();
        self.table.give_back();
        self.progress.again();
    }

    /// Counts what has moved since this was last done.
    pub(super) fn count(&mut self, flight: &InFlightGuard, record: &mut RequestRecord) {
        let sent = self.upload.outbound.take_uncounted();
        if sent > 0 {
            flight.sent(sent);
        }
        record.received = self.upload.outbound.received;
        if let Some(download) = &mut self.download {
            flight.received(download.take_uncounted());
            record.sent = download.sent;
        }
    }

    /// Whether the client has its whole response.
    pub(super) fn is_sent(&self) -> bool {
        self.download.as_ref().is_some_and(|down| down.is_sent)
    }
}

/// One request and its response between a stream and a connection, while both are in use.
pub(super) struct StreamRelay<'e> {
    pub(super) client: &'e mut Client,
    pub(super) flow: &'e mut StreamFlow,
    /// What the route does to heads.
    pub(super) plan: &'e HeadPlan,
    /// The request in flight at its destination.
    pub(super) flight: &'e InFlightGuard,
    pub(super) connection: &'e mut Http1Connection,
}

impl StreamRelay<'_> {
    /// Sends the request, and passes on the head of the response.
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<StatusCode, Failure>> {
        if let Err(failure) = self.poll_upload(cx) {
            return Poll::Ready(Err(failure));
        }
        loop {
            let input = &mut self.connection.input;
            if !input.is_empty() {
                let table = &mut self.flow.table;
                match parse_response(input.filled(), self.flow.asked, &limits(), table) {
                    Ok(Status::Complete(response)) if response.is_interim() => {
                        self.pass_interim(&response)?;
                        continue;
                    }
                    Ok(Status::Complete(response)) => {
                        let upload = self.flow.upload.outbound.stage();
                        self.flow.progress.answered(upload);
                        return Poll::Ready(self.begin(&response, cx));
                    }
                    Ok(Status::Partial) => {}
                    Err(refusal) => {
                        tracing::debug!(target: crate::observe::targets::REQUEST, %refusal, "response refused");
                        return Poll::Ready(Err(self.unanswered(End::Meaningless)));
                    }
                }
            }
            match self.connection.input.poll_read(&mut self.connection.io, cx) {
                Poll::Ready(Ok(1..)) => self.flow.progress.has_news = true,
                Poll::Ready(Ok(0) | Err(_)) if self.is_stale() => {
                    return Poll::Ready(Err(Failure::Stale));
                }
                Poll::Ready(Ok(0) | Err(_)) => {
                    return Poll::Ready(Err(self.unanswered(End::Closed)));
                }
                Poll::Pending => return self.poll_expired(cx).map(Err),
            }
        }
    }

    /// Passes the body on, and of the request what is left meanwhile; ready when the response is complete, with whether the
    /// request is as well.
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Failure>> {
        if let Err(failure) = self.poll_upload(cx) {
            return Poll::Ready(Err(failure));
        }
        if !self.flow.is_sent() {
            match self.poll_download(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                Poll::Pending => return self.poll_expired(cx).map(Err),
            }
        }
        Poll::Ready(Ok(self.flow.upload.outbound.stage() == Stage::Done))
    }

    /// Passes on what is left of a request whose client has its response. What becomes of it ends nothing else.
    pub(super) fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_upload(cx).is_ok() {
            if self.flow.upload.outbound.stage() == Stage::Done {
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
        self.flow.count(self.flight, &mut self.client.record);
        self.client.record.complete();
    }

    /// Whether the connection, which had been idle, was closed without a byte of a response to a request that may be sent twice.
    fn is_stale(&self) -> bool {
        self.flow.upload.outbound.is_kept()
            && self.flow.interim == 0
            && self.connection.input.is_empty()
    }

    fn pass_interim(&mut self, response: &RawResponse) -> Result<(), Failure> {
        self.flow.interim += 1;
        if self.flow.interim > MOST_INTERIM {
            return Err(self.unanswered(End::Meaningless));
        }
        let input = &mut self.connection.input;
        let head = input.take(response.head_length());
        self.flow.progress.passed_interim(input);
        let interim = interim_head(response, &head, &self.flow.table, self.plan);
        let sent = interim.map(|interim| self.client.respond.send_informational(interim));
        match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(self.gone(ForwardErrorKind::RequestCanceled)),
            None => Err(self.unanswered(End::Unsayable)),
        }
    }

    /// Passes the final head on, and looks at what came of the body: if nothing more does, that is all.
    fn begin(
        &mut self,
        response: &RawResponse,
        cx: &mut Context<'_>,
    ) -> Result<StatusCode, Failure> {
        if response.framing() == Framing::Tunnel {
            // Nobody asked for it, so nobody knows what follows.
            return Err(self.unanswered(End::Meaningless));
        }
        let table = std::mem::take(&mut self.flow.table);
        let input = &mut self.connection.input;
        let (text, content) = match take_whole(response, input) {
            Some(whole) => {
                let content = whole.slice(response.head_length()..);
                (whole, Some(content))
            }
            None => (input.take(response.head_length()), None),
        };
        let Some(head) = final_head(response, &text, &table, self.plan) else {
            return Err(self.unanswered(End::Unsayable));
        };
        let is_exempt = is_grpc_response(&head, &text, &table, self.plan);
        let mut download = match content {
            Some(content) => StreamDownload::of(Http1Body::read(response), content, is_exempt),
            None => {
                let body = Http1Body::received(response, table);
                let mut download = StreamDownload::of(body, Bytes::new(), is_exempt);
                // The client can still be told of a body that is broken from the start.
                if let Poll::Ready(Err(_)) = download.poll_read(self.connection, cx) {
                    let (kind, instead) = End::BrokenBody.verdict(Stage::Done, true);
                    return Err(Failure::Withheld(head.status(), kind, instead));
                }
                download
            }
        };
        let status = head.status();
        let is_end = download.has_all();
        let stream = self.client.respond.send_response(head, is_end);
        let stream = stream.map_err(|_| self.gone(ForwardErrorKind::RequestCanceled))?;
        download.begin(stream, is_end);
        self.flow.download = Some(download);
        Ok(status)
    }

    fn poll_download(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let Some(download) = &mut self.flow.download else {
            return Poll::Ready(Ok(()));
        };
        loop {
            let client = &self.client.record.connection;
            let before = download.sent;
            let sent = download.poll_send(client, cx);
            self.flow.progress.has_news |= download.sent != before;
            match sent {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(Gone)) => {
                    let kind = ForwardErrorKind::ResponseBodyCanceled;
                    return Poll::Ready(Err(self.gone(kind)));
                }
                Poll::Pending => {
                    download.waits_for(client);
                    return Poll::Pending;
                }
            }
            if download.is_sent {
                return Poll::Ready(Ok(()));
            }
            if ready!(download.poll_read(self.connection, cx)).is_err() {
                let upload = self.flow.upload.outbound.stage();
                let failure = self.flow.progress.failure(End::Closed, upload, false);
                return Poll::Ready(Err(failure));
            }
            self.flow.progress.has_news = true;
        }
    }

    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        if self.flow.upload.outbound.stage() == Stage::Done {
            return Ok(());
        }
        if self.flow.upload.outbound.has_begun() && self.flow.download.is_none() {
            let Http1Connection { io, input, .. } = &mut *self.connection;
            self.flow.progress.look_ahead(input, io, cx);
        }
        let polled = self.flow.upload.poll(
            cx,
            &mut self.client.body,
            &mut self.connection.io,
            &mut self.flow.progress.has_news,
        );
        match polled {
            Poll::Pending | Poll::Ready(Ok(())) => Ok(()),
            Poll::Ready(Err(broken)) => self.upload_broke(broken, cx),
        }
    }

    #[cold]
    fn upload_broke(&mut self, broken: Broken, cx: &mut Context<'_>) -> Result<(), Failure> {
        if let Poll::Ready(gone) = self.poll_gone(cx) {
            return Err(gone);
        }
        let is_unanswered = self.flow.download.is_none();
        match Progress::broke(&broken, is_unanswered, self.flow.is_sent()) {
            Some(failure) => Err(failure),
            None => {
                self.stop_upload(broken);
                Ok(())
            }
        }
    }

    /// Sends no more of the request, while its response goes on.
    fn stop_upload(&mut self, broken: Broken) {
        if self.client.body.is_some() {
            let client = &self.client.record.connection;
            client.unread.store(true, Relaxed);
        }
        self.flow.upload.stop(&mut self.client.body);
        self.flow.progress.stop(broken);
    }

    /// The client has reset the stream, or gone.
    fn gone(&mut self, kind: ForwardErrorKind) -> Failure {
        self.client.has_reset = true;
        Failure::Gone(kind)
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<Failure> {
        let (reset, kind) = match &mut self.flow.download {
            None => (
                self.client.respond.poll_reset(cx).map(drop),
                ForwardErrorKind::RequestCanceled,
            ),
            Some(download) => (
                download.poll_reset(cx),
                ForwardErrorKind::ResponseBodyCanceled,
            ),
        };
        reset.map(|()| self.gone(kind))
    }

    #[cold]
    fn unanswered(&self, end: End) -> Failure {
        let upload = self.flow.upload.outbound.stage();
        self.flow.progress.failure(end, upload, true)
    }

    /// Ready when it took too long, or when the client has gone.
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Failure> {
        self.flow.count(self.flight, &mut self.client.record);
        if let Poll::Ready(gone) = self.poll_gone(cx) {
            return Poll::Ready(gone);
        }
        let flow = &mut *self.flow;
        let is_unanswered = flow.download.is_none();
        flow.progress.note_news();
        let idle_due = flow.progress.due(is_unanswered);
        let outbound = &mut flow.upload.outbound;
        let mut untaken = flow.download.as_mut().filter(|down| down.has_data());
        loop {
            let room_due = untaken.as_mut().and_then(|down| down.room_due());
            let pace_due = outbound.pace_due();
            // A client of which a rate is asked is held to that alone.
            let due = room_due.unwrap_or(idle_due);
            let due = pace_due.map_or(due, |pace_due| pace_due.min(due));
            ready!(self.client.deadline.poll_due(due));
            if pace_due == Some(due) {
                if outbound.is_too_slow() {
                    self.client.record.upload_is_too_slow();
                    let (end, upload) = (End::TooSlow, outbound.stage());
                    return Poll::Ready(flow.progress.failure(end, upload, is_unanswered));
                }
                continue;
            }
            let Some(download) = &mut untaken else {
                let upload = outbound.stage();
                return Poll::Ready(flow.progress.timed_out(upload, is_unanswered));
            };
            let is_too_slow = room_due.is_some() && download.is_too_slow();
            if room_due.is_none() || is_too_slow {
                // It is the client that was waited for, be it that the cluster's clock says so.
                if is_too_slow {
                    let slow_clients = &self.client.record.connection.metrics().slow_clients;
                    WorkerMetrics::add(slow_clients);
                }
                download.cut(Reason::CANCEL);
                return Poll::Ready(Failure::Gone(ForwardErrorKind::ResponseBodyCanceled));
            }
        }
    }
}
