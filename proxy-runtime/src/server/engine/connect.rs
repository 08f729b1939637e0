//! A connection for a request, and the head for it.

use http::StatusCode;
use proxy_model::compiled::DestinationIndex;

use super::failure::Failure;
use super::flow::Flow;
use super::outgoing::Outgoing;
use super::readdress::{SentHead, names_destination, readdress};
use super::request::{Run, view_of};
use super::tally::Tally;
use crate::cluster::Picked;
use crate::error::{ForwardError, ForwardErrorKind};
use crate::exchange::Place;
use crate::filter::Reply;
use crate::head::HeadEdits;
use crate::http1::{Framing, RequestView};
use crate::retry::Attempts;
use crate::server::http1::{Client, Transport};
use crate::stream::spare as buffers;
use crate::transform::Invalid;
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

/// What comes after an attempt that has failed.
pub(super) enum Again {
    /// The request is sent over this link, with the head that the flow has.
    Sends(Link),
    /// It stays at this failure over this link.
    Fails(Failure, Link),
    /// There is no link.
    Unconnected(Unconnected),
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

impl<'a> Run<'a> {
    fn place(&self, tally: &Tally<'_>) -> Place<'a> {
        let has_body = !matches!(self.request.framing(), Framing::None | Framing::Length(0));
        let is_careful = has_body || !self.request.method().is_idempotent();
        self.resolved.place(is_careful, self.head_due(tally))
    }

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
        let Some(lease) = self.ready(&self.place(tally), &picked, tally.started()) else {
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
        let mut picked = match connecting {
            Err(Unconnected::Picked(picked)) => picked,
            ended => return ended,
        };
        let mut attempts = Attempts::first();
        let place = self.place(tally);
        tally.sent_to(self.destination(&picked));
        loop {
            let acquiring = place.acquire(picked.index);
            let error = match client.unless_gone(true, acquiring).await {
                Some(Ok(lease)) => return Ok(self.link(client, edits, picked, lease)),
                Some(Err(error)) => error,
                None => return Err(Unconnected::Gone),
            };
            // What the client sends meanwhile is read behind its head, which is seen between two attempts only.
            let view = view_of(client, self.request);
            let other = place.elsewhere(picked.index, error, &view, &mut attempts, tally);
            picked = other.map_err(Unconnected::Failed)?;
        }
    }

    /// What comes after an attempt over a link that has failed, for a request whose head was written with these edits.
    pub(super) async fn again<T: Transport>(
        &self,
        client: &mut Client<T>,
        mut link: Link,
        flow: &mut Flow,
        (edits, failure): (Option<&HeadEdits>, Failure),
        tally: &mut Tally<'a>,
    ) -> Again {
        let is_kept = flow.upload.outbound.is_kept();
        let Some(connection) = link.lease.raw() else {
            return Again::Fails(failure, link);
        };
        let failed = failure.attempt(connection, self.request.method(), is_kept);
        let head = SentHead::read(&flow.upload.outbound.front, client.state.info.tls);
        let (Some(failed), Some(head)) = (failed, head) else {
            return Again::Fails(failure, link);
        };
        let (place, view, before) = (self.place(tally), head.view(), link.picked.index);
        let next = place.next(before, failed, &view, &mut flow.attempts, tally);
        let Some(next) = next else {
            return Again::Fails(failure, link);
        };
        let Link { picked, lease, .. } = link;
        let connection = (lease, flow.progress.since);
        let attempts = &mut flow.attempts;
        let reconnecting = place.reconnect(next, before, connection, &view, attempts, tally);
        // What is to come of the body is the upload's to read.
        let is_watched = !flow.upload.needs_more();
        let (moved, lease) = match client.unless_gone(is_watched, reconnecting).await {
            Some(Ok(connected)) => connected,
            Some(Err(error)) => return Again::Unconnected(Unconnected::Failed(error)),
            None => return Again::Unconnected(Unconnected::Gone),
        };
        let picked = match moved {
            None => picked,
            Some(moved) => {
                let head = &mut flow.upload.outbound.front;
                self.readdress(head, edits, (before, moved.index));
                moved
            }
        };
        flow.again(self.asked());
        Again::Sends(Link {
            picked,
            lease,
            head: Err(Invalid),
        })
    }

    /// Makes the head that was written for one destination the one that another gets.
    #[cold]
    pub(super) fn readdress(
        &self,
        head: &mut Vec<u8>,
        edits: Option<&HeadEdits>,
        (from, to): (DestinationIndex, DestinationIndex),
    ) {
        let destinations = self.cluster.destinations();
        let [from, to] = [from, to].map(|index| &destinations[index.0 as usize]);
        let has_authority = !self.request.authority().is_empty();
        let names_it = names_destination(self.plan, edits, has_authority);
        readdress(head, from, to, names_it);
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
            connection: &client.state.info,
        };
        outgoing.write(&mut head).map(|()| head)
    }
}
