//! The pipeline, as a tower service.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::layered::Layered;
use super::pipeline::forward;
use crate::BoxError;
use crate::pooled_future::PooledFuture;
#[cfg(feature = "server")]
use crate::proxy::FoundRoute;
use crate::proxy::ProxyService;
use crate::response::{CauseHeader, Exchange, ExchangeInfo, ProxyBody};

impl<B> Service<Request<B>> for ProxyService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ProxyBody>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        forward(self, request, None)
    }
}

#[cfg(feature = "server")]
impl ProxyService {
    /// Forwards a request whose route the server may have found.
    pub(crate) fn forward<B>(
        &self,
        request: Request<B>,
        found: Option<FoundRoute>,
    ) -> ResponseFuture
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        forward(self, request, found)
    }
}

/// The future of a response. Dropping it cancels the request at the destination.
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture {
    state: ServiceState,
    /// True if the client may see the cause of an error.
    tells_cause: bool,
}

enum ServiceState {
    /// A response that is ready. Taken when it is returned.
    Known(Option<Box<Response<ProxyBody>>>),
    Exchange(Exchange),
    /// A call of the route's policies.
    Awaited(PooledFuture<Response<ProxyBody>>),
    /// A call of the route's layers.
    Layered(Layered),
}

impl ResponseFuture {
    fn of(state: ServiceState) -> Self {
        Self {
            state,
            tells_cause: false,
        }
    }

    /// Has an error response tell its cause, if the client may see it.
    pub(super) fn telling(mut self, tells_cause: bool) -> Self {
        self.tells_cause = tells_cause;
        self
    }

    pub(super) fn known(response: Response<ProxyBody>) -> Self {
        Self::of(ServiceState::Known(Some(Box::new(response))))
    }

    pub(super) fn layered(response: Layered) -> Self {
        Self::of(ServiceState::Layered(response))
    }

    pub(super) fn exchange(exchange: Exchange) -> Self {
        Self::of(ServiceState::Exchange(exchange))
    }

    pub(super) fn awaited<F>(response: impl FnOnce() -> F) -> Self
    where
        F: Future<Output = Response<ProxyBody>> + Send + 'static,
    {
        Self::of(ServiceState::Awaited(PooledFuture::new(response)))
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<ProxyBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut response = match &mut self.state {
            ServiceState::Known(response) => {
                *response.take().expect("a finished future is not polled")
            }
            ServiceState::Exchange(exchange) => ready!(Pin::new(exchange).poll(cx)),
            ServiceState::Awaited(response) => ready!(Pin::new(response).poll(cx)),
            ServiceState::Layered(response) => ready!(Pin::new(response).poll(cx)),
        };
        if self.tells_cause {
            let info = response.extensions().get::<ExchangeInfo>();
            if let Some(cause) = info.and_then(ExchangeInfo::cause) {
                CauseHeader::write(cause, response.headers_mut());
            }
        }
        Poll::Ready(Ok(response))
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
