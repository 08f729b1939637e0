//! How discovery behaves, from code or from the section `ServiceFabricDiscovery` of a configuration.

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

/// How discovery behaves. The defaults are those of YARP's Service Fabric integration where it has the option.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServiceFabricOptions {
    /// From the end of a round to the start of the next. 30 s. It varies by a tenth, so that many proxies do not ask in
    /// step.
    pub discovery_period: Duration,
    /// Whether a proxy is ready before the cluster has answered for the first time. `false`.
    pub allow_start_before_discovery: bool,
    /// How services become configuration where their labels leave it open. Among others whether endpoints that are not
    /// encrypted are destinations too, which they are not by default.
    pub labels: LabelOptions,
    /// Whether the health of services is reported to the cluster. `true`. The credential needs the role of an
    /// administrator to do so.
    pub report_services_health: bool,
    /// Whether the health of each replica is reported as well. `false`.
    pub report_replicas_health: bool,
    /// Whether reports that a service is well are sent at once, as bad news always are, instead of with the gateway's next
    /// batch. `false`.
    pub always_send_immediate_health_reports: bool,
    /// Who reports. `YARP`. Two proxies that report on the same services under the same name overwrite each other's
    /// reports; where they serve them differently each needs a name of its own. An empty one, and one that begins with
    /// `System.`, which the cluster keeps for itself, count as unset.
    pub health_report_source: String,
    /// Where the endpoints of replicas come from.
    pub endpoint_source: EndpointSource,
    /// How many calls are under way at the same time. 8; at least 1.
    pub max_concurrent_calls: usize,
    /// How soon a service that is changing is read again. 5 s; no longer than the discovery period.
    pub fast_period: Duration,
    /// How old what is known of a service may become before it is read again even if nothing seems to have changed.
    /// 5 min.
    pub full_refresh_period: Duration,
    /// Whether one call for the ids of all replicas replaces reading each stateless service that has not changed. `true`.
    pub change_probe: bool,
    /// How long an answer may stand in for a call that fails. 30 min. Zero: not at all.
    pub cache_duration: Duration,
    /// File that keeps the last good configuration, so that a proxy that starts while the cluster is away still serves.
    /// Unset: none.
    pub persist: Option<PathBuf>,
    /// Whether a sudden disappearance of services must be confirmed. Unset: an answer is believed at once.
    pub confirm_removal: Option<ConfirmRemoval>,
}

/// Where the endpoints of replicas come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndpointSource {
    /// The list of a partition's replicas. It still lists an instance that is about to close and takes no new requests
    /// (`InstanceCloseDelayDurationSeconds`).
    #[default]
    Replicas,
    /// That list without replicas that the naming service does not name any more: one more call per partition and round,
    /// and no new requests for instances that are about to close.
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

/// Longer than this nobody waits, and sums of times cannot overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Under this a period would be a busy loop.
const SHORTEST: Duration = Duration::from_millis(100);

/// More calls at once help nobody.
const MOST_CALLS: usize = 1000;

impl ServiceFabricOptions {
    /// The same with values that make sense.
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

/// Whether the cluster takes reports from somebody with this name.
fn is_source(name: &str) -> bool {
    let reserved = name
        .get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("System."));
    !name.trim().is_empty() && !reserved
}
