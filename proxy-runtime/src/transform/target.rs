//! The target and the method of the outgoing request, which a route or a destination may change.

use http::Method;
use proxy_model::RequestHead;
use proxy_model::compiled::Destination;
use proxy_model::compiled::Route;
use proxy_model::matching::RouteValues;
use proxy_model::transform::TargetTransform;
use proxy_model::transform::{RequestTarget, path_and_query};

use super::CompiledTransforms;
use crate::http1::OutgoingTarget;

/// The route's changes make no valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Invalid;

/// The method and target of a request that its route or destination changes.
pub(crate) struct Elsewhere<'a> {
    /// `None`: the client's.
    method: Option<&'a str>,
    path_and_query: String,
}

impl<'a> Elsewhere<'a> {
    /// # Errors
    ///
    /// It cannot be asked for in HTTP/1.1.
    pub(crate) fn target(&self) -> Result<OutgoingTarget<'_>, Invalid> {
        let (path, query) = match self.path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query.as_bytes())),
            None => (&*self.path_and_query, None),
        };
        OutgoingTarget::new(path.as_bytes(), query).ok_or(Invalid)
    }

    /// The method, if it is another one than the client's.
    pub(crate) fn method(&self) -> Option<&'a str> {
        self.method
    }
}

/// Rewrites method and target of a request with this path and query.
#[cold]
pub(crate) fn elsewhere<'a, H: RequestHead>(
    plan: &CompiledTransforms,
    route: &'a Route,
    destination: &Destination,
    head: &H,
    (path, query): (&str, Option<&str>),
) -> Elsewhere<'a> {
    let values = match plan.rewrites_target {
        true => route.matcher().path().capture(head.path()),
        // Route values are needed for rewriting only.
        false => None,
    };
    let values: RouteValues = values.unwrap_or_default();
    let mut target = RequestTarget {
        method: head.method().into(),
        path: path.into(),
        query: query.map(Into::into),
    };
    route.transforms().rewrite(&mut target, &values);
    Elsewhere {
        method: sent_method(route, head.method()).map(Method::as_str),
        path_and_query: path_and_query(
            destination.address(),
            &target.path,
            target.query.as_deref(),
        ),
    }
}

/// The method for the destination if it differs from the client's.
pub(crate) fn sent_method<'a>(route: &'a Route, asked: &str) -> Option<&'a Method> {
    let mut sent: Option<&Method> = None;
    for change in route.transforms().target() {
        // A later change sees the method of an earlier one.
        if let TargetTransform::Method { from, to } = change
            && sent
                .map_or(asked, Method::as_str)
                .eq_ignore_ascii_case(from.as_str())
        {
            sent = Some(to);
        }
    }
    sent
}
