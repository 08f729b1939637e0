//! Callers of the tower service: heads are `http` types, and bodies come in frames.
//!
//! ```text
//! http::Request ─▶ head serialised in HTTP/1.1, with the received part of the body ─▶ destination
//! http::Response ◀─ Slot ◀─ one map of fields, and frames of the body ◀─ destination
//! ```
//!
//! The exchange is polled by the future of the response, and then by its body
//! ([`Exchange`](crate::response::Exchange)).

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread::LocalKey;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT};
use http::request;
use http::response::Parts;
use http::{Response, StatusCode};
use hyper::ext::ReasonPhrase;
use proxy_model::RequestHead;
use proxy_model::compiled::RouteIndex;
use tokio::time::Instant;

use super::body_frames::BodyFrames;
use super::exchange::downstream::{
    Backpressure, Downstream, FinalHead, Flows, Headed, Record, SentReply,
};
use super::exchange::failure::{ResponseFailure, UploadFailure};
use super::exchange::filtering::Filtering;
use super::exchange::frames_upload::{Allowed, FramesUpload};
use super::exchange::incoming::{Incoming, trailer_rules};
use super::exchange::outbound::Outbound;
use super::exchange::readdress::SentHead;
use super::exchange::resolved_route::{Chosen, ResolvedRoute};
use super::recycled::{self, Kind};
use super::service_download::{Hold, ServiceDownload};
use super::switch::SwitchRequest;
use super::typed::{TypedRequest, final_head};
use super::upgrade::UpgradedClient;

use crate::cluster::Picked;
use crate::connection::ConnectionInfo;
use crate::error::{Allowance, Cause, ForwardErrorKind};
use crate::exchange::Count;
use crate::filter::RequestEdit;
use crate::head::{AddressText, HeaderMutations, HttpHead, headers};
use crate::http1::{ClassSet, FieldClass, FieldValue, Framing, HeadTable, Method, RawResponse};
use crate::local_pool::LocalPool;
use crate::progress::alarm::{self, Ticket};
use crate::progress::{ClientReadTimeout, DataRate, End, after};
use crate::proxy::ProxyService;
use crate::response::{ExchangeInfo, LayerAttempts, ResponseSlot};
use crate::state::Generation;
use crate::stream::recycled::{Taking, taking};
use crate::stream::{ByteStream, ReadBuffer};
use crate::transform::{CompiledTransforms, Invalid};
use crate::upstream::{Http1Connection, Protocols};

/// The largest response that is copied as a whole: head and body then share one block of memory.
const WHOLE: usize = 8 * 1024 - 1;

/// Number of fields reserved for layers: a layer or two rarely add more, so the map need not grow.
const ADDED: usize = 3;

/// A request of a tower service, and its caller.
pub(super) struct ServiceDownstream {
    // Owned: a future that holds a `Downstream` with a lifetime is not `Send` as far as the compiler knows.
    pub(super) parts: request::Parts,
    pub(super) classes: ClassSet,
    /// The client's method.
    pub(super) method: Method,
    /// The framing of the body for a destination.
    pub(super) framing: Framing,
    pub(super) body: Option<BodyFrames>,
    pub(super) chosen: Chosen,
    /// The switch of protocols that the request wishes for.
    pub(super) switch: Option<Box<SwitchRequest>>,
    /// The time from which the route's `Timeout` counts, if it is not the beginning of the exchange.
    pub(super) arrived: Option<Instant>,
    pub(super) record: ServiceRecord,
    /// The ticket for the timer of the task that polls the exchange.
    pub(super) ticket: Ticket,
}

/// The response for the caller, and the record of attempts that its layers made.
pub(super) struct ServiceRecord {
    pub(super) slot: Arc<ResponseSlot>,
    pub(super) attempts: Option<Arc<LayerAttempts>>,
}

impl Drop for ServiceDownstream {
    fn drop(&mut self) {
        // The thread's next request reuses the memory of both maps.
        let fields = std::mem::take(&mut self.parts.headers);
        let extensions = std::mem::take(&mut self.parts.extensions);
        recycled::release(Kind::Request, fields, extensions);
    }
}

impl Record for ServiceRecord {
    fn wants_info(&self) -> bool {
        true
    }

    fn answered(&mut self, _: StatusCode, info: ExchangeInfo) {
        if let Some(attempts) = &self.attempts {
            attempts.note(info.clone());
        }
        self.slot.put_info(info);
    }

    fn moved(&mut self, _: u64, _: u64) {}

    fn completed(&mut self) {
        self.slot.end(Ok(()));
    }

    fn completed_early(&mut self) {
        self.slot.end(Ok(()));
    }

    fn replied(&mut self, _: u64) {
        self.slot.end(Ok(()));
    }

    fn failed(&mut self, kind: ForwardErrorKind) {
        if let Some(attempts) = &self.attempts {
            attempts.cut(kind);
        }
        self.slot.end(Err(kind));
    }

    fn tunnel_ended(&mut self, error: Option<ForwardErrorKind>) {
        if let Some(attempts) = &self.attempts {
            attempts.end_tunnel(error);
        }
    }

    // The server around the service has the limits, and counts what exceeds them.

    fn upload_is_too_slow(&mut self) {}

    fn body_rejected(&mut self, _: StatusCode, _: u64) {}
}

impl Headed for ServiceDownstream {
    type Head<'h>
        = HttpHead<'h>
    where
        Self: 'h;

    fn head(&self) -> HttpHead<'_> {
        HttpHead::of_classes(&self.parts, self.classes)
    }
}

impl Downstream for ServiceDownstream {
    type SentHead = SentHead;
    type Upload = FramesUpload;
    type Download = ServiceDownload;
    type Record = ServiceRecord;

    fn method(&self) -> Method {
        self.method
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn classes(&self) -> ClassSet {
        self.classes
    }

    fn has_authority(&self) -> bool {
        !self.head().authority_str().is_empty()
    }

    fn sent_head(&self, text: &[u8]) -> Option<SentHead> {
        let head = self.head();
        let connection = ConnectionInfo {
            tls: head.is_https(),
            ..head.connection()
        };
        SentHead::read(text, connection)
    }

    fn count(&self, started: Instant) -> Count {
        Count::new(&self.parts.method, self.parts.version, started)
    }

    fn show_request<R>(
        &self,
        edits: &mut HeaderMutations,
        show: impl FnOnce(&mut RequestEdit<'_>) -> R,
    ) -> R {
        show(&mut RequestEdit::of_http(self.head(), edits))
    }

    fn write_head(
        &self,
        head: &HttpHead<'_>,
        route: &ResolvedRoute<'_>,
        edits: Option<&HeaderMutations>,
        picked: &Picked,
    ) -> Result<Vec<u8>, Invalid> {
        let remote = head.connection().remote;
        let remote = remote.map(|remote| AddressText::new(remote.ip()));
        let request = TypedRequest {
            head,
            route: route.route,
            plan: route.plan,
            framing: self.framing,
            remote: remote
                .as_ref()
                .and_then(|remote| FieldValue::new(remote.as_bytes())),
        };
        let mut out = request.written(edits, route.picked(picked))?;
        if let Some(switch) = &self.switch {
            switch.handshake.ask(&mut out);
        }
        Ok(out)
    }

    fn route<'g>(
        &self,
        service: &'g ProxyService,
        generation: &'g Generation,
    ) -> Result<ResolvedRoute<'g>, Option<RouteIndex>> {
        Ok(ResolvedRoute::of_chosen(service, generation, self.chosen))
    }

    fn switch(&self) -> Option<Protocols> {
        let switch = self.switch.as_ref()?;
        Some(switch.handshake.protocols())
    }

    fn has_switched(&self) -> bool {
        let switch = self.switch.as_ref();
        switch.is_some_and(|switch| switch.is_agreed)
    }

    fn take_tunnel(&mut self) -> Option<UpgradedClient> {
        let switch = self.switch.as_mut().filter(|switch| switch.is_agreed)?;
        switch.client.take()
    }

    fn arrived(&self) -> Option<Instant> {
        self.arrived
    }

    fn attempts(&self) -> Option<&LayerAttempts> {
        self.record.attempts.as_deref()
    }

    fn hold(&self, edits: &mut HeaderMutations) {
        self.record.slot.hold(edits.take_held());
    }

    fn skip_request(&mut self) -> bool {
        false
    }

    fn connection(&self) -> ConnectionInfo {
        self.parts.extensions.get().copied().unwrap_or_default()
    }

    // The server around the service has limits of its own, and sees its clients leave: then it drops the exchange.

    fn body_limit(&self) -> Option<u64> {
        None
    }

    fn data_rate(&self) -> Option<DataRate> {
        None
    }

    fn note_malformed(&self) {}

    fn record(&mut self) -> Option<&mut ServiceRecord> {
        Some(&mut self.record)
    }

    async fn unless_gone<F: Future>(&mut self, _: bool, work: F) -> Option<F::Output> {
        // A caller that leaves drops the future of the response, and this one with it.
        Some(work.await)
    }

    fn taking(&self) -> Taking {
        taking()
    }

    fn poll_due(&mut self, cx: &mut Context<'_>, due: Instant) -> Poll<()> {
        let is_first = !self.ticket.is_used();
        let is_asked = alarm::ask(cx, &mut self.ticket, due);
        // That it is due already is seen when it is polled for that.
        if !(is_asked && is_first) && due <= Instant::now() {
            return Poll::Ready(());
        }
        if !is_asked {
            self.record.slot.wake_at(due);
        }
        Poll::Pending
    }

    fn poll_disconnected(
        &mut self,
        _: &mut Context<'_>,
        _: &mut ServiceDownload,
        _: bool,
    ) -> Poll<Cause> {
        Poll::Pending
    }

    fn poll_reset(&mut self, _: &mut Context<'_>, _: &mut ServiceDownload) -> Poll<()> {
        Poll::Pending
    }

    fn disconnected(&mut self) {}

    fn note_memory(
        &mut self,
        _: &mut Context<'_>,
        _: &mut ServiceDownload,
        _: &Http1Connection,
    ) -> bool {
        false
    }

    fn begin_upload(
        &mut self,
        route: &ResolvedRoute<'_>,
        upload: &mut FramesUpload,
        outbound: &mut Outbound,
    ) -> Result<(), UploadFailure> {
        // The destination would wait for a body that the caller has announced and does not have.
        if self.body.is_none() && matches!(self.framing, Framing::Length(1..)) {
            return Err(UploadFailure::client(StatusCode::BAD_REQUEST));
        }
        let allowed = Allowed {
            content: Allowance::new(Some(route.allowed(None))),
            trailers: usize::MAX,
        };
        *upload = FramesUpload::new(self.framing, self.body.is_some(), allowed);
        // The destination gets the `Expect` as well, so the body waits as its client would (RFC 9110 section 10.1.1).
        if self.classes.contains(FieldClass::Expect)
            && self.body.is_some()
            && headers::has_token(&self.parts.headers, &EXPECT, "100-continue")
        {
            let patience = route.service.pool().options().continue_timeout;
            outbound.wait_for_continue(after(Instant::now(), patience));
        }
        Ok(())
    }

    fn may_upload_slowly(&self) -> bool {
        true
    }

    fn poll_upload<U: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        upload: &mut FramesUpload,
        outbound: &mut Outbound,
        destination: &mut U,
        has_news: &mut bool,
    ) -> Poll<Result<(), UploadFailure>> {
        upload.poll(cx, &mut self.body, outbound, destination, has_news)
    }

    fn stop_upload(&mut self, upload: &mut FramesUpload) {
        upload.stop(&mut self.body);
    }

    /// Drops it: an `http::Response` is the final one, and has no place for others. User agents may ignore interim
    /// responses (RFC 9110 section 15.2), so they may not depend on them.
    fn pass_interim(
        &mut self,
        response: &RawResponse,
        _: &mut ServiceDownload,
        input: &mut ReadBuffer,
        _: &CompiledTransforms,
    ) -> Result<(), ResponseFailure> {
        // An `http::Response` has no place for interim ones.
        input.consume(response.head_length());
        Ok(())
    }

    fn poll_interim(
        &mut self,
        _: &mut Context<'_>,
        _: &mut ServiceDownload,
    ) -> Poll<Result<(), ResponseFailure>> {
        Poll::Ready(Ok(()))
    }

    fn begin_response(
        &mut self,
        cx: &mut Context<'_>,
        final_head: FinalHead<'_>,
        download: &mut ServiceDownload,
        connection: &mut Http1Connection,
        filtering: &mut Filtering,
    ) -> Result<(), ResponseFailure> {
        let FinalHead {
            response,
            status,
            route,
            picked,
            ..
        } = final_head;
        let table = std::mem::take(&mut download.table);
        let input = &mut connection.input;
        let (edits, own) = filtering.changes();
        let whole = whole(response, input.filled().len());
        let text = input.take_head(whole.unwrap_or_else(|| response.head_length()));
        let mut head = made(response, &text, &table, route.plan, edits).ok_or(UNSAYABLE)?;
        if let Some(switch) = &mut self.switch {
            let is_stream = connection.is_stream();
            let received = (response, &*table, &text);
            switch.answered(received, is_stream, &mut head, &self.record)?;
        }
        if let Some(key) = route.new_key(picked) {
            key.apply_to(head.headers_mut());
        }
        if route.method == Method::Head && self.method != Method::Head {
            // The length of a body that does not follow.
            head.headers_mut().remove(CONTENT_LENGTH);
        }
        let rules = trailer_rules(self.method, status, route.plan, own);
        let content = whole.map(|_| text.slice(response.head_length()..));
        let response_of = (response, status);
        // Data that the client cannot take stays at the destination.
        let is_read = !connection.input.is_empty() || self.taking() != Taking::Nothing;
        let read = is_read.then_some(&mut *cx);
        let incoming = Incoming::begin(response_of, content, table, rules, connection, read)?;
        let length = match response.framing() {
            Framing::Length(length) => Some(length),
            _ => None,
        };
        self.record.slot.put_head(head, length);
        if !is_read && !incoming.has_all() {
            download.hold = Hold::Begun;
        }
        download.begun = Some(incoming);
        // The rest is for the body, except what ends the response.
        let _ = download.poll_put(&self.record.slot, &mut false);
        Ok(())
    }

    fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut ServiceDownload,
        connection: &mut Http1Connection,
        has_news: &mut bool,
    ) -> Poll<Result<(), ResponseFailure>> {
        download.note_caller(&self.record.slot);
        loop {
            // Received data goes first: a caller that does not take it stops the reading.
            let put = download.poll_put(&self.record.slot, has_news);
            if put.is_ready() && download.is_done {
                return Poll::Ready(Ok(()));
            }
            // The caller's body polls the exchange, so it comes back here when it takes the data.
            if put.is_pending() || download.poll_hold(has_news).is_pending() || download.is_full {
                // Callers may take their time, and there may be many.
                connection.input.rest();
                return Poll::Pending;
            }
            let Some(incoming) = &mut download.begun else {
                return Poll::Ready(Ok(()));
            };
            connection.input.limit(taking());
            ready!(incoming.poll_read(connection, cx))?;
            *has_news = true;
        }
    }

    /// The server sees to callers that do not take the response: a body that is not polled cannot look at a clock.
    fn backpressure(&self, download: &mut ServiceDownload) -> Backpressure {
        match (download.waits_for_caller(), download.waited_for_caller) {
            (true, true) => Backpressure::Elsewhere,
            (true, false) => Backpressure::JustNow,
            // The time may have ended before it took the last part.
            (false, true) => Backpressure::Idle,
            (false, false) => Backpressure::Nothing,
        }
    }

    fn gives_up(&mut self, _: &mut ServiceDownload, _: Backpressure) -> bool {
        true
    }

    // The record's `failed` ends the caller's body with an error already.
    fn cut(&mut self, _: &mut ServiceDownload) {}

    fn served(&mut self, _: &ServiceDownload, _: bool, _: Instant) -> bool {
        true
    }

    async fn send_reply(
        &mut self,
        head: Parts,
        text: Bytes,
        _: bool,
        _: Option<ClientReadTimeout>,
    ) -> Result<SentReply, Cause> {
        let sent = text.len() as u64;
        let slot = &self.record.slot;
        slot.put_head(Response::from_parts(head, ()), Some(sent));
        if !text.is_empty() {
            slot.put_data(text);
        }
        Ok(SentReply { sent, keep: true })
    }

    fn flows() -> &'static LocalKey<Flows<Self>> {
        thread_local! {
            static FLOWS: Flows<ServiceDownstream> = const { LocalPool::new() };
        }
        &FLOWS
    }
}

/// Returns the length of head and body, if the response is short and within the `filled` bytes of input.
fn whole(response: &RawResponse, filled: usize) -> Option<usize> {
    match response.framing() {
        Framing::None => Some(response.head_length()),
        Framing::Length(length) => usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_add(response.head_length()))
            .filter(|whole| *whole <= WHOLE && *whole <= filled),
        Framing::Chunked | Framing::UntilClose | Framing::Tunnel => None,
    }
}

/// Returns the client's head, or `None` if `http` types cannot represent it. `text` begins with the head as it came.
fn made(
    raw: &RawResponse,
    text: &Bytes,
    table: &HeadTable,
    plan: &CompiledTransforms,
    edits: Option<&HeaderMutations>,
) -> Option<Response<()>> {
    let (status, fields) = final_head(raw, text, table, plan, edits, ADDED)?;
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    *response.extensions_mut() = recycled::extensions(Kind::Response);
    let reason = raw.reason().get(text);
    // Only an unusual phrase needs an extension: `http` types imply the usual one.
    if status.canonical_reason().map(str::as_bytes) != Some(reason) {
        let reason = ReasonPhrase::try_from(reason).ok()?;
        response.extensions_mut().insert(reason);
    }
    Some(response)
}

/// A response head that `http` types cannot represent.
pub(super) const UNSAYABLE: ResponseFailure = ResponseFailure::Unanswered(
    End::Unrepresentable,
    "its head cannot be said in `http` types",
);
