//! What has not come of a request's body when its response is written.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use super::{BodySender, DISCARDED, Rest, lock};
use crate::http1::HeadLimits;
use crate::server::connection::{Transport, after};
use crate::server::http1::client::Client;

/// How long the rest of a body that nobody wants is waited for, all of it together. Many clients send a small body in a
/// segment of its own, which the response overtakes.
const PATIENCE: Duration = Duration::from_secs(5);

impl BodySender {
    /// Behind the response: lets whoever reads the body read on, and if the connection is to be kept, passes over what
    /// nobody wants, unless it is too much or does not come. Returns whether the next request follows.
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

    /// Brings the body to its reader until it is at its end, or the reader lets go of it. Returns whether it has: a reader
    /// that asks for nothing has as much time as an idle connection. The pace of a client that is waited for is the
    /// reader's to watch.
    async fn read_on<T: Transport>(&mut self, client: &mut Client<T>, limits: &HeadLimits) -> bool {
        lock(&self.shared).outlives_response = true;
        let idle = client.state.worker.limits.keep_alive;
        let mut due = after(Instant::now(), idle);
        poll_fn(|cx| {
            while !self.has_ended() && !self.is_lost() {
                if self.poll_pump(cx, client, limits, false).is_ready() {
                    due = after(Instant::now(), idle);
                } else if lock(&self.shared).is_abandoned {
                    // Looked at once the reader knows whom to wake.
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
                    Err(_) => self.rest = Rest::Broken,
                }
                budget = budget.saturating_sub(before);
            }
            Poll::Ready(())
        })
        .await;
    }
}
