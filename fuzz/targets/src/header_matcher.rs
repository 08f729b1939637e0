//! Conditions on headers.

use proxy_model::config::{HeaderMatchMode as Mode, RouteHeader};
use proxy_model::matching::HeaderMatcher;

use crate::input::{Head, MAX_BYTES};

/// Fuzzes header conditions: a header name, the values to compare with, separated by `|`, and then
/// the lines of the header as bytes.
///
/// * `NotContains` is the opposite of `Contains`, and `NotExists` of `Exists`.
/// * An exact match is also a prefix match, and a prefix match also a substring match.
/// * A case-sensitive match is also a match without case. A substring match implies existence.
/// * Another header line removes no match; neither does another value.
/// * The name ignores case.
pub fn header_matcher(data: &[u8]) {
    let mut lines = data[..data.len().min(MAX_BYTES)].split(|byte| *byte == b'\n');
    let mut text = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (name, values) = (text(), text());
    let values: Vec<String> = values.split('|').map(str::to_owned).collect();
    let lines: Vec<&[u8]> = lines.collect();

    let matcher = |name: &str, values: &[String], mode, is_case_sensitive| {
        let takes_values = !matches!(mode, Mode::Exists | Mode::NotExists);
        let config = RouteHeader {
            name: name.to_owned(),
            values: takes_values.then(|| values.to_vec()),
            mode,
            is_case_sensitive,
        };
        HeaderMatcher::new(&config)
    };
    let Ok(known) = matcher(&name, &values, Mode::Contains, false) else {
        // The name and the values are either good for each mode or for none of those that compare values.
        for mode in [Mode::ExactHeader, Mode::HeaderPrefix, Mode::NotContains] {
            let error = matcher(&name, &values, mode, true).expect_err("so it is for this mode");
            assert!(!error.to_string().is_empty());
        }
        return;
    };
    let lower = known.name();
    assert_eq!(lower, name.to_ascii_lowercase());
    let head = |lines: &[&[u8]]| -> Vec<(String, Vec<u8>)> {
        lines
            .iter()
            .map(|line| (lower.to_owned(), line.to_vec()))
            .collect()
    };
    let holds_for = |name: &str, values: &[String], mode, case, lines: &[&[u8]]| {
        let owned = head(lines);
        let head = Head {
            method: "GET",
            path: "/",
            headers: owned
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_slice()))
                .collect(),
            ..Head::default()
        };
        let matcher = matcher(name, values, mode, case);
        matcher
            .unwrap_or_else(|error| panic!("{error}"))
            .matches(&head)
    };
    let holds = |mode, case| holds_for(&name, &values, mode, case, &lines);

    assert_ne!(holds(Mode::Exists, false), holds(Mode::NotExists, false));
    for case in [false, true] {
        assert_ne!(holds(Mode::Contains, case), holds(Mode::NotContains, case));
        assert!(!holds(Mode::ExactHeader, case) || holds(Mode::HeaderPrefix, case));
        assert!(!holds(Mode::HeaderPrefix, case) || holds(Mode::Contains, case));
        assert!(!holds(Mode::Contains, case) || holds(Mode::Exists, case));
    }
    for mode in [Mode::ExactHeader, Mode::HeaderPrefix, Mode::Contains] {
        assert!(!holds(mode, true) || holds(mode, false));
        let upper = name.to_ascii_uppercase();
        assert_eq!(
            holds_for(&upper, &values, mode, false, &lines),
            holds(mode, false)
        );
        let any_line = lines
            .iter()
            .any(|line| holds_for(&name, &values, mode, false, &[*line]));
        assert_eq!(any_line, holds(mode, false), "one line is enough");
        let any_value = values
            .iter()
            .any(|value| holds_for(&name, std::slice::from_ref(value), mode, false, &lines));
        assert_eq!(any_value, holds(mode, false), "one value is enough");
    }
}
