//! Reports that wait for the next batch.

use std::collections::BTreeMap;

use super::store::check_order;
use super::{EntityKey, HealthReport, HealthStore};
use crate::cluster::{ErrorCode, FabricError};
use crate::hosting::{Span, Timestamp};

/// The maximum number of pending reports.
const MAX_WAITING: usize = 20_000;

/// The gateway's health client. It sends reports in batches, at whole multiples of an interval.
#[derive(Clone, Debug)]
pub(crate) struct ReportQueue {
    interval: Span,
    /// The pending reports by entity, source and property. A later report replaces an earlier one.
    waiting: BTreeMap<(EntityKey, String, String), (HealthReport, Timestamp)>,
    /// The time of the oldest pending report.
    oldest: Timestamp,
}

impl ReportQueue {
    /// Creates a queue that sends at multiples of `interval`. With zero, reports do not wait.
    pub(crate) fn new(interval: Span) -> Self {
        Self {
            interval,
            waiting: BTreeMap::new(),
            oldest: Timestamp::ZERO,
        }
    }

    /// Changes the interval.
    pub(crate) fn set_interval(&mut self, interval: Span) {
        self.interval = interval;
    }

    /// Queues a report. It reaches the store at once if it is `immediate`, otherwise with the next batch.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_HEALTH_STALE_REPORT` if a newer report came before, `FABRIC_E_HEALTH_MAX_REPORTS_REACHED` if
    /// too many are pending or stored. A missing entity is no error, since it is found only later.
    pub(crate) fn report(
        &mut self,
        store: &mut HealthStore,
        key: EntityKey,
        report: HealthReport,
        immediate: bool,
        now: Timestamp,
    ) -> Result<(), FabricError> {
        store.check(&key, &report)?;
        let slot = (key, report.source.clone(), report.property.clone());
        if let Some((waiting, _)) = self.waiting.get(&slot) {
            check_order(waiting.sequence_number, &report)?;
        }
        if immediate || self.interval == Span::ZERO {
            // A pending report about the same property is older, and would otherwise overwrite this one.
            self.waiting.remove(&slot);
            store.apply_report(&slot.0, report, now, now);
            return Ok(());
        }
        if self.waiting.len() >= MAX_WAITING && !self.waiting.contains_key(&slot) {
            return Err(FabricError::new(
                ErrorCode::HealthMaxReportsReached,
                format!("{MAX_WAITING} reports wait to be sent"),
            ));
        }
        if self.waiting.is_empty() {
            self.oldest = now;
        }
        self.waiting.insert(slot, (report, now));
        Ok(())
    }

    /// Returns the time of the next batch. `None` if no report is pending.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        if self.waiting.is_empty() {
            return None;
        }
        let interval = self.interval.as_millis().max(1);
        let tick = self.oldest.as_millis() / interval + 1;
        Some(Timestamp::from_millis(tick.saturating_mul(interval)))
    }

    /// Sends the pending reports, if the batch is due.
    pub(crate) fn flush(&mut self, store: &mut HealthStore, now: Timestamp) {
        if self.next_due().is_none_or(|due| due > now) {
            return;
        }
        for ((key, ..), (report, reported_at)) in std::mem::take(&mut self.waiting) {
            store.apply_report(&key, report, reported_at, now);
        }
    }
}
