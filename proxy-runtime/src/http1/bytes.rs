//! Runs of allowed bytes.
//!
//! Each function returns where the first byte stands that does not belong, or the length of the input; some return all that
//! is left from there on. Whatever stops a run is looked at by the caller, who knows what may stand there.

#[cfg(target_arch = "x86_64")]
use super::block::{self, Block};

/// `tchar` of RFC 9110 section 5.6.2.
pub(super) const TOKEN: u8 = 1;
/// What the path of a target may have.
pub(super) const PATH: u8 = 1 << 1;
/// What a path may have besides `.` and `%`.
const PLAIN_PATH: u8 = 1 << 2;
/// What the query of a target may have.
const QUERY: u8 = 1 << 3;
/// What the name of a host, its port's colon aside, may have.
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
        if !matches!(c, b'"' | b'#' | b'<' | b'>') {
            classes[byte] |= QUERY;
        }
        byte += 1;
    }
    mark(&mut classes, b"!#$%&'*+-.^_`|~", TOKEN);
    // RFC 3986 section 3.3, and what browsers leave as it is though it should be encoded.
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

/// Whether all of `bytes`, of which there is at least one, are of a class.
#[inline]
pub(super) fn all(bytes: &[u8], class: u8) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| classes_of(*byte) & class != 0)
}

/// What is left behind a run of bytes of a class.
///
/// Paths and hosts are short: to look up byte after byte in a table takes fewer instructions than arithmetic on words.
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
    while let [byte, rest @ ..] = bytes {
        if classes_of(*byte) & class == 0 {
            break;
        }
        bytes = rest;
    }
    bytes
}

/// Where a run of bytes of a class that begins at `at` ends.
#[inline(always)]
fn run_end(bytes: &[u8], at: usize, class: u8) -> usize {
    let run = bytes.get(at..).unwrap_or_default();
    at + (run.len() - behind(run, class).len())
}

/// The byte at `at`.
#[inline(always)]
pub(super) fn byte_at(bytes: &[u8], at: u32) -> Option<u8> {
    bytes.get(at as usize).copied()
}

/// The two bytes from `at` on.
#[inline(always)]
pub(super) fn pair_at(bytes: &[u8], at: u32) -> Option<&[u8; 2]> {
    bytes.get(at as usize..at as usize + 2)?.try_into().ok()
}

/// The eight bytes from `at` on, the first one lowest.
#[inline(always)]
fn word_at(bytes: &[u8], at: u32) -> Option<u64> {
    let eight = bytes.get(at as usize..at as usize + 8)?.try_into().ok()?;
    Some(u64::from_le_bytes(eight))
}

/// The sixteen bytes from `at` on.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn block_at(bytes: &[u8], at: u32) -> Option<&Block> {
    bytes.get(at as usize..at as usize + 16)?.try_into().ok()
}

/// Where the first byte stands from `at` on that is neither a letter nor `-`, of which names of fields nearly always are. Among
/// the last seven bytes it is not looked for: what is returned may have letters behind it there.
#[inline(always)]
pub(super) fn letters_end(bytes: &[u8], at: u32) -> u32 {
    let mut end = at;
    #[cfg(target_arch = "x86_64")]
    while let Some(block) = block_at(bytes, end) {
        let others = block::no_letters(block);
        if others != 0 {
            return end + others.trailing_zeros();
        }
        end += 16;
    }
    while let Some(word) = word_at(bytes, end) {
        let others = no_letters(word);
        if others != 0 {
            return end + others.trailing_zeros() / 8;
        }
        end += 8;
    }
    end
}

/// High bits where a byte is neither a letter nor `-`.
///
/// In each byte, sums stay below 256 and differences above 0, so that bytes do not disturb each other.
#[inline(always)]
fn no_letters(word: u64) -> u64 {
    // Letters of both cases become 1 to 26; what has one of the two top bits then is none.
    let order = (word | each(0x20)) ^ each(0x60);
    let low = order & each(0x7f);
    let is_beyond = low + each(0x80 - 27);
    let is_zero = each(0x80) - low;
    let hyphen = word ^ each(b'-');
    let is_no_hyphen = ((hyphen & each(0x7f)) + each(0x7f)) | hyphen;
    (is_beyond | is_zero | order) & is_no_hyphen & each(0x80)
}

/// The end of the token that begins at `at`.
#[inline]
pub(super) fn token_end(bytes: &[u8], at: usize) -> usize {
    run_end(bytes, at, TOKEN)
}

/// The end of the path that begins at `at`, and whether it has neither `.` nor `%`.
#[inline]
pub(super) fn path_end(bytes: &[u8], at: usize) -> (usize, bool) {
    let end = run_end(bytes, at, PLAIN_PATH);
    match bytes.get(end) {
        Some(b'.' | b'%') => (run_end(bytes, end, PATH), false),
        _ => (end, true),
    }
}

/// The end of the query that begins at `at`.
#[inline]
pub(super) fn query_end(bytes: &[u8], at: usize) -> usize {
    run_end(bytes, at, QUERY)
}

/// The end of the host name that begins at `at`.
#[inline]
pub(super) fn host_end(bytes: &[u8], at: usize) -> usize {
    run_end(bytes, at, HOST)
}

/// The same byte eight times.
#[inline(always)]
const fn each(byte: u8) -> u64 {
    0x0101_0101_0101_0101 * byte as u64
}

/// High bits where a byte is a control character, the tab included.
///
/// Sums of numbers below 128 carry into the high bit and no further, so that bytes do not disturb each other.
#[inline(always)]
fn controls(word: u64) -> u64 {
    let seven_bits = word & each(0x7f);
    let is_below_space = !(seven_bits + each(0x80 - 0x20));
    let is_delete = seven_bits + each(1);
    (is_below_space | is_delete) & !word & each(0x80)
}

/// The end of the field value, or of the reason phrase, that begins at `at`: RFC 9110 section 5.5 without line folding.
#[inline(always)]
pub(super) fn text_end(bytes: &[u8], at: u32) -> u32 {
    let mut end = at;
    #[cfg(target_arch = "x86_64")]
    while let Some(block) = block_at(bytes, end) {
        let controls = block::controls(block);
        if controls == 0 {
            end += 16;
            continue;
        }
        end += controls.trailing_zeros();
        if byte_at(bytes, end) != Some(b'\t') {
            return end;
        }
        end += 1;
    }
    while let Some(word) = word_at(bytes, end) {
        let controls = controls(word);
        if controls == 0 {
            end += 8;
            continue;
        }
        end += controls.trailing_zeros() / 8;
        if byte_at(bytes, end) != Some(b'\t') {
            return end;
        }
        end += 1;
    }
    while let Some(b'\t' | 0x20..=0x7e | 0x80..) = byte_at(bytes, end) {
        end += 1;
    }
    end
}

/// Whether all of `bytes` can be in a field value.
#[inline]
pub(super) fn is_text(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks();
    let is_plain = |word: &[u8; 8]| controls(u64::from_le_bytes(*word)) == 0;
    let is_text = |bytes: &[u8]| {
        let mut bytes = bytes.iter();
        bytes.all(|byte| matches!(byte, b'\t' | 0x20..=0x7e | 0x80..))
    };
    words.iter().all(|word| is_plain(word) || is_text(word)) && is_text(rest)
}

/// Whether all of `bytes` can be part of a target: visible ASCII without `#` and what no target ever has.
#[inline]
pub(super) fn is_target(bytes: &[u8]) -> bool {
    query_end(bytes, 0) == bytes.len()
}

/// Whether path and query, which is without its `?`, are what a request line may have: the same for every version of HTTP,
/// since they are written into one.
#[cfg(all(feature = "http2", feature = "server"))]
pub(crate) fn is_path_and_query(path: &[u8], query: Option<&[u8]>) -> bool {
    run_end(path, 0, PATH) == path.len() && query.is_none_or(is_target)
}

/// Whether it is the path of a request line, and has neither `.` nor `%`, so that there is one reading of it.
#[cfg(all(feature = "http2", feature = "server"))]
pub(crate) fn is_plain_path(path: &[u8]) -> bool {
    path_end(path, 0) == (path.len(), true)
}

/// `bytes` without spaces and tabs at both ends (`OWS`, RFC 9110 section 5.6.3).
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

    /// Every byte at every place of a word, among bytes that belong.
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
    fn letters_end_where_something_else_stands() {
        for length in [8, 9, 16, 17, 40] {
            for at in 0..=length - 8 {
                for byte in 0..=255 {
                    let mut bytes = vec![b'a'; length];
                    bytes[at] = byte;
                    let end = letters_end(&bytes, 0) as usize;
                    match byte.is_ascii_alphabetic() || byte == b'-' {
                        true => assert_eq!(end, length / 8 * 8, "{byte:#04x} at {at}"),
                        false => assert_eq!(end, at, "{byte:#04x} of {length}"),
                    }
                }
            }
        }
        assert_eq!(letters_end(b"abcdefghi", 1), 9);
        assert_eq!(letters_end(b"abcdefghi", 2), 2, "the end is not looked at");
        assert_eq!(letters_end(b"abcdefghi", 40), 40);
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
