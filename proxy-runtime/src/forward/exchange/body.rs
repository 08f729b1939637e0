//! The framing of bodies that are forwarded without changes.

use crate::http1::{ChunkTracker, Framing, HeadLimits, HeadTable, Rejection};

/// The position in a body.
#[derive(Debug, Default)]
pub(crate) enum Body {
    /// The end.
    #[default]
    Ended,
    /// The number of bytes to the end, at least 1.
    Length(u64),
    /// A position in a chunked body.
    Chunked(ChunkTracker),
    /// A body that ends with the connection.
    UntilClose,
}

/// The part of received bytes that belongs to a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyPart {
    /// Bytes to forward unchanged.
    pub(crate) bytes: usize,
    /// Bytes of content among them.
    pub(crate) content: u64,
    /// Length of the trailer section after the content, in bytes.
    pub(crate) trailers: usize,
}

impl Body {
    /// The start of a request's body with this framing. A tunnel has none.
    #[inline]
    pub(crate) fn new(framing: Framing) -> Self {
        match framing {
            // No byte would follow to end a `Length` of 0.
            Framing::None | Framing::Length(0) | Framing::Tunnel => Self::Ended,
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(ChunkTracker::new()),
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// The start of a response's body with this framing.
    #[inline]
    pub(crate) fn of_response(framing: Framing) -> Self {
        match framing {
            Framing::Chunked => Self::Chunked(ChunkTracker::of_response()),
            framing => Self::new(framing),
        }
    }

    /// Returns true if the body has ended.
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "for the clients of a server")
    )]
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Self::Ended)
    }

    /// Advances through `bytes`, which follow those of earlier calls.
    ///
    /// # Errors
    ///
    /// The framing is malformed. No more of the body may be forwarded.
    #[inline]
    pub(crate) fn follow(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
        table: &mut HeadTable,
    ) -> Result<BodyPart, Rejection> {
        match self {
            Self::Ended => Ok(BodyPart::default()),
            Self::Length(left) => {
                let part = (*left).min(bytes.len() as u64);
                *left -= part;
                if *left == 0 {
                    *self = Self::Ended;
                }
                // At most the length of the slice.
                Ok(BodyPart::plain(part as usize))
            }
            Self::UntilClose => Ok(BodyPart::plain(bytes.len())),
            Self::Chunked(tracker) => {
                let progress = tracker.track(bytes, limits, table)?;
                if progress.ended {
                    *self = Self::Ended;
                }
                Ok(BodyPart {
                    bytes: progress.consumed,
                    content: progress.payload,
                    trailers: progress.trailers,
                })
            }
        }
    }
}

impl BodyPart {
    #[inline]
    fn plain(bytes: usize) -> Self {
        Self {
            bytes,
            content: bytes as u64,
            trailers: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(body: &mut Body, bytes: &[u8]) -> Result<BodyPart, Rejection> {
        body.follow(bytes, &HeadLimits::default(), &mut HeadTable::new())
    }

    #[test]
    fn a_length_ends_where_it_says() {
        let mut body = Body::new(Framing::Length(5));
        assert_eq!(follow(&mut body, b"abc").unwrap().bytes, 3);
        assert!(!body.has_ended());
        assert_eq!(follow(&mut body, b"deGET /").unwrap().bytes, 2);
        assert!(body.has_ended());
        assert_eq!(follow(&mut body, b"GET /").unwrap(), BodyPart::default());
    }

    #[test]
    fn chunks_are_passed_on_and_content_is_counted() {
        let mut body = Body::new(Framing::Chunked);
        let part = follow(&mut body, b"3\r\nabc\r\n0\r\n\r\nGET").unwrap();
        assert_eq!((part.bytes, part.content, part.trailers), (13, 3, 0));
        assert!(body.has_ended());
        let mut body = Body::new(Framing::Chunked);
        let part = follow(&mut body, b"0\r\nx-sum: 1\r\n\r\nGET").unwrap();
        assert_eq!((part.bytes, part.trailers), (3, 12));
        let mut body = Body::new(Framing::Chunked);
        assert!(follow(&mut body, b"3\nabc").is_err());
    }

    #[test]
    fn nothing_is_a_body_that_has_ended() {
        for framing in [Framing::None, Framing::Length(0), Framing::Tunnel] {
            assert!(Body::new(framing).has_ended());
        }
        let mut body = Body::new(Framing::UntilClose);
        assert_eq!(follow(&mut body, b"abc").unwrap().content, 3);
        assert!(!body.has_ended());
    }
}
