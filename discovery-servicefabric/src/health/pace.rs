//! The pace of reports, and the time to live that follows from it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::{GATEWAY_BATCH, time_to_live};

/// Maximum time to live of a report, independent of the measurements.
const MOST_HELD: Duration = Duration::from_secs(24 * 3600);

/// Number of slow rounds that a report outlives. A third of them may pass before it is renewed.
const ROUNDS_HELD: u32 = 6;

/// The duration of a slow round, in periods.
const SLOW: f64 = 1.5;

/// Number of recent rounds that are measured.
const REMEMBERED: usize = 8;

/// The longest duration of a round that is measured. A longer round was an outage.
const LONGEST_ROUND: Duration = Duration::from_secs(10 * 60);

/// The minimum time budget for reports after a round.
const LEAST_BUDGET: Duration = Duration::from_secs(2);
const MOST_BUDGET: Duration = Duration::from_secs(10);

/// Measurements of rounds and reports.
#[derive(Debug)]
pub(super) struct Pace {
    period: Duration,
    at_once: u32,
    /// The start of the last round of sending.
    began: Option<Instant>,
    /// The durations of the last rounds, from reports to reports.
    rounds: VecDeque<Duration>,
    /// The duration of a report, as a moving average.
    report: Option<Duration>,
}

impl Pace {
    pub(super) fn new(period: Duration, at_once: usize) -> Self {
        Self {
            period,
            at_once: at_once.clamp(1, 1000).try_into().unwrap_or(1),
            began: None,
            rounds: VecDeque::with_capacity(REMEMBERED),
            report: None,
        }
    }

    /// Records the start of sending reports about a round. Returns the time since the last start.
    pub(super) fn begins(&mut self, now: Instant) -> Option<Duration> {
        let since = now.duration_since(self.began.replace(now)?);
        if self.rounds.len() == REMEMBERED {
            self.rounds.pop_front();
        }
        self.rounds.push_back(since.min(LONGEST_ROUND));
        Some(since)
    }

    /// Records the duration of a report.
    pub(super) fn took(&mut self, report: Duration) {
        self.report = Some(match self.report {
            Some(before) => before * 7 / 8 + report / 8,
            None => report,
        });
    }

    /// The expected maximum duration of the next round, based on the last ones.
    pub(super) fn round(&self) -> Duration {
        let measured = self.rounds.iter().max().copied().unwrap_or_default();
        // The period varies.
        measured.max(self.period.mul_f64(1.2))
    }

    /// The time budget for reports after a round. The next round waits for them.
    pub(super) fn budget(&self) -> Duration {
        (self.period / 3).clamp(LEAST_BUDGET, MOST_BUDGET)
    }

    /// The time to live of each of `reports` reports: YARP's rule, or longer if rounds or reports are so
    /// slow that they would expire.
    pub(super) fn time_to_live(&self, reports: usize) -> Duration {
        let least = time_to_live(self.period);
        // All of them may take more than one round to be sent.
        let report = self.report.unwrap_or_default().as_secs_f64();
        let all = report * reports as f64 / f64::from(self.at_once);
        let rounds = (all / self.budget().as_secs_f64()).ceil().max(1.0);
        if rounds <= 1.0 && self.round() <= self.period.mul_f64(SLOW) {
            return least;
        }
        let turns = self.round().mul_f64(rounds.min(1e6)).saturating_mul(3);
        let measured = turns
            .saturating_add(GATEWAY_BATCH * 2)
            .max(self.round().saturating_mul(ROUNDS_HELD));
        least.max(measured.min(MOST_HELD))
    }
}
