//! The framing of HTTP/1.1 bodies.
//!
//! Sufficient to count the output of well-behaved proxies; not safe against attackers.

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    /// The body ends with the connection.
    UntilClose,
}

impl Framing {
    /// The framing by the fields of a head; `None` without such fields.
    pub(crate) fn of_fields(fields: &[httparse::Header<'_>]) -> Result<Option<Self>, &'static str> {
        let mut framing = None;
        for field in fields {
            if field.name.eq_ignore_ascii_case("content-length") {
                let length = std::str::from_utf8(field.value)
                    .ok()
                    .and_then(|text| text.trim().parse().ok());
                let length = length.ok_or("Content-Length is no number")?;
                if framing.replace(Self::Length(length)).is_some() {
                    return Err("the length is said twice");
                }
            } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
                if !field.value.eq_ignore_ascii_case(b"chunked") {
                    return Err("a transfer coding other than chunked");
                }
                if framing.replace(Self::Chunked).is_some() {
                    return Err("the length is said twice");
                }
            }
        }
        Ok(framing)
    }
}

/// The state of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    state: FramingState,
    /// Number of payload bytes so far.
    payload: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramingState {
    Left(u64),
    UntilClose,
    /// In the line of a chunk's size: true once a digit was seen, and once the digits are over.
    Size {
        size: u64,
        digits: bool,
        over: bool,
    },
    Chunk(u64),
    /// At the line end after a chunk.
    ChunkEnd,
    /// In a line of the trailer section, after this many bytes.
    Trailer(u32),
    Ended,
}

impl Body {
    pub(crate) fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::Length(0) => FramingState::Ended,
            Framing::Length(length) => FramingState::Left(length),
            Framing::Chunked => FramingState::SIZE,
            Framing::UntilClose => FramingState::UntilClose,
        };
        Self { state, payload: 0 }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state == FramingState::Ended
    }

    /// Returns true if the end of the connection ends this body.
    pub(crate) fn ends_with_connection(&self) -> bool {
        matches!(self.state, FramingState::UntilClose | FramingState::Ended)
    }

    pub(crate) fn payload(&self) -> u64 {
        self.payload
    }

    /// Consumes the bytes of this body. Returns their number.
    pub(crate) fn consume(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        let mut at = 0;
        while at < bytes.len() && self.state != FramingState::Ended {
            match &mut self.state {
                FramingState::Left(left) | FramingState::Chunk(left) => {
                    let here = (bytes.len() - at).min(usize::try_from(*left).unwrap_or(usize::MAX));
                    at += here;
                    self.payload += here as u64;
                    *left -= here as u64;
                    if *left == 0 {
                        let is_chunk = matches!(self.state, FramingState::Chunk(_));
                        self.state = if is_chunk {
                            FramingState::ChunkEnd
                        } else {
                            FramingState::Ended
                        };
                    }
                }
                FramingState::UntilClose => {
                    self.payload += (bytes.len() - at) as u64;
                    at = bytes.len();
                }
                _ => {
                    self.state = self.state.line_byte(bytes[at])?;
                    at += 1;
                }
            }
        }
        Ok(at)
    }
}

impl FramingState {
    const SIZE: Self = Self::Size {
        size: 0,
        digits: false,
        over: false,
    };

    /// The state after one byte of a line.
    fn line_byte(self, byte: u8) -> Result<Self, &'static str> {
        Ok(match (self, byte) {
            (
                Self::Size {
                    size, digits: true, ..
                },
                b'\n',
            ) => match size {
                0 => Self::Trailer(0),
                size => Self::Chunk(size),
            },
            (
                Self::Size {
                    size, digits: true, ..
                },
                b'\r' | b';' | b' ',
            ) => Self::Size {
                size,
                digits: true,
                over: true,
            },
            // A chunk extension.
            (Self::Size { over: true, .. }, _) => self,
            (Self::Size { size, .. }, digit) => {
                let digit = char::from(digit)
                    .to_digit(16)
                    .ok_or("a chunk's size is no number")?;
                let size = size.checked_mul(16).ok_or("a chunk is too large")? + u64::from(digit);
                Self::Size {
                    size,
                    digits: true,
                    over: false,
                }
            }
            (Self::ChunkEnd, b'\r') => self,
            (Self::ChunkEnd, b'\n') => Self::SIZE,
            (Self::ChunkEnd, _) => return Err("a chunk is longer than it says"),
            (Self::Trailer(0), b'\n') => Self::Ended,
            (Self::Trailer(_), b'\n') => Self::Trailer(0),
            (Self::Trailer(length), b'\r') => Self::Trailer(length),
            (Self::Trailer(length), _) => Self::Trailer(length.saturating_add(1)),
            (state @ (Self::Left(_) | Self::Chunk(_) | Self::UntilClose | Self::Ended), _) => state,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The payload and the consumed bytes, with pieces of every size.
    fn follow(framing: Framing, bytes: &[u8]) -> (u64, usize, bool) {
        let mut outcomes = (1..=bytes.len()).map(|piece| {
            let mut body = Body::new(framing);
            let mut taken = 0;
            for piece in bytes.chunks(piece) {
                let here = body.consume(piece).unwrap();
                taken += here;
                if here < piece.len() {
                    break;
                }
            }
            (body.payload(), taken, body.has_ended())
        });
        let first = outcomes.next().unwrap();
        assert!(
            outcomes.all(|other| other == first),
            "it depends on how it is cut: {framing:?}"
        );
        first
    }

    #[test]
    fn a_body_of_known_length_ends_there() {
        assert_eq!(follow(Framing::Length(5), b"helloHTTP/1.1"), (5, 5, true));
        assert_eq!(follow(Framing::Length(5), b"hell"), (4, 4, false));
        assert!(Body::new(Framing::Length(0)).has_ended());
    }

    #[test]
    fn chunks_are_followed_with_extensions_and_trailers() {
        let chunked = b"5\r\nhello\r\n0A;x=y\r\n0123456789\r\n0\r\nA: b\r\n\r\nNEXT";
        assert_eq!(
            follow(Framing::Chunked, chunked),
            (15, chunked.len() - 4, true)
        );
        assert_eq!(follow(Framing::Chunked, b"0\r\n\r\n"), (0, 5, true));
        assert_eq!(follow(Framing::Chunked, b"5\r\nhel"), (3, 6, false));
    }

    #[test]
    fn what_is_no_chunk_is_an_error() {
        for bytes in ["x\r\n", "\r\n", "5\r\nhelloo\r\n", "11111111111111111\r\n"] {
            assert!(
                Body::new(Framing::Chunked)
                    .consume(bytes.as_bytes())
                    .is_err(),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn fields_say_how_long_a_body_is() {
        let of = |fields: &[(&str, &str)]| {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| httparse::Header {
                    name,
                    value: value.as_bytes(),
                })
                .collect();
            Framing::of_fields(&fields)
        };
        assert_eq!(of(&[("Host", "a")]), Ok(None));
        assert_eq!(
            of(&[("content-LENGTH", " 12")]),
            Ok(Some(Framing::Length(12)))
        );
        assert_eq!(
            of(&[("Transfer-Encoding", "Chunked")]),
            Ok(Some(Framing::Chunked))
        );
        assert!(of(&[("Content-Length", "1"), ("Transfer-Encoding", "chunked")]).is_err());
        assert!(of(&[("Content-Length", "-1")]).is_err());
    }

    #[test]
    fn a_body_until_the_end_of_the_connection_takes_everything() {
        let mut body = Body::new(Framing::UntilClose);
        assert_eq!(body.consume(b"abc"), Ok(3));
        assert!(!body.has_ended() && body.ends_with_connection());
        assert_eq!(body.payload(), 3);
    }
}
