//! Route templates and paths.

use proxy_model::compiled::RouteIndex;
use proxy_model::matching::{
    Lookup, PathTemplate, RouteMatcher, RouteMatcherParts, RouteTable, RouteValues,
};

use crate::input::{Head, text};

/// Fuzzes a template, followed by paths, one per line.
///
/// * An error has the position of a character of the template.
/// * A written template is read as the same template.
/// * A path matches the template exactly if it matches in a route table, and exactly if values can
///   be captured.
/// * Values have the names of the template, in its order.
/// * Without constraints, a trailing `/` makes no difference.
/// * A path made from values is valid and has the same values again.
pub fn route_template(data: &[u8]) {
    let text = text(data);
    let mut lines = text.lines();
    let written = lines.next().unwrap_or_default();
    let template = match PathTemplate::parse(written) {
        Ok(template) => template,
        Err(error) => {
            assert!(
                written.is_char_boundary(error.offset()),
                "{written:?}: {error}"
            );
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let again = PathTemplate::parse(template.as_str()).expect("it was parsed before");
    assert_eq!(template.as_str(), written);
    assert_eq!(again.precedence(), template.precedence());
    assert!(again.parameter_names().eq(template.parameter_names()));

    let routes = [(
        0,
        RouteMatcher::new(RouteMatcherParts {
            path: template.clone(),
            ..RouteMatcherParts::default()
        }),
    )];
    let table = RouteTable::build(&routes);
    for path in lines {
        let matches = template.matches(path);
        let head = Head {
            method: "GET",
            path,
            ..Head::default()
        };
        let found = match matches {
            true => Lookup::Matched(RouteIndex(0)),
            false => Lookup::NotFound,
        };
        assert_eq!(table.find(&routes, &head), found, "{written:?} {path:?}");
        let values = template.capture(path);
        assert_eq!(values.is_some(), matches, "{written:?} {path:?}");
        if let Some(values) = &values {
            check_values(&template, path, values);
        }
        let shorter = path.trim_end_matches('/');
        if !written.contains(':') && shorter.starts_with('/') {
            assert_eq!(
                template.matches(shorter),
                template.matches(&format!("{shorter}/")),
                "{written:?} {shorter:?}"
            );
        }
    }
}

fn check_values(template: &PathTemplate, path: &str, values: &RouteValues) {
    let mut names = template.parameter_names();
    for (name, _) in values.iter() {
        assert!(names.any(|known| known == name), "{template} {name}");
    }
    let Some(made) = template.format(values) else {
        return;
    };
    assert!(made.is_empty() || made.starts_with('/'), "{made:?}");
    if !made.is_empty() {
        let uri: http::Uri = made
            .parse()
            .unwrap_or_else(|error| panic!("{template} {path:?}: {made:?}: {error}"));
        assert_eq!(uri.path(), made);
    }
    // `{*name}` encodes the slashes of its value, an empty segment cannot be made, and an encoded
    // NUL stays encoded.
    if template.as_str().contains('*') || path.contains("//") || path.contains('\0') {
        return;
    }
    let again = template.capture(&made).map(|values| without_case(&values));
    assert_eq!(
        again,
        Some(without_case(values)),
        "{template} {path:?} {made:?}"
    );
}

/// Returns the values in lower case, because default values match ignoring case.
fn without_case(values: &RouteValues) -> Vec<(String, String)> {
    values
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_lowercase()))
        .collect()
}
