//! The cases of YARP's own tests, by their numbers in the specification.

mod headers;
mod methods;
mod queries;
mod routing;

use super::{
    HeaderMatcher, HostPattern, Lookup, MethodSet, PathTemplate, QueryMatcher, RouteMatcher,
    RouteMatcherParts, RouteTable,
};
use crate::config::{RouteHeader, RouteQueryParameter};
use crate::head::RequestHead;

/// A request as a test writes it.
#[derive(Clone, Debug)]
pub(super) struct TestHead {
    method: &'static str,
    authority: String,
    path: String,
    query: Option<String>,
    https: bool,
    headers: Vec<(&'static str, Vec<u8>)>,
}

impl TestHead {
    /// A request for `host/path?query`.
    pub(super) fn new(method: &'static str, url: &str) -> Self {
        let (rest, query) = match url.split_once('?') {
            Some((rest, query)) => (rest, Some(query.into())),
            None => (url, None),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Self {
            method,
            authority: authority.into(),
            path: path.into(),
            query,
            https: false,
            headers: Vec::new(),
        }
    }

    pub(super) fn over_tls(mut self) -> Self {
        self.https = true;
        self
    }

    pub(super) fn with(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name, value.as_ref().into()));
        self
    }
}

impl RequestHead for TestHead {
    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    fn authority(&self) -> &str {
        &self.authority
    }

    fn is_https(&self) -> bool {
        self.https
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        let lines = self.headers.iter().filter(|(other, _)| *other == name);
        for (_, line) in lines {
            if !each(line) {
                return;
            }
        }
    }
}

/// A route as a test writes it.
#[derive(Clone, Debug, Default)]
pub(super) struct TestRoute {
    order: i32,
    parts: RouteMatcherParts,
}

impl TestRoute {
    pub(super) fn path(path: &str) -> Self {
        Self::default().and_path(path)
    }

    pub(super) fn host(host: &str) -> Self {
        Self::default().and_host(host)
    }

    pub(super) fn and_path(mut self, path: &str) -> Self {
        self.parts.path = PathTemplate::parse(path).unwrap();
        self
    }

    pub(super) fn and_host(mut self, host: &str) -> Self {
        self.parts.hosts.push(HostPattern::parse(host).unwrap());
        self
    }

    pub(super) fn methods(mut self, methods: &[&str]) -> Self {
        self.parts.methods = MethodSet::parse(methods).unwrap();
        self
    }

    pub(super) fn header(self, name: &str, value: &str) -> Self {
        let config = RouteHeader {
            name: name.into(),
            values: Some(vec![value.into()]),
            ..RouteHeader::default()
        };
        self.header_of(&config)
    }

    pub(super) fn header_of(mut self, config: &RouteHeader) -> Self {
        let matcher = HeaderMatcher::new(config).unwrap();
        self.parts.headers.push(matcher);
        self
    }

    pub(super) fn query(mut self, name: &str, value: &str) -> Self {
        let config = RouteQueryParameter {
            name: name.into(),
            values: Some(vec![value.into()]),
            ..RouteQueryParameter::default()
        };
        self.parts.query.push(QueryMatcher::new(&config).unwrap());
        self
    }

    pub(super) fn preflight(mut self) -> Self {
        self.parts.accepts_preflight = true;
        self
    }

    pub(super) fn order(mut self, order: i32) -> Self {
        self.order = order;
        self
    }

    pub(super) fn matcher(&self) -> RouteMatcher {
        RouteMatcher::new(self.parts.clone())
    }
}

/// Finds the route that takes a request: its position, `404` or `405 GET, POST`.
fn find(routes: &[TestRoute], head: &TestHead) -> String {
    let routes: Vec<(i32, RouteMatcher)> = routes
        .iter()
        .map(|route| (route.order, route.matcher()))
        .collect();
    match RouteTable::build(&routes).find(&routes, head) {
        Lookup::Matched(index) => format!("{}", index.0),
        Lookup::MethodNotAllowed(allow) => format!("405 {allow}"),
        Lookup::NotFound => "404".into(),
    }
}

fn get(url: &str) -> TestHead {
    TestHead::new("GET", url)
}

/// Routes and requests; the number of the route that is expected, or the status.
fn assert_finds(case: &str, routes: &[TestRoute], expected: &[(TestHead, &str)]) {
    for (head, expected) in expected {
        assert_eq!(find(routes, head), *expected, "{case}: {head:?}");
    }
}
