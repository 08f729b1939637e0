//! Batches of output for one system call.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use crate::stream::ByteStream;

/// Data up to this size is copied, which is cheaper than its own slice.
const COPIED: usize = 2 * 1024;

/// Maximum number of pieces that are not copied.
const PIECES: usize = 16;

/// Output for one system call, if the socket accepts it: heads, framing and small data in a buffer,
/// large data by reference.
#[derive(Debug)]
pub(super) struct Batch {
    /// Large data, each with its position in the buffer.
    pieces: Vec<(usize, Bytes)>,
    /// Sum of the sizes of all pieces.
    large: usize,
    written: usize,
    /// Number of bytes from which the batch is written.
    most: usize,
}

impl Batch {
    pub(super) fn new(most: usize) -> Self {
        Self {
            pieces: Vec::new(),
            large: 0,
            written: 0,
            most,
        }
    }

    /// True if the batch should be written before more is added.
    pub(super) fn is_full(&self, buffer: &[u8]) -> bool {
        self.pieces.len() == PIECES || self.large + buffer.len() >= self.most
    }

    /// Appends data.
    pub(super) fn push(&mut self, buffer: &mut Vec<u8>, data: Bytes) {
        // A copy of a few bytes costs less than another slice.
        if data.len() <= COPIED {
            buffer.extend_from_slice(&data);
        } else {
            self.large += data.len();
            self.pieces.push((buffer.len(), data));
        }
    }

    /// Writes the whole batch. Batch and buffer are empty afterwards.
    pub(super) fn poll_write<T: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut T,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<()>> {
        let whole = self.large + buffer.len();
        while self.written < whole {
            // A part of the buffer in front of each piece, and one behind the last.
            let mut slices = [IoSlice::new(&[]); 2 * PIECES + 1];
            let count = self.slices(buffer, &mut slices);
            match ready!(io.poll_send(cx, &slices[..count]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        buffer.clear();
        self.pieces.clear();
        self.large = 0;
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Memory of batch and buffer, in bytes.
    pub(super) fn memory(&self, buffer: &Vec<u8>) -> usize {
        self.large + buffer.capacity()
    }

    /// Number of bytes that are not written yet.
    pub(super) fn unwritten(&self, buffer: &[u8]) -> usize {
        self.large + buffer.len() - self.written
    }

    /// Collects the unwritten slices in order. Returns their number.
    fn slices<'a>(&'a self, buffer: &'a [u8], slices: &mut [IoSlice<'a>; 2 * PIECES + 1]) -> usize {
        // Bytes that the socket took in an earlier call.
        let mut skip = self.written;
        let mut count = 0;
        let mut put = |part: &'a [u8]| {
            let skipped = skip.min(part.len());
            skip -= skipped;
            if skipped < part.len() {
                slices[count] = IoSlice::new(&part[skipped..]);
                count += 1;
            }
        };
        let mut from = 0;
        for (place, piece) in &self.pieces {
            put(&buffer[from..*place]);
            put(piece);
            from = *place;
        }
        put(&buffer[from..]);
        count
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;

    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

    use super::*;

    /// Accepts a limited number of bytes per call, and counts the calls.
    struct Slow {
        most: usize,
        taken: Vec<u8>,
        calls: usize,
    }

    impl ByteStream for Slow {}

    impl AsyncRead for Slow {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Slow {
        fn poll_write(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let before = self.taken.len();
            let whole: Vec<u8> = slices
                .iter()
                .flat_map(|slice| slice.iter().copied())
                .collect();
            let most = self.most.min(whole.len());
            self.taken.extend_from_slice(&whole[..most]);
            self.calls += 1;
            Poll::Ready(Ok(self.taken.len() - before))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn pieces_keep_their_order_wherever_the_socket_stops() {
        let large = |byte| Bytes::from(vec![byte; COPIED + 1]);
        for most in [1, 1000, COPIED, usize::MAX] {
            let (mut batch, mut buffer) = (Batch::new(usize::MAX), b"head".to_vec());
            let mut expected = buffer.clone();
            for data in [
                large(b'a'),
                large(b'b'),
                Bytes::from_static(b"c"),
                large(b'd'),
            ] {
                expected.extend_from_slice(&data);
                batch.push(&mut buffer, data);
            }
            buffer.extend_from_slice(b"end");
            expected.extend_from_slice(b"end");
            let mut io = Slow {
                most,
                taken: Vec::new(),
                calls: 0,
            };
            poll_fn(|cx| batch.poll_write(cx, &mut io, &mut buffer))
                .await
                .unwrap();
            assert_eq!(io.taken, expected);
            assert_eq!(io.calls, expected.len().div_ceil(most));
            assert!(buffer.is_empty() && !batch.is_full(&buffer));
        }
    }

    #[tokio::test]
    async fn it_is_full_at_its_bounds() {
        let (mut batch, mut buffer) = (Batch::new(10), Vec::new());
        batch.push(&mut buffer, Bytes::from_static(b"123456789"));
        assert!(!batch.is_full(&buffer));
        batch.push(&mut buffer, Bytes::from_static(b"0"));
        assert!(batch.is_full(&buffer));

        let (mut batch, mut buffer) = (Batch::new(usize::MAX), Vec::new());
        for _ in 0..PIECES {
            assert!(!batch.is_full(&buffer));
            batch.push(&mut buffer, Bytes::from(vec![0; COPIED + 1]));
        }
        assert!(batch.is_full(&buffer));
        let (mut near, mut far) = tokio::io::duplex(1 << 20);
        poll_fn(|cx| batch.poll_write(cx, &mut near, &mut buffer))
            .await
            .unwrap();
        drop(near);
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), PIECES * (COPIED + 1));
    }
}
