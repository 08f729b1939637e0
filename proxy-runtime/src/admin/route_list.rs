//! `/api/v1/routes`: the filtered list of routes.

use std::collections::HashMap;

use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::Value;

use super::cluster_list::{ClusterCondition, rate};
use super::config_view;
use super::order::{Sortable, arrange};
use super::query::Query;
use super::respond::AdminResponse;
use super::state::AdminState;
use super::text::{has_id, shown};
use crate::status::{LastMinute, RouteStatus};

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
    /// The worst state of its clusters.
    state: ClusterCondition,
    requests_per_second: f64,
    last_minute: Option<LastMinute>,
    #[serde(flatten)]
    status: RouteStatus,
}

/// A single route with its configuration.
#[derive(Serialize)]
struct RouteDetail {
    #[serde(flatten)]
    row: Row,
    /// The configuration without secrets.
    config: Option<Value>,
}

impl Sortable for Row {
    fn name(&self) -> String {
        shown(self.status.id.as_str())
    }

    fn rate(&self) -> f64 {
        self.requests_per_second
    }

    fn requests(&self) -> u64 {
        self.status.requests
    }

    fn last_minute(&self) -> Option<&LastMinute> {
        self.last_minute.as_ref()
    }

    fn urgency(&self) -> u8 {
        self.state.urgency()
    }
}

pub(super) fn of(admin: &AdminState, query: &Query) -> RouteList {
    let filter = query.get("filter").unwrap_or_default().to_lowercase();
    let wanted = query.get("state");
    let mut routes = rows(admin);
    routes.retain(|row| {
        let has_text = has_id(row.status.id.as_str(), &filter)
            || row.takes.to_lowercase().contains(&filter)
            || (row.status.clusters.iter()).any(|share| has_id(&share.cluster, &filter));
        has_text && wanted.is_none_or(|state| row.state.name() == state)
    });
    let matching = arrange(&mut routes, query, query.limit(LIMIT, MAX_LIMIT));
    RouteList { routes, matching }
}

pub(super) fn one(admin: &AdminState, encoded: &str) -> AdminResponse {
    let id = percent_decode_str(encoded).decode_utf8_lossy();
    let Some(row) = rows(admin)
        .into_iter()
        .find(|row| *row.status.id.as_str() == *id)
    else {
        return AdminResponse::error(StatusCode::NOT_FOUND, &format!("there is no route `{id}`"));
    };
    let snapshot = admin.proxy.snapshot();
    let config = snapshot.config().routes.get(&row.status.id);
    AdminResponse::json(&RouteDetail {
        config: config.map(config_view::of_part),
        row,
    })
}

fn rows(admin: &AdminState) -> Vec<Row> {
    // Once for all rows.
    let minutes = LastMinute::of_routes(admin.proxy.shared());
    let clusters = admin.proxy.clusters();
    let states: HashMap<&str, ClusterCondition> = clusters
        .iter()
        .map(|cluster| (cluster.id.as_str(), ClusterCondition::of(cluster)))
        .collect();
    let routes = admin.proxy.routes().into_iter();
    routes
        .map(|status| Row {
            takes: takes(&status),
            provider: admin.route_provider(&status.id),
            state: state(&status, &states),
            requests_per_second: rate(&status.per_second),
            last_minute: minutes.get(&status.id).copied(),
            status,
        })
        .collect()
}

/// Returns the worst state of a route's clusters. A route that answers itself serves. Requests of another one without
/// a cluster, and of one that rejects them, fail.
fn state(route: &RouteStatus, clusters: &HashMap<&str, ClusterCondition>) -> ClusterCondition {
    if route.rejected.is_some() {
        return ClusterCondition::Down;
    }
    if route.answers.is_some() {
        return ClusterCondition::Healthy;
    }
    let states = route.clusters.iter().map(|share| {
        let known = clusters.get(&*share.cluster);
        // The share of a missing cluster fails.
        known.copied().unwrap_or(ClusterCondition::Down)
    });
    // Of equal urgency, unknown is worse than healthy.
    let worst = states.min_by_key(|state| (state.urgency(), *state != ClusterCondition::Unknown));
    worst.unwrap_or(ClusterCondition::Down)
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
        // A configured path may lack its slash.
        Some(path) if path.starts_with('/') => parts.push(path.clone()),
        Some(path) => parts.push(format!("/{path}")),
        None => parts.push("every path".to_owned()),
    }
    parts.extend(route.conditions.iter().cloned());
    parts.join("  ")
}
