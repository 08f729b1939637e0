//! Reports to the cluster about the health of its services.
//!
//! Each service that opted in gets a report with the property [`PROPERTY`]. Its source is [`SOURCE`],
//! unless [`ServiceFabricOptions::health_report_source`](crate::ServiceFabricOptions::health_report_source)
//! is set. The state is `Ok` while the service is served as its labels ask, and `Warning` while it is not
//! or while the data that serves is old. The state is never `Error`: that would not undo the upgrade that
//! caused it, and would block the one that corrects it. Reports expire if they are not renewed.

mod cycle_times;
mod report_record;
mod reporter;
mod reports;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::reporter::Reporter;
pub(crate) use self::reports::reports_of;
use crate::cache::StaleAnswer;
use crate::calls::HealthEntity;
use crate::labels::ParsedService;
use crate::model::HealthInformation;

/// Default name of the reporter.
pub const SOURCE: &str = "YARP";

/// Name of the reported property.
pub const PROPERTY: &str = "DynamicConfig";

/// The interval at which a gateway sends on reports that are not immediate.
const GATEWAY_BATCH: Duration = Duration::from_secs(30);

/// A report about the health of a service or a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthReport {
    /// The entity that the report is about.
    pub entity: HealthEntity,
    /// The content of the report. It is sent with a longer time to live if cycles or reports take long.
    pub information: HealthInformation,
    /// True if the report is sent at once instead of with the gateway's next batch.
    pub immediate: bool,
    /// A hash of the content without parts that change by themselves, such as ages. A report with the same
    /// hash has not changed.
    news: u64,
}

/// The data for reports about services, by name.
pub(crate) type Subjects = HashMap<Arc<str>, Subject>;

/// The data about a service for its health report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject {
    pub(crate) service_id: String,
    /// True if the service could not be read, which its owner cannot correct.
    pub(crate) is_unread: bool,
    /// The old responses that the service's state is based on.
    pub(crate) stale: Option<StaleAnswer>,
    pub(crate) parsed: Option<Arc<ParsedService>>,
}

/// The minimum time to live of a report: three cycles, and at least one cycle and two batches of the
/// gateway. Otherwise it could expire before the next one arrives.
pub(crate) fn time_to_live(period: Duration) -> Duration {
    (period.saturating_mul(3)).max(period.saturating_add(GATEWAY_BATCH * 2))
}
