//! Between a socket and who parses: that one asks for reads, and consumes; the memory is the thread's.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::AsyncReadExt;

use super::ByteStream;
use super::spare::{self, LARGE, MOST_COPIED, SMALL};

/// The part of a buffer up to which its content is copied rather than given away with it: a copy is cheaper then, and holds less.
const COPIED: usize = 4;

/// What was read from a socket and has not been used yet.
///
/// It has no memory while nothing is in it and nothing comes, so that idle connections cost none. It begins with 32 KiB,
/// has 256 KiB once a read has filled that, and begins with those as long as reads need them, unless memory is
/// [tight](spare::set_tight). A message whose head does not fit makes it grow further: who parses knows when that is enough.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    /// What comes before has been used.
    start: usize,
    /// The last read filled all there was, or more than a small buffer has.
    is_large: bool,
}

impl ReadBuffer {
    /// A buffer in which `bytes` are, which were read before.
    #[cfg(test)]
    pub(crate) fn with(bytes: &[u8]) -> Self {
        let mut buffer = Self::default();
        if !bytes.is_empty() {
            buffer.bytes = spare::take(SMALL);
            buffer.bytes.extend_from_slice(bytes);
        }
        buffer
    }

    /// What is there to be used.
    #[inline]
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Whether nothing is there.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// Bytes of memory that it has.
    #[cfg(feature = "server")]
    #[inline]
    pub(crate) fn memory(&self) -> u64 {
        self.bytes.capacity() as u64
    }

    /// Whether more can be read without more memory than an empty buffer takes, or this one has.
    #[cfg(feature = "server")]
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.is_empty() || self.bytes.len() < self.bytes.capacity()
    }

    /// The first `count` bytes have been used.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        assert!(count <= self.bytes.len() - self.start, "more than there is");
        self.start += count;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    /// The first `count` bytes, for who keeps them longer than this buffer does.
    pub(crate) fn take(&mut self, count: usize) -> Bytes {
        let is_all = count == self.filled().len();
        if !is_all || count < self.bytes.capacity() / COPIED {
            let taken = Bytes::copy_from_slice(&self.filled()[..count]);
            self.consume(count);
            return taken;
        }
        let start = std::mem::take(&mut self.start);
        Bytes::from(std::mem::take(&mut self.bytes)).slice(start..)
    }

    /// The same of a head, of which parts are kept for themselves: there is one to a message, so that it may hold a little
    /// more memory than it needs.
    pub(crate) fn take_head(&mut self, count: usize) -> Bytes {
        if count > MOST_COPIED {
            return self.take(count);
        }
        let head = spare::copy(&self.filled()[..count]);
        self.consume(count);
        head
    }

    /// Gives the memory back, if nothing is there.
    #[inline]
    pub(crate) fn rest(&mut self) {
        if self.is_empty() && self.bytes.capacity() > 0 {
            self.start = 0;
            spare::give_back(std::mem::take(&mut self.bytes));
        }
    }

    /// Reads what has come, behind what is there, and returns how much it was; 0 at the end of the stream.
    ///
    /// While it waits with nothing there, it holds no memory. Cancel-safe.
    #[inline]
    pub(crate) fn poll_read<T: ByteStream>(
        &mut self,
        io: &mut T,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        ready!(io.poll_readable(cx))?;
        self.poll_fill(io, cx)
    }

    /// The same of a stream that is worth to read. Apart, since most looks find that nothing has come.
    #[inline(never)]
    fn poll_fill<T: ByteStream>(
        &mut self,
        io: &mut T,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.make_room();
        let room = self.bytes.capacity() - self.bytes.len();
        let polled = match self.is_large {
            // It takes from the task's budget: a transfer can be without end.
            true => pin!(io.read_buf(&mut self.bytes)).poll(cx),
            false => io.poll_fill(cx, &mut self.bytes),
        };
        if polled.is_pending() {
            // Even a new socket may say once that it is readable when it is not.
            self.rest();
        }
        let count = ready!(polled)?;
        self.is_large = (count == room || count > SMALL) && !spare::is_tight();
        Poll::Ready(Ok(count))
    }

    #[inline]
    fn make_room(&mut self) {
        if self.bytes.capacity() == 0 {
            self.bytes = spare::take(if self.is_large { LARGE } else { SMALL });
        } else if self.is_large
            || self.bytes.len() == self.bytes.capacity()
            || self.bytes.capacity() > SMALL
        {
            self.make_more_room();
        }
    }

    fn make_more_room(&mut self) {
        let unused = self.bytes.len() - self.start;
        if self.is_large && unused == 0 && self.bytes.capacity() < LARGE {
            // The second read is about to fill it as well, or will show that the first one was all.
            spare::give_back(std::mem::replace(&mut self.bytes, spare::take(LARGE)));
            self.start = 0;
        } else if !self.is_large
            && unused == 0
            && self.bytes.capacity() > SMALL
            && spare::is_tight()
        {
            spare::give_back(std::mem::replace(&mut self.bytes, spare::take(SMALL)));
            self.start = 0;
        } else if self.bytes.len() == self.bytes.capacity() {
            if self.start > 0 {
                self.bytes.copy_within(self.start.., 0);
                self.bytes.truncate(unused);
                self.start = 0;
            }
            if unused * 2 > self.bytes.capacity() {
                self.bytes.reserve(self.bytes.capacity());
            }
        }
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        spare::give_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    async fn read(buffer: &mut ReadBuffer, io: &mut impl ByteStream) -> usize {
        poll_fn(|cx| buffer.poll_read(io, cx)).await.unwrap()
    }

    #[tokio::test]
    async fn an_idle_connection_holds_no_memory() {
        let (mut near, mut far) = duplex(64);
        let mut buffer = ReadBuffer::default();
        let polled = poll_fn(|cx| Poll::Ready(buffer.poll_read(&mut near, cx).is_pending()));
        assert!(polled.await);
        assert_eq!(buffer.bytes.capacity(), 0);
        far.write_all(b"head").await.unwrap();
        assert_eq!(read(&mut buffer, &mut near).await, 4);
        buffer.consume(4);
        buffer.rest();
        assert_eq!(buffer.bytes.capacity(), 0);
    }

    #[tokio::test]
    async fn what_is_there_stays_while_more_comes() {
        let (mut near, mut far) = duplex(1 << 20);
        let sent: Vec<u8> = (0..100_000_u32).map(|i| i as u8).collect();
        far.write_all(&sent).await.unwrap();
        let mut buffer = ReadBuffer::default();
        while buffer.filled().len() < sent.len() {
            read(&mut buffer, &mut near).await;
        }
        assert_eq!(buffer.filled(), sent);
        let whole = buffer.take(sent.len());
        assert_eq!(whole, sent);
        assert!(buffer.is_empty());
    }

    #[tokio::test]
    async fn a_transfer_that_fills_it_makes_it_large_and_its_end_small() {
        let (mut near, mut far) = duplex(1 << 20);
        far.write_all(&vec![7; 1 << 20]).await.unwrap();
        let mut buffer = ReadBuffer::default();
        let mut reads = Vec::new();
        let mut left = 1 << 20;
        while left > 0 {
            let count = read(&mut buffer, &mut near).await;
            reads.push(count);
            buffer.consume(count);
            left -= count;
        }
        assert_eq!(reads[..2], [SMALL, LARGE]);
        assert!(reads.len() < 8, "{reads:?}");
        // The first read of what follows shows that it is small.
        for (capacity, text) in [(LARGE, b"next"), (SMALL, b"last")] {
            buffer.rest();
            far.write_all(text).await.unwrap();
            let count = read(&mut buffer, &mut near).await;
            buffer.consume(count);
            assert_eq!(buffer.bytes.capacity(), capacity);
        }
    }

    #[tokio::test]
    async fn a_transfer_that_is_handed_over_makes_it_large_as_well() {
        let (mut near, mut far) = duplex(1 << 20);
        far.write_all(&vec![7; 1 << 20]).await.unwrap();
        let mut buffer = ReadBuffer::default();
        assert_eq!(read(&mut buffer, &mut near).await, SMALL);
        assert_eq!(buffer.take(SMALL).len(), SMALL);
        assert_eq!(read(&mut buffer, &mut near).await, LARGE);
        buffer.consume(LARGE);
        buffer.rest();
        read(&mut buffer, &mut near).await;
        assert_eq!(buffer.bytes.capacity(), LARGE, "the transfer goes on");
    }

    #[cfg(feature = "server")]
    #[tokio::test]
    async fn a_transfer_stays_small_where_memory_is_tight() {
        let (mut near, mut far) = duplex(1 << 21);
        far.write_all(&vec![7; 1 << 20]).await.unwrap();
        let mut buffer = ReadBuffer::default();
        assert_eq!(read(&mut buffer, &mut near).await, SMALL);
        buffer.consume(SMALL);
        assert_eq!(read(&mut buffer, &mut near).await, LARGE);
        buffer.consume(LARGE);
        spare::set_tight(true);
        let reads = [(); 3].map(|()| ());
        let mut counts = Vec::new();
        for () in reads {
            let count = read(&mut buffer, &mut near).await;
            counts.push((count, buffer.bytes.capacity()));
            buffer.consume(count);
        }
        spare::set_tight(false);
        // What was decided before holds for one more read.
        assert_eq!(counts[0], (LARGE, LARGE));
        assert_eq!(counts[1..], [(SMALL, SMALL); 2]);
        // The buffer is full, so the next read may be large again.
        assert_eq!(read(&mut buffer, &mut near).await, SMALL);
        buffer.consume(SMALL);
        assert_eq!(read(&mut buffer, &mut near).await, LARGE);
    }

    #[test]
    fn little_of_a_large_buffer_does_not_hold_it() {
        let mut buffer = ReadBuffer::default();
        buffer.bytes = spare::take(LARGE);
        buffer.bytes.extend_from_slice(&[1; LARGE / 4 - 1]);
        let place = buffer.filled().as_ptr();
        let taken = buffer.take(LARGE / 4 - 1);
        assert_ne!(taken.as_ptr(), place);
        assert_eq!(buffer.bytes.capacity(), LARGE, "it is used again");
    }

    #[test]
    fn a_small_part_is_copied_and_a_large_whole_is_handed_over() {
        let mut buffer = ReadBuffer::with(&[1; 10_000]);
        assert_eq!(buffer.take(10), [1; 10].as_slice());
        assert_eq!(buffer.filled().len(), 9_990);
        let place = buffer.filled().as_ptr();
        let rest = buffer.take(9_990);
        assert_eq!(rest.as_ptr(), place);
        assert!(buffer.is_empty());
    }
}
