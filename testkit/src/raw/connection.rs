use std::io;
use std::ops::{Deref, DerefMut};

use tokio::net::TcpStream;

use super::{RawStream, Recording, RequestHead};
use crate::traffic::Traffic;

/// The server's end of a connection, for a script of a [`RawOrigin`](super::RawOrigin).
///
/// All methods of [`RawStream`] are available by dereference. Reads wait without limit: a script
/// ends with its origin.
#[derive(Debug)]
pub struct RawConnection {
    stream: RawStream,
    index: u64,
    traffic: Traffic,
}

impl RawConnection {
    pub(super) fn new(
        tcp: TcpStream,
        index: u64,
        traffic: Traffic,
        recording: Recording,
    ) -> io::Result<Self> {
        let stream = RawStream::accepted(tcp, recording)?;
        Ok(Self {
            stream,
            index,
            traffic,
        })
    }

    /// 0 for the first connection that the origin accepted.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Reads a request up to the empty line, without validation, and counts it.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the client ends before, which ends a loop over requests; `InvalidData`
    /// after 4 MiB.
    pub async fn read_request(&mut self) -> io::Result<RequestHead> {
        let bytes = self.stream.read_until(b"\r\n\r\n").await?;
        self.count_request();
        Ok(RequestHead::lenient(bytes))
    }

    /// Adds a request to the origin's [`Counts`](crate::Counts), for scripts that do not use
    /// [`read_request`](Self::read_request).
    pub fn count_request(&self) {
        self.traffic.request();
    }

    /// Reads the body of `head`: chunked, by length, or none. Returns the content without chunk
    /// framing.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if it is truncated; `InvalidData` if chunks are malformed, or after 64 MiB.
    pub async fn read_body(&mut self, head: &RequestHead) -> io::Result<Vec<u8>> {
        if head.is_chunked() {
            return self.stream.read_chunked().await.map(|body| body.content);
        }
        let length = head
            .header("content-length")
            .and_then(|length| length.parse().ok());
        self.stream.read_exact(length.unwrap_or(0)).await
    }

    /// Reads a request with its body.
    ///
    /// # Errors
    ///
    /// As for [`read_request`](Self::read_request) and [`read_body`](Self::read_body).
    pub async fn read_whole_request(&mut self) -> io::Result<(RequestHead, Vec<u8>)> {
        let head = self.read_request().await?;
        let body = self.read_body(&head).await?;
        Ok((head, body))
    }
}

impl Deref for RawConnection {
    type Target = RawStream;

    fn deref(&self) -> &RawStream {
        &self.stream
    }
}

impl DerefMut for RawConnection {
    fn deref_mut(&mut self) -> &mut RawStream {
        &mut self.stream
    }
}
