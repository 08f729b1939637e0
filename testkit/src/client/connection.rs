use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::{Method, Request, Response, Version};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;

use super::answer::collect;
use super::{Answer, ClientError, Interim};
use crate::body::{self, Body, BoxError};
use crate::tasks::Tasks;
use crate::time::{GUARD, within};

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A client connection. Dropping it closes the socket and cancels requests in flight.
///
/// Every wait is limited by [`GUARD`] of real time, so a paused clock may advance freely.
///
/// Cancel safety: dropping a `send` cancels its exchange, like a client that disconnects: HTTP/1.1
/// closes the connection, HTTP/2 resets the stream.
pub struct Connection {
    sender: Sender,
    scheme: &'static str,
    authority: String,
    local: SocketAddr,
    ended: watch::Receiver<bool>,
    /// Drives the connection; shared by the clones of an HTTP/2 connection.
    driver: Arc<Tasks>,
}

enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

impl Connection {
    /// Connects for HTTP/1.1 without TLS.
    ///
    /// # Errors
    ///
    /// [`ClientError::Connect`] or [`ClientError::TimedOut`].
    pub async fn http1(addr: SocketAddr) -> Result<Self, ClientError> {
        let (tcp, local) = connect(addr).await?;
        Self::handshake(tcp, local, Protocol::Http1, "http", addr.to_string()).await
    }

    /// Connects for HTTP/2 without TLS, by prior knowledge.
    ///
    /// # Errors
    ///
    /// As for [`http1`](Self::http1); [`ClientError::NoAnswer`] when the connection fails at once.
    pub async fn http2(addr: SocketAddr) -> Result<Self, ClientError> {
        let (tcp, local) = connect(addr).await?;
        Self::handshake(tcp, local, Protocol::Http2, "http", addr.to_string()).await
    }

    /// Connects with TLS for `server_name` (a DNS name or an IP address), and uses the protocol of
    /// ALPN: HTTP/2 for `h2`, otherwise HTTP/1.1.
    ///
    /// # Errors
    ///
    /// Fails as [`http2`](Self::http2) does, and with [`ClientError::Tls`]. With TLS 1.3 the
    /// rejection of a client certificate shows only in the first exchange.
    ///
    /// # Panics
    ///
    /// Panics if `server_name` is not a valid name.
    pub async fn tls(
        addr: SocketAddr,
        server_name: &str,
        config: impl Into<Arc<ClientConfig>>,
    ) -> Result<Self, ClientError> {
        let (tcp, local) = connect(addr).await?;
        let name = ServerName::try_from(server_name.to_owned())
            .unwrap_or_else(|error| panic!("{server_name}: {error}"));
        let connecting = TlsConnector::from(config.into()).connect(name, tcp);
        let stream = within(GUARD, connecting)
            .await
            .map_err(ClientError::TimedOut)?
            .map_err(ClientError::Tls)?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        };
        let authority = match server_name.parse() {
            Ok(ip) => SocketAddr::new(ip, addr.port()).to_string(),
            Err(_) => format!("{server_name}:{}", addr.port()),
        };
        Self::handshake(stream, local, protocol, "https", authority).await
    }

    async fn handshake<S>(
        stream: S,
        local: SocketAddr,
        protocol: Protocol,
        scheme: &'static str,
        authority: String,
    ) -> Result<Self, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        let driver = Tasks::new();
        let (end, ended) = watch::channel(false);
        let sender = match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::Builder::new()
                    // Tests of limits send heads that are larger than hyper reads by default.
                    .max_header_size(4 << 20)
                    .max_headers(20_000)
                    .handshake(io)
                    .await
                    .map_err(ClientError::NoAnswer)?;
                driver.spawn(async move {
                    // Each exchange reports its own error.
                    let _ = connection.with_upgrades().await;
                    end.send_replace(true);
                });
                Sender::Http1(sender)
            }
            Protocol::Http2 => {
                let (sender, connection) = http2::Builder::new(driver.spawner())
                    .handshake(io)
                    .await
                    .map_err(ClientError::NoAnswer)?;
                driver.spawn(async move {
                    let _ = connection.await;
                    end.send_replace(true);
                });
                Sender::Http2(sender)
            }
        };
        let driver = Arc::new(driver);
        Ok(Self {
            sender,
            scheme,
            authority,
            local,
            ended,
            driver,
        })
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        match self.sender {
            Sender::Http1(_) => Protocol::Http1,
            Sender::Http2(_) => Protocol::Http2,
        }
    }

    /// The local address, which the server sees as its peer.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Another handle of the same HTTP/2 connection, for concurrent exchanges; `None` over
    /// HTTP/1.1. The connection closes with the last handle.
    pub fn share(&self) -> Option<Self> {
        match &self.sender {
            Sender::Http1(_) => None,
            Sender::Http2(sender) => Some(Self {
                sender: Sender::Http2(sender.clone()),
                scheme: self.scheme,
                authority: self.authority.clone(),
                local: self.local,
                ended: self.ended.clone(),
                driver: Arc::clone(&self.driver),
            }),
        }
    }

    /// Returns a request builder for this protocol: over HTTP/1.1 the target is the path and the
    /// authority is in `Host`, over HTTP/2 the target has both. For another authority, see
    /// [`request_for`](Self::request_for).
    ///
    /// # Panics
    ///
    /// Building the request fails if `path` or `method` is invalid.
    pub fn request(&self, method: &str, path: &str) -> http::request::Builder {
        self.request_for(&self.authority, method, path)
    }

    /// Like [`request`](Self::request), for this authority.
    pub fn request_for(&self, authority: &str, method: &str, path: &str) -> http::request::Builder {
        let request = Request::builder().method(method);
        match self.sender {
            Sender::Http1(_) => request.uri(path).header(HOST, authority),
            Sender::Http2(_) => request
                .uri(format!("{}://{authority}{path}", self.scheme))
                .version(Version::HTTP_2),
        }
    }

    /// Sends a GET for this path and reads the whole answer.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    ///
    /// # Panics
    ///
    /// When `path` is no path.
    pub async fn get(&mut self, path: &str) -> Result<Answer, ClientError> {
        let request = self.request(Method::GET.as_str(), path).body(body::empty());
        self.send(request.expect("a path was given")).await
    }

    /// Sends a request and reads the whole response.
    ///
    /// # Errors
    ///
    /// [`NotSent`](ClientError::NotSent), [`NoAnswer`](ClientError::NoAnswer),
    /// [`Truncated`](ClientError::Truncated) with the received part,
    /// [`TooLong`](ClientError::TooLong), [`TimedOut`](ClientError::TimedOut).
    pub async fn send<B>(&mut self, mut request: Request<B>) -> Result<Answer, ClientError>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let interim = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&interim);
        hyper::ext::on_informational(&mut request, move |answer| {
            let (status, headers) = (answer.status(), answer.headers().clone());
            let interim = Interim { status, headers };
            seen.lock().push(interim);
        });
        let exchange = async {
            let response = self.send_streaming(request).await?;
            let interim = std::mem::take(&mut *interim.lock());
            collect(response, interim).await
        };
        within(GUARD, exchange)
            .await
            .map_err(ClientError::TimedOut)?
    }

    /// Sends a request and returns with the head of the response. The test reads the body at its
    /// own pace with [`BodyExt::frame`](http_body_util::BodyExt::frame) and similar methods.
    ///
    /// # Errors
    ///
    /// [`NotSent`](ClientError::NotSent), [`NoAnswer`](ClientError::NoAnswer), [`TimedOut`](ClientError::TimedOut).
    pub async fn send_streaming<B>(
        &mut self,
        request: Request<B>,
    ) -> Result<Response<Incoming>, ClientError>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let request = request.map(body::boxed);
        let sent = within(GUARD, async {
            match &mut self.sender {
                Sender::Http1(sender) => {
                    sender.ready().await.map_err(ClientError::NotSent)?;
                    sender.try_send_request(request).await.map_err(unsent)
                }
                Sender::Http2(sender) => {
                    sender.ready().await.map_err(ClientError::NotSent)?;
                    sender.try_send_request(request).await.map_err(unsent)
                }
            }
        });
        sent.await.map_err(ClientError::TimedOut)?
    }

    /// Sends a request for an upgrade (or a CONNECT), and returns the stream after a 101 (or a
    /// 2xx).
    ///
    /// # Errors
    ///
    /// [`NotUpgraded`](ClientError::NotUpgraded) with the other response, and those of
    /// [`send`](Self::send).
    pub async fn upgrade<B>(
        &mut self,
        request: Request<B>,
    ) -> Result<(Response<()>, TokioIo<Upgraded>), ClientError>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let connect = request.method() == Method::CONNECT;
        let mut response = self.send_streaming(request).await?;
        let switched = response.status() == http::StatusCode::SWITCHING_PROTOCOLS
            || (connect && response.status().is_success());
        if !switched {
            let answer = within(GUARD, collect(response, Vec::new())).await;
            let answer = answer.map_err(ClientError::TimedOut)??;
            return Err(ClientError::NotUpgraded(Box::new(answer)));
        }
        let upgraded = within(GUARD, hyper::upgrade::on(&mut response))
            .await
            .map_err(ClientError::TimedOut)?
            .map_err(ClientError::NoAnswer)?;
        Ok((response.map(drop), TokioIo::new(upgraded)))
    }

    /// Returns true if the server is known to have closed the connection.
    pub fn is_closed(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits until the connection has ended; panics after [`GUARD`].
    #[track_caller]
    pub fn closed(&self) -> impl Future<Output = ()> + use<> {
        let mut ended = self.ended.clone();
        crate::time::guarded("the server to close the connection", async move {
            // An error means that the driver, and so the connection, has ended.
            let _ = ended.wait_for(|ended| *ended).await;
        })
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("protocol", &self.protocol())
            .field("authority", &self.authority)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

async fn connect(addr: SocketAddr) -> Result<(TcpStream, SocketAddr), ClientError> {
    let connecting = async {
        let tcp = TcpStream::connect(addr).await?;
        tcp.set_nodelay(true)?;
        let local = tcp.local_addr()?;
        Ok((tcp, local))
    };
    within(GUARD, connecting)
        .await
        .map_err(ClientError::TimedOut)?
        .map_err(ClientError::Connect)
}

fn unsent<B>(mut error: hyper::client::conn::TrySendError<B>) -> ClientError {
    let is_unsent = error.take_message().is_some() || is_turned_away(error.error());
    let error = error.into_error();
    match is_unsent {
        true => ClientError::NotSent(error),
        false => ClientError::NoAnswer(error),
    }
}

/// Returns true if the server's graceful GOAWAY came before the request, or reports that it was not
/// processed (RFC 9113 6.8). hyper does not return the request then. A stream that the GOAWAY
/// allows to finish fails with another error if its connection breaks.
fn is_turned_away(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    source
        .and_then(|source| source.downcast_ref::<h2::Error>())
        .is_some_and(|error| {
            error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR)
        })
}
