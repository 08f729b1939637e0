//! Settings by their names in a cluster manifest.

use serde::Deserialize;

use super::suggest::closest;
use super::{HostingConfig, Profile};
use crate::hosting::backoff::BackoffMode;
use crate::hosting::health::HealthState;
use crate::hosting::timestamp::Span;

/// The value of a setting as written. Settings of a cluster are texts, but numbers and booleans read better.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum SettingValue {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl std::fmt::Display for SettingValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => write!(f, "\"{value}\""),
        }
    }
}

impl From<&str> for SettingValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The error of a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// The setting does not exist.
    #[error("unknown setting `{name}`{}", did_you_mean(suggestion.as_deref()))]
    Unknown {
        /// The name.
        name: String,
        /// A setting with a similar name.
        suggestion: Option<String>,
    },
    /// The value is invalid.
    #[error("setting `{name}` cannot be {value}: {expected}")]
    Value {
        /// The setting.
        name: String,
        /// The value as written.
        value: String,
        /// The accepted values.
        expected: String,
    },
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// The function that applies a value: it sets the field, or returns a sentence with the accepted values.
type Setter = fn(&mut HostingConfig, &SettingValue) -> Result<(), String>;

/// A row of the table: the name of a setting, and its setter. Without a setter it is accepted and has no
/// effect.
struct Setting {
    name: &'static str,
    set: Option<Setter>,
}

macro_rules! settings {
    ($($name:literal => $read:ident $field:ident,)*) => {
        &[$(Setting {
            name: $name,
            set: Some(|config, value| {
                config.$field = $read(value)?;
                Ok(())
            }),
        },)*]
    };
}

const SETTINGS: &[Setting] = settings! {
    "ActivationRetryBackoffInterval" => span activation_retry_backoff_interval,
    "ActivationMaxFailureCount" => count activation_max_failure_count,
    "ActivationMaxRetryInterval" => span activation_max_retry_interval,
    "ActivationTimeout" => span activation_timeout,
    "ActivationRetryBackoffExponentiationBase" => backoff activation_retry_backoff,
    "DeploymentRetryBackoffInterval" => span deployment_retry_backoff_interval,
    "DeploymentMaxRetryInterval" => span deployment_max_retry_interval,
    "DeploymentMaxFailureCount" => count deployment_max_failure_count,
    "DeploymentFailedRetryIntervalRange" => span deployment_failed_retry_interval_range,
    "RetryOnInternalError" => truth retry_on_internal_error,
    "MaxRetryOnInternalError" => count max_retry_on_internal_error,
    "ServiceTypeDisableFailureThreshold" => count service_type_disable_failure_threshold,
    "ServiceTypeDisableGraceInterval" => span service_type_disable_grace_interval,
    "ServiceTypeRegistrationTimeout" => span service_type_registration_timeout,
    "RegistrationTimeoutSeverity" => severity registration_timeout_severity,
    "CodePackageContinuousExitFailureResetInterval" => span code_package_continuous_exit_failure_reset_interval,
    "CodePackageHealthWarningThreshold" => count code_package_health_warning_threshold,
    "CodePackageHealthErrorThreshold" => count code_package_health_error_threshold,
    "DeactivationScanInterval" => span deactivation_scan_interval,
    "DeactivationGraceInterval" => span deactivation_grace_interval,
    "ExclusiveModeDeactivationGraceInterval" => span exclusive_mode_deactivation_grace_interval,
    "DeactivationMaxRetryInterval" => span deactivation_max_retry_interval,
    "DeployedServiceFailoverContinuousFailureThreshold" => count deployed_service_failover_continuous_failure_threshold,
    "RAPMessageRetryInterval" => span rap_message_retry_interval,
    "MinimumIntervalBetweenRAPMessageRetry" => span minimum_interval_between_rap_message_retry,
    "ReplicaOpenFailureMaxRetryThreshold" => limit replica_open_failure_max_retry_threshold,
};

/// Settings of the runtime about features that the emulator lacks: types that no package declares, a cache of
/// images on disk, messages lost between the node and the failover manager.
const WITHOUT_EFFECT: &[Setting] = &[
    ignored("DisabledServiceTypeRecoveryInterval"),
    ignored("CacheCleanupScanInterval"),
    ignored("MessageRetryInterval"),
    ignored("FMMessageRetryInterval"),
    ignored("ServiceTypeMessageRetryInterval"),
    ignored("ReplicaOpenFailureWarningThreshold"),
];

const fn ignored(name: &'static str) -> Setting {
    Setting { name, set: None }
}

impl HostingConfig {
    /// Sets a setting by its name in a cluster manifest (`ActivationRetryBackoffInterval`), optionally after
    /// its section (`Hosting/…`). `Profile` sets nothing else, so set it first. Returns a warning if the
    /// value is ambiguous, or the setting has no effect.
    ///
    /// ```
    /// use servicefabric_emulator::hosting::{BackoffMode, HostingConfig, Span};
    ///
    /// let mut config = HostingConfig::default();
    /// config.set("DeactivationScanInterval", &"1800".into())?;
    /// assert_eq!(config.deactivation_scan_interval, Span::from_secs(1800));
    ///
    /// let warning = config.set("ActivationRetryBackoffExponentiationBase", &"0".into())?;
    /// assert_eq!(config.activation_retry_backoff, BackoffMode::Linear);
    /// assert!(warning.is_some_and(|text| text.contains("linear")));
    ///
    /// let error = config.set("DeactivationScanIntervall", &"1800".into()).unwrap_err();
    /// let text = "unknown setting `DeactivationScanIntervall` (did you mean `DeactivationScanInterval`?)";
    /// assert_eq!(error.to_string(), text);
    /// # Ok::<(), servicefabric_emulator::hosting::SettingError>(())
    /// ```
    ///
    /// # Errors
    /// The name is unknown, or the value does not fit. Nothing has changed then.
    pub fn set(
        &mut self,
        name: &str,
        value: &SettingValue,
    ) -> Result<Option<String>, SettingError> {
        // The name may include its section, before a slash.
        let short = name.rsplit('/').next().unwrap_or(name);
        let Some(setting) = SETTINGS
            .iter()
            .chain(WITHOUT_EFFECT)
            .find(|known| known.name == short)
        else {
            return Err(SettingError::Unknown {
                name: name.to_owned(),
                suggestion: closest(short, Self::setting_names().chain(["Profile"]))
                    .map(str::to_owned),
            });
        };
        let Some(set) = setting.set else {
            return Ok(Some(format!("setting `{short}` has no effect here")));
        };
        set(self, value).map_err(|expected| SettingError::Value {
            name: name.to_owned(),
            value: value.to_string(),
            expected,
        })?;
        Ok(warning(short, value))
    }

    /// The names of all settings that have an effect.
    pub fn setting_names() -> impl Iterator<Item = &'static str> {
        SETTINGS.iter().map(|setting| setting.name)
    }

    /// Returns the defaults of a profile with changed settings, and warnings about them. `Profile`
    /// (`documented`, `runtime64`) may be among the settings and is applied first, whatever its position.
    ///
    /// # Errors
    /// All that is wrong with the settings.
    pub fn from_settings<'a>(
        settings: impl IntoIterator<Item = (&'a str, &'a SettingValue)> + Clone,
    ) -> Result<(Self, Vec<String>), Vec<SettingError>> {
        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        let mut config = Self::default();
        // The profile replaces all defaults, so it is applied before the other settings.
        for (name, value) in settings.clone() {
            if name == PROFILE {
                match profile(value) {
                    Ok(profile) => config = Self::new(profile),
                    Err(error) => errors.push(error),
                }
            }
        }
        for (name, value) in settings {
            if name != PROFILE {
                match config.set(name, value) {
                    Ok(warning) => warnings.extend(warning),
                    Err(error) => errors.push(error),
                }
            }
        }
        if errors.is_empty() {
            Ok((config, warnings))
        } else {
            Err(errors)
        }
    }
}

const PROFILE: &str = "Profile";

fn profile(value: &SettingValue) -> Result<Profile, SettingError> {
    match value {
        SettingValue::Text(text) if text == "documented" => Ok(Profile::Documented),
        SettingValue::Text(text) if text == "runtime64" => Ok(Profile::Runtime64),
        _ => Err(SettingError::Value {
            name: PROFILE.to_owned(),
            value: value.to_string(),
            expected: "expected \"documented\" or \"runtime64\"".to_owned(),
        }),
    }
}

fn warning(name: &str, value: &SettingValue) -> Option<String> {
    if name != "ActivationRetryBackoffExponentiationBase" {
        return None;
    }
    match number(value) {
        Some(0.0) => Some(format!(
            "`{name}` of 0 is documented as constant and as linear: it is taken as linear; write 1, or \"constant\", for constant"
        )),
        Some(base) if base < 1.0 => Some(format!(
            "`{name}` below 1 would shrink the waits: it is taken as constant"
        )),
        _ => None,
    }
}

fn number(value: &SettingValue) -> Option<f64> {
    match value {
        SettingValue::Bool(_) => None,
        SettingValue::Integer(number) => Some(*number as f64),
        SettingValue::Number(number) => Some(*number),
        SettingValue::Text(text) => text.trim().parse().ok(),
    }
}

fn span(value: &SettingValue) -> Result<Span, String> {
    let expected =
        || "expected a length of time, such as 15, \"15s\", \"10m\" or \"infinite\"".to_owned();
    match value {
        SettingValue::Bool(_) => Err(expected()),
        SettingValue::Integer(secs) => u64::try_from(*secs)
            .map(Span::from_secs)
            .map_err(|_| expected()),
        SettingValue::Number(secs) => Span::from_secs_f64(*secs).ok_or_else(expected),
        SettingValue::Text(text) => Span::parse(text).map_err(|_| expected()),
    }
}

fn count(value: &SettingValue) -> Result<u32, String> {
    let count = match value {
        SettingValue::Integer(number) => u32::try_from(*number).ok(),
        SettingValue::Text(text) => text.trim().parse().ok(),
        SettingValue::Bool(_) | SettingValue::Number(_) => None,
    };
    count.ok_or_else(|| "expected a whole number, 0 or more".to_owned())
}

fn limit(value: &SettingValue) -> Result<Option<u32>, String> {
    match value {
        SettingValue::Text(text) if text == "infinite" => Ok(None),
        other => count(other)
            .map(Some)
            .map_err(|_| "expected a whole number, 0 or more, or \"infinite\"".to_owned()),
    }
}

fn truth(value: &SettingValue) -> Result<bool, String> {
    match value {
        SettingValue::Bool(truth) => Ok(*truth),
        SettingValue::Text(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        SettingValue::Text(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

fn severity(value: &SettingValue) -> Result<HealthState, String> {
    match value {
        SettingValue::Text(text) if text.eq_ignore_ascii_case("ok") => Ok(HealthState::Ok),
        SettingValue::Text(text) if text.eq_ignore_ascii_case("warning") => {
            Ok(HealthState::Warning)
        }
        SettingValue::Text(text) if text.eq_ignore_ascii_case("error") => Ok(HealthState::Error),
        _ => Err("expected \"Ok\", \"Warning\" or \"Error\"".to_owned()),
    }
}

fn backoff(value: &SettingValue) -> Result<BackoffMode, String> {
    match value {
        SettingValue::Text(text) if text.eq_ignore_ascii_case("constant") => Ok(BackoffMode::Constant),
        SettingValue::Text(text) if text.eq_ignore_ascii_case("linear") => Ok(BackoffMode::Linear),
        other => number(other).and_then(BackoffMode::from_raw).ok_or_else(|| {
            "expected a base of 0 or more (0 is linear, 1 is constant), \"linear\" or \"constant\"".to_owned()
        }),
    }
}
