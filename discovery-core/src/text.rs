//! Texts that others have written, made fit for a message: for those who write sources.

/// The beginning of a text: one line, without what a terminal would obey, at most `most` characters, which escapes may make
/// longer.
///
/// What a peer says ends up in logs, in errors and on terminals; it is bounded and escaped before it does.
pub fn shortened(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (i, c) in text.trim().chars().enumerate() {
        if i == most {
            out.push('…');
            break;
        }
        if c.is_control() || is_format(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Line ends beyond ASCII, and what turns the direction of a text around or hides in it.
fn is_format(c: char) -> bool {
    matches!(
        c,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_printable_beginning_is_kept() {
        assert_eq!(shortened("  a\r\nb\u{1b}[31m ", 99), "a\\r\\nb\\u{1b}[31m");
        assert_eq!(
            shortened("a\u{202e}b\u{2028}c\u{feff}d", 99),
            "a\\u{202e}b\\u{2028}c\\u{feff}d"
        );
        assert_eq!(shortened("äöü", 2), "äö…");
        assert_eq!(shortened("äö", 2), "äö");
        assert_eq!(shortened("", 0), "");
    }
}
