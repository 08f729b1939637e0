//! `/api/v1/log`: the filter of the program's log, which can be another one for a while.

use std::time::Duration;

use http::{Method, StatusCode};
use serde::Serialize;

use super::query::Query;
use super::respond::AdminResponse;
use super::state::AdminState;

/// The time for which a filter applies, unless the request says otherwise.
const DEFAULT: Duration = Duration::from_secs(600);

/// The longest time, in seconds.
const LONGEST: u64 = 24 * 3600;

/// The log of a program whose filter the admin API can change for a while.
pub trait AdminLog: Send + Sync + 'static {
    /// Applies `filter` for this time; after that, the filter of the program applies again. A later call replaces an
    /// earlier one, and `None` ends it.
    ///
    /// # Errors
    ///
    /// One sentence about why the filter cannot be used. Nothing has changed then.
    fn override_filter(&self, filter: Option<(&str, Duration)>) -> Result<(), String>;

    /// Returns the filter that applies, and the time that is left of one that was set by
    /// [`override_filter`](Self::override_filter).
    fn filter(&self) -> (String, Option<Duration>);
}

#[derive(Serialize)]
struct LogView {
    filter: String,
    /// The seconds after which the filter of the program applies again, if another one applies.
    expires_in: Option<u64>,
}

/// Handles a request. Only a request with a token or certificate may change anything.
pub(super) fn answer(
    admin: &AdminState,
    method: &Method,
    query: &Query,
    is_protected: bool,
) -> AdminResponse {
    let Some(log) = &admin.log else {
        return AdminResponse::error(StatusCode::NOT_FOUND, "this program has no log to change");
    };
    if matches!(*method, Method::PUT | Method::DELETE) {
        if !is_protected {
            return AdminResponse::error(
                StatusCode::FORBIDDEN,
                "the log can be changed only where the admin page requires a token or a certificate",
            );
        }
        let wanted = match *method {
            Method::DELETE => Ok(None),
            _ => wanted(query).map(Some),
        };
        let changed = wanted.and_then(|wanted| log.override_filter(wanted));
        if let Err(reason) = changed {
            return AdminResponse::error(StatusCode::BAD_REQUEST, &reason);
        }
    }
    let (filter, left) = log.filter();
    AdminResponse::json(&LogView {
        filter,
        expires_in: left.map(|left| left.as_secs() + u64::from(left.subsec_nanos() > 0)),
    })
}

/// Reads the filter and its time.
fn wanted(query: &Query) -> Result<(&str, Duration), String> {
    let filter = query
        .get("filter")
        .ok_or("write the filter as `?filter=info,proxy::request=debug`")?;
    let Some(written) = query.get("seconds") else {
        return Ok((filter, DEFAULT));
    };
    let seconds = written.parse::<u64>().ok();
    let seconds = seconds.filter(|seconds| (1..=LONGEST).contains(seconds));
    let seconds = seconds.ok_or_else(|| format!("`seconds` is not between 1 and {LONGEST}"))?;
    Ok((filter, Duration::from_secs(seconds)))
}
