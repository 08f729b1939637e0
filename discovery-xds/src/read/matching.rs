//! The match criteria of a route.

use proxy_model::config::{QueryMatchMode, RouteMatch, RouteQueryParameter};
use xds_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use xds_types::pb::envoy::config::route::v3::query_parameter_matcher::QueryParameterMatchSpecifier;
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::config::route::v3::{
    HeaderMatcher, QueryParameterMatcher, RouteMatch as EnvoyMatch,
};
use xds_types::pb::envoy::r#type::matcher::v3::StringMatcher;
use xds_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;

use super::{Reading, header};

/// Maximum length of an expression, since templates are not longer.
const LONGEST_EXPRESSION: usize = 2048;

/// Reads the criteria of a route except hosts. Rejected ones are left out, so that the rest matches at
/// least as many requests.
pub(super) fn route_match(wanted: &EnvoyMatch, reading: &mut Reading) -> RouteMatch {
    reading.reject_if(wanted.runtime_fraction.is_some(), "runtime_fraction");
    reading.reject_if(!wanted.cookies.is_empty(), "cookies");
    reading.reject_if(wanted.grpc.is_some(), "grpc");
    let mut matched = RouteMatch {
        path: path(wanted, reading),
        ..RouteMatch::default()
    };
    for header in &wanted.headers {
        reading.below(&format!("headers/{}", header.name), |reading| {
            if header.name == ":method" {
                matched.methods = methods(header, reading);
            } else if header.name.starts_with(':') {
                reading.reject(
                    "name",
                    "conditions on this part of a request cannot be honoured",
                );
            } else if let Some(header) = header::header(header, reading) {
                matched.headers.get_or_insert_default().push(header);
            }
        });
    }
    for parameter in &wanted.query_parameters {
        reading.below(&format!("query_parameters/{}", parameter.name), |reading| {
            if let Some(parameter) = query(parameter, reading) {
                matched
                    .query_parameters
                    .get_or_insert_default()
                    .push(parameter);
            }
        });
    }
    matched
}

fn path(wanted: &EnvoyMatch, reading: &mut Reading) -> Option<String> {
    let case_matters = wanted
        .case_sensitive
        .as_ref()
        .is_none_or(|sensitive| sensitive.value);
    let mut warn = |text: &str| {
        if case_matters && text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
            reading.differs("case_sensitive", "paths are compared ignoring case");
        }
    };
    let template = match &wanted.path_specifier {
        Some(PathSpecifier::Prefix(prefix)) if prefix == "/" => return None,
        Some(PathSpecifier::PathSeparatedPrefix(prefix)) => {
            warn(prefix);
            literal(prefix).map(|path| format!("{path}/{{**rest}}"))
        }
        Some(PathSpecifier::Prefix(prefix)) => {
            warn(prefix);
            match prefix.strip_suffix('/') {
                Some(path) => {
                    reading.differs(
                        "prefix",
                        format!("the path `{path}` without the last `/` matches, too"),
                    );
                    literal(path).map(|path| format!("{path}/{{**rest}}"))
                }
                None => inside_a_segment(prefix),
            }
        }
        Some(PathSpecifier::Path(path)) => {
            warn(path);
            literal(path.strip_suffix('/').unwrap_or(path)).map(|path| match &*path {
                "" => "/".to_owned(),
                _ => path,
            })
        }
        Some(PathSpecifier::SafeRegex(regex)) => expression(&regex.regex),
        _ => None,
    };
    if template.is_none() {
        reading.reject(
            "path_specifier",
            "this way to match paths cannot be honoured",
        );
    }
    template
}

/// The path as a template, if it is one that needs no escapes.
pub(super) fn literal(path: &str) -> Option<String> {
    let is_plain = path.is_empty() || path.starts_with('/');
    (is_plain && path.bytes().all(|byte| byte == b'/' || is_unreserved(byte)))
        .then(|| path.to_owned())
}

/// A prefix that ends inside a segment: the segment begins with it.
fn inside_a_segment(prefix: &str) -> Option<String> {
    let (before, begun) = literal(prefix)?
        .rsplit_once('/')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))?;
    let begun = begun.replace('.', "\\.");
    Some(format!("{before}/{{begun:regex(^{begun})}}/{{**rest}}"))
}

/// A path that an expression matches, as all that is left of a path without its first slash.
fn expression(regex: &str) -> Option<String> {
    let rest = regex.strip_prefix('^').unwrap_or(regex);
    let (flags, rest) = match rest.strip_prefix("(?i)") {
        Some(rest) => ("(?i)", rest),
        None => ("", rest),
    };
    let rest = rest.strip_prefix('/')?;
    let rest = rest.strip_suffix('$').unwrap_or(rest);
    // Alternatives outside of groups would be others without the slash.
    let mut depth = 0_usize;
    let mut escaped = false;
    for c in rest.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            '|' if depth == 0 => return None,
            _ => {}
        }
    }
    // In classes these would be counted wrongly, so classes have none.
    if depth != 0 || regex.len() > LONGEST_EXPRESSION || rest.contains("[(") || rest.contains("[)")
    {
        return None;
    }
    // The first character may repeat in an expression, and then it was not the slash alone.
    if rest.starts_with(['*', '+', '?', '{']) {
        return None;
    }
    let rest = rest.replace('{', "{{").replace('}', "}}");
    Some(format!("/{{**path:regex(^{flags}(?:{rest})$)}}"))
}

pub(super) fn string(matcher: &StringMatcher) -> Option<(&MatchPattern, bool)> {
    Some((matcher.match_pattern.as_ref()?, !matcher.ignore_case))
}

fn methods(header: &HeaderMatcher, reading: &mut Reading) -> Option<Vec<String>> {
    let exact = match header.header_match_specifier.as_ref()? {
        HeaderMatchSpecifier::ExactMatch(method) => Some(vec![method.clone()]),
        HeaderMatchSpecifier::StringMatch(matcher) => match string(matcher) {
            Some((MatchPattern::Exact(method), _)) => Some(vec![method.clone()]),
            Some((MatchPattern::SafeRegex(regex), _)) => {
                let list = &regex.regex;
                let list = (list
                    .strip_prefix("(?:")
                    .and_then(|list| list.strip_suffix(')')))
                .unwrap_or(list);
                list.split('|').map(one_method).collect()
            }
            _ => None,
        },
        _ => None,
    };
    if exact.is_none() || header.invert_match {
        reading.reject("string_match", "only lists of methods can be honoured");
        return None;
    }
    exact
}

/// `GET`, or `(?i:GET)`.
fn one_method(expression: &str) -> Option<String> {
    let inside = (expression.strip_prefix("(?i:")).and_then(|inside| inside.strip_suffix(')'));
    let method = inside.unwrap_or(expression);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    is_method.then(|| method.to_owned())
}

fn query(parameter: &QueryParameterMatcher, reading: &mut Reading) -> Option<RouteQueryParameter> {
    use QueryParameterMatchSpecifier::{PresentMatch, StringMatch};
    let (mode, value, is_case_sensitive) = match parameter.query_parameter_match_specifier.as_ref()
    {
        None | Some(PresentMatch(true)) => (QueryMatchMode::Exists, None, false),
        Some(StringMatch(matcher)) => match string(matcher) {
            Some((MatchPattern::Exact(value), case)) => (QueryMatchMode::Exact, Some(value), case),
            Some((MatchPattern::Prefix(value), case)) => {
                (QueryMatchMode::Prefix, Some(value), case)
            }
            Some((MatchPattern::Contains(value), case)) => {
                (QueryMatchMode::Contains, Some(value), case)
            }
            _ => {
                reading.reject(
                    "string_match",
                    "this way to match a parameter cannot be honoured",
                );
                return None;
            }
        },
        Some(PresentMatch(false)) => {
            reading.reject(
                "present_match",
                "that a parameter is missing cannot be asked for",
            );
            return None;
        }
    };
    if mode == QueryMatchMode::Exists {
        reading.differs(
            "present_match",
            "a parameter without a value counts as missing",
        );
    }
    reading.differs(
        "name",
        "names of parameters are compared ignoring case, and values after decoding",
    );
    Some(RouteQueryParameter {
        name: parameter.name.clone(),
        values: value.map(|value| vec![value.clone()]),
        mode,
        is_case_sensitive,
    })
}

/// RFC 3986 section 2.3
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}
