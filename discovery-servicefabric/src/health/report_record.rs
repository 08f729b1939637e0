//! The last report about one entity, and the time of the next one.

use std::time::Duration;

use discovery_core::Backoff;
use tokio::time::Instant;

use super::{GATEWAY_BATCH, HealthReport};

/// The time that a report takes to arrive, in addition to the gateway's batch interval.
const MARGIN: Duration = Duration::from_secs(2);

/// The pause before a rejected report is retried. It doubles with each further rejection.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// The longest of these pauses.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(10 * 60);

/// The last report about one entity, and its result.
#[derive(Debug, Default)]
pub(super) struct ReportRecord {
    sent: Option<Sent>,
    /// The time of the last attempt.
    tried: Option<Instant>,
    /// The time since which a change waits to be reported.
    waiting: Option<Instant>,
    failing: Option<Failing>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    news: u64,
    holds: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    times: u32,
    news: u64,
    until: Instant,
}

/// The reason for a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The content changed.
    News,
    /// The last report would expire.
    Expiring,
    /// The report is not due yet, but may be sent.
    Early,
}

/// The order of reports: failing ones last, then by waiting time, then bad news first.
pub(super) type Turn = (bool, Instant, bool, Option<Instant>);

impl ReportRecord {
    /// Returns the reason to report now. `None` if there is none.
    pub(super) fn reason(
        &self,
        report: &HealthReport,
        now: Instant,
        cycle: Duration,
    ) -> Option<Reason> {
        if let Some(failing) = &self.failing
            && failing.news == report.news
            && now < failing.until
        {
            return None;
        }
        let Some(sent) = self.sent.filter(|sent| sent.news == report.news) else {
            return Some(Reason::News);
        };
        let batch = match report.immediate {
            true => Duration::ZERO,
            false => GATEWAY_BATCH,
        };
        let age = now.duration_since(sent.at);
        // After the next cycle it could be too late.
        let late = age.saturating_add(cycle).saturating_add(batch + MARGIN) >= sent.holds;
        if late || age >= sent.holds / 3 {
            Some(Reason::Expiring)
        } else {
            (age >= sent.holds / 6).then_some(Reason::Early)
        }
    }

    pub(super) fn said_at(&self) -> Option<Instant> {
        self.sent.map(|sent| sent.at)
    }

    pub(super) fn turn(&self, now: Instant, is_well: bool) -> Turn {
        let waiting = self.waiting.unwrap_or(now);
        (self.failing.is_some(), waiting, is_well, self.tried)
    }

    pub(super) fn waits(&mut self, now: Instant) {
        self.waiting.get_or_insert(now);
    }

    pub(super) fn rests(&mut self) {
        self.waiting = None;
    }

    /// Records an attempt. It counts as a failure until it has succeeded, since it may be dropped.
    pub(super) fn tries(&mut self, now: Instant, news: u64) {
        self.tried = Some(now);
        let times = self.failing.map_or(0, |failing| failing.times);
        self.failing = Some(Failing {
            times,
            news,
            until: now,
        });
    }

    pub(super) fn succeeded(&mut self, at: Instant, news: u64, holds: Duration) {
        self.sent = Some(Sent { at, news, holds });
        self.failing = None;
        self.waiting = None;
    }

    /// Records a rejected report, which is then paused.
    pub(super) fn failed(&mut self, now: Instant, longest: Duration) {
        self.waiting = None;
        if let Some(failing) = &mut self.failing {
            failing.times = failing.times.saturating_add(1);
            failing.until = now + Backoff::new(FIRST_PAUSE, longest).limit(failing.times);
        }
    }
}
