//! The fast path to sockets on Linux.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, writev};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::io::{AsyncReadExt, AsyncWrite, Interest};
use tokio::net::TcpStream;

use super::ByteStream;

/// Tries the system call directly if the socket is known to be ready: this covers most reads and
/// writes, and costs a third. Otherwise the caller waits in the usual way.
///
/// The direct call does not use the task's budget. Endless reads of large buffers must use the
/// usual way, as [`ReadBuffer`](super::ReadBuffer) does.
impl ByteStream for TcpStream {
    #[inline]
    fn may_be_readable(&self) -> bool {
        // The runtime's record of the readiness, without a system call.
        self.try_io(Interest::READABLE, || Ok(())).is_ok()
    }

    #[inline]
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.may_be_readable() {
            true => Poll::Ready(Ok(())),
            false => self.poll_read_ready(cx),
        }
    }

    #[inline]
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let room = buffer.capacity() - buffer.len();
        let read =
            || recv(&*self, spare_capacity(buffer), RecvFlags::empty()).map(|(_, read)| read);
        match attempt(&*self, Interest::READABLE, room, read) {
            Some(result) => Poll::Ready(result),
            None => pin!(self.read_buf(buffer)).poll(cx),
        }
    }

    #[inline]
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum();
        let attempted = attempt(&*self, Interest::WRITABLE, length, || match slices {
            [only] => send(&*self, only, SendFlags::NOSIGNAL),
            several => writev(&*self, several),
        });
        match (attempted, slices) {
            (Some(result), _) => Poll::Ready(result),
            (None, [only]) => Pin::new(self).poll_write(cx, only),
            (None, several) => Pin::new(self).poll_write_vectored(cx, several),
        }
    }
}

/// Calls `io` if the socket is known to be ready; returns `None` if not.
///
/// Epoll reports readiness once. A call that moves less than `most` shows that no more is
/// available, so the readiness is cleared, as after a call that would block; the next attempt then
/// costs no system call. Only the readiness from before the call is cleared, not a later event.
#[inline]
fn attempt(
    socket: &TcpStream,
    interest: Interest,
    most: usize,
    io: impl FnOnce() -> rustix::io::Result<usize>,
) -> Option<io::Result<usize>> {
    let mut done = Err(Errno::WOULDBLOCK);
    // The value is for the runtime only.
    let _ = socket.try_io(interest, || {
        done = io();
        match done {
            Err(Errno::WOULDBLOCK) => Err(io::ErrorKind::WouldBlock.into()),
            // 0 is the end of the stream, which stays readable.
            Ok(moved) if 0 < moved && moved < most => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    });
    match done {
        Err(Errno::WOULDBLOCK) => None,
        Err(error) => Some(Err(error.into())),
        Ok(moved) => Some(Ok(moved)),
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        (near.unwrap(), far.unwrap().0)
    }

    #[tokio::test]
    async fn a_short_read_shows_that_there_is_no_more() {
        let (mut near, mut far) = pair().await;
        let mut buffer = Vec::with_capacity(64);
        for text in [b"one", b"two"] {
            buffer.clear();
            far.write_all(text).await.unwrap();
            let count = poll_fn(|cx| near.poll_fill(cx, &mut buffer)).await.unwrap();
            assert_eq!((count, &*buffer), (3, &text[..]));
            assert!(!near.may_be_readable(), "it is known without a call");
        }
    }

    #[tokio::test]
    async fn a_full_read_leaves_the_rest_for_the_next() {
        let (mut near, mut far) = pair().await;
        far.write_all(b"abcdefgh").await.unwrap();
        let mut read = Vec::new();
        while read.len() < 8 {
            let mut buffer = Vec::with_capacity(3);
            poll_fn(|cx| near.poll_fill(cx, &mut buffer)).await.unwrap();
            read.extend_from_slice(&buffer);
        }
        assert_eq!(read, b"abcdefgh");
        drop(far);
        let mut buffer = Vec::with_capacity(3);
        for _ in 0..2 {
            let end = poll_fn(|cx| near.poll_fill(cx, &mut buffer)).await;
            assert_eq!(end.unwrap(), 0);
        }
    }

    #[tokio::test]
    async fn what_the_socket_does_not_take_is_waited_for() {
        let (mut near, mut far) = pair().await;
        // More than the system buffers for a connection.
        let sent = vec![7; 32 << 20];
        let mut written = 0;
        let mut is_full = false;
        let mut read = 0;
        while written < sent.len() {
            let rest = [IoSlice::new(&sent[written..]), IoSlice::new(&[])];
            let polled = poll_fn(|cx| Poll::Ready(near.poll_send(cx, &rest))).await;
            match polled {
                Poll::Ready(count) => written += count.unwrap(),
                Poll::Pending => {
                    is_full = true;
                    let mut buffer = vec![0; 4 << 20];
                    read += far.read(&mut buffer).await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        }
        drop(near);
        let mut rest = Vec::new();
        read += far.read_to_end(&mut rest).await.unwrap();
        assert_eq!(read, sent.len());
        assert!(is_full);
    }
}
