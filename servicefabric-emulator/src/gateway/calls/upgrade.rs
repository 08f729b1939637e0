use serde::Deserialize;

use super::Call;
use super::application::map;
use crate::cluster::{ErrorCode, FailureAction, UpgradeMode, UpgradeRequest};
use crate::gateway::route::Route;
use crate::gateway::shapes::{Parameter, UpgradeProgressInfo};
use crate::gateway::wire::{Answer, ApiError, parse_duration};
use crate::hosting::Span;

pub(super) const ROUTES: &[Route] = &[
    Route::post("/Applications/{application*}/$/Upgrade", start),
    Route::get(
        "/Applications/{application*}/$/GetUpgradeProgress",
        progress,
    ),
    Route::post(
        "/Applications/{application*}/$/MoveToNextUpgradeDomain",
        resume,
    ),
    Route::post("/Applications/{application*}/$/RollbackUpgrade", roll_back),
];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an object")]
struct Upgrade {
    target_application_type_version: String,
    #[serde(default)]
    parameters: Option<Vec<Parameter>>,
    #[serde(default)]
    rolling_upgrade_mode: Option<String>,
    #[serde(default)]
    force_restart: Option<bool>,
    #[serde(default)]
    monitoring_policy: Option<Monitoring>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default, expecting = "an object")]
struct Monitoring {
    health_check_wait_duration_in_milliseconds: Option<String>,
    upgrade_domain_timeout_in_milliseconds: Option<String>,
    upgrade_timeout_in_milliseconds: Option<String>,
    failure_action: Option<String>,
}

/// Parses a duration. Writers call it milliseconds, and write either those or ISO 8601.
fn span(text: Option<&str>, default: Span) -> Result<Span, ApiError> {
    match text {
        None => Ok(default),
        Some(text) => match text.parse() {
            Ok(milliseconds) => Ok(Span::from_millis(milliseconds)),
            Err(_) => parse_duration(text),
        },
    }
}

fn start(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let wanted: Upgrade = call.json()?;
    let mode = match wanted.rolling_upgrade_mode.as_deref() {
        None | Some("Invalid") => UpgradeMode::UnmonitoredAuto,
        Some(word) => UpgradeMode::from_word(word).ok_or_else(|| {
            ApiError::invalid(format!(
                "RollingUpgradeMode is `{word}`, but must be UnmonitoredAuto, UnmonitoredManual or Monitored"
            ))
        })?,
    };
    if wanted.force_restart == Some(true) {
        return Err(ApiError::invalid(
            "ForceRestart is not emulated: processes restart when the version of their package changes, give it another one",
        ));
    }
    let monitoring = wanted.monitoring_policy.unwrap_or_default();
    let action = match monitoring.failure_action.as_deref() {
        None | Some("Invalid") => FailureAction::Rollback,
        Some(word) => FailureAction::from_word(word).ok_or_else(|| {
            ApiError::invalid(format!(
                "FailureAction is `{word}`, but must be Rollback or Manual"
            ))
        })?,
    };
    let wait = span(
        monitoring
            .health_check_wait_duration_in_milliseconds
            .as_deref(),
        Span::ZERO,
    )?;
    let timeout = span(
        monitoring.upgrade_domain_timeout_in_milliseconds.as_deref(),
        Span::INFINITE,
    )?;
    let whole = span(
        monitoring.upgrade_timeout_in_milliseconds.as_deref(),
        Span::INFINITE,
    )?;
    let request = UpgradeRequest::new(&wanted.target_application_type_version)
        .with_parameters(map(wanted.parameters))
        .with_mode(mode)
        .with_wait(wait)
        .with_domain_timeout(timeout)
        .with_timeout(whole)
        .with_failure_action(action);
    let name = call.name("application")?;
    call.cluster.upgrade_application(&name, request)?;
    Ok(Answer::done())
}

fn progress(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let name = call.name("application")?;
    let application = call.cluster.application(&name).ok_or_else(|| {
        ApiError::new(
            ErrorCode::ApplicationNotFound,
            format!("there is no application '{name}'"),
        )
    })?;
    let upgrade = application.upgrade.as_ref().ok_or_else(|| {
        ApiError::new(
            ErrorCode::ApplicationNotUpgrading,
            format!("application '{name}' was never upgraded"),
        )
    })?;
    let now = call.cluster.now();
    Answer::json(&UpgradeProgressInfo::new(
        application,
        upgrade,
        now,
        call.shared.epoch(),
    ))
}

fn resume(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let name = call.name("application")?;
    call.cluster.resume_upgrade(&name)?;
    Ok(Answer::done())
}

fn roll_back(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let name = call.name("application")?;
    call.cluster.roll_back_upgrade(&name)?;
    Ok(Answer::done())
}
