//! Responses that a route gives itself: redirects and fixed ones.

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderValue, Response, StatusCode};
use proxy_model::RequestHead;
use proxy_model::compiled::{Redirect, RedirectError, Route, RouteTarget};

use super::response::own;
use crate::error::{ForwardError, ForwardErrorKind};
use crate::head::{ErrorBodies, HttpHead};
use crate::response::ProxyBody;

/// Returns the response that a route gives itself. `None` if it leads to a cluster.
///
/// # Errors
///
/// There is no other URL to redirect to.
pub(crate) fn reply(
    route: &Route,
    head: &HttpHead<'_>,
) -> Result<Option<Response<ProxyBody>>, ForwardError> {
    Ok(match route.target() {
        RouteTarget::Redirect(redirect) => Some(redirected(redirect, route, head)?),
        RouteTarget::Respond(fixed) => {
            let body = Bytes::copy_from_slice(fixed.body().as_bytes());
            let mut response = Response::new(ProxyBody::text(body));
            *response.status_mut() = fixed.status();
            for (name, value) in fixed.headers() {
                response.headers_mut().append(name, value.clone());
            }
            #[cfg(all(feature = "server", feature = "http2"))]
            crate::head::LocalReplyMark::mark(&mut response);
            Some(response)
        }
        RouteTarget::None
        | RouteTarget::Missing(_)
        | RouteTarget::Cluster(_)
        | RouteTarget::Weighted(_)
        | RouteTarget::Partitioned(_) => None,
    })
}

fn redirected(
    redirect: &Redirect,
    route: &Route,
    head: &HttpHead<'_>,
) -> Result<Response<ProxyBody>, ForwardError> {
    let values = route.matcher().path().capture(head.path());
    let location = redirect.location(head, &values.unwrap_or_default());
    let location = location.map_err(|error| {
        let (kind, status) = match error {
            // The client would follow it without end.
            RedirectError::ToItself => (ForwardErrorKind::LoopDetected, StatusCode::LOOP_DETECTED),
            RedirectError::NoHost | RedirectError::NoPath => {
                (ForwardErrorKind::RequestRejected, StatusCode::BAD_REQUEST)
            }
        };
        ForwardError::new(kind, status).with_source(error.to_string())
    })?;
    // A path that was received can be written; one that a program made may be anything.
    let location = HeaderValue::try_from(location).map_err(|error| {
        ForwardError::new(ForwardErrorKind::RequestRejected, StatusCode::BAD_REQUEST)
            .with_source(error)
    })?;
    let mut response = own(redirect.status(), None, &ErrorBodies::default());
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}
