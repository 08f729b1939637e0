//! A server with one single-threaded runtime per core.
//!
//! Each worker is a thread with a tokio runtime, listening sockets, connections and a service of its own; the kernel
//! spreads the connections over the workers (`SO_REUSEPORT` on Linux; elsewhere the workers share a socket). A request
//! never changes threads. Workers share the configuration and the live state of destinations, which requests read or add to
//! without waiting for each other; connections to destinations they share for clusters with `MaxConnectionsPerServer` only, whose
//! limit is the whole proxy's and whose pool is one for all ([`upstream`](crate::upstream)). This is the one place of the crate that
//! starts threads and makes runtimes: it is what it is for. It installs no signal handler and never ends the process.
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
//! // … until it is time to stop:
//! let report = handle.shutdown(Duration::from_secs(30)).await;
//! assert_eq!(report.cut, 0);
//! # Ok(())
//! # }
//! ```
//!
//! # What is refused
//!
//! [`Limits`] says how much a client may cost. Beyond that, requests are refused that two programs could read in two
//! ways: on HTTP/1.1 whatever [`http1`](crate::http1#one-meaning) does not read, and on both versions what follows. The
//! service does not see them; the response is a fixed text, and on HTTP/1.1 the connection is closed.
//!
//! | request | response |
//! |---|---|
//! | no `Host` on HTTP/1.1, two of them, or one that is no host: userinfo, spaces, commas, an open bracket, a port that is no number | 400 |
//! | a line that ends in a line feed alone, a folded line, white space before a colon | 400 |
//! | HTTP/2 without an authority, or with an `:authority` and a `Host` that differ | 400 |
//! | a target that is no path (`*` is, for OPTIONS), or absolute with another scheme than http or https | 400 |
//! | a path with `%00`, with a `%` without two digits, or with a dot segment that has a parameter (`/..;x/`) | 400 |
//! | a path with an encoded slash or a parameter, where the listener is [strict](Listener::with_strict_paths) | 400 |
//! | `Transfer-Encoding` and `Content-Length`, either of them twice, `chunked` twice, or `Transfer-Encoding` on HTTP/1.0 | 400 |
//! | another transfer coding | 501 |
//! | another version than 1.0 and 1.1 where those are spoken | 505 |
//! | a WebSocket handshake with a body | 400 |
//! | a field name that imitates one of the proxy's with underscores, such as `X_Forwarded_For` | 400 |
//! | `CONNECT`, `TRACE` | 405 |
//! | `Expect` with anything but `100-continue` | 417 |
//! | a method of more than 64 letters | 501 |
//!
//! A request of HTTP/2 that is malformed as RFC 9113 section 8.1.1 has it, and as `h2` or the server finds, has its stream reset with
//! `PROTOCOL_ERROR`. A call of gRPC is told a status of gRPC in place of these.
//!
//! Chunks that cannot be read break the body off: the service gets an error, and the connection ends with its response. So does
//! a body that exceeds a limit. If the service answers that with 400 or 5xx, the response is replaced by the server's, which says
//! 408, 413 or 431; a [`ProxyService`] knows what happened, and its response is the route's.
//!
//! What is not refused is brought into one form: an absolute target becomes a path, its authority becomes `Host`, and
//! dot segments of the path are resolved. `X-Real-IP` and others by which proxies tell where a request came from are removed, unless
//! the listener [trusts](Listener::with_trusted_senders) its clients.
//!
//! # Other protocols
//!
//! A request that asks for another protocol has an [`OnUpgrade`] in its extensions. On HTTP/1.1 whoever answers 101 gets the
//! connection from it; on HTTP/2 (`CONNECT` of RFC 8441) whoever answers 2xx gets the stream.
//!
//! # How a connection ends
//!
//! Whenever the server decides to end an HTTP/1.1 connection – it drains, or the connection has had its requests or its
//! age – it says so with the next response (`Connection: close`), and still reads from an idle one for
//! [`Limits::closing_grace`]. HTTP/2 connections get GOAWAY. After a refusal, and after a response with which the server ends a
//! connection of HTTP/1.1, the rest of what the client sends is read and discarded for up to two seconds, so that the
//! response gets there.
//!
//! A client of HTTP/1.1 that closes its side of the connection while it waits for a response is taken for gone, and its request
//! is given up, unless the response comes before that is noticed: within the first 250 ms of a cleartext connection nobody looks.

mod accept;
mod access_log;
mod addresses;
mod builder;
mod civil;
pub(crate) mod connection;
pub(crate) mod edge;
pub(crate) mod engine;
mod handle;
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
pub(crate) mod shared;
mod sockets;
#[cfg(feature = "tls")]
mod tls;
pub(crate) mod worker;

pub use self::access_log::{
    AccessLogFormat, AccessLogSink, AccessLogWriter, AccessRecord, LogCapacity, LogOutput,
    QueryLogging,
};
pub use self::builder::{Server, ServerBuilder};
pub use self::connection::RequestBody;
pub use self::handle::{DrainReport, ServerHandle};
#[cfg(all(feature = "http2", feature = "testing"))]
#[doc(hidden)]
pub use self::http2::FrameTrial;
pub use self::limits::{DataRate, Http2Limits, Limits};
pub use self::listener::{BindError, Listener};
pub use self::metrics::{ServerCounts, ServerMetrics};
pub use self::outcome::Outcome;
pub use self::sockets::ListeningSockets;
#[cfg(feature = "tls")]
pub use self::tls::{Certificate, CertificateStore, ClientAuth, TlsConfigError, TlsServerConfig};
pub use crate::connection::ListenerRules;
pub use crate::error::RequestBodyError;
use crate::proxy::{Proxy, ProxyService};
pub use crate::stream::{OnUpgrade, Upgraded};

impl Server<()> {
    /// Begins to make a server whose workers serve with what `factory` makes: it is called once on each worker's thread,
    /// within its runtime.
    pub fn builder<F>(factory: F) -> ServerBuilder<F> {
        ServerBuilder::new(factory)
    }

    /// Begins to make a server for `proxy`: each worker forwards with a [`ProxyService`], and so with connections to
    /// destinations, of its own.
    pub fn for_proxy(proxy: &Proxy) -> ServerBuilder<impl Fn() -> ProxyService + use<>> {
        let proxy = proxy.clone();
        Self::builder(move || proxy.service())
    }
}
