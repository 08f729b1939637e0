//! The policies of an explained request.

use http::request::Parts;
use proxy_model::compiled::RouteIndex;

use super::ExplainContext;
use crate::contain::contained_call;
use crate::error::ForwardError;
use crate::exchange::body_limit;
use crate::extensions::RouteExtensions;
use crate::filter::RequestEdit;
use crate::forward::check_body;
use crate::head::{HeaderMutations, HttpHead};
use crate::policy::{PolicyPreview, RoutePolicies, undecided};

/// Has the policies of a route judge a request as far as they decide alone. `edits` gets their changes.
///
/// # Errors
///
/// The request is rejected before the policies of a route with layers are asked.
pub(super) fn judged(
    place: &ExplainContext<'_>,
    index: RouteIndex,
    request: &Parts,
    head: HttpHead<'_>,
    edits: &mut HeaderMutations,
) -> Result<PolicyPreview, ForwardError> {
    let route = place.snapshot.route_at(index);
    if !route.layers().is_empty() {
        let limit = body_limit(place.max_request_body, route);
        check_body(request, &head, limit)?;
    }
    let Some(policies) = of_route(place, index) else {
        // A proxy that runs without policies honours none.
        let undecided = match place.live {
            Some(_) => Vec::new(),
            None => undecided(route),
        };
        return Ok(PolicyPreview {
            undecided,
            ..PolicyPreview::default()
        });
    };
    let connection = head.connection();
    let mut edit = RequestEdit::of_http(head, edits);
    // Policies of a program may panic, which ends no more than their part of the explanation.
    Ok(contained_call(|| policies.preview(&mut edit, route, connection)).unwrap_or_default())
}

fn of_route<'a>(place: &ExplainContext<'a>, index: RouteIndex) -> Option<&'a dyn RoutePolicies> {
    match place.live {
        Some(generation) => {
            let extensions = generation.route(index).extensions();
            extensions.and_then(RouteExtensions::all_policies)
        }
        None => place.policies.get(index.0 as usize)?.as_deref(),
    }
}
