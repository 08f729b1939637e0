//! Responses that a route gives itself: redirects and fixed ones.

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderValue, Response, StatusCode};
use proxy_model::RequestHead;
use proxy_model::compiled::{Redirect, RedirectError, Route, RouteTarget};

use super::response::own;
use crate::head::{ErrorForm, HttpHead};
use crate::response::ProxyBody;

/// Returns the response that a route gives itself. `None` if it leads to a cluster.
pub(crate) fn reply(
    route: &Route,
    head: &HttpHead<'_>,
    form: ErrorForm,
) -> Option<Response<ProxyBody>> {
    match route.target() {
        RouteTarget::Redirect(redirect) => Some(redirected(redirect, route, head, form)),
        RouteTarget::Respond(fixed) => {
            let body = Bytes::copy_from_slice(fixed.body().as_bytes());
            let mut response = Response::new(ProxyBody::text(body));
            *response.status_mut() = fixed.status();
            for (name, value) in fixed.headers() {
                response.headers_mut().append(name, value.clone());
            }
            Some(response)
        }
        RouteTarget::None
        | RouteTarget::Missing(_)
        | RouteTarget::Cluster(_)
        | RouteTarget::Weighted(_)
        | RouteTarget::Partitioned(_) => None,
    }
}

fn redirected(
    redirect: &Redirect,
    route: &Route,
    head: &HttpHead<'_>,
    form: ErrorForm,
) -> Response<ProxyBody> {
    let values = route.matcher().path().capture(head.path());
    let location = redirect.location(head, &values.unwrap_or_default());
    let location = match location {
        Ok(location) => HeaderValue::try_from(location),
        Err(RedirectError::ToItself) => return own(StatusCode::LOOP_DETECTED, None, form),
        Err(RedirectError::NoHost) => return own(StatusCode::BAD_REQUEST, None, form),
    };
    // A path that was received can be written; one that a program made may be anything.
    let Ok(location) = location else {
        return own(StatusCode::BAD_REQUEST, None, form);
    };
    let mut response = own(redirect.status(), None, form);
    response.headers_mut().insert(LOCATION, location);
    response
}
