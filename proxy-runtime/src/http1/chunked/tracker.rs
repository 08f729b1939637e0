//! A tracker for chunk framing over whole reads.

use super::extension::{Extension, NextState};
use crate::http1::field::ClassSet;
use crate::http1::head::{HeadTable, Section, Stop, read_fields};
use crate::http1::{HeadLimits, Rejection};

/// Maximum bytes of extensions over all chunks of a body: the limit of hyper.
const EXTENSION_BYTES: u32 = 16 * 1024;

/// Maximum digits of a size: more would be leading zeros, or a number that is too large.
const DIGITS: u8 = 16;

/// Tracks the framing of a chunked body over whole reads, which are passed on unchanged.
///
/// Strict as RFC 9112 section 7.1: a size is 1 to 16 hexadecimal digits and at most 2⁶³ − 1, every
/// line ends in CRLF, and data is followed by CRLF. Stricter where the RFC leaves a choice:
/// extensions have no white space and at most 16 KiB in total; trailers follow the rules of a head,
/// limited by [`HeadLimits::bytes`] and [`HeadLimits::fields`]. Those of a request exclude `Host`,
/// `Content-Length` and `Transfer-Encoding`; in a response they are [dropped](crate::http1::write_trailers).
///
/// Holds no bytes and allocates nothing. The boundaries of reads have no effect.
#[derive(Clone, Copy, Debug)]
pub struct ChunkTracker {
    state: ChunkState,
    /// Number of digits of the size so far.
    digits: u8,
    extension_bytes: u32,
    /// The size so far, and then the rest of the chunk.
    remaining: u64,
    /// True if fields that are forbidden in trailers make the body invalid.
    is_request: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    Size,
    Extension(Extension),
    SizeLineFeed,
    Data,
    DataCarriageReturn,
    DataLineFeed,
    Trailers,
    Ended,
    Rejected(Rejection),
}

/// The progress of a body by one read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of leading bytes that belong to the body and can be passed on unchanged.
    ///
    /// The rest is the trailer section if the body has [`ended`](Self::ended) with one, the next
    /// message if it has ended without, and otherwise the beginning of a trailer section, which the
    /// next call must get again.
    pub consumed: usize,
    /// Number of content bytes among them.
    pub payload: u64,
    /// True if the body is complete.
    pub ended: bool,
    /// Length of the trailer section after [`consumed`](Self::consumed), with its empty line; 0
    /// without trailers.
    ///
    /// Its fields are in the table, as ranges of that section.
    /// [`write_trailers`](crate::http1::write_trailers) forwards the allowed ones; without any,
    /// [`CHUNK_END`](crate::http1::CHUNK_END) in their place ends the body.
    pub trailers: usize,
}

impl Default for ChunkTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkTracker {
    /// Creates a tracker at the beginning of a request's body.
    #[inline]
    pub fn new() -> Self {
        Self {
            state: ChunkState::Size,
            digits: 0,
            extension_bytes: 0,
            remaining: 0,
            is_request: true,
        }
    }

    /// Creates a tracker at the beginning of a response's body.
    #[inline]
    pub(crate) fn of_response() -> Self {
        Self {
            is_request: false,
            ..Self::new()
        }
    }

    /// Returns true if the body is complete.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.state == ChunkState::Ended
    }

    /// Number of bytes left in the current chunk: that many can be passed on without being parsed.
    #[inline]
    pub fn remaining_data(&self) -> u64 {
        if self.state == ChunkState::Data {
            self.remaining
        } else {
            0
        }
    }

    /// Records bytes that were passed on without being parsed.
    ///
    /// # Panics
    ///
    /// Panics if there are more than [`remaining_data`](Self::remaining_data).
    pub fn skip_data(&mut self, bytes: u64) {
        assert!(bytes <= self.remaining_data(), "data of one chunk");
        self.advance(bytes);
    }

    /// Tracks the framing through `bytes`, which follow the consumed ones.
    ///
    /// `table` receives trailers; the fields of the head in it are lost.
    ///
    /// # Errors
    ///
    /// Returns the first error. Nothing of `bytes` may be passed on, and the message must not be
    /// completed: the connections on both sides must be closed. All further calls return the same
    /// error.
    #[inline]
    pub fn track(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
        table: &mut HeadTable,
    ) -> Result<Progress, Rejection> {
        self.track_data(bytes, limits, table, |_| ())
    }

    /// Like [`track`](Self::track), and calls `data` with each run of content, for a recipient
    /// without chunks.
    ///
    /// Runs before an error are passed on although the call fails.
    #[inline]
    pub fn track_data(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
        table: &mut HeadTable,
        data: impl FnMut(&[u8]),
    ) -> Result<Progress, Rejection> {
        let progress = self.follow(bytes, limits, table, data);
        if let Err(rejection) = progress {
            self.state = ChunkState::Rejected(rejection);
        }
        progress
    }

    #[inline]
    fn follow(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
        table: &mut HeadTable,
        mut data: impl FnMut(&[u8]),
    ) -> Result<Progress, Rejection> {
        let mut progress = Progress::default();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match self.state {
                ChunkState::Data => {
                    let run = self.remaining.min((bytes.len() - at) as u64);
                    // The run is not longer than the slice.
                    let end = at + run as usize;
                    data(&bytes[at..end]);
                    progress.payload += run;
                    self.advance(run);
                    at = end;
                    // Both bytes at once if they have arrived, otherwise byte by byte.
                    if self.state == ChunkState::DataCarriageReturn
                        && bytes[at..].starts_with(b"\r\n")
                    {
                        self.begin_chunk();
                        at += 2;
                    }
                    continue;
                }
                // Fast path: a chunk line without extensions that has arrived whole.
                ChunkState::Size if self.digits == 0 => match plain_line(&bytes[at..]) {
                    Some((size, length)) => {
                        self.remaining = size;
                        self.state = ChunkState::Data;
                        at += length;
                        continue;
                    }
                    None => self.size(*byte)?,
                },
                ChunkState::Size => self.size(*byte)?,
                ChunkState::SizeLineFeed if *byte != b'\n' => {
                    return Err(Rejection::BareCarriageReturn);
                }
                ChunkState::SizeLineFeed if self.remaining > 0 => self.state = ChunkState::Data,
                // A size of 0 begins the trailer section.
                ChunkState::SizeLineFeed => {
                    self.state = ChunkState::Trailers;
                    table.clear();
                }
                ChunkState::DataCarriageReturn if *byte == b'\r' => {
                    self.state = ChunkState::DataLineFeed
                }
                ChunkState::DataLineFeed if *byte == b'\n' => self.begin_chunk(),
                ChunkState::DataCarriageReturn | ChunkState::DataLineFeed => {
                    return Err(Rejection::ChunkEnd);
                }
                ChunkState::Extension(extension) => self.extension(extension, *byte)?,
                ChunkState::Trailers => {
                    self.trailers(&bytes[at..], limits, table, &mut progress)?;
                    break;
                }
                // The rest belongs to the next message.
                ChunkState::Ended => break,
                ChunkState::Rejected(rejection) => return Err(rejection),
            }
            at += 1;
        }
        progress.consumed += at;
        Ok(progress)
    }

    #[inline]
    fn advance(&mut self, data: u64) {
        self.remaining -= data;
        if self.remaining == 0 && self.state == ChunkState::Data {
            self.state = ChunkState::DataCarriageReturn;
        }
    }

    #[inline]
    fn begin_chunk(&mut self) {
        self.state = ChunkState::Size;
        self.digits = 0;
    }

    #[inline]
    fn size(&mut self, byte: u8) -> Result<(), Rejection> {
        let Some(digit) = hexadecimal(byte) else {
            return self.size_end(byte);
        };
        if self.digits == DIGITS {
            return Err(Rejection::ChunkSize);
        }
        self.digits += 1;
        // 16 digits fit into 64 bits.
        self.remaining = self.remaining << 4 | u64::from(digit);
        Ok(())
    }

    #[inline]
    fn size_end(&mut self, byte: u8) -> Result<(), Rejection> {
        // Limited to a signed number, since some parsers read it as one.
        if self.digits == 0 || i64::try_from(self.remaining).is_err() {
            return Err(Rejection::ChunkSize);
        }
        self.state = match byte {
            b'\r' => ChunkState::SizeLineFeed,
            b';' => ChunkState::Extension(Extension::NameStart),
            b'\n' => return Err(Rejection::BareLineFeed),
            _ => return Err(Rejection::ChunkSize),
        };
        Ok(())
    }

    #[cold]
    fn extension(&mut self, extension: Extension, byte: u8) -> Result<(), Rejection> {
        // Counted over all chunks, since small extensions add up.
        self.extension_bytes += 1;
        if self.extension_bytes > EXTENSION_BYTES {
            return Err(Rejection::ChunkExtensionsTooLong);
        }
        self.state = match extension.next(byte) {
            Some(NextState::Extension(extension)) => ChunkState::Extension(extension),
            Some(NextState::LineFeed) => ChunkState::SizeLineFeed,
            None => return Err(Rejection::ChunkExtension),
        };
        Ok(())
    }

    /// Reads the trailer section at the front of `bytes`. It is consumed once it is complete.
    fn trailers(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
        table: &mut HeadTable,
        progress: &mut Progress,
    ) -> Result<(), Rejection> {
        let window = limits.window(bytes);
        // Waits for another line end: a slow sender must not cost a parse per byte.
        let read = if table.is_begun() && !table.has_further_line(window) {
            Err(Stop::Partial)
        } else {
            read_fields(window, limits.most_fields(), Section::Trailers, table)
        };
        let end = match read {
            Ok(end) => end,
            Err(Stop::Partial) if window.len() < limits.most_bytes() => {
                table.pause(window);
                return Ok(());
            }
            Err(Stop::Partial) => return Err(Rejection::HeadTooLarge),
            Err(Stop::Rejected(rejection)) => return Err(rejection),
        };
        table.end();
        let forbidden = table.classes().intersection(ClassSet::NEVER_TRAILERS);
        // A recipient may drop them (RFC 9110 section 6.5.1). One who sends them in a request may mean something by it.
        if self.is_request && !forbidden.is_empty() {
            return Err(Rejection::Trailer);
        }
        self.state = ChunkState::Ended;
        progress.ended = true;
        // An empty section is consumed here; any other one is left to the caller.
        if table.fields().is_empty() {
            progress.consumed += end;
        } else {
            progress.trailers = end;
        }
        Ok(())
    }
}

/// The size of a chunk with data and the length of its line, if the complete line has the usual
/// form: up to seven digits, without extensions.
#[inline]
fn plain_line(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut size = 0;
    for (at, byte) in bytes.iter().take(8).enumerate() {
        match hexadecimal(*byte) {
            Some(digit) => size = size << 4 | u64::from(digit),
            // A size of 0 begins the trailers, and goes the long way.
            None if size > 0 && *byte == b'\r' && bytes.get(at + 1) == Some(&b'\n') => {
                return Some((size, at + 2));
            }
            None => return None,
        }
    }
    None
}

#[inline]
fn hexadecimal(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
