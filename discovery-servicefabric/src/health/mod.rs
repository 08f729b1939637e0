//! Telling the cluster how its services fare.
//!
//! Each service that asks to be served gets a report: source [`SOURCE`] unless
//! [`ServiceFabricOptions::health_report_source`](crate::ServiceFabricOptions::health_report_source) says otherwise, property [`PROPERTY`], `Ok` while it is served as
//! it asks, `Warning` while it is not or while what serves is old. Never `Error`: that would not undo the upgrade that
//! caused it, and would block the one that mends it. Reports vanish by themselves when nobody renews them.

mod pace;
mod reporter;
mod reports;
#[cfg(test)]
mod tests;
mod told;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::reporter::Reporter;
pub(crate) use self::reports::reports_of;
use crate::cache::StaleAnswer;
use crate::calls::HealthEntity;
use crate::labels::ParsedService;
use crate::model::HealthInformation;

/// Who reports, unless options say otherwise.
pub const SOURCE: &str = "YARP";

/// What is reported about.
pub const PROPERTY: &str = "DynamicConfig";

/// How often a gateway sends on the reports that are not immediate.
const GATEWAY_BATCH: Duration = Duration::from_secs(30);

/// A report about the health of a service or a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthReport {
    /// What it is about.
    pub entity: HealthEntity,
    /// What it says. It is sent with a longer time to live where rounds or reports take long.
    pub information: HealthInformation,
    /// Whether it is sent at once instead of with the gateway's next batch.
    pub immediate: bool,
    /// Names what it says without what changes by itself, such as ages: a report with the same is no news.
    news: u64,
}

/// What reports about services are made of, by name.
pub(crate) type Subjects = HashMap<Arc<str>, Subject>;

/// What is known of a service when its health is reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject {
    pub(crate) service_id: String,
    /// It could not be read, which is nothing that its owner could mend.
    pub(crate) is_unread: bool,
    /// It was made of old answers.
    pub(crate) stale: Option<StaleAnswer>,
    pub(crate) parsed: Option<Arc<ParsedService>>,
}

/// How long a report holds at least: three rounds, and at least until one more round and two batches of the gateway have passed,
/// or it could vanish before the next one arrives.
pub(crate) fn time_to_live(period: Duration) -> Duration {
    (period.saturating_mul(3)).max(period.saturating_add(GATEWAY_BATCH * 2))
}
