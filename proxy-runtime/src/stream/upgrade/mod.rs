//! Connections that become tunnels.

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
///
/// Extensions are cloned with what they belong to, and so is this; there is one connection all the same. The first of the
/// clones that is polled once the connection is there gets it, though another one may have waited for longer. All others are
/// told [`NotConnected`](io::ErrorKind::NotConnected), and so is whoever is polled again, and everybody if the protocol was not
/// switched. A clone that is dropped leaves the connection to the others; dropped with the last of them, it closes.
///
/// Cancel-safe: a connection is taken when the future is ready, and not before.
#[must_use = "futures do nothing unless polled"]
pub struct OnUpgrade {
    shared: Arc<Shared>,
    /// Where the waker is by which this one is woken, once it has waited.
    place: Option<usize>,
}

impl OnUpgrade {
    pub(crate) fn new() -> (Self, Switch) {
        let shared = Arc::<Shared>::default();
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
        let waker = cx.waker().clone();
        let mut state = this.shared.lock();
        if let State::Undecided(waiting) = &mut *state {
            let (place, before) = waiting.put(this.place, waker);
            this.place = Some(place);
            // What a waker does when it is dropped is its own affair.
            drop(state);
            drop(before);
            return Poll::Pending;
        }
        Poll::Ready(match std::mem::replace(&mut *state, State::Gone) {
            State::There(upgraded) => Ok(upgraded),
            State::Undecided(_) | State::Gone => Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "the connection was not upgraded, or is somebody else's",
            )),
        })
    }
}

impl Drop for OnUpgrade {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        // Dropped behind the lock: what a waker does then is its own affair.
        let waker = match &mut *self.shared.lock() {
            State::Undecided(waiting) => waiting.take(place),
            State::There(_) | State::Gone => None,
        };
        drop(waker);
    }
}

impl fmt::Debug for OnUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnUpgrade").finish_non_exhaustive()
    }
}

/// What the clones of an [`OnUpgrade`] share with the server.
#[derive(Default)]
struct Shared(Mutex<State>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Says what became of the connection, once.
    fn decide(&self, decided: State) {
        let before = std::mem::replace(&mut *self.lock(), decided);
        if let State::Undecided(Waiting(wakers)) = before {
            wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }
}

enum State {
    Undecided(Waiting),
    There(Upgraded),
    /// Somebody has it, or it never came.
    Gone,
}

impl Default for State {
    fn default() -> Self {
        Self::Undecided(Waiting::default())
    }
}

/// The wakers of all that wait, each at a place of its own for as long as it waits.
#[derive(Default)]
struct Waiting(Vec<Option<Waker>>);

impl Waiting {
    /// Keeps `waker` at its place, or at a free one, and tells which, and what was there before.
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

/// The server's side of an [`OnUpgrade`]. Dropped, it says that the connection was not upgraded.
pub(crate) struct Switch {
    shared: Arc<Shared>,
}

impl Switch {
    /// Hands the connection over. If nobody takes it, it is closed.
    pub(crate) fn complete(self, io: impl Stream + 'static, unread: ReadBuffer) {
        let io = Box::new(io);
        self.hand_over(Upgraded { io, unread });
    }

    /// Hands a stream of HTTP/2 over. If nobody takes it, it is reset.
    #[cfg(feature = "http2")]
    pub(crate) fn complete_stream(self, io: Box<dyn Stream>) {
        let unread = ReadBuffer::default();
        self.hand_over(Upgraded { io, unread });
    }

    fn hand_over(self, upgraded: Upgraded) {
        self.shared.decide(State::There(upgraded));
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let is_undecided = matches!(&*self.shared.lock(), State::Undecided(_));
        if is_undecided {
            self.shared.decide(State::Gone);
        }
    }
}

/// A stream of bytes, both ways.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

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

#[cfg(test)]
mod tests;
