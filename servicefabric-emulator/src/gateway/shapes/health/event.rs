use serde::Serialize;

use super::word;
use crate::gateway::wire::{ClockStart, print_duration, text};
use crate::health::HealthEvent;

/// `HealthEvent`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct HealthEventInfo {
    source_id: String,
    property: String,
    health_state: &'static str,
    time_to_live_in_milli_seconds: String,
    description: String,
    sequence_number: String,
    remove_when_expired: bool,
    is_expired: bool,
    source_utc_timestamp: String,
    last_modified_utc_timestamp: String,
    last_ok_transition_at: String,
    last_warning_transition_at: String,
    last_error_transition_at: String,
}

impl HealthEventInfo {
    pub(super) fn new(event: &HealthEvent, epoch: ClockStart) -> Self {
        let report = &event.report;
        Self {
            source_id: report.source.clone(),
            property: report.property.clone(),
            health_state: word(report.state),
            time_to_live_in_milli_seconds: print_duration(report.ttl),
            description: report.description.clone(),
            sequence_number: text(report.sequence_number),
            remove_when_expired: report.remove_when_expired,
            is_expired: event.is_expired,
            source_utc_timestamp: epoch.date(event.reported_at),
            last_modified_utc_timestamp: epoch.date(event.modified_at),
            last_ok_transition_at: epoch.date_or_never(event.last_ok_at),
            last_warning_transition_at: epoch.date_or_never(event.last_warning_at),
            last_error_transition_at: epoch.date_or_never(event.last_error_at),
        }
    }
}
