//! Texts of a configuration as RE2, the language of regular expressions that Envoy has.

use std::fmt::Write as _;

use xds_types::pb::envoy::r#type::matcher::v3::{RegexMatchAndSubstitute, RegexMatcher};

/// A matcher for a whole text.
pub(super) fn matcher(regex: impl Into<String>) -> RegexMatcher {
    RegexMatcher {
        regex: regex.into(),
        engine_type: None,
    }
}

/// A replacement.
pub(super) fn substitution(
    pattern: impl Into<String>,
    by: impl Into<String>,
) -> RegexMatchAndSubstitute {
    RegexMatchAndSubstitute {
        pattern: Some(matcher(pattern)),
        substitution: by.into(),
    }
}

/// One of several expressions.
pub(super) fn one_of(expressions: impl IntoIterator<Item = String>) -> String {
    let expressions: Vec<String> = expressions.into_iter().collect();
    match &expressions[..] {
        [one] => one.clone(),
        several => format!("(?:{})", several.join("|")),
    }
}

/// Returns an expression whose letters match in any case, if `ignore` is set.
pub(super) fn in_any_case(expression: &str, ignore: bool) -> String {
    match ignore {
        true => format!("(?i:{expression})"),
        false => expression.to_owned(),
    }
}

/// Escapes `text` for a regular expression that matches exactly this text.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push_plain(&mut out, c);
    }
    out
}

fn push_plain(out: &mut String, c: char) {
    if "\\.+*?()|[]{}^$".contains(c) {
        out.push('\\');
    }
    out.push(c);
}

/// `text` in a path, in every form in which it may be sent, to be used ignoring case.
///
/// Characters that need no escape (RFC 3986 section 2.3) are expected without one: Envoys normalize paths
/// (`normalize_path`), as our own server does.
pub(super) fn in_path(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~' | '/' => {
                push_plain(&mut out, c)
            }
            '!' | '$' | '&' | '\'' | '(' | ')' | '*' | '+' | ',' | ';' | '=' | ':' | '@' => {
                out.push_str("(?:");
                push_plain(&mut out, c);
                out.push('|');
                push_escaped(&mut out, c);
                out.push(')');
            }
            // An encoded slash stays encoded, so a template writes it like this.
            '%' if is_slash(text, at) => out.push('%'),
            '%' => out.push_str("%(?:25)?"),
            c => push_cases(&mut out, c, true, push_escaped),
        }
    }
    out
}

fn is_slash(text: &str, at: usize) -> bool {
    text.get(at..at + 3)
        .is_some_and(|escape| escape.eq_ignore_ascii_case("%2f"))
}

/// Appends `text` for a query, in every form in which it may be sent, since queries are not normalized.
pub(super) fn in_query(text: &str, ignore_case: bool) -> String {
    let mut out = String::with_capacity(8 * text.len());
    for c in text.chars() {
        match c {
            ' ' => out.push_str("(?:\\+|%20)"),
            '%' => out.push_str("%(?:25)?"),
            '&' | '+' | '#' => push_escaped(&mut out, c),
            c => push_cases(&mut out, c, ignore_case, |out, c| {
                if c.is_ascii_graphic() {
                    push_plain(out, c);
                    out.push('|');
                }
                push_escaped(out, c);
            }),
        }
    }
    out
}

/// Returns an expression for clients that escape only the necessary characters. It is an eighth as large.
pub(super) fn in_query_as_sent(text: &str, ignore_case: bool) -> String {
    let mut out = String::with_capacity(2 * text.len());
    for c in text.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~' => push_plain(&mut out, c),
            c => out.push_str(&in_query(c.encode_utf8(&mut [0; 4]), ignore_case)),
        }
    }
    in_any_case(&out, ignore_case)
}

/// Applies `push` to `c`, or to its forms in both cases.
fn push_cases(out: &mut String, c: char, ignore_case: bool, push: impl Fn(&mut String, char)) {
    let mut forms = vec![c];
    if ignore_case {
        for other in c.to_lowercase().chain(c.to_uppercase()) {
            // What becomes several characters has no other case, as far as comparing goes.
            if c.to_lowercase().count() == 1
                && c.to_uppercase().count() == 1
                && !forms.contains(&other)
            {
                forms.push(other);
            }
        }
    }
    forms.sort_unstable();
    out.push_str("(?:");
    for (at, form) in forms.into_iter().enumerate() {
        if at > 0 {
            out.push('|');
        }
        push(out, form);
    }
    out.push(')');
}

/// Writes the triplets of a character.
fn push_escaped(out: &mut String, c: char) {
    let mut bytes = [0; 4];
    for byte in c.encode_utf8(&mut bytes).bytes() {
        let (high, low) = (byte >> 4, byte & 15);
        out.push('%');
        for digit in [high, low] {
            match char::from_digit(u32::from(digit), 16) {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    // Hexadecimal digits are matched in any case, independent of the rest.
                    let _ = write!(out, "[{letter}{}]", letter.to_ascii_uppercase());
                }
                Some(digit) => out.push(digit),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_in_every_form_in_which_they_are_sent() {
        assert_eq!(plain("a.b_c (1)"), r"a\.b_c \(1\)");
        assert_eq!(in_path("v1/a b"), "v1/a(?:%20)b");
        assert_eq!(in_path("a:b%2Fc%"), r"a(?::|%3[aA])b%2Fc%(?:25)?");
        assert_eq!(in_path("ü"), "(?:%[cC]3%9[cC]|%[cC]3%[bB][cC])");
        assert_eq!(in_query("a ", false), r"(?:a|%61)(?:\+|%20)");
        assert_eq!(in_query("a&", true), r"(?:A|%41|a|%61)%26");
        assert_eq!(one_of(["a".to_owned(), "b".to_owned()]), "(?:a|b)");
    }
}
