//! A stream on the raw lane: whether it can take that, what belongs to it, and its head as a destination gets it.

use std::ops::Deref;

use http::request::Parts;
use http::{Method, Version};
use tokio::time::Instant;

use super::upload::Allowed;
use crate::cluster::Picked;
use crate::forward::typed;
use crate::forward::typed::TypedRequest;
use crate::forward::{BodyKind, body_kind_of};
use crate::head::HttpHead;
use crate::http1::{Asked, ClassSet, FieldClass, Framing, Method as RawMethod};
use crate::server::engine::Engine;
use crate::server::engine::connect::{Link, Unconnected};
use crate::server::engine::resolved_route::ResolvedRoute;
use crate::server::engine::tally::Tally;
use crate::server::http2::Client;
use crate::state::Generation;
use crate::stream::spare as buffers;
use crate::transform::Invalid;

/// Begins with a request that was admitted, and so has a target of HTTP/1.1, if it can be forwarded as that: finds its route,
/// and an idle connection to a destination, which nearly always there is.
pub(super) fn start<'a>(
    head: &'a Parts,
    classes: ClassSet,
    client: &Client,
    engine: &'a Engine,
    generation: &'a Generation,
) -> Option<(Run<'a>, Tally<'a>, Result<Link, Unconnected>)> {
    if head.method == Method::CONNECT || classes.contains(FieldClass::Expect) {
        return None;
    }
    let view = HttpHead::with_classes(head, client.record.connection.info, classes);
    let resolved = ResolvedRoute::find(engine, generation, &view)?;
    // Filters are shown heads in `http` types, and loops are ended on the typed lane.
    if resolved.filters().is_some() || resolved.route_state.is_loop(&view, classes) {
        return None;
    }
    let framing = match body_kind_of(&view, client.body.is_none()).ok()? {
        BodyKind::Length(length) if length > allowed(resolved, client).content => return None,
        said => typed::framing(&view, said),
    };
    let run = Run {
        resolved,
        head: view,
        framing,
    };
    let now = Instant::now();
    let mut tally = Tally::new(
        engine.service().shared(),
        resolved.route_state,
        resolved.state,
        (&head.method, Version::HTTP_2),
        now,
    );
    let connecting = run.connect_now(client, &mut tally);
    Some((run, tally, connecting))
}

/// What the request may have beside its head.
pub(super) fn allowed(resolved: ResolvedRoute<'_>, client: &Client) -> Allowed {
    let limits = &client.record.connection.worker.limits;
    Allowed {
        content: resolved.allowed(limits.body_bytes),
        trailers: limits.header_fields,
    }
}

/// A request that is forwarded.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) resolved: ResolvedRoute<'a>,
    pub(super) head: HttpHead<'a>,
    pub(super) framing: Framing,
}

impl<'a> Deref for Run<'a> {
    type Target = ResolvedRoute<'a>;

    #[inline]
    fn deref(&self) -> &ResolvedRoute<'a> {
        &self.resolved
    }
}

impl Run<'_> {
    pub(super) fn is_head(&self) -> bool {
        *self.head.method_value() == Method::HEAD
    }

    pub(super) fn asked(&self) -> Asked {
        Asked {
            method: RawMethod::of(self.head.method_value()),
            upgrade: false,
        }
    }

    /// Makes the head for the destination.
    pub(super) fn write_head(&self, client: &Client, picked: &Picked) -> Result<Vec<u8>, Invalid> {
        let mut out = buffers::take(buffers::HEAD);
        let request = TypedRequest {
            head: &self.head,
            route: self.route,
            plan: self.plan,
            framing: self.framing,
            remote: client.record.connection.remote_value(),
        };
        let destination = &self.cluster.destinations()[picked.index.0 as usize];
        request.write(destination, &mut out)?;
        Ok(out)
    }
}
