//! Connections over memory, on a clock that stands still unless everybody waits.

mod ending;
mod fields;
mod http1;
#[cfg(feature = "http2")]
mod http2;
mod log;
#[cfg(feature = "http2")]
mod malformed_streams;
mod memory;
mod pace;
mod pipelined;
mod rejection;
#[cfg(feature = "http2")]
mod stalls;
#[cfg(feature = "http2")]
mod too_much;
mod upgrade;
mod uploads;
mod wire;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::Instant;
use tower_service::Service;

use super::*;
use crate::server::access_log::AccessLogSink;
use crate::server::handler::{self, ProxyHandler, Served, ServiceHandler};
use crate::server::limits::Limits;
use crate::server::metrics::ServerMetrics;

type TestBody = UnsyncBoxBody<Bytes, BoxError>;
type TestFuture = Pin<Box<dyn Future<Output = Result<Response<TestBody>, Infallible>>>>;

impl Transport for DuplexStream {
    fn reset_on_drop(&self) {}

    fn lingers_on_close(&self) -> bool {
        true
    }
}

/// A service made of a function.
#[derive(Clone)]
struct Handler(Arc<dyn Fn(Request<RequestBody>) -> TestFuture>);

impl Handler {
    fn new<F, R>(handler: F) -> Self
    where
        F: Fn(Request<RequestBody>) -> R + 'static,
        R: Future<Output = Response<TestBody>> + 'static,
    {
        Self(Arc::new(move |request| {
            let response = handler(request);
            Box::pin(async move { Ok(response.await) })
        }))
    }

    /// Answers with the path.
    fn path() -> Self {
        Self::new(|request| async move { text(request.uri().path()) })
    }

    /// Reads the body, and answers with its length, or 400 as a proxy would.
    fn length() -> Self {
        Self::new(|request| async move {
            match request.into_body().collect().await {
                Ok(body) => text(&body.to_bytes().len().to_string()),
                Err(_) => status(400),
            }
        })
    }
}

impl Service<Request<RequestBody>> for Handler {
    type Response = Response<TestBody>;
    type Error = Infallible;
    type Future = TestFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> TestFuture {
        (self.0)(request)
    }
}

fn text(text: &str) -> Response<TestBody> {
    let body = Full::new(Bytes::copy_from_slice(text.as_bytes()));
    Response::new(body.map_err(|never| match never {}).boxed_unsync())
}

fn status(status: u16) -> Response<TestBody> {
    let body = Empty::new().map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
    response
}

/// A worker without a thread.
struct Bench {
    worker: Arc<WorkerShared>,
    metrics: ServerMetrics,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        Self::with_log(limits, None)
    }

    fn with_log(limits: Limits, log: Option<Arc<dyn AccessLogSink>>) -> Self {
        let metrics = ServerMetrics::new(1);
        let share = limits.connections.unwrap_or(100);
        let worker = WorkerShared::new(limits, share, metrics.worker(0).clone(), log);
        Self {
            worker: Arc::new(worker),
            metrics,
        }
    }

    /// The same, whose clients may make it hold so many bytes.
    fn with_memory(bytes: u64) -> Self {
        let Self { worker, metrics } = Self::new(Limits::default());
        let worker = Arc::into_inner(worker).unwrap().with_memory(bytes);
        Self {
            worker: Arc::new(worker),
            metrics,
        }
    }

    fn held(&self) -> u64 {
        self.metrics.counts().held_bytes
    }

    /// A connection that is served by a task, and that task.
    fn connect(&self, handler: Handler) -> (Client, JoinHandle<()>) {
        let (near, far) = tokio::io::duplex(16 * 1024);
        (Client { stream: near }, self.serve(far, handler))
    }

    fn serve(&self, transport: impl Transport, handler: Handler) -> JoinHandle<()> {
        self.serve_by(transport, ServiceHandler(handler))
    }

    fn serve_by(
        &self,
        transport: impl Transport,
        handler: impl handler::Handler,
    ) -> JoinHandle<()> {
        let remote = "192.0.2.7:4711".parse().unwrap();
        tokio::task::spawn_local(serve_cleartext(
            transport,
            ConnectionInfo::new(remote),
            Rc::new(Served::new(handler)),
            self.worker.enter(),
            self.worker.clone(),
        ))
    }

    fn client(&self, handler: Handler) -> Client {
        self.connect(handler).0
    }
}

/// The client's end.
struct Client {
    stream: DuplexStream,
}

impl Client {
    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    async fn get(&mut self, path: &str) -> String {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: t.example\r\n\r\n"))
            .await;
        self.read_response().await
    }

    /// Head and body, the latter by its content-length.
    async fn read_response(&mut self) -> String {
        let mut response = Vec::new();
        while !response.ends_with(b"\r\n\r\n") {
            let byte = self.stream.read_u8().await;
            let text = String::from_utf8_lossy(&response);
            response.push(byte.unwrap_or_else(|error| panic!("{error} after {text:?}")));
        }
        let head = String::from_utf8(response).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.unwrap();
        head + &String::from_utf8(body).unwrap()
    }

    /// Reads until the server closes.
    async fn read_to_end(&mut self) -> String {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await.unwrap();
        String::from_utf8(rest).unwrap()
    }
}

async fn local<F: Future>(test: F) -> F::Output {
    LocalSet::new().run_until(test).await
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Asserts that `expected` has passed since `begin`, up to the resolution of the clock.
#[track_caller]
fn assert_elapsed(begin: Instant, expected: Duration) {
    let elapsed = begin.elapsed();
    let tolerance = Duration::from_millis(2);
    assert!(
        elapsed >= expected && elapsed < expected + tolerance,
        "{elapsed:?} instead of {expected:?}"
    );
}
