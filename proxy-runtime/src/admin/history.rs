//! `/api/v1/history`: the charts of the last hour.

use http::StatusCode;
use proxy_model::{ClusterId, RouteId};

use super::query::Query;
use super::respond::AdminResponse;
use super::state::AdminState;
use crate::status::ChartView;

/// Returns the chart of the named route or cluster, or of all requests.
pub(super) fn of(admin: &AdminState, query: &Query) -> AdminResponse {
    let shared = admin.proxy.shared();
    let (kind, id, view) = match (query.get("route"), query.get("cluster")) {
        (Some(id), _) => ("route", id, ChartView::of_route(shared, &RouteId::from(id))),
        (None, Some(id)) => (
            "cluster",
            id,
            ChartView::of_cluster(shared, &ClusterId::from(id)),
        ),
        (None, None) => ("", "", Some(ChartView::of(&shared.metrics().chart))),
    };
    match view {
        Some(view) => AdminResponse::json(&view),
        None => AdminResponse::error(StatusCode::NOT_FOUND, &format!("there is no {kind} `{id}`")),
    }
}
