//! Rate limits of the log lines that clients can cause.

use std::time::Duration;

use log_sink::Seldom;

/// The minimum time between two lines of one cause.
pub(crate) const LOG_PAUSE: Duration = Duration::from_secs(10);

/// A limit for each cause of lines that a client can repeat, by reconnecting too.
#[derive(Debug)]
pub(crate) struct ClientLines {
    pub(super) handshake_failed: Seldom,
    pub(super) handshake_slow: Seldom,
    pub(super) not_accepted: Seldom,
    pub(super) rejected: Seldom,
    pub(super) unknown_type: Seldom,
}

impl Default for ClientLines {
    fn default() -> Self {
        Self {
            handshake_failed: Seldom::new(LOG_PAUSE),
            handshake_slow: Seldom::new(LOG_PAUSE),
            not_accepted: Seldom::new(LOG_PAUSE),
            rejected: Seldom::new(LOG_PAUSE),
            unknown_type: Seldom::new(LOG_PAUSE),
        }
    }
}
