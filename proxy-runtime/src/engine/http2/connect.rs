//! A connection for a stream's request.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use super::request::Run;
use crate::engine::connect::{Link, Unconnected};
use crate::engine::tally::Tally;
use crate::forward::ForwardError;
use crate::server::http2::Client;
use crate::state::Picked;
use crate::upstream::Lease;

impl<'a> Run<'a> {
    /// An idle connection to a destination, for which the request is counted, and the head for it.
    pub(super) fn connect_now(
        &self,
        client: &Client,
        tally: &mut Tally<'a>,
    ) -> Result<Link, Unconnected> {
        let picked = self.pick(&self.head).map_err(Unconnected::Failed)?;
        let pool = self.engine.service().pool();
        let Some(lease) = pool.ready(&self.wanted(&picked), tally.started()) else {
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
        let connected = unless_gone(client, self.connect_to(picked, tally)).await;
        let (picked, lease) = connected
            .ok_or(Unconnected::Gone)?
            .map_err(Unconnected::Failed)?;
        Ok(self.link(client, picked, lease))
    }

    async fn connect_to(
        &self,
        picked: Picked,
        tally: &mut Tally<'a>,
    ) -> Result<(Picked, Lease), ForwardError> {
        let due = self.head_due(tally);
        let error = match self.acquire(&picked, due).await {
            Ok(lease) => return Ok((picked, lease)),
            Err(error) => error,
        };
        let other = self.pick_other(&self.head, &picked, error, tally)?;
        let lease = self.acquire(&other, due).await?;
        Ok((other, lease))
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
pub(super) async fn unless_gone<F: Future>(client: &mut Client, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        client.respond.poll_reset(cx).map(|_| None)
    })
    .await
}
