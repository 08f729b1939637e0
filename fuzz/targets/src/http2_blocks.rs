//! HTTP/2 header blocks, which are checked before `h2` reads them.

use std::time::Duration;

use h2::server::handshake;
use proxy_runtime::server::FrameHarness;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::input::{MAX_BYTES, bytes_of_lines, paused};

/// Maximum number of blocks per connection. `h2` has its own limit for blocks it has to reset.
const BLOCKS: usize = 16;

/// Maximum size of a frame payload in bytes.
const FRAME: usize = 16_384;

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const COMPRESSION_ERROR: u32 = 9;

/// Number of entries in the static table of HPACK.
const STATIC: usize = 61;

/// A complete request: GET, http, `/` and an authority.
const GOOD: &[u8] = b"\x82\x86\x84\x01\x01h";

/// Fuzzes the header blocks of one connection: one per line, with escaped bytes as in Rust. A line
/// that begins with `+` holds trailer fields of the request above it; any other line begins a
/// request.
///
/// * A block has the same meaning in frames of any size.
/// * `h2` reads all bytes that are passed on. Both agree on the size of the dynamic table.
/// * Only invalid HPACK ends the connection. Otherwise the next request is served.
pub fn http2_blocks(data: &[u8]) {
    let data = &data[..data.len().min(MAX_BYTES)];
    let lines: Vec<_> = data.split(|byte| *byte == b'\n').take(BLOCKS).collect();
    let (whole, harness) = pass(&lines, FRAME);
    for piece in [1, 5, 300] {
        // A block in many CONTINUATION frames is rejected as an attack.
        if lines.iter().any(|line| line.len() > 3 * piece) {
            continue;
        }
        let (pieces, other) = pass(&lines, piece);
        assert_eq!(pieces.is_ok(), whole.is_ok(), "in pieces of {piece}");
        assert_eq!(pieces.err(), whole.as_ref().err().copied());
        assert_eq!(other.numbered_fields(), harness.numbered_fields());
    }
    let Ok(mut bytes) = whole else { return };
    let mut harness = harness;
    let known = harness.numbered_fields();
    let mut stream = stream_of(lines.len());
    if known > 0 {
        bytes.extend(passed(&mut harness, stream, &numbered(STATIC + known)));
        stream += 2;
    }
    bytes.extend(passed(&mut harness, stream, GOOD));
    let served = paused()
        .block_on(async { timeout(Duration::from_secs(10), is_served(&bytes, stream)).await });
    assert!(matches!(served, Ok(Ok(true))), "{served:?}");
    let mut block = GOOD.to_vec();
    block.extend(numbered(STATIC + known + 1));
    let frames = frames(stream + 2, &block, true, FRAME);
    assert_eq!(harness.pass(&frames), Err(COMPRESSION_ERROR));
}

/// The stream of the request that a line begins, even if a line above does not begin one.
fn stream_of(line: usize) -> u32 {
    2 * line as u32 + 1
}

/// Passes all lines through the check, in frames of at most `piece` bytes.
fn pass(lines: &[&[u8]], piece: usize) -> (Result<Vec<u8>, u32>, FrameHarness) {
    let mut harness = FrameHarness::new();
    let mut all = Vec::new();
    let mut request = None;
    for (index, line) in lines.iter().enumerate() {
        let trailers = line.strip_prefix(b"+").zip(request.take());
        let (text, stream, is_last) = match trailers {
            Some((text, stream)) => (text, stream, true),
            None => {
                let stream = stream_of(index);
                let has_trailers = lines
                    .get(index + 1)
                    .is_some_and(|next| next.starts_with(b"+"));
                request = has_trailers.then_some(stream);
                (*line, stream, !has_trailers)
            }
        };
        let frames = frames(stream, &bytes_of_lines(text), is_last, piece);
        match harness.pass(&frames) {
            Ok(passed) => all.extend(passed),
            Err(code) => return (Err(code), harness),
        }
    }
    (Ok(all), harness)
}

fn passed(harness: &mut FrameHarness, stream: u32, block: &[u8]) -> Vec<u8> {
    let frames = frames(stream, block, true, FRAME);
    harness.pass(&frames).expect("it is known")
}

/// A field by its index (RFC 7541 section 6.1).
fn numbered(number: usize) -> Vec<u8> {
    match number.checked_sub(127) {
        None => vec![0x80 | number as u8],
        // The table has no room for more than 128 fields.
        Some(rest) if rest < 128 => vec![0xff, rest as u8],
        Some(rest) => vec![0xff, 0x80 | (rest & 127) as u8, (rest >> 7) as u8],
    }
}

fn frames(stream: u32, block: &[u8], is_last: bool, piece: usize) -> Vec<u8> {
    let mut frames = Vec::new();
    let mut rest = block;
    let mut kind = HEADERS;
    loop {
        let (part, after) = rest.split_at(rest.len().min(piece));
        let mut flags = if kind == HEADERS && is_last {
            END_STREAM
        } else {
            0
        };
        if after.is_empty() {
            flags |= END_HEADERS;
        }
        put(kind, flags, stream, part, &mut frames);
        if after.is_empty() {
            return frames;
        }
        (rest, kind) = (after, CONTINUATION);
    }
}

fn put(kind: u8, flags: u8, stream: u32, payload: &[u8], frames: &mut Vec<u8>) {
    frames.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    frames.extend_from_slice(&[kind, flags]);
    frames.extend_from_slice(&stream.to_be_bytes());
    frames.extend_from_slice(payload);
}

/// Returns true if `h2` serves `stream` of a client that sends these frames.
async fn is_served(frames: &[u8], stream: u32) -> Result<bool, h2::Error> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    put(SETTINGS, 0, 0, &[], &mut bytes);
    bytes.extend_from_slice(frames);
    let (mut near, far) = tokio::io::duplex(1 << 20);
    near.write_all(&bytes).await.expect("there is room");
    let mut server = handshake(far).await?;
    let mut begun = Vec::new();
    while let Some(accepted) = server.accept().await {
        let (request, respond) = accepted?;
        if respond.stream_id().as_u32() == stream {
            return Ok(true);
        }
        // Kept, since dropping one resets its stream.
        begun.push((request, respond));
    }
    Ok(false)
}
