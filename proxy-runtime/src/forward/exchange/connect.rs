//! The connection for a request, and the retry over another one.

use std::pin::pin;

use http::StatusCode;

use super::downstream::{Downstream, ExchangeStateOf, Headed, Upload};
use super::failure::Failure;
use super::filtering::{Filtering, RequestWait};
use super::readdress::{names_destination, readdress};
use super::recorder::Recorder;
use super::resolved_route::ResolvedRoute;
use crate::cluster::Picked;
use crate::error::{ForwardError, ForwardErrorKind};
use crate::filter::Reply;
use crate::head::HeaderMutations;
use crate::retry::Attempts;
use crate::transform::Invalid;
use crate::upstream::Lease;

/// A picked destination with a connection.
pub(crate) struct Link {
    pub(crate) picked: Picked,
    pub(crate) lease: Lease,
    /// The serialised request head, until it is sent.
    pub(crate) head: Result<Vec<u8>, Invalid>,
}

/// The reason for having no connection.
pub(crate) enum Unconnected {
    /// There is no idle connection to the picked destination.
    Picked(Picked),
    Failed(ForwardError),
    /// A policy or a filter waits.
    Waits(RequestWait),
    /// A policy or a filter has replied.
    Replied(Box<Reply>),
    /// The client has disconnected.
    Disconnected,
}

/// The next step after a failed attempt.
pub(crate) enum Again {
    /// The request is sent over this link, with the head in the flow.
    Sends(Link),
    /// There is no retry: the failure over this link is final.
    Fails(Failure, Link),
    /// There is no connection for a retry.
    Unconnected(Unconnected),
}

impl Unconnected {
    pub(crate) fn rejection(&self) -> (ForwardErrorKind, StatusCode) {
        match self {
            // `give_up` handles replies and clients that left itself. A pick or a wait never ends there.
            Self::Picked(_) | Self::Waits(_) | Self::Replied(_) | Self::Disconnected => (
                ForwardErrorKind::NoAvailableDestinations,
                StatusCode::SERVICE_UNAVAILABLE,
            ),
            Self::Failed(error) => (error.kind(), error.status()),
        }
    }
}

impl<'a> ResolvedRoute<'a> {
    /// Picks a destination, takes an idle connection to it, and serialises the head.
    #[inline]
    pub(crate) fn connect_now<D: Downstream>(
        &self,
        down: &D,
        edits: Option<&HeaderMutations>,
        recorder: &mut Recorder<'a>,
    ) -> Result<Link, Unconnected> {
        let head = down.head();
        let picked = self.pick(&head).map_err(Unconnected::Failed)?;
        let place = self.place(down, &picked, recorder);
        if place.switch.is_some() {
            // There is more to ask of a connection.
            return Err(Unconnected::Picked(picked));
        }
        let mut lease = match self.ready(&place, &picked, recorder.started()) {
            Ok(Some(lease)) => lease,
            Ok(None) => return Err(Unconnected::Picked(picked)),
            Err(error) => {
                // Nothing is sent, but the error counts for this destination.
                recorder.sent_to(self.destination(&picked));
                return Err(Unconnected::Failed(error));
            }
        };
        recorder.sent_over(self.destination(&picked), &picked.in_flight);
        // After the pick, since `Host` and path may name the destination.
        let written = down.write_head(&head, self, edits, &picked);
        Ok(Link {
            head: self.prepare(&mut lease, written),
            picked,
            lease,
        })
    }

    /// Waits for the decisions of policies and filters, and then picks as [`connect_now`](Self::connect_now) does.
    async fn decided<D: Downstream>(
        &self,
        mut wait: RequestWait,
        down: &mut D,
        filtering: &mut Filtering,
        recorder: &mut Recorder<'a>,
    ) -> Result<Link, Unconnected> {
        let due = self.head_due(down, recorder);
        loop {
            let waited = pin!(wait.until(due, self));
            let waited = match down.unless_gone(true, waited).await {
                None => return Err(Unconnected::Disconnected),
                Some(waited) => waited.map_err(Unconnected::Failed)?,
            };
            match filtering.resume(waited, self, down) {
                Ok(()) => {}
                // Another policy or filter of the route may wait as well.
                Err(Unconnected::Waits(again)) => {
                    wait = again;
                    continue;
                }
                Err(unconnected) => return Err(unconnected),
            }
            if let Some(trace) = recorder.trace() {
                filtering.trace(trace);
            }
            let link = self.connect_now(down, filtering.edits(), recorder);
            recorder.ready();
            return link;
        }
    }

    /// Opens a connection to the picked destination, or to another one if that fails. The request
    /// counts for each destination that is tried. Before that, policies and filters may wait.
    pub(crate) async fn connect<D: Downstream>(
        &self,
        unconnected: Unconnected,
        down: &mut D,
        filtering: &mut Filtering,
        recorder: &mut Recorder<'a>,
    ) -> Result<Link, Unconnected> {
        let unconnected = match unconnected {
            Unconnected::Waits(wait) => match self.decided(wait, down, filtering, recorder).await {
                Ok(link) => return Ok(link),
                Err(unconnected) => unconnected,
            },
            unconnected => unconnected,
        };
        let Unconnected::Picked(mut picked) = unconnected else {
            return Err(unconnected);
        };
        let edits = filtering.edits();
        let mut attempts = Attempts::first();
        let place = self.place(down, &picked, recorder);
        // Before there is a connection: failing to connect counts for the destination, too.
        recorder.sent_to(self.destination(&picked));
        loop {
            // Pinned here, as what is passed on is held twice: many streams of a client may wait for a destination.
            let acquiring = pin!(place.acquire(picked.index));
            let error = match down.unless_gone(true, acquiring).await {
                Some(Ok(mut lease)) => {
                    recorder.ready();
                    let mut head = down.write_head(&down.head(), self, edits, &picked);
                    if let (Some(trace), Ok(head)) = (recorder.trace(), &mut head) {
                        trace.readdress(head);
                    }
                    return Ok(Link {
                        head: self.prepare(&mut lease, head),
                        picked,
                        lease,
                    });
                }
                Some(Err(error)) => error,
                None => return Err(Unconnected::Disconnected),
            };
            // The client's input may grow during an attempt, so the head is borrowed only in between.
            let other = place.elsewhere(picked.index, error, &down.head(), &mut attempts, recorder);
            picked = other.map_err(Unconnected::Failed)?;
        }
    }

    /// Decides about a retry of a request that failed over `link`, and connects. `edits`: the
    /// changes of filters in the head.
    pub(crate) async fn again<D: Downstream>(
        &self,
        down: &mut D,
        mut link: Link,
        flow: &mut ExchangeStateOf<D>,
        (edits, failure): (Option<&HeaderMutations>, Failure),
        recorder: &mut Recorder<'a>,
    ) -> Again {
        let is_kept = flow.outbound.is_kept();
        let over = link.lease.over();
        let Some(connection) = link.lease.raw() else {
            return Again::Fails(failure, link);
        };
        let failed = failure.attempt((connection, over), self.method, is_kept);
        link.lease.restore(&mut flow.outbound.front);
        // The client's own text may be gone by now, so the policies read the copy that was sent.
        let sent = down.sent_head(&flow.outbound.front);
        let (Some(failed), Some(sent)) = (failed, sent) else {
            return Again::Fails(failure, link);
        };
        let head = sent.head();
        let (place, before) = (self.place(down, &link.picked, recorder), link.picked.index);
        let next = place.next(before, failed, &head, &mut flow.attempts, recorder);
        let Some(next) = next else {
            return Again::Fails(failure, link);
        };
        let Link { picked, lease, .. } = link;
        let connection = (lease, flow.progress.since);
        // The upload reads the rest of a body.
        let is_watched = !flow.upload.needs_more();
        let reconnected = {
            let attempts = &mut flow.attempts;
            let reconnecting =
                pin!(place.reconnect(next, before, connection, &head, attempts, recorder));
            down.unless_gone(is_watched, reconnecting).await
        };
        let (moved, mut lease) = match reconnected {
            Some(Ok(connected)) => connected,
            Some(Err(error)) => return Again::Unconnected(Unconnected::Failed(error)),
            None => return Again::Unconnected(Unconnected::Disconnected),
        };
        drop(head);
        drop(sent);
        recorder.ready();
        let picked = match moved {
            None => picked,
            Some(moved) => {
                // The head was serialised for the other destination.
                let destinations = self.cluster.destinations();
                let [from, to] = [before, moved.index].map(|index| &destinations[index.0 as usize]);
                let names_it = names_destination(self.plan, edits, down.has_authority());
                readdress(&mut flow.outbound.front, from, to, names_it);
                moved
            }
        };
        if let Some(trace) = recorder.trace() {
            trace.readdress(&mut flow.outbound.front);
        }
        if lease.prepare(&mut flow.outbound.front).is_err() {
            let (kind, status) = (ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY);
            let failed = Unconnected::Failed(ForwardError::new(kind, status));
            return Again::Unconnected(failed);
        }
        flow.again();
        Again::Sends(Link {
            picked,
            lease,
            // The head is in the flow already.
            head: Err(Invalid),
        })
    }
}
