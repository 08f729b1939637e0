//! HTTP/2 frames, byte by byte (RFC 9113 4.1).
//!
//! For frames that no correct HTTP/2 implementation sends. Header blocks are written as literals
//! without indexing and without Huffman coding (RFC 7541 6.2.2), which every peer must support;
//! none are decoded.
//!
//! ```
//! use testkit::raw::{RawClient, frame};
//! use testkit::raw::frame::Frame;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let origin = testkit::origin::Origin::echo();
//! let mut client = RawClient::connect(origin.addr()).await?;
//! client.write_all(frame::PREFACE).await?;
//! client.write_all(Frame::settings(&[]).encode()).await?;
//! // A WINDOW_UPDATE of zero is a connection error (RFC 9113 6.9).
//! client.write_all(Frame::new(frame::WINDOW_UPDATE, 0, 0, [0; 4]).encode()).await?;
//! let goaway = loop {
//!     let frame = client.read_frame().await?;
//!     if frame.kind == frame::GOAWAY {
//!         break frame;
//!     }
//! };
//! assert_eq!(goaway.error_code(), Some(frame::PROTOCOL_ERROR));
//! # Ok(())
//! # }
//! ```

#[cfg(test)]
mod tests;

use std::io;

use crate::raw::RawStream;

/// The client preface (RFC 9113 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Type of a DATA frame.
pub const DATA: u8 = 0;
/// Type of a HEADERS frame.
pub const HEADERS: u8 = 1;
/// Type of a PRIORITY frame.
pub const PRIORITY: u8 = 2;
/// Type of a RST_STREAM frame.
pub const RST_STREAM: u8 = 3;
/// Type of a SETTINGS frame.
pub const SETTINGS: u8 = 4;
/// Type of a PUSH_PROMISE frame.
pub const PUSH_PROMISE: u8 = 5;
/// Type of a PING frame.
pub const PING: u8 = 6;
/// Type of a GOAWAY frame.
pub const GOAWAY: u8 = 7;
/// Type of a WINDOW_UPDATE frame.
pub const WINDOW_UPDATE: u8 = 8;
/// Type of a CONTINUATION frame.
pub const CONTINUATION: u8 = 9;

/// Flag of SETTINGS and PING.
pub const ACK: u8 = 1;
/// Flag of DATA and HEADERS.
pub const END_STREAM: u8 = 1;
/// Flag of HEADERS, PUSH_PROMISE and CONTINUATION.
pub const END_HEADERS: u8 = 4;

/// Setting: maximum number of concurrent streams.
pub const MAX_CONCURRENT_STREAMS: u16 = 3;
/// The setting by which a server allows extended `CONNECT` (RFC 8441 section 3).
pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;

/// Error code: no error.
pub const NO_ERROR: u32 = 0;
/// Error code: the peer violated the protocol.
pub const PROTOCOL_ERROR: u32 = 1;
/// Error code: an internal error.
pub const INTERNAL_ERROR: u32 = 2;
/// Error code: the stream was not processed, and may be retried.
pub const REFUSED_STREAM: u32 = 7;
/// Error code: the stream is no longer needed.
pub const CANCEL: u32 = 8;
/// Error code: the peer causes excessive load.
pub const ENHANCE_YOUR_CALM: u32 = 11;
/// Error code: the peer should use HTTP/1.1.
pub const HTTP_1_1_REQUIRED: u32 = 13;

/// A frame, valid or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream; 0 is the connection.
    pub stream: u32,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A frame of any kind.
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            flags,
            stream,
            payload: payload.into(),
        }
    }

    /// SETTINGS with these identifiers and values.
    pub fn settings(settings: &[(u16, u32)]) -> Self {
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(id, value)| id.to_be_bytes().into_iter().chain(value.to_be_bytes()))
            .collect();
        Self::new(SETTINGS, 0, 0, payload)
    }

    /// HEADERS with these fields in this order, pseudo-header fields included, in one frame.
    pub fn headers(stream: u32, fields: &[(&str, &str)], end_stream: bool) -> Self {
        let flags = if end_stream {
            END_HEADERS | END_STREAM
        } else {
            END_HEADERS
        };
        Self::new(HEADERS, flags, stream, header_block(fields))
    }

    /// DATA.
    pub fn data(stream: u32, bytes: impl Into<Vec<u8>>, end_stream: bool) -> Self {
        Self::new(DATA, if end_stream { END_STREAM } else { 0 }, stream, bytes)
    }

    /// RST_STREAM.
    pub fn reset(stream: u32, code: u32) -> Self {
        Self::new(RST_STREAM, 0, stream, code.to_be_bytes())
    }

    /// GOAWAY: no stream after `last_stream` was processed.
    pub fn goaway(last_stream: u32, code: u32) -> Self {
        let payload = [last_stream.to_be_bytes(), code.to_be_bytes()].concat();
        Self::new(GOAWAY, 0, 0, payload)
    }

    /// Returns true if this flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The code of a RST_STREAM or GOAWAY frame.
    pub fn error_code(&self) -> Option<u32> {
        let code = match self.kind {
            RST_STREAM => self.payload.get(..4)?,
            GOAWAY => self.payload.get(4..8)?,
            _ => return None,
        };
        Some(u32::from_be_bytes(
            code.try_into().expect("four bytes were cut"),
        ))
    }

    /// The bytes of the frame, without validation; only lengths beyond 24 bits are truncated.
    pub fn encode(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len())
            .unwrap_or(u32::MAX)
            .to_be_bytes();
        let mut bytes = Vec::with_capacity(9 + self.payload.len());
        bytes.extend(&length[1..]);
        bytes.extend([self.kind, self.flags]);
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }
}

/// A header block of literals without indexing (RFC 7541 6.2.2), with these fields in this order and no change of case.
pub fn header_block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        string(&mut block, name.as_bytes());
        string(&mut block, value.as_bytes());
    }
    block
}

/// A string without Huffman coding: its length with a prefix of 7 bits (RFC 7541 5.1, 5.2), then its bytes.
fn string(block: &mut Vec<u8>, bytes: &[u8]) {
    let length = bytes.len();
    match u8::try_from(length) {
        Ok(short) if short < 0x7f => block.push(short),
        _ => {
            block.push(0x7f);
            let mut rest = length - 0x7f;
            while rest >= 0x80 {
                block.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            block.push(rest as u8);
        }
    }
    block.extend(bytes);
}

impl RawStream {
    /// Reads an HTTP/2 frame without validation.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` when the connection ends before the frame does.
    pub async fn read_frame(&mut self) -> io::Result<Frame> {
        // The header stays in the buffer until the payload is there, so that a dropped read loses
        // nothing.
        self.wait_for_buffered(9).await?;
        let head = &self.buffered()[..9];
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        self.wait_for_buffered(9 + length).await?;
        let bytes = self.take(9 + length);
        // The highest bit is reserved and ignored (RFC 9113 4.1).
        let stream = u32::from_be_bytes([bytes[5] & 0x7f, bytes[6], bytes[7], bytes[8]]);
        Ok(Frame::new(bytes[3], bytes[4], stream, &bytes[9..]))
    }
}
