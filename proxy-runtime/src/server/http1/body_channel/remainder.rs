//! The rest of a request body after the response was written.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use super::{BodySender, DISCARDED, RemainingBody, lock};
use crate::http1::HeadLimits;
use crate::server::connection::{Transport, after};
use crate::server::http1::client::Client;

/// Time limit for the rest of an unread body. Many clients send a small body in its own segment,
/// which the response overtakes.
const PATIENCE: Duration = Duration::from_secs(5);

impl BodySender {
    /// Lets the reader continue after the response. For a connection that stays open, discards the unread rest,
    /// unless it is too large or does not arrive. Returns true if the next request follows.
    pub(in crate::server::http1) async fn finish<T: Transport>(
        &mut self,
        client: &mut Client<T>,
        limits: &HeadLimits,
        keep: bool,
    ) -> bool {
        if self.read_on(client, limits).await && keep {
            self.discard(client, limits).await;
        }
        self.has_ended()
    }

    /// Passes the body to its reader until it ends or the reader drops it. Returns false if the
    /// reader is idle for longer than an idle connection may be. The reader enforces the data rate
    /// of the client.
    async fn read_on<T: Transport>(&mut self, client: &mut Client<T>, limits: &HeadLimits) -> bool {
        lock(&self.shared).outlives_response = true;
        let idle = client.state.worker.limits.keep_alive;
        let mut due = after(Instant::now(), idle);
        poll_fn(|cx| {
            while !self.has_ended() && !self.is_lost() {
                if self.poll_pump(cx, client, limits, false).is_ready() {
                    due = after(Instant::now(), idle);
                } else if lock(&self.shared).is_abandoned {
                    // Checked after `poll_pump`, which registers the waker.
                    break;
                } else {
                    return client.clock.poll_due(cx, due).map(|()| false);
                }
            }
            Poll::Ready(true)
        })
        .await
    }

    async fn discard<T: Transport>(&mut self, client: &mut Client<T>, limits: &HeadLimits) {
        let due = after(Instant::now(), PATIENCE);
        let mut budget = DISCARDED;
        poll_fn(|cx| {
            while budget > 0 && !self.has_ended() && !self.is_lost() {
                let before = client.input.filled().len();
                match self.take_part(client, limits) {
                    Ok(Some(_)) => {}
                    Ok(None) => match client.input.poll_read(&mut client.io, cx) {
                        Poll::Ready(Ok(1..)) => {}
                        Poll::Ready(_) => break,
                        Poll::Pending => return client.clock.poll_due(cx, due),
                    },
                    Err(_) => self.rest = RemainingBody::Broken,
                }
                // Framing counts as well, so that tiny chunks do not make the rest endless.
                budget = budget.saturating_sub(before);
            }
            Poll::Ready(())
        })
        .await;
    }
}
