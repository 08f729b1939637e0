use std::borrow::Cow;
use std::fmt::Write;

/// Returns `text` with every control character written as `\u001b`: none of it can end a line, move a
/// terminal's cursor or reverse the direction of the text around it. The result of JSON stays JSON.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_control) else {
        return Cow::Borrowed(text);
    };
    let mut escaped = String::with_capacity(text.len() + 16);
    escaped.push_str(&text[..first]);
    for character in text[first..].chars() {
        if is_control(character) {
            // Writing to a string cannot fail. All these characters have at most four digits.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

fn is_control(character: char) -> bool {
    character.is_control()
        // Separators of lines and paragraphs, and characters that override or isolate a direction.
        || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_a_line_or_moves_a_cursor() {
        let hostile = "a\r\nb\tc\x1b]0;title\x07\u{9b}2J\u{2028}\u{202e}\x7f";
        assert_eq!(
            escape_controls(hostile),
            "a\\u000d\\u000ab\\u0009c\\u001b]0;title\\u0007\\u009b2J\\u2028\\u202e\\u007f"
        );
    }

    #[test]
    fn other_text_is_not_copied() {
        assert!(matches!(
            escape_controls("größer → 7"),
            Cow::Borrowed("größer → 7")
        ));
    }
}
