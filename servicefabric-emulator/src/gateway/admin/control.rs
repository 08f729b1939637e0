use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::body::present;
use crate::cluster::ErrorCode;
use crate::gateway::calls::{Call, read_json};
use crate::gateway::emulator::Shared;
use crate::gateway::faults::{Fault, FaultError};
use crate::gateway::wire::{Answer, ApiError};
use crate::hosting::{Span, Timestamp};

/// The maximum step of the clock: 31 days.
const MAX_STEP: Span = Span::from_secs(31 * 86_400);
/// The maximum real time that one call computes.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn overview(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Overview<'a> {
        cluster: &'a str,
        seconds: Timestamp,
        date: String,
        speed: f64,
        faults: Vec<Fault>,
        faulty_answers: u64,
        page_size: Option<usize>,
    }
    let faults = call.shared.faults();
    Answer::json(&Overview {
        cluster: call.cluster.name(),
        seconds: call.cluster.now(),
        date: call.shared.epoch().date(call.cluster.now()),
        speed: call.shared.clock().speed(),
        faults: faults.waiting(),
        faulty_answers: faults.hits(),
        page_size: faults.page_size(),
    })
}

/// Moves the clock as the body requests, and releases the cluster between slices.
///
/// # Errors
///
/// `E_INVALIDARG` for more than 31 days; `FABRIC_E_TIMEOUT` if it took longer than half a minute of real
/// time.
///
/// # Cancel safety
///
/// If the future is dropped, the clock keeps the progress so far.
pub(crate) async fn move_time(shared: &Shared, body: &[u8]) -> Result<(), ApiError> {
    #[derive(Deserialize)]
    #[serde(
        rename_all = "PascalCase",
        deny_unknown_fields,
        expecting = "an object with By"
    )]
    struct Advance {
        by: Span,
    }
    let Advance { by } = read_json(body)?;
    if by > MAX_STEP {
        return Err(ApiError::invalid(format!(
            "{by} is too far; a step is 31 days at most, and more is several steps"
        )));
    }
    let by = Duration::from_millis(by.as_millis());
    let left = shared.skip_in_turns(by, PATIENCE).await;
    if left.is_zero() {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::Timeout,
        format!(
            "too many events: {} s of time are left after computing for {} s; request these again",
            left.as_secs_f64(),
            PATIENCE.as_secs()
        ),
    ))
}

pub(super) fn faults(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    Answer::json(&call.shared.faults().waiting())
}

pub(super) fn inject(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let fault: Fault = call.json()?;
    call.shared
        .faults()
        .inject(fault)
        .map_err(|error: FaultError| ApiError::invalid(error.to_string()))?;
    faults(call)
}

pub(super) fn clear(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    call.shared.faults().clear();
    faults(call)
}

pub(super) fn page_size(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Deserialize)]
    #[serde(
        rename_all = "PascalCase",
        deny_unknown_fields,
        expecting = "an object with Items"
    )]
    struct PageSize {
        #[serde(deserialize_with = "present")]
        items: Option<NonZeroUsize>,
    }
    let wanted: Option<PageSize> = call.json()?;
    let items = wanted.and_then(|wanted| wanted.items);
    call.shared
        .faults()
        .set_page_size(items.map(NonZeroUsize::get));
    Ok(Answer::done())
}

pub(super) fn resolve_cache(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Deserialize)]
    #[serde(
        rename_all = "PascalCase",
        deny_unknown_fields,
        expecting = "an object with Age"
    )]
    struct Cache {
        age: Span,
    }
    let wanted: Cache = call.json()?;
    call.cluster.set_resolve_cache(wanted.age);
    Ok(Answer::done())
}

pub(super) fn report_interval(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    #[derive(Deserialize)]
    #[serde(
        rename_all = "PascalCase",
        deny_unknown_fields,
        expecting = "an object with Interval"
    )]
    struct Interval {
        interval: Span,
    }
    let wanted: Interval = call.json()?;
    call.cluster.set_health_report_interval(wanted.interval);
    Ok(Answer::done())
}
