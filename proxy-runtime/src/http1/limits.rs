//! What bounds those who parse heads and trailer sections.

/// How much a head may be. The defaults are the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeadLimits {
    /// Bytes of the whole head, from its first byte to the end of the empty line. 32 KiB; never more than 16 MiB.
    ///
    /// Also the bound of a trailer section.
    pub bytes: usize,
    /// Bytes of method and target together. 8 KiB; RFC 9112 section 3 asks for 8000 at least.
    pub request_line: usize,
    /// Field lines. 100; never more than 10 000.
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
    /// What offsets of 32 bits are comfortable with.
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

    /// The part of `buffer` in which a head has to end.
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
