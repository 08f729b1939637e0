//! The head of a response, and the framing of its body, in the form of HTTP/1.1.

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};
use tokio::io::ReadBuf;

use crate::stream::recycled;

/// Bytes to be read before data.
#[derive(Default)]
pub(super) struct Text {
    bytes: Vec<u8>,
    start: usize,
    /// Bytes behind the data.
    pub(super) end: &'static [u8],
}

impl Text {
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.is_empty() {
            self.start = 0;
            self.bytes.clear();
            // From the thread's pool, so that a stream holds a buffer only while there is text to read.
            if self.bytes.capacity() == 0 {
                self.bytes = recycled::take(recycled::HEAD);
            }
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn write_fields(&mut self, fields: &HeaderMap) {
        for (name, value) in fields {
            self.write(name.as_str().as_bytes());
            self.write(b": ");
            self.write(value.as_bytes());
            self.write(b"\r\n");
        }
    }

    /// Writes a head. `framing`: a line that is added.
    pub(super) fn write_head(&mut self, status: StatusCode, fields: &HeaderMap, framing: &[u8]) {
        self.write(b"HTTP/1.1 ");
        self.write(status.as_str().as_bytes());
        self.write(b" ");
        // HTTP/2 has no reason phrase.
        let reason = status.canonical_reason().unwrap_or_default();
        self.write(reason.as_bytes());
        self.write(b"\r\n");
        for (name, value) in fields {
            // They have no meaning in HTTP/2 (RFC 9113 section 8.2.2), and would get one.
            let is_of_tunnel = status == StatusCode::SWITCHING_PROTOCOLS;
            if *name != CONNECTION
                && *name != TRANSFER_ENCODING
                && !(is_of_tunnel && *name == CONTENT_LENGTH)
            {
                self.write(name.as_str().as_bytes());
                self.write(b": ");
                self.write(value.as_bytes());
                self.write(b"\r\n");
            }
        }
        self.write(framing);
        self.write(b"\r\n");
    }

    /// Moves bytes to `buf`.
    pub(super) fn read(&mut self, buf: &mut ReadBuf<'_>) {
        let rest = &self.bytes[self.start..];
        let count = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..count]);
        self.start += count;
        if self.is_empty() && self.bytes.capacity() > 0 {
            self.start = 0;
            recycled::release(std::mem::take(&mut self.bytes));
        }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        recycled::release(std::mem::take(&mut self.bytes));
    }
}

/// Returns the text of a response head. `framing`: a line that is added.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn response_text(status: StatusCode, fields: &HeaderMap, framing: &[u8]) -> Vec<u8> {
    let mut text = Text::default();
    text.write_head(status, fields, framing);
    std::mem::take(&mut text.bytes)
}
