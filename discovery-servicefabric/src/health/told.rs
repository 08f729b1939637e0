//! What was said of one thing, and when it must be said again.

use std::time::Duration;

use discovery_core::Backoff;
use tokio::time::Instant;

use super::{GATEWAY_BATCH, HealthReport};

/// What a report takes to arrive, beside the gateway's batch.
const MARGIN: Duration = Duration::from_secs(2);

/// How long a report that was refused is not made again. It doubles with each further time.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// The longest of these pauses.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(10 * 60);

/// What was said of one thing, and what became of it.
#[derive(Debug, Default)]
pub(super) struct Told {
    sent: Option<Sent>,
    /// When it was tried last.
    tried: Option<Instant>,
    /// Since when something about it waits to be said.
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

/// Why something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It is news.
    News,
    /// It would expire.
    Expiring,
    /// It need not be said yet, and may be.
    Early,
}

/// The order in which things are said: what fails last, then what waits for the longest time, then bad news.
pub(super) type Turn = (bool, Instant, bool, Option<Instant>);

impl Told {
    /// Why it must be said. `None`: it need not be.
    pub(super) fn reason(
        &self,
        report: &HealthReport,
        now: Instant,
        round: Duration,
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
        // After the next round it could be too late.
        let late = age.saturating_add(round).saturating_add(batch + MARGIN) >= sent.holds;
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

    /// It is tried now. Until it has succeeded it counts as a failure, since it may be dropped.
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

    /// It was not taken, and is left alone for a while.
    pub(super) fn failed(&mut self, now: Instant, longest: Duration) {
        self.waiting = None;
        if let Some(failing) = &mut self.failing {
            failing.times = failing.times.saturating_add(1);
            failing.until = now + Backoff::new(FIRST_PAUSE, longest).limit(failing.times);
        }
    }
}
