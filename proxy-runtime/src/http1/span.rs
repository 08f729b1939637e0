//! Ranges of a buffer.

/// A range of the buffer that was parsed.
///
/// It means something for that buffer only, and as long as what it held stays at its place.
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

    /// A range in a buffer that is bounded by what [`HeadLimits`](super::HeadLimits) allow at most.
    #[inline]
    pub(super) fn of(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && u32::try_from(end).is_ok());
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    /// The first byte.
    #[inline]
    pub fn start(self) -> u32 {
        self.start
    }

    /// Behind the last byte.
    #[inline]
    pub fn end(self) -> u32 {
        self.end
    }

    /// How many bytes.
    #[inline]
    pub fn len(self) -> u32 {
        self.end - self.start
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The bytes.
    ///
    /// # Panics
    ///
    /// If `buffer` is shorter than the one that was parsed.
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
