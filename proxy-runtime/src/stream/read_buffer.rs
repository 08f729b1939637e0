//! The buffer between a socket and a parser. The parser requests reads and consumes bytes; the
//! memory belongs to a pool of the thread.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::AsyncReadExt;

use super::ByteStream;
use super::recycled::{self, LARGE, LITTLE, MEDIUM, MOST_COPIED, SMALL, Taking};

/// The divisor of the capacity below which content is copied. A copy of little content is cheaper
/// than giving the buffer away, and holds less memory.
const COPIED: usize = 2;

/// Bytes that were read from a socket and not consumed yet.
///
/// Has no memory while it is empty and no data arrives, so idle connections cost none. It begins
/// with 32 KiB, grows to 256 KiB (64 KiB for [a client with other responses](Taking::Much)) once a read has filled
/// that, and keeps that size while reads need it, unless memory is [tight](recycled::set_tight). A longer head makes it
/// grow further; the parser limits the growth.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    /// The start of the unconsumed bytes.
    start: usize,
    /// The size of the next read.
    next: Size,
    /// Bytes of the buffer that was given away by the last [`take`](Self::take), beyond its content.
    #[cfg(all(feature = "http2", feature = "server"))]
    given: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Size {
    #[default]
    Small,
    /// After a read that called for a large one, for a client that has other responses as well.
    Medium,
    /// After a read that filled the buffer, or brought more than a small one holds.
    Large,
}

impl Size {
    #[inline]
    fn bytes(self) -> usize {
        match self {
            Self::Small => SMALL,
            Self::Medium => MEDIUM,
            Self::Large => LARGE,
        }
    }
}

impl ReadBuffer {
    /// A buffer that contains `bytes`.
    #[cfg(test)]
    pub(crate) fn with(bytes: &[u8]) -> Self {
        let mut buffer = Self::default();
        if !bytes.is_empty() {
            buffer.bytes = recycled::take(SMALL);
            buffer.bytes.extend_from_slice(bytes);
        }
        buffer
    }

    /// The unconsumed bytes.
    #[inline]
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// True if no unconsumed bytes are left.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// The allocated memory in bytes.
    #[cfg(feature = "server")]
    #[inline]
    pub(crate) fn memory(&self) -> u64 {
        self.bytes.capacity() as u64
    }

    /// True if a read needs no more memory than an empty buffer takes, or than this one has.
    #[cfg(feature = "server")]
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.is_empty() || self.bytes.len() < self.bytes.capacity()
    }

    /// Consumes the first `count` bytes.
    ///
    /// # Panics
    ///
    /// Panics if there are fewer bytes.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        assert!(count <= self.bytes.len() - self.start, "more than there is");
        self.start += count;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    /// Takes the first `count` bytes as a value that may outlive this buffer.
    pub(crate) fn take(&mut self, count: usize) -> Bytes {
        let is_all = count == self.filled().len();
        // Gives the buffer away only if that wastes little of it.
        if !is_all || count < self.bytes.capacity() / COPIED {
            let taken = Bytes::copy_from_slice(&self.filled()[..count]);
            self.consume(count);
            self.note_given(0);
            return taken;
        }
        let start = std::mem::take(&mut self.start);
        self.note_given(self.bytes.capacity() - count);
        Bytes::from(std::mem::take(&mut self.bytes)).slice(start..)
    }

    #[inline]
    #[cfg_attr(
        not(all(feature = "http2", feature = "server")),
        expect(clippy::unused_self, reason = "for responses that share a connection")
    )]
    fn note_given(&mut self, bytes: usize) {
        #[cfg(all(feature = "http2", feature = "server"))]
        {
            self.given = bytes as u32;
        }
        #[cfg(not(all(feature = "http2", feature = "server")))]
        let _ = bytes;
    }

    /// Returns the bytes that the value of the last [`take`](Self::take) keeps in memory beyond itself, once.
    #[cfg(all(feature = "http2", feature = "server"))]
    #[inline]
    pub(crate) fn take_given(&mut self) -> u32 {
        std::mem::take(&mut self.given)
    }

    /// Like [`take`](Self::take), for a head. Parts of a head are kept one by one; there is one
    /// head per message, so it may hold a little more memory than it needs.
    pub(crate) fn take_head(&mut self, count: usize) -> Bytes {
        if count > MOST_COPIED {
            return self.take(count);
        }
        let head = recycled::copy(&self.filled()[..count]);
        self.consume(count);
        head
    }

    /// Releases the memory if the buffer is empty.
    #[inline]
    pub(crate) fn rest(&mut self) {
        if self.is_empty() && self.bytes.capacity() > 0 {
            self.start = 0;
            recycled::release(std::mem::take(&mut self.bytes));
        }
    }

    /// Limits the next read to what the client takes.
    #[inline]
    pub(crate) fn limit(&mut self, taking: Taking) {
        if taking != Taking::All && self.next != Size::Small {
            self.next = match taking {
                Taking::All | Taking::Much => Size::Medium,
                Taking::Little | Taking::Nothing => Size::Small,
            };
            if self.bytes.capacity() > self.next.bytes() {
                self.rest();
            }
        }
    }

    /// Reads behind the unconsumed bytes. Returns the number of bytes; 0 at the end of the stream.
    ///
    /// Holds no memory while it waits with an empty buffer. Cancel safe.
    #[inline]
    pub(crate) fn poll_read<T: ByteStream>(
        &mut self,
        io: &mut T,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match io.poll_readable(cx) {
            Poll::Ready(is_readable) => is_readable?,
            Poll::Pending => {
                self.rest();
                return Poll::Pending;
            }
        }
        self.poll_fill(io, cx)
    }

    /// Like [`poll_read`](Self::poll_read), for a client that takes so much of what follows the head.
    #[inline]
    pub(crate) fn poll_read_head<T: ByteStream>(
        &mut self,
        io: &mut T,
        cx: &mut Context<'_>,
        taking: impl FnOnce() -> Taking,
    ) -> Poll<io::Result<usize>> {
        ready!(io.poll_readable(cx))?;
        match taking() {
            Taking::Nothing => self.poll_fill_little(io, cx),
            taking => {
                self.limit(taking);
                self.poll_fill(io, cx)
            }
        }
    }

    #[cold]
    fn poll_fill_little<T: ByteStream>(
        &mut self,
        io: &mut T,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.next = Size::Small;
        self.rest();
        match self.bytes.capacity() {
            0 => self.bytes = Vec::with_capacity(LITTLE),
            // A longer head makes it grow.
            _ => self.make_room_behind(),
        }
        let polled = io.poll_fill(cx, &mut self.bytes);
        if polled.is_pending() {
            self.rest();
        }
        polled
    }

    /// Reads from a stream that is probably readable. Not inlined, since most polls find no data.
    #[inline(never)]
    fn poll_fill<T: ByteStream>(
        &mut self,
        io: &mut T,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.make_room();
        let room = self.bytes.capacity() - self.bytes.len();
        let polled = match self.next {
            // Uses the task's budget: a transfer can be endless, and must yield to other tasks.
            Size::Medium | Size::Large => pin!(io.read_buf(&mut self.bytes)).poll(cx),
            Size::Small => io.poll_fill(cx, &mut self.bytes),
        };
        if polled.is_pending() {
            // A new socket may report readiness once without data.
            self.rest();
        }
        let count = ready!(polled)?;
        let has_filled = count == room && self.bytes.capacity() >= SMALL;
        self.next = match (has_filled || count > SMALL) && !recycled::is_tight() {
            true => Size::Large,
            false => Size::Small,
        };
        Poll::Ready(Ok(count))
    }

    #[inline]
    fn make_room(&mut self) {
        if self.bytes.capacity() == 0 {
            self.bytes = recycled::take(self.next.bytes());
        } else if self.next != Size::Small
            || self.bytes.len() == self.bytes.capacity()
            || self.bytes.capacity() != SMALL
        {
            self.make_more_room();
        }
    }

    fn make_more_room(&mut self) {
        let unused = self.bytes.len() - self.start;
        let wanted = self.next.bytes();
        if self.next != Size::Small && unused == 0 && self.bytes.capacity() < wanted {
            // The second read will fill the large buffer as well, or show that the first read was
            // all.
            recycled::release(std::mem::replace(&mut self.bytes, recycled::take(wanted)));
            self.start = 0;
        } else if self.next == Size::Small
            && unused == 0
            && (self.bytes.capacity() < SMALL || recycled::is_tight())
        {
            // The client takes more than a head again, or memory has become tight since the buffer grew.
            recycled::release(std::mem::replace(&mut self.bytes, recycled::take(SMALL)));
            self.start = 0;
        } else {
            self.make_room_behind();
        }
    }

    /// Makes room behind unconsumed bytes that fill the buffer.
    fn make_room_behind(&mut self) {
        let unused = self.bytes.len() - self.start;
        if self.bytes.len() == self.bytes.capacity() {
            // Moves the content to the front before the buffer may grow.
            if self.start > 0 {
                self.bytes.copy_within(self.start.., 0);
                self.bytes.truncate(unused);
                self.start = 0;
            }
            // Grows only if the content fills more than half.
            if unused * 2 > self.bytes.capacity() {
                self.bytes.reserve(self.bytes.capacity());
            }
        }
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        recycled::release(std::mem::take(&mut self.bytes));
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
    async fn a_transfer_that_waits_holds_no_memory() {
        let (mut near, mut far) = duplex(1 << 20);
        let mut buffer = ReadBuffer::default();
        for _ in 0..3 {
            far.write_all(&[7; 2 * SMALL]).await.unwrap();
            let mut read_in_all = 0;
            while read_in_all < 2 * SMALL {
                let count = read(&mut buffer, &mut near).await;
                buffer.consume(count);
                read_in_all += count;
            }
            assert!(buffer.bytes.capacity() > 0);
            let polled = poll_fn(|cx| Poll::Ready(buffer.poll_read(&mut near, cx).is_pending()));
            assert!(polled.await);
            assert_eq!(buffer.bytes.capacity(), 0);
        }
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
        // The first read of the following data shows that it is small.
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
        recycled::set_tight(true);
        let reads = [(); 3].map(|()| ());
        let mut counts = Vec::new();
        for () in reads {
            let count = read(&mut buffer, &mut near).await;
            counts.push((count, buffer.bytes.capacity()));
            buffer.consume(count);
        }
        recycled::set_tight(false);
        // An earlier decision applies to one more read.
        assert_eq!(counts[0], (LARGE, LARGE));
        assert_eq!(counts[1..], [(SMALL, SMALL); 2]);
        // The buffer is full, so the next read may be large again.
        assert_eq!(read(&mut buffer, &mut near).await, SMALL);
        buffer.consume(SMALL);
        assert_eq!(read(&mut buffer, &mut near).await, LARGE);
    }

    #[tokio::test]
    async fn a_head_is_read_into_little_memory_and_grows_it_and_what_follows_is_read_as_ever() {
        let (mut near, mut far) = duplex(1 << 20);
        far.write_all(&[7; 200_000]).await.unwrap();
        let mut buffer = ReadBuffer::default();
        let head = async |buffer: &mut ReadBuffer, near: &mut _| {
            poll_fn(|cx| buffer.poll_read_head(near, cx, || Taking::Nothing)).await
        };
        assert_eq!(head(&mut buffer, &mut near).await.unwrap(), LITTLE);
        assert_eq!(buffer.bytes.capacity(), LITTLE);
        assert_eq!(head(&mut buffer, &mut near).await.unwrap(), LITTLE);
        assert_eq!(buffer.bytes.capacity(), 2 * LITTLE, "a longer head");
        buffer.consume(2 * LITTLE);
        assert_eq!(read(&mut buffer, &mut near).await, SMALL);
        buffer.consume(SMALL);
        assert!(read(&mut buffer, &mut near).await > SMALL);
        assert_eq!(buffer.bytes.capacity(), LARGE);
        buffer.consume(buffer.filled().len());
        buffer.limit(Taking::Little);
        far.write_all(&[7; 200_000]).await.unwrap();
        assert_eq!(read(&mut buffer, &mut near).await, SMALL);
        buffer.consume(SMALL);
        buffer.limit(Taking::Much);
        assert_eq!(read(&mut buffer, &mut near).await, MEDIUM);
        buffer.consume(MEDIUM);
        assert_eq!(buffer.bytes.capacity(), MEDIUM);
        buffer.limit(Taking::All);
        far.write_all(&[7; 300_000]).await.unwrap();
        assert_eq!(read(&mut buffer, &mut near).await, LARGE);
    }

    #[test]
    fn little_of_a_large_buffer_does_not_hold_it() {
        let mut buffer = ReadBuffer::default();
        buffer.bytes = recycled::take(LARGE);
        buffer.bytes.extend_from_slice(&[1; LARGE / 4 - 1]);
        let place = buffer.filled().as_ptr();
        let taken = buffer.take(LARGE / 4 - 1);
        assert_ne!(taken.as_ptr(), place);
        assert_eq!(buffer.bytes.capacity(), LARGE, "it is used again");
    }

    #[test]
    fn a_small_part_is_copied_and_a_large_whole_is_handed_over() {
        let mut buffer = ReadBuffer::with(&[1; 20_000]);
        assert_eq!(buffer.take(10), [1; 10].as_slice());
        assert_eq!(buffer.filled().len(), 19_990);
        let place = buffer.filled().as_ptr();
        let rest = buffer.take(19_990);
        assert_eq!(rest.as_ptr(), place);
        assert!(buffer.is_empty());
        #[cfg(all(feature = "http2", feature = "server"))]
        assert_eq!(
            [buffer.take_given(), buffer.take_given()],
            [SMALL as u32 - 19_990, 0]
        );
        // Less than half of the memory.
        let mut buffer = ReadBuffer::with(&[1; SMALL / 2 - 1]);
        let place = buffer.filled().as_ptr();
        assert_ne!(buffer.take(SMALL / 2 - 1).as_ptr(), place);
        #[cfg(all(feature = "http2", feature = "server"))]
        assert_eq!(buffer.take_given(), 0);
    }
}
