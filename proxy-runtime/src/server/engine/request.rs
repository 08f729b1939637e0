//! A request on the raw lane of HTTP/1.1: whether it can take that, and what belongs to it.

use std::ops::Deref;

use http::{Method as HttpMethod, Version as HttpVersion};
use proxy_model::RequestHead;
use proxy_model::compiled::RouteIndex;
use proxy_model::matching::Lookup;
use tokio::time::Instant;

use super::Engine;
use super::resolved_route::ResolvedRoute;
use super::tally::Tally;
use crate::http1::{Asked, Framing, Method, RawRequest, RequestView, Version};
use crate::server::http1::{Client, Transport};
use crate::state::Generation;

/// What belongs to a request, if it can be forwarded as bytes; else its route, if that was looked for and found.
#[inline]
pub(super) fn run<'a, T: Transport>(
    client: &Client<T>,
    request: &'a RawRequest,
    engine: &'a Engine,
    generation: &'a Generation,
) -> Result<Run<'a>, Option<RouteIndex>> {
    let is_plain = request.version() == Version::Http11
        && !request.expects_continue()
        && !matches!(request.method(), Method::Connect | Method::Trace)
        && request.upgrade().is_none();
    if !is_plain {
        return Err(None);
    }
    let view = view_of(client, request);
    let Lookup::Matched(index) = generation.find_route(&view) else {
        return Err(None);
    };
    let resolved = ResolvedRoute::of_route(engine, generation, index, &view).ok_or(Some(index))?;
    let classes = client.table.classes();
    if resolved.route_state.is_loop(&view, classes) {
        return Err(Some(index));
    }
    if let Framing::Length(length) = request.framing()
        && length > resolved.allowed(client.state.worker.limits.body_bytes)
    {
        return Err(Some(index));
    }
    Ok(Run { resolved, request })
}

#[inline]
pub(super) fn view_of<'a, T: Transport>(
    client: &'a Client<T>,
    request: &'a RawRequest,
) -> RequestView<'a> {
    RequestView::new(
        client.input.filled(),
        request,
        &client.table,
        client.state.info.tls,
    )
}

/// A request that is forwarded, and what the configuration says of it.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) resolved: ResolvedRoute<'a>,
    pub(super) request: &'a RawRequest,
}

impl<'a> Run<'a> {
    /// Begins to count.
    #[inline]
    pub(super) fn tally(&self, view: &RequestView<'_>, started: Instant) -> Tally<'a> {
        Tally::new(
            self.engine.service().shared(),
            self.route_state,
            self.state,
            (&method(self.request.method(), view), HttpVersion::HTTP_11),
            started,
        )
    }

    #[inline]
    pub(super) fn asked(&self) -> Asked {
        Asked {
            method: self.request.method(),
            upgrade: false,
        }
    }
}

impl<'a> Deref for Run<'a> {
    type Target = ResolvedRoute<'a>;

    #[inline]
    fn deref(&self) -> &ResolvedRoute<'a> {
        &self.resolved
    }
}

/// The method, for the counters: those that they do not know are all the same to them.
#[inline]
fn method(method: Method, view: &RequestView<'_>) -> HttpMethod {
    match method {
        Method::Get => HttpMethod::GET,
        Method::Head => HttpMethod::HEAD,
        Method::Post => HttpMethod::POST,
        Method::Put => HttpMethod::PUT,
        Method::Patch => HttpMethod::PATCH,
        Method::Delete => HttpMethod::DELETE,
        Method::Options => HttpMethod::OPTIONS,
        _ => HttpMethod::from_bytes(view.method().as_bytes()).unwrap_or_default(),
    }
}
