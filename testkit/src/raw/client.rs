use std::io;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use tokio::net::TcpStream;

use super::response::{Framing, RawResponse, ResponseHead};
use super::stream::{BODY_LIMIT, invalid};
use super::{Closed, RawStream};
use crate::time::{GUARD, within};

/// The client's end of a connection: sends any bytes, reads answers strictly.
///
/// Everything of [`RawStream`] is there by dereference. A read fails with [`TimedOut`](io::ErrorKind::TimedOut) when
/// nothing comes for [`GUARD`], in real time, so a paused clock may run as far as it likes.
#[derive(Debug)]
pub struct RawClient {
    stream: RawStream,
}

impl RawClient {
    /// Connects.
    ///
    /// # Errors
    ///
    /// Those of the socket; `TimedOut` after [`GUARD`].
    pub async fn connect(addr: SocketAddr) -> io::Result<Self> {
        let tcp = within(GUARD, TcpStream::connect(addr))
            .await
            .map_err(|elapsed| io::Error::new(io::ErrorKind::TimedOut, elapsed))??;
        let stream = RawStream::connected(tcp)?;
        Ok(Self { stream })
    }

    /// Connects, sends these bytes, and reads one answer to a GET. What the connection does afterwards is not looked at.
    ///
    /// # Errors
    ///
    /// As for [`connect`](Self::connect) and [`read_response`](Self::read_response).
    pub async fn exchange(addr: SocketAddr, request: impl AsRef<[u8]>) -> io::Result<RawResponse> {
        let mut client = Self::connect(addr).await?;
        client.write_all(request).await?;
        client.read_response().await
    }

    /// Reads the next head, interim (1xx) or final.
    ///
    /// # Errors
    ///
    /// `InvalidData` when it breaks RFC 9112 4 or 5, or after 4 MiB; `UnexpectedEof` when the server ends before.
    pub async fn read_response_head(&mut self) -> io::Result<ResponseHead> {
        let bytes = self.stream.read_until(b"\r\n\r\n").await?;
        ResponseHead::strict(bytes)
    }

    /// Reads a whole answer to a request that was not HEAD, with the interim answers before it.
    ///
    /// # Errors
    ///
    /// As for [`read_response_to`](Self::read_response_to).
    pub async fn read_response(&mut self) -> io::Result<RawResponse> {
        self.read_response_to("GET").await
    }

    /// Reads a whole answer to a request with this method, with the interim answers before it. After 101 the connection
    /// belongs to the other protocol; there is no body then.
    ///
    /// # Errors
    ///
    /// `InvalidData` when head or body break RFC 9112, when the framing is ambiguous, after 64 MiB of body or 1,000 interim
    /// answers; `UnexpectedEof` when the server ends before the body does (what came of it stays in
    /// [`buffered`](RawStream::buffered) when its length was told).
    pub async fn read_response_to(&mut self, method: &str) -> io::Result<RawResponse> {
        let mut interim = Vec::new();
        let head = loop {
            let head = self.read_response_head().await?;
            match head.status {
                100 | 102..=199 => interim.push(head),
                _ => break head,
            }
            if interim.len() > 1000 {
                return Err(invalid("more than 1,000 interim answers", b""));
            }
        };
        let framing = head.framing(method)?;
        let mut trailers = Vec::new();
        let body = match framing {
            Framing::None => Vec::new(),
            Framing::Length(length) => {
                let length = usize::try_from(length)
                    .ok()
                    .filter(|length| *length <= BODY_LIMIT)
                    .ok_or_else(|| invalid("body of more than 64 MiB", b""))?;
                self.stream.read_exact(length).await?
            }
            Framing::Chunked => {
                let body = self.stream.read_chunked().await?;
                trailers = body.trailers;
                body.content
            }
            Framing::UntilClose => self.stream.read_to_end().await?,
        };
        Ok(RawResponse {
            interim,
            head,
            framing,
            body,
            trailers,
        })
    }

    /// Waits until the server has closed or reset the connection.
    ///
    /// # Panics
    ///
    /// When bytes come instead, or nothing does for [`GUARD`].
    pub async fn assert_closed(&mut self) -> Closed {
        let rest = self.stream.buffered().escape_ascii().to_string();
        assert_eq!(rest, "", "bytes where the connection should be closed");
        match self.stream.fill().await {
            Ok(0) => Closed::Ended,
            Ok(_) => {
                let rest = self.stream.buffered().escape_ascii();
                panic!("bytes where the connection should be closed: \"{rest}\"")
            }
            Err(error) if super::stream::is_reset(&error) => Closed::Reset,
            Err(error) => panic!("the connection should be closed, but: {error}"),
        }
    }
}

impl Deref for RawClient {
    type Target = RawStream;

    fn deref(&self) -> &RawStream {
        &self.stream
    }
}

impl DerefMut for RawClient {
    fn deref_mut(&mut self) -> &mut RawStream {
        &mut self.stream
    }
}
