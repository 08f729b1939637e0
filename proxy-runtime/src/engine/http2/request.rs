//! A stream that is forwarded: whether it can be, what belongs to it, and its head as a destination gets it.

use std::ops::Deref;

use http::header::{CONTENT_LENGTH, EXPECT};
use http::request::Parts;
use http::{Method, Version};
use proxy_model::RequestHead;
use proxy_model::compiled::Destination;
use proxy_model::transform::XForwardedPart;
use tokio::time::Instant;

use super::upload::Allowed;
use crate::contain::contained_call;
use crate::engine::Engine;
use crate::engine::connect::{Link, Unconnected};
use crate::engine::outgoing::{Invalid, elsewhere};
use crate::engine::place::Place;
use crate::engine::plan::{HostRule, known};
use crate::engine::tally::Tally;
use crate::forward::{Framing as TypedFraming, HttpHead, framing, headers, panicked};
use crate::http1::{
    Asked, Copied, FieldValue, Framing, Method as RawMethod, OutgoingTarget, StreamRequest,
    write_stream_request,
};
use crate::server::http2::Client;
use crate::state::{Generation, Picked};
use crate::stream::spare as buffers;

/// Begins with a request, if it can be forwarded as HTTP/1.1: finds its route, and an idle connection to a destination, which
/// nearly always there is.
pub(super) fn start<'a>(
    head: &'a Parts,
    client: &Client,
    engine: &'a Engine,
    generation: &'a Generation,
) -> Option<(Run<'a>, Tally<'a>, Result<Link, Unconnected>)> {
    if head.method == Method::CONNECT || head.headers.contains_key(EXPECT) {
        return None;
    }
    let view = HttpHead::with_connection(head, client.exchange.connection.info);
    let place = Place::find(engine, generation, &view)?;
    // Filters are shown heads in `http` types.
    if place.filters().is_some() {
        return None;
    }
    let framing = match framing(&head.headers, client.body.is_none()).ok()? {
        TypedFraming::Empty if head.headers.contains_key(CONTENT_LENGTH) => Framing::Length(0),
        TypedFraming::Empty => Framing::None,
        TypedFraming::Length(length) if length > allowed(place, client).content => return None,
        TypedFraming::Length(length) => Framing::Length(length),
        TypedFraming::Stream => Framing::Chunked,
    };
    // Whatever is no target of HTTP/1.1 is the other way's to judge.
    target(&view)?;
    let run = Run {
        place,
        head: view,
        framing,
    };
    let now = Instant::now();
    let tally = Tally::new(
        engine.service().shared(),
        place.route_state,
        place.state,
        (&head.method, Version::HTTP_2),
        now,
    );
    // A program's own policy may panic, which ends one request and no more.
    let connecting = match contained_call(|| run.connect_now(client, now)) {
        Ok(connecting) => connecting,
        Err(panic) => Err(Unconnected::Failed(panicked(&panic))),
    };
    Some((run, tally, connecting))
}

/// What the request may have beside its head.
pub(super) fn allowed(place: Place<'_>, client: &Client) -> Allowed {
    let limits = &client.exchange.connection.worker.limits;
    Allowed {
        content: place.allowed(limits.body_bytes),
        trailers: limits.header_fields,
    }
}

fn target<'a>(head: &'a HttpHead<'_>) -> Option<OutgoingTarget<'a>> {
    OutgoingTarget::new(head.path().as_bytes(), head.query().map(str::as_bytes))
}

/// A request that is forwarded.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) place: Place<'a>,
    pub(super) head: HttpHead<'a>,
    pub(super) framing: Framing,
}

impl<'a> Deref for Run<'a> {
    type Target = Place<'a>;

    #[inline]
    fn deref(&self) -> &Place<'a> {
        &self.place
    }
}

impl Run<'_> {
    pub(super) fn is_head(&self) -> bool {
        *self.head.method_value() == Method::HEAD
    }

    pub(super) fn asked(&self) -> Asked {
        Asked {
            method: match self.is_head() {
                true => RawMethod::Head,
                false => RawMethod::Get,
            },
            upgrade: false,
        }
    }

    /// Makes the head for the destination.
    pub(super) fn write_head(&self, client: &Client, picked: &Picked) -> Result<Vec<u8>, Invalid> {
        let mut out = buffers::take(buffers::SMALL);
        let destination = &self.cluster.destinations()[picked.index.0 as usize];
        let plan = self.plan;
        if !plan.rewrites_target && destination.address().path() == "/" {
            let target = target(&self.head).ok_or(Invalid)?;
            self.write_to(target, client, destination, &mut out)?;
            return Ok(out);
        }
        let route = self.route;
        let text = elsewhere(
            plan,
            route,
            destination,
            &self.head,
            (self.head.path(), self.head.query()),
        );
        let (path, query) = match text.split_once('?') {
            Some((path, query)) => (path, Some(query.as_bytes())),
            None => (&*text, None),
        };
        let target = OutgoingTarget::new(path.as_bytes(), query).ok_or(Invalid)?;
        self.write_to(target, client, destination, &mut out)?;
        Ok(out)
    }

    fn write_to(
        &self,
        target: OutgoingTarget<'_>,
        client: &Client,
        destination: &Destination,
        out: &mut Vec<u8>,
    ) -> Result<(), Invalid> {
        const HTTP: FieldValue<'static> = FieldValue::from_static("http");
        const HTTPS: FieldValue<'static> = FieldValue::from_static("https");
        let plan = self.plan;
        let authority = match self.head.authority_str() {
            "" => None,
            authority => Some(FieldValue::new(authority.as_bytes()).ok_or(Invalid)?),
        };
        let own = || {
            let own = destination.host();
            known(own.unwrap_or_else(|| destination.address().authority()))
        };
        let part = |part| match part {
            XForwardedPart::For => client.exchange.connection.remote_value(),
            XForwardedPart::Proto => Some(if self.head.is_https() { HTTPS } else { HTTP }),
            XForwardedPart::Host => authority,
            // The proxy serves whole paths: nothing was taken off before it saw the request.
            XForwardedPart::Prefix => None,
        };
        let copied = plan.request_copy.copied();
        let fields = self.head.headers();
        plan.for_request(part, |operations| {
            let request = StreamRequest {
                method: self.head.method(),
                target,
                host: match &plan.host {
                    HostRule::Original => authority.unwrap_or_else(own),
                    HostRule::Fixed(value) => known(value),
                    HostRule::Destination | HostRule::Restored => own(),
                },
                fields,
                framing: self.framing,
                copied,
                operations,
                accepts_trailers: matches!(copied, Copied::All)
                    && headers::accepts_trailers(fields),
            };
            write_stream_request(&request, out);
        });
        Ok(())
    }
}
