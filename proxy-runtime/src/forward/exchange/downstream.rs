//! The client's side of an exchange: the operations that differ between connections of HTTP/1.1, streams of HTTP/2
//! and requests of tower.

use std::task::{Context, Poll};
use std::thread::LocalKey;

use bytes::Bytes;
use http::StatusCode;
use http::response::Parts;
use proxy_model::RequestHead;
use proxy_model::compiled::RouteIndex;
use tokio::time::Instant;

use super::failure::{ResponseFailure, UploadFailure};
use super::filtering::Filtering;
use super::flow::{ExchangeState, MOST};
use super::outbound::Outbound;
use super::resolved_route::ResolvedRoute;
use crate::cluster::Picked;
use crate::connection::ConnectionInfo;
use crate::error::{Cause, ForwardErrorKind};
use crate::exchange::Count;
use crate::filter::RequestEdit;
use crate::forward::upgrade::UpgradedClient;
use crate::head::{HeaderMutations, HttpHead};
use crate::http1::{ClassSet, Framing, HeadTable, Method, RawResponse};
use crate::local_pool::LocalPool;
use crate::progress::{ClientReadTimeout, DataRate};
use crate::proxy::ProxyService;
use crate::response::{ExchangeInfo, LayerAttempts};
use crate::state::Generation;
use crate::stream::recycled::Taking;
use crate::stream::{ByteStream, ReadBuffer};
use crate::transform::{CompiledTransforms, Invalid};
use crate::upstream::{Http1Connection, Protocols};

/// The state of an exchange with a client of this kind.
pub(crate) type ExchangeStateOf<D> =
    ExchangeState<<D as Downstream>::Upload, <D as Downstream>::Download>;

/// The pool of states of finished exchanges that a thread keeps.
pub(crate) type Flows<D> = LocalPool<Box<ExchangeStateOf<D>>, MOST>;

/// A request head that a load balancing policy can read.
pub(crate) trait Headed {
    type Head<'h>: RequestHead
    where
        Self: 'h;

    fn head(&self) -> Self::Head<'_>;
}

impl Headed for HttpHead<'_> {
    type Head<'h>
        = Self
    where
        Self: 'h;

    fn head(&self) -> Self {
        *self
    }
}

/// A request and the client that waits for its response: a connection of HTTP/1.1, a stream of
/// HTTP/2, or the caller of a tower service.
///
/// The exchange is compiled for each implementation, so that these methods are inlined. Rules that
/// all of them share are not here, but in [`relay`](super::relay) and [`forward`](super::forward()).
pub(crate) trait Downstream: Headed {
    /// The head after it was sent. Of HTTP/1.1, only the sent copy remains.
    type SentHead: Headed;
    /// The state of the request body.
    type Upload: Upload + 'static;
    /// The state of the response.
    type Download: Download + 'static;
    /// The record of the request.
    type Record: Record;

    // The request.

    fn method(&self) -> Method;

    fn framing(&self) -> Framing;

    /// Returns the classes of the request's header fields: bits for the fields that the proxy must handle.
    fn classes(&self) -> ClassSet;

    /// Returns true if the client sent an authority (`Host` or `:authority`).
    fn has_authority(&self) -> bool;

    /// Returns the head after `text` was sent for it.
    fn sent_head(&self, text: &[u8]) -> Option<Self::SentHead>;

    /// Returns the counters of the request, which arrived at `started`.
    fn count(&self, started: Instant) -> Count;

    /// Calls `show` with the head as filters see it. Their changes are collected in `edits`.
    fn show_request<R>(
        &self,
        edits: &mut HeaderMutations,
        show: impl FnOnce(&mut RequestEdit<'_>) -> R,
    ) -> R;

    /// Returns the serialised head for a destination.
    fn write_head(
        &self,
        head: &Self::Head<'_>,
        route: &ResolvedRoute<'_>,
        edits: Option<&HeaderMutations>,
        picked: &Picked,
    ) -> Result<Vec<u8>, Invalid>;

    /// Returns the route of the request, or its index if the request has to be one of the tower service.
    #[inline]
    fn route<'g>(
        &self,
        service: &'g ProxyService,
        generation: &'g Generation,
    ) -> Result<ResolvedRoute<'g>, Option<RouteIndex>>
    where
        Self: Sized,
    {
        ResolvedRoute::of_request(self, service, generation)
    }

    /// The time from which the route's `Timeout` counts. `None`: the exchange's beginning.
    #[inline]
    fn arrived(&self) -> Option<Instant> {
        None
    }

    /// Returns the HTTP versions over which a requested protocol switch is possible.
    #[inline]
    fn switch(&self) -> Option<Protocols> {
        None
    }

    /// Returns true if the response has begun a tunnel.
    #[inline]
    fn has_switched(&self) -> bool {
        false
    }

    /// The client's side of the tunnel that the response has begun, if it has.
    #[inline]
    fn take_tunnel(&mut self) -> Option<UpgradedClient> {
        None
    }

    /// Returns the record of attempts of the layers that the request came through; this exchange is one of them.
    #[inline]
    fn attempts(&self) -> Option<&LayerAttempts> {
        None
    }

    /// Takes the values that the changes of the head hold, if the response ends later than the exchange.
    fn hold(&self, edits: &mut HeaderMutations) {
        let _ = edits;
    }

    /// Consumes the received part of a request that is not forwarded. Returns true if unread bytes
    /// of it block the next request.
    fn skip_request(&mut self) -> bool;

    // The client.

    fn connection(&self) -> ConnectionInfo;

    /// The server's limit of a request body in bytes.
    fn body_limit(&self) -> Option<u64>;

    /// The server's minimum data rate.
    fn data_rate(&self) -> Option<DataRate>;

    /// Counts a request body with malformed framing.
    fn note_malformed(&self);

    fn record(&mut self) -> Option<&mut Self::Record>;

    /// Waits for `work`. Returns `None` if the client disconnects first. `is_watched`: the
    /// connection may be read to detect that.
    async fn unless_gone<F: Future>(&mut self, is_watched: bool, work: F) -> Option<F::Output>;

    /// Returns the amount that the client takes at present. Default: it is not known.
    #[inline]
    fn taking(&self) -> Taking {
        Taking::All
    }

    /// Ready at `due`. Before that, the task is woken at `due`.
    fn poll_due(&mut self, cx: &mut Context<'_>, due: Instant) -> Poll<()>;

    /// Ready when the client has disconnected, or does not read fast enough, with the cause. Must be polled while
    /// the exchange waits. `has_sent_all`: the request body is complete.
    fn poll_disconnected(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut Self::Download,
        has_sent_all: bool,
    ) -> Poll<Cause>;

    /// Ready when the client has reset the stream. HTTP/1.1 cannot distinguish a cancelled request
    /// from a half-closed connection.
    fn poll_reset(&mut self, cx: &mut Context<'_>, download: &mut Self::Download) -> Poll<()>;

    /// Records that the client has disconnected.
    fn disconnected(&mut self);

    /// Records the memory that is buffered for the client or the destination; `connection` holds the
    /// unread response bytes. Returns true if the exchange must end to free it.
    fn note_memory(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut Self::Download,
        connection: &Http1Connection,
    ) -> bool;

    // The request's body.

    /// Consumes the head, and parses the received part of the body.
    fn begin_upload(
        &mut self,
        route: &ResolvedRoute<'_>,
        upload: &mut Self::Upload,
        outbound: &mut Outbound,
    ) -> Result<(), UploadFailure>;

    /// Returns true if the minimum data rate does not apply to the upload (gRPC).
    fn may_upload_slowly(&self) -> bool;

    /// Sends available bytes; ready when all are sent. Sets `has_news` on progress.
    fn poll_upload<U: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        upload: &mut Self::Upload,
        outbound: &mut Outbound,
        destination: &mut U,
        has_news: &mut bool,
    ) -> Poll<Result<(), UploadFailure>>;

    /// Drops the rest of the body.
    fn stop_upload(&mut self, upload: &mut Self::Upload);

    // The response.

    /// Forwards an interim response (1xx) and consumes its head, which is at the front of `input`.
    fn pass_interim(
        &mut self,
        response: &RawResponse,
        download: &mut Self::Download,
        input: &mut ReadBuffer,
        plan: &CompiledTransforms,
    ) -> Result<(), ResponseFailure>;

    /// Ready when pending interim responses are written to the client.
    fn poll_interim(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut Self::Download,
    ) -> Poll<Result<(), ResponseFailure>>;

    /// Writes the head of the final response, which is at the front of the connection's input, for
    /// the client, and parses the received part of the body.
    fn begin_response(
        &mut self,
        cx: &mut Context<'_>,
        final_head: FinalHead<'_>,
        download: &mut Self::Download,
        connection: &mut Http1Connection,
        filtering: &mut Filtering,
    ) -> Result<(), ResponseFailure>;

    /// Forwards the response body; ready when all of it is handed to the client's connection. Sets
    /// `has_news` on progress.
    fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut Self::Download,
        connection: &mut Http1Connection,
        has_news: &mut bool,
    ) -> Poll<Result<(), ResponseFailure>>;

    /// Returns the deadline for the client to read pending bytes.
    fn backpressure(&self, download: &mut Self::Download) -> Backpressure;

    /// Called at the deadline of [`backpressure`](Self::backpressure), or at that of the route. Returns true if the
    /// client is too slow; then a stream has been reset.
    fn gives_up(&mut self, download: &mut Self::Download, pressure: Backpressure) -> bool;

    /// Makes an incomplete response visible to the client as an error.
    fn cut(&mut self, download: &mut Self::Download);

    // The end.

    /// Records the end of a request. `has_more`: it was not read to its end. Returns true if the
    /// next request may follow.
    fn served(&mut self, download: &Self::Download, has_more: bool, now: Instant) -> bool;

    /// Sends a local reply. `read_timeout`: the client read timeout if there is no minimum data rate.
    ///
    /// # Errors
    ///
    /// The client does not receive it, for this cause.
    async fn send_reply(
        &mut self,
        head: Parts,
        text: Bytes,
        has_more: bool,
        read_timeout: Option<ClientReadTimeout>,
    ) -> Result<SentReply, Cause>;

    /// Returns the thread's pool of states.
    fn flows() -> &'static LocalKey<Flows<Self>>
    where
        Self: Sized;
}

/// The record of a request: its counts for the server, and its line in the access log.
pub(crate) trait Record {
    /// Returns true if [`answered`](Self::answered) needs to be called.
    fn wants_info(&self) -> bool;

    /// Records the head of the response.
    fn answered(&mut self, status: StatusCode, info: ExchangeInfo);

    /// Records the exchange of a client that has left before the head of its response.
    fn left(&mut self, _: ExchangeInfo) {}

    /// Records the body bytes that the client has sent and received so far.
    fn moved(&mut self, received: u64, sent: u64);

    /// Records that the client has the whole response.
    fn completed(&mut self);

    /// Records that the client has the whole response, while its upload continues.
    fn completed_early(&mut self);

    /// Records that the client has a local reply, with `sent` bytes of body.
    fn replied(&mut self, sent: u64);

    /// Records that the response was cut.
    fn failed(&mut self, kind: ForwardErrorKind);

    /// Records that the tunnel that the response has begun is over.
    fn tunnel_ended(&mut self, _: Option<ForwardErrorKind>) {}

    /// Records the cause of the end of a client's connection or stream before it had the whole response.
    fn disconnected(&mut self, _: Cause) {}

    /// Records that the client uploads more slowly than the minimum data rate.
    fn upload_is_too_slow(&mut self);

    /// Records that a request body of more than `allowed` bytes, or a slow or malformed one, was rejected.
    fn body_rejected(&mut self, status: StatusCode, allowed: u64);
}

/// The head of a final response.
#[derive(Clone, Copy)]
pub(crate) struct FinalHead<'e> {
    pub(crate) response: &'e RawResponse,
    pub(crate) status: StatusCode,
    pub(crate) route: &'e ResolvedRoute<'e>,
    /// True if the upload ended early, so that the connection cannot be reused.
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "for the clients of a server")
    )]
    pub(crate) is_stopped: bool,
    /// The destination.
    pub(crate) picked: &'e Picked,
}

/// A local reply that was sent.
pub(crate) struct SentReply {
    /// Bytes of the body.
    pub(crate) sent: u64,
    /// True if the next request may follow.
    pub(crate) keep: bool,
}

/// The deadline for a client to read pending bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backpressure {
    /// No bytes are pending.
    Nothing,
    /// The cluster's `ActivityTimeout`.
    Idle,
    /// The server's minimum data rate, checked at this time.
    #[cfg_attr(
        not(all(feature = "http2", feature = "server")),
        expect(dead_code, reason = "streams have windows of their own")
    )]
    Rate(Instant),
    /// The server's minimum data rate, enforced by
    /// [`poll_disconnected`](Downstream::poll_disconnected).
    Elsewhere,
    /// No deadline: the bytes came in this poll, and the destination was waited for until now.
    JustNow,
}

/// The state of a request body.
pub(crate) trait Upload: Default {
    /// Returns true if the request has no body, or it was sent.
    fn is_empty(&self) -> bool;

    /// Returns true if more of the body must be read from the client.
    fn needs_more(&self) -> bool;

    /// Releases received parts of the body that were not sent.
    fn rest(&mut self);
}

/// The state of a response.
pub(crate) trait Download: Default {
    /// Resets the state for the next response.
    fn restart(&mut self);

    /// Releases memory that the next response does not need.
    fn rest(&mut self);

    /// The header fields of the response.
    fn table(&mut self) -> &mut HeadTable;

    /// Returns true if no byte of a response was sent to the client.
    fn is_unanswered(&self) -> bool;

    /// Returns true if the response was received completely.
    fn has_all(&self) -> bool;

    /// Returns true if all of it was handed to the client's connection.
    fn is_done(&self) -> bool;

    /// Returns true if the destination keeps its connection open.
    fn is_persistent(&self) -> bool;

    /// Returns the body bytes received since the last call.
    fn take_uncounted(&mut self) -> u64;

    /// Returns the body bytes that the client has received.
    fn sent(&self) -> u64;
}
