//! Comments and trailing commas, which JSON proper does not have.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use serde_json::Number;

/// A text that is JSON proper, unless there was never any hope for it.
pub(super) struct Blanked<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) changed: ChangedNumbers,
}

/// The numbers of a document whose written form (`1.10`, `1e3`) would change if it were parsed and written
/// again: position of the number, counted from 0, and its byte range.
pub(super) type ChangedNumbers = VecDeque<(usize, Range<usize>)>;

/// Returns `text` with every comment and every trailing comma replaced by as many spaces, so that positions
/// stay right.
///
/// Other parts that are not JSON (an unclosed comment, two commas) stay, so that the parser reports them.
pub(super) fn blanked(text: &str) -> Blanked<'_> {
    let bytes = text.as_bytes();
    let mut out: Option<Vec<u8>> = None;
    let mut blank = |range: Range<usize>| {
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
    let mut may_close = true;
    let mut numbers = 0;
    let mut changed = VecDeque::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match comment(&bytes[at..], may_close) {
            Comment::Closed(length) => {
                blank(at..at + length);
                at += length;
                continue;
            }
            // There is no `*/` after this one, nor after any that begins later: to search again would take time that
            // grows with the square of the length.
            Comment::Open => may_close = false,
            Comment::None => {}
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
            b'-' | b'0'..=b'9' => {
                comma = None;
                let length = number_length(&bytes[at..]);
                if !keeps_its_form(&text[at..at + length]) {
                    changed.push_back((numbers, at..at + length));
                }
                numbers += 1;
                at += length;
            }
            _ => {
                comma = None;
                at += 1;
            }
        }
        previous = byte;
    }
    let text = match out {
        None => Cow::Borrowed(text),
        // Whole comments and single ASCII commas were replaced, so what is left is UTF-8 still.
        Some(out) => String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned),
    };
    Blanked { text, changed }
}

enum Comment {
    /// No comment.
    None,
    /// A comment of this many bytes, without the line break that ends it.
    Closed(usize),
    /// One that does not end.
    Open,
}

/// The comment at the start of `bytes`. One in `/*` is looked for only if it `may_close`.
fn comment(bytes: &[u8], may_close: bool) -> Comment {
    match bytes {
        [b'/', b'/', ..] => Comment::Closed(
            bytes
                .iter()
                .position(|b| matches!(b, b'\n' | b'\r'))
                .unwrap_or(bytes.len()),
        ),
        [b'/', b'*', inside @ ..] if may_close => {
            match inside.windows(2).position(|end| end == b"*/") {
                Some(end) => Comment::Closed(end + 4),
                None => Comment::Open,
            }
        }
        _ => Comment::None,
    }
}

/// Returns the length in bytes of the number at the start of `bytes`.
fn number_length(bytes: &[u8]) -> usize {
    let is_part = |b: &u8| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    bytes.iter().take_while(|b| is_part(b)).count()
}

/// Returns true if the parser's form of the number is equal to the written one.
fn keeps_its_form(text: &str) -> bool {
    // Few numbers are anything but short and whole, and those fit into 64 bits.
    let is_short = text.len() < 19 && text.bytes().all(|b| b.is_ascii_digit());
    is_short || serde_json::from_str::<Number>(text).is_ok_and(|number| number.to_string() == text)
}

/// Returns the length in bytes of the string at the start of `bytes`, with its quotes. If it is not closed,
/// this is the length of `bytes`.
pub(super) fn string_length(bytes: &[u8]) -> usize {
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
            assert_eq!(blanked(text).text, expected, "{text}");
            assert_eq!(blanked(text).text.len(), text.len());
        }
    }

    #[test]
    fn unclosed_comments_take_no_longer_than_others() {
        // With a search for each of them this took minutes.
        let text = "/* ".repeat(1_000_000);
        assert!(matches!(blanked(&text).text, Cow::Borrowed(_)));
        assert_eq!(blanked("/* a */ /* b").text, "        /* b");
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
            assert!(matches!(blanked(text).text, Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn numbers_that_would_change_are_found() {
        let text = r#"[1, "2.50", -3, 1.5, 1.10, /* 4.0e1 */ 1e3, -0, 12345678901234567890123, {"5.10": 1E+2}]"#;
        let found: Vec<_> = blanked(text).changed.into();
        let found: Vec<_> = (found.into_iter())
            .map(|(number, place)| (number, &text[place]))
            .collect();
        assert_eq!(
            found,
            [
                (3, "1.10"),
                (4, "1e3"),
                (5, "-0"),
                (6, "12345678901234567890123"),
                (7, "1E+2")
            ]
        );
    }
}
