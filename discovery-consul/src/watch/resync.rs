//! The time at which everything is read again. Pure.

use std::time::Duration;

use tokio::time::Instant;

use super::tables::Touched;

/// The time for which a change in one query waits for the other query.
const SETTLE: Duration = Duration::from_millis(300);

/// The schedule of reading everything again, after a change that cannot be located: instances without
/// checks appear in neither of the two results.
#[derive(Debug)]
pub(super) struct Resync {
    gap: Duration,
    /// The earliest time of the next read.
    not_before: Option<Instant>,
    requested: Option<Request>,
    /// The last change of the checks, which may come before the wake-up that it explains.
    last_touched: Option<(Touched, u64)>,
}

#[derive(Debug)]
struct Request {
    at: Instant,
    /// The index that must be explained to avoid the read.
    wake: Option<u64>,
}

impl Resync {
    pub(super) fn new(gap: Duration) -> Self {
        Self {
            gap,
            not_before: None,
            requested: None,
            last_touched: None,
        }
    }

    /// Requests the read in any case.
    pub(super) fn request_after_gap(&mut self, now: Instant) {
        self.request(None, now);
    }

    /// Requests the read, unless the checks explain the change.
    pub(super) fn request_unless_explained(&mut self, wake: u64, now: Instant) {
        let said = self.last_touched.as_ref();
        if said.is_some_and(|(touched, answered)| touched.explains(wake, *answered)) {
            return;
        }
        // An older wake that is not explained is not explained by this one.
        let is_pending = self.requested.is_some();
        self.request((!is_pending).then_some(wake), now);
    }

    fn request(&mut self, wake: Option<u64>, now: Instant) {
        let at = self.requested.as_ref().map(|request| request.at);
        let earliest = (now + SETTLE).max(self.not_before.unwrap_or(now));
        self.requested = Some(Request {
            at: at.unwrap_or(earliest),
            wake,
        });
    }

    /// Records a change of the checks.
    pub(super) fn explained(&mut self, touched: &Touched, answered: u64) {
        let wake = self.requested.as_ref().and_then(|request| request.wake);
        if wake.is_some_and(|wake| touched.explains(wake, answered)) {
            self.requested = None;
        }
        self.last_touched = Some((touched.clone(), answered));
    }

    /// The time of the read.
    pub(super) fn due(&self) -> Option<Instant> {
        self.requested.as_ref().map(|request| request.at)
    }

    /// Returns true if the read is due. The next one then waits for the gap.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let is_due = self.due().is_some_and(|at| at <= now);
        if is_due {
            self.requested = None;
            self.not_before = Some(now + self.gap);
        }
        is_due
    }
}
