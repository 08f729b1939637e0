//! Accepting connections, of which there may be only so many.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::server::Connected;

/// How long to wait when a connection cannot be accepted, for want of file descriptors as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

/// A connection, with its place among those that may be open.
#[derive(Debug)]
pub(crate) struct Accepted {
    stream: TcpStream,
    peer: SocketAddr,
    _place: OwnedSemaphorePermit,
}

/// The connections that arrive, as long as fewer than `limit` are open.
pub(crate) fn accept(
    listener: TcpListener,
    limit: usize,
) -> impl Stream<Item = io::Result<Accepted>> {
    let places = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
    stream::unfold((listener, places), |(listener, places)| async move {
        loop {
            // The semaphore is never closed.
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            match listener.accept().await {
                Ok((stream, peer)) => {
                    // Responses are written whole; waiting for more to come only delays them.
                    let _ = stream.set_nodelay(true);
                    let accepted = Accepted {
                        stream,
                        peer,
                        _place: place,
                    };
                    return Some((Ok(accepted), (listener, places)));
                }
                Err(error) => {
                    tracing::warn!(%error, "the xDS server cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}

impl Connected for Accepted {
    type ConnectInfo = PeerAddress;

    fn connect_info(&self) -> PeerAddress {
        PeerAddress(self.peer)
    }
}

impl AsyncRead for Accepted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
