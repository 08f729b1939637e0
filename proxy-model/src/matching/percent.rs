//! Percent-encoding (RFC 3986 section 2.1) as ASP.NET Core reads and YARP writes it.

use std::borrow::Cow;
use std::ops::Range;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// The characters that must be encoded in a path: all but `/` and `pchar` (RFC 3986 section 3.3).
const NOT_IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The characters that must be encoded in one segment of a path.
const NOT_IN_SEGMENT: &AsciiSet = &NOT_IN_PATH.add(b'/');

/// The part of a URL that encoded text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// `%2F` stays, since it is not a separator; `%00` stays, since no path means it.
    Path,
    /// A value that was cut out of a path: all of it is decoded but `%00`.
    Value,
    /// `+` is a space.
    Query,
}

/// Decodes `text`. Escapes that are incomplete, or that are not UTF-8 together, stay unchanged.
pub(super) fn decode(text: &str, part: Part) -> Cow<'_, str> {
    if !text.as_bytes().contains(&b'%') && (part != Part::Query || !text.as_bytes().contains(&b'+'))
    {
        return Cow::Borrowed(text);
    }
    let mut units = Units { rest: text, part };
    match units.next() {
        None => Cow::Borrowed(text),
        Some(Unit::Plain(plain)) if plain.len() == text.len() => Cow::Borrowed(text),
        Some(first) => {
            let mut decoded = String::with_capacity(text.len());
            for unit in std::iter::once(first).chain(units) {
                match unit {
                    Unit::Plain(plain) => decoded.push_str(plain),
                    Unit::Escaped(c, _) => decoded.push(c),
                }
            }
            Cow::Owned(decoded)
        }
    }
}

/// The encoded text behind a range of decoded text.
///
/// `range` is in bytes of the decoded form of `text` and lies on its character boundaries.
pub(super) fn encoded_range(text: &str, part: Part, range: Range<usize>) -> &str {
    let encoded_offset = |wanted: usize| {
        let (mut encoded, mut decoded) = (0, 0);
        for unit in (Units { rest: text, part }) {
            let (encoded_length, decoded_length) = match unit {
                Unit::Plain(plain) => (plain.len(), plain.len()),
                Unit::Escaped(c, length) => (length, c.len_utf8()),
            };
            if decoded + decoded_length > wanted {
                // Only plain text has a boundary inside.
                return encoded + (wanted - decoded);
            }
            encoded += encoded_length;
            decoded += decoded_length;
        }
        encoded
    };
    &text[encoded_offset(range.start)..encoded_offset(range.end)]
}

/// Appends `text` to a path, encoded. `/` is encoded too unless `keep_slashes`.
pub(super) fn encode(path: &mut String, text: &str, keep_slashes: bool) {
    path.extend(utf8_percent_encode(text, set(keep_slashes)));
}

/// Appends percent-encoded text to a path, and encodes only characters that a path may not contain.
pub(super) fn encode_again(path: &mut String, encoded: &str, keep_slashes: bool) {
    let mut pieces = encoded.split('%');
    if let Some(first) = pieces.next() {
        encode(path, first, keep_slashes);
    }
    for piece in pieces {
        let is_escape = piece
            .as_bytes()
            .get(..2)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        path.push_str(if is_escape { "%" } else { "%25" });
        encode(path, piece, keep_slashes);
    }
}

fn set(keep_slashes: bool) -> &'static AsciiSet {
    if keep_slashes {
        NOT_IN_PATH
    } else {
        NOT_IN_SEGMENT
    }
}

/// The units of encoded text.
enum Unit<'a> {
    /// Literal text.
    Plain(&'a str),
    /// One character, and how many bytes its escapes take.
    Escaped(char, usize),
}

struct Units<'a> {
    rest: &'a str,
    part: Part,
}

impl<'a> Iterator for Units<'a> {
    type Item = Unit<'a>;

    fn next(&mut self) -> Option<Unit<'a>> {
        let mut plain = 0;
        let mut escaped = None;
        while plain < self.rest.len() {
            let is_escape = |b: &u8| *b == b'%' || (*b == b'+' && self.part == Part::Query);
            let rest = &self.rest.as_bytes()[plain..];
            let Some(found) = rest.iter().position(is_escape) else {
                plain = self.rest.len();
                break;
            };
            plain += found;
            escaped = escaped_char(&rest[found..], self.part);
            if escaped.is_some() {
                break;
            }
            plain += 1;
        }
        if plain > 0 {
            let (text, rest) = self.rest.split_at(plain);
            self.rest = rest;
            return Some(Unit::Plain(text));
        }
        let (c, length) = escaped?;
        self.rest = &self.rest[length..];
        Some(Unit::Escaped(c, length))
    }
}

/// The character that `bytes` begins with in escaped form, and how many bytes that takes.
fn escaped_char(bytes: &[u8], part: Part) -> Option<(char, usize)> {
    if bytes[0] == b'+' {
        return Some((' ', 1));
    }
    let first = escaped_byte(bytes)?;
    let length = match first {
        b'/' if part == Part::Path => return None,
        0 if part != Part::Query => return None,
        0x00..0x80 => return Some((char::from(first), 3)),
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return None,
    };
    let mut utf8 = [first; 4];
    for (i, byte) in utf8.iter_mut().enumerate().take(length).skip(1) {
        *byte = escaped_byte(bytes.get(3 * i..)?)?;
    }
    let c = str::from_utf8(&utf8[..length]).ok()?.chars().next()?;
    Some((c, 3 * length))
}

/// Returns the byte encoded by `%` and two hexadecimal digits at the start of `bytes`.
fn escaped_byte(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else {
        return None;
    };
    let digit = |b: u8| char::from(b).to_digit(16);
    u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded_but_for_slashes_and_what_is_not_text() {
        for (encoded, decoded) in [
            ("", ""),
            ("/a", "/a"),
            ("/a%20b", "/a b"),
            ("/a+b", "/a+b"),
            ("/%e4%BD%a0", "/你"),
            ("/a%2fb%2Fc", "/a%2fb%2Fc"),
            ("/%252F", "/%2F"),
            ("/%00", "/%00"),
            ("/%", "/%"),
            ("/%4", "/%4"),
            ("/%4g%41", "/%4gA"),
            ("/%ff%41", "/%ffA"),
            ("/%c3%41", "/%c3A"),
            ("/%e4%bd", "/%e4%bd"),
            ("/%c0%af", "/%c0%af"),
            ("/%ed%a0%80", "/%ed%a0%80"),
        ] {
            assert_eq!(decode(encoded, Part::Path), decoded, "{encoded}");
        }
        assert!(matches!(decode("/a%2Fb", Part::Path), Cow::Borrowed(_)));
    }

    #[test]
    fn values_are_decoded_once() {
        for (encoded, decoded) in [
            ("a%2Fb%2fc", "a/b/c"),
            ("%252F", "%2F"),
            ("a+b", "a+b"),
            ("%00", "%00"),
            ("%c3%2F", "%c3/"),
        ] {
            assert_eq!(decode(encoded, Part::Value), decoded, "{encoded}");
        }
    }

    #[test]
    fn queries_are_decoded_wholly() {
        assert_eq!(decode("a+b%2Fc%2b", Part::Query), "a b/c+");
    }

    #[test]
    fn the_text_behind_decoded_text_is_found() {
        let encoded = "a%20b%e4%bd%a0%2Fc%zz";
        let decoded = decode(encoded, Part::Path);
        assert_eq!(decoded, "a b你%2Fc%zz");
        for (range, behind) in [
            (0..1, "a"),
            (1..2, "%20"),
            (2..6, "b%e4%bd%a0"),
            (6..decoded.len(), "%2Fc%zz"),
            (7..8, "2"),
            (0..0, ""),
        ] {
            assert_eq!(encoded_range(encoded, Part::Path, range), behind);
        }
    }

    #[test]
    fn only_what_may_not_be_in_a_path_is_encoded() {
        let mut path = String::new();
        encode(&mut path, "a/b c:@!$&'()*+,;=~%{}", false);
        assert_eq!(path, "a%2Fb%20c:@!$&'()*+,;=~%25%7B%7D");
        path.clear();
        encode_again(&mut path, "a/b%2F%zz%4 ü", true);
        assert_eq!(path, "a/b%2F%25zz%254%20%C3%BC");
    }
}
