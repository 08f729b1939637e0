//! Ranges of a buffer.

/// A range of a parsed buffer.
///
/// It is valid for that buffer only, while its content stays in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    #[inline]
    pub(super) fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// A range in a buffer within the maximum of [`HeadLimits`](super::HeadLimits).
    #[inline]
    pub(super) fn of(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && u32::try_from(end).is_ok());
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    /// The position of the first byte.
    #[inline]
    pub fn start(self) -> u32 {
        self.start
    }

    /// The position after the last byte.
    #[inline]
    pub fn end(self) -> u32 {
        self.end
    }

    /// Number of bytes.
    #[inline]
    pub fn len(self) -> u32 {
        self.end - self.start
    }

    /// Returns true if the range is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The bytes of the range.
    ///
    /// # Panics
    ///
    /// Panics if `buffer` is shorter than the parsed one.
    #[inline]
    pub fn get(self, buffer: &[u8]) -> &[u8] {
        &buffer[self.start as usize..self.end as usize]
    }

    /// The bytes as text, which they are wherever the grammar has ASCII only.
    #[inline]
    pub(super) fn text(self, buffer: &[u8]) -> &str {
        let text = str::from_utf8(self.get(buffer));
        debug_assert!(text.is_ok(), "only called for what is ASCII");
        text.unwrap_or_default()
    }
}
