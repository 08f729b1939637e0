use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::connection::{Serve, serve};
use super::protocols::HttpSettings;
use super::{Incoming, NamedOrigin, Origin, Protocols, echo, named, upgrade};
use crate::body::{self, Body, BoxError};
use crate::listen::{V4, V6, listen};
use crate::tasks::{Spawner, Tasks};
use crate::traffic::Traffic;

/// A type-erased handler.
pub(super) type Handler = Arc<
    dyn Fn(Request<Incoming>) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>> + Send + Sync,
>;

/// Settings of an [`Origin`].
///
/// ```
/// use testkit::certs::{Alpn, CertificateAuthority};
/// use testkit::origin::{Origin, Protocols};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let ca = CertificateAuthority::new("test");
/// let origin = Origin::builder()
///     .protocols(Protocols::Http2)
///     .tls(ca.issue(&["localhost", "127.0.0.1"]).server_config(Alpn::Http2))
///     .start_echo();
/// assert!(origin.url().starts_with("https://127.0.0.1:"));
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing runs before one of the `start` functions is called"]
pub struct OriginBuilder {
    bind: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    http: HttpSettings,
}

impl Default for OriginBuilder {
    fn default() -> Self {
        Self {
            bind: V4,
            tls: None,
            http: HttpSettings::default(),
        }
    }
}

impl OriginBuilder {
    /// Listens on `[::1]` instead of `127.0.0.1`.
    pub fn ipv6(self) -> Self {
        self.bind(V6)
    }

    /// Listens on this address, such as that of a stopped origin.
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = address;
        self
    }

    /// Uses TLS. The ALPN list of the configuration is used as it is; see
    /// [`Identity::server_config`](crate::certs::Identity::server_config).
    pub fn tls(mut self, config: impl Into<Arc<ServerConfig>>) -> Self {
        self.tls = Some(config.into());
        self
    }

    /// Sets the supported versions. A client with another one gets no HTTP response.
    pub fn protocols(mut self, protocols: Protocols) -> Self {
        self.http.protocols = protocols;
        self
    }

    /// Sets whether `SETTINGS_ENABLE_CONNECT_PROTOCOL` is announced (RFC 8441), which allows
    /// WebSockets over HTTP/2. Default: false.
    pub fn extended_connect(mut self, enabled: bool) -> Self {
        self.http.extended_connect = enabled;
        self
    }

    /// Sets the maximum number of concurrent streams per HTTP/2 connection. Default: that of hyper.
    pub fn max_concurrent_streams(mut self, streams: u32) -> Self {
        self.http.max_concurrent_streams = Some(streams);
        self
    }

    /// Serves `handler`.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime; when the address cannot be bound.
    #[track_caller]
    pub fn start<H, F, B>(self, handler: H) -> Origin
    where
        H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.start_with(|_| {
            Arc::new(move |request| {
                let answer = handler(request);
                Box::pin(async move { answer.await.map(body::boxed) })
            })
        })
    }

    /// Starts an [`Origin::echo`].
    #[track_caller]
    pub fn start_echo(self) -> Origin {
        self.start(echo::answer)
    }

    /// Starts an [`Origin::named`].
    #[track_caller]
    pub fn start_named(self, name: impl Into<String>) -> NamedOrigin {
        named::start(self, name.into())
    }

    /// Starts an [`Origin::upgrade_echo`].
    #[track_caller]
    pub fn start_upgrade_echo(self) -> Origin {
        self.start_with(|spawner| {
            Arc::new(move |request| {
                let spawner = spawner.clone();
                Box::pin(async move { upgrade::answer(request, &spawner) })
            })
        })
    }

    #[track_caller]
    fn start_with(self, handler: impl FnOnce(Spawner) -> Handler) -> Origin {
        let (listener, addr) = listen(self.bind);
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let traffic = Traffic::new();
        let drain = watch::Sender::new(());
        let tasks = Tasks::new();
        let serve = Serve {
            handler: handler(tasks.spawner()),
            acceptor: self.tls.clone().map(TlsAcceptor::from),
            http: self.http,
            spawner: tasks.spawner(),
            traffic: traffic.clone(),
            drain: drain.subscribe(),
        };
        tasks.spawn(accept(listener, serve, tasks.spawner()));
        Origin {
            addr,
            scheme,
            traffic,
            drain,
            tasks,
        }
    }
}

async fn accept(listener: TcpListener, serve_with: Serve, spawner: Spawner) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => spawner.spawn(serve(stream, peer, serve_with.clone())),
            // A lack of descriptors, or a connection closed before accept: neither ends a server.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    }
}
