//! Comparing text as .NET's ordinal comparison does, with regard to case or without.

/// Maps characters that differ only in case to the same character.
///
/// Each character is mapped on its own, so `ß` and `ss` differ. No character outside ASCII maps into ASCII: what equals
/// ASCII text is ASCII text, which lets the common case compare bytes.
pub(crate) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(single), None) if !single.is_ascii() => single,
        _ => c,
    }
}

/// `text` with every character [folded](fold).
pub(super) fn folded(text: &str) -> Box<str> {
    text.chars().map(fold).collect::<String>().into()
}

/// Returns true if `text`, once folded, is equal to `folded`.
pub(super) fn equals_folded(text: &str, folded: &str) -> bool {
    text.eq_ignore_ascii_case(folded)
        || (!folded.is_ascii() && text.chars().map(fold).eq(folded.chars()))
}

/// Returns true if two texts are equal ignoring case.
pub(super) fn equal_ignoring_case(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.chars().map(fold).eq(b.chars().map(fold)))
}

/// Returns the length in bytes of the start of `text` that is equal to `folded`, once folded.
fn folded_prefix(text: &str, folded: &str) -> Option<usize> {
    let mut rest = text.chars();
    folded
        .chars()
        .all(|expected| rest.next().is_some_and(|c| fold(c) == expected))
        .then(|| text.len() - rest.as_str().len())
}

/// Returns the start and end of the last occurrence in `text` of `folded`, which is not empty.
pub(super) fn rfind_folded(text: &str, folded: &str) -> Option<(usize, usize)> {
    if folded.is_ascii() {
        return text
            .as_bytes()
            .windows(folded.len())
            .rposition(|window| window.eq_ignore_ascii_case(folded.as_bytes()))
            .map(|start| (start, start + folded.len()));
    }
    text.char_indices().rev().find_map(|(start, _)| {
        folded_prefix(&text[start..], folded).map(|length| (start, start + length))
    })
}

/// Text to compare bytes from a request with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Pattern {
    /// The text as written if case matters, otherwise folded.
    text: Box<str>,
    case_matters: bool,
}

impl Pattern {
    pub(super) fn new(text: &str, case_matters: bool) -> Self {
        Self {
            text: if case_matters {
                text.into()
            } else {
                folded(text)
            },
            case_matters,
        }
    }

    /// The text; folded if case does not matter.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if `value` is equal to this text.
    pub(super) fn equals(&self, value: &[u8]) -> bool {
        match self.kind() {
            Kind::Bytes => value == self.text.as_bytes(),
            Kind::Ascii => value.eq_ignore_ascii_case(self.text.as_bytes()),
            Kind::Unicode => str::from_utf8(value)
                .is_ok_and(|value| folded_prefix(value, &self.text) == Some(value.len())),
        }
    }

    /// Returns true if `value` begins with this text.
    pub(super) fn begins(&self, value: &[u8]) -> bool {
        match self.kind() {
            Kind::Bytes => value.starts_with(self.text.as_bytes()),
            Kind::Ascii => value
                .get(..self.text.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(self.text.as_bytes())),
            Kind::Unicode => (value.utf8_chunks().next())
                .is_some_and(|chunk| folded_prefix(chunk.valid(), &self.text).is_some()),
        }
    }

    /// Returns true if `value` contains this text, which is not empty.
    pub(super) fn is_in(&self, value: &[u8]) -> bool {
        let text = self.text.as_bytes();
        match self.kind() {
            Kind::Bytes => value.windows(text.len()).any(|window| window == text),
            Kind::Ascii => value
                .windows(text.len())
                .any(|window| window.eq_ignore_ascii_case(text)),
            // The rest of the value need not be text.
            Kind::Unicode => {
                (value.utf8_chunks()).any(|chunk| rfind_folded(chunk.valid(), &self.text).is_some())
            }
        }
    }

    fn kind(&self) -> Kind {
        match (self.case_matters, self.text.is_ascii()) {
            (true, _) => Kind::Bytes,
            (false, true) => Kind::Ascii,
            (false, false) => Kind::Unicode,
        }
    }
}

/// The comparison of a [`Pattern`]'s text.
enum Kind {
    Bytes,
    Ascii,
    Unicode,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_twice_changes_nothing_and_never_reaches_ascii() {
        for c in '\0'..=char::MAX {
            assert_eq!(fold(fold(c)), fold(c), "{c:?}");
            assert_eq!(fold(c).is_ascii(), c.is_ascii(), "{c:?}");
        }
    }

    #[test]
    fn case_is_ignored_beyond_ascii() {
        assert!(equals_folded("GRÖSSE", &folded("grösse")));
        assert!(equal_ignoring_case("ÄPFEL", "äpfel"));
        assert!(!equal_ignoring_case("äpfel", "apfel"));
        assert!(!equal_ignoring_case("\u{17f}", "s"), "long s is not an s");
        assert!(
            !equal_ignoring_case("\u{212a}", "k"),
            "the Kelvin sign is not a k"
        );
    }

    #[test]
    fn the_last_occurrence_is_found_whatever_its_length_in_bytes() {
        assert_eq!(rfind_folded("a.B.b", "b"), Some((4, 5)));
        // U+023A is two bytes long, its lower case U+2C65 three.
        assert_eq!(rfind_folded("x\u{2c65}y", &folded("\u{23a}")), Some((1, 4)));
        assert_eq!(rfind_folded("abc", "abcd"), None);
    }

    #[test]
    fn patterns_compare_bytes_that_are_not_text() {
        let abc = Pattern::new("abc", false);
        assert!(abc.equals(b"aBC") && abc.begins(b"ABCd\xff") && abc.is_in(b"\xffabC"));
        let umlaut = Pattern::new("Ä", false);
        assert!(umlaut.equals("ä".as_bytes()) && umlaut.is_in("xäx".as_bytes()));
        assert!(!umlaut.equals(b"\xff") && !umlaut.is_in(b"\xc3"));
        assert!(umlaut.begins(b"\xc3\xa4\xff") && umlaut.is_in(b"\xff\xc3\xa4\xff"));
        assert!(!umlaut.begins(b"\xff\xc3\xa4") && !umlaut.equals(b"\xc3\xa4\xff"));
        assert!(!Pattern::new("abc", true).equals(b"aBC"));
    }
}
