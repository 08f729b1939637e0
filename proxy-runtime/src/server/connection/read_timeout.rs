//! Whether the client takes anything of a response, where no rate is asked of it.

use tokio::time::Instant;

use crate::progress::ClientReadLimit;

/// Whether the client takes anything of a response, where no rate is asked of it: a client that does not would hold a destination's
/// connection for ever.
#[derive(Debug)]
pub(crate) struct ClientReadTimeout {
    limit: ClientReadLimit,
    /// Since when something waits for the client, which has taken nothing.
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

    /// Something waits for the client: when it is given up, if it takes nothing until then.
    pub(crate) fn due(&mut self) -> Instant {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.limit.due(since)
    }
}
