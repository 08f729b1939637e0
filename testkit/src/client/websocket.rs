use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Response, StatusCode};
use hyper::ext::Protocol as ConnectProtocol;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
pub use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{Answer, ClientError, Connection, Protocol};
use crate::body;
use crate::time::{GUARD, within};

/// The example key of RFC 6455 1.3: any sixteen bytes in Base64 are valid.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
/// The accept key for [`KEY`].
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The client side of a WebSocket.
///
/// ```
/// use testkit::client::{Message, websocket};
/// use testkit::origin::Origin;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), testkit::client::ClientError> {
/// let origin = Origin::upgrade_echo();
/// let mut socket = websocket(origin.addr(), "/chat").await?;
/// socket.send(Message::text("hello")).await?;
/// assert_eq!(socket.receive().await?, Some(Message::text("hello")));
/// socket.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WebSocket {
    response: Response<()>,
    stream: WebSocketStream<TokioIo<Upgraded>>,
    /// A tunnel over HTTP/2 ends with its connection.
    _connection: Connection,
}

/// Opens a WebSocket over a new HTTP/1.1 connection without TLS.
///
/// # Errors
///
/// As for [`WebSocket::over`], and those of [`Connection::http1`].
pub async fn websocket(addr: SocketAddr, path: &str) -> Result<WebSocket, ClientError> {
    WebSocket::over(Connection::http1(addr).await?, path).await
}

impl WebSocket {
    /// Opens a WebSocket: by `Upgrade` over HTTP/1.1 (RFC 6455), by extended CONNECT over HTTP/2 (RFC 8441).
    ///
    /// # Errors
    ///
    /// [`NotUpgraded`](ClientError::NotUpgraded) with the other response (also for a wrong accept
    /// key), and those of [`Connection::send`]; over HTTP/2, [`NoAnswer`](ClientError::NoAnswer) if
    /// the server does not allow extended CONNECT.
    ///
    /// # Panics
    ///
    /// When `path` is no path.
    pub async fn over(mut connection: Connection, path: &str) -> Result<Self, ClientError> {
        let request = match connection.protocol() {
            Protocol::Http1 => connection
                .request("GET", path)
                .header(CONNECTION, "Upgrade")
                .header(UPGRADE, "websocket")
                .header(SEC_WEBSOCKET_KEY, KEY),
            Protocol::Http2 => connection
                .request("CONNECT", path)
                .extension(ConnectProtocol::from_static("websocket")),
        };
        let request = request
            .header(SEC_WEBSOCKET_VERSION, "13")
            .body(body::empty())
            .expect("a path was given");
        let (response, io) = connection.upgrade(request).await?;
        let accept = response.headers().get(SEC_WEBSOCKET_ACCEPT);
        if response.status() == StatusCode::SWITCHING_PROTOCOLS
            && accept.is_none_or(|accept| accept != ACCEPT)
        {
            let answer = Answer {
                status: response.status(),
                version: response.version(),
                interim: Vec::new(),
                headers: response.headers().clone(),
                body: bytes::Bytes::new(),
                trailers: None,
            };
            return Err(ClientError::NotUpgraded(Box::new(answer)));
        }
        let stream = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
        Ok(Self {
            response,
            stream,
            _connection: connection,
        })
    }

    /// The response that opened it.
    pub fn response(&self) -> &Response<()> {
        &self.response
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// [`WebSocket`](ClientError::WebSocket).
    pub async fn send(&mut self, message: Message) -> Result<(), ClientError> {
        self.stream
            .send(message)
            .await
            .map_err(ClientError::WebSocket)
    }

    /// The next message; `None` after the close handshake.
    ///
    /// # Errors
    ///
    /// [`WebSocket`](ClientError::WebSocket) if the tunnel fails,
    /// [`TimedOut`](ClientError::TimedOut) without a message for [`GUARD`].
    pub async fn receive(&mut self) -> Result<Option<Message>, ClientError> {
        let next = within(GUARD, self.stream.next()).await;
        next.map_err(ClientError::TimedOut)?
            .transpose()
            .map_err(ClientError::WebSocket)
    }

    /// Sends a close frame and reads until the other side has acknowledged it.
    ///
    /// # Errors
    ///
    /// As for [`receive`](Self::receive).
    pub async fn close(mut self) -> Result<(), ClientError> {
        self.stream
            .close(None)
            .await
            .map_err(ClientError::WebSocket)?;
        while self.receive().await?.is_some() {}
        Ok(())
    }
}
