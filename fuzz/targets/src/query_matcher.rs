//! Query conditions.

use proxy_model::config::{QueryMatchMode as Mode, RouteQueryParameter};
use proxy_model::matching::QueryMatcher;

use crate::input::{Head, text};

/// Fuzzes query conditions: a parameter name, the values to compare with, separated by `|`, and
/// then the query.
///
/// * `NotContains` is the opposite of `Contains`.
/// * An exact match is also a prefix match, a prefix match also a substring match, and a substring
///   match implies existence.
/// * A case-sensitive match is also a match without case.
/// * Another parameter removes no match; neither does another value.
/// * A `+` is an encoded space.
pub fn query_matcher(data: &[u8]) {
    let text = text(data);
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (name, values, query) = (line(), line(), line());
    let values: Vec<String> = values.split('|').map(str::to_owned).collect();

    let matcher = |values: &[String], mode, is_case_sensitive| {
        QueryMatcher::new(&RouteQueryParameter {
            name: name.to_owned(),
            values: (mode != Mode::Exists).then(|| values.to_vec()),
            mode,
            is_case_sensitive,
        })
    };
    if let Err(error) = matcher(&values, Mode::Contains, false) {
        assert!(!error.to_string().is_empty());
        return;
    }
    let holds_for = |values: &[String], mode, case, query: &str| {
        let head = Head {
            method: "GET",
            path: "/",
            query: Some(query),
            ..Head::default()
        };
        let matcher = matcher(values, mode, case);
        matcher
            .unwrap_or_else(|error| panic!("{error}"))
            .matches(&head)
    };
    let holds = |mode, case| holds_for(&values, mode, case, query);

    for case in [false, true] {
        assert_ne!(holds(Mode::Contains, case), holds(Mode::NotContains, case));
        assert!(!holds(Mode::Exact, case) || holds(Mode::Prefix, case));
        assert!(!holds(Mode::Prefix, case) || holds(Mode::Contains, case));
        assert!(!holds(Mode::Contains, case) || holds(Mode::Exists, case));
    }
    for mode in [Mode::Exact, Mode::Prefix, Mode::Contains] {
        let expected = holds(mode, false);
        assert!(!holds(mode, true) || expected);
        assert!(!expected || holds_for(&values, mode, false, &format!("x&{query}&y=z")));
        assert_eq!(
            holds_for(&values, mode, false, &query.replace('+', "%20")),
            expected
        );
        let any_value = values
            .iter()
            .any(|value| holds_for(std::slice::from_ref(value), mode, false, query));
        assert_eq!(any_value, expected, "one value is enough");
    }
}
