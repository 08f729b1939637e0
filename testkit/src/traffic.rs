//! The counts of an origin, and waits for them.

use std::sync::Arc;

use tokio::sync::watch;

use crate::time::guarded;

/// Number of connections and requests of an origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Number of these connections that have ended.
    pub closed: u64,
    /// TLS handshakes that failed; these connections count as accepted and closed too.
    pub failed_handshakes: u64,
    /// Requests whose head was read. A raw origin counts the heads that its script has read.
    pub requests: u64,
}

impl Counts {
    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        self.accepted - self.closed
    }
}

/// A live view of an origin's [`Counts`]. Clones view the same origin, and may outlive it.
///
/// Waits return as soon as their condition holds, without polling, and panic after
/// [`GUARD`](crate::time::GUARD). All of them are cancel safe.
#[derive(Clone, Debug)]
pub struct Traffic {
    counts: Arc<watch::Sender<Counts>>,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        let counts = Arc::new(watch::Sender::new(Counts::default()));
        Self { counts }
    }

    /// The counts now.
    pub fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Number of requests so far.
    pub fn requests(&self) -> u64 {
        self.counts().requests
    }

    /// Waits until at least `n` connections have been accepted since the start.
    #[track_caller]
    pub fn wait_for_connections(&self, n: u64) -> impl Future<Output = Counts> + use<> {
        self.wait_until(format!("{n} accepted connections"), move |counts| {
            counts.accepted >= n
        })
    }

    /// Waits until exactly `n` connections are open; with 0, until the last has closed.
    #[track_caller]
    pub fn wait_for_open(&self, n: u64) -> impl Future<Output = Counts> + use<> {
        self.wait_until(format!("{n} open connections"), move |counts| {
            counts.open() == n
        })
    }

    /// Waits until at least `n` connections have ended since the start.
    #[track_caller]
    pub fn wait_for_closed(&self, n: u64) -> impl Future<Output = Counts> + use<> {
        self.wait_until(format!("{n} closed connections"), move |counts| {
            counts.closed >= n
        })
    }

    /// Waits until at least `n` requests have been seen since the start.
    #[track_caller]
    pub fn wait_for_requests(&self, n: u64) -> impl Future<Output = Counts> + use<> {
        self.wait_until(format!("{n} requests"), move |counts| counts.requests >= n)
    }

    /// Waits until `condition` holds; `what` is part of the panic message.
    #[track_caller]
    pub fn wait_until<W, C>(
        &self,
        what: W,
        condition: C,
    ) -> impl Future<Output = Counts> + use<W, C>
    where
        W: Into<String>,
        C: FnMut(&Counts) -> bool,
    {
        let mut counts = self.counts.subscribe();
        let keep = self.clone();
        guarded(what, async move {
            let reached = counts
                .wait_for(condition)
                .await
                .map(|reached| *reached)
                .expect("the sender lives in `keep`");
            drop(keep);
            reached
        })
    }

    /// Counts a connection as accepted, and as closed when the returned value is dropped.
    pub(crate) fn connection(&self) -> OpenConnection {
        let mut id = 0;
        self.counts.send_modify(|counts| {
            id = counts.accepted;
            counts.accepted += 1;
        });
        OpenConnection {
            traffic: self.clone(),
            id,
        }
    }

    pub(crate) fn request(&self) {
        self.counts.send_modify(|counts| counts.requests += 1);
    }

    pub(crate) fn failed_handshake(&self) {
        self.counts
            .send_modify(|counts| counts.failed_handshakes += 1);
    }
}

/// One open connection in the counts.
pub(crate) struct OpenConnection {
    traffic: Traffic,
    /// 0 for the first connection of the origin.
    pub(crate) id: u64,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.traffic.counts.send_modify(|counts| counts.closed += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Traffic};

    #[tokio::test]
    async fn connections_are_counted_open_until_dropped() {
        let traffic = Traffic::new();
        let first = traffic.connection();
        let second = traffic.connection();
        assert_eq!((first.id, second.id), (0, 1));
        assert_eq!(traffic.wait_for_connections(2).await.open(), 2);
        drop(first);
        traffic.request();
        let counts = traffic.wait_for_open(1).await;
        assert_eq!(
            counts,
            Counts {
                accepted: 2,
                closed: 1,
                failed_handshakes: 0,
                requests: 1
            }
        );
    }

    #[tokio::test]
    async fn wait_ends_when_the_condition_becomes_true() {
        let traffic = Traffic::new();
        let wait = traffic.wait_for_requests(2);
        let count = async {
            traffic.request();
            tokio::task::yield_now().await;
            traffic.request();
        };
        let (counts, ()) = tokio::join!(wait, count);
        assert_eq!(counts.requests, 2);
    }
}
