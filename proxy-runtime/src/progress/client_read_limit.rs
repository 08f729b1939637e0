//! How long the client of a response may take nothing of it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::progress::SharedProgress;
use crate::progress::after;

/// How long the client of a response may take nothing of it while nothing else happens in its exchange: the `ActivityTimeout` of
/// the cluster.
///
/// It goes from the proxy to the server with what there is to say of a response: a body that nobody polls cannot look at a
/// clock, and layers may have put it into another one.
#[derive(Clone, Debug)]
pub(crate) struct ClientReadLimit {
    timeout: Duration,
    /// What may still be uploaded beside the response.
    progress: Weak<SharedProgress>,
    /// Bytes of the response that may have come and were not asked for.
    behind: u64,
}

/// For what the server says itself, or a service that does not care: as long as where a cluster does not say.
impl Default for ClientReadLimit {
    fn default() -> Self {
        Self::new(Duration::from_secs(100))
    }
}

impl ClientReadLimit {
    /// For a response all of which has come.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            progress: Weak::new(),
            behind: 0,
        }
    }

    /// For the response of an exchange that goes on, of which so many bytes may come without being asked for.
    pub(crate) fn of(timeout: Duration, progress: &Arc<SharedProgress>, behind: u64) -> Self {
        Self {
            timeout,
            progress: Arc::downgrade(progress),
            behind,
        }
    }

    /// Bytes of the response that may have come and were not asked for.
    pub(crate) fn behind(&self) -> u64 {
        self.behind
    }

    /// When a client is given up that has taken nothing since then, if nothing happens.
    pub(crate) fn due(&self, since: Instant) -> Instant {
        let due = after(since, self.timeout);
        let progress = self.progress.upgrade();
        progress.map_or(due, |progress| due.max(progress.activity.deadline()))
    }
}
