//! Host patterns, and hosts of requests.

use proxy_model::compiled::RouteIndex;
use proxy_model::matching::{
    HostPattern, Lookup, RequestHost, RouteMatcher, RouteMatcherParts, RouteTable,
};

use crate::input::{Head, text};

/// Fuzzes a pattern, followed by authorities of requests, one per line.
///
/// * A pattern without a wildcard matches itself in any case.
/// * A wildcard matches only hosts with its suffix. A port matches only itself.
/// * A name in ASCII form and the one in Unicode are the same pattern.
/// * The route table and the pattern itself agree on every match.
/// * The name of a host is a host with that name.
pub fn host_pattern(data: &[u8]) {
    let text = text(data);
    let mut lines = text.lines();
    let written = lines.next().unwrap_or_default();
    let pattern = match HostPattern::parse(written) {
        Ok(pattern) => pattern,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(error.suggestion().is_none_or(|said| !said.is_empty()));
            return;
        }
    };
    assert_eq!(pattern.as_str(), written);
    let unicode = HostPattern::parse(&pattern.to_unicode());
    let ascii = HostPattern::parse(&pattern.to_ascii());
    for other in [unicode, ascii] {
        let other = other.map(|other| (other.to_ascii(), other.rank()));
        assert_eq!(
            other,
            Ok((pattern.to_ascii(), pattern.rank())),
            "{written:?}"
        );
    }
    if !written.contains('*') {
        for same in [written.to_owned(), written.to_ascii_uppercase()] {
            assert!(
                pattern.matches(&RequestHost::parse(&same, false)),
                "{same:?}"
            );
        }
    }
    let routes = [(
        0,
        RouteMatcher::new(RouteMatcherParts {
            hosts: vec![pattern.clone()],
            ..RouteMatcherParts::default()
        }),
    )];
    let table = RouteTable::build(&routes);
    for authority in lines {
        for is_https in [false, true] {
            check(&pattern, &table, &routes, authority, is_https);
        }
    }
}

fn check(
    pattern: &HostPattern,
    table: &RouteTable,
    routes: &[(i32, RouteMatcher)],
    authority: &str,
    is_https: bool,
) {
    let host = RequestHost::parse(authority, is_https);
    assert_eq!(
        RequestHost::parse(host.name(), is_https).name(),
        host.name()
    );
    let matches = pattern.matches(&host);
    let head = Head {
        method: "GET",
        authority,
        path: "/",
        is_https,
        ..Head::default()
    };
    let found = match matches {
        true => Lookup::Matched(RouteIndex(0)),
        false => Lookup::NotFound,
    };
    assert_eq!(table.find(routes, &head), found, "{pattern} {authority:?}");
    if !matches {
        return;
    }
    if let Some(port) = pattern.port() {
        assert_eq!(host.port(), Some(port));
    }
    if let Some(suffix) = pattern.as_str().strip_prefix("*.")
        && suffix.is_ascii()
    {
        let suffix = suffix.split(':').next().unwrap_or_default();
        let name = host.name().to_ascii_lowercase();
        let label = name.strip_suffix(&suffix.to_ascii_lowercase());
        assert!(
            label.is_some_and(|label| label.len() > 1 && label.ends_with('.')),
            "{pattern} {authority:?}"
        );
    }
}
