//! Gates for throttled calls: one for reads, one for writes.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use super::call_log::CallClass;

/// The gates of a client. Azure counts reads and writes separately, so each has its own.
#[derive(Debug, Default)]
pub(super) struct Gates {
    reads: Gate,
    writes: Gate,
}

#[derive(Debug, Default)]
struct Gate {
    closed_until: Mutex<Option<Instant>>,
}

impl Gates {
    /// Waits until calls of a class are allowed. Cancel safe.
    pub(super) async fn pass(&self, class: CallClass) {
        let gate = self.of(class);
        // Another call may close the gate again meanwhile.
        while let Some(until) = gate.closed() {
            sleep_until(until).await;
        }
    }

    /// Blocks calls of a class for a while.
    pub(super) fn close(&self, class: CallClass, wait: Duration) {
        let until = Instant::now() + wait;
        let mut closed = self.of(class).closed_until.lock();
        if closed.is_none_or(|before| before < until) {
            *closed = Some(until);
        }
    }

    /// Returns the time that calls of a class have to wait.
    pub(super) fn wait(&self, class: CallClass) -> Duration {
        self.of(class)
            .closed()
            .map_or(Duration::ZERO, |until| until - Instant::now())
    }

    fn of(&self, class: CallClass) -> &Gate {
        match class {
            CallClass::Write => &self.writes,
            CallClass::Read | CallClass::Poll => &self.reads,
        }
    }
}

impl Gate {
    fn closed(&self) -> Option<Instant> {
        let mut closed = self.closed_until.lock();
        if closed.is_some_and(|until| until <= Instant::now()) {
            *closed = None;
        }
        *closed
    }
}
