//! `/api/v1/routes`: the filtered list of routes.

use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::AdminState;
use super::cluster_list::rate;
use super::query::Query;
use crate::status::RouteStatus;

/// Number of routes in a response: the default of the `limit` parameter, and its maximum.
const LIMIT: usize = 100;
const MAX_LIMIT: usize = 10_000;

#[derive(Serialize)]
pub(super) struct RouteList {
    routes: Vec<Row>,
    /// Number of routes that match the filter, including those beyond the limit.
    matching: usize,
}

#[derive(Serialize)]
struct Row {
    /// The conditions of the route in one line.
    takes: String,
    provider: Option<String>,
    requests_per_second: f64,
    #[serde(flatten)]
    status: RouteStatus,
}

pub(super) fn of(admin: &AdminState, query: &Query) -> RouteList {
    let filter = query.get("filter").unwrap_or_default().to_lowercase();
    let mut matching: Vec<Row> = admin
        .proxy
        .routes()
        .into_iter()
        .map(|status| Row {
            takes: takes(&status),
            provider: admin.route_provider(&status.id),
            requests_per_second: rate(&status.per_second),
            status,
        })
        .filter(|row| {
            has_id(row.status.id.as_str(), &filter) || row.takes.to_lowercase().contains(&filter)
        })
        .collect();
    let count = matching.len();
    matching.truncate(query.limit(LIMIT, MAX_LIMIT));
    RouteList {
        routes: matching,
        matching: count,
    }
}

/// Returns true if `filter`, in lower case, occurs in an id as written or as the page shows it, decoded.
fn has_id(id: &str, filter: &str) -> bool {
    let shown = percent_decode_str(id).decode_utf8_lossy();
    id.to_lowercase().contains(filter) || shown.to_lowercase().contains(filter)
}

/// Returns the conditions of a route in one line.
pub(super) fn takes(route: &RouteStatus) -> String {
    let mut parts = Vec::new();
    if !route.methods.is_empty() {
        parts.push(route.methods.join(" "));
    }
    if !route.hosts.is_empty() {
        parts.push(route.hosts.join(", "));
    }
    match &route.path {
        Some(path) if path.starts_with('/') => parts.push(path.clone()),
        Some(path) => parts.push(format!("/{path}")),
        None => parts.push("every path".to_owned()),
    }
    parts.extend(route.conditions.iter().cloned());
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_as_written_and_as_shown() {
        let id = "fabric%3A%2FShop%2FCatalog:catalog";
        for (filter, is_found) in [
            ("", true),
            ("shop/catalog", true),
            ("fabric:/shop", true),
            ("%2fcatalog", true),
            ("shop:catalog", false),
        ] {
            assert_eq!(has_id(id, filter), is_found, "{filter}");
        }
    }
}
