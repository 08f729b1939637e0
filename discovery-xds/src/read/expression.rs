//! Regular expressions over whole values, as far as the model has an equivalent.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// The longest expression that is read.
const LONGEST: usize = 2048;
/// Maximum number of texts that an expression may match.
const MOST: usize = 100;
/// The most copies of a part that are written out.
const MOST_COPIES: u32 = 64;
/// Maximum number of parts that are read. It limits empty parts that repeat each other.
const MOST_STEPS: usize = 10_000;
/// Maximum depth of nested parts.
const DEEPEST: u32 = 50;

/// The texts that an expression matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Language {
    /// All texts except the empty one: `.+`.
    AnyText,
    /// A few texts, in order.
    Texts {
        texts: Vec<String>,
        ignore_case: bool,
    },
}

/// Returns the texts that `regex` matches, always as a whole value, as in Envoy. `None` if there are more
/// than can be listed, or if it is not a valid expression.
pub(super) fn language(regex: &str) -> Option<Language> {
    if regex.len() > LONGEST {
        return None;
    }
    if regex == ".+" {
        return Some(Language::AnyText);
    }
    let (regex, ignore_case) = match regex.strip_prefix("(?i)") {
        Some(rest) if has_flags(rest) => return None,
        Some(rest) => (rest, true),
        None => (regex, false),
    };
    let parsed = ParserBuilder::new()
        .nest_limit(DEEPEST)
        // `\d` is a digit of ASCII to RE2.
        .unicode(false)
        .build()
        .parse(regex)
        .ok()?;
    let mut steps = MOST_STEPS;
    let begun = expand(&parsed, vec![Begun::default()], &mut steps)?;
    let mut texts: Vec<String> = begun.into_iter().map(|begun| begun.text).collect();
    texts.sort_unstable();
    texts.dedup();
    (!texts.is_empty()).then_some(Language::Texts { texts, ignore_case })
}

/// Returns true if case may be ignored in only a part of the expression.
fn has_flags(regex: &str) -> bool {
    regex
        .match_indices("(?")
        .filter_map(|(at, begin)| regex.get(at + begin.len()..))
        .any(|rest| !rest.starts_with(":") && !rest.starts_with("<") && !rest.starts_with("P<"))
}

/// The beginning of a text.
#[derive(Debug, Clone, Default)]
struct Begun {
    text: String,
    /// True if no further part can follow.
    is_ended: bool,
}

impl Begun {
    fn and(&self, more: &str) -> Option<Self> {
        let mut text = self.text.clone();
        text.push_str(more);
        (!self.is_ended || more.is_empty()).then_some(Self {
            text,
            is_ended: self.is_ended,
        })
    }
}

/// Returns each text of `begun` followed by each text that `part` matches.
fn expand(part: &Hir, mut begun: Vec<Begun>, steps: &mut usize) -> Option<Vec<Begun>> {
    // Nested repetitions multiply, so the work is limited as well as the result.
    *steps = steps.checked_sub(begun.len().max(1))?;
    let found = match part.kind() {
        HirKind::Empty => begun,
        HirKind::Literal(literal) => {
            let literal = str::from_utf8(&literal.0).ok()?;
            begun
                .iter()
                .filter_map(|begun| begun.and(literal))
                .collect()
        }
        HirKind::Class(class) => {
            let characters = characters(class)?;
            let each = |begun: &Begun| {
                let more = characters.iter().filter_map(|c| begun.and(c));
                more.collect::<Vec<_>>()
            };
            begun.iter().flat_map(each).collect()
        }
        HirKind::Look(Look::Start) => {
            // A `^` behind other text matches nowhere.
            begun.retain(|begun| begun.text.is_empty());
            begun
        }
        HirKind::Look(Look::End) => {
            begun.iter_mut().for_each(|begun| begun.is_ended = true);
            begun
        }
        HirKind::Look(_) => return None,
        HirKind::Repetition(repetition) => {
            let most = repetition.max.filter(|most| *most <= MOST_COPIES)?;
            let mut found = Vec::new();
            for copies in 0..=most {
                if copies >= repetition.min {
                    found.extend(begun.iter().cloned());
                }
                if copies < most {
                    begun = expand(&repetition.sub, begun, steps)?;
                }
            }
            found
        }
        HirKind::Capture(capture) => return expand(&capture.sub, begun, steps),
        HirKind::Concat(parts) => {
            for part in parts {
                begun = expand(part, begun, steps)?;
            }
            begun
        }
        HirKind::Alternation(parts) => {
            let mut found = Vec::new();
            for part in parts {
                found.extend(expand(part, begun.clone(), steps)?);
            }
            found
        }
    };
    let is_short = |begun: &Begun| begun.text.len() <= LONGEST;
    (found.len() <= MOST && found.iter().all(is_short)).then_some(found)
}

/// The characters of a class.
fn characters(class: &Class) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut add = |first: char, last: char| {
        for character in first..=last {
            if found.len() >= MOST {
                return None;
            }
            found.push(character.to_string());
        }
        Some(())
    };
    match class {
        Class::Unicode(class) => {
            for range in class.ranges() {
                add(range.start(), range.end())?;
            }
        }
        Class::Bytes(class) => {
            for range in class
                .ranges()
                .iter()
                .filter(|range| range.start().is_ascii())
            {
                // Bytes beyond ASCII are no characters.
                range.end().is_ascii().then_some(())?;
                add(range.start().into(), range.end().into())?;
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(regex: &str) -> Option<(Vec<String>, bool)> {
        match language(regex)? {
            Language::Texts { texts, ignore_case } => Some((texts, ignore_case)),
            Language::AnyText => None,
        }
    }

    #[test]
    fn what_can_be_listed_is_listed() {
        for (regex, wanted) in [
            ("1|[yY]es|[tT]rue", "1 True Yes true yes"),
            ("^(?:a|b)$", "a b"),
            ("^a|b$", "a b"),
            ("a|^b|c$d|e", "a b e"),
            ("(x)(?P<n>[0-2])", "x0 x1 x2"),
            ("ab{1,3}", "ab abb abbb"),
            ("v\\.?1", "v.1 v1"),
            ("\\d", "0 1 2 3 4 5 6 7 8 9"),
            ("größe", "größe"),
        ] {
            let wanted = wanted.split(' ').map(str::to_owned).collect();
            assert_eq!(texts(regex), Some((wanted, false)), "{regex}");
        }
        let wanted = vec!["fix-1".to_owned()];
        assert_eq!(texts("(?i)fix\\-1"), Some((wanted, true)));
        let wanted = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(texts("(?i)(?:a|b)"), Some((wanted, true)));
        assert_eq!(language(".+"), Some(Language::AnyText));
    }

    #[test]
    fn what_cannot_be_listed_is_not() {
        let wide = "[a-z][a-z]";
        let copies = "(?:(?:(?:(?:a?){60}){60}){60}){60}";
        let deep = "(".repeat(60) + "a" + &")".repeat(60);
        let long = "a".repeat(3000);
        for regex in [
            "a*",
            ".",
            "[^a]",
            "a.*",
            "\\bx",
            "(?i)a(?-i)b",
            "(?i)(?s:x)",
            "(",
            "a$b",
            wide,
            copies,
            &deep,
            &long,
            "x{0,4000000}",
        ] {
            assert_eq!(language(regex), None, "{regex}");
        }
    }

    proptest! {
        /// Property: listed texts match, and other short texts do not.
        #[test]
        fn the_list_is_what_the_expression_matches(
            regex in "(\\(\\?i\\))?([abB1]|\\[ab\\]|\\(a\\|b\\?\\)|a\\{0,2\\}|\\||\\^|\\$){0,6}",
            other in "[abAB1]{0,4}",
        ) {
            let Some((texts, ignore_case)) = texts(&regex) else { return Ok(()) };
            let Ok(whole) = ::regex::Regex::new(&format!("^(?:{regex})$")) else { return Ok(()) };
            for text in &texts {
                prop_assert!(whole.is_match(text), "{regex} {text}");
            }
            let is_listed = texts.iter().any(|text| match ignore_case {
                true => text.eq_ignore_ascii_case(&other),
                false => *text == other,
            });
            prop_assert_eq!(is_listed, whole.is_match(&other), "{}", regex);
        }
    }
}
