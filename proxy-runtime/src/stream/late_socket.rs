//! Sockets on Linux that are registered with the runtime late, or never.

use std::io::{self, IoSlice};
use std::mem;
use std::net::{self, Shutdown, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, writev};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::ByteStream;

/// A socket that is registered with the runtime at the first wait.
///
/// A client that opens a connection nearly always sends its request at once. A connection with a
/// single request is then served without waiting for its socket. It need not enter and leave epoll:
/// two of ten system calls. One read is tried immediately; a caller that wants to read again has to
/// wait anyway.
#[derive(Debug)]
pub(crate) struct LateSocket(SocketState);

#[derive(Debug)]
enum SocketState {
    /// The runtime does not know the socket.
    Early {
        socket: net::TcpStream,
        /// True once the immediate read was made.
        is_read: bool,
    },
    Registered(TcpStream),
    /// The registration failed.
    Lost,
}

impl LateSocket {
    /// Wraps a non-blocking socket.
    pub(crate) fn new(socket: net::TcpStream) -> Self {
        let is_read = false;
        Self(SocketState::Early { socket, is_read })
    }

    /// Like [`TcpStream::local_addr`].
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            SocketState::Early { socket, .. } => socket.local_addr(),
            SocketState::Registered(socket) => socket.local_addr(),
            SocketState::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Like [`TcpStream::set_nodelay`].
    pub(crate) fn set_nodelay(&self, is_set: bool) -> io::Result<()> {
        self.options()?.set_tcp_nodelay(is_set)
    }

    /// Like [`TcpStream::set_zero_linger`].
    pub(crate) fn set_zero_linger(&self) -> io::Result<()> {
        self.options()?.set_linger(Some(Duration::ZERO))
    }

    /// The socket, if it is registered with the runtime.
    pub(crate) fn as_registered(&self) -> Option<&TcpStream> {
        match &self.0 {
            SocketState::Registered(socket) => Some(socket),
            SocketState::Early { .. } | SocketState::Lost => None,
        }
    }

    fn options(&self) -> io::Result<SockRef<'_>> {
        match &self.0 {
            SocketState::Early { socket, .. } => Ok(SockRef::from(socket)),
            SocketState::Registered(socket) => Ok(SockRef::from(socket)),
            SocketState::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// The socket, registered with the runtime.
    ///
    /// # Errors
    ///
    /// Fails if the registration fails, now or earlier.
    #[inline]
    fn registered(&mut self) -> io::Result<&mut TcpStream> {
        if let SocketState::Early { .. } = self.0 {
            self.register()?;
        }
        match &mut self.0 {
            SocketState::Registered(socket) => Ok(socket),
            SocketState::Early { .. } | SocketState::Lost => {
                Err(io::ErrorKind::NotConnected.into())
            }
        }
    }

    fn register(&mut self) -> io::Result<()> {
        // `Lost` stays if the registration fails, since `from_std` consumes the socket.
        if let SocketState::Early { socket, .. } = mem::replace(&mut self.0, SocketState::Lost) {
            self.0 = SocketState::Registered(TcpStream::from_std(socket)?);
        }
        Ok(())
    }

    /// Makes the immediate read, unless it was made already. `None` if the caller has to wait.
    #[inline]
    fn read_early(
        &mut self,
        read: impl FnOnce(&net::TcpStream) -> rustix::io::Result<usize>,
    ) -> Option<io::Result<usize>> {
        match &mut self.0 {
            SocketState::Early { socket, is_read } if !*is_read => {
                *is_read = true;
                unless_blocked(read(socket))
            }
            _ => None,
        }
    }

    /// Writes at once. `None` if the caller has to wait.
    #[inline]
    fn write_early(&self, slices: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
        let SocketState::Early { socket, .. } = &self.0 else {
            return None;
        };
        unless_blocked(match slices {
            [only] => send(socket, only, SendFlags::NOSIGNAL),
            several => writev(socket, several),
        })
    }
}

#[inline]
fn unless_blocked(result: rustix::io::Result<usize>) -> Option<io::Result<usize>> {
    match result {
        // After an interrupt the usual way tries again.
        Err(Errno::WOULDBLOCK | Errno::INTR) => None,
        result => Some(result.map_err(io::Error::from)),
    }
}

impl ByteStream for LateSocket {
    #[inline]
    fn is_early(&self) -> bool {
        matches!(self.0, SocketState::Early { .. })
    }

    fn has_come_early(&self) -> bool {
        match &self.0 {
            // Peeks, so that the bytes stay for the next read.
            SocketState::Early { socket, .. } => socket.peek(&mut [0]).is_ok_and(|count| count > 0),
            _ => false,
        }
    }

    #[inline]
    fn may_be_readable(&self) -> bool {
        match &self.0 {
            SocketState::Early { is_read, .. } => !is_read,
            SocketState::Registered(socket) => socket.may_be_readable(),
            SocketState::Lost => true,
        }
    }

    #[inline]
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {
            SocketState::Early { is_read: false, .. } => Poll::Ready(Ok(())),
            _ => self.registered()?.poll_readable(cx),
        }
    }

    #[inline]
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        // The usual state after the first wait.
        if let SocketState::Registered(socket) = &mut self.0 {
            return socket.poll_fill(cx, buffer);
        }
        let read = |socket: &net::TcpStream| {
            recv(socket, spare_capacity(buffer), RecvFlags::empty()).map(|(_, read)| read)
        };
        match self.read_early(read) {
            Some(result) => Poll::Ready(result),
            None => self.registered()?.poll_fill(cx, buffer),
        }
    }

    #[inline]
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let SocketState::Registered(socket) = &mut self.0 {
            return socket.poll_send(cx, slices);
        }
        match self.write_early(slices) {
            Some(result) => Poll::Ready(result),
            None => self.registered()?.poll_send(cx, slices),
        }
    }
}

impl AsyncRead for LateSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = |socket: &net::TcpStream| {
            recv(socket, buffer.initialize_unfilled(), RecvFlags::empty()).map(|(read, _)| read)
        };
        match self.read_early(read) {
            Some(result) => {
                buffer.advance(result?);
                Poll::Ready(Ok(()))
            }
            None => Pin::new(self.registered()?).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for LateSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.write_early(slices) {
            Some(result) => Poll::Ready(result),
            None => Pin::new(self.registered()?).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket has no buffer to flush.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            SocketState::Early { socket, .. } => Poll::Ready(socket.shutdown(Shutdown::Write)),
            SocketState::Registered(socket) => Pin::new(socket).poll_shutdown(cx),
            SocketState::Lost => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// An accepted socket, and its client, which has sent `text`.
    async fn pair(text: &[u8]) -> (LateSocket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        client.write_all(text).await.unwrap();
        let accepted = listener.accept().await.unwrap().0.into_std().unwrap();
        (LateSocket::new(accepted), client)
    }

    async fn fill(socket: &mut LateSocket, room: usize) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(room);
        let read = poll_fn(|cx| socket.poll_fill(cx, &mut buffer)).await;
        assert_eq!(read.unwrap(), buffer.len());
        buffer
    }

    #[tokio::test]
    async fn who_sends_one_request_with_the_connection_is_never_waited_for() {
        let (mut socket, mut client) = pair(b"request").await;
        assert!(socket.may_be_readable());
        poll_fn(|cx| socket.poll_readable(cx)).await.unwrap();
        assert_eq!(fill(&mut socket, 64).await, b"request");
        assert!(!socket.may_be_readable());
        for slices in [&["a"][..], &["b", "c"]] {
            let slices: Vec<_> = slices.iter().map(|s| IoSlice::new(s.as_bytes())).collect();
            let sent = poll_fn(|cx| socket.poll_send(cx, &slices)).await.unwrap();
            assert_eq!(sent, slices.len());
        }
        assert!(socket.is_early());
        socket.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "abc");
        assert!(socket.is_early());
    }

    #[tokio::test]
    async fn what_comes_after_the_first_read_is_waited_for_and_loses_nothing() {
        let (mut socket, mut client) = pair(b"one").await;
        assert_eq!(fill(&mut socket, 2).await, b"on", "there is more");
        assert_eq!(fill(&mut socket, 2).await, b"e");
        assert!(!socket.is_early());
        let waiting = async {
            poll_fn(|cx| socket.poll_readable(cx)).await.unwrap();
            fill(&mut socket, 64).await
        };
        let sending = client.write_all(b"two");
        let (read, sent) = tokio::join!(waiting, sending);
        sent.unwrap();
        assert_eq!(read, b"two");
        drop(client);
        assert_eq!(fill(&mut socket, 64).await, b"", "the end");
    }

    #[tokio::test]
    async fn who_says_nothing_yet_is_waited_for() {
        let (mut socket, mut client) = pair(b"").await;
        poll_fn(|cx| socket.poll_readable(cx)).await.unwrap();
        let mut buffer = Vec::with_capacity(64);
        let polled = poll_fn(|cx| Poll::Ready(socket.poll_fill(cx, &mut buffer))).await;
        assert!(polled.is_pending());
        assert!(!socket.is_early());
        client.write_all(b"late").await.unwrap();
        assert_eq!(fill(&mut socket, 64).await, b"late");
    }

    #[tokio::test]
    async fn who_does_not_take_what_is_written_is_waited_for() {
        let (mut socket, mut client) = pair(b"").await;
        // More than the system buffers for a connection.
        let sent = vec![7; 32 << 20];
        let mut received = Vec::new();
        let writing = async {
            socket.write_all(&sent).await.unwrap();
            assert!(!socket.is_early());
            drop(socket);
        };
        let (_, read) = tokio::join!(writing, client.read_to_end(&mut received));
        read.unwrap();
        assert!(received == sent);
    }

    #[tokio::test]
    async fn it_is_an_ordinary_stream_as_well() {
        let (mut socket, mut client) = pair(b"one").await;
        for text in [b"one", b"two"] {
            let mut read = [0; 3];
            socket.read_exact(&mut read).await.unwrap();
            assert_eq!(&read, text);
            socket.write_all(text).await.unwrap();
            let mut echo = [0; 3];
            client.read_exact(&mut echo).await.unwrap();
            assert_eq!(&echo, text);
            client.write_all(b"two").await.unwrap();
        }
    }
}
