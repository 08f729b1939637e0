//! Group B: headers.

use super::TestHead;
use crate::config::HeaderMatchMode::{
    self as Mode, Contains, ExactHeader as Exact, Exists, HeaderPrefix as Prefix, NotContains,
    NotExists,
};
use crate::config::RouteHeader;
use crate::matching::{CriterionError, HeaderMatcher};

/// Case matters, or not.
const CS: bool = true;
const CI: bool = false;

fn matcher(name: &str, mode: Mode, case_matters: bool, values: &[&str]) -> HeaderMatcher {
    let values: Vec<String> = values.iter().map(|value| (*value).into()).collect();
    HeaderMatcher::new(&RouteHeader {
        name: name.into(),
        values: (!values.is_empty()).then_some(values),
        mode,
        is_case_sensitive: case_matters,
    })
    .unwrap()
}

fn matches(matcher: &HeaderMatcher, lines: &[&str]) -> bool {
    let name = if matcher.name() == "cookie" {
        "cookie"
    } else {
        "org-id"
    };
    let head = lines.iter().fold(TestHead::new("GET", "h/"), |head, line| {
        head.with(name, line)
    });
    matcher.matches(&head)
}

/// Lines of the header, and whether they match.
type Expected<'a> = (&'a [&'a str], bool);

/// Number, mode, whether case matters, values of the condition, and what is expected.
type Case<'a> = (&'a str, Mode, bool, &'a [&'a str], &'a [Expected<'a>]);

fn assert_cases(cases: &[Case<'_>]) {
    for (id, mode, case_matters, values, expected) in cases {
        let matcher = matcher("Org-Id", *mode, *case_matters, values);
        for (lines, expected) in *expected {
            assert_eq!(matches(&matcher, lines), *expected, "{id}: {lines:?}");
        }
    }
}

#[test]
fn b01_to_b08_presence_and_equality() {
    let abc: &[&str] = &["abc"];
    assert_cases(&[
        (
            "B01",
            Exists,
            CI,
            &[],
            &[(&[], false), (&[""], false), (&["abc"], true)],
        ),
        (
            "B02",
            NotExists,
            CI,
            &[],
            &[(&[], true), (&[""], true), (&["abc"], false)],
        ),
        ("B03", Exact, CI, abc, &[(&[], false), (&[""], false)]),
        ("B04", Exact, CI, abc, &[(&["abc"], true), (&["aBC"], true)]),
        (
            "B05",
            Exact,
            CI,
            abc,
            &[(&["abcd"], false), (&["ab"], false)],
        ),
        (
            "B06",
            Exact,
            CS,
            abc,
            &[(&["abc"], true), (&["aBC"], false)],
        ),
        (
            "B07",
            Exact,
            CS,
            abc,
            &[(&["abcd"], false), (&["ab"], false), (&[""], false)],
        ),
        (
            "B08",
            Exact,
            CI,
            abc,
            &[(&["", ""], false), (&["ab", "c"], false)],
        ),
    ]);
}

#[test]
fn b09_to_b18_elements_and_quotes() {
    let abc: &[&str] = &["abc"];
    assert_cases(&[
        (
            "B09",
            Exact,
            CI,
            abc,
            &[(&["def", "abc"], true), (&["abc", ""], true)],
        ),
        (
            "B10",
            Exact,
            CS,
            abc,
            &[(&["def", "abC"], false), (&["def", "abc"], true)],
        ),
        (
            "B11",
            Exact,
            CI,
            abc,
            &[(&["\"abc"], false), (&["abc\""], false)],
        ),
        (
            "B12",
            Exact,
            CI,
            abc,
            &[(&["\"abc\""], true), (&[" \"abc\""], true)],
        ),
        (
            "B13",
            Exact,
            CI,
            abc,
            &[(&["\"abc\" "], false), (&["abc "], false)],
        ),
        ("B14", Exact, CI, abc, &[(&["\"abc\", "], true)]),
        (
            "B15",
            Exact,
            CI,
            abc,
            &[(&["\"ab\", \"abc"], false), (&["\"ab\", \"abc\""], true)],
        ),
        ("B16", Exact, CI, abc, &[(&["ab\", \"abc"], false)]),
        (
            "B17",
            Exact,
            CI,
            abc,
            &[(&["ab\"\",\"abc"], false), (&["ab\"\",\"abc\""], true)],
        ),
        (
            "B18",
            Exact,
            CI,
            abc,
            &[
                (&["\"\"ab\"\"c"], false),
                (&["\"\"ab\"\"c,\"abc,\""], false),
                (&["\"\"ab\"\"c,\"abc,\",abc"], true),
            ],
        ),
    ]);
}

#[test]
fn b19_to_b24_prefixes() {
    let abc: &[&str] = &["abc"];
    assert_cases(&[
        (
            "B19",
            Prefix,
            CI,
            abc,
            &[
                (&[], false),
                (&[""], false),
                (&["aBCd"], true),
                (&["ab"], false),
            ],
        ),
        (
            "B20",
            Prefix,
            CS,
            abc,
            &[(&["aBCd"], false), (&["abcd"], true)],
        ),
        (
            "B21",
            Prefix,
            CS,
            abc,
            &[(&["ab,abc"], true), (&["ab, abc"], true)],
        ),
        ("B22", Prefix, CS, abc, &[(&["\"ab, abc\""], false)]),
        (
            "B23",
            Prefix,
            CS,
            abc,
            &[
                (&["\"ab\", abc\""], true),
                (&["\"ab\"\"\"\", abc\""], false),
                (&["\"ab\"\"\"\"\", abc\""], true),
            ],
        ),
        (
            "B24",
            Prefix,
            CS,
            abc,
            &[
                (&["\"abc"], false),
                (&["\"abc\""], true),
                (&["\"abc\" "], false),
            ],
        ),
    ]);
}

#[test]
fn b25_to_b33_whole_lines() {
    let abc: &[&str] = &["abc"];
    assert_cases(&[
        (
            "B25",
            Contains,
            CI,
            abc,
            &[
                (&["ababc"], true),
                (&["zaBCz"], true),
                (&["ababab"], false),
                (&[], false),
            ],
        ),
        (
            "B26",
            Contains,
            CS,
            abc,
            &[(&["aaaBC"], false), (&["bbabcdb"], true)],
        ),
        (
            "B27",
            Contains,
            CI,
            abc,
            &[(&["\"abc"], true), (&["ab\"c"], false)],
        ),
        (
            "B28",
            Contains,
            CI,
            abc,
            &[(&["ab", "cd"], false), (&["ab", "cd", "abcd"], true)],
        ),
        ("B29", NotContains, CI, abc, &[(&[], true), (&[""], true)]),
        (
            "B30",
            NotContains,
            CI,
            abc,
            &[(&["ababc"], false), (&["ababab"], true)],
        ),
        (
            "B31",
            NotContains,
            CI,
            abc,
            &[(&["abc", "def"], false), (&["def", "abc"], false)],
        ),
        (
            "B32",
            NotContains,
            CI,
            abc,
            &[(&["ab", "cd"], true), (&["\"abc\""], false)],
        ),
        (
            "B33",
            NotContains,
            CS,
            abc,
            &[(&["aaaBC"], true), (&["bbabcdb"], false)],
        ),
    ]);
}

#[test]
fn b34_to_b38_several_values() {
    let both: &[&str] = &["abc", "def"];
    assert_cases(&[
        (
            "B34",
            Exact,
            CS,
            both,
            &[(&["ab", "def"], true), (&["ab", "cdef"], false)],
        ),
        (
            "B35",
            Exact,
            CS,
            both,
            &[(&["\"abc,def\""], false), (&["\"abc\",def"], true)],
        ),
        (
            "B36",
            Prefix,
            CS,
            both,
            &[(&["Abcd", "defg"], true), (&["Abcd", "Defg"], false)],
        ),
        (
            "B37",
            Contains,
            CS,
            both,
            &[(&["aBCa"], false), (&["DEFdef"], true)],
        ),
        (
            "B38",
            NotContains,
            CS,
            both,
            &[(&["DEFg"], true), (&["defG"], false)],
        ),
    ]);
}

#[test]
fn b39_to_b42_cookies_are_separated_by_semicolons() {
    let foo = matcher("Org-Id", Exact, CI, &["abc"]);
    let cookie = matcher("Cookie", Exact, CI, &["abc"]);
    for (lines, in_foo, in_cookie) in [
        ("ab, abc", true, false),
        ("ab; abc", false, true),
        ("abc", true, true),
        ("\"ab; abc\"", false, false),
    ] {
        assert_eq!(matches(&foo, &[lines]), in_foo, "B39: {lines}");
        assert_eq!(matches(&cookie, &[lines]), in_cookie, "B40: {lines}");
    }
}

#[test]
fn b43_missing_headers() {
    for (mode, expected) in [
        (Exact, false),
        (Prefix, false),
        (Contains, false),
        (Exists, false),
        (NotContains, true),
        (NotExists, true),
    ] {
        let values: &[&str] = if matches!(mode, Exists | NotExists) {
            &[]
        } else {
            &["abc"]
        };
        assert_eq!(
            matches(&matcher("a", mode, CI, values), &[]),
            expected,
            "{mode:?}"
        );
    }
}

#[test]
fn b45_what_cannot_be_compiled() {
    let error = |name: &str, mode, values: Option<&[&str]>| {
        HeaderMatcher::new(&RouteHeader {
            name: name.into(),
            mode,
            values: values.map(|values| values.iter().map(|value| (*value).into()).collect()),
            is_case_sensitive: false,
        })
        .map(|_| ())
    };
    for mode in [Exact, Prefix, Contains, NotContains] {
        assert_eq!(
            error("h", mode, Some(&["a", ""])),
            Err(CriterionError::EmptyValue { index: 1 }),
            "{mode:?}"
        );
        for values in [None, Some(&[] as &[&str])] {
            assert!(
                matches!(
                    error("h", mode, values),
                    Err(CriterionError::NoValues { .. })
                ),
                "D13: {mode:?}"
            );
        }
    }
    for mode in [Exists, NotExists] {
        assert!(matches!(
            error("h", mode, Some(&["a"])),
            Err(CriterionError::UnusedValues { .. })
        ));
        assert_eq!(error("h", mode, None), Ok(()));
        assert_eq!(error("h", mode, Some(&[])), Ok(()));
    }
    assert_eq!(error("", Exact, Some(&["a"])), Err(CriterionError::NoName));
    for name in ["a b", "a:", "ü", "a\n"] {
        assert!(matches!(
            error(name, Exists, None),
            Err(CriterionError::InvalidName { .. })
        ));
    }
}

#[test]
fn bytes_that_are_not_text_are_compared_all_the_same() {
    let head = TestHead::new("GET", "h/").with("org-id", b"\xff, ABC");
    assert!(matcher("org-id", Exact, CI, &["abc"]).matches(&head));
    assert!(matcher("org-id", Contains, CI, &["bc"]).matches(&head));
    assert!(!matcher("org-id", Exact, CI, &["ÿ"]).matches(&head));
}
