use std::io;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use tokio::net::TcpStream;

use super::response::{Framing, RawResponse, ResponseHead};
use super::stream::{BODY_LIMIT, invalid};
use super::{Closed, RawStream};
use crate::time::{GUARD, within};

/// The client's end of a connection: sends any bytes, parses responses strictly.
///
/// All methods of [`RawStream`] are available by dereference. A read fails with
/// [`TimedOut`](io::ErrorKind::TimedOut) after [`GUARD`] of real time without data, so a paused
/// clock may advance freely.
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

    /// Connects, sends these bytes, and reads one response to a GET. Ignores the further behaviour
    /// of the connection.
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
    /// `InvalidData` if it violates RFC 9112 4 or 5, or exceeds 4 MiB; `UnexpectedEof` if the
    /// server ends before.
    pub async fn read_response_head(&mut self) -> io::Result<ResponseHead> {
        let bytes = self.stream.read_until(b"\r\n\r\n").await?;
        ResponseHead::strict(bytes)
    }

    /// Reads a complete response to a request other than HEAD, with its interim responses.
    ///
    /// # Errors
    ///
    /// As for [`read_response_to`](Self::read_response_to).
    pub async fn read_response(&mut self) -> io::Result<RawResponse> {
        self.read_response_to("GET").await
    }

    /// Reads a complete response to a request with this method, with its interim responses. After
    /// 101 there is no body: the connection belongs to the other protocol.
    ///
    /// # Errors
    ///
    /// `InvalidData` if head or body violate RFC 9112, if the framing is ambiguous, or after 64 MiB
    /// of body or 1,000 interim responses. `UnexpectedEof` if the server ends before the body does;
    /// the received part stays in [`buffered`](RawStream::buffered) if the length was declared.
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
    /// Panics if data arrives instead, or nothing happens for [`GUARD`].
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
