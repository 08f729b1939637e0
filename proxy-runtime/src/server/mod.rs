//! An HTTP server with one single-threaded runtime per core.
//!
//! Each worker is a thread with its own tokio runtime, listening sockets, connections and service.
//! The kernel distributes connections over the workers (`SO_REUSEPORT` on Linux; elsewhere the
//! workers share a socket). A request never changes threads. Workers share the configuration and
//! the live state of destinations without waiting for each other. They share connections to
//! destinations only for clusters with `MaxConnectionsPerServer`, whose limit applies to the whole
//! proxy ([`upstream`](crate::upstream)). No other module of the crate starts threads or creates
//! runtimes. The server installs no signal handler and never ends the process.
//!
//! It hosts any tower service over [`RequestBody`]; [`Server::for_proxy`] hosts a [`Proxy`].
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Duration;
//!
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use proxy_runtime::server::{Listener, RequestBody, Server};
//! # use std::future::{Ready, ready};
//! # use std::task::{Context, Poll};
//! # #[derive(Clone)]
//! # struct Hello;
//! # impl tower_service::Service<Request<RequestBody>> for Hello {
//! #     type Response = Response<Full<bytes::Bytes>>;
//! #     type Error = Infallible;
//! #     type Future = Ready<Result<Self::Response, Infallible>>;
//! #     fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
//! #         Poll::Ready(Ok(()))
//! #     }
//! #     fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
//! #         ready(Ok(Response::new("hello".into())))
//! #     }
//! # }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder(|| Hello)
//!     .with_listener(Listener::http("127.0.0.1:0".parse()?))
//!     .bind()?;
//! println!("listening on {:?}", server.local_addrs());
//! let handle = server.start()?;
//! // … at the end:
//! let report = handle.shutdown(Duration::from_secs(30)).await;
//! assert_eq!(report.cut, 0);
//! # Ok(())
//! # }
//! ```
//!
//! # Rejected requests
//!
//! [`Limits`] bounds the cost of a client. Besides, requests are rejected that two programs could
//! interpret differently: on HTTP/1.1 all that [`http1`](crate::http1#one-meaning) does not accept,
//! and on both versions the following. The service does not see them. The response is a fixed text,
//! and on HTTP/1.1 the connection is closed.
//!
//! | request | response |
//! |---|---|
//! | no `Host` on HTTP/1.1, two of them, or an invalid one: userinfo, spaces, commas, `[`, a bad port | 400 |
//! | a line that ends in a line feed alone, a folded line, white space before a colon | 400 |
//! | HTTP/2 without an authority, or with an `:authority` and a `Host` that differ | 400 |
//! | a target that is no path (except `*` for OPTIONS), or absolute with another scheme than http and https | 400 |
//! | a path with `%00`, with a `%` without two digits, or with a dot segment that has a parameter (`/..;x/`) | 400 |
//! | a path with an encoded slash or a parameter, where the listener is [strict](ListenerRules::strict_paths) | 400 |
//! | `Transfer-Encoding` with `Content-Length`, either twice, `chunked` twice, or a coding on HTTP/1.0 | 400 |
//! | another transfer coding | 501 |
//! | another version than 1.0 and 1.1 where those are spoken | 505 |
//! | a WebSocket handshake with a body | 400 |
//! | a field name that imitates a field of the proxy with underscores, such as `X_Forwarded_For` | 400 |
//! | `CONNECT`, `TRACE` | 405 |
//! | `Expect` with anything but `100-continue` | 417 |
//! | a method of more than 64 letters | 501 |
//!
//! A malformed HTTP/2 request (RFC 9113 section 8.1.1) has its stream reset with `PROTOCOL_ERROR`.
//! A gRPC call gets a gRPC status instead of these responses.
//!
//! Invalid chunks abort the body: the service gets an error, and the connection ends with its
//! response. The same holds for a body beyond a limit. If the service then responds with 400 or
//! 5xx, the server sends 408, 413 or 431 instead; a [`ProxyService`](crate::ProxyService) knows the cause, and its
//! response is the route's.
//!
//! Accepted requests are normalised: an absolute target becomes a path, its authority becomes
//! `Host`, and dot segments of the path are resolved. `X-Real-IP` and similar fields about the
//! origin of a request are removed, unless the listener [trusts](ListenerRules::trusts_senders)
//! its clients.
//!
//! # Other protocols
//!
//! A request that asks for another protocol has an [`OnUpgrade`] in its extensions. A service that
//! responds 101 on HTTP/1.1 gets the connection from it; on HTTP/2 (`CONNECT` of RFC 8441) a
//! service that responds 2xx gets the stream.
//!
//! # End of a connection
//!
//! When the server decides to close an HTTP/1.1 connection, because of a drain, its age or its
//! number of requests, it announces that in the next response (`Connection: close`), and still
//! reads from an idle one for [`Limits::closing_grace`]. HTTP/2 connections get GOAWAY. After a
//! rejection, and after the last response on an HTTP/1.1 connection, the server discards further
//! data for up to two seconds (lingering close), so that the response arrives.
//!
//! An HTTP/1.1 client that closes its sending side while it waits for a response counts as
//! disconnected, and its request is cancelled, unless the response is ready first. In the first 250
//! ms of a cleartext connection this is not checked.

mod accept;
mod access_log;
mod addresses;
mod builder;
mod civil;
pub(crate) mod connection;
pub(crate) mod engine;
mod handle;
mod handler;
pub(crate) mod http1;
#[cfg(feature = "http2")]
pub(crate) mod http2;
mod limits;
mod listener;
pub(crate) mod memory;
pub(crate) mod metrics;
mod mode;
mod offers;
mod open_files;
mod outcome;
mod proxy_protocol;
pub(crate) mod shared;
mod shed;
#[cfg(feature = "tls")]
mod tls;
pub(crate) mod validation;
pub(crate) mod worker;

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

#[cfg(test)]
pub(crate) use self::access_log::tests::record as access_log_record;
pub use self::access_log::{
    AccessLogFormat, AccessLogSink, AccessLogTemplate, AccessLogWriter, AccessRecord,
    InvalidTemplate, LogOutput, QueryLogging, RequestTail,
};
pub use self::builder::{Server, ServerBuilder};
pub use self::connection::RequestBody;
pub use self::handle::{DrainReport, ServerHandle};
use self::handler::{ProxyHandler, ServiceHandler};
#[cfg(all(feature = "http2", feature = "testing"))]
#[doc(hidden)]
pub use self::http2::FrameHarness;
pub use self::limits::{DataRate, Http2Limits, Limits};
pub use self::listener::{BindError, Listener, overlap, probe};
pub use self::metrics::{ServerCounts, ServerMetrics};
pub use self::outcome::Outcome;
pub use self::proxy_protocol::ProxyProtocol;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use self::proxy_protocol::fuzz_proxy_header;
#[cfg(feature = "tls")]
pub use self::tls::{
    Certificate, CertificateStore, ClientAuth, TlsConfigError, TlsPolicy, TlsServerConfig,
};
use crate::BoxError;
pub use crate::connection::ListenerRules;
pub use crate::error::RequestBodyError;
use crate::proxy::Proxy;
pub use crate::stream::{OnUpgrade, Upgraded};

impl Server {
    /// Returns a builder for a server. `factory` creates the service of each worker; it is called once on each worker's
    /// thread, in its runtime. To serve a proxy, [`for_proxy`](Self::for_proxy) is faster.
    pub fn builder<F, S, B>(factory: F) -> ServerBuilder
    where
        F: Fn() -> S + Send + Sync + 'static,
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + 'static,
        S::Error: Into<BoxError>,
        S::Future: 'static,
        B: Body<Data = Bytes> + 'static,
        B::Error: Into<BoxError>,
    {
        ServerBuilder::new(move || ServiceHandler(factory()))
    }

    /// Returns a builder for a server that runs `proxy`. Each worker has its own [`ProxyService`](crate::ProxyService)
    /// with its own connections to destinations.
    pub fn for_proxy(proxy: &Proxy) -> ServerBuilder {
        let proxy = proxy.clone();
        let metrics = Arc::clone(proxy.shared().metrics());
        ServerBuilder::new(move || ProxyHandler::new(proxy.service())).counting_for(metrics)
    }
}
