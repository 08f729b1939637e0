//! The choice of the exchange for a request of the tower service, and its beginning.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use http::request::Parts;
use proxy_model::RequestHead;
use proxy_model::compiled::{ClusterIndex, RouteIndex};
use tokio::time::Instant;

use super::body_frames::BodyFrames;
use super::downstream::{ServiceDownstream, ServiceRecord};
use super::exchange;
use super::exchange::resolved_route::Chosen;
use super::handshake::Handshake;
use super::switch::SwitchRequest;
use super::upgrade::Upgrade;
use super::{plan, typed};
use crate::error::ForwardError;
use crate::exchange::body_limit;
use crate::head::HttpHead;
use crate::http1::{ClassSet, Framing, Method};
use crate::layer::ProxyRequestBody;
use crate::progress::Timer;
use crate::progress::alarm::Ticket;
use crate::proxy::ProxyService;
use crate::response::{Exchange, LayerAttempts, ResponseSlot};
use crate::state::Generation;
use crate::transform::sent_method;

/// The origin of a request: the service that was called, or the layers of a route.
pub(super) struct RequestOrigin {
    pub(super) service: ProxyService,
    pub(super) generation: Arc<Generation>,
    /// The attempts of layers, of which the request is one.
    pub(super) attempts: Option<Arc<LayerAttempts>>,
    /// The time from which the route's `Timeout` counts, if it is not the beginning of the exchange.
    pub(super) arrived: Option<Instant>,
}

/// The reason why the exchange does not forward a request.
pub(super) struct Rejected {
    /// The cluster that the request would have gone to, if one was found.
    pub(super) cluster: Option<ClusterIndex>,
    /// `None`: the route replies itself.
    pub(super) error: Option<ForwardError>,
}

impl Rejected {
    #[cold]
    fn new(error: ForwardError, cluster: Option<ClusterIndex>) -> Self {
        Self {
            cluster,
            error: Some(error),
        }
    }
}

/// A request that the exchange forwards.
pub(super) struct ExchangePlan {
    chosen: Chosen,
    switch: Option<Box<SwitchRequest>>,
    /// The client's method.
    method: Method,
    framing: Framing,
    classes: ClassSet,
}

impl ExchangePlan {
    /// The plan for a request of this route, or of the cluster that a layer has assigned. `is_empty`: the request is
    /// known to have no body.
    ///
    /// # Errors
    ///
    /// The request is rejected, or the route replies itself.
    pub(super) fn of(
        service: &ProxyService,
        generation: &Generation,
        (index, assigned): (RouteIndex, Option<ClusterIndex>),
        head: &HttpHead<'_>,
        (is_empty, upgrade): (bool, Option<Box<Upgrade>>),
    ) -> Result<Self, Rejected> {
        let snapshot = generation.snapshot();
        let (route, state) = (snapshot.route_at(index), generation.route(index));
        let shared = service.shared();
        let limit = body_limit(shared.max_request_body(), route);
        // A local reply does not read the body, so its declared length is the only thing to check.
        if route.target().is_reply() {
            let error = plan::check_length(head, limit).err();
            return Err(Rejected {
                cluster: None,
                error,
            });
        }
        let place = (&**snapshot, assigned);
        let cluster = plan::find_cluster(route, state, place, head, shared.random())
            .map_err(|error| Rejected::new(error, None))?;
        let wish = upgrade.as_deref().map(Upgrade::wish);
        let kind = plan::validate(head, wish, limit, is_empty);
        let kind = kind.map_err(|error| Rejected::new(error, Some(cluster)))?;
        plan::check_target(head).map_err(|error| Rejected::new(error, Some(cluster)))?;
        let mut switch = None;
        if let Some(upgrade) = upgrade {
            let upstream = snapshot.cluster_at(cluster).upstream();
            let handshake = Handshake::new(upgrade.wish(), head.headers(), upstream);
            switch = Some(Box::new(SwitchRequest {
                handshake: handshake.map_err(|error| Rejected::new(error, Some(cluster)))?,
                client: Some(upgrade.into_client()),
                is_agreed: false,
            }));
        }
        let method = Method::of(head.method_value());
        // The response is read by the method that the destination gets.
        let sent = match state.inner_plan().changes_method {
            false => method,
            true => sent_method(route, head.method()).map_or(method, Method::of),
        };
        Ok(Self {
            chosen: Chosen {
                route: index,
                cluster,
                method: sent,
            },
            switch,
            method,
            framing: typed::framing(head, kind),
            classes: head.classes(),
        })
    }

    /// Returns the exchange, which begins when it is polled.
    pub(super) fn begin(
        self,
        origin: RequestOrigin,
        parts: Parts,
        body: ProxyRequestBody,
    ) -> Exchange {
        Exchange::new(move |slot| self.run(origin, parts, body, slot))
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn holds its arguments twice"
    )]
    fn run(
        self,
        origin: RequestOrigin,
        parts: Parts,
        body: ProxyRequestBody,
        slot: Arc<ResponseSlot>,
    ) -> impl Future<Output = ()> + Send + use<> {
        async move {
            let Self {
                chosen,
                switch,
                method,
                framing,
                classes,
            } = self;
            let RequestOrigin {
                service,
                generation,
                attempts,
                arrived,
            } = origin;
            let down = ServiceDownstream {
                parts,
                classes,
                method,
                framing,
                body: BodyFrames::of(body),
                chosen,
                switch,
                arrived,
                record: ServiceRecord {
                    slot: Arc::clone(&slot),
                    attempts,
                },
                ticket: Ticket::default(),
            };
            let mut exchange = pin!(exchange::forward(down, &service, &*generation));
            let mut timer = pin!(Timer::default());
            poll_fn(move |cx| {
                loop {
                    if exchange.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(());
                    }
                    // One timer for the whole exchange: it is set only when the exchange waits.
                    match slot.take_due() {
                        // The exchange is polled once more, and then sees that its time is over.
                        Some(due) => ready!(timer.as_mut().poll_due(cx, due)),
                        None => return Poll::Pending,
                    }
                }
            })
            .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::Proxy;
    use crate::fixtures::snapshot;

    #[test]
    fn what_a_request_waits_in_is_small() {
        let snapshot = snapshot(
            r#"{"Routes":{"r":{"ClusterId":"c","Match":{"Path":"/{**rest}"}}},
                "Clusters":{"c":{"Destinations":{"d":{"Address":"http://127.0.0.1:1/"}}}}}"#,
        );
        let (proxy, _) = Proxy::builder().snapshot(snapshot).build().unwrap();
        let service = proxy.service();
        let generation = service.shared().load_full();
        let (parts, body) = Request::new(ProxyRequestBody::empty()).into_parts();
        let head = HttpHead::new(&parts);
        let route = (RouteIndex(0), None);
        let plan = ExchangePlan::of(&service, &generation, route, &head, (true, None))
            .ok()
            .unwrap();
        let origin = RequestOrigin {
            service,
            generation,
            attempts: None,
            arrived: None,
        };
        let size = size_of_val(&plan.run(origin, parts, body, Arc::default()));
        assert!(size <= 2048, "{size}");
    }
}
