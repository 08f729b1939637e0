//! A model of Envoy's routing by its documentation, for comparison with this project's model.

use proxy_model::RequestHead;
use regex::Regex;
use xds_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::config::route::v3::{HeaderMatcher, Route, RouteMatch, VirtualHost};
use xds_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;

/// A request in parts.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) host: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
}

impl Request {
    pub(super) fn get(host: &str, target: &str) -> Self {
        Self {
            method: "GET".into(),
            host: host.into(),
            target: target.into(),
            headers: Vec::new(),
        }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

impl RequestHead for Request {
    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    fn authority(&self) -> &str {
        &self.host
    }

    fn is_https(&self) -> bool {
        false
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        for (_, value) in self.headers.iter().filter(|(key, _)| key == name) {
            if !each(value.as_bytes()) {
                return;
            }
        }
    }
}

/// The route that Envoy takes.
pub(super) fn find<'h>(hosts: &'h [VirtualHost], request: &Request) -> Option<&'h Route> {
    let host = request.host.to_ascii_lowercase();
    // Exact, then what begins with `*`, then what ends with it, the longest first, then `*`.
    let rank = |domain: &str| {
        if domain == "*" {
            Some((3, 0))
        } else if let Some(suffix) = domain.strip_prefix('*') {
            (host.ends_with(suffix) && host.len() > suffix.len())
                .then_some((1, usize::MAX - domain.len()))
        } else if let Some(prefix) = domain.strip_suffix('*') {
            (host.starts_with(prefix) && host.len() > prefix.len())
                .then_some((2, usize::MAX - domain.len()))
        } else {
            (host == domain).then_some((0, 0))
        }
    };
    let best = hosts
        .iter()
        .flat_map(|host| host.domains.iter().map(move |domain| (domain, host)))
        .filter_map(|(domain, host)| Some((rank(domain)?, host)))
        .min_by_key(|(rank, _)| *rank)?;
    best.1
        .routes
        .iter()
        .find(|route| matches(route.r#match.as_ref().unwrap(), request))
}

fn matches(wanted: &RouteMatch, request: &Request) -> bool {
    let path = request.path();
    let ignore_case = wanted
        .case_sensitive
        .as_ref()
        .is_some_and(|sensitive| !sensitive.value);
    let fold = |text: &str| {
        if ignore_case {
            text.to_ascii_lowercase()
        } else {
            text.to_owned()
        }
    };
    let path_agrees = match wanted.path_specifier.as_ref().unwrap() {
        PathSpecifier::Prefix(prefix) => fold(path).starts_with(&fold(prefix)),
        PathSpecifier::Path(wanted) => fold(path) == fold(wanted),
        PathSpecifier::PathSeparatedPrefix(prefix) => (fold(path).strip_prefix(&fold(prefix)))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        PathSpecifier::SafeRegex(regex) => whole(&regex.regex, path),
        other => panic!("{other:?}"),
    };
    path_agrees
        && wanted
            .headers
            .iter()
            .all(|header| header_agrees(header, request))
}

fn header_agrees(wanted: &HeaderMatcher, request: &Request) -> bool {
    let value = match wanted.name.as_str() {
        ":method" => Some(request.method.clone()),
        ":path" => Some(request.target.clone()),
        name => {
            let lines: Vec<&str> = (request.headers.iter())
                .filter(|(key, _)| key == name)
                .map(|(_, value)| value.as_str())
                .collect();
            (!lines.is_empty()).then(|| lines.join(","))
        }
    };
    let value = match value {
        Some(value) => value,
        None if wanted.treat_missing_header_as_empty => String::new(),
        None => return false,
    };
    let HeaderMatchSpecifier::StringMatch(matcher) =
        wanted.header_match_specifier.as_ref().unwrap()
    else {
        panic!("{wanted:?}");
    };
    let fold = |text: &str| match matcher.ignore_case {
        true => text.to_ascii_lowercase(),
        false => text.to_owned(),
    };
    let agrees = match matcher.match_pattern.as_ref().unwrap() {
        MatchPattern::SafeRegex(regex) => whole(&regex.regex, &value),
        MatchPattern::Contains(text) => fold(&value).contains(&fold(text)),
        other => panic!("{other:?}"),
    };
    agrees != wanted.invert_match
}

/// Returns true if RE2 matches all of `text`.
pub(super) fn whole(regex: &str, text: &str) -> bool {
    Regex::new(&format!("^(?:{regex})$"))
        .unwrap()
        .is_match(text)
}

/// The path and query that Envoy sends on.
pub(super) fn rewritten(route: &Route, target: &str) -> String {
    let Some(Action::Route(action)) = &route.action else {
        panic!("{route:?}");
    };
    let Some(rewrite) = &action.regex_rewrite else {
        return target.to_owned();
    };
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (target, String::new()),
    };
    let pattern = Regex::new(&rewrite.pattern.as_ref().unwrap().regex).unwrap();
    let by = Regex::new(r"\\(\d)").unwrap();
    let by = by.replace_all(&rewrite.substitution, "$${$1}").into_owned();
    format!("{}{query}", pattern.replace_all(path, by))
}
