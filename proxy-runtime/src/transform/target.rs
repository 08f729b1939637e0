//! The target of a request that a route or a destination changes.

use proxy_model::RequestHead;
use proxy_model::compiled::{Destination, Route};
use proxy_model::matching::RouteValues;
use proxy_model::transform::{RequestTarget, path_and_query};

use super::HeadPlan;

/// The route's changes make no valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Invalid;

/// Path and query that a request gets whose route or destination changes them.
#[cold]
pub(crate) fn elsewhere<H: RequestHead>(
    plan: &HeadPlan,
    route: &Route,
    destination: &Destination,
    head: &H,
    (path, query): (&str, Option<&str>),
) -> String {
    let values = match plan.rewrites_target {
        true => route.matcher().path().capture(head.path()),
        false => None,
    };
    let values: RouteValues = values.unwrap_or_default();
    let mut target = RequestTarget {
        method: head.method().into(),
        path: path.into(),
        query: query.map(Into::into),
    };
    route.transforms().rewrite(&mut target, &values);
    path_and_query(destination.address(), &target.path, target.query.as_deref())
}
