//! The order and the page of a list that a request selects.

use std::cmp::Ordering;

use super::query::Query;
use crate::status::LastMinute;

/// A row of a list, with the values by which it can be sorted.
pub(super) trait Sortable {
    /// The id as it is shown.
    fn name(&self) -> String;

    /// Requests in the last seconds.
    fn rate(&self) -> f64;

    /// Requests since the start.
    fn requests(&self) -> u64;

    fn last_minute(&self) -> Option<&LastMinute>;

    /// Smaller numbers need more attention.
    fn urgency(&self) -> u8;
}

/// Sorts by the parameter `sort`, and keeps the part from `offset` of at most `limit` rows. Returns the number of all
/// rows.
///
/// `name` ascends; `rate`, `requests`, `failed` and `p99` descend. Without `sort`, or with another value, rows that
/// need attention come first. Equal rows keep the order of the configuration.
pub(super) fn arrange<R: Sortable>(rows: &mut Vec<R>, query: &Query, limit: usize) -> usize {
    let failed = |row: &R| row.last_minute().map_or(0.0, LastMinute::failed);
    let slowest = |row: &R| row.last_minute().map_or(0.0, |minute| minute.p99_ms);
    match query.get("sort") {
        Some("name") => rows.sort_by_cached_key(|row| row.name().to_lowercase()),
        Some("rate") => rows.sort_by(|a, b| descending(a.rate(), b.rate())),
        Some("requests") => rows.sort_by_key(|row| std::cmp::Reverse(row.requests())),
        Some("failed") => rows.sort_by(|a, b| descending(failed(a), failed(b))),
        Some("p99") => rows.sort_by(|a, b| descending(slowest(a), slowest(b))),
        // A stable sort, so that equal rows keep the order of the configuration.
        _ => rows.sort_by_key(Sortable::urgency),
    }
    let count = rows.len();
    // An offset beyond the end gives an empty list.
    let offset = query.number("offset").unwrap_or(0).min(count);
    rows.drain(..offset);
    rows.truncate(limit);
    count
}

fn descending(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}
