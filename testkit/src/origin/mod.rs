//! Well-behaved HTTP origins.
//!
//! An [`Origin`] is a real server on loopback that speaks HTTP/1.1 and HTTP/2 (by prior knowledge,
//! or by ALPN with TLS) on one port, responds with a closure, and counts connections and requests.
//! It runs on the runtime that starts it, and stops when dropped.
//!
//! ```
//! use http::{Request, Response};
//! use testkit::client::Connection;
//! use testkit::origin::{Incoming, Origin};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), testkit::client::ClientError> {
//! let origin = Origin::start(|request: Request<Incoming>| async move {
//!     Response::new(testkit::body::full(format!("you asked for {}", request.uri().path())))
//! });
//!
//! let mut client = Connection::http1(origin.addr()).await?;
//! assert_eq!(client.get("/apples").await?.text(), "you asked for /apples");
//! assert_eq!(origin.traffic().requests(), 1);
//! # Ok(())
//! # }
//! ```

mod builder;
mod connection;
mod echo;
mod named;
mod protocols;
mod upgrade;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
pub use hyper::body::Incoming;
use tokio::sync::watch;

pub use self::builder::OriginBuilder;
pub use self::connection::ConnectionInfo;
pub use self::echo::Echo;
pub use self::named::NamedOrigin;
pub use self::protocols::Protocols;
pub use self::upgrade::websocket_accept;
use crate::body::BoxError;
use crate::tasks::Tasks;
use crate::traffic::Traffic;

/// A running HTTP server. Dropping it stops it; [`stop`](Self::stop) also waits until it has stopped.
#[must_use = "an origin stops when it is dropped"]
pub struct Origin {
    addr: SocketAddr,
    scheme: &'static str,
    traffic: Traffic,
    drain: watch::Sender<()>,
    tasks: Tasks,
}

impl Origin {
    /// Serves `handler` on `127.0.0.1`, without TLS, over both protocols.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime; when no port can be bound.
    #[track_caller]
    pub fn start<H, F, B>(handler: H) -> Self
    where
        H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::builder().start(handler)
    }

    /// Returns a builder for an origin with other settings.
    pub fn builder() -> OriginBuilder {
        OriginBuilder::default()
    }

    /// An origin that responds to every request with an [`Echo`] of it, as JSON.
    #[track_caller]
    pub fn echo() -> Self {
        Self::builder().start_echo()
    }

    /// An origin that responds to every request with its own name: see [`NamedOrigin`].
    #[track_caller]
    pub fn named(name: impl Into<String>) -> NamedOrigin {
        Self::builder().start_named(name)
    }

    /// An origin that accepts every upgrade and echoes its data: WebSocket messages if requested
    /// (by HTTP/1.1 `Upgrade` or HTTP/2 extended `CONNECT`), plain bytes for any other protocol. A
    /// request without upgrade gets 426.
    #[track_caller]
    pub fn upgrade_echo() -> Self {
        Self::builder().extended_connect(true).start_upgrade_echo()
    }

    /// The address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT` or `https://…`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.addr)
    }

    /// The counts so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Asks every open connection to end after its current exchanges, like a server that limits
    /// their age: GOAWAY over HTTP/2, `Connection: close` over HTTP/1.1, and idle connections at
    /// once. New connections are served normally.
    pub fn drain(&self) {
        self.drain.send_replace(());
    }

    /// Stops at once and waits until the port and all connections are closed.
    ///
    /// Cancel safety: the origin stops even if this is dropped.
    pub async fn stop(self) {
        self.tasks.stop().await;
    }
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Origin")
            .field("url", &self.url())
            .field("counts", &self.traffic.counts())
            .finish_non_exhaustive()
    }
}
