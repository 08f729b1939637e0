//! Body framing: RFC 9112 section 6.3.

/// The end of a message's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// No body: the next message follows the head. A `Content-Length` in such a message, as in
    /// responses to HEAD, describes another message.
    None,
    /// A body of this length; 0 if `Content-Length` says so.
    Length(u64),
    /// A chunked body, perhaps with trailers: [`ChunkTracker`](super::ChunkTracker).
    Chunked,
    /// A body that ends with the connection, for responses only. A truncation cannot be detected.
    UntilClose,
    /// The connection is no longer HTTP: 101, and 2xx to CONNECT.
    Tunnel,
}

impl Framing {
    /// Returns true if the body has no bytes.
    #[inline]
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }
}
