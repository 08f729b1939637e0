//! Follows the framing of chunks through whole reads.

use super::extension::{Extension, Next};
use crate::http1::field::ClassSet;
use crate::http1::head::{HeadTable, Section, Stop, read_fields};
use crate::http1::{HeadLimits, Refusal};

/// Bytes of extensions that a body may have, all chunks together: what hyper allows.
const EXTENSION_BYTES: u32 = 16 * 1024;

/// Digits of a size; with more, all but these are zeros, or the number is too large.
const DIGITS: u8 = 16;

/// Follows the framing of a chunked body through whole reads, which are sent on as they are.
///
/// Strict where RFC 9112 section 7.1 is: a size is 1 to 16 hexadecimal digits and at most 2⁶³ − 1, every line ends in CRLF, and
/// data is followed by CRLF at once. Stricter where it leaves a choice: extensions have no white space and 16 KiB in all;
/// trailers are lines as strict as a head's, bounded by [`HeadLimits::bytes`] and [`HeadLimits::fields`], and none of them
/// is `Host`, `Content-Length` or `Transfer-Encoding`.
///
/// It holds no bytes and allocates nothing. Where bytes come cut makes no difference.
#[derive(Clone, Copy, Debug)]
pub struct ChunkTracker {
    state: State,
    /// Digits of the size so far.
    digits: u8,
    extension_bytes: u32,
    /// The size so far, and then what is left of it.
    remaining: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size,
    Extension(Extension),
    SizeLineFeed,
    Data,
    DataCarriageReturn,
    DataLineFeed,
    Trailers,
    Ended,
    Refused(Refusal),
}

/// How far a read has brought the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes from the beginning that belong to the body and can be sent on as they are.
    ///
    /// What follows is the trailer section if the body has [`ended`](Self::ended) with one, the next message if it has ended
    /// without one, and otherwise the beginning of a trailer section, which is to be given again with what comes.
    pub consumed: usize,
    /// Bytes of content among them.
    pub payload: u64,
    /// Whether the body is complete.
    pub ended: bool,
    /// Bytes of the trailer section behind [`consumed`](Self::consumed), its empty line included; 0 without trailers.
    ///
    /// Its fields are in the table, as ranges of that section. [`write_trailers`](crate::http1::write_trailers) sends on
    /// those that may be; where none may, [`CHUNK_END`](crate::http1::CHUNK_END) in their place ends the body.
    pub trailers: usize,
}

impl Default for ChunkTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkTracker {
    /// At the beginning of a body.
    #[inline]
    pub fn new() -> Self {
        Self {
            state: State::Size,
            digits: 0,
            extension_bytes: 0,
            remaining: 0,
        }
    }

    /// Whether the body is complete.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Bytes that are left of the chunk whose data is being read: so many can be moved without being looked at.
    #[inline]
    pub fn remaining_data(&self) -> u64 {
        if self.state == State::Data {
            self.remaining
        } else {
            0
        }
    }

    /// Takes note of bytes that were moved without being looked at.
    ///
    /// # Panics
    ///
    /// If there are more than [`remaining_data`](Self::remaining_data).
    pub fn skip_data(&mut self, bytes: u64) {
        assert!(bytes <= self.remaining_data(), "data of one chunk");
        self.advance(bytes);
    }

    /// Follows the framing through `bytes`, which follow those that were consumed before.
    ///
    /// `table` is used for trailers; the head's fields in it are gone then.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong. Nothing of `bytes` may be sent on, and the message must not be completed: the
    /// connections on both sides are to be closed. Every further call fails likewise.
    #[inline]
    pub fn track(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
        table: &mut HeadTable,
    ) -> Result<Progress, Refusal> {
        self.track_data(bytes, limits, table, |_| ())
    }

    /// The same, and calls `data` with each run of content: for a recipient that knows no chunks.
    ///
    /// Runs that come before something wrong are handed out although the call fails.
    #[inline]
    pub fn track_data(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
        table: &mut HeadTable,
        data: impl FnMut(&[u8]),
    ) -> Result<Progress, Refusal> {
        let progress = self.follow(bytes, limits, table, data);
        if let Err(refusal) = progress {
            self.state = State::Refused(refusal);
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
    ) -> Result<Progress, Refusal> {
        let mut progress = Progress::default();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match self.state {
                State::Data => {
                    let run = self.remaining.min((bytes.len() - at) as u64);
                    // It is not longer than the slice.
                    let end = at + run as usize;
                    data(&bytes[at..end]);
                    progress.payload += run;
                    self.advance(run);
                    at = end;
                    // All at once, if it is there; byte by byte if not.
                    if self.state == State::DataCarriageReturn && bytes[at..].starts_with(b"\r\n") {
                        self.begin_chunk();
                        at += 2;
                    }
                    continue;
                }
                State::Size if self.digits == 0 => match plain_line(&bytes[at..]) {
                    Some((size, length)) => {
                        self.remaining = size;
                        self.state = State::Data;
                        at += length;
                        continue;
                    }
                    None => self.size(*byte)?,
                },
                State::Size => self.size(*byte)?,
                State::SizeLineFeed if *byte != b'\n' => return Err(Refusal::BareCarriageReturn),
                State::SizeLineFeed if self.remaining > 0 => self.state = State::Data,
                State::SizeLineFeed => {
                    self.state = State::Trailers;
                    table.clear();
                }
                State::DataCarriageReturn if *byte == b'\r' => self.state = State::DataLineFeed,
                State::DataLineFeed if *byte == b'\n' => self.begin_chunk(),
                State::DataCarriageReturn | State::DataLineFeed => return Err(Refusal::ChunkEnd),
                State::Extension(extension) => self.extension(extension, *byte)?,
                State::Trailers => {
                    self.trailers(&bytes[at..], limits, table, &mut progress)?;
                    break;
                }
                State::Ended => break,
                State::Refused(refusal) => return Err(refusal),
            }
            at += 1;
        }
        progress.consumed += at;
        Ok(progress)
    }

    #[inline]
    fn advance(&mut self, data: u64) {
        self.remaining -= data;
        if self.remaining == 0 && self.state == State::Data {
            self.state = State::DataCarriageReturn;
        }
    }

    #[inline]
    fn begin_chunk(&mut self) {
        self.state = State::Size;
        self.digits = 0;
    }

    #[inline]
    fn size(&mut self, byte: u8) -> Result<(), Refusal> {
        let Some(digit) = hexadecimal(byte) else {
            return self.size_end(byte);
        };
        if self.digits == DIGITS {
            return Err(Refusal::ChunkSize);
        }
        self.digits += 1;
        self.remaining = self.remaining << 4 | u64::from(digit);
        Ok(())
    }

    #[inline]
    fn size_end(&mut self, byte: u8) -> Result<(), Refusal> {
        if self.digits == 0 || i64::try_from(self.remaining).is_err() {
            return Err(Refusal::ChunkSize);
        }
        self.state = match byte {
            b'\r' => State::SizeLineFeed,
            b';' => State::Extension(Extension::NameStart),
            b'\n' => return Err(Refusal::BareLineFeed),
            _ => return Err(Refusal::ChunkSize),
        };
        Ok(())
    }

    #[cold]
    fn extension(&mut self, extension: Extension, byte: u8) -> Result<(), Refusal> {
        self.extension_bytes += 1;
        if self.extension_bytes > EXTENSION_BYTES {
            return Err(Refusal::ChunkExtensionsTooLong);
        }
        self.state = match extension.next(byte) {
            Some(Next::Extension(extension)) => State::Extension(extension),
            Some(Next::LineFeed) => State::SizeLineFeed,
            None => return Err(Refusal::ChunkExtension),
        };
        Ok(())
    }

    /// Reads the trailer section, with which `bytes` begin. It is consumed when it is complete.
    fn trailers(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
        table: &mut HeadTable,
        progress: &mut Progress,
    ) -> Result<(), Refusal> {
        let window = limits.window(bytes);
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
            Err(Stop::Partial) => return Err(Refusal::HeadTooLarge),
            Err(Stop::Refused(refusal)) => return Err(refusal),
        };
        table.end();
        if !table
            .classes()
            .intersection(ClassSet::NEVER_TRAILERS)
            .is_empty()
        {
            return Err(Refusal::Trailer);
        }
        self.state = State::Ended;
        progress.ended = true;
        if table.fields().is_empty() {
            progress.consumed += end;
        } else {
            progress.trailers = end;
        }
        Ok(())
    }
}

/// The size of a chunk with data, and the length of its line, if the line is there and is as most are: up to seven digits,
/// and nothing else.
#[inline]
fn plain_line(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut size = 0;
    for (at, byte) in bytes.iter().take(8).enumerate() {
        match hexadecimal(*byte) {
            Some(digit) => size = size << 4 | u64::from(digit),
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
