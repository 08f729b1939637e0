//! Finds the end of a MessagePack object without decoding it.

/// The most containers inside of each other. Agents send 4.
pub(crate) const MAX_DEPTH: usize = 32;

/// Maximum number of values in one message. A decoded message can be larger than its bytes, since a value
/// may be one byte. A member takes 23 values and 2 for each tag, so the limit allows 100,000 members with 7
/// tags.
pub(crate) const MAX_VALUES: u64 = 1 << 22;

/// The violation of a limit or of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("a message has more than {limit} bytes")]
    TooLong { limit: usize },
    #[error("a message has more than {MAX_VALUES} values")]
    TooManyValues,
    #[error("a message has more than {MAX_DEPTH} containers inside of each other")]
    TooDeep,
    #[error("the byte 0xc1, which MessagePack does not use")]
    Reserved,
}

/// Skips one object, which may come in any number of pieces. It reads only markers and lengths, and each of
/// them once, so its time is linear in the input, and its memory is constant.
#[derive(Debug)]
pub(crate) struct Skipper {
    /// Number of values still to come in each open container; the first is the message itself.
    open: Vec<u64>,
    /// The sum of `open`: as many bytes are still to come at least.
    owed: u64,
    /// The position of the next marker. It may be beyond the received bytes while those of a string are
    /// incomplete.
    position: u64,
    values: u64,
}

impl Skipper {
    pub(crate) fn new() -> Self {
        Self {
            open: vec![1],
            owed: 1,
            position: 0,
            values: 0,
        }
    }

    /// Continues with a buffer that has the input of the last call, and more. Returns the length of the
    /// object as soon as it is complete, and then begins with the next one, at the beginning of the buffer.
    ///
    /// # Errors
    ///
    /// Returned as soon as the object is known to be malformed or beyond a limit, even if that is only
    /// announced. The skipper cannot continue then.
    pub(crate) fn advance(
        &mut self,
        buffer: &[u8],
        limit: usize,
    ) -> Result<Option<usize>, Violation> {
        while let Some(remaining) = self.open.last_mut() {
            if *remaining == 0 {
                self.open.pop();
                continue;
            }
            let rest = usize::try_from(self.position).ok();
            let rest = rest.and_then(|position| buffer.get(position..));
            let Some(value) = rest.map(OpenValue::read).transpose()?.flatten() else {
                return Ok(None);
            };
            *remaining -= 1;
            self.owed = self.owed - 1 + value.children;
            self.position += value.length;
            self.values += 1;
            if value.children > 0 {
                // Depth is limited, since each level takes memory and a decoder recurses.
                if self.open.len() > MAX_DEPTH {
                    return Err(Violation::TooDeep);
                }
                self.open.push(value.children);
            }
            // Each owed value takes at least one byte, so an announced length fails before its bytes arrive.
            if self.position + self.owed > limit as u64 {
                return Err(Violation::TooLong { limit });
            }
            if self.values + self.owed > MAX_VALUES {
                return Err(Violation::TooManyValues);
            }
        }
        match usize::try_from(self.position) {
            Ok(length) if length <= buffer.len() => {
                self.open.push(1);
                self.owed = 1;
                self.position = 0;
                self.values = 0;
                Ok(Some(length))
            }
            _ => Ok(None),
        }
    }
}

/// A value without those that are in it.
struct OpenValue {
    /// The length of the marker, the length field and the bytes.
    length: u64,
    /// Number of values in it; keys count.
    children: u64,
}

impl OpenValue {
    /// The value that begins here; `None` if its length is not there yet.
    fn read(bytes: &[u8]) -> Result<Option<Self>, Violation> {
        let Some(marker) = bytes.first().copied() else {
            return Ok(None);
        };
        let plain = |data: u64| Self {
            length: 1 + data,
            children: 0,
        };
        let container = |children: u64| Self {
            length: 1,
            children,
        };
        let value = match marker {
            0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => plain(0),
            0x80..=0x8f => container(2 * u64::from(marker & 0x0f)),
            0x90..=0x9f => container(u64::from(marker & 0x0f)),
            0xa0..=0xbf => plain(u64::from(marker & 0x1f)),
            0xc1 => return Err(Violation::Reserved),
            // Floats and integers.
            0xca => plain(4),
            0xcb => plain(8),
            0xcc..=0xcf => plain(1 << (marker - 0xcc)),
            0xd0..=0xd3 => plain(1 << (marker - 0xd0)),
            // Extensions of a fixed length, which have a type before their bytes.
            0xd4..=0xd8 => plain(1 + (1 << (marker - 0xd4))),
            0xc4..=0xc9 | 0xd9..=0xdf => return Ok(Self::with_length(marker, &bytes[1..])),
        };
        Ok(Some(value))
    }

    /// Returns the value of a marker that is followed by a length.
    fn with_length(marker: u8, rest: &[u8]) -> Option<Self> {
        let width: usize = match marker {
            0xc4 | 0xc7 | 0xd9 => 1,
            0xc5 | 0xc8 | 0xda | 0xdc | 0xde => 2,
            _ => 4,
        };
        let length = rest.get(..width)?;
        let length = length
            .iter()
            .fold(0, |length, byte| length << 8 | u64::from(*byte));
        let head = 1 + width as u64;
        let (data, children) = match marker {
            // Extensions.
            0xc7..=0xc9 => (1 + length, 0),
            0xdc | 0xdd => (0, length),
            0xde | 0xdf => (0, 2 * length),
            _ => (length, 0),
        };
        Some(Self {
            length: head + data,
            children,
        })
    }
}
