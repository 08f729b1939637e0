//! `/api/v1/requests`: the latest requests of a sample.

use serde::Serialize;
use serde_json::Value;

use super::query::Query;
use super::state::AdminState;

#[derive(Serialize)]
pub(super) struct RequestList {
    /// False if the program keeps none.
    enabled: bool,
    /// The limit of requests of a second, and of failed ones beside them.
    per_second: u32,
    /// The number of the latest request.
    latest: u64,
    /// Number of requests since the start that were not taken.
    left_out: u64,
    /// The newest last, each with its number.
    requests: Vec<Value>,
}

/// The requests after the one with the number `after`.
pub(super) fn of(admin: &AdminState, query: &Query) -> RequestList {
    let after = query.get("after").and_then(|number| number.parse().ok());
    let tail = admin.requests.as_deref();
    let requests = tail.map(|tail| tail.after(after.unwrap_or(0)));
    RequestList {
        enabled: tail.is_some(),
        per_second: tail.map_or(0, |tail| tail.per_second()),
        latest: tail.map_or(0, |tail| tail.taken()),
        left_out: tail.map_or(0, |tail| tail.left_out()),
        requests: requests
            .unwrap_or_default()
            .into_iter()
            .filter_map(|(number, line)| numbered(number, &line))
            .collect(),
    }
}

fn numbered(number: u64, line: &str) -> Option<Value> {
    let mut request: Value = serde_json::from_str(line).ok()?;
    request
        .as_object_mut()?
        .insert("id".to_owned(), number.into());
    Some(request)
}
