//! The settings of hosting.

mod read;
mod setting;
pub(crate) mod suggest;
#[cfg(test)]
mod tests;

pub use self::setting::{SettingError, SettingValue};
use super::backoff::BackoffMode;
use super::health::HealthState;
use super::timestamp::Span;

/// The description of the runtime to follow where the descriptions differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Profile {
    /// The documented behaviour.
    ///
    /// * The failure that reaches the threshold schedules the disabling of the type at once.
    /// * The exponential back-off is real-valued: 15, 22.5, 33.75 s …
    /// * A type that is not registered in time is a warning.
    #[default]
    Documented,
    /// The behaviour of the runtime's published source (6.4).
    ///
    /// * The disabling is scheduled when a replica is asked for and there are *more* failures than the
    ///   threshold.
    /// * The exponent is cut to a whole number: 10, 20, 30, 50, 70 s …
    /// * A type that is not registered in time is an error.
    /// * A new replica is given up after `ReplicaOpenFailureMaxRetryThreshold` retries.
    Runtime64,
}

/// The settings of hosting. The fields have the names of a cluster manifest, in snake case; the defaults are
/// the runtime's. [`set`](Self::set) takes the names of the manifest.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HostingConfig {
    /// The description of the runtime to follow where the descriptions differ.
    pub profile: Profile,
    /// The unit of the waits after failed activations and crashes. Default: 10 s.
    pub activation_retry_backoff_interval: Span,
    /// The number of attempts after which an activation is abandoned. Default: 20.
    pub activation_max_failure_count: u32,
    /// The maximum wait after a failed activation or a crash. Default: 3600 s.
    pub activation_max_retry_interval: Span,
    /// The time limit of an activation, and of a deactivation before the processes are killed. Default: 180
    /// s.
    pub activation_timeout: Span,
    /// The growth of the waits after crashes (`ActivationRetryBackoffExponentiationBase`). Default:
    /// exponential with base 1.5.
    pub activation_retry_backoff: BackoffMode,
    /// The unit of the waits after failed downloads. Default: 10 s.
    pub deployment_retry_backoff_interval: Span,
    /// The maximum wait after a failed download. Default: 3600 s.
    pub deployment_max_retry_interval: Span,
    /// The number of attempts after which a download is abandoned. Default: 20.
    pub deployment_max_failure_count: u32,
    /// The maximum jitter before a download. Default: 5 s.
    pub deployment_failed_retry_interval_range: Span,
    /// True if internal errors (a locked file) do not count as failures. Default: true.
    pub retry_on_internal_error: bool,
    /// The maximum number of internal errors of an operation that do not count. Default: 15.
    pub max_retry_on_internal_error: u32,
    /// The number of failures that schedules the disabling of a service type. Default: 1.
    pub service_type_disable_failure_threshold: u32,
    /// The time from then until the type is disabled. Default: 30 s.
    pub service_type_disable_grace_interval: Span,
    /// The time limit for a process to register its types. Default: 300 s.
    pub service_type_registration_timeout: Span,
    /// The severity of exceeding that limit. Default: a warning; with [`Profile::Runtime64`] an error.
    pub registration_timeout_severity: HealthState,
    /// The time that a process must run after a crash before its failures are reset. Default: 300 s.
    pub code_package_continuous_exit_failure_reset_interval: Span,
    /// The number of consecutive failures from which a process is a warning. Default: 1.
    pub code_package_health_warning_threshold: u32,
    /// The number of consecutive failures from which a process is an error. Default: 3.
    pub code_package_health_error_threshold: u32,
    /// The interval of the scan for unused packages. Default: 600 s.
    pub deactivation_scan_interval: Span,
    /// The time for which an unused shared package, or an unused application, is kept. Default: 60 s.
    pub deactivation_grace_interval: Span,
    /// The time for which an unused exclusive package is kept. Default: 1 s.
    pub exclusive_mode_deactivation_grace_interval: Span,
    /// The maximum wait after a failed deactivation. Default: 10 s.
    pub deactivation_max_retry_interval: Span,
    /// The number of consecutive failures after which a guest program loses its replicas. Default: 11.
    pub deployed_service_failover_continuous_failure_threshold: u32,
    /// The interval at which a waiting replica is polled. Default: 15 s.
    pub rap_message_retry_interval: Span,
    /// The minimum time between two such polls. Default: 1.5 s.
    pub minimum_interval_between_rap_message_retry: Span,
    /// The number of retries after which a new replica is dropped; `None`: never. Default: never; with
    /// [`Profile::Runtime64`] 40.
    pub replica_open_failure_max_retry_threshold: Option<u32>,
}

impl HostingConfig {
    /// Returns the defaults of a profile.
    pub fn new(profile: Profile) -> Self {
        let runtime = profile == Profile::Runtime64;
        Self {
            profile,
            activation_retry_backoff_interval: Span::from_secs(10),
            activation_max_failure_count: 20,
            activation_max_retry_interval: Span::from_secs(3600),
            activation_timeout: Span::from_secs(180),
            activation_retry_backoff: BackoffMode::Exponential(1.5),
            deployment_retry_backoff_interval: Span::from_secs(10),
            deployment_max_retry_interval: Span::from_secs(3600),
            deployment_max_failure_count: 20,
            deployment_failed_retry_interval_range: Span::from_secs(5),
            retry_on_internal_error: true,
            max_retry_on_internal_error: 15,
            service_type_disable_failure_threshold: 1,
            service_type_disable_grace_interval: Span::from_secs(30),
            service_type_registration_timeout: Span::from_secs(300),
            registration_timeout_severity: if runtime {
                HealthState::Error
            } else {
                HealthState::Warning
            },
            code_package_continuous_exit_failure_reset_interval: Span::from_secs(300),
            code_package_health_warning_threshold: 1,
            code_package_health_error_threshold: 3,
            deactivation_scan_interval: Span::from_secs(600),
            deactivation_grace_interval: Span::from_secs(60),
            exclusive_mode_deactivation_grace_interval: Span::from_secs(1),
            deactivation_max_retry_interval: Span::from_secs(10),
            deployed_service_failover_continuous_failure_threshold: 11,
            rap_message_retry_interval: Span::from_secs(15),
            minimum_interval_between_rap_message_retry: Span::from_millis(1500),
            replica_open_failure_max_retry_threshold: runtime.then_some(40),
        }
    }
}

impl Default for HostingConfig {
    fn default() -> Self {
        Self::new(Profile::default())
    }
}
