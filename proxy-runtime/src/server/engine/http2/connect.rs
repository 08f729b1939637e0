//! A connection for a stream's request.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use tokio::time::Instant;

use super::request::Run;
use crate::cluster::Picked;
use crate::exchange::{Next, Place};
use crate::http1::Framing;
use crate::retry::Attempts;
use crate::server::engine::connect::{Link, Unconnected};
use crate::server::engine::failure::Failure;
use crate::server::engine::tally::Tally;
use crate::server::http2::Client;
use crate::transform::Invalid;
use crate::upstream::Lease;

impl<'a> Run<'a> {
    fn place(&self, tally: &Tally<'_>) -> Place<'a> {
        let has_body = !matches!(self.framing, Framing::None | Framing::Length(0));
        let is_careful = has_body || !self.asked().method.is_idempotent();
        self.resolved.place(is_careful, self.head_due(tally))
    }

    /// An idle connection to a destination, for which the request is counted, and the head for it.
    pub(super) fn connect_now(
        &self,
        client: &Client,
        tally: &mut Tally<'a>,
    ) -> Result<Link, Unconnected> {
        let picked = self.pick(&self.head).map_err(Unconnected::Failed)?;
        let Some(lease) = self.ready(&self.place(tally), &picked, tally.started()) else {
            return Err(Unconnected::Picked(picked));
        };
        tally.sent_over(self.destination(&picked), &picked.in_flight);
        Ok(self.link(client, picked, lease))
    }

    /// A connection to the picked destination, or to another one if none can be opened there.
    pub(super) async fn connect(
        &self,
        unconnected: Unconnected,
        client: &mut Client,
        tally: &mut Tally<'a>,
    ) -> Result<Link, Unconnected> {
        let Unconnected::Picked(picked) = unconnected else {
            return Err(unconnected);
        };
        tally.sent_to(self.destination(&picked));
        let place = self.place(tally);
        let mut attempts = Attempts::first();
        let connecting = place.connect(picked, &self.head, &mut attempts, tally);
        let connected = unless_gone(client, connecting).await;
        let (picked, lease) = connected
            .ok_or(Unconnected::Gone)?
            .map_err(Unconnected::Failed)?;
        Ok(self.link(client, picked, lease))
    }

    /// Where a request goes that was sent over a link and has failed like this. `None` if it is not sent again.
    #[cold]
    pub(super) fn next(
        &self,
        link: &mut Link,
        (failure, is_kept): (&Failure, bool),
        attempts: &mut Attempts,
        tally: &mut Tally<'a>,
    ) -> Option<Next> {
        let connection = link.lease.raw()?;
        let failed = failure.attempt(connection, self.asked().method, is_kept)?;
        let place = self.place(tally);
        place.next(link.picked.index, failed, &self.head, attempts, tally)
    }

    /// The link for the next attempt, in the place of one that failed, of which the request had got hold at `since`. It has a head if
    /// that is another one than was sent.
    pub(super) async fn reconnect(
        &self,
        next: Next,
        (link, since): (Link, Instant),
        client: &mut Client,
        attempts: &mut Attempts,
        tally: &mut Tally<'a>,
    ) -> Result<(Link, bool), Unconnected> {
        let Link { picked, lease, .. } = link;
        let place = self.place(tally);
        let connection = (lease, since);
        let reconnecting =
            place.reconnect(next, picked.index, connection, &self.head, attempts, tally);
        let connected = unless_gone(client, reconnecting).await;
        let (moved, lease) = connected
            .ok_or(Unconnected::Gone)?
            .map_err(Unconnected::Failed)?;
        Ok(match moved {
            Some(picked) => (self.link(client, picked, lease), true),
            None => {
                let head = Err(Invalid);
                let link = Link {
                    picked,
                    lease,
                    head,
                };
                (link, false)
            }
        })
    }

    fn link(&self, client: &Client, picked: Picked, lease: Lease) -> Link {
        Link {
            head: self.write_head(client, &picked),
            picked,
            lease,
        }
    }
}

/// Waits for `work`; `None` when the client has reset the stream before it is done.
async fn unless_gone<F: Future>(client: &mut Client, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        client.respond.poll_reset(cx).map(|_| None)
    })
    .await
}
