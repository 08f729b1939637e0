//! Connections that switch to another protocol.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::ReadBuffer;

/// The connection of a request that asks for another protocol (`Upgrade`, RFC 9110 section 7.8).
///
/// Part of the extensions of such requests. A service that responds 101 gets the connection from it
/// after the response has been written; any other response leaves none. On HTTP/2 it belongs to
/// `CONNECT` with a protocol (RFC 8441): the response is any 2xx, and the service gets the stream.
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
///
/// Clones share one connection. The first clone that is polled after the switch gets it, even if
/// another one has waited longer. All other clones get
/// [`NotConnected`](io::ErrorKind::NotConnected); so does a clone that is polled again, and every
/// clone if the protocol was not switched. Dropping a clone leaves the connection to the others;
/// dropping the last one closes it.
///
/// Cancel safe: the connection is taken when the future is ready, not before.
#[must_use = "futures do nothing unless polled"]
pub struct OnUpgrade {
    shared: Arc<SharedUpgrade>,
    /// The slot of this clone's waker, once it has waited.
    place: Option<usize>,
}

impl OnUpgrade {
    pub(crate) fn new() -> (Self, Switch) {
        let shared = Arc::<SharedUpgrade>::default();
        let switch = Switch {
            shared: Arc::clone(&shared),
        };
        let place = None;
        (Self { shared, place }, switch)
    }
}

impl Clone for OnUpgrade {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            place: None,
        }
    }
}

impl Future for OnUpgrade {
    type Output = io::Result<Upgraded>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Upgraded>> {
        let this = self.get_mut();
        // Before the lock, since a waker may run foreign code.
        let waker = cx.waker().clone();
        let mut state = this.shared.lock();
        if let UpgradeState::Undecided(waiting) = &mut *state {
            let (place, before) = waiting.put(this.place, waker);
            this.place = Some(place);
            // Dropping a waker runs foreign code, which must not run under the lock.
            drop(state);
            drop(before);
            return Poll::Pending;
        }
        Poll::Ready(match std::mem::replace(&mut *state, UpgradeState::Gone) {
            UpgradeState::There(upgraded) => Ok(upgraded),
            UpgradeState::Undecided(_) | UpgradeState::Gone => Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "the connection was not upgraded, or was taken already",
            )),
        })
    }
}

impl Drop for OnUpgrade {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        // Dropped after the lock is released: a waker may run foreign code.
        let waker = match &mut *self.shared.lock() {
            UpgradeState::Undecided(waiting) => waiting.take(place),
            UpgradeState::There(_) | UpgradeState::Gone => None,
        };
        drop(waker);
    }
}

impl fmt::Debug for OnUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnUpgrade").finish_non_exhaustive()
    }
}

/// The state that the clones of an [`OnUpgrade`] share with the server.
#[derive(Default)]
struct SharedUpgrade(Mutex<UpgradeState>);

impl SharedUpgrade {
    fn lock(&self) -> MutexGuard<'_, UpgradeState> {
        self.0.lock()
    }

    /// Sets the result, once, and wakes all clones that wait.
    fn decide(&self, decided: UpgradeState) {
        let before = std::mem::replace(&mut *self.lock(), decided);
        // The lock is released by now, since a waker may run foreign code.
        if let UpgradeState::Undecided(Waiters(wakers)) = before {
            wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }
}

enum UpgradeState {
    Undecided(Waiters),
    There(Upgraded),
    /// A clone has taken the connection, or the protocol was not switched.
    Gone,
}

impl Default for UpgradeState {
    fn default() -> Self {
        Self::Undecided(Waiters::default())
    }
}

/// The wakers of all waiting clones. Each keeps its slot while it waits.
#[derive(Default)]
struct Waiters(Vec<Option<Waker>>);

impl Waiters {
    /// Stores `waker` in its slot, or in a free one. Returns the slot and its previous waker.
    fn put(&mut self, place: Option<usize>, waker: Waker) -> (usize, Option<Waker>) {
        let free = || self.0.iter().position(Option::is_none);
        let place = place.or_else(free).unwrap_or(self.0.len());
        let before = match self.0.get_mut(place) {
            Some(known) => known.replace(waker),
            None => {
                self.0.push(Some(waker));
                None
            }
        };
        (place, before)
    }

    fn take(&mut self, place: usize) -> Option<Waker> {
        self.0.get_mut(place).and_then(Option::take)
    }
}

/// The server's side of an [`OnUpgrade`]. Dropping it reports that the protocol was not switched.
pub(crate) struct Switch {
    shared: Arc<SharedUpgrade>,
}

impl Switch {
    /// Hands the connection over. It is closed if no clone is left.
    pub(crate) fn complete(self, io: impl Stream + 'static, unread: ReadBuffer) {
        let io = Box::new(io);
        self.hand_over(Upgraded { io, unread });
    }

    /// Hands an HTTP/2 stream over. It is reset if no clone is left.
    #[cfg(feature = "http2")]
    pub(crate) fn complete_stream(self, io: Box<dyn Stream>) {
        let unread = ReadBuffer::default();
        self.hand_over(Upgraded { io, unread });
    }

    fn hand_over(self, upgraded: Upgraded) {
        self.shared.decide(UpgradeState::There(upgraded));
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // Dropped without a decision: there will be no tunnel.
        let is_undecided = matches!(&*self.shared.lock(), UpgradeState::Undecided(_));
        if is_undecided {
            self.shared.decide(UpgradeState::Gone);
        }
    }
}

/// A bidirectional byte stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection that is no longer HTTP. Dropping it closes the connection.
pub struct Upgraded {
    io: Box<dyn Stream>,
    /// Bytes that the client sent after its request.
    unread: ReadBuffer,
}

impl AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Bytes that the client sent right after its request come first.
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

#[cfg(test)]
mod tests;
