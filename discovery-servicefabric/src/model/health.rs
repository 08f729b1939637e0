//! Health states and reports.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::wire::words;

words! {
    /// The health of an entity.
    HealthState, Unknown {
        /// Not known.
        Invalid,
        /// Well.
        Ok,
        /// Unhealthy, but able to work.
        Warning,
        /// Unhealthy.
        Error,
        /// Not reported.
        Unknown,
    }
}

/// The content of a health report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct HealthInformation {
    /// The reporter.
    pub source_id: String,
    /// The property that the report is about.
    pub property: String,
    /// The health state.
    pub health_state: HealthState,
    /// The time to live of the report. The field's name on the wire says milliseconds, but its value is an
    /// ISO 8601 duration. Default: unlimited.
    #[serde(
        rename = "TimeToLiveInMilliSeconds",
        serialize_with = "iso_duration",
        skip_serializing_if = "is_for_ever"
    )]
    pub time_to_live: Option<Duration>,
    /// A description for people. The cluster keeps at most 4 KiB of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// True to remove the report when it expires. False to turn it into an error.
    pub remove_when_expired: bool,
}

impl HealthInformation {
    /// Creates a report that holds forever.
    pub fn new(source: impl Into<String>, property: impl Into<String>, state: HealthState) -> Self {
        Self {
            source_id: source.into(),
            property: property.into(),
            health_state: state,
            time_to_live: None,
            description: String::new(),
            remove_when_expired: false,
        }
    }
}

/// Returns true if a report never expires: it has no time, or a longer one than a gateway can count.
fn is_for_ever(time: &Option<Duration>) -> bool {
    const LONGEST: Duration = Duration::from_secs(10_675_199 * 24 * 3600);
    time.is_none_or(|time| time > LONGEST)
}

/// `PT0H1M30.500S`. The gateway requires the `T`, so days are not used.
fn iso_duration<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let duration = duration.unwrap_or_default();
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let text = if millis == 0 {
        format!("PT{hours}H{minutes}M{seconds}S")
    } else {
        format!("PT{hours}H{minutes}M{seconds}.{millis:03}S")
    };
    serializer.serialize_str(&text)
}
