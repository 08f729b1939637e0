//! The time limit for a client that does not read its response.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::progress::SharedProgress;
use crate::progress::after;

/// The longest time without progress of a response whose client does not read: the cluster's `ActivityTimeout`.
///
/// The proxy passes it to the server in the response's extensions, because a body that is not polled cannot check a
/// clock, and layers may have wrapped the body.
#[derive(Clone, Debug)]
pub(crate) struct ClientReadLimit {
    timeout: Duration,
    /// The exchange, whose upload may still make progress.
    progress: Weak<SharedProgress>,
    /// Number of response bytes that may have arrived without being polled.
    behind: u64,
}

/// The limit for local replies and services without one: the default `ActivityTimeout`, 100 s.
impl Default for ClientReadLimit {
    fn default() -> Self {
        Self::new(Duration::from_secs(100))
    }
}

impl ClientReadLimit {
    /// Creates the limit of a response that has arrived completely.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            progress: Weak::new(),
            behind: 0,
        }
    }

    /// Creates the limit of a response that continues, of which `behind` bytes may arrive without being polled.
    pub(crate) fn of(timeout: Duration, progress: &Arc<SharedProgress>, behind: u64) -> Self {
        Self {
            timeout,
            progress: Arc::downgrade(progress),
            behind,
        }
    }

    /// Number of response bytes that may have arrived without being polled.
    pub(crate) fn behind(&self) -> u64 {
        self.behind
    }

    /// Returns the time at which a client that has read nothing since `since` times out.
    pub(crate) fn due(&self, since: Instant) -> Instant {
        let due = after(since, self.timeout);
        let progress = self.progress.upgrade();
        progress.map_or(due, |progress| due.max(progress.activity.deadline()))
    }
}
