//! When everything is read again. Pure.

use std::time::Duration;

use tokio::time::Instant;

use super::tables::Touched;

/// How long the news of one query wait for those of the other.
const SETTLE: Duration = Duration::from_millis(300);

/// When everything is read again, because something has changed and nothing says what: instances without checks show in
/// neither of the two answers.
#[derive(Debug)]
pub(super) struct Resync {
    gap: Duration,
    /// The earliest time of the next.
    not_before: Option<Instant>,
    requested: Option<Request>,
    /// What the checks have said last, which may come before the wake that it explains.
    last_touched: Option<(Touched, u64)>,
}

#[derive(Debug)]
struct Request {
    at: Instant,
    /// The index that has to be explained, in order that nothing need be read.
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

    /// Everything is to be read, whatever else is said.
    pub(super) fn request_after_gap(&mut self, now: Instant) {
        self.request(None, now);
    }

    /// Everything is to be read, unless the checks say what has changed.
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

    /// What the checks say.
    pub(super) fn explained(&mut self, touched: &Touched, answered: u64) {
        let wake = self.requested.as_ref().and_then(|request| request.wake);
        if wake.is_some_and(|wake| touched.explains(wake, answered)) {
            self.requested = None;
        }
        self.last_touched = Some((touched.clone(), answered));
    }

    /// When it is time.
    pub(super) fn due(&self) -> Option<Instant> {
        self.requested.as_ref().map(|request| request.at)
    }

    /// Whether it is time; if so, the next is not before the gap is over.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let is_due = self.due().is_some_and(|at| at <= now);
        if is_due {
            self.requested = None;
            self.not_before = Some(now + self.gap);
        }
        is_due
    }
}
