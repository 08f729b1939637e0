use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Recording;
use crate::time::{GUARD, within};

/// Maximum length of a head: enough for tests of limits, which send 1 MB and more.
pub(super) const HEAD_LIMIT: usize = 4 << 20;

/// Maximum of bytes read into memory as one body or to the end of a connection.
pub(super) const BODY_LIMIT: usize = 64 << 20;

/// The way in which the peer ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The peer closed its sending side (FIN).
    Ended,
    /// The peer reset the connection (RST).
    Reset,
}

/// A TCP connection with a buffer of data that was not consumed yet.
///
/// Errors are those of the socket. Invalid data returns
/// [`InvalidData`](io::ErrorKind::InvalidData), an early end returns
/// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof); received data stays in
/// [`buffered`](Self::buffered).
///
/// Cancel safety: dropping a read before it is ready loses nothing; a write may have been made in
/// part.
#[derive(Debug)]
pub struct RawStream {
    tcp: Option<TcpStream>,
    local: SocketAddr,
    peer: SocketAddr,
    buffer: BytesMut,
    recording: Option<Recording>,
    /// The time limit of reads in real time.
    limit: Option<Duration>,
}

impl RawStream {
    pub(super) fn accepted(tcp: TcpStream, recording: Recording) -> io::Result<Self> {
        Self::new(tcp, Some(recording), None)
    }

    pub(super) fn connected(tcp: TcpStream) -> io::Result<Self> {
        Self::new(tcp, None, Some(GUARD))
    }

    fn new(
        tcp: TcpStream,
        recording: Option<Recording>,
        limit: Option<Duration>,
    ) -> io::Result<Self> {
        // Each write is its own segment, so that a test controls the segments.
        tcp.set_nodelay(true)?;
        let (local, peer) = (tcp.local_addr()?, tcp.peer_addr()?);
        let buffer = BytesMut::new();
        Ok(Self {
            tcp: Some(tcp),
            local,
            peer,
            buffer,
            recording,
            limit,
        })
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The remote address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// Data that was read from the socket and not consumed yet.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer
    }

    /// Reads the next bytes, at least one; empty at the end.
    ///
    /// # Errors
    ///
    /// Those of the socket.
    pub async fn read_some(&mut self) -> io::Result<Vec<u8>> {
        if self.buffer.is_empty() {
            self.fill().await?;
        }
        Ok(self.buffer.split().into())
    }

    /// Reads the next `n` bytes.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if there are fewer.
    pub async fn read_exact(&mut self, n: usize) -> io::Result<Vec<u8>> {
        self.wait_for_buffered(n).await?;
        Ok(self.take(n))
    }

    /// Reads up to and including `pattern`.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the peer ends before; `InvalidData` after 4 MiB without it.
    pub async fn read_until(&mut self, pattern: &[u8]) -> io::Result<Vec<u8>> {
        let mut searched: usize = 0;
        loop {
            // The pattern may begin in the part that was already searched.
            let from = searched.saturating_sub(pattern.len());
            if let Some(at) = find(&self.buffer[from..], pattern) {
                return Ok(self.take(from + at + pattern.len()));
            }
            searched = self.buffer.len();
            if searched > HEAD_LIMIT {
                return Err(invalid("no end within 4 MiB", &self.buffer[..64]));
            }
            self.fill_or_eof().await?;
        }
    }

    /// Reads until the peer ends.
    ///
    /// # Errors
    ///
    /// `ConnectionReset` if it resets instead (earlier data stays in [`buffered`](Self::buffered));
    /// `InvalidData` after 64 MiB.
    pub async fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        while self.fill().await? > 0 {
            if self.buffer.len() > BODY_LIMIT {
                return Err(invalid("no end within 64 MiB", &self.buffer[..64]));
            }
        }
        Ok(self.buffer.split().into())
    }

    /// Reads and drops data until the peer ends or resets. Returns which.
    ///
    /// # Errors
    ///
    /// Those of the socket other than a reset.
    pub async fn wait_for_close(&mut self) -> io::Result<Closed> {
        loop {
            self.buffer.clear();
            match self.fill().await {
                Ok(0) => return Ok(Closed::Ended),
                Ok(_) => {}
                Err(error) if is_reset(&error) => return Ok(Closed::Reset),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes all of `bytes`, as one segment if it fits.
    ///
    /// # Errors
    ///
    /// Those of the socket; `NotConnected` after [`close`](Self::close) or [`reset`](Self::reset).
    pub async fn write_all(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.tcp()?.write_all(bytes.as_ref()).await
    }

    /// Writes `bytes` in pieces of `size`, with a pause on tokio's clock after each.
    ///
    /// # Errors
    ///
    /// As for [`write_all`](Self::write_all).
    ///
    /// # Panics
    ///
    /// When `size` is 0.
    pub async fn write_slowly(
        &mut self,
        bytes: impl AsRef<[u8]>,
        size: usize,
        pause: Duration,
    ) -> io::Result<()> {
        for piece in bytes.as_ref().chunks(size) {
            self.write_all(piece).await?;
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Closes the sending side (FIN) and continues to receive.
    ///
    /// # Errors
    ///
    /// Those of the socket.
    pub async fn half_close(&mut self) -> io::Result<()> {
        self.tcp()?.shutdown().await
    }

    /// Closes the socket: FIN, or RST if received data was left unread, as the kernel does. Data
    /// read before stays available.
    pub fn close(&mut self) {
        self.tcp = None;
    }

    /// Resets the connection: RST at once, and unsent bytes are dropped (`SO_LINGER` of zero).
    pub fn reset(&mut self) {
        if let Some(tcp) = self.tcp.take() {
            // Cannot fail on an open socket; otherwise the test would see a graceful end.
            let _ = tcp.set_zero_linger();
        }
    }

    /// Reads until the peer is gone, and sends nothing.
    ///
    /// # Errors
    ///
    /// Those of the socket other than a reset.
    pub async fn never_answer(&mut self) -> io::Result<()> {
        self.wait_for_close().await.map(drop)
    }

    /// Keeps the connection open without reading, so that the peer's writes block, until the script
    /// is dropped.
    pub async fn hold(&mut self) -> io::Result<()> {
        std::future::pending().await
    }

    /// Reads until `n` bytes are in the buffer, and leaves them there.
    pub(super) async fn wait_for_buffered(&mut self, n: usize) -> io::Result<()> {
        while self.buffer.len() < n {
            self.fill_or_eof().await?;
        }
        Ok(())
    }

    pub(super) fn take(&mut self, n: usize) -> Vec<u8> {
        let taken = self.buffer[..n].to_vec();
        self.buffer.advance(n);
        taken
    }

    /// Reads once from the socket; 0 at its end.
    pub(super) async fn fill(&mut self) -> io::Result<usize> {
        let tcp = self.tcp.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let before = self.buffer.len();
        self.buffer.reserve(16 * 1024);
        let read = tcp.read_buf(&mut self.buffer);
        let read = match self.limit {
            None => read.await?,
            Some(limit) => within(limit, read)
                .await
                .map_err(|elapsed| io::Error::new(io::ErrorKind::TimedOut, elapsed))??,
        };
        if let Some(recording) = &self.recording {
            recording.add(&self.buffer[before..]);
        }
        Ok(read)
    }

    pub(super) async fn fill_or_eof(&mut self) -> io::Result<()> {
        match self.fill().await? {
            0 => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("connection ended after {}", shown(&self.buffer)),
            )),
            _ => Ok(()),
        }
    }

    fn tcp(&mut self) -> io::Result<&mut TcpStream> {
        Ok(self.tcp.as_mut().ok_or(io::ErrorKind::NotConnected)?)
    }
}

pub(super) fn is_reset(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}

pub(super) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len().max(1))
        .position(|window| window == needle)
}

pub(super) fn invalid(what: &str, bytes: &[u8]) -> io::Error {
    let message = format!("{what}: {}", shown(bytes));
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Bytes for a message: escaped, and shortened if there are many.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 200;
    let cut = if bytes.len() > MOST { "…" } else { "" };
    format!(
        "{} bytes \"{}{cut}\"",
        bytes.len(),
        bytes[..bytes.len().min(MOST)].escape_ascii()
    )
}
