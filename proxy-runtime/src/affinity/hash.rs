//! The hashes of ids, as YARP computes them.

use sha2::{Digest, Sha256};
use twox_hash::XxHash64;

/// The longest hash, in bytes.
pub(super) const MOST: usize = 32;

/// A hash of either kind. A shorter one is padded with zeros.
pub(super) type Hash = [u8; MOST];

/// Length of XXH64 in bytes.
pub(super) const SHORT: usize = 8;

/// The XXH64 of an id in upper case, in UTF-16: the value of `HashCookie`.
pub(super) fn short(id: &str) -> [u8; SHORT] {
    let text = utf16(id.chars().map(upper));
    XxHash64::oneshot(0, &text).to_be_bytes()
}

/// The SHA-256 of an id in lower case, in UTF-16: the value of `ArrCookie`.
pub(super) fn long(id: &str) -> Hash {
    let text = utf16(id.chars().map(lower));
    Sha256::digest(&text).into()
}

/// A short hash in the form of all hashes.
pub(super) fn padded(short: [u8; SHORT]) -> Hash {
    let mut hash = [0; MOST];
    hash[..SHORT].copy_from_slice(&short);
    hash
}

/// The bytes that hex digits of one case stand for. `None` if `text` has another length or other characters.
pub(super) fn parse_hex(text: &[u8], length: usize, is_upper: bool) -> Option<Hash> {
    if text.len() != 2 * length {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' if !is_upper => Some(byte - b'a' + 10),
        b'A'..=b'F' if is_upper => Some(byte - b'A' + 10),
        _ => None,
    };
    let mut hash = [0; MOST];
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}

/// Appends bytes as hex digits.
pub(super) fn push_hex(bytes: &[u8], is_upper: bool, out: &mut String) {
    let digits: &[u8; 16] = match is_upper {
        true => b"0123456789ABCDEF",
        false => b"0123456789abcdef",
    };
    for byte in bytes {
        out.push(char::from(digits[usize::from(byte >> 4)]));
        out.push(char::from(digits[usize::from(byte & 15)]));
    }
}

/// Converts to upper case like .NET's invariant culture: one character to one.
fn upper(c: char) -> char {
    // The dotless i stays, whose upper case is that of another letter.
    match c {
        '\u{131}' => c,
        _ => single(c.to_uppercase(), c),
    }
}

fn lower(c: char) -> char {
    single(c.to_lowercase(), c)
}

fn single(mut mapped: impl Iterator<Item = char>, c: char) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Text in UTF-16, little endian.
fn utf16(text: impl Iterator<Item = char>) -> Vec<u8> {
    // As .NET holds text in memory.
    let mut bytes = Vec::new();
    for c in text {
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            bytes.extend_from_slice(&unit.to_le_bytes());
        }
    }
    bytes
}
