//! Clients of HTTP/1.1: bytes are forwarded unchanged, while their framing is tracked.

mod download;
mod trailers;
mod upload;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::thread::LocalKey;

use bytes::Bytes;
use http::response::Parts;
use http::{Method as HttpMethod, Version as HttpVersion};
use proxy_model::RequestHead;
use tokio::time::Instant;

use self::download::Http1Download;
use self::upload::Http1Upload;
use super::client_head::ForClient;
use super::outgoing::PreparedHead;
use super::{Engine, Forwarded};
use crate::cluster::Picked;
use crate::connection::ConnectionInfo;
use crate::error::{Allowance, Cause};
use crate::exchange::Count;
use crate::filter::RequestEdit;
use crate::forward::exchange::body::Body;
use crate::forward::exchange::downstream::{
    Backpressure, Download as _, Downstream, FinalHead, Flows, Headed, SentReply, Upload as _,
};
use crate::forward::exchange::failure::{ResponseFailure, UploadFailure};
use crate::forward::exchange::filtering::Filtering;
use crate::forward::exchange::outbound::Outbound;
use crate::forward::exchange::readdress::SentHead;
use crate::forward::exchange::resolved_route::ResolvedRoute;
use crate::forward::exchange::{self};
use crate::head::HeaderMutations;
use crate::http1::{
    ClassSet, Framing, Method, OutgoingConnection, RawRequest, RawResponse, RequestView, Version,
};
use crate::local_pool::LocalPool;
use crate::progress::{ClientReadTimeout, DataRate};
use crate::response::TrailerRules;
use crate::server::connection::RequestRecord;
use crate::server::http1::{Client, Transport, write_text};
use crate::server::metrics::WorkerMetrics;
use crate::stream::{ByteStream, ReadBuffer, poll_write_all, recycled as buffers};
use crate::transform::{CompiledTransforms, Invalid};
use crate::upstream::Http1Connection;

/// The largest client head that fits into a [buffer for heads](buffers::HEAD) with the usual
/// additions.
const USUAL_HEAD: usize = buffers::HEAD * 3 / 4;

/// The largest client head for a buffer for long heads.
const LONG_HEAD: usize = buffers::LONG_HEAD * 7 / 8;

/// A request whose head is at the front of its client's input.
pub(crate) struct Http1Downstream<'c, T: Transport> {
    client: &'c mut Client<T>,
    request: &'c RawRequest,
}

impl<'c, T: Transport> Http1Downstream<'c, T> {
    /// Returns true if the request can be forwarded here, unless its route says otherwise.
    #[inline]
    pub(crate) fn can_forward(request: &RawRequest) -> bool {
        request.version() == Version::Http11
            && !request.expects_continue()
            && !matches!(request.method(), Method::Connect | Method::Trace)
            && request.upgrade().is_none()
    }

    /// A request that [can be forwarded](Self::can_forward).
    #[inline]
    pub(crate) fn new(client: &'c mut Client<T>, request: &'c RawRequest) -> Self {
        Self { client, request }
    }

    /// Forwards the request.
    ///
    /// Cancel-safe: if dropped, the request is cancelled at the destination.
    // The future is made where it is kept; otherwise it would be moved there, twice.
    #[inline(always)]
    pub(crate) fn forward(self, engine: &Engine) -> impl Future<Output = Forwarded> {
        exchange::forward(self, engine.service(), engine.current())
    }

    /// The method for the counters.
    #[inline]
    fn method_value(&self) -> HttpMethod {
        match self.request.method() {
            Method::Get => HttpMethod::GET,
            Method::Head => HttpMethod::HEAD,
            Method::Post => HttpMethod::POST,
            Method::Put => HttpMethod::PUT,
            Method::Patch => HttpMethod::PATCH,
            Method::Delete => HttpMethod::DELETE,
            Method::Options => HttpMethod::OPTIONS,
            _ => HttpMethod::from_bytes(self.head().method().as_bytes()).unwrap_or_default(),
        }
    }
}

impl<T: Transport> Headed for Http1Downstream<'_, T> {
    type Head<'h>
        = RequestView<'h>
    where
        Self: 'h;

    #[inline]
    fn head(&self) -> RequestView<'_> {
        let Client { input, table, .. } = &*self.client;
        RequestView::of_connection(input.filled(), self.request, table, self.client.info())
    }
}

impl<T: Transport> Downstream for Http1Downstream<'_, T> {
    type SentHead = SentHead;
    type Upload = Http1Upload;
    type Download = Http1Download;
    type Record = RequestRecord;

    #[inline]
    fn method(&self) -> Method {
        self.request.method()
    }

    #[inline]
    fn framing(&self) -> Framing {
        self.request.framing()
    }

    #[inline]
    fn classes(&self) -> ClassSet {
        self.client.table.classes()
    }

    fn has_authority(&self) -> bool {
        !self.request.authority().is_empty()
    }

    fn sent_head(&self, text: &[u8]) -> Option<SentHead> {
        SentHead::read(text, *self.client.info())
    }

    #[inline]
    fn count(&self, started: Instant) -> Count {
        Count::new(&self.method_value(), HttpVersion::HTTP_11, started)
    }

    fn show_request<R>(
        &self,
        edits: &mut HeaderMutations,
        show: impl FnOnce(&mut RequestEdit<'_>) -> R,
    ) -> R {
        let Client { input, table, .. } = &*self.client;
        let mut head = RequestEdit::of_raw(input.filled(), self.request, table, self.head(), edits);
        show(&mut head)
    }

    #[inline]
    fn write_head(
        &self,
        head: &RequestView<'_>,
        route: &ResolvedRoute<'_>,
        edits: Option<&HeaderMutations>,
        picked: &Picked,
    ) -> Result<Vec<u8>, Invalid> {
        let mut out = buffers::take(match self.request.head_length() {
            length if length <= USUAL_HEAD => buffers::HEAD,
            length if length <= LONG_HEAD => buffers::LONG_HEAD,
            _ => buffers::SMALL,
        });
        let outgoing = PreparedHead {
            buffer: self.client.input.filled(),
            request: self.request,
            table: &self.client.table,
            view: head,
            route: route.route,
            plan: route.plan,
            edits,
            destination: route.picked(picked),
            remote: self.client.remote_value(),
            connection: self.client.info(),
        };
        outgoing.write(&mut out).map(|()| out)
    }

    #[cold]
    fn skip_request(&mut self) -> bool {
        let client = &mut *self.client;
        client.input.consume(self.request.head_length());
        let mut body = Body::new(self.request.framing());
        let limits = client.state.worker.limits.head();
        let followed = body.follow(client.input.filled(), &limits, &mut client.table);
        match followed {
            Ok(part) if body.has_ended() => {
                client.input.consume(part.bytes + part.trailers);
                false
            }
            // The rest of the body is not waited for: the connection closes instead.
            Ok(_) | Err(_) => true,
        }
    }

    #[inline]
    fn connection(&self) -> ConnectionInfo {
        *self.client.info()
    }

    #[inline]
    fn body_limit(&self) -> Option<u64> {
        self.client.state.worker.limits.body_bytes
    }

    #[inline]
    fn data_rate(&self) -> Option<DataRate> {
        self.client.state.worker.limits.data_rate
    }

    #[cold]
    fn note_malformed(&self) {
        WorkerMetrics::add(&self.client.state.metrics().malformed);
    }

    #[inline]
    fn record(&mut self) -> Option<&mut RequestRecord> {
        self.client.record.as_mut()
    }

    async fn unless_gone<F: Future>(&mut self, is_watched: bool, work: F) -> Option<F::Output> {
        self.client.unless_gone(is_watched, work).await
    }

    #[inline]
    fn poll_due(&mut self, cx: &mut Context<'_>, due: Instant) -> Poll<()> {
        self.client.clock.poll_due(cx, due)
    }

    #[inline]
    fn poll_disconnected(
        &mut self,
        cx: &mut Context<'_>,
        _: &mut Http1Download,
        has_sent_all: bool,
    ) -> Poll<Cause> {
        // This order, since the first timer may be due earlier.
        if has_sent_all && self.client.poll_gone(cx).is_ready() {
            return Poll::Ready(Cause::ClientGone);
        }
        let Client { clock, state, .. } = &mut *self.client;
        let slow = clock.poll_slow_reader(cx, state);
        slow.map(|()| Cause::ClientTooSlow)
    }

    #[inline]
    fn poll_reset(&mut self, _: &mut Context<'_>, _: &mut Http1Download) -> Poll<()> {
        // A client may close its sending side and wait for the response.
        Poll::Pending
    }

    #[inline]
    fn disconnected(&mut self) {}

    #[inline]
    fn note_memory(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut Http1Download,
        connection: &Http1Connection,
    ) -> bool {
        let client = &*self.client;
        // During an exchange, input is a body or further requests.
        let mut bytes = match client.input.is_empty() {
            true => 0,
            false => client.input.memory(),
        };
        if download.waits_for_client(&client.output) {
            let behind = client.state.behind_socket();
            let behind = behind + connection.behind();
            bytes += client.output.capacity() as u64 + connection.input.memory() + behind;
        }
        client.state.hold(bytes, cx.waker())
    }

    #[inline]
    fn begin_upload(
        &mut self,
        route: &ResolvedRoute<'_>,
        upload: &mut Http1Upload,
        outbound: &mut Outbound,
    ) -> Result<(), UploadFailure> {
        let client = &mut *self.client;
        client.input.consume(self.request.head_length());
        upload.restart(Body::new(self.request.framing()));
        if !upload.needs_more() {
            return Ok(());
        }
        let limits = &client.state.worker.limits;
        let allowed = Allowance::new(Some(route.allowed(limits.body_bytes)));
        let (input, table) = (&client.input, &mut client.table);
        upload.begin(allowed, limits.head(), input, table, outbound)
    }

    #[inline]
    fn may_upload_slowly(&self) -> bool {
        false
    }

    #[inline]
    fn poll_upload<U: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        upload: &mut Http1Upload,
        outbound: &mut Outbound,
        destination: &mut U,
        has_news: &mut bool,
    ) -> Poll<Result<(), UploadFailure>> {
        let Client {
            io, input, table, ..
        } = &mut *self.client;
        upload.poll(cx, (io, input, table), outbound, destination, has_news)
    }

    fn stop_upload(&mut self, upload: &mut Http1Upload) {
        upload.stop();
    }

    fn pass_interim(
        &mut self,
        response: &RawResponse,
        download: &mut Http1Download,
        input: &mut ReadBuffer,
        plan: &CompiledTransforms,
    ) -> Result<(), ResponseFailure> {
        download.pass_interim(response, input, &mut self.client.output, plan);
        Ok(())
    }

    #[inline]
    fn poll_interim(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut Http1Download,
    ) -> Poll<Result<(), ResponseFailure>> {
        let Client { io, output, .. } = &mut *self.client;
        download.poll_interim(cx, io, output)
    }

    #[inline]
    fn begin_response(
        &mut self,
        cx: &mut Context<'_>,
        final_head: FinalHead<'_>,
        download: &mut Http1Download,
        connection: &mut Http1Connection,
        filtering: &mut Filtering,
    ) -> Result<(), ResponseFailure> {
        let FinalHead {
            response,
            status,
            route,
            is_stopped,
            picked,
        } = final_head;
        // Decided right before the head is written, since the head announces the close (RFC 9112 section 9.6).
        let is_last = !self.request.is_persistent() || is_stopped || self.client.is_closing();
        let Client { output, .. } = &mut *self.client;
        let (edits, own) = filtering.changes();
        let outgoing = ForClient {
            plan: route.plan,
            connection: match is_last {
                true => OutgoingConnection::Close,
                false => OutgoingConnection::Default,
            },
            edits,
            key: route.new_key(picked),
        };
        if route.plan.trailers.is_some() || own.is_some() {
            let rules = TrailerRules::new(route.plan.trailers.as_ref(), status, own);
            download.change_trailers(rules, self.request.accepts_trailers());
        }
        let Http1Connection { io, input, .. } = connection;
        download.begin(response, status, input, output, &outgoing)?;
        // The first part of the body often follows its head at once.
        if !download.has_all() && input.is_empty() && io.may_be_readable() {
            let looked = download.look_behind_head(cx, (io, input), output);
            looked.map_err(|()| ResponseFailure::BrokenBody(status))?;
        }
        download.is_last = is_last;
        Ok(())
    }

    #[inline]
    fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut Http1Download,
        connection: &mut Http1Connection,
        has_news: &mut bool,
    ) -> Poll<Result<(), ResponseFailure>> {
        let Client { io, output, .. } = &mut *self.client;
        let destination = (&mut connection.io, &mut connection.input);
        download.poll_body(cx, (io, output), destination, has_news)
    }

    #[inline]
    fn backpressure(&self, download: &mut Http1Download) -> Backpressure {
        if download.is_unanswered() || !download.waits_for_client(&self.client.output) {
            return Backpressure::Nothing;
        }
        match self.client.state.worker.limits.data_rate {
            // The clock of the connection watches the rate.
            Some(_) => Backpressure::Elsewhere,
            None => Backpressure::Idle,
        }
    }

    fn gives_up(&mut self, _: &mut Http1Download, _: Backpressure) -> bool {
        // What the socket holds for the client is of no more use.
        self.client.state.abort.store(true, Relaxed);
        true
    }

    fn cut(&mut self, _: &mut Http1Download) {
        self.client.output.clear();
    }

    #[inline]
    fn served(&mut self, download: &Http1Download, has_more: bool, now: Instant) -> bool {
        // Closing with unread data would reset the connection, and the client could lose its response.
        if has_more {
            self.client.state.unread.store(true, Relaxed);
        }
        self.client.served(now);
        !download.is_last && !has_more
    }

    #[cold]
    async fn send_reply(
        &mut self,
        head: Parts,
        text: Bytes,
        has_more: bool,
        mut read_timeout: Option<ClientReadTimeout>,
    ) -> Result<SentReply, Cause> {
        let client = &mut *self.client;
        let is_last = has_more || !self.request.is_persistent() || client.is_closing();
        // Nothing of an unfinished head may precede the reply.
        client.output.clear();
        let sent = write_text(&head, &text, self.request, is_last, &mut client.output);
        // Closing with unread data would reset the connection, and the client could lose the reply.
        client.state.unread.store(has_more, Relaxed);
        let (mut written, mut before) = (0, 0);
        let wrote = poll_fn(|cx| {
            let slices = [&*client.output, &[]];
            if let Poll::Ready(result) = poll_write_all(&mut client.io, cx, slices, &mut written) {
                return Poll::Ready(result.map_err(|_| Cause::ClientGone));
            }
            // A minimum data rate takes the place of the read timeout.
            let Some(read_timeout) = &mut read_timeout else {
                let slow = client.clock.poll_slow_reader(cx, &client.state);
                return slow.map(|()| Err(Cause::ClientTooSlow));
            };
            if std::mem::replace(&mut before, written) != written {
                read_timeout.moved();
            }
            ready!(client.clock.poll_due(cx, read_timeout.due()));
            // The client must not take a truncated reply for a complete one.
            client.state.abort.store(true, Relaxed);
            Poll::Ready(Err(Cause::ClientTooSlow))
        });
        let wrote = pin!(wrote).await;
        client.output.clear();
        let keep = !is_last;
        wrote.map(|()| SentReply { sent, keep })
    }

    #[inline]
    fn flows() -> &'static LocalKey<Flows<Self>> {
        thread_local! {
            static FLOWS: Flows<Http1Downstream<'static, tokio::net::TcpStream>> =
                const { LocalPool::new() };
        }
        &FLOWS
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;
    use crate::http1::HeadTable;
    use crate::local_pool::Recycle;

    #[test]
    fn what_is_kept_is_not_large() {
        let flows = Http1Downstream::<TcpStream>::flows();
        for (grown, kept) in [(100, 100), (1000, 32)] {
            let mut flow = flows.acquire().unwrap_or_default();
            *flow.download.table() = HeadTable::grown_to(grown);
            flow.download.rest();
            flows.keep(flow);
            let mut flow = flows.acquire().unwrap_or_default();
            assert_eq!(flow.download.table().room(), kept);
        }
    }
}
