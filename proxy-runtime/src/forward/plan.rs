//! The cluster of a request, and the checks before it is forwarded.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Method, StatusCode};
use proxy_model::compiled::{ClusterIndex, Route, RouteIndex, Upstream};
use proxy_model::matching::{Lookup, MethodSet};
use proxy_model::{RequestHead, Snapshot};
use tracing::debug;

use super::body_kind::{BodyKind, body_kind_of};
use super::handshake::Handshake;
use super::upgrade::Wish;
use super::websocket;
use crate::balance::Random;
use crate::error::{Allowance, Cause, ForwardError, ForwardErrorKind};
use crate::head::HttpHead;
use crate::head::headers::parse_length;
use crate::observe::targets;
use crate::state::{Generation, Nowhere, RouteState};
use crate::strict_path;

/// The reason why no route takes a request.
#[derive(Debug)]
pub(crate) enum Unrouted {
    NotFound,
    MethodNotAllowed(MethodSet),
}

impl Unrouted {
    /// The status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
        }
    }
}

/// Finds the route that takes a request, or why there is none.
pub(crate) fn find_route(
    generation: &Generation,
    head: &HttpHead<'_>,
) -> Result<RouteIndex, Unrouted> {
    match generation.find_route(head) {
        Lookup::Matched(route) => Ok(route),
        Lookup::MethodNotAllowed(methods) => Err(Unrouted::MethodNotAllowed(methods)),
        Lookup::NotFound => Err(Unrouted::NotFound),
    }
}

/// Finds the cluster for one request of a route.
///
/// # Errors
///
/// The route requires a policy that does not exist, so its requests are rejected; it does not allow the path; the
/// request is in a loop; the route has no cluster; or no partition has the request's key.
pub(crate) fn find_cluster(
    route: &Route,
    state: &RouteState,
    (snapshot, assigned): (&Snapshot, Option<ClusterIndex>),
    head: &HttpHead<'_>,
    random: &Random,
) -> Result<ClusterIndex, ForwardError> {
    check_route(route, state, head.path())?;
    if state.is_loop(head, head.classes()) {
        state.metrics().loops().record();
        return Err(ForwardError::new(
            ForwardErrorKind::LoopDetected,
            StatusCode::LOOP_DETECTED,
        ));
    }
    // A filter or layer has decided.
    if let Some(assigned) = assigned {
        return Ok(assigned);
    }
    state
        .choose(route, snapshot, head, random)
        .map_err(|nowhere| match nowhere {
            Nowhere::NoCluster => ForwardError::new(
                ForwardErrorKind::NoAvailableDestinations.because(Cause::NoCluster),
                StatusCode::SERVICE_UNAVAILABLE,
            ),
            Nowhere::Failed => ForwardError::new(
                ForwardErrorKind::Extension,
                StatusCode::INTERNAL_SERVER_ERROR,
            ),
            Nowhere::NoPartition(rejection) => {
                ForwardError::new(ForwardErrorKind::NoPartition, StatusCode::BAD_REQUEST)
                    .with_source(rejection)
            }
        })
}

/// Checks that every policy of the route exists, and that it allows this path.
///
/// # Errors
///
/// Fails if the requests of the route are rejected, or if the route takes only paths that have one reading.
pub(super) fn check_route(
    route: &Route,
    state: &RouteState,
    path: &str,
) -> Result<(), ForwardError> {
    if let Some(rejection) = state.rejection() {
        debug!(
            target: targets::REQUEST,
            route = %route.id(),
            reason = %rejection,
            "every request of this route is rejected",
        );
        let kind = ForwardErrorKind::RequestCreation.because(Cause::PolicyMissing);
        return Err(ForwardError::new(kind, StatusCode::INTERNAL_SERVER_ERROR));
    }
    check_path(route, path)
}

/// Makes sure that the route takes requests with this path.
///
/// # Errors
///
/// It takes only paths that have one reading.
pub(crate) fn check_path(route: &Route, path: &str) -> Result<(), ForwardError> {
    strict_path::check(route, || path).map_err(|reason| {
        ForwardError::new(ForwardErrorKind::RequestRejected, StatusCode::BAD_REQUEST)
            .with_source(reason)
    })
}

/// Returns the kind of a request's body, if the request may be forwarded.
///
/// # Errors
///
/// The request is rejected: it opens a tunnel that the proxy does not offer, its handshake is invalid, it has a
/// body where none is allowed, or the body is too large.
pub(super) fn validate(
    head: &HttpHead<'_>,
    wish: Option<&Wish>,
    limit: Option<u64>,
    is_empty: bool,
) -> Result<BodyKind, ForwardError> {
    // A plain CONNECT would make this a forward proxy to any address.
    if *head.method_value() == Method::CONNECT && wish.is_none() {
        return Err(ForwardError::new(
            ForwardErrorKind::RequestRejected,
            StatusCode::BAD_GATEWAY,
        ));
    }
    if wish.is_some_and(Wish::is_websocket) {
        websocket::check_request(head.method_value(), head.headers(), head.is_http2())?;
    }
    let body_kind = match wish {
        // What follows the head is not a body.
        #[cfg(feature = "http2")]
        Some(Wish::Connect) => BodyKind::Empty,
        _ => body_kind_of(head, is_empty)?,
    };
    if wish.is_some() && body_kind != BodyKind::Empty {
        // Whether the body is part of the request or of what follows the switch is a matter of taste to servers, and so
        // a way to smuggle requests past the proxy.
        return Err(client_error(StatusCode::BAD_REQUEST));
    }
    let length = match body_kind {
        BodyKind::Length(length) => Some(length),
        BodyKind::Empty | BodyKind::Stream => None,
    };
    let valid = Allowance::new(limit).check(length);
    valid.map(|()| body_kind).map_err(client_error)
}

/// Checks the declared length of a request whose body is not read.
///
/// # Errors
///
/// The body is too large.
pub(crate) fn check_length(head: &HttpHead<'_>, limit: Option<u64>) -> Result<(), ForwardError> {
    let length = head.headers().get(CONTENT_LENGTH).and_then(parse_length);
    let valid = Allowance::new(limit).check(length);
    valid.map_err(client_error)
}

/// Checks by its head whether a request may be sent to a destination of a cluster with these settings.
///
/// # Errors
///
/// As [`validate`]; or the cluster does not allow the requested protocol.
pub(crate) fn check_head(
    parts: &Parts,
    head: &HttpHead<'_>,
    upstream: &Upstream,
    limit: Option<u64>,
) -> Result<(), ForwardError> {
    match check_body(parts, head, limit)? {
        Some(wish) => Handshake::new(&wish, head.headers(), upstream).map(drop),
        None => Ok(()),
    }
}

/// Checks a request before the layers of its route are asked. Returns the protocol that the client asks for.
///
/// # Errors
///
/// As [`validate`].
pub(crate) fn check_body(
    parts: &Parts,
    head: &HttpHead<'_>,
    limit: Option<u64>,
) -> Result<Option<Wish>, ForwardError> {
    let headers = head.headers();
    let length = headers.get(CONTENT_LENGTH).and_then(parse_length);
    let is_empty =
        length.is_none_or(|length| length == 0) && !headers.contains_key(TRANSFER_ENCODING);
    // As in the server: there is no switch where a body is.
    let wish = Wish::of(parts).filter(|_| is_empty);
    validate(head, wish.as_ref(), limit, is_empty)?;
    Ok(wish)
}

/// Checks that a request of no resource in particular is OPTIONS (RFC 9112 section 3.2.4).
///
/// # Errors
///
/// It has another method.
pub(crate) fn check_target(head: &HttpHead<'_>) -> Result<(), ForwardError> {
    // RFC 9112 section 3.2.4.
    match head.path() == "*" && *head.method_value() != Method::OPTIONS {
        true => Err(ForwardError::new(
            ForwardErrorKind::RequestRejected,
            StatusCode::BAD_REQUEST,
        )),
        false => Ok(()),
    }
}

fn client_error(status: StatusCode) -> ForwardError {
    ForwardError::new(ForwardErrorKind::RequestBodyClient, status)
}
