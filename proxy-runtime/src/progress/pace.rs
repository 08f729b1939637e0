//! The amount that a client moves while it is waited for.

use std::time::Duration;

use tokio::time::Instant;

use super::data_rate::DataRate;

/// The amount that a client moves while it is waited for.
///
/// A window consists only of the time in which the proxy waits for the client.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: DataRate,
    /// The start of the current wait.
    waiting_since: Option<Instant>,
    /// Time waited in this window, before `waiting_since`.
    waited: Duration,
    /// Bytes that moved in this window.
    bytes: u64,
}

impl Pace {
    pub(crate) fn new(rate: DataRate) -> Self {
        Self {
            rate,
            waiting_since: None,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }

    #[cfg(all(feature = "http2", feature = "server"))]
    pub(crate) fn rate(&self) -> DataRate {
        self.rate
    }

    /// Records bytes that moved. The wait ends until [`due`](Self::due) is called again.
    pub(crate) fn moved(&mut self, bytes: u64) {
        self.bytes += bytes;
        if let Some(since) = self.waiting_since.take() {
            self.waited += since.elapsed();
        }
    }

    /// Starts a wait, and returns the end of the window if no data moves. `None`: never.
    pub(crate) fn due(&mut self) -> Option<Instant> {
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        since.checked_add(self.rate.window.saturating_sub(self.waited))
    }

    /// Returns true if less has moved than a window must bring.
    pub(crate) fn is_too_slow(&self) -> bool {
        self.bytes < self.rate.least(self.rate.window)
    }

    /// Begins another window of waiting.
    pub(crate) fn renew(&mut self, now: Instant) {
        self.waiting_since = Some(now);
        self.waited = Duration::ZERO;
        self.bytes = 0;
    }
}
