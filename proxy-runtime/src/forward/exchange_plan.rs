//! The choice of the exchange for a request of the tower service, and its beginning.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::Bytes;
use http::request::Parts;
use http_body::Body;
use proxy_model::compiled::{ClusterIndex, RouteIndex};
use tokio::time::Instant;

use super::body_frames::BodyFrames;
use super::downstream::{ServiceDownstream, ServiceRecord};
use super::exchange;
use super::exchange::resolved_route::{Chosen, ResolvedRoute};
use super::request::body_kind_of;
use super::typed;
use crate::head::HttpHead;
use crate::http1::{ClassSet, Framing, Method};
use crate::layer::ProxyRequestBody;
use crate::progress::Timer;
use crate::progress::alarm::Ticket;
use crate::proxy::ProxyService;
use crate::response::{Exchange, LayerAttempts, ResponseSlot};
use crate::state::Generation;

/// The origin of a request: the service that was called, or the layers of a route.
pub(super) struct RequestOrigin {
    pub(super) service: ProxyService,
    pub(super) generation: Arc<Generation>,
    /// The attempts of layers, of which the request is one.
    pub(super) attempts: Option<Arc<LayerAttempts>>,
    /// The time from which the route's `Timeout` counts, if it is not the beginning of the exchange.
    pub(super) arrived: Option<Instant>,
}

/// A request that the exchange can forward.
pub(super) struct ExchangePlan {
    chosen: Chosen,
    /// The client's method.
    method: Method,
    framing: Framing,
    classes: ClassSet,
}

impl ExchangePlan {
    /// Returns `None` if the typed path has to forward the request, or rejects it.
    pub(super) fn of<B: Body<Data = Bytes>>(
        service: &ProxyService,
        generation: &Generation,
        route: (RouteIndex, Option<ClusterIndex>),
        head: &HttpHead<'_>,
        body: &B,
    ) -> Option<Self> {
        #[cfg(test)]
        if exchange::lane::is_declined() {
            return None;
        }
        typed::written_target(head)?;
        let kind = body_kind_of(head, body.is_end_stream()).ok()?;
        let framing = typed::framing(head, kind);
        let (method, classes) = (Method::of(head.method_value()), head.classes());
        let asked = (method, classes, framing);
        let (_, chosen) = ResolvedRoute::of_route(service, generation, route, head, asked)?;
        Some(Self {
            chosen,
            method,
            framing,
            classes,
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
                    match slot.take_due() {
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
        let plan = ExchangePlan::of(&service, &generation, route, &head, &body).unwrap();
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
