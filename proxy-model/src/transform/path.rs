//! Percent-encoded paths.

use std::fmt;

/// A path from a configuration, in the form in which it is sent.
///
/// It begins with `/` or is empty. Characters that a path cannot contain are percent-encoded; existing
/// escapes stay unchanged, so both `/a b` and `/a%20b` may be written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PathText(Box<str>);

impl PathText {
    /// Encodes `text`, with a `/` before it if it has none and is not empty.
    pub fn new(text: &str) -> Self {
        let mut encoded = String::with_capacity(text.len() + 1);
        if !text.is_empty() && !text.starts_with('/') {
            encoded.push('/');
        }
        push_encoded(&mut encoded, text);
        Self(encoded.into())
    }

    /// The path in the form in which it is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the rest of `path` behind this prefix. `None` unless the prefix ends where a segment of
    /// `path` ends.
    ///
    /// Both are compared decoded and ignoring case, where `%2F` is not the same as `/`. The rest is
    /// returned unchanged.
    pub fn strip_from<'p>(&self, path: &'p str) -> Option<&'p str> {
        let mut given = DecodedChars::new(path);
        for wanted in DecodedChars::new(&self.0) {
            let found = given.next()?;
            if wanted != found && !wanted.to_lowercase().eq(found.to_lowercase()) {
                return None;
            }
        }
        let rest = given.rest();
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }
}

impl fmt::Debug for PathText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// `first` and then `second`, with one `/` where they meet.
pub(super) fn joined(first: &str, second: &str) -> String {
    let first = match second.starts_with('/') {
        true => first.strip_suffix('/').unwrap_or(first),
        false => first,
    };
    let mut path = String::with_capacity(first.len() + second.len());
    path.push_str(first);
    path.push_str(second);
    path
}

/// Appends `path` in encoded form: characters that a path may not contain are percent-encoded, existing escapes
/// stay.
pub(super) fn push_encoded(out: &mut String, path: &str) {
    let bytes = path.as_bytes();
    // Everything up to here has been copied or needs nothing but copying.
    let mut copied = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        if is_path_byte(byte) || (byte == b'%' && is_triplet(bytes, i)) {
            continue;
        }
        // What is skipped by this slice is ASCII, so both ends are on the edges of characters.
        out.push_str(path.get(copied..i).unwrap_or_default());
        push_triplet(out, byte);
        copied = i + 1;
    }
    out.push_str(path.get(copied..).unwrap_or_default());
}

/// Appends `query`, encoding only the characters that would end the target of a request line (RFC 9112
/// section 3): white space, control characters, `#`, and those outside ASCII.
pub(super) fn push_visible(out: &mut String, query: &str) {
    if query
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'#')
    {
        out.push_str(query);
        return;
    }
    for byte in query.bytes() {
        if byte.is_ascii_graphic() && byte != b'#' {
            out.push(char::from(byte));
        } else {
            push_triplet(out, byte);
        }
    }
}

/// Appends the percent-encoded form of `byte`.
pub(super) fn push_triplet(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// Returns true if a path may contain `byte` unencoded: `pchar` of RFC 3986 section 3.3, and the slash
/// between segments.
const fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'/' | b'-'
                | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'@'
        )
}

fn is_triplet(bytes: &[u8], at: usize) -> bool {
    bytes.get(at + 1).is_some_and(u8::is_ascii_hexdigit)
        && bytes.get(at + 2).is_some_and(u8::is_ascii_hexdigit)
}

/// The decoded characters of a percent-encoded path. `%2F` and bytes that are not UTF-8 stay encoded.
struct DecodedChars<'p> {
    path: &'p str,
    at: usize,
}

impl<'p> DecodedChars<'p> {
    fn new(path: &'p str) -> Self {
        Self { path, at: 0 }
    }

    /// The text that has not been decoded yet.
    fn rest(&self) -> &'p str {
        self.path.get(self.at..).unwrap_or_default()
    }

    /// Returns the byte encoded by the triplet at `at`, unless it is a slash.
    fn triplet(&self, at: usize) -> Option<u8> {
        let bytes = self.path.as_bytes();
        if bytes.get(at) != Some(&b'%') {
            return None;
        }
        let high = char::from(*bytes.get(at + 1)?).to_digit(16)?;
        let low = char::from(*bytes.get(at + 2)?).to_digit(16)?;
        u8::try_from(high * 16 + low).ok().filter(|&b| b != b'/')
    }
}

impl Iterator for DecodedChars<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        // A character of UTF-8 has at most four bytes; each may be written as a triplet.
        let mut decoded = [0; 4];
        for length in 0..4 {
            let Some(byte) = self.triplet(self.at + 3 * length) else {
                break;
            };
            decoded[length] = byte;
            if let Ok(text) = std::str::from_utf8(&decoded[..=length]) {
                self.at += 3 * (length + 1);
                return text.chars().next();
            }
        }
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }
}

/// Returns `path` in encoded form: characters that a path may not contain are percent-encoded, existing escapes
/// stay.
pub(crate) fn encoded_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    push_encoded(&mut out, path);
    out
}
