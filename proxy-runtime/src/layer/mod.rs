//! Layers: tower middleware around a route.
//!
//! There are three ways to extend a route, and a layer is the most general one: it has request and
//! response in `http` types, with their bodies, and may wait, respond, map bodies, or retry.
//! [Filters](crate::filter) cost less and see heads only; transforms are settings. A route without
//! layers has no overhead.
//!
//! ```
//! use std::task::{Context, Poll};
//!
//! use proxy_runtime::Proxy;
//! use proxy_runtime::http::{Request, Response};
//! use proxy_runtime::layer::{ProxyRequestBody, RouteService};
//! use tower_layer::Layer;
//! use tower_service::Service;
//!
//! /// Adds a header with a traffic lane.
//! struct Lane(&'static str);
//!
//! #[derive(Clone)]
//! struct InLane(&'static str, RouteService);
//!
//! impl Layer<RouteService> for Lane {
//!     type Service = InLane;
//!
//!     fn layer(&self, rest: RouteService) -> InLane {
//!         InLane(self.0, rest)
//!     }
//! }
//!
//! impl Service<Request<ProxyRequestBody>> for InLane {
//!     type Response = <RouteService as Service<Request<ProxyRequestBody>>>::Response;
//!     type Error = <RouteService as Service<Request<ProxyRequestBody>>>::Error;
//!     type Future = <RouteService as Service<Request<ProxyRequestBody>>>::Future;
//!
//!     fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
//!         Service::<Request<ProxyRequestBody>>::poll_ready(&mut self.1, cx)
//!     }
//!
//!     fn call(&mut self, mut request: Request<ProxyRequestBody>) -> Self::Future {
//!         let lane = self.0.parse().expect("a lane is a word");
//!         request.headers_mut().insert("x-lane", lane);
//!         self.1.call(request)
//!     }
//! }
//!
//! // `"Layers": ["Lane"]` on a route uses it.
//! let builder = Proxy::builder().layer("Lane", Lane("fast"));
//! # drop(builder);
//! ```
//!
//! Any [`tower_layer::Layer`] works if its service takes requests with a [`ProxyRequestBody`] and
//! is `Clone`, `Send` and `Sync`: those of `tower`, of `tower-http`, and stacks made with
//! `ServiceBuilder`.
//!
//! # Order
//!
//! A request is routed and checked: the route may be used, and the framing and declared body size
//! are valid. Then the route's layers run with the received request, the first of the list
//! outermost. Inside all of them is the rest of the route: the choice of a cluster, filters,
//! transforms, and a destination. A layer may change the request; the changed request stays on the
//! same route. It may respond itself, and it may call the inner service several times; each call
//! chooses a cluster and a destination again.
//!
//! The extensions of a request have the connection ([`ConnectionInfo`](crate::ConnectionInfo)) and
//! the route ([`RouteContext`](crate::forward::RouteContext)). **A layer must keep them**: without
//! the `RouteContext` the inner service responds 500. The extensions of a response describe the
//! exchange ([`ExchangeInfo`](crate::response::ExchangeInfo)). Failures are responses too, such as
//! 502 with an `error`.
//!
//! # Bodies
//!
//! Nothing is buffered: a layer that passes a body on streams it. A layer that changes a body must
//! also correct `Content-Length`. A client's body beyond the limit of the route ends with an error
//! that becomes 413, so a layer can collect it. The body of a destination's response has no limit,
//! so a layer that collects it needs one.
//!
//! WebSockets work: layers see the request and the response that switch the protocol, but not the
//! tunnel. A layer must keep `Upgrade`, `Connection` and the extensions of such a request.
//!
//! # Errors, time and counts
//!
//! An error of a layer becomes 500 with the error
//! `Extension`. An error that is, or is caused by, a
//! [`ForwardError`](crate::ForwardError), such as those of both bodies, becomes the response of
//! that error. The route's `Timeout` includes the layers: then 504.
//!
//! The route counts one request, whatever the number of calls by a layer; clusters and destinations
//! count each attempt.
//!
//! # State
//!
//! The service of a layer is created when a configuration first gives a route these layers, and
//! cloned for each request. It keeps its state through later configurations as long as the route's
//! list is the same; another list creates all services of the route again. Readiness of each layer
//! is polled before each call, in a clone of its service. Layers that depend on the readiness of
//! another one, such as load shedding, belong in one stack under one name.

mod body;
mod service;
#[cfg(test)]
mod tests;

pub use self::body::ProxyRequestBody;
pub(crate) use self::service::{BoxLayer, RouteLayers, boxed};
pub use self::service::{RouteFuture, RouteService};
