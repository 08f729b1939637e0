//! "Did you mean": the nearest of some names.

/// Names longer than this get no suggestion: the cost of a distance grows with the square of the length.
const MAX_CHARS: usize = 64;

/// Returns the name among `candidates` that `written` is most likely a misspelling of, if one is near.
///
/// Near is at most one typing error (a character added, missing or replaced, or two swapped) in three
/// characters, ignoring case. Of equally near names the first is taken.
pub fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let (written, length) = folded(written)?;
    let limit = (length / 3).max(1);
    let mut best = None;
    let mut best_distance = limit + 1;
    for candidate in candidates {
        let Some((name, other_length)) = folded(candidate) else {
            continue;
        };
        if other_length.abs_diff(length) >= best_distance {
            continue;
        }
        let distance = strsim::osa_distance(&written, &name);
        if distance < best_distance {
            best_distance = distance;
            best = Some(candidate);
        }
    }
    best
}

/// The sentence for a problem's suggestion.
pub(crate) fn did_you_mean<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(written, candidates).map(|name| format!("did you mean `{name}`?"))
}

/// `a`, `b` and `c`.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// The beginning of an untrusted text, for a message or a log: one line, without control characters.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 120;
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == MOST {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// The text in lower case, and its length in characters.
fn folded(text: &str) -> Option<(String, usize)> {
    // Bytes bound characters, so a long text is not even walked.
    if text.len() > MAX_CHARS * 4 {
        return None;
    }
    let folded: String = text.chars().flat_map(char::to_lowercase).collect();
    let length = folded.chars().count();
    (1..=MAX_CHARS)
        .contains(&length)
        .then_some((folded, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        const KEYS: [&str; 4] = ["Path", "Hosts", "Methods", "Headers"];
        for (written, expected) in [
            ("Pth", Some("Path")),
            ("paht", Some("Path")),
            ("Host", Some("Hosts")),
            ("Method", Some("Methods")),
            ("Hedaers", Some("Headers")),
            ("Timeout", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, KEYS), expected, "{written}");
        }
    }

    #[test]
    fn a_long_name_costs_nothing() {
        assert_eq!(nearest(&"x".repeat(10_000_000), ["x"]), None);
    }

    #[test]
    fn lists_read_well() {
        assert_eq!(listed(["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(listed(["a"]), "`a`");
    }
}
