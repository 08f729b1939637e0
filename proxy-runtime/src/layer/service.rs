//! The rest of a route as a service, and type-erased layers.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use proxy_model::same_id;
use tower_layer::Layer;
use tower_service::Service;

use super::body::{ProxyRequestBody, taken};
use crate::BoxError;
use crate::pooled_future::PooledFuture;
use crate::response::{Exchange, ProxyBody};

/// The rest of a route: the inner service of a layer. Cheap to clone, always ready, and takes
/// requests with any body.
///
/// The innermost service never fails. Services with layers inside fail as those do.
#[derive(Clone)]
pub struct RouteService(Arc<dyn ErasedService>);

/// A type-erased service.
trait ErasedService: Send + Sync {
    fn call(&self, request: Request<ProxyRequestBody>) -> RouteFuture;
}

impl RouteService {
    /// Creates a service from a function.
    pub(crate) fn from_fn(
        answer: impl Fn(Request<ProxyRequestBody>) -> RouteFuture + Send + Sync + 'static,
    ) -> Self {
        struct Function<A>(A);
        impl<A> ErasedService for Function<A>
        where
            A: Fn(Request<ProxyRequestBody>) -> RouteFuture + Send + Sync,
        {
            fn call(&self, request: Request<ProxyRequestBody>) -> RouteFuture {
                (self.0)(request)
            }
        }
        Self(Arc::new(Function(answer)))
    }
}

impl<B> Service<Request<B>> for RouteService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ProxyBody>;
    type Error = BoxError;
    type Future = RouteFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> RouteFuture {
        self.0.call(request.map(ProxyRequestBody::new))
    }
}

impl RouteService {
    /// Does the same as [`call`](Service::call), with `&self`.
    pub(crate) fn answer(&self, request: Request<ProxyRequestBody>) -> RouteFuture {
        self.0.call(request)
    }
}

impl fmt::Debug for RouteService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteService").finish_non_exhaustive()
    }
}

/// The pending response. Dropping it cancels the request at the destination.
#[must_use = "futures do nothing unless polled"]
pub struct RouteFuture(LayerReply);

enum LayerReply {
    /// The rest of a route, which never fails.
    Exchange(Exchange),
    /// Any other future.
    Lent(PooledFuture<Result<Response<ProxyBody>, BoxError>>),
}

impl RouteFuture {
    /// The response of an exchange.
    pub(crate) fn exchange(exchange: Exchange) -> Self {
        Self(LayerReply::Exchange(exchange))
    }

    /// The response of a service that never fails.
    pub(crate) fn unfailing<F>(answer: impl FnOnce() -> F) -> Self
    where
        F: Future<Output = Response<ProxyBody>> + Send + 'static,
    {
        // An async block would hold the future twice, and its size dominates the cost of a move.
        Self(LayerReply::Lent(PooledFuture::new(|| Unfailing {
            answer: answer(),
        })))
    }
}

impl Future for RouteFuture {
    type Output = Result<Response<ProxyBody>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            LayerReply::Exchange(exchange) => Pin::new(exchange).poll(cx).map(Ok),
            LayerReply::Lent(answer) => Pin::new(answer).poll(cx),
        }
    }
}

impl fmt::Debug for RouteFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteFuture").finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of a service that never fails.
    struct Unfailing<F> {
        #[pin]
        answer: F,
    }
}

impl<F> Future for Unfailing<F>
where
    F: Future<Output = Response<ProxyBody>>,
{
    type Output = Result<Response<ProxyBody>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().answer.poll(cx).map(Ok)
    }
}

/// A type-erased layer.
pub(crate) type BoxLayer = dyn Fn(RouteService) -> RouteService + Send + Sync;

/// Erases the type of a layer.
pub(crate) fn boxed<L, B>(layer: L) -> Arc<BoxLayer>
where
    L: Layer<RouteService> + Send + Sync + 'static,
    L::Service:
        Service<Request<ProxyRequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    <L::Service as Service<Request<ProxyRequestBody>>>::Error: Into<BoxError>,
    <L::Service as Service<Request<ProxyRequestBody>>>::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Arc::new(move |rest| RouteService(Arc::new(LayeredService(layer.layer(rest)))))
}

/// The service of a layer.
struct LayeredService<S>(S);

impl<S, B> ErasedService for LayeredService<S>
where
    S: Service<Request<ProxyRequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn call(&self, request: Request<ProxyRequestBody>) -> RouteFuture {
        // `poll_ready` and `call` must use the same clone.
        let mut service = self.0.clone();
        RouteFuture(LayerReply::Lent(PooledFuture::new(move || async move {
            poll_fn(|cx| service.poll_ready(cx))
                .await
                .map_err(Into::into)?;
            let response = service.call(request).await.map_err(Into::into)?;
            // Boxing a body of this type again would add an allocation.
            Ok(response.map(|body| taken(body).unwrap_or_else(ProxyBody::mapped)))
        })))
    }
}

/// The layers of a route, and the service that they make.
#[derive(Clone)]
pub(crate) struct RouteLayers {
    names: Box<[Arc<str>]>,
    /// The named layers.
    named: RouteService,
    /// The named layers inside of the route's policies.
    service: RouteService,
}

impl RouteLayers {
    pub(crate) fn new(names: &[Arc<str>], named: RouteService) -> Self {
        Self {
            names: names.into(),
            service: named.clone(),
            named,
        }
    }

    /// Wraps the layers in these policies.
    pub(crate) fn inside(mut self, policies: Option<&BoxLayer>) -> Self {
        self.service = match policies {
            Some(policies) => policies(self.named.clone()),
            None => self.named.clone(),
        };
        self
    }

    /// Returns true if the layers have these names, in this order.
    pub(crate) fn are(&self, names: &[Arc<str>]) -> bool {
        self.names.len() == names.len() && self.names.iter().zip(names).all(|(a, b)| same_id(a, b))
    }

    pub(crate) fn service(&self) -> &RouteService {
        &self.service
    }
}

impl fmt::Debug for RouteLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.names).finish()
    }
}
