//! Names and addresses of nodes, shortened and escaped for messages.

/// Characters of a value that are shown, as many as where configurations are compiled.
const MOST: usize = 120;

/// Returns the beginning of a value: one line, without control sequences of terminals, and with bytes that
/// are not UTF-8 as escapes.
pub(crate) fn shown(value: &[u8]) -> String {
    let mut out = String::new();
    let mut count = 0;
    for chunk in value.utf8_chunks() {
        let valid = chunk.valid().chars().map(|c| match is_hidden(c) {
            true => c.escape_default().to_string(),
            false => c.to_string(),
        });
        let invalid = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
        for piece in valid.chain(invalid) {
            if count == MOST {
                out.push('…');
                return out;
            }
            out.push_str(&piece);
            count += 1;
        }
    }
    out
}

/// Control characters, ends of lines beyond ASCII, and what turns the direction of a text around or hides in it.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_line_and_short() {
        for (value, expected) in [
            (&b"orders"[..], "orders"),
            (b"a\r\nX: y\x1b[31m", "a\\r\\nX: y\\u{1b}[31m"),
            (b"\xff\xfea", "\\xff\\xfea"),
            ("a\u{202e}b\u{2028}".as_bytes(), "a\\u{202e}b\\u{2028}"),
            (b"", ""),
        ] {
            assert_eq!(shown(value), expected);
        }
        let long = shown(&[b'x'; 1_000_000]);
        assert_eq!(long, format!("{}…", "x".repeat(MOST)));
        assert!(shown(&[0xff; 1_000_000]).len() < 5 * MOST);
    }
}
