//! Methods, headers and query parameters as matchers of headers, `:method` and `:path` among them.
//!
//! Envoy's own matchers of query parameters compare names case-sensitively, read only the first value and
//! do not decode it. Expressions over `:path` are used instead. Envoy joins the lines of a header with
//! commas before it compares.

use proxy_model::config::{
    HeaderMatchMode, QueryMatchMode, RouteHeader, RouteMatch, RouteQueryParameter,
};
use xds_types::pb::envoy::config::route::v3::HeaderMatcher;
use xds_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use xds_types::pb::envoy::r#type::matcher::v3::StringMatcher;
use xds_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;

use super::re2;
use super::re2_size;
use super::report::{Inexpressible, Report};

/// Returns the conditions of a route except host and path.
pub(super) fn header_matchers(
    wanted: &RouteMatch,
    report: &mut Report<'_>,
) -> Result<Vec<HeaderMatcher>, Inexpressible> {
    let mut matchers = Vec::new();
    matchers.extend(methods(wanted.methods.as_deref().unwrap_or_default()));
    for header in wanted.headers.iter().flatten() {
        matchers.push(self::header(header)?);
    }
    for parameter in wanted.query_parameters.iter().flatten() {
        matchers.push(query(parameter, report));
    }
    for matcher in &matchers {
        if let Some(HeaderMatchSpecifier::StringMatch(StringMatcher {
            match_pattern: Some(MatchPattern::SafeRegex(regex)),
            ..
        })) = &matcher.header_match_specifier
        {
            re2_size::check(&format!("Match ({})", matcher.name), &regex.regex)?;
        }
    }
    Ok(matchers)
}

fn methods(methods: &[String]) -> Option<HeaderMatcher> {
    /// The methods that the model compares ignoring case.
    const STANDARD: [&str; 8] = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE",
    ];
    let each = |method: &String| {
        let ignore_case = STANDARD
            .iter()
            .any(|known| known.eq_ignore_ascii_case(method));
        match ignore_case {
            true => re2::in_any_case(&method.to_ascii_uppercase(), true),
            false => re2::plain(method),
        }
    };
    (!methods.is_empty()).then(|| matching(":method", regex(re2::one_of(methods.iter().map(each)))))
}

fn header(header: &RouteHeader) -> Result<HeaderMatcher, Inexpressible> {
    let name = header.name.to_ascii_lowercase();
    let ignore = !header.is_case_sensitive;
    let values = header.values.as_deref().unwrap_or_default();
    Ok(match header.mode {
        HeaderMatchMode::Exists => matching(&name, regex(".+")),
        HeaderMatchMode::NotExists => not(matching(&name, regex(".+"))),
        HeaderMatchMode::Contains => matching(&name, contains(values, ignore)),
        HeaderMatchMode::NotContains => not(matching(&name, contains(values, ignore))),
        HeaderMatchMode::ExactHeader => {
            let value = one_of(values, ignore)?;
            matching(
                &name,
                regex(in_list(&name, &format!("{value}|\"{value}\""))),
            )
        }
        HeaderMatchMode::HeaderPrefix => {
            let value = one_of(values, ignore)?;
            matching(
                &name,
                regex(in_list(&name, &begins_with(&value, separator(&name)))),
            )
        }
    })
}

/// One of several texts of elements. Those with quotes or separators would need a parser.
fn one_of(values: &[String], ignore_case: bool) -> Result<String, Inexpressible> {
    if let Some(value) = values.iter().find(|value| value.contains(['"', ',', ';'])) {
        return Err(Inexpressible::new(
            "Match/Headers",
            format!(
                "`{value}` has quotes or separators in it, which Envoy's matchers cannot \
                 distinguish from those of the list"
            ),
        ));
    }
    let values = re2::one_of(values.iter().map(|value| re2::plain(value)));
    Ok(re2::in_any_case(&values, ignore_case))
}

/// Returns an expression for an element that begins with `value`, optionally behind a quote that also ends
/// the element. Such an element may contain further quotes, between which separators do not count; the last
/// quote may be unclosed.
fn begins_with(value: &str, separator: char) -> String {
    let quoted = format!("[^\"{separator}]*\"");
    format!("{value}[^{separator}]*|\"{value}[^\"]*\"(?:{quoted}[^\"]*\")*(?:{quoted}$)?")
}

fn separator(name: &str) -> char {
    if name == "cookie" { ';' } else { ',' }
}

/// A list that has `element` in it; what stands between quotes separates nothing.
fn in_list(name: &str, element: &str) -> String {
    let separator = separator(name);
    format!("(?:[^\"]*(?:\"[^\"]*\"[^\"]*)*{separator})? *(?:{element})(?:{separator}.*)?")
}

fn contains(values: &[String], ignore_case: bool) -> StringMatcher {
    match values {
        [value] => StringMatcher {
            ignore_case,
            match_pattern: Some(MatchPattern::Contains(value.clone())),
        },
        values => {
            let values = re2::one_of(values.iter().map(|value| re2::plain(value)));
            regex(format!(".*{}.*", re2::in_any_case(&values, ignore_case)))
        }
    }
}

fn query(parameter: &RouteQueryParameter, report: &mut Report<'_>) -> HeaderMatcher {
    let mut expression = query_expression(parameter, re2::in_query);
    if !re2_size::fits(&expression) {
        expression = query_expression(parameter, re2::in_query_as_sent);
        report.differs(
            "Match/QueryParameters",
            format!("Envoy does not recognize `{}` where letters or digits are escaped: the expression would be too large", parameter.name),
        );
    }
    let has = matching(":path", regex(expression));
    match parameter.mode {
        QueryMatchMode::NotContains => not(has),
        _ => has,
    }
}

fn query_expression(parameter: &RouteQueryParameter, text: fn(&str, bool) -> String) -> String {
    let name = text(&parameter.name, true);
    let values = parameter.values.as_deref().unwrap_or_default();
    let value = re2::one_of((values.iter()).map(|value| text(value, !parameter.is_case_sensitive)));
    let value = match parameter.mode {
        QueryMatchMode::Exists => "[^&]+".to_owned(),
        QueryMatchMode::Exact => value,
        QueryMatchMode::Prefix => format!("{value}[^&]*"),
        QueryMatchMode::Contains | QueryMatchMode::NotContains => {
            // The expression skips an escape as a whole: `%61` has no 1 in it. A `%` without two digits is
            // not skipped.
            format!("(?:[^&%]|%[0-9a-fA-F]{{2}})*{value}[^&]*")
        }
    };
    format!("[^?]*\\?(?:[^&]*&)*{name}={value}(?:&.*)?")
}

pub(super) fn regex(regex: impl Into<String>) -> StringMatcher {
    StringMatcher {
        ignore_case: false,
        match_pattern: Some(MatchPattern::SafeRegex(re2::matcher(regex))),
    }
}

fn matching(name: &str, matcher: StringMatcher) -> HeaderMatcher {
    HeaderMatcher {
        name: name.to_owned(),
        header_match_specifier: Some(HeaderMatchSpecifier::StringMatch(matcher)),
        ..HeaderMatcher::default()
    }
}

/// The opposite, which also holds where the header is missing.
fn not(matcher: HeaderMatcher) -> HeaderMatcher {
    HeaderMatcher {
        invert_match: true,
        treat_missing_header_as_empty: true,
        ..matcher
    }
}
