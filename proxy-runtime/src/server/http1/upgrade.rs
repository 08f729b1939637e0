//! Connections that become tunnels.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use crate::server::connection::{ConnectionIo, Transport};
use crate::stream::ReadBuffer;

/// The connection of a request that asks for another protocol (`Upgrade`, RFC 9110 section 7.8).
///
/// It is in the extensions of such requests. A service that answers 101 gets the connection from it once the response has
/// been written; after any other response there is none. On HTTP/2 it is there with `CONNECT` that names a protocol
/// (RFC 8441): the answer is any 2xx, and what the service gets is the stream.
///
/// ```
/// use http::{Request, Response, StatusCode};
/// use proxy_runtime::server::{OnUpgrade, RequestBody};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// fn echo(mut request: Request<RequestBody>) -> Response<String> {
///     let mut response = Response::new(String::new());
///     if let Some(upgrade) = request.extensions_mut().remove::<OnUpgrade>() {
///         tokio::spawn(async move {
///             let mut connection = upgrade.await?;
///             let byte = connection.read_u8().await?;
///             connection.write_u8(byte).await?;
///             connection.shutdown().await
///         });
///         *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
///         let headers = response.headers_mut();
///         headers.insert("connection", http::HeaderValue::from_static("upgrade"));
///         headers.insert("upgrade", http::HeaderValue::from_static("echo"));
///     }
///     response
/// }
/// ```
#[derive(Clone)]
#[must_use = "futures do nothing unless polled"]
pub struct OnUpgrade {
    // Extensions must be `Clone`; the first clone that is polled gets the connection.
    receiver: Arc<Mutex<oneshot::Receiver<Upgraded>>>,
}

impl OnUpgrade {
    pub(in crate::server) fn new() -> (Self, Switch) {
        let (sender, receiver) = oneshot::channel();
        let receiver = Arc::new(Mutex::new(receiver));
        (Self { receiver }, Switch { sender })
    }
}

impl Future for OnUpgrade {
    type Output = io::Result<Upgraded>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Upgraded>> {
        let mut receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *receiver).poll(cx).map_err(|_| {
            io::Error::new(
                io::ErrorKind::NotConnected,
                "the connection was not upgraded",
            )
        })
    }
}

impl fmt::Debug for OnUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnUpgrade").finish_non_exhaustive()
    }
}

/// The server's side of an [`OnUpgrade`].
pub(in crate::server) struct Switch {
    sender: oneshot::Sender<Upgraded>,
}

impl Switch {
    /// Hands the connection over. If nobody takes it, it is closed.
    pub(super) fn complete<T: Transport>(self, io: ConnectionIo<T>, unread: ReadBuffer) {
        let io = Box::new(io);
        let _ = self.sender.send(Upgraded { io, unread });
    }

    /// Hands a stream of HTTP/2 over. If nobody takes it, it is reset.
    #[cfg(feature = "http2")]
    pub(in crate::server) fn complete_stream(self, io: Box<dyn Stream>) {
        let unread = ReadBuffer::default();
        let _ = self.sender.send(Upgraded { io, unread });
    }
}

/// A stream of bytes, both ways.
pub(in crate::server) trait Stream:
    AsyncRead + AsyncWrite + Unpin + Send
{
}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection that is no longer HTTP. Dropped, it closes the connection.
pub struct Upgraded {
    io: Box<dyn Stream>,
    /// What the client sent behind its request.
    unread: ReadBuffer,
}

impl AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buffer);
        }
        let part = self.unread.filled().len().min(buffer.remaining());
        buffer.put_slice(&self.unread.filled()[..part]);
        self.unread.consume(part);
        self.unread.rest();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgraded").finish_non_exhaustive()
    }
}
