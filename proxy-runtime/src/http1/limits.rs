//! Limits of heads and trailer sections.

/// Limits of heads. The defaults are those of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeadLimits {
    /// Maximum size of a head in bytes, from its first byte to the end of the empty line; at most
    /// 16 MiB.
    ///
    /// Also limits trailer sections.
    ///
    /// Default: 32 KiB.
    pub bytes: usize,
    /// Maximum size of method and target together, in bytes. RFC 9112 section 3 requires at least
    /// 8000. Default: 8 KiB.
    pub request_line: usize,
    /// Maximum number of field lines, at most 10 000. Default: 100.
    pub fields: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self {
            bytes: 32 * 1024,
            request_line: 8 * 1024,
            fields: 100,
        }
    }
}

impl HeadLimits {
    /// The largest size for which 32-bit offsets are safe.
    const MOST_BYTES: usize = 16 * 1024 * 1024;
    const MOST_FIELDS: usize = 10_000;

    /// Sets [`bytes`](Self::bytes).
    #[must_use]
    pub fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets [`request_line`](Self::request_line).
    #[must_use]
    pub fn with_request_line(mut self, bytes: usize) -> Self {
        self.request_line = bytes;
        self
    }

    /// Sets [`fields`](Self::fields).
    #[must_use]
    pub fn with_fields(mut self, fields: usize) -> Self {
        self.fields = fields;
        self
    }

    /// The part of `buffer` that must contain the end of the head.
    #[inline]
    pub(super) fn window<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        &buffer[..buffer.len().min(self.most_bytes())]
    }

    #[inline]
    pub(super) fn most_bytes(&self) -> usize {
        self.bytes.min(Self::MOST_BYTES)
    }

    #[inline]
    pub(super) fn most_fields(&self) -> usize {
        self.fields.min(Self::MOST_FIELDS)
    }
}
