//! Words of a text without its punctuation, for lists of phrases.

/// The words of `lines` in lower case, with one space around each. A phrase may cross the end of a
/// line.
pub(crate) fn plain<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let is_letter = |c: char| c.is_alphanumeric() || "'’-".contains(c);
    let mut plain = String::from(" ");
    for line in lines {
        for word in line.split(|c| !is_letter(c)) {
            let word = word.replace('’', "'").to_lowercase();
            let word = word.trim_matches(['\'', '-']);
            if !word.is_empty() {
                plain.push_str(word);
                plain.push(' ');
            }
        }
    }
    plain
}

/// The number of times that `phrase` stands in a text of [`plain`]. The end of one is not the begin of the next.
pub(crate) fn count(plain: &str, phrase: &str) -> usize {
    // Nearly all texts have no phrase of the lists, and this look allocates nothing.
    if !plain.contains(phrase) {
        return 0;
    }
    plain.matches(&format!(" {phrase} ")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_by_words() {
        for (lines, phrase, times) in [
            (&["lest"][..], "lest", 1),
            (&["Lest, and `lest`."], "lest", 2),
            (&["modest", "lesterly", "lest-like"], "lest", 0),
            (&["all but", "FOR one"], "but for", 1),
            (&["nobody’s"], "nobody's", 1),
            (&["'anew'"], "anew", 1),
            (&[], "anew", 0),
        ] {
            let plain = plain(lines.iter().copied());
            assert_eq!(count(&plain, phrase), times, "{lines:?}");
        }
    }
}
