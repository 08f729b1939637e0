//! The criteria that one route checks in a request.

use std::cmp::Reverse;
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use super::header::HeaderMatcher;
use super::host::{HostPattern, HostRank, RequestHost};
use super::method::MethodSet;
use super::path::DecodedPath;
use super::precedence::{MethodsRank, Precedence};
use super::query::QueryMatcher;
use super::template::PathTemplate;
use crate::head::RequestHead;

/// The criteria that one route checks in a request. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RouteMatcher(Arc<RouteMatcherParts>);

/// The parts of a [`RouteMatcher`].
#[derive(Clone, Debug)]
pub struct RouteMatcherParts {
    /// The path; [`PathTemplate::catch_all`] for a route without one.
    pub path: PathTemplate,
    /// The host patterns, one of which must match. Empty to match every host.
    pub hosts: Vec<HostPattern>,
    /// The methods that the route accepts.
    pub methods: MethodSet,
    /// Conditions that must all hold.
    pub headers: Vec<HeaderMatcher>,
    /// Conditions that must all hold.
    pub query: Vec<QueryMatcher>,
    /// True to accept CORS preflight requests too, by which browsers request permission to use one of the methods.
    pub accepts_preflight: bool,
}

impl Default for RouteMatcherParts {
    /// Takes every request.
    fn default() -> Self {
        Self {
            path: PathTemplate::catch_all(),
            hosts: Vec::new(),
            methods: MethodSet::default(),
            headers: Vec::new(),
            query: Vec::new(),
            accepts_preflight: false,
        }
    }
}

/// The first part of a request that a route does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The request's host.
    Host,
    /// The request's path.
    Path,
    /// The request's method.
    Method,
    /// A header, by its name in lower case.
    Header(String),
    /// A query parameter, by its name as the configuration has it.
    Query(String),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Path => f.write_str("path"),
            Self::Method => f.write_str("method"),
            Self::Header(name) => write!(f, "header {name}"),
            Self::Query(name) => write!(f, "query parameter {name}"),
        }
    }
}

impl RouteMatcher {
    /// Creates a matcher of the parts.
    pub fn new(parts: RouteMatcherParts) -> Self {
        Self(Arc::new(parts))
    }

    /// The path.
    pub fn path(&self) -> &PathTemplate {
        &self.0.path
    }

    /// The host patterns, one of which must match. Empty to match every host.
    pub fn hosts(&self) -> &[HostPattern] {
        &self.0.hosts
    }

    /// The methods that the route accepts.
    pub fn methods(&self) -> &MethodSet {
        &self.0.methods
    }

    /// Conditions on headers, all of which must hold.
    pub fn headers(&self) -> &[HeaderMatcher] {
        &self.0.headers
    }

    /// Conditions on query parameters, all of which must hold.
    pub fn query(&self) -> &[QueryMatcher] {
        &self.0.query
    }

    /// Returns true if CORS preflight requests for its methods are accepted too.
    pub fn accepts_preflight(&self) -> bool {
        self.0.accepts_preflight
    }

    /// Returns the precedence of the route for requests to `host`. `None` if no host pattern matches.
    pub fn precedence(&self, order: i32, host: &RequestHost<'_>) -> Option<Precedence> {
        let rank = if self.0.hosts.is_empty() {
            Some(HostRank::NO_PATTERN)
        } else {
            (self.0.hosts.iter())
                .filter(|pattern| pattern.matches(host))
                .map(HostPattern::rank)
                .min()
        };
        Some(self.precedence_with(order, rank?))
    }

    pub(super) fn precedence_with(&self, order: i32, host: HostRank) -> Precedence {
        Precedence {
            order,
            template: self.0.path.precedence(),
            methods: if self.0.methods.takes_all() {
                MethodsRank::All
            } else {
                MethodsRank::Some
            },
            host,
            headers: Reverse(self.0.headers.len()),
            query: Reverse(self.0.query.len()),
        }
    }

    /// Checks all criteria of a request, one after the other.
    ///
    /// This is the plain form of [`RouteTable::find`](super::RouteTable::find), which checks many routes at
    /// once.
    ///
    /// # Errors
    ///
    /// Returns the first mismatch, in the order of [`Mismatch`]'s variants.
    pub fn check<H: RequestHead + ?Sized>(&self, head: &H) -> Result<(), Mismatch> {
        let host = RequestHost::parse(head.authority(), head.is_https());
        if !self.0.hosts.is_empty() && !self.0.hosts.iter().any(|pattern| pattern.matches(&host)) {
            return Err(Mismatch::Host);
        }
        if !self.0.path.matches(head.path()) {
            return Err(Mismatch::Path);
        }
        if !self.takes_method(head) {
            return Err(Mismatch::Method);
        }
        self.check_rest(head)
    }

    /// Returns true if the route accepts the request's method, or the method that a preflight request names if the
    /// route accepts preflight requests.
    pub(super) fn takes_method<H: RequestHead + ?Sized>(&self, head: &H) -> bool {
        self.0.methods.takes(head.method())
            || (self.0.accepts_preflight
                && asked_method(head, |method| self.0.methods.lists(method)))
    }

    /// Returns true if a decoded path matches.
    pub(super) fn takes_path(&self, path: &DecodedPath<'_>) -> bool {
        self.0.path.accepts(path)
    }

    /// Checks headers and query.
    pub(super) fn check_rest<H: RequestHead + ?Sized>(&self, head: &H) -> Result<(), Mismatch> {
        if let Some(header) = self.0.headers.iter().find(|header| !header.matches(head)) {
            return Err(Mismatch::Header(header.name().into()));
        }
        if let Some(parameter) = self.0.query.iter().find(|query| !query.matches(head)) {
            return Err(Mismatch::Query(parameter.name().into()));
        }
        Ok(())
    }

    /// Returns true if the conditions on headers and query hold.
    pub(super) fn takes_rest<H: RequestHead + ?Sized>(&self, head: &H) -> bool {
        self.0.headers.iter().all(|header| header.matches(head))
            && self.0.query.iter().all(|query| query.matches(head))
    }

    /// Returns true if both matchers have equal criteria, so that with equal `Order` one of the routes
    /// never gets a request.
    ///
    /// Names of parameters make no difference, nor does the order of lists.
    pub fn same_criteria(&self, other: &Self) -> bool {
        self.signature() == other.signature()
    }

    /// Returns a text that is equal for two matchers exactly if they have the [same
    /// criteria](Self::same_criteria). A map with this key finds all equal matchers.
    pub fn signature(&self) -> String {
        let hosts = sorted(self.0.hosts.iter().map(HostPattern::signature));
        format!("{}\n{hosts:?}", self.signature_but_hosts())
    }

    /// Returns a text of all criteria except the hosts. Two matchers with the same text that share a host pattern,
    /// or have none, match the same requests to those hosts.
    pub(crate) fn signature_but_hosts(&self) -> String {
        let parts = &*self.0;
        let mut signature = String::new();
        parts.path.write_signature(&mut signature);
        let headers = sorted(parts.headers.iter().map(|header| format!("{header:?}")));
        let query = sorted(parts.query.iter().map(QueryMatcher::signature));
        write!(
            signature,
            "\n{}\n{}\n{headers:?}\n{query:?}",
            parts.methods,
            parts.accepts_preflight && !parts.methods.takes_all(),
        )
        .expect("a string can be written to");
        signature
    }
}

fn sorted(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut items: Vec<String> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}

/// Returns true if this is a CORS preflight request for a method that satisfies `wanted`.
fn asked_method<H: RequestHead + ?Sized>(head: &H, wanted: impl Fn(&str) -> bool) -> bool {
    if !head.method().eq_ignore_ascii_case("OPTIONS") {
        return false;
    }
    let mut has_origin = false;
    head.for_each_header("origin", &mut |_| {
        has_origin = true;
        false
    });
    let mut asked = false;
    if has_origin {
        head.for_each_header("access-control-request-method", &mut |method| {
            asked = str::from_utf8(method).is_ok_and(&wanted);
            false
        });
    }
    asked
}
