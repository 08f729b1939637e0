//! A connection that is being opened.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use discovery_core::text::with_causes;
use proxy_model::compiled::Upstream;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::connect::Connector;
use super::destination::DestinationPool;
use super::error::ConnectError;
use super::io::UpstreamIo;
use super::lease::Lease;
use super::protocol::Protocols;
use super::proxy_header::AnnouncedClient;
use super::queue::ConnectAttempt;
use super::slot::Slot;
use crate::contain::contained;
use crate::live::DestinationState;
use crate::observe::targets;

/// Time for which requests wait for a shared attempt to connect. After it, when a lost first SYN is sent again (RFC
/// 6298 section 2.1), another attempt is made beside the first, which may never succeed.
pub(super) const OVERDUE: Duration = Duration::from_secs(1);

/// The parameters for opening a connection.
#[derive(Clone, Copy)]
pub(super) struct Opening<'a> {
    pub(super) connector: &'a Arc<Connector>,
    pub(super) destination: &'a Arc<DestinationState>,
    pub(super) upstream: &'a Upstream,
    pub(super) protocols: Protocols,
    /// The client that the connection is announced for.
    pub(super) announced: Option<AnnouncedClient>,
    /// The pool that the connection is for.
    pub(super) pool: &'a Weak<DestinationPool>,
}

/// A guard that counts a cancelled attempt as failed if it was overdue, because the destination did not respond in
/// time.
struct Unanswered<'a> {
    /// The destination; `None` after its response.
    destination: Option<&'a DestinationState>,
    connector: &'a Connector,
    since: Instant,
}

impl Unanswered<'_> {
    fn answered(mut self) {
        self.destination = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(destination) = self.destination
            && self.since.elapsed() >= OVERDUE
        {
            failed(self.connector, destination, &ConnectError::TimedOut);
        }
    }
}

#[cold]
fn failed(connector: &Connector, destination: &DestinationState, error: &ConnectError) {
    let metrics = destination.metrics();
    metrics.connect_failures.increment();
    metrics.failures.connect_failed(&with_causes(error));
    if error.is_of_destination() {
        connector.report_unreachable(destination.cluster());
    }
    debug!(
        target: targets::UPSTREAM,
        cluster = %destination.cluster(),
        destination = %destination.id(),
        error = error as &dyn std::error::Error,
        "connection cannot be opened",
    );
}

impl Opening<'_> {
    /// Opens the connection for one request.
    ///
    /// Cancel-safe: if dropped, it closes the connection and releases the slot.
    pub(super) async fn run(self, slot: Slot) -> Result<Lease, ConnectError> {
        let unanswered = Unanswered {
            destination: Some(self.destination),
            connector: self.connector,
            since: Instant::now(),
        };
        // A certificate verifier of the program may panic, which must end only this attempt. Boxed, since the futures
        // that wait for it hold it more than once: a client may have many streams wait for a destination.
        let opened = contained(Box::pin(self.open_and_greet(slot))).await;
        let opened = opened.unwrap_or_else(|panic| {
            let panic = io::Error::other(format!("a panic: {}", panic.0));
            Err(ConnectError::Open(Arc::new(panic)))
        });
        unanswered.answered();
        if let Err(error) = &opened {
            failed(self.connector, self.destination, error);
        }
        opened
    }

    /// Opens the connection for all requests that wait for `attempt`, within `patience`, in a task. It belongs to
    /// none of them, because each may be cancelled or time out earlier; the task runs as long as the pool exists. The
    /// first request receives the result, after the connection is available to the others.
    pub(super) fn run_for_all(
        self,
        slot: Slot,
        mut attempt: ConnectAttempt,
        patience: Duration,
    ) -> oneshot::Receiver<Result<Lease, ConnectError>> {
        let (first, opened) = oneshot::channel();
        // The task outlives the request, so it borrows nothing of it.
        let connector = Arc::clone(self.connector);
        let destination = Arc::clone(self.destination);
        let upstream = self.upstream.clone();
        let pool = Weak::clone(self.pool);
        let (protocols, announced) = (self.protocols, self.announced);
        tokio::spawn(async move {
            let opening = Opening {
                connector: &connector,
                destination: &destination,
                upstream: &upstream,
                protocols,
                announced,
                pool: &pool,
            };
            let opened = tokio::select! {
                biased;
                _ = &mut attempt.stopped => return,
                // Each waiting request has its own time limit, so the failure is not theirs.
                opened = timeout(patience, opening.run(slot)) => match opened {
                    Ok(opened) => opened,
                    Err(_) => return,
                },
            };
            if let Err(error) = &opened {
                // Otherwise each waiting request would make the same failing attempt in turn.
                let _ = attempt.result.send(Some(error.clone()));
            }
            // Ends the wait of the other requests, which find the connection now.
            drop(attempt);
            if let Err(Ok(lease)) = first.send(opened) {
                // The first request has gone, so the connection serves others.
                lease.release(Instant::now());
            }
        });
        opened
    }

    async fn open_and_greet(self, slot: Slot) -> Result<Lease, ConnectError> {
        let address = self.destination.address();
        let opened = self
            .connector
            .open(
                self.destination.cluster(),
                address,
                self.upstream,
                self.protocols,
                self.announced,
            )
            .await?;
        // The phases end before HTTP begins.
        opened.took.record(self.destination.connect_times());
        let (peer, is_http2, absolute) = (opened.peer, opened.http2, opened.absolute);
        let open = self.destination.connection_opened();
        let io = UpstreamIo::new(opened.transport, open, slot);
        let lease = Lease::greet(io, peer, is_http2, absolute).await?;
        if let Some(pool) = self.pool.upgrade() {
            pool.opened(&lease, self.protocols);
        }
        Ok(lease)
    }
}

#[cfg(test)]
mod tests {
    use discovery_core::{Unreachable, UnreachableClusters};
    use futures_util::FutureExt;
    use proxy_model::compiled::ClusterIndex;
    use tokio::time::advance;

    use super::*;
    use crate::Proxy;
    use crate::fixtures::snapshot;
    use crate::upstream::{Connectors, UpstreamOptions};

    #[tokio::test(start_paused = true)]
    async fn what_is_given_up_has_failed_if_it_is_overdue() {
        let config = r#"{"Clusters":{"c":{"Destinations":{"d":{"Address":"http://h/"}}}}}"#;
        let (proxy, _) = Proxy::builder().snapshot(snapshot(config)).build().unwrap();
        let generation = proxy.service().shared().load_full();
        let destination = &generation.cluster(ClusterIndex(0)).destinations()[0];
        let reported = Arc::new(UnreachableClusters::new());
        let connector = Connector::new(
            &UpstreamOptions::default(),
            Connectors::default(),
            Some(Arc::clone(&reported)),
        );
        let nearly = OVERDUE - Duration::from_nanos(1);
        for (takes, is_answered, failures) in
            [(nearly, false, 0), (OVERDUE, true, 0), (OVERDUE, false, 1)]
        {
            let unanswered = Unanswered {
                destination: Some(destination),
                connector: &connector,
                since: Instant::now(),
            };
            advance(takes).await;
            match is_answered {
                true => unanswered.answered(),
                false => drop(unanswered),
            }
            let counted = destination.metrics().connect_failures.get();
            assert_eq!(counted, failures, "{takes:?} {is_answered}");
        }
        let reported = reported.next().now_or_never().expect("it is there");
        assert_eq!(reported, [("c".into(), Unreachable::Destination)]);
    }
}
