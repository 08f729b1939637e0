//! Runs of allowed bytes.
//!
//! Each function returns the position of the first byte that is not allowed, or the length of the
//! input; some return the rest from there. The caller decides if that byte may end the run.

use super::block::{self, SIZE};

/// `tchar` of RFC 9110 section 5.6.2.
pub(super) const TOKEN: u8 = 1;
/// Bytes of the path of a target.
pub(super) const PATH: u8 = 1 << 1;
/// Bytes of a path without `.` and `%`.
const PLAIN_PATH: u8 = 1 << 2;
/// Bytes of the query of a target.
const QUERY: u8 = 1 << 3;
/// Bytes of a host name, without the colon of a port.
pub(super) const HOST: u8 = 1 << 4;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        let c = byte as u8;
        if c.is_ascii_alphanumeric() {
            classes[byte] = TOKEN | PATH | PLAIN_PATH | HOST;
        }
        // A target has no fragment, and browsers encode the other three.
        if !matches!(c, b'"' | b'#' | b'<' | b'>') {
            classes[byte] |= QUERY;
        }
        byte += 1;
    }
    mark(&mut classes, b"!#$%&'*+-.^_`|~", TOKEN);
    // RFC 3986 section 3.3, and bytes that browsers fail to encode.
    mark(&mut classes, b"/-_~!$&'()*+,;=:@[]|^", PATH | PLAIN_PATH);
    mark(&mut classes, b".%", PATH);
    mark(&mut classes, b"-._~", HOST);
    classes
}

const fn mark(classes: &mut [u8; 256], bytes: &[u8], class: u8) {
    let mut at = 0;
    while at < bytes.len() {
        classes[bytes[at] as usize] |= class;
        at += 1;
    }
}

/// The classes of a byte.
#[inline]
pub(super) fn classes_of(byte: u8) -> u8 {
    CLASSES[byte as usize]
}

/// Returns true if all of `bytes`, and at least one, are of a class.
#[inline]
pub(super) fn all(bytes: &[u8], class: u8) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| classes_of(*byte) & class != 0)
}

/// Returns the rest after a run of bytes of a class.
///
/// Paths and hosts are short: a table look-up per byte takes fewer instructions than arithmetic on
/// words.
#[inline(always)]
fn behind(mut bytes: &[u8], class: u8) -> &[u8] {
    while let Some((eight, rest)) = bytes.split_first_chunk::<8>() {
        let common = eight
            .iter()
            .fold(class, |all, byte| all & classes_of(*byte));
        if common == 0 {
            break;
        }
        bytes = rest;
    }
    // The rest, or the block in which the run ends.
    while let [byte, rest @ ..] = bytes {
        if classes_of(*byte) & class == 0 {
            break;
        }
        bytes = rest;
    }
    bytes
}

/// Returns the end of the run of a class that begins at `at`. The class must contain letters,
/// digits, `-`, `.` and `/`, without `except`.
#[inline(always)]
fn run_end(bytes: &[u8], mut at: usize, class: u8, except: u8) -> usize {
    while let Some((block, _)) = bytes.get(at..).and_then(<[u8]>::split_first_chunk) {
        let run = block::words(block, except);
        at += run as usize;
        if run < SIZE {
            break;
        }
    }
    match bytes.get(at..) {
        // The test of blocks accepts only the common bytes of a class.
        Some(run @ [next, ..]) if classes_of(*next) & class != 0 => {
            at + (run.len() - behind(run, class).len())
        }
        _ => at,
    }
}

/// The byte at `at`.
#[inline(always)]
pub(super) fn byte_at(bytes: &[u8], at: u32) -> Option<u8> {
    bytes.get(at as usize).copied()
}

/// The two bytes at `at`.
#[inline(always)]
pub(super) fn pair_at(bytes: &[u8], at: u32) -> Option<&[u8; 2]> {
    chunk_at(bytes, at)
}

/// The `N` bytes at `at`, if there are that many.
#[inline(always)]
pub(super) fn chunk_at<const N: usize>(bytes: &[u8], at: u32) -> Option<&[u8; N]> {
    bytes.get(at as usize..at as usize + N)?.try_into().ok()
}

/// The end of the token that begins at `at`.
#[inline]
pub(super) fn token_end(bytes: &[u8], at: usize) -> usize {
    run_end(bytes, at, TOKEN, b'/')
}

/// The end of the path that begins at `at`, and true if it contains neither `.` nor `%`.
#[inline]
pub(super) fn path_end(bytes: &[u8], at: usize) -> (usize, bool) {
    let end = run_end(bytes, at, PLAIN_PATH, b'.');
    match bytes.get(end) {
        Some(b'.' | b'%') => (run_end(bytes, end, PATH, 0), false),
        _ => (end, true),
    }
}

/// The end of the query that begins at `at`.
#[inline]
pub(super) fn query_end(bytes: &[u8], at: usize) -> usize {
    run_end(bytes, at, QUERY, 0)
}

/// The end of the host name that begins at `at`.
#[inline]
pub(super) fn host_end(bytes: &[u8], at: usize) -> usize {
    run_end(bytes, at, HOST, b'/')
}

/// A word with the same byte eight times.
#[inline(always)]
const fn each(byte: u8) -> u64 {
    0x0101_0101_0101_0101 * byte as u64
}

/// A word with the high bit of each byte that is a control character, including tab.
///
/// Sums of numbers below 128 carry into the high bit and no further, so bytes do not affect each
/// other.
#[inline(always)]
fn controls(word: u64) -> u64 {
    let seven_bits = word & each(0x7f);
    let is_below_space = !(seven_bits + each(0x80 - 0x20));
    let is_delete = seven_bits + each(1);
    (is_below_space | is_delete) & !word & each(0x80)
}

/// The position of the first control character from `at`, including tab. It may lie behind the
/// returned position if that is within the last block.
#[inline(always)]
pub(super) fn controls_at(bytes: &[u8], at: u32) -> u32 {
    let mut end = at;
    while let Some(block) = chunk_at(bytes, end) {
        let text = block::text(block, 0);
        end += text;
        if text < SIZE {
            break;
        }
    }
    end
}

/// The end of the field value or reason phrase that begins at `at` (RFC 9110 section 5.5, without
/// line folding).
#[inline(never)]
pub(super) fn text_end(bytes: &[u8], at: u32) -> u32 {
    let mut end = at;
    loop {
        end = last_controls_at(bytes, controls_at(bytes, end));
        // RFC 9110 section 5.5 allows tabs within a value.
        if byte_at(bytes, end) != Some(b'\t') {
            return end;
        }
        end += 1;
    }
}

/// The position of the first control character from `at`, if `at` is within the last block;
/// otherwise `at`.
#[inline]
fn last_controls_at(bytes: &[u8], at: u32) -> u32 {
    let Some((before, last)) = bytes.split_last_chunk::<{ SIZE as usize }>() else {
        return each_controls_at(bytes, at);
    };
    // Bytes before `at` have been tested.
    match at.checked_sub(before.len() as u32) {
        Some(seen) if seen < SIZE => before.len() as u32 + block::text(last, seen),
        _ => at,
    }
}

/// Like [`last_controls_at`], for less than a block.
#[cold]
fn each_controls_at(bytes: &[u8], at: u32) -> u32 {
    let rest = bytes.get(at as usize..).unwrap_or_default();
    let is_control = |byte: &u8| matches!(byte, ..0x20 | 0x7f);
    at + rest.iter().position(is_control).unwrap_or(rest.len()) as u32
}

/// Returns true if all of `bytes` are allowed in a field value.
#[inline]
pub(super) fn is_text(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks();
    let is_plain = |word: &[u8; 8]| controls(u64::from_le_bytes(*word)) == 0;
    let is_text = |bytes: &[u8]| {
        let mut bytes = bytes.iter();
        bytes.all(|byte| matches!(byte, b'\t' | 0x20..=0x7e | 0x80..))
    };
    // A word with a tab is looked at byte by byte.
    words.iter().all(|word| is_plain(word) || is_text(word)) && is_text(rest)
}

/// Returns true if all of `bytes` are allowed in a target: visible ASCII without `#` and other
/// bytes that targets never have.
#[inline]
pub(super) fn is_target(bytes: &[u8]) -> bool {
    query_end(bytes, 0) == bytes.len()
}

/// Returns true if path and query (without `?`) are allowed in a request line. Applies to every
/// version of HTTP, since targets are forwarded over HTTP/1.1.
#[cfg(all(feature = "http2", feature = "server"))]
pub(crate) fn is_path_and_query(path: &[u8], query: Option<&[u8]>) -> bool {
    run_end(path, 0, PATH, 0) == path.len() && query.is_none_or(is_target)
}

/// Returns true if this is a valid path without `.` and `%`, which has a single reading.
#[cfg(all(feature = "http2", feature = "server"))]
pub(crate) fn is_plain_path(path: &[u8]) -> bool {
    path_end(path, 0) == (path.len(), true)
}

/// Removes spaces and tabs at both ends (`OWS`, RFC 9110 section 5.6.3).
#[inline]
pub(super) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests every byte at every position of a word, among allowed bytes.
    fn check(end: impl Fn(&[u8]) -> usize, belongs: impl Fn(u8) -> bool) {
        for length in [1, 7, 8, 9, 16, 17, 40] {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut bytes = vec![b'a'; length];
                    bytes[at] = byte;
                    let expected = if belongs(byte) { length } else { at };
                    assert_eq!(end(&bytes), expected, "{byte:#04x} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn tokens_are_those_of_rfc_9110() {
        let marks = b"!#$%&'*+-.^_`|~";
        check(
            |bytes| token_end(bytes, 0),
            |byte| byte.is_ascii_alphanumeric() || marks.contains(&byte),
        );
    }

    #[test]
    fn controls_are_found_up_to_the_end() {
        for length in 0..=50 {
            for from in [0, 1, length / 2, length] {
                for at in from.min(length)..=length {
                    let mut bytes = vec![b'a'; length];
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = b'\r';
                    }
                    assert!(controls_at(&bytes, from as u32) as usize <= at.max(from));
                    assert_eq!(text_end(&bytes, from as u32) as usize, at.max(from));
                }
            }
        }
        assert_eq!(text_end(b"abc", 40), 40);
        assert_eq!(text_end(&[b'a'; 20], 40), 40);
    }

    #[test]
    fn paths_have_no_delimiters_of_others() {
        let marks = b"/-._~!$&'()*+,;=:@%[]|^";
        check(
            |bytes| path_end(bytes, 0).0,
            |byte| byte.is_ascii_alphanumeric() || marks.contains(&byte),
        );
    }

    #[test]
    fn queries_are_visible() {
        check(
            |bytes| query_end(bytes, 0),
            |byte| byte.is_ascii_graphic() && !b"\"#<>".contains(&byte),
        );
    }

    #[test]
    fn values_have_no_controls_but_tabs() {
        check(
            |bytes| text_end(bytes, 0) as usize,
            |byte| byte == b'\t' || (byte >= 0x20 && byte != 0x7f),
        );
    }

    #[test]
    fn what_is_not_ascii_hides_no_control() {
        for before in [0x80, 0x9f, 0xa0, 0xfe, 0xff] {
            for byte in 0..=255 {
                let bytes = [b'a', before, byte, b'b', before, before, byte, b'c', b'd'];
                let expected = match byte == b'\t' || (byte >= 0x20 && byte != 0x7f) {
                    true => bytes.len(),
                    false => 2,
                };
                assert_eq!(text_end(&bytes, 0) as usize, expected, "{byte:#04x}");
                assert_eq!(is_text(&bytes), expected == bytes.len());
            }
        }
    }

    #[test]
    fn a_text_is_one_to_its_end() {
        for length in [0, 1, 7, 8, 9, 17] {
            let bytes = vec![b'a'; length];
            assert!(is_text(&bytes));
            for at in 0..length {
                for byte in 0..=255 {
                    let mut bytes = bytes.clone();
                    bytes[at] = byte;
                    assert_eq!(is_text(&bytes), text_end(&bytes, 0) as usize == length);
                }
            }
        }
    }

    #[test]
    fn what_is_special_is_seen_wherever_it_stands() {
        for length in [1, 8, 17] {
            for at in 0..length {
                let mut bytes = vec![b'a'; length];
                bytes[at] = b'_';
                assert_eq!(path_end(&bytes, 0), (length, true));
                for special in *b".%" {
                    bytes[at] = special;
                    assert_eq!(path_end(&bytes, 0), (length, false));
                }
            }
        }
    }

    #[test]
    fn only_spaces_and_tabs_are_trimmed() {
        for (bytes, expected) in [
            (&b" \t a b\t "[..], &b"a b"[..]),
            (b"", b""),
            (b" \t", b""),
            (b"\x0ba\x0c", b"\x0ba\x0c"),
            (b"\xa0a", b"\xa0a"),
        ] {
            assert_eq!(trim(bytes), expected);
        }
    }
}
