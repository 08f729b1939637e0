//! The handlers of requests: a proxy, or any other tower service.

#[cfg(feature = "http2")]
use std::any::Any;
#[cfg(feature = "http2")]
use std::cell::OnceCell;
use std::convert::Infallible;
use std::pin::Pin;
#[cfg(feature = "http2")]
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use proxy_model::compiled::RouteIndex;
use tower_service::Service;

use super::connection::RequestBody;
use super::engine::Engine;
use crate::BoxError;
use crate::forward::ResponseFuture;
use crate::proxy::ProxyService;
use crate::response::ProxyBody;

/// A handler of the requests of a worker's clients.
pub(crate) trait Handler: 'static {
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + 'static;
    type Error: Into<BoxError>;
    type Call: Future<Output = Result<Response<Self::Body>, Self::Error>> + 'static;

    /// The byte path, which requests are offered first, if there is one.
    fn engine(&self) -> Option<&Engine>;

    /// Answers a request, whose route the byte path may have `found` a moment ago, without waiting since.
    fn call(&self, request: Request<RequestBody>, found: Option<RouteIndex>) -> Self::Call;
}

/// The handler of a worker, and its memory.
#[derive(Debug)]
pub(crate) struct Served<H> {
    pub(crate) handler: H,
    /// The memory that streams are served in.
    #[cfg(feature = "http2")]
    pub(crate) blocks: OnceCell<Rc<dyn Any>>,
}

impl<H: Handler> Served<H> {
    pub(crate) fn new(handler: H) -> Self {
        Self {
            handler,
            #[cfg(feature = "http2")]
            blocks: OnceCell::new(),
        }
    }
}

/// A proxy with both of its paths.
#[derive(Debug)]
pub(crate) struct ProxyHandler {
    engine: Engine,
}

impl ProxyHandler {
    pub(crate) fn new(service: ProxyService) -> Self {
        Self {
            engine: Engine::new(service),
        }
    }
}

impl Handler for ProxyHandler {
    type Body = ProxyBody;
    type Error = Infallible;
    type Call = ResponseFuture;

    #[inline]
    fn engine(&self) -> Option<&Engine> {
        Some(&self.engine)
    }

    fn call(&self, request: Request<RequestBody>, found: Option<RouteIndex>) -> ResponseFuture {
        let found = found.map(|index| self.engine.found(index));
        self.engine.service().forward(request, found)
    }
}

/// A tower service that is no proxy as far as the server knows.
#[derive(Debug)]
pub(crate) struct ServiceHandler<S>(pub(crate) S);

impl<S, B> Handler for ServiceHandler<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    type Body = B;
    type Error = S::Error;
    type Call = OneCall<S, S::Future>;

    fn engine(&self) -> Option<&Engine> {
        None
    }

    fn call(&self, request: Request<RequestBody>, _: Option<RouteIndex>) -> Self::Call {
        // Each call has a service of its own, which may have to wait until it is ready.
        OneCall::Waiting {
            service: self.0.clone(),
            request: Some(request),
        }
    }
}

pin_project! {
    /// A call of a service as soon as that is ready.
    #[project = OneCallProjection]
    pub(crate) enum OneCall<S, F> {
        Waiting { service: S, request: Option<Request<RequestBody>> },
        Called { #[pin] future: F },
    }
}

impl<S: Service<Request<RequestBody>>> Future for OneCall<S, S::Future> {
    type Output = Result<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let future = match self.as_mut().project() {
                OneCallProjection::Called { future } => return future.poll(cx),
                OneCallProjection::Waiting { service, request } => {
                    ready!(service.poll_ready(cx))?;
                    service.call(request.take().expect("a request is sent once"))
                }
            };
            self.set(Self::Called { future });
        }
    }
}
