//! Where a body ends: RFC 9112 section 6.3.

/// Where a message's body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// There is none: the next message follows the head. A `Content-Length` that is there all the same, as in answers to
    /// HEAD, speaks of another message.
    None,
    /// It has this many bytes; 0 when a `Content-Length` said so.
    Length(u64),
    /// It comes in chunks, perhaps with trailers: [`ChunkTracker`](super::ChunkTracker).
    Chunked,
    /// It ends with the connection. Responses only. Whether all of it came cannot be known.
    UntilClose,
    /// The connection is no longer HTTP from here on: 101, and 2xx to CONNECT.
    Tunnel,
}

impl Framing {
    /// Whether there is not a byte of a body.
    #[inline]
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }
}
