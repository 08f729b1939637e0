//! A connection for a request, and the head for it.

use http::StatusCode;
use proxy_model::RequestHead;

use super::outgoing::{Invalid, Outgoing};
use super::progress::Progress;
use super::request::{Run, view_of};
use super::resolved_route::ResolvedRoute;
use super::tally::Tally;
use crate::exchange::{pick_other, within};
use crate::filter::{HeadEdits, Reply};
use crate::forward::{ForwardError, ForwardErrorKind, no_connection};
use crate::http1::RequestView;
use crate::server::http1::{Client, Transport};
use crate::state::Picked;
use crate::stream::spare as buffers;
use crate::upstream::Lease;

/// Bytes of a client's head that fits into a [buffer for heads](buffers::HEAD) with what is usually added to it.
const USUAL_HEAD: usize = buffers::HEAD * 3 / 4;

/// The same for a buffer for long ones.
const LONG_HEAD: usize = buffers::LONG_HEAD * 7 / 8;

/// A destination and a connection to it.
pub(super) struct Link {
    pub(super) picked: Picked,
    pub(super) lease: Lease,
    /// The request's head for it, until it is sent.
    pub(super) head: Result<Vec<u8>, Invalid>,
}

/// Why there is no connection.
pub(super) enum Unconnected {
    /// None is open to what was picked.
    Picked(Picked),
    Failed(ForwardError),
    /// None is needed: a filter answers.
    Replied(Box<Reply>),
    /// The client has gone meanwhile.
    Gone,
}

impl Unconnected {
    pub(super) fn refusal(&self) -> (ForwardErrorKind, StatusCode) {
        match self {
            Self::Picked(_) | Self::Replied(_) | Self::Gone => (
                ForwardErrorKind::NoAvailableDestinations,
                StatusCode::SERVICE_UNAVAILABLE,
            ),
            Self::Failed(error) => (error.kind(), error.status()),
        }
    }
}

impl<'a> ResolvedRoute<'a> {
    /// Another destination than `picked`, which the request was counted for, and to which no connection could be opened for this
    /// reason.
    ///
    /// # Errors
    ///
    /// There is none, or something was sent.
    pub(super) fn pick_other<H: RequestHead>(
        &self,
        head: &H,
        picked: &Picked,
        error: ForwardError,
        tally: &mut Tally<'a>,
    ) -> Result<Picked, ForwardError> {
        let other = pick_other(self.state, self.cluster, head, picked, &error);
        let Some(other) = other else {
            return Err(error);
        };
        tally.failed(error.kind());
        tally.picked_again();
        tally.sent_to(self.destination(&other));
        Ok(other)
    }

    /// Another connection to the same destination, since the first one was closed before anything was sent, or without an answer.
    pub(super) async fn reconnect(
        &self,
        link: Link,
        progress: &Progress,
    ) -> Result<Link, ForwardError> {
        let Link {
            picked,
            lease,
            head,
        } = link;
        let wanted = self.wanted(&picked);
        let pool = self.engine.service().pool();
        let replaced = pool.replace(lease, progress.since, wanted);
        let replaced = async { replaced.await.map_err(no_connection) };
        let lease = within(progress.deadlines.head, replaced).await?;
        Ok(Link {
            picked,
            lease,
            head,
        })
    }
}

impl<'a> Run<'a> {
    /// An idle connection to a destination, for which the request is counted, and the head for it.
    #[inline]
    pub(super) fn connect_now<T: Transport>(
        &self,
        client: &Client<T>,
        view: &RequestView<'_>,
        edits: Option<&HeadEdits>,
        tally: &mut Tally<'a>,
    ) -> Result<Link, Unconnected> {
        let picked = self.pick(view).map_err(Unconnected::Failed)?;
        let pool = self.engine.service().pool();
        let Some(lease) = pool.ready(&self.wanted(&picked), tally.started()) else {
            return Err(Unconnected::Picked(picked));
        };
        tally.sent_over(self.destination(&picked), &picked.in_flight);
        Ok(Link {
            head: self.write_head(client, view, edits, &picked),
            picked,
            lease,
        })
    }

    /// A connection to the picked destination, or to another one if none can be opened there. The request is counted for those that it
    /// waits for.
    pub(super) async fn connect<T: Transport>(
        &self,
        connecting: Result<Link, Unconnected>,
        client: &mut Client<T>,
        edits: Option<&HeadEdits>,
        tally: &mut Tally<'a>,
    ) -> Result<Link, Unconnected> {
        let due = self.head_due(tally);
        let picked = match connecting {
            Err(Unconnected::Picked(picked)) => picked,
            ended => return ended,
        };
        tally.sent_to(self.destination(&picked));
        let acquiring = self.acquire(&picked, due);
        let error = match client.unless_gone(true, acquiring).await {
            Some(Ok(lease)) => return Ok(self.link(client, edits, picked, lease)),
            Some(Err(error)) => error,
            None => return Err(Unconnected::Gone),
        };
        let view = view_of(client, self.request);
        let other = self.pick_other(&view, &picked, error, tally);
        let other = other.map_err(Unconnected::Failed)?;
        let acquiring = self.acquire(&other, due);
        match client.unless_gone(true, acquiring).await {
            Some(Ok(lease)) => Ok(self.link(client, edits, other, lease)),
            Some(Err(error)) => Err(Unconnected::Failed(error)),
            None => Err(Unconnected::Gone),
        }
    }

    pub(super) fn link<T: Transport>(
        &self,
        client: &Client<T>,
        edits: Option<&HeadEdits>,
        picked: Picked,
        lease: Lease,
    ) -> Link {
        let view = view_of(client, self.request);
        Link {
            head: self.write_head(client, &view, edits, &picked),
            picked,
            lease,
        }
    }

    /// Makes the head for the destination.
    #[inline]
    pub(super) fn write_head<T: Transport>(
        &self,
        client: &Client<T>,
        view: &RequestView<'_>,
        edits: Option<&HeadEdits>,
        picked: &Picked,
    ) -> Result<Vec<u8>, Invalid> {
        let mut head = buffers::take(match self.request.head_length() {
            length if length <= USUAL_HEAD => buffers::HEAD,
            length if length <= LONG_HEAD => buffers::LONG_HEAD,
            _ => buffers::SMALL,
        });
        let outgoing = Outgoing {
            buffer: client.input.filled(),
            request: self.request,
            table: &client.table,
            view,
            route: self.route,
            plan: self.plan,
            edits,
            destination: &self.cluster.destinations()[picked.index.0 as usize],
            remote: client.state.remote_value(),
        };
        outgoing.write(&mut head).map(|()| head)
    }
}
