//! Health reports and the events that the store keeps.

use super::HealthState;
use crate::cluster::{ErrorCode, FabricError};
use crate::hosting::{Span, Timestamp};

/// The maximum length of a description, in bytes. Longer ones are truncated.
const MAX_DESCRIPTION: usize = 4096;
/// The maximum length of a source or property, in bytes.
const MAX_WORD: usize = 1024;

/// A report about one property of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthReport {
    /// The source of the report.
    pub source: String,
    /// The property.
    pub property: String,
    /// The health state.
    pub state: HealthState,
    /// The time to live. Default: infinite.
    pub ttl: Span,
    /// A sentence for people, truncated after 4 KiB.
    pub description: String,
    /// The number that orders the reports of one source about one property. 0 or less: the store assigns the
    /// next one.
    pub sequence_number: i64,
    /// True if the event disappears when it expires. Otherwise it becomes an Error.
    pub remove_when_expired: bool,
}

impl HealthReport {
    /// Creates a report without expiry and without a number.
    pub fn new(source: impl Into<String>, property: impl Into<String>, state: HealthState) -> Self {
        Self {
            source: source.into(),
            property: property.into(),
            state,
            ttl: Span::INFINITE,
            description: String::new(),
            sequence_number: 0,
            remove_when_expired: false,
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets the time to live.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Span, remove_when_expired: bool) -> Self {
        self.ttl = ttl;
        self.remove_when_expired = remove_when_expired;
        self
    }

    /// Sets the sequence number.
    #[must_use]
    pub fn with_sequence_number(mut self, sequence_number: i64) -> Self {
        self.sequence_number = sequence_number;
        self
    }

    /// Checks that a client may make this report, and truncates the description.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` for an empty or `System.` source and for an empty property, `FABRIC_E_VALUE_TOO_LARGE`
    /// for words that are too long.
    pub(crate) fn checked(mut self) -> Result<Self, FabricError> {
        if self.source.is_empty() || self.property.is_empty() {
            return Err(FabricError::invalid_argument(
                "a health report needs a SourceId and a Property",
            ));
        }
        let system = self.source.get(..7);
        if system.is_some_and(|start| start.eq_ignore_ascii_case("System.")) {
            return Err(FabricError::invalid_argument(
                "a SourceId that begins with 'System.' is for the cluster itself",
            ));
        }
        if self.source.len() > MAX_WORD || self.property.len() > MAX_WORD {
            return Err(FabricError::new(
                ErrorCode::ValueTooLarge,
                "SourceId and Property have at most 1024 bytes",
            ));
        }
        if self.description.len() > MAX_DESCRIPTION {
            let mut end = MAX_DESCRIPTION;
            while !self.description.is_char_boundary(end) {
                end -= 1;
            }
            self.description.truncate(end);
        }
        Ok(self)
    }
}

/// The last report about one property of an entity, and its history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthEvent {
    /// The report, with its reported state; see [`state`](Self::state) for the current one.
    pub report: HealthReport,
    /// True if the event has expired and was not to be removed.
    pub is_expired: bool,
    /// The time of the report.
    pub reported_at: Timestamp,
    /// The time of the last change in the store.
    pub modified_at: Timestamp,
    /// The time at which the state last became Ok.
    pub last_ok_at: Option<Timestamp>,
    /// The time at which the state last became Warning.
    pub last_warning_at: Option<Timestamp>,
    /// The time at which the state last became Error.
    pub last_error_at: Option<Timestamp>,
}

impl HealthEvent {
    /// Returns the current state: an expired event is an Error.
    pub fn state(&self) -> HealthState {
        if self.is_expired {
            HealthState::Error
        } else {
            self.report.state
        }
    }

    /// Returns the expiry time. `None` if the event never expires.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.reported_at.after(self.report.ttl)
    }
}
