//! The options of discovery, from code or from the section `ServiceFabricDiscovery` of a configuration.

#[cfg(feature = "reqwest")]
mod connection;
#[cfg(feature = "reqwest")]
mod section;

use std::path::PathBuf;
use std::time::Duration;

use discovery_core::runner::ConfirmRemoval;

#[cfg(feature = "reqwest")]
pub use self::connection::{ConnectError, ConnectionOptions, ServerCheck};
#[cfg(feature = "reqwest")]
pub use self::section::Section;
use crate::cache;
use crate::health;
use crate::labels::LabelOptions;

/// The options of discovery. The defaults are those of YARP's Service Fabric integration where it has the
/// option.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServiceFabricOptions {
    /// The time from the end of a cycle to the start of the next. It varies by a tenth, so that many
    /// proxies do not poll in step. Default: 30 s.
    pub discovery_period: Duration,
    /// True if a proxy is ready before the first response of the cluster. Default: false.
    pub allow_start_before_discovery: bool,
    /// The options for turning services into configuration where their labels leave it open. They decide
    /// among others whether unencrypted endpoints are destinations, which is off by default.
    pub labels: LabelOptions,
    /// True to report the health of services to the cluster. The credential needs the role of an
    /// administrator to do so. Default: true.
    pub report_services_health: bool,
    /// True to report the health of each replica too. Default: false.
    pub report_replicas_health: bool,
    /// True to send reports of healthy services at once, like reports of problems, instead of with the
    /// gateway's next batch. Default: false.
    pub always_send_immediate_health_reports: bool,
    /// The name of the reporter. Two proxies that report on the same services under the same name overwrite
    /// each other's reports; if they serve them differently, each needs its own name. An empty name, and
    /// one that begins with `System.`, which is reserved for the cluster, count as unset. Default: `YARP`.
    pub health_report_source: String,
    /// The source of the replicas' endpoints. Default: [`EndpointSource::Replicas`].
    pub endpoint_source: EndpointSource,
    /// Maximum number of calls in flight. At least 1. Default: 8.
    pub max_concurrent_calls: usize,
    /// The time after which a changing service is read again. At most the discovery period. Default: 5 s.
    pub fast_period: Duration,
    /// The maximum age of a service's data. After it, the service is read again even if it seems unchanged.
    /// Default: 5 min.
    pub full_refresh_period: Duration,
    /// True to make one call for the ids of all replicas, instead of reading each unchanged stateless
    /// service. Default: true.
    pub change_probe: bool,
    /// The time for which an old response may replace that of a failed call. Zero to disable this. Default:
    /// 30 min.
    pub cache_duration: Duration,
    /// The file that keeps the last known good configuration, so that a proxy that starts while the cluster
    /// is unavailable still serves. `None` to keep none. Default: `None`.
    pub persist: Option<PathBuf>,
    /// The confirmation of a sudden disappearance of services. `None` to apply every result at once.
    /// Default: `None`.
    pub confirm_removal: Option<ConfirmRemoval>,
}

/// The source of the replicas' endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndpointSource {
    /// The list of a partition's replicas. It still contains an instance that is about to close and takes
    /// no new requests (`InstanceCloseDelayDurationSeconds`).
    #[default]
    Replicas,
    /// The list of a partition's replicas, without replicas that the naming service no longer resolves. It
    /// costs one more call per partition and cycle; instances that are about to close get no new requests.
    ReplicasAndResolve,
}

impl Default for ServiceFabricOptions {
    fn default() -> Self {
        Self {
            discovery_period: Duration::from_secs(30),
            allow_start_before_discovery: false,
            labels: LabelOptions::default(),
            report_services_health: true,
            report_replicas_health: false,
            always_send_immediate_health_reports: false,
            health_report_source: health::SOURCE.to_owned(),
            endpoint_source: EndpointSource::default(),
            max_concurrent_calls: 8,
            fast_period: Duration::from_secs(5),
            full_refresh_period: Duration::from_secs(5 * 60),
            change_probe: true,
            cache_duration: cache::DEFAULT_DURATION,
            persist: None,
            confirm_removal: None,
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident $field:ident: $type:ty;)*) => {
        impl ServiceFabricOptions {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $setter(mut self, value: $type) -> Self {
                    self.$field = value.into();
                    self
                }
            )*
        }
    };
}

setters! {
    /// Sets [`discovery_period`](Self::discovery_period).
    with_discovery_period discovery_period: Duration;
    /// Sets [`allow_start_before_discovery`](Self::allow_start_before_discovery).
    with_allow_start_before_discovery allow_start_before_discovery: bool;
    /// Sets [`labels`](Self::labels).
    with_labels labels: LabelOptions;
    /// Sets [`report_services_health`](Self::report_services_health).
    with_report_services_health report_services_health: bool;
    /// Sets [`report_replicas_health`](Self::report_replicas_health).
    with_report_replicas_health report_replicas_health: bool;
    /// Sets [`always_send_immediate_health_reports`](Self::always_send_immediate_health_reports).
    with_always_send_immediate_health_reports always_send_immediate_health_reports: bool;
    /// Sets [`health_report_source`](Self::health_report_source).
    with_health_report_source health_report_source: String;
    /// Sets [`endpoint_source`](Self::endpoint_source).
    with_endpoint_source endpoint_source: EndpointSource;
    /// Sets [`max_concurrent_calls`](Self::max_concurrent_calls).
    with_max_concurrent_calls max_concurrent_calls: usize;
    /// Sets [`fast_period`](Self::fast_period).
    with_fast_period fast_period: Duration;
    /// Sets [`full_refresh_period`](Self::full_refresh_period).
    with_full_refresh_period full_refresh_period: Duration;
    /// Sets [`change_probe`](Self::change_probe).
    with_change_probe change_probe: bool;
    /// Sets [`cache_duration`](Self::cache_duration).
    with_cache_duration cache_duration: Duration;
    /// Sets [`persist`](Self::persist).
    with_persist persist: PathBuf;
    /// Sets [`confirm_removal`](Self::confirm_removal).
    with_confirm_removal confirm_removal: ConfirmRemoval;
}

impl ServiceFabricOptions {
    /// Sets whether endpoints that are not encrypted are destinations too: [`LabelOptions::insecure_http`].
    #[must_use]
    pub fn with_discover_insecure_http_destinations(mut self, discover: bool) -> Self {
        self.labels = self.labels.with_insecure_http(discover);
        self
    }
}

/// Maximum of all waits, so that sums of times cannot overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Minimum of all periods. A shorter one would be a busy loop.
const SHORTEST: Duration = Duration::from_millis(100);

/// Maximum number of calls in flight. More do not speed up discovery.
const MOST_CALLS: usize = 1000;

impl ServiceFabricOptions {
    /// Returns the options limited to useful values.
    pub(crate) fn bounded(mut self) -> Self {
        self.discovery_period = self.discovery_period.clamp(SHORTEST, LONGEST);
        self.fast_period = self.fast_period.clamp(SHORTEST, self.discovery_period);
        self.full_refresh_period = self.full_refresh_period.min(LONGEST);
        self.cache_duration = self.cache_duration.min(LONGEST);
        self.max_concurrent_calls = self.max_concurrent_calls.clamp(1, MOST_CALLS);
        if !is_source(&self.health_report_source) {
            health::SOURCE.clone_into(&mut self.health_report_source);
        }
        self
    }
}

/// Returns true if the cluster accepts reports from a reporter with this name.
fn is_source(name: &str) -> bool {
    let reserved = name
        .get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("System."));
    !name.trim().is_empty() && !reserved
}
