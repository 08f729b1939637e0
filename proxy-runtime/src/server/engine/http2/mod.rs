//! Clients of HTTP/2: streams of `h2`. Heads are maps, and the framing of bodies changes.
//!
//! ```text
//! map of `h2` ─▶ head serialised in HTTP/1.1, with the received part of the body ─▶ destination
//! client ◀─ HEADERS ◀─ one map of fields ◀─ head, parsed in place ◀─ destination
//! client ◀─ DATA, one frame per read ◀─ body without its framing ◀─ destination
//! ```
//!
//! A small response that arrives completely uses one block of memory ([`small`]).

mod client_head;
mod download;
mod small;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::thread::LocalKey;

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::request;
use http::response::Parts;
use http::{HeaderMap, Method as HttpMethod, Response, StatusCode, Version};
use tokio::time::Instant;

use self::client_head::{final_head, interim_head, is_grpc_response};
use self::download::{Begun, Disconnected, StreamDownload};
use self::small::take_whole;
use super::{Engine, Forwarded};
use crate::cluster::Picked;
use crate::connection::ConnectionInfo;
use crate::error::{Allowance, Cause};
use crate::exchange::Count;
use crate::filter::RequestEdit;
use crate::forward::body_kind_of;
use crate::forward::exchange::downstream::{
    Backpressure, Downstream, FinalHead, Flows, Headed, SentReply,
};
use crate::forward::exchange::failure::{ResponseFailure, UploadFailure};
use crate::forward::exchange::filtering::Filtering;
use crate::forward::exchange::frames_upload::{Allowed, Frames, FramesUpload};
use crate::forward::exchange::incoming::{Incoming, trailer_rules};
use crate::forward::exchange::outbound::Outbound;
use crate::forward::exchange::resolved_route::ResolvedRoute;
use crate::forward::exchange::{self};
use crate::forward::typed::{self, TypedRequest};
use crate::head::{HeaderMutations, HttpHead};
use crate::http1::{ClassSet, FieldClass, Framing, Method, RawResponse};
use crate::local_pool::LocalPool;
use crate::progress::{ClientReadTimeout, DataRate, End};
use crate::server::connection::{Held, RequestRecord, is_grpc_call};
use crate::server::http2::Unsent as NotTaken;
use crate::server::http2::{Room, StreamClient, StreamResponseContext, StreamSend, prepare_head};
use crate::server::metrics::WorkerMetrics;
use crate::stream::recycled::Taking;
use crate::stream::{ByteStream, ReadBuffer};
use crate::transform::{CompiledTransforms, Invalid};
use crate::upstream::Http1Connection;

/// A validated request, whose target is valid in HTTP/1.1, and its stream.
pub(crate) struct Http2Downstream<'c> {
    client: &'c mut StreamClient,
    head: HttpHead<'c>,
    method: Method,
    /// The framing of the body for a destination.
    framing: Framing,
}

impl<'c> Http2Downstream<'c> {
    /// Prepares a request for the byte path. Returns `None` if it must be one of the service on any
    /// route. `classes` are the classes of its header fields.
    pub(crate) fn new(
        parts: &'c request::Parts,
        classes: ClassSet,
        client: &'c mut StreamClient,
    ) -> Option<Self> {
        // Tunnels and `100 Continue` belong to the service.
        if parts.method == HttpMethod::CONNECT || classes.contains(FieldClass::Expect) {
            return None;
        }
        let head = HttpHead::with_classes(parts, *client.record.info(), classes);
        // The service rejects a head whose lengths contradict each other.
        let body = body_kind_of(&head, client.body.is_none()).ok()?;
        Some(Self {
            client,
            method: Method::of(head.method_value()),
            framing: typed::framing(&head, body),
            head,
        })
    }

    /// Forwards the request.
    ///
    /// Cancel-safe: if dropped, the request is cancelled at the destination.
    pub(crate) fn forward(self, engine: &Engine) -> impl Future<Output = Forwarded> {
        exchange::forward(self, engine.service(), engine.current())
    }

    /// Returns true for a gRPC call.
    fn is_call(&self) -> bool {
        is_grpc_call(self.head.method_value(), self.head.headers())
    }
}

impl<'c> Headed for Http2Downstream<'c> {
    type Head<'h>
        = HttpHead<'c>
    where
        Self: 'h;

    #[inline]
    fn head(&self) -> HttpHead<'c> {
        self.head
    }
}

impl<'c> Downstream for Http2Downstream<'c> {
    type SentHead = HttpHead<'c>;
    type Upload = FramesUpload;
    type Download = StreamDownload;
    type Record = RequestRecord;

    #[inline]
    fn method(&self) -> Method {
        self.method
    }

    #[inline]
    fn framing(&self) -> Framing {
        self.framing
    }

    #[inline]
    fn classes(&self) -> ClassSet {
        self.head.classes()
    }

    fn has_authority(&self) -> bool {
        !self.head.authority_str().is_empty()
    }

    fn sent_head(&self, _: &[u8]) -> Option<HttpHead<'c>> {
        Some(self.head)
    }

    #[inline]
    fn count(&self, started: Instant) -> Count {
        Count::new(self.head.method_value(), Version::HTTP_2, started)
    }

    fn show_request<R>(
        &self,
        edits: &mut HeaderMutations,
        show: impl FnOnce(&mut RequestEdit<'_>) -> R,
    ) -> R {
        show(&mut RequestEdit::of_http(self.head, edits))
    }

    #[inline]
    fn write_head(
        &self,
        head: &HttpHead<'c>,
        route: &ResolvedRoute<'_>,
        edits: Option<&HeaderMutations>,
        picked: &Picked,
    ) -> Result<Vec<u8>, Invalid> {
        let request = TypedRequest {
            head,
            route: route.route,
            plan: route.plan,
            framing: self.framing,
            remote: self.client.record.remote_value(),
        };
        request.written(edits, route.picked(picked))
    }

    fn skip_request(&mut self) -> bool {
        // Other requests have streams of their own.
        false
    }

    #[inline]
    fn connection(&self) -> ConnectionInfo {
        *self.client.record.info()
    }

    #[inline]
    fn body_limit(&self) -> Option<u64> {
        self.client.record.connection.worker.limits.body_bytes
    }

    #[inline]
    fn data_rate(&self) -> Option<DataRate> {
        self.client.record.connection.worker.limits.data_rate
    }

    #[cold]
    fn note_malformed(&self) {
        WorkerMetrics::add(&self.client.record.connection.metrics().malformed);
    }

    #[inline]
    fn record(&mut self) -> Option<&mut RequestRecord> {
        Some(&mut self.client.record)
    }

    async fn unless_gone<F: Future>(&mut self, _: bool, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            // Work first, so that a finished result is not lost to a reset.
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            self.client.respond.poll_reset(cx).map(|_| None)
        })
        .await
    }

    #[inline]
    fn taking(&self) -> Taking {
        self.client.record.connection.taking()
    }

    #[inline]
    fn poll_due(&mut self, _: &mut Context<'_>, due: Instant) -> Poll<()> {
        self.client.deadline.poll_due(due)
    }

    #[inline]
    fn poll_disconnected(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut StreamDownload,
        _: bool,
    ) -> Poll<Cause> {
        self.poll_reset(cx, download).map(|()| Cause::ClientGone)
    }

    fn poll_reset(&mut self, cx: &mut Context<'_>, download: &mut StreamDownload) -> Poll<()> {
        // After the head the sender of the stream is part of `begun`.
        match &mut download.begun {
            None => self.client.respond.poll_reset(cx).map(drop),
            Some(begun) => begun.poll_reset(cx),
        }
    }

    fn disconnected(&mut self) {
        self.client.has_reset = true;
    }

    #[inline]
    fn note_memory(
        &mut self,
        _: &mut Context<'_>,
        download: &mut StreamDownload,
        connection: &Http1Connection,
    ) -> bool {
        let begun = download.begun.as_ref();
        let unacknowledged = begun.map_or(0, Begun::waiting);
        // What waits behind a part counts only while the client does not take that part.
        let behind = match begun.is_some_and(Begun::waits_for_client) {
            false => 0,
            true => connection.behind() + connection.input.memory(),
        };
        let body = self.client.body.as_mut();
        // Data of the request that the destination has not taken.
        let unsent = body.map_or(0, |body| body.flow_control().used_capacity());
        let bytes = (unacknowledged + unsent) as u64 + behind;
        download.held.set(bytes, &self.client.record.connection);
        // The connection's task ends it.
        false
    }

    #[inline]
    fn begin_upload(
        &mut self,
        route: &ResolvedRoute<'_>,
        upload: &mut FramesUpload,
        _: &mut Outbound,
    ) -> Result<(), UploadFailure> {
        let limits = &self.client.record.connection.worker.limits;
        let allowed = Allowed {
            content: Allowance::new(Some(route.allowed(limits.body_bytes))),
            trailers: limits.header_fields,
        };
        *upload = FramesUpload::new(self.framing, self.client.body.is_some(), allowed);
        Ok(())
    }

    fn may_upload_slowly(&self) -> bool {
        // A call may stream its messages as slowly as it likes.
        self.is_call()
    }

    #[inline]
    fn poll_upload<U: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        upload: &mut FramesUpload,
        outbound: &mut Outbound,
        destination: &mut U,
        has_news: &mut bool,
    ) -> Poll<Result<(), UploadFailure>> {
        upload.poll(cx, &mut self.client.body, outbound, destination, has_news)
    }

    fn stop_upload(&mut self, upload: &mut FramesUpload) {
        // The client may still send, so the close of the connection must linger.
        if self.client.body.is_some() {
            self.client.record.connection.unread.store(true, Relaxed);
        }
        upload.stop(&mut self.client.body);
    }

    fn pass_interim(
        &mut self,
        response: &RawResponse,
        download: &mut StreamDownload,
        input: &mut ReadBuffer,
        plan: &CompiledTransforms,
    ) -> Result<(), ResponseFailure> {
        let head = input.take(response.head_length());
        let interim = interim_head(response, &head, &download.table, plan).ok_or(UNSAYABLE)?;
        let sent = self.client.respond.send_informational(interim);
        sent.map_err(|_| ResponseFailure::Client)
    }

    #[inline]
    fn poll_interim(
        &mut self,
        _: &mut Context<'_>,
        _: &mut StreamDownload,
    ) -> Poll<Result<(), ResponseFailure>> {
        Poll::Ready(Ok(()))
    }

    fn begin_response(
        &mut self,
        cx: &mut Context<'_>,
        begun: FinalHead<'_>,
        download: &mut StreamDownload,
        connection: &mut Http1Connection,
        filtering: &mut Filtering,
    ) -> Result<(), ResponseFailure> {
        let FinalHead {
            response,
            status,
            route,
            picked,
            ..
        } = begun;
        let table = std::mem::take(&mut download.table);
        let input = &mut connection.input;
        let (edits, own) = filtering.changes();
        // A small response in one piece needs a single block of memory.
        let (text, content) = match take_whole(response, input) {
            Some(whole) => {
                let content = whole.slice(response.head_length()..);
                (whole, Some(content))
            }
            None => (input.take(response.head_length()), None),
        };
        let mut head = final_head(response, &text, &table, route.plan, edits).ok_or(UNSAYABLE)?;
        if let Some(key) = route.new_key(picked) {
            key.apply_to(head.headers_mut());
        }
        let is_kept = edits.is_none() && route.plan.keeps_responses();
        let is_exempt = is_grpc_response(&head, &text, &table, is_kept);
        let rules = trailer_rules(self.method, status, route.plan, own);
        let response = (response, status);
        // Data that the client cannot take stays at the destination.
        let is_read = !connection.input.is_empty() || self.taking() != Taking::Nothing;
        let read = is_read.then_some(&mut *cx);
        let incoming = Incoming::begin(response, content, table, rules, connection, read)?;
        let mut begun = Begun::new(incoming, is_exempt);
        // Without content the head ends the stream.
        let is_end = begun.incoming.has_all();
        let stream = self.client.respond.send_response(head, is_end);
        begun.begin(stream.map_err(|_| ResponseFailure::Client)?, is_end);
        download.begun = Some(begun);
        Ok(())
    }

    #[inline]
    fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut StreamDownload,
        connection: &mut Http1Connection,
        has_news: &mut bool,
    ) -> Poll<Result<(), ResponseFailure>> {
        let Some(begun) = &mut download.begun else {
            return Poll::Ready(Ok(()));
        };
        loop {
            let client = &self.client.record.connection;
            let before = begun.sent;
            let sent = begun.poll_send(client, cx);
            // Progress restarts the activity timeout.
            *has_news |= begun.sent != before;
            match sent {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(Disconnected)) => return Poll::Ready(Err(ResponseFailure::Client)),
                Poll::Pending => {
                    begun.waits_for(client);
                    connection.input.rest();
                    return Poll::Pending;
                }
            }
            if begun.is_sent() {
                return Poll::Ready(Ok(()));
            }
            match begun.poll_taken(client, cx) {
                // The destination was not read meanwhile, so its activity timeout begins again.
                Poll::Ready(has_waited) => *has_news |= has_waited,
                Poll::Pending => {
                    begun.waits_for(client);
                    connection.input.rest();
                    return Poll::Pending;
                }
            }
            connection.input.limit(client.taking());
            ready!(begun.incoming.poll_read(connection, cx))?;
            *has_news = true;
        }
    }

    #[inline]
    fn backpressure(&self, download: &mut StreamDownload) -> Backpressure {
        let begun = download
            .begun
            .as_mut()
            .filter(|begun| begun.waits_for_client());
        match begun.map(Begun::room_due) {
            None => Backpressure::Nothing,
            Some(None) => Backpressure::Idle,
            Some(Some(due)) => Backpressure::Rate(due),
        }
    }

    #[cold]
    fn gives_up(&mut self, download: &mut StreamDownload, pressure: Backpressure) -> bool {
        let Some(begun) = &mut download.begun else {
            return true;
        };
        // Without a minimum rate the activity timeout has passed.
        if matches!(pressure, Backpressure::Rate(_)) {
            if !begun.is_too_slow() {
                return false;
            }
            WorkerMetrics::add(&self.client.record.connection.metrics().slow_clients);
        }
        begun.cut(Reason::CANCEL);
        true
    }

    fn cut(&mut self, download: &mut StreamDownload) {
        if let Some(begun) = &mut download.begun {
            // The client must see that the response is incomplete.
            begun.cut(Reason::INTERNAL_ERROR);
        }
    }

    #[inline]
    fn served(&mut self, _: &StreamDownload, _: bool, _: Instant) -> bool {
        true
    }

    #[cold]
    async fn send_reply(
        &mut self,
        mut head: Parts,
        text: Bytes,
        _: bool,
        read_timeout: Option<ClientReadTimeout>,
    ) -> Result<SentReply, Cause> {
        let response_context = StreamResponseContext {
            is_head: self.method == Method::Head,
            is_call: self.is_call(),
        };
        let length = text.len() as u64;
        let is_end = prepare_head(&mut head, response_context, Some(length), text.is_empty());
        let response = Response::from_parts(head, ());
        let Ok(mut stream) = self.client.respond.send_response(response, is_end) else {
            self.disconnected();
            return Err(Cause::ClientGone);
        };
        if is_end {
            return Ok(SentReply {
                sent: 0,
                keep: true,
            });
        }
        let mut waiting = StreamSend {
            connection: &self.client.record.connection,
            deadline: &self.client.deadline,
            room: Room::default(),
            held: Held::default(),
            behind: 0,
            is_exempt: false,
            read_timeout,
            until: None,
        };
        match waiting.send(&mut stream, text, true, |_| {}).await {
            Ok(()) => Ok(SentReply {
                sent: length,
                keep: true,
            }),
            Err(NotTaken::Disconnected) => {
                self.disconnected();
                Err(Cause::ClientGone)
            }
            Err(NotTaken::TooSlow) => Err(Cause::ClientTooSlow),
        }
    }

    #[inline]
    fn flows() -> &'static LocalKey<Flows<Self>> {
        thread_local! {
            static FLOWS: Flows<Http2Downstream<'static>> = const { LocalPool::new() };
        }
        &FLOWS
    }
}

impl Frames for RecvStream {
    #[inline]
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, UploadFailure>>> {
        Self::poll_data(self, cx).map_err(|_| BROKEN)
    }

    fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, UploadFailure>> {
        Self::poll_trailers(self, cx).map_err(|_| BROKEN)
    }

    #[inline]
    fn has_ended(&self) -> bool {
        self.is_end_stream()
    }

    #[inline]
    fn taken(&mut self, bytes: usize) {
        // It only fails for more than was received.
        let _ = self.flow_control().release_capacity(bytes);
    }
}

/// The failure after the client has reset the stream.
const BROKEN: UploadFailure = UploadFailure::client(StatusCode::BAD_REQUEST);

/// A response head that HTTP/2 cannot represent.
const UNSAYABLE: ResponseFailure =
    ResponseFailure::Unanswered(End::Unrepresentable, "its head cannot be said in HTTP/2");
