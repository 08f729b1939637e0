//! Layers: tower middleware around a route.
//!
//! A layer is the third of three ways to extend a route, and the widest: it has request and response in `http` types, with
//! their bodies, and may wait, answer, map bodies, or ask again. [Filters](crate::filter) cost less and see heads only;
//! transforms are settings. A route that names no layer pays for none.
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
//! /// Tells destinations in which lane a request came.
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
//! Any [`tower_layer::Layer`] will do whose service takes requests with a [`ProxyRequestBody`] and is `Clone`, `Send` and
//! `Sync`: those of `tower`, of `tower-http`, and stacks of them made with `ServiceBuilder`.
//!
//! # When
//!
//! A request is routed, and checked: the route may be used, the framing makes sense, the body is not too large by its own
//! account. Then the route's layers are called, the first of the list outermost, with the client's request as it came.
//! Inside all of them is the rest of the route: the choice of a cluster, filters, transforms, a destination. A layer may
//! change the request, and it is sent on as changed, by the same route: it is not routed anew. It may answer without asking
//! further, and it may ask several times; each time a cluster and a destination are chosen anew.
//!
//! The request's extensions tell of the connection ([`ConnectionInfo`](crate::ConnectionInfo)) and of the route
//! ([`RouteContext`](crate::forward::RouteContext)). **They have to stay with the request**: without the `RouteContext` the rest of the route does not
//! know what it is part of, and answers 500. The response's extensions tell what became of it
//! ([`ExchangeInfo`](crate::response::ExchangeInfo)); failures are responses there as everywhere, 502 with an `error`.
//!
//! # Bodies
//!
//! Nothing is read ahead: a layer that passes bodies on passes them on as they come. One that changes a body has to
//! see to `Content-Length`. The client's body is cut off with an error that becomes 413 when it grows larger than the route
//! allows, so that a layer can collect it; what a destination answers is not bounded, so a layer that collects that has to
//! set a limit itself.
//!
//! WebSockets pass through: the request and the response that switch the protocol are seen by layers, the tunnel is not.
//! A layer has to leave `Upgrade`, `Connection` and the extensions of such a request as they are.
//!
//! # Errors, time and counts
//!
//! An error of a layer is answered with 500 and the error [`Extension`](crate::ForwardErrorKind::Extension), unless it is, or
//! is caused by, a [`ForwardError`](crate::ForwardError), which says what it is and how it is answered; errors of both
//! bodies are such. The route's `Timeout` bounds the layers together with what they wait for: then 504.
//!
//! The route counts one request, however often a layer asks; clusters and destinations count each attempt.
//!
//! # State
//!
//! A layer's service is made when a configuration first gives a route these layers, not per request, and cloned for each
//! request. It stays, with what it remembers, through later configurations in which the route's list is the same; with
//! another list all of the route's services are made anew. Each layer is asked for readiness before each call, in a
//! clone of its service: what is to act on another one's readiness, as load shedding does, belongs with it in one stack
//! under one name.

mod body;
mod service;
#[cfg(test)]
mod tests;

pub use self::body::ProxyRequestBody;
pub(crate) use self::service::{BoxLayer, RouteLayers, boxed};
pub use self::service::{RouteFuture, RouteService};
