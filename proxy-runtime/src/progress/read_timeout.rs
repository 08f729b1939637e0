//! The time limit for clients that read nothing, where no minimum rate applies.

use tokio::time::Instant;

use super::client_read_limit::ClientReadLimit;

/// The check that a client reads a response where no minimum rate applies. A client that does not would hold a
/// destination's connection forever.
#[derive(Debug)]
pub(crate) struct ClientReadTimeout {
    limit: ClientReadLimit,
    /// The time since which data waits for the client.
    since: Option<Instant>,
}

impl ClientReadTimeout {
    pub(crate) fn new(limit: ClientReadLimit) -> Self {
        Self { limit, since: None }
    }

    /// The client has taken something, or nothing waits for it.
    pub(crate) fn moved(&mut self) {
        self.since = None;
    }

    /// Starts a wait, and returns the time at which the client times out if it reads nothing.
    pub(crate) fn due(&mut self) -> Instant {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.limit.due(since)
    }
}
