//! Tests of the settings.

use super::suggest::closest;
use super::{HostingConfig, Profile, SettingValue};
use crate::hosting::{BackoffMode, HealthState, Span};

#[test]
fn every_setting_is_read_from_a_text_and_changes_something() {
    let values = ["7", "7s", "true", "false", "Error", "Warning"];
    for name in HostingConfig::setting_names() {
        let changed = values.iter().any(|&value| {
            let mut config = HostingConfig::default();
            config.set(name, &value.into()).is_ok() && config != HostingConfig::default()
        });
        assert!(changed, "{name}");
    }
}

#[test]
fn settings_are_read_from_toml_and_json() {
    let toml = r#"
        Profile = "runtime64"
        DeactivationScanInterval = "30m"
        ActivationRetryBackoffInterval = 1.5
        ActivationMaxFailureCount = 5
        RetryOnInternalError = false
        ServiceTypeDisableGraceInterval = "infinite"
        ReplicaOpenFailureMaxRetryThreshold = "infinite"
    "#;
    let config: HostingConfig = toml::from_str(toml).unwrap();
    assert_eq!(config.profile, Profile::Runtime64);
    assert_eq!(config.deactivation_scan_interval, Span::from_secs(1800));
    assert_eq!(
        config.activation_retry_backoff_interval,
        Span::from_millis(1500)
    );
    assert_eq!(config.activation_max_failure_count, 5);
    assert!(!config.retry_on_internal_error);
    assert_eq!(config.service_type_disable_grace_interval, Span::INFINITE);
    assert_eq!(config.replica_open_failure_max_retry_threshold, None);
    assert_eq!(config.registration_timeout_severity, HealthState::Error);

    let json = r#"{"Hosting/DeactivationGraceInterval": 5, "ReconfigurationAgent/RAPMessageRetryInterval": "20"}"#;
    let config: HostingConfig = serde_json::from_str(json).unwrap();
    assert_eq!(config.deactivation_grace_interval, Span::from_secs(5));
    assert_eq!(config.rap_message_retry_interval, Span::from_secs(20));
}

#[test]
fn the_profile_counts_first_wherever_it_stands() {
    let config: HostingConfig =
        serde_json::from_str(r#"{"ActivationMaxFailureCount": 3, "Profile": "runtime64"}"#)
            .unwrap();
    assert_eq!(config.activation_max_failure_count, 3);
    assert_eq!(config.replica_open_failure_max_retry_threshold, Some(40));
}

#[test]
fn all_problems_are_reported_together() {
    let json = r#"{"ActivationMaxFailureCont": 3, "DeactivationScanInterval": -1, "Profile": "newest", "RetryOnInternalError": 3}"#;
    let error = serde_json::from_str::<HostingConfig>(json)
        .unwrap_err()
        .to_string();
    for part in [
        "unknown setting `ActivationMaxFailureCont` (did you mean `ActivationMaxFailureCount`?)",
        "setting `DeactivationScanInterval` cannot be -1: expected a length of time",
        "setting `Profile` cannot be \"newest\": expected \"documented\" or \"runtime64\"",
        "setting `RetryOnInternalError` cannot be 3: expected true or false",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn what_is_ambiguous_or_without_effect_is_warned_about() {
    let warning =
        |name: &str, value: &str| HostingConfig::default().set(name, &value.into()).unwrap();
    let base = "ActivationRetryBackoffExponentiationBase";
    assert!(warning(base, "0").unwrap().contains("taken as linear"));
    assert!(warning(base, "0.5").unwrap().contains("taken as constant"));
    assert_eq!(warning(base, "1"), None);
    assert_eq!(warning(base, "linear"), None);
    assert!(
        warning("CacheCleanupScanInterval", "1")
            .unwrap()
            .contains("no effect")
    );
}

/// The row A7, and other raw bases.
#[test]
fn raw_bases() {
    let mode = |value: SettingValue| {
        let mut config = HostingConfig::default();
        config
            .set("ActivationRetryBackoffExponentiationBase", &value)
            .map(|_| config.activation_retry_backoff)
    };
    assert_eq!(mode(SettingValue::Integer(0)), Ok(BackoffMode::Linear));
    assert_eq!(mode(SettingValue::Number(1.0)), Ok(BackoffMode::Constant));
    assert_eq!(
        mode(SettingValue::Integer(2)),
        Ok(BackoffMode::Exponential(2.0))
    );
    assert_eq!(mode("constant".into()), Ok(BackoffMode::Constant));
    for bad in ["-1", "NaN", "inf", "fast"] {
        assert!(mode(bad.into()).is_err(), "{bad}");
    }
    assert!(mode(SettingValue::Bool(true)).is_err());
}

#[test]
fn only_similar_names_are_suggested() {
    let known = ["place", "close", "exit"];
    assert_eq!(closest("palce", known), Some("place"));
    assert_eq!(closest("PLACE", known), Some("place"));
    assert_eq!(closest("download", known), None);
    assert_eq!(closest(&"x".repeat(10_000), known), None);
}
