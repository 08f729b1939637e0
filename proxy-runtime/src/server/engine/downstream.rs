//! The client's side of an exchange: what the one exchange asks of HTTP/1.1 and of HTTP/2.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::LocalKey;

use bytes::Bytes;
use http::StatusCode;
use http::response::Parts;
use proxy_model::RequestHead;
use tokio::time::Instant;

use super::failure::{Broken, Cut};
use super::filtering::Filtering;
use super::flow::{Flow, MOST};
use super::outbound::Outbound;
use super::resolved_route::ResolvedRoute;
use crate::cluster::Picked;
use crate::exchange::Count;
use crate::filter::RequestEdit;
use crate::head::HeadEdits;
use crate::http1::{ClassSet, Framing, HeadTable, Method, RawResponse};
use crate::server::connection::{ConnectionState, RequestRecord, Uptake};
use crate::spare::Spare;
use crate::stream::{ByteStream, ReadBuffer};
use crate::transform::{HeadPlan, Invalid};
use crate::upstream::Http1Connection;

/// The state of an exchange with such a client.
pub(super) type FlowOf<D> = Flow<<D as Downstream>::Upload, <D as Downstream>::Download>;

/// What a thread keeps of exchanges that are over.
pub(super) type Flows<D> = Spare<Box<FlowOf<D>>, MOST>;

/// A head that can be shown to who picks a destination.
pub(super) trait Headed {
    type Head<'h>: RequestHead
    where
        Self: 'h;

    fn head(&self) -> Self::Head<'_>;
}

/// A request, and the client that waits for its response: over a connection of HTTP/1.1, or over a stream of HTTP/2.
///
/// An exchange is compiled for each of them, so that nothing here costs a call. What is the same for both is not here.
pub(super) trait Downstream: Headed {
    /// The head, once only what was sent of it is sure to be there.
    type SentHead<'h>: Headed;
    /// The request's body on its way to a destination.
    type Upload: Upload + 'static;
    /// The response on its way to the client.
    type Download: Download + 'static;

    // The request.

    fn method(&self) -> Method;

    fn framing(&self) -> Framing;

    /// The classes of the fields.
    fn classes(&self) -> ClassSet;

    /// Whether the client has named an authority.
    fn has_authority(&self) -> bool;

    /// The head, of which `text` was sent.
    fn sent_head<'h>(&self, text: &'h [u8]) -> Option<Self::SentHead<'h>>;

    /// Begins to count the request, which came at `started`.
    fn count(&self, started: Instant) -> Count;

    /// Shows the head to filters.
    fn show_request<R>(
        &self,
        edits: &mut HeadEdits,
        show: impl FnOnce(&mut RequestEdit<'_>) -> R,
    ) -> R;

    /// Makes the head for a destination.
    fn write_head(
        &self,
        head: &Self::Head<'_>,
        route: &ResolvedRoute<'_>,
        edits: Option<&HeadEdits>,
        picked: &Picked,
    ) -> Result<Vec<u8>, Invalid>;

    /// Consumes a request that is not sent, as far as it has come. Returns whether there is more of it that stands in the way of
    /// the next one.
    fn skip_request(&mut self) -> bool;

    // The client.

    fn state(&self) -> &Arc<ConnectionState>;

    fn record(&mut self) -> Option<&mut RequestRecord>;

    /// Waits for `work`; `None` when the client is gone before it is done. If the client `is_watched`, nobody else reads what it sends
    /// meanwhile.
    async fn unless_gone<F: Future>(&mut self, is_watched: bool, work: F) -> Option<F::Output>;

    /// Ready once `due` has come; else the task is woken by then.
    fn poll_due(&mut self, cx: &mut Context<'_>, due: Instant) -> Poll<()>;

    /// Ready when the client has gone, or is to be given up by a rule that is not of this exchange. To be polled by whoever waits.
    fn poll_gone(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut Self::Download,
        has_sent_all: bool,
    ) -> Poll<()>;

    /// Ready when the client has taken back its request, where that can be told from the end of what it sends.
    fn poll_reset(&mut self, cx: &mut Context<'_>, download: &mut Self::Download) -> Poll<()>;

    /// Notes that the client has gone.
    fn gone(&mut self);

    /// Notes how much memory waits for the client, or for the destination to take what the client has sent, of which `input` is what
    /// was read of the response. Returns whether the exchange is to end for that.
    fn hold(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut Self::Download,
        input: &ReadBuffer,
    ) -> bool;

    // The request's body.

    /// Consumes the head, and looks at what has come of the body.
    fn begin_upload(
        &mut self,
        route: &ResolvedRoute<'_>,
        upload: &mut Self::Upload,
        outbound: &mut Outbound,
    ) -> Result<(), Broken>;

    /// Whether the client may be as slow as it likes with its body.
    fn may_upload_slowly(&self) -> bool;

    /// Sends what there is; ready when all is sent. `has_news` is set when something moved.
    fn poll_upload<U: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        upload: &mut Self::Upload,
        outbound: &mut Outbound,
        destination: &mut U,
        has_news: &mut bool,
    ) -> Poll<Result<(), Broken>>;

    /// Sends no more, though there may be more.
    fn stop_upload(&mut self, upload: &mut Self::Upload);

    // The response.

    /// Passes an interim response on, whose head is at the front of the connection's input, and consumes that.
    fn pass_interim(
        &mut self,
        response: &RawResponse,
        download: &mut Self::Download,
        input: &mut ReadBuffer,
        plan: &HeadPlan,
    ) -> Result<(), Cut>;

    /// Ready when the client has all of the interim responses.
    fn poll_interim(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut Self::Download,
    ) -> Poll<Result<(), Cut>>;

    /// Makes of the final head, which is at the front of the connection's input, the one that the client gets, and looks at what has
    /// come of the body. `is_stopped`: the request was not read to its end, and will not be.
    fn begin_response(
        &mut self,
        cx: &mut Context<'_>,
        final_head: FinalHead<'_>,
        download: &mut Self::Download,
        connection: &mut Http1Connection,
        filtering: &mut Filtering,
    ) -> Result<(), Cut>;

    /// Passes the body on; ready when all of it was handed to the client's connection. `has_news` is set when something moved.
    fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        download: &mut Self::Download,
        connection: &mut Http1Connection,
        has_news: &mut bool,
    ) -> Poll<Result<(), Cut>>;

    /// What the client is held to while something waits for it.
    fn untaken(&self, download: &mut Self::Download) -> Untaken;

    /// Whether the client, of which something was [waited](Self::untaken) for until now, is given up. Then it is told.
    fn is_given_up(&mut self, download: &mut Self::Download, untaken: Untaken) -> bool;

    /// Lets the client see that a response is not complete.
    fn cut(&mut self, download: &mut Self::Download);

    // The end.

    /// Notes that a request was served. `has_more`: it was not read to its end. Returns whether the next one may follow.
    fn served(&mut self, has_more: bool, now: Instant) -> bool;

    /// Sends a response of the proxy's own; `None` when the client does not take it. `uptake` is the client's clock where no rate is
    /// asked of it.
    async fn say(
        &mut self,
        head: Parts,
        text: Bytes,
        has_more: bool,
        uptake: Option<Uptake>,
    ) -> Option<Said>;

    /// What the thread keeps for the next exchanges.
    fn flows() -> &'static LocalKey<Flows<Self>>
    where
        Self: Sized;
}

/// The head of a final response.
#[derive(Clone, Copy)]
pub(super) struct FinalHead<'e> {
    pub(super) response: &'e RawResponse,
    pub(super) status: StatusCode,
    pub(super) route: &'e ResolvedRoute<'e>,
    /// The request was not read to its end, and will not be.
    pub(super) is_stopped: bool,
}

/// A response of the proxy's own that was sent.
pub(super) struct Said {
    /// Bytes of the body.
    pub(super) sent: u64,
    /// Whether the next request may follow.
    pub(super) keep: bool,
}

/// What a client is held to that does not take what there is for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Untaken {
    /// Nothing waits for the client.
    Nothing,
    /// The cluster's `ActivityTimeout`.
    Idle,
    /// The server's rate, which is looked at then.
    #[cfg_attr(
        not(feature = "http2"),
        expect(dead_code, reason = "streams have windows of their own")
    )]
    Rate(Instant),
    /// The server's rate, which [`poll_gone`](Downstream::poll_gone) sees to.
    Elsewhere,
}

/// A request's body on its way to a destination.
pub(super) trait Upload: Default {
    /// Whether there is nothing beside the head.
    fn is_empty(&self) -> bool;

    /// Whether more of the body is to come than there is.
    fn needs_more(&self) -> bool;
}

/// A response on its way to a client.
pub(super) trait Download: Default {
    /// Begins with the response to another request.
    fn restart(&mut self);

    /// Lets go of what the next response does not need.
    fn rest(&mut self);

    /// The fields of the response's head.
    fn table(&mut self) -> &mut HeadTable;

    /// Whether the client was told nothing yet.
    fn is_unanswered(&self) -> bool;

    /// Whether nothing more is to come of it.
    fn has_all(&self) -> bool;

    /// Whether all of it was handed to the client's connection.
    fn is_done(&self) -> bool;

    /// Whether the destination keeps its connection behind it.
    fn is_persistent(&self) -> bool;

    /// Bytes of content that came since this was last asked.
    fn take_uncounted(&mut self) -> u64;

    /// Bytes of content that the client has taken.
    fn sent(&self) -> u64;
}
