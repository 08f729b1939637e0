//! Complete writes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::ByteStream;

/// Writes `first` and then `second`, in one call if the system accepts both, and flushes.
///
/// Not cancel safe: after a drop, a part may have been written.
#[cfg(feature = "server")]
pub(crate) async fn write_all<T: ByteStream>(
    io: &mut T,
    first: &[u8],
    second: &[u8],
) -> io::Result<()> {
    let mut written = 0;
    std::future::poll_fn(|cx| poll_write_all(io, cx, [first, second], &mut written)).await
}

/// Like [`write_all`], as a poll function for any number of parts. `written` holds the progress
/// between calls.
#[inline]
pub(crate) fn poll_write_all<T: ByteStream, const PARTS: usize>(
    io: &mut T,
    cx: &mut Context<'_>,
    parts: [&[u8]; PARTS],
    written: &mut usize,
) -> Poll<io::Result<()>> {
    let all = parts.iter().map(|part| part.len()).sum();
    while *written < all {
        let mut before = *written;
        let mut slices = [IoSlice::new(&[]); PARTS];
        let mut count = 0;
        for part in parts {
            let rest = &part[before.min(part.len())..];
            before = before.saturating_sub(part.len());
            if !rest.is_empty() {
                slices[count] = IoSlice::new(rest);
                count += 1;
            }
        }
        match ready!(io.poll_send(cx, &slices[..count]))? {
            // As `write_all` of the standard library does.
            0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            taken => *written += taken,
        }
    }
    Pin::new(io).poll_flush(cx)
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;

    #[tokio::test]
    async fn both_parts_arrive_in_order_however_little_the_socket_takes() {
        let (mut near, mut far) = duplex(3);
        let writing = tokio::spawn(async move {
            for (first, second) in [
                (&b"head"[..], &b"body and more"[..]),
                (b"", b"x"),
                (b"y", b""),
            ] {
                write_all(&mut near, first, second).await.unwrap();
            }
        });
        let mut read = String::new();
        far.read_to_string(&mut read).await.unwrap();
        writing.await.unwrap();
        assert_eq!(read, "headbody and morexy");
    }
}
