//! Comments and trailing commas, which JSON proper does not have.

use std::borrow::Cow;

/// `text` with every comment and every trailing comma replaced by as many spaces, so that positions stay right.
///
/// What is not JSON even so (an unclosed comment, two commas) stays as it is, for the parser to complain about.
pub(super) fn blanked(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out: Option<Vec<u8>> = None;
    let mut blank = |range: std::ops::Range<usize>| {
        let out = out.get_or_insert_with(|| bytes.to_vec());
        for byte in &mut out[range] {
            if !matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    };
    // A comma that may turn out to be the last of its list.
    let mut comma = None;
    let mut previous = b'[';
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if let Some(length) = comment_length(&bytes[at..]) {
            blank(at..at + length);
            at += length;
            continue;
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            b'"' => {
                comma = None;
                at += string_length(&bytes[at..]);
            }
            b',' => {
                // After `[`, `{` or another comma there is no value for it to follow.
                comma = (!matches!(previous, b'[' | b'{' | b',')).then_some(at);
                at += 1;
            }
            b']' | b'}' => {
                if let Some(comma) = comma.take() {
                    blank(comma..comma + 1);
                }
                at += 1;
            }
            _ => {
                comma = None;
                at += 1;
            }
        }
        previous = byte;
    }
    match out {
        None => Cow::Borrowed(text),
        // Whole comments and single ASCII commas were replaced, so what is left is UTF-8 still.
        Some(out) => String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// How many bytes the comment at the start of `bytes` has, without the line break that ends it.
fn comment_length(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'/', b'/', ..] => Some(
            bytes
                .iter()
                .position(|b| matches!(b, b'\n' | b'\r'))
                .unwrap_or(bytes.len()),
        ),
        [b'/', b'*', inside @ ..] => inside
            .windows(2)
            .position(|end| end == b"*/")
            .map(|end| end + 4),
        _ => None,
    }
}

/// How many bytes the string at the start of `bytes` has, with its quotes; all, if it is not closed.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_become_spaces() {
        for (text, expected) in [
            ("{} // x", "{}     "),
            ("[1, /* ü\n */ 2]", "[1,      \n    2]"),
            ("[1,]", "[1 ]"),
            ("[1, // last\n]", "[1         \n]"),
            ("{\"a\": [1,2,],}", "{\"a\": [1,2 ] }"),
        ] {
            assert_eq!(blanked(text), expected, "{text}");
            assert_eq!(blanked(text).len(), text.len());
        }
    }

    #[test]
    fn what_is_no_comment_and_no_trailing_comma_stays() {
        for text in [
            r#"{"a": "// no", "b": "/* no */", "c": "\"//", "d": ",]"}"#,
            "[,]",
            "{,}",
            "[1,,]",
            "/* open",
            "[1, 2] /",
            "\"open // ",
            "\"\\",
        ] {
            assert!(matches!(blanked(text), Cow::Borrowed(_)), "{text}");
        }
    }
}
