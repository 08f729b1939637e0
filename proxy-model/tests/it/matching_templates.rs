//! Properties of route templates and host patterns, for arbitrary text.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use proptest::prelude::*;
use proptest::sample::select;
use proxy_model::matching::{HostPattern, MethodSet, PathTemplate, RequestHost, RouteValues};

/// Text made of what templates are made of.
fn template_text() -> impl Strategy<Value = String> {
    let pieces = [
        "/", "{", "}", "{{", "}}", "*", "?", ":", "=", "(", ")", ".", "~", "a", "b", "ä", "int",
        "regex", "min(1)", "\\d", "%2F",
    ];
    prop::collection::vec(select(pieces.to_vec()), 0..20).prop_map(|pieces| pieces.concat())
}

/// A path, percent-encoded more or less.
fn path() -> impl Strategy<Value = String> {
    let pieces = [
        "/", "a", "b", ".", "-", "%41", "%2F", "%c3%a4", "ä", "%", "%ff", "%4", "7", "%00", "+",
        " ",
    ];
    prop::collection::vec(select(pieces.to_vec()), 0..40)
        .prop_map(|pieces| format!("/{}", pieces.concat()))
}

/// Templates whose joined segments can be separated again.
const TEMPLATES: [&str; 12] = [
    "/{a}",
    "/{a}/{b}",
    "/x/{a}/y/{b}",
    "/{a}/{b?}",
    "/{a}/{b=7}",
    "/{a=7}/{b=8}/{c=9}",
    "/{a}.{b}",
    "/{a}.{b?}",
    "/v{a}-{b}",
    "/{a}/{**b}",
    "/{**a}",
    "/{a=7}/{**b=8}",
];

fn without_case(values: &RouteValues) -> Vec<(String, String)> {
    values
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_lowercase()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsing_never_panics(any in any::<String>(), text in template_text(), path in path()) {
        for text in [&any, &text] {
            match PathTemplate::parse(text) {
                Ok(template) => {
                    prop_assert_eq!(template.as_str(), text);
                    prop_assert_eq!(template.matches(&path), template.capture(&path).is_some());
                }
                Err(error) => {
                    prop_assert!(error.offset() <= text.len());
                    prop_assert!(text.is_char_boundary(error.offset()));
                    prop_assert!(!error.to_string().is_empty());
                }
            }
        }
    }

    #[test]
    fn matching_never_panics(any in any::<String>(), path in path(), text in select(&TEMPLATES)) {
        let template = PathTemplate::parse(text).unwrap();
        for path in [&any, &path] {
            if let Some(values) = template.capture(path) {
                let _ = template.format(&values);
            }
        }
    }

    #[test]
    fn hosts_and_methods_never_panic(any in any::<String>(), https in any::<bool>()) {
        let host = RequestHost::parse(&any, https);
        match HostPattern::parse(&any) {
            // A pattern without a wildcard matches itself.
            Ok(pattern) if !any.contains('*') => prop_assert!(pattern.matches(&host)),
            Ok(_) => {}
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                let _ = error.suggestion();
            }
        }
        if let Err(errors) = MethodSet::parse(&[&any]) {
            let _ = errors[0].suggestion();
        }
    }

    #[test]
    fn a_slash_at_the_end_makes_no_difference(path in path(), text in select(&TEMPLATES)) {
        // Two slashes are an empty segment and a slash.
        let path = path.trim_end_matches('/');
        let template = PathTemplate::parse(text).unwrap();
        prop_assert_eq!(template.matches(path), template.matches(&format!("{path}/")));
    }

    #[test]
    fn encoding_a_letter_makes_no_difference(path in path(), text in select(&TEMPLATES)) {
        let template = PathTemplate::parse(text).unwrap();
        // Without escapes, whose digits would be taken for letters.
        let path = path.replace('%', "");
        let encoded = path.replace('a', "%61").replace('b', "%62").replace('7', "%37");
        let values = template.capture(&path);
        let of_encoded = template.capture(&encoded);
        prop_assert_eq!(
            values.map(|values| without_case(&values)),
            of_encoded.map(|values| without_case(&values))
        );
    }

    #[test]
    fn an_encoded_slash_does_not_separate(path in path()) {
        let template = PathTemplate::parse("/{a}").unwrap();
        let segment = path.replace('/', "%2F");
        let values = template.capture(&format!("/{segment}")).unwrap();
        prop_assert!(!values.get("a").unwrap().contains('/'));
    }

    #[test]
    fn what_is_made_of_captured_values_captures_them_again(
        path in path(),
        text in select(&TEMPLATES),
    ) {
        // An empty segment cannot be made.
        let path = path.split('/').filter(|segment| !segment.is_empty()).collect::<Vec<_>>();
        let path = format!("/{}", path.join("/"));
        let template = PathTemplate::parse(text).unwrap();
        let Some(values) = template.capture(&path) else {
            return Ok(());
        };
        let Some(made) = template.format(&values) else {
            // Only a default that nothing was written for stands before something else.
            prop_assert!(text.contains('='), "{text} {path}");
            return Ok(());
        };
        let again = template.capture(&made).map(|values| without_case(&values));
        prop_assert_eq!(again, Some(without_case(&values)), "{} {}", path, made);
    }

    #[test]
    fn made_paths_are_valid(value in any::<String>(), rest in any::<String>()) {
        let template = PathTemplate::parse("/ä{{/{a}/{**rest}").unwrap();
        let values: RouteValues = [("a", value.as_str()), ("rest", rest.as_str())].into_iter().collect();
        if let Some(made) = template.format(&values) {
            let uri: http::Uri = made.parse().unwrap();
            prop_assert_eq!(uri.path(), made);
        }
    }
}
