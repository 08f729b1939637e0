//! Writers for chunk framing.

use std::num::NonZeroU64;

/// The line end after the data of a chunk.
pub const CHUNK_END: &[u8; 2] = b"\r\n";

/// The end of a body without trailers.
pub const LAST_CHUNK: &[u8; 5] = b"0\r\n\r\n";

/// The line before the data of a chunk: its size, which is not 0 since that would end the body.
#[derive(Clone, Copy, Debug)]
pub struct ChunkHead {
    bytes: [u8; 18],
    start: u8,
}

impl ChunkHead {
    /// Creates the line for `size` bytes of data.
    #[inline]
    pub fn new(size: NonZeroU64) -> Self {
        // Written from the end, since the number of digits is known only then.
        let mut bytes = [0; 18];
        bytes[16..].copy_from_slice(b"\r\n");
        let mut start = 16;
        let mut rest = size.get();
        while rest != 0 {
            start -= 1;
            bytes[start] = b"0123456789abcdef"[(rest & 15) as usize];
            rest >>= 4;
        }
        Self {
            bytes,
            start: start as u8,
        }
    }

    /// The bytes of the line.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }
}
