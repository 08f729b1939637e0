//! `/api/v1/explain`: the explanation of a request given by query parameters.

use http::StatusCode;

use super::AdminState;
use super::query::Query;
use super::respond::AdminResponse;
use crate::explain::{ParsedRequest, request_from_text};

pub(super) fn answer(admin: &AdminState, query: &Query) -> AdminResponse {
    match asked(admin, query) {
        Ok(asked) => {
            let decide = |parts: &_, connection| admin.proxy.explain(parts, connection);
            AdminResponse::json(&asked.explain(decide))
        }
        Err(message) => AdminResponse::error(StatusCode::BAD_REQUEST, &message),
    }
}

fn asked(admin: &AdminState, query: &Query) -> Result<ParsedRequest, String> {
    let method = query.get("method").unwrap_or("GET");
    let url = query
        .get("url")
        .ok_or("`url` is missing: http://host/path?query")?;
    let rules = admin.listeners.rules(query.get("listener"))?;
    request_from_text(method, url, query.all("header"), &admin.limits, rules, None)
}
