//! Services and servers for tests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use proxy_runtime::server::{Limits, Listener, RequestBody, Server, ServerBuilder, ServerHandle};
use testkit::client::{Connection, Load};
use tokio::sync::watch;
use tower_service::Service;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;
type BoxFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// A service made from a function.
#[derive(Clone)]
pub(crate) struct Handler(Arc<dyn Fn(Request<RequestBody>) -> BoxFuture + Send + Sync>);

impl Handler {
    pub(crate) fn new<F, R>(handler: F) -> Self
    where
        F: Fn(Request<RequestBody>) -> R + Send + Sync + 'static,
        R: Future<Output = Response<Body>> + Send + 'static,
    {
        Self(Arc::new(move |request| {
            let response = handler(request);
            Box::pin(async move { Ok(response.await) })
        }))
    }

    /// Reads the body, and responds with method, target, host and the body's length, or 400 as a
    /// proxy would.
    pub(crate) fn echo() -> Self {
        Self::new(|request| async move {
            let (head, body) = request.into_parts();
            let host = head
                .headers
                .get("host")
                .map_or("-", |host| host.to_str().unwrap());
            let line = format!("{} {} {host}", head.method, head.uri);
            match body.collect().await {
                Ok(body) => text(&format!("{line} {}", body.to_bytes().len())),
                Err(_) => status(400),
            }
        })
    }
}

impl Service<Request<RequestBody>> for Handler {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> BoxFuture {
        (self.0)(request)
    }
}

/// A gate at which requests wait.
#[derive(Clone)]
pub(crate) struct Gate {
    open: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            open: watch::Sender::new(false),
            waiting: watch::Sender::new(0),
        }
    }

    /// A service whose requests wait.
    pub(crate) fn handler(&self) -> Handler {
        let gate = self.clone();
        Handler::new(move |_| {
            let gate = gate.clone();
            async move {
                gate.waiting.send_modify(|waiting| *waiting += 1);
                gate.open.subscribe().wait_for(|open| *open).await.unwrap();
                text("done")
            }
        })
    }

    /// Waits until `count` requests have arrived.
    pub(crate) async fn wait_for_waiting(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        let reached = waiting.wait_for(|waiting| *waiting >= count);
        testkit::time::guarded("requests at the gate", reached)
            .await
            .unwrap();
    }

    pub(crate) fn waiting(&self) -> usize {
        *self.waiting.borrow()
    }

    /// Releases all requests, including later ones.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }
}

pub(crate) fn text(text: &str) -> Response<Body> {
    let body = Full::new(Bytes::copy_from_slice(text.as_bytes()));
    Response::new(body.map_err(|never| match never {}).boxed_unsync())
}

pub(crate) fn status(status: u16) -> Response<Body> {
    let mut response = text("");
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// A load over each version of HTTP in this build.
pub(crate) fn loads(address: SocketAddr) -> Vec<Load> {
    vec![
        Load::new(address),
        #[cfg(feature = "http2")]
        Load::new(address).http2(),
    ]
}

/// A connection of each version of HTTP in this build.
pub(crate) async fn connections(address: SocketAddr) -> Vec<Connection> {
    vec![
        Connection::http1(address).await.unwrap(),
        #[cfg(feature = "http2")]
        Connection::http2(address).await.unwrap(),
    ]
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A server of one worker on a free port.
pub(crate) fn builder(handler: Handler, limits: Limits) -> ServerBuilder {
    Server::builder(move || handler.clone())
        .with_workers(NonZeroUsize::MIN)
        .with_limits(limits)
}

pub(crate) fn serve(handler: Handler, limits: Limits) -> (ServerHandle, SocketAddr) {
    let server = builder(handler, limits)
        .with_listener(Listener::http(loopback()))
        .bind()
        .unwrap()
        .start()
        .unwrap();
    let address = server.local_addrs()[0];
    (server, address)
}
