//! The time limit for a client that does not read its response.

use std::time::Duration;

use tokio::time::Instant;

use crate::progress::after;

/// The longest time without progress of a response whose client does not read: the cluster's `ActivityTimeout`.
///
/// The proxy passes it to the server in the response's extensions, because a body that is not polled cannot check a
/// clock, and layers may have wrapped the body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientReadLimit {
    timeout: Duration,
    /// Number of response bytes that may have arrived without being polled.
    behind: u64,
    /// The time at which a client that has not read all of the response times out.
    until: Option<Instant>,
}

/// The limit for local replies and services without one: the default `ActivityTimeout`, 100 s.
impl Default for ClientReadLimit {
    fn default() -> Self {
        Self::new(Duration::from_secs(100), 0)
    }
}

impl ClientReadLimit {
    /// Creates the limit of a response. `behind` bytes may arrive without a poll.
    pub(crate) fn new(timeout: Duration, behind: u64) -> Self {
        Self {
            timeout,
            behind,
            until: None,
        }
    }

    /// Returns the limit for a response that must also end by `until`.
    pub(crate) fn with_end(self, until: Option<Instant>) -> Self {
        Self { until, ..self }
    }

    /// Returns the time at which a client that has not read all of the response times out.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Number of response bytes that may have arrived without being polled.
    pub(crate) fn behind(&self) -> u64 {
        self.behind
    }

    /// Returns the time at which a client that has read nothing since `since` times out.
    pub(crate) fn due(&self, since: Instant) -> Instant {
        after(since, self.timeout)
    }
}
