//! A connection for a request, the head for it, and another connection in the place of one that failed.

use http::StatusCode;

use super::downstream::{Downstream, FlowOf, Headed, Upload};
use super::failure::Failure;
use super::readdress::{names_destination, readdress};
use super::resolved_route::ResolvedRoute;
use super::tally::Tally;
use crate::cluster::Picked;
use crate::error::{ForwardError, ForwardErrorKind};
use crate::filter::Reply;
use crate::head::HeadEdits;
use crate::retry::Attempts;
use crate::transform::Invalid;
use crate::upstream::Lease;

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

impl<'a> ResolvedRoute<'a> {
    /// An idle connection to a destination, for which the request is counted, and the head for it.
    #[inline]
    pub(super) fn connect_now<D: Downstream>(
        &self,
        down: &D,
        edits: Option<&HeadEdits>,
        tally: &mut Tally<'a>,
    ) -> Result<Link, Unconnected> {
        let head = down.head();
        let picked = self.pick(&head).map_err(Unconnected::Failed)?;
        let place = self.place(down, tally);
        let Some(lease) = self.ready(&place, &picked, tally.started()) else {
            return Err(Unconnected::Picked(picked));
        };
        tally.sent_over(self.destination(&picked), &picked.in_flight);
        Ok(Link {
            head: down.write_head(&head, self, edits, &picked),
            picked,
            lease,
        })
    }

    /// A connection to the picked destination, or to another one if none can be opened there. The request is counted for those that it
    /// waits for.
    pub(super) async fn connect<D: Downstream>(
        &self,
        unconnected: Unconnected,
        down: &mut D,
        edits: Option<&HeadEdits>,
        tally: &mut Tally<'a>,
    ) -> Result<Link, Unconnected> {
        let Unconnected::Picked(mut picked) = unconnected else {
            return Err(unconnected);
        };
        let mut attempts = Attempts::first();
        let place = self.place(down, tally);
        tally.sent_to(self.destination(&picked));
        loop {
            let acquiring = place.acquire(picked.index);
            let error = match down.unless_gone(true, acquiring).await {
                Some(Ok(lease)) => {
                    return Ok(Link {
                        head: down.write_head(&down.head(), self, edits, &picked),
                        picked,
                        lease,
                    });
                }
                Some(Err(error)) => error,
                None => return Err(Unconnected::Gone),
            };
            // What the client sends meanwhile is read behind its head, which is seen between two attempts only.
            let other = place.elsewhere(picked.index, error, &down.head(), &mut attempts, tally);
            picked = other.map_err(Unconnected::Failed)?;
        }
    }

    /// What comes after an attempt over a link that has failed, for a request whose head was written with these edits.
    pub(super) async fn again<D: Downstream>(
        &self,
        down: &mut D,
        mut link: Link,
        flow: &mut FlowOf<D>,
        (edits, failure): (Option<&HeadEdits>, Failure),
        tally: &mut Tally<'a>,
    ) -> Again {
        let is_kept = flow.outbound.is_kept();
        let Some(connection) = link.lease.raw() else {
            return Again::Fails(failure, link);
        };
        let failed = failure.attempt(connection, self.method, is_kept);
        let sent = down.sent_head(&flow.outbound.front);
        let (Some(failed), Some(sent)) = (failed, sent) else {
            return Again::Fails(failure, link);
        };
        let head = sent.head();
        let (place, before) = (self.place(down, tally), link.picked.index);
        let next = place.next(before, failed, &head, &mut flow.attempts, tally);
        let Some(next) = next else {
            return Again::Fails(failure, link);
        };
        let Link { picked, lease, .. } = link;
        let connection = (lease, flow.progress.since);
        let attempts = &mut flow.attempts;
        let reconnecting = place.reconnect(next, before, connection, &head, attempts, tally);
        // What is to come of the body is the upload's to read.
        let is_watched = !flow.upload.needs_more();
        let (moved, lease) = match down.unless_gone(is_watched, reconnecting).await {
            Some(Ok(connected)) => connected,
            Some(Err(error)) => return Again::Unconnected(Unconnected::Failed(error)),
            None => return Again::Unconnected(Unconnected::Gone),
        };
        drop(head);
        drop(sent);
        let picked = match moved {
            None => picked,
            Some(moved) => {
                // The head that was written for one destination becomes the one that another gets.
                let destinations = self.cluster.destinations();
                let [from, to] = [before, moved.index].map(|index| &destinations[index.0 as usize]);
                let names_it = names_destination(self.plan, edits, down.has_authority());
                readdress(&mut flow.outbound.front, from, to, names_it);
                moved
            }
        };
        flow.again();
        Again::Sends(Link {
            picked,
            lease,
            head: Err(Invalid),
        })
    }
}
