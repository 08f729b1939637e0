//! A request that is forwarded as bytes: whether it can be, and what belongs to it.

use std::ops::Deref;

use http::{Method as HttpMethod, Version as HttpVersion};
use proxy_model::RequestHead;
use tokio::time::Instant;

use super::Engine;
use super::connect::{Link, Unconnected};
use super::filtering::Filtering;
use super::place::Place;
use super::tally::Tally;
use crate::http1::{Asked, Framing, Method, RawRequest, RequestView, Version};
use crate::server::http1::{Client, Transport};
use crate::state::Generation;

/// Begins with a request, if it can be forwarded as bytes: finds its route, and an idle connection to a destination, which
/// nearly always there is. All that looks at the head is done here, without waiting for anything.
#[inline]
pub(super) fn start<'a, T: Transport>(
    client: &Client<T>,
    request: &'a RawRequest,
    engine: &'a Engine,
    generation: &'a Generation,
) -> Option<Started<'a>> {
    let is_plain = request.version() == Version::Http11
        && !request.expects_continue()
        && !matches!(request.method(), Method::Connect | Method::Trace)
        && request.upgrade().is_none()
        && !client.table.has_crumbs(client.input.filled());
    if !is_plain {
        return None;
    }
    let view = view_of(client, request);
    let place = Place::find(engine, generation, &view)?;
    if let Framing::Length(length) = request.framing()
        && length > place.allowed(client.state.worker.limits.body_bytes)
    {
        return None;
    }
    let run = Run { place, request };
    let now = Instant::now();
    let tally = run.tally(&view, now);
    let (filtering, said) = match run.filters() {
        None => (Filtering::default(), Ok(())),
        Some(filters) => Filtering::ask(filters, &run, client, view),
    };
    let connecting = said.and_then(|()| run.connect_now(client, &view, filtering.edits(), now));
    Some(Started {
        run,
        tally,
        filtering,
        connecting,
    })
}

/// A request that has begun to be forwarded.
pub(super) struct Started<'a> {
    pub(super) run: Run<'a>,
    pub(super) tally: Tally<'a>,
    pub(super) filtering: Filtering,
    pub(super) connecting: Result<Link, Unconnected>,
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
    pub(super) place: Place<'a>,
    pub(super) request: &'a RawRequest,
}

impl<'a> Run<'a> {
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
    type Target = Place<'a>;

    #[inline]
    fn deref(&self) -> &Place<'a> {
        &self.place
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
