//! Routes.

use proxy_model::Snapshot;
use proxy_model::compiled::{Route, RouteTarget};
use proxy_model::config::RouteConfig;
use serde::Serialize;
use xds_types::pb::envoy::config::route::v3::{Route as EnvoyRoute, RouteMatch};
use xds_types::pb::google::protobuf::BoolValue;

use super::report::{Inexpressible, Report};
use super::{BridgeOptions, action, criteria, headers, path, restriction, source};
use crate::proto::unavailable;

/// A route in the form in which it is carried.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CarriedRoute {
    /// Among all routes.
    position: usize,
    route: RouteConfig,
}

/// Returns the route in Envoy's form. `None` if its criteria have no equivalent. If only its action has
/// none, its requests are rejected, so that no other route gets them. The requests of a route that
/// [restricts](restriction) its clients are rejected in any case, if need be together with more.
pub(super) fn route(
    position: usize,
    route: &Route,
    snapshot: &Snapshot,
    options: &BridgeOptions,
    report: &mut Report<'_>,
) -> Option<EnvoyRoute> {
    let restriction = restriction::restriction(route);
    let matched = match route_match(route, report) {
        Ok(matched) => matched,
        Err(reason) if restriction.is_some() => {
            let (matched, prefix) = path::wider_match(route.matcher().path());
            report.left_out(&Inexpressible::new(
                reason.key,
                format!(
                    "{}; all requests for paths below `{prefix}` that come to this route get 503",
                    reason.message
                ),
            ));
            RouteMatch {
                path_specifier: Some(matched.specifier),
                case_sensitive: Some(BoolValue {
                    value: matched.case_sensitive,
                }),
                ..RouteMatch::default()
            }
        }
        Err(reason) => {
            report.left_out(&Inexpressible::new(
                reason.key,
                format!("{}; the route is left out", reason.message),
            ));
            return None;
        }
    };
    let mut written = EnvoyRoute {
        name: route.id().as_str().to_owned(),
        r#match: Some(matched),
        ..EnvoyRoute::default()
    };
    let filled = match restriction {
        Some(reason) => Err(reason),
        None => fill(&mut written, route, snapshot, report),
    };
    if let Err(reason) = filled {
        report.left_out(&Inexpressible::new(
            reason.key,
            format!("{}; requests of the route get 503", reason.message),
        ));
        written.action = Some(unavailable());
    }
    if options.carry_source {
        source::carry(
            &mut written,
            &CarriedRoute {
                position,
                route: restriction::carried(route),
            },
        );
    }
    Some(written)
}

fn route_match(route: &Route, report: &mut Report<'_>) -> Result<RouteMatch, Inexpressible> {
    let path = path::path_match(route.matcher().path(), report)?;
    Ok(RouteMatch {
        path_specifier: Some(path.specifier),
        case_sensitive: (!path.case_sensitive).then_some(BoolValue { value: false }),
        headers: criteria::header_matchers(&route.config().r#match, report)?,
        ..RouteMatch::default()
    })
}

fn fill(
    written: &mut EnvoyRoute,
    route: &Route,
    snapshot: &Snapshot,
    report: &mut Report<'_>,
) -> Result<(), Inexpressible> {
    let request = match route.target() {
        RouteTarget::Cluster(_) | RouteTarget::Weighted(_) | RouteTarget::Partitioned(_) => {
            headers::request(route.transforms())?
        }
        // Nothing is sent on, and gateways reject values that they cannot make.
        _ => headers::HeaderEdits::default(),
    };
    let response = headers::response(route.transforms(), report)?;
    written.action = Some(action::action(route, request.host, snapshot, report)?);
    written.request_headers_to_add = request.add;
    written.request_headers_to_remove = request.remove;
    written.response_headers_to_add = response.add;
    written.response_headers_to_remove = response.remove;
    Ok(())
}
