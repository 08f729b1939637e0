//! Validation of client frames before `h2` reads them.
//!
//! `h2` closes the whole connection for many errors of a single stream, uses `PROTOCOL_ERROR` where
//! RFC 9113 requires another code, and accepts some malformed requests. Errors found here are
//! handled as the RFC requires: `h2` gets replacement frames that make it reset the stream, or no
//! more frames and the connection ends.

use std::borrow::Cow;

use h2::Reason;

use super::hpack::{Fields, HeaderBlock};

/// The length of a frame header (RFC 9113 section 4.1).
const HEAD: usize = 9;

/// Maximum payload of a frame: the server announces no other value (RFC 9113 section 4.2).
const LARGEST: usize = 16_384;

/// Maximum of CONTINUATION frames per header block: two hold the largest block that is served.
const CONTINUATIONS: usize = 6;

/// Maximum of streams tracked as open for more request frames.
const MOST_OPEN: usize = 256;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
/// Larger types are unknown, and `h2` ignores them (RFC 9113 section 5.5).
pub(super) const CONTINUATION: u8 = 9;

pub(super) const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const HAS_PRIORITY: u8 = 0x20;

/// A frame header.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameHeader {
    length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    stream: u32,
}

impl FrameHeader {
    /// Parses the frame header at the front of `bytes`. `None` if it is incomplete.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, kind, flags, d, e, f, g, ..] = bytes else {
            return None;
        };
        Some(Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            // The highest bit is reserved (RFC 9113 section 4.1).
            stream: u32::from_be_bytes([d & 0x7f, e, f, g]),
        })
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        let length = (self.length as u32).to_be_bytes();
        bytes.extend_from_slice(&length[1..]);
        bytes.extend_from_slice(&[self.kind, self.flags]);
        bytes.extend_from_slice(&self.stream.to_be_bytes());
    }
}

/// The handling of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FrameAction {
    /// Pass this many bytes on unchanged; some may not have arrived yet.
    Pass(usize),
    /// More data is required first. An incomplete header block blocks all other frames.
    Wait { is_block: bool },
    /// Replace this many bytes.
    Replace { taken: usize, with: Vec<u8> },
    /// End the connection.
    End(Reason),
}

/// The state of the frames of a connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionFrames {
    fields: Fields,
    /// The id of the last stream that the client has opened.
    last: u32,
    /// Streams whose request has not ended.
    open: Vec<u32>,
}

impl ConnectionFrames {
    /// Checks the frame with this header at the front of `bytes`.
    pub(super) fn look(&mut self, head: FrameHeader, bytes: &[u8]) -> FrameAction {
        if head.length > LARGEST {
            return FrameAction::End(Reason::FRAME_SIZE_ERROR);
        }
        // Fixed sizes by RFC 9113 section 6.
        let has_size = match head.kind {
            PRIORITY => head.length == 5,
            RST_STREAM | WINDOW_UPDATE => head.length == 4,
            SETTINGS if head.has(ACK) => head.length == 0,
            SETTINGS => head.length.is_multiple_of(6),
            PING => head.length == 8,
            GOAWAY => head.length >= 8,
            _ => true,
        };
        if !has_size {
            return FrameAction::End(Reason::FRAME_SIZE_ERROR);
        }
        let whole = HEAD + head.length;
        // A frame whose payload decides the verdict must be complete.
        let needs_payload = matches!(head.kind, HEADERS | SETTINGS | WINDOW_UPDATE);
        if needs_payload && bytes.len() < whole {
            let is_block = head.kind == HEADERS;
            return FrameAction::Wait { is_block };
        }
        match head.kind {
            HEADERS => return self.headers(head, bytes),
            SETTINGS if has_wide_window(&bytes[HEAD..whole]) => {
                return FrameAction::End(Reason::FLOW_CONTROL_ERROR);
            }
            WINDOW_UPDATE if self.has_begun(head.stream) && opens_nothing(&bytes[HEAD..whole]) => {
                let mut with = Vec::new();
                self.reset(head.stream, &mut with);
                return FrameAction::Replace { taken: whole, with };
            }
            RST_STREAM => self.close(head.stream),
            DATA if head.has(END_STREAM) => self.close(head.stream),
            _ => {}
        }
        FrameAction::Pass(whole)
    }

    /// Number of fields in the HPACK table.
    #[cfg(feature = "testing")]
    pub(super) fn numbered_fields(&self) -> usize {
        self.fields.numbered()
    }

    fn headers(&mut self, head: FrameHeader, bytes: &[u8]) -> FrameAction {
        let first = HEAD + head.length;
        let (block, is_own_parent) = match block_of(head, &bytes[HEAD..first]) {
            Ok(block) => block,
            Err(reason) => return FrameAction::End(reason),
        };
        let mut block = Cow::Borrowed(block);
        let mut whole = first;
        if !head.has(END_HEADERS) {
            match continued(head.stream, &bytes[first..]) {
                Ok(more) => whole += more,
                Err(verdict) => return verdict,
            }
            // Copied once the block is complete: an incomplete one is checked again with each read.
            gather(&bytes[first..whole], block.to_mut());
        }
        let is_trailers = self.open.contains(&head.stream);
        let read = match self.fields.read(&block, is_trailers) {
            Ok(read) => read,
            Err(reason) => return FrameAction::End(reason),
        };
        // A larger id opens a stream. Otherwise the block holds trailers.
        if self.last < head.stream {
            self.last = head.stream;
            if !head.has(END_STREAM) && self.open.len() < MOST_OPEN {
                self.open.push(head.stream);
            }
        } else if head.has(END_STREAM) {
            self.close(head.stream);
        }
        let block = match read {
            // RFC 9113 section 5.3.1 allows a stream that depends on itself. `h2` rejects it, and
            // would lose the table updates of the block.
            HeaderBlock::Fine if is_own_parent => block,
            HeaderBlock::Fine => return FrameAction::Pass(whole),
            // `h2` detects that clients cannot open such streams.
            _ if !self.has_begun(head.stream) => return FrameAction::Pass(whole),
            HeaderBlock::Malformed(None) => block,
            HeaderBlock::Malformed(Some(readable)) => Cow::Owned(readable),
        };
        let mut with = Vec::with_capacity(block.len() + 4 * HEAD);
        self.reset(head.stream, &mut with);
        put_block(head, &block, &mut with);
        FrameAction::Replace { taken: whole, with }
    }

    /// Returns true if the client may have opened this stream.
    fn has_begun(&self, stream: u32) -> bool {
        stream % 2 == 1 && stream <= self.last
    }

    /// Makes `h2` reset a stream with `PROTOCOL_ERROR` and count it, with a PRIORITY frame of a
    /// stream that depends on itself.
    fn reset(&mut self, stream: u32, with: &mut Vec<u8>) {
        self.close(stream);
        let head = FrameHeader {
            length: 5,
            kind: PRIORITY,
            flags: 0,
            stream,
        };
        head.put(with);
        // The stream that it depends on is itself, an error of the stream (RFC 7540 section 5.3.1).
        with.extend_from_slice(&stream.to_be_bytes());
        with.push(0);
    }

    fn close(&mut self, stream: u32) {
        if let Some(place) = self.open.iter().position(|&open| open == stream) {
            self.open.swap_remove(place);
        }
    }
}

/// Returns the header block fragment of a HEADERS frame, and true if its stream depends on itself.
fn block_of(head: FrameHeader, payload: &[u8]) -> Result<(&[u8], bool), Reason> {
    let mut block = payload;
    let mut padding = 0;
    if head.has(PADDED) {
        let (&length, rest) = block.split_first().ok_or(Reason::FRAME_SIZE_ERROR)?;
        (padding, block) = (usize::from(length), rest);
    }
    let mut is_own_parent = false;
    if head.has(HAS_PRIORITY) {
        let &[a, b, c, d, _, ref rest @ ..] = block else {
            return Err(Reason::FRAME_SIZE_ERROR);
        };
        is_own_parent = u32::from_be_bytes([a & 0x7f, b, c, d]) == head.stream;
        block = rest;
    }
    let length = block.len().checked_sub(padding);
    // RFC 9113 section 6.2: more padding than payload.
    let length = length.ok_or(Reason::PROTOCOL_ERROR)?;
    Ok((&block[..length], is_own_parent))
}

/// Finds the CONTINUATION frames that complete a block. Returns the number of their bytes.
fn continued(stream: u32, bytes: &[u8]) -> Result<usize, FrameAction> {
    let wait = FrameAction::Wait { is_block: true };
    let mut at = 0;
    for _ in 0..CONTINUATIONS {
        let Some(next) = FrameHeader::of(&bytes[at..]) else {
            return Err(wait);
        };
        // No other frame may interrupt a header block (RFC 9113 section 6.10).
        if next.kind != CONTINUATION || next.stream != stream {
            return Err(FrameAction::End(Reason::PROTOCOL_ERROR));
        }
        if next.length > LARGEST {
            return Err(FrameAction::End(Reason::FRAME_SIZE_ERROR));
        }
        at += HEAD + next.length;
        if bytes.len() < at {
            return Err(wait);
        }
        if next.has(END_HEADERS) {
            return Ok(at);
        }
    }
    // Endless CONTINUATION frames would cost memory and time without a request.
    Err(FrameAction::End(Reason::ENHANCE_YOUR_CALM))
}

/// Appends the fragments of CONTINUATION frames to a block.
fn gather(mut frames: &[u8], block: &mut Vec<u8>) {
    block.reserve(frames.len());
    while let Some(head) = FrameHeader::of(frames) {
        let (frame, rest) = frames.split_at(HEAD + head.length);
        block.extend_from_slice(&frame[HEAD..]);
        frames = rest;
    }
}

/// Appends the frames for a block that was read with this header.
fn put_block(head: FrameHeader, block: &[u8], bytes: &mut Vec<u8>) {
    let mut head = FrameHeader {
        kind: HEADERS,
        // Padding and priority are left out.
        flags: head.flags & END_STREAM,
        ..head
    };
    let mut rest = block;
    loop {
        let (part, after) = rest.split_at(rest.len().min(LARGEST));
        head.length = part.len();
        if after.is_empty() {
            head.flags |= END_HEADERS;
        }
        head.put(bytes);
        bytes.extend_from_slice(part);
        if after.is_empty() {
            return;
        }
        rest = after;
        head.kind = CONTINUATION;
        head.flags = 0;
    }
}

/// Returns true if the settings have a window beyond the maximum (RFC 9113 section 6.5.2).
fn has_wide_window(settings: &[u8]) -> bool {
    const INITIAL_WINDOW_SIZE: u8 = 4;
    settings
        .chunks_exact(6)
        .any(|setting| matches!(setting, [0, INITIAL_WINDOW_SIZE, 0x80..=0xff, ..]))
}

/// Returns true for a WINDOW_UPDATE with an increment of 0 (RFC 9113 section 6.9).
fn opens_nothing(payload: &[u8]) -> bool {
    matches!(payload, [0 | 0x80, 0, 0, 0])
}

#[cfg(test)]
mod tests;
