//! The pace of reports, and the time to live that follows from it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::{GATEWAY_BATCH, time_to_live};

/// Maximum time to live of a report, independent of the measurements.
const MOST_HELD: Duration = Duration::from_secs(24 * 3600);

/// Number of slow cycles that a report outlives. A third of them may pass before it is renewed.
const CYCLES_HELD: u32 = 6;

/// The duration of a slow cycle, in periods.
const SLOW: f64 = 1.5;

/// Number of recent cycles that are measured.
const REMEMBERED: usize = 8;

/// The longest duration of a cycle that is measured. A longer cycle was an outage.
const LONGEST_CYCLE: Duration = Duration::from_secs(10 * 60);

/// The minimum time budget for reports after a cycle.
const LEAST_BUDGET: Duration = Duration::from_secs(2);
const MOST_BUDGET: Duration = Duration::from_secs(10);

/// Measurements of cycles and reports.
#[derive(Debug)]
pub(super) struct CycleTimes {
    period: Duration,
    at_once: u32,
    /// The start of the last cycle of sending.
    began: Option<Instant>,
    /// The durations of the last cycles, from reports to reports.
    cycles: VecDeque<Duration>,
    /// The duration of a report, as a moving average.
    report: Option<Duration>,
}

impl CycleTimes {
    pub(super) fn new(period: Duration, at_once: usize) -> Self {
        Self {
            period,
            at_once: at_once.clamp(1, 1000).try_into().unwrap_or(1),
            began: None,
            cycles: VecDeque::with_capacity(REMEMBERED),
            report: None,
        }
    }

    /// Records the start of sending reports about a cycle. Returns the time since the last start.
    pub(super) fn begins(&mut self, now: Instant) -> Option<Duration> {
        let since = now.duration_since(self.began.replace(now)?);
        if self.cycles.len() == REMEMBERED {
            self.cycles.pop_front();
        }
        self.cycles.push_back(since.min(LONGEST_CYCLE));
        Some(since)
    }

    /// Records the duration of a report.
    pub(super) fn took(&mut self, report: Duration) {
        self.report = Some(match self.report {
            Some(before) => before * 7 / 8 + report / 8,
            None => report,
        });
    }

    /// The expected maximum duration of the next cycle, based on the last ones.
    pub(super) fn cycle(&self) -> Duration {
        let measured = self.cycles.iter().max().copied().unwrap_or_default();
        // The period varies.
        measured.max(self.period.mul_f64(1.2))
    }

    /// The time budget for reports after a cycle. The next cycle waits for them.
    pub(super) fn budget(&self) -> Duration {
        (self.period / 3).clamp(LEAST_BUDGET, MOST_BUDGET)
    }

    /// The time to live of each of `reports` reports: YARP's rule, or longer if cycles or reports are so
    /// slow that they would expire.
    pub(super) fn time_to_live(&self, reports: usize) -> Duration {
        let least = time_to_live(self.period);
        // All of them may take more than one cycle to be sent.
        let report = self.report.unwrap_or_default().as_secs_f64();
        let all = report * reports as f64 / f64::from(self.at_once);
        let cycles = (all / self.budget().as_secs_f64()).ceil().max(1.0);
        if cycles <= 1.0 && self.cycle() <= self.period.mul_f64(SLOW) {
            return least;
        }
        let turns = self.cycle().mul_f64(cycles.min(1e6)).saturating_mul(3);
        let measured = turns
            .saturating_add(GATEWAY_BATCH * 2)
            .max(self.cycle().saturating_mul(CYCLES_HELD));
        least.max(measured.min(MOST_HELD))
    }
}
