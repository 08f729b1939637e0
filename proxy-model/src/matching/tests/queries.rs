//! Group C: query parameters.

use super::TestHead;
use crate::config::QueryMatchMode::{self as Mode, Contains, Exact, Exists, NotContains, Prefix};
use crate::config::RouteQueryParameter;
use crate::matching::{CriterionError, QueryMatcher};

/// Case matters, or not.
const CS: bool = true;
const CI: bool = false;

fn config(mode: Mode, case_matters: bool, values: &[&str]) -> RouteQueryParameter {
    let values: Vec<String> = values.iter().map(|value| (*value).into()).collect();
    RouteQueryParameter {
        name: "org-id".into(),
        values: (!values.is_empty()).then_some(values),
        mode,
        is_case_sensitive: case_matters,
    }
}

fn matches(matcher: &QueryMatcher, query: Option<&str>) -> bool {
    let url = query.map_or_else(|| "h/".to_owned(), |query| format!("h/?{query}"));
    matcher.matches(&TestHead::new("GET", &url))
}

/// A query, and whether it matches.
type Expected<'a> = (&'a str, bool);

/// Number, mode, whether case matters, values of the condition, and what is expected.
type Case<'a> = (&'a str, Mode, bool, &'a [&'a str], &'a [Expected<'a>]);

fn assert_cases(cases: &[Case<'_>]) {
    for (id, mode, case_matters, values, expected) in cases {
        let matcher = QueryMatcher::new(&config(*mode, *case_matters, values)).unwrap();
        for (query, expected) in *expected {
            assert_eq!(matches(&matcher, Some(query)), *expected, "{id}: {query}");
        }
    }
}

#[test]
fn c01_to_c14_modes() {
    let abc: &[&str] = &["abc"];
    let both: &[&str] = &["abc", "def"];
    assert_cases(&[
        (
            "C01",
            Exists,
            CI,
            &[],
            &[
                ("", false),
                ("org-id", false),
                ("org-id=", false),
                ("org-id=abc", true),
                ("other=abc", false),
            ],
        ),
        (
            "C02",
            Exact,
            CI,
            abc,
            &[
                ("org-id=abc", true),
                ("org-id=aBC", true),
                ("org-id=abcd", false),
                ("org-id=ab", false),
                ("", false),
                ("org-id=", false),
            ],
        ),
        (
            "C03",
            Exact,
            CS,
            abc,
            &[("org-id=aBC", false), ("org-id=abc", true)],
        ),
        (
            "C04",
            Exact,
            CS,
            abc,
            &[
                ("org-id=ab&org-id=cd", false),
                ("org-id=a&org-id=abc", true),
            ],
        ),
        (
            "C05",
            Contains,
            CI,
            &["val ue"],
            &[("org-id=val%20ue", true), ("org-id=val+ue", true)],
        ),
        (
            "C06",
            Contains,
            CI,
            &["value"],
            &[("org-id=val%20ue", false)],
        ),
        (
            "C07",
            Contains,
            CI,
            abc,
            &[
                ("org-id=zaBCz", true),
                ("org-id=aaab", false),
                ("org-id=", false),
            ],
        ),
        (
            "C08",
            Contains,
            CS,
            abc,
            &[("org-id=cbcaBC", false), ("org-id=ababcd", true)],
        ),
        (
            "C09",
            Prefix,
            CI,
            abc,
            &[
                ("org-id=abcd", true),
                ("org-id=ab", false),
                ("org-id=", false),
            ],
        ),
        (
            "C10",
            Prefix,
            CS,
            abc,
            &[("org-id=aBCd", false), ("org-id=abcd", true)],
        ),
        (
            "C11",
            NotContains,
            CI,
            abc,
            &[
                ("org-id=", true),
                ("org-id=aabc", false),
                ("org-id=aaab", true),
                ("", true),
            ],
        ),
        (
            "C12",
            NotContains,
            CS,
            abc,
            &[("org-id=cbcaBC", true), ("org-id=ababcd", false)],
        ),
        (
            "C13",
            NotContains,
            CI,
            both,
            &[("org-id=a&org-id=b", true), ("org-id=a&org-id=def", false)],
        ),
        (
            "C14",
            Prefix,
            CS,
            both,
            &[
                ("org-id=Abcd&org-id=Defg", false),
                ("org-id=a&org-id=defg", true),
            ],
        ),
    ]);
}

#[test]
fn names_are_decoded_and_ignore_case() {
    let matcher = QueryMatcher::new(&config(Exact, CI, &["a&b=c"])).unwrap();
    for query in ["ORG-ID=a%26b=c", "x=y&&=&%6frg%2Did=a%26b%3Dc&z"] {
        assert!(matches(&matcher, Some(query)), "{query}");
    }
    assert!(!matches(&matcher, None));
}

#[test]
fn what_does_not_decode_stays_as_it_is() {
    let matcher = QueryMatcher::new(&config(Exact, CI, &["%zz%ff"])).unwrap();
    assert!(matches(&matcher, Some("org-id=%zz%FF")));
}

#[test]
fn what_cannot_be_compiled() {
    let error = |config| QueryMatcher::new(&config).map(|_| ());
    for mode in [Exact, Contains, NotContains, Prefix] {
        assert!(matches!(
            error(config(mode, CI, &[])),
            Err(CriterionError::NoValues { .. })
        ));
        assert_eq!(
            error(config(mode, CI, &[""])),
            Err(CriterionError::EmptyValue { index: 0 })
        );
    }
    assert_eq!(
        error(config(Exists, CI, &["a"])),
        Err(CriterionError::UnusedValues { mode: "Exists" })
    );
    let nameless = RouteQueryParameter {
        name: String::new(),
        ..config(Exact, CI, &["a"])
    };
    assert_eq!(error(nameless), Err(CriterionError::NoName));
}
