//! `/api/v1/routes`: the filtered list of routes.

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
            let id = row.status.id.as_str();
            id.to_lowercase().contains(&filter) || row.takes.to_lowercase().contains(&filter)
        })
        .collect();
    let count = matching.len();
    matching.truncate(query.limit(LIMIT, MAX_LIMIT));
    RouteList {
        routes: matching,
        matching: count,
    }
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
