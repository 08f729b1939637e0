//! Untrusted texts, shortened and escaped for messages. For authors of sources.

use std::borrow::Cow;
use std::error::Error;

use crate::contain::contained_call;

/// Returns the beginning of a text: one line, without control sequences of terminals, at most `most`
/// characters, which escapes may make longer.
///
/// Texts of peers end up in logs, in errors and on terminals; they are limited and escaped before.
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

/// Returns a host, perhaps with a port, without the dot with which DNS may end a name: `a.example.` is
/// `a.example`. Requests name hosts without it. A host with more than one dot, or nothing before it, is
/// returned unchanged: it is not a name.
pub fn without_root(host: &str) -> Cow<'_, str> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port == "*" || port.bytes().all(|b| b.is_ascii_digit()) => {
            (name, Some(port))
        }
        _ => (host, None),
    };
    let is_name = |name: &&str| !name.is_empty() && !name.ends_with(['.', '*']);
    match (name.strip_suffix('.').filter(is_name), port) {
        (None, _) => Cow::Borrowed(host),
        (Some(name), None) => Cow::Borrowed(name),
        (Some(name), Some(port)) => Cow::Owned(format!("{name}:{port}")),
    }
}

/// Returns an error with its causes, separated by `: `. Causes beyond the 16th are left out, since an error that
/// names itself as its cause would never end.
///
/// Errors may be code of others: if one panics while it is formatted, a sentence that reports the panic replaces
/// it.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = text_of(&|| error.to_string());
    let mut cause = contained_call(|| error.source()).unwrap_or_default();
    for _ in 0..16 {
        let Some(error) = cause else { break };
        text.push_str(": ");
        text.push_str(&text_of(&|| error.to_string()));
        cause = contained_call(|| error.source()).unwrap_or_default();
    }
    text
}

fn text_of(show: &dyn Fn() -> String) -> String {
    contained_call(show)
        .unwrap_or_else(|broken| format!("(an error that cannot be shown: it {broken})"))
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
    use std::fmt;

    use super::*;

    #[test]
    fn a_name_loses_the_dot_of_the_root_and_nothing_else() {
        for (host, expected) in [
            ("a.example.", "a.example"),
            ("A.example.:8443", "A.example:8443"),
            ("*.example.", "*.example"),
            ("a.example", "a.example"),
            ("a.example:*", "a.example:*"),
            ("[::1]", "[::1]"),
            ("[::1]:80", "[::1]:80"),
            (".", "."),
            ("a..", "a.."),
            ("*.", "*."),
            ("a.:x", "a.:x"),
            ("", ""),
        ] {
            assert_eq!(without_root(host), expected, "{host}");
        }
    }

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

    #[derive(Debug)]
    struct Evil;

    impl fmt::Display for Evil {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("display")
        }
    }

    impl Error for Evil {}

    #[test]
    fn an_error_that_panics_when_it_is_shown_is_told_as_that() {
        let error = crate::DiscoverError::transient("no answer").with_source(Evil);
        let shown = "no answer: (an error that cannot be shown: it panicked: display)";
        assert_eq!(with_causes(&error), shown);
        assert_eq!(crate::Failure::now(&error).message, shown);
    }
}
