//! A table of many routes, which finds the one for a request.
//!
//! # How
//!
//! Every route is entered once for each of its host patterns (once, if it has none). Sorted by
//! [`Precedence`] and then by position in the configuration, the entries get ranks: of all entries whose
//! criteria a request satisfies, the one with the smallest rank wins.
//!
//! Each distinct host pattern has a trie of its own over the segments of the paths, and so have the routes
//! without hosts. A request's host leads to the few tries whose patterns match. In each, the segments of
//! the path lead to the nodes where templates end; an optional end makes a template end at several nodes.
//! Since a literal, a parameter and a catch-all may all match the same segment, the search follows each
//! that exists. It leaves out every subtrie whose best rank is not better than what has been found, in
//! whichever trie that was.
//!
//! Conditions that tries cannot express (constraints, segments of several parts, methods, headers, the
//! query) are checked only for the entries at those nodes, in the order of their ranks.
//!
//! # Bounds
//!
//! A lookup visits each node of a trie at most once, and no deeper than the templates go; the number of
//! tries is limited by the different lengths of wildcards in the configuration. A lookup allocates only for
//! a path with escapes, a host that is not ASCII, and the result [`Lookup::MethodNotAllowed`].

mod build;
mod search;
#[cfg(test)]
mod tests;
mod text_table;

use std::fmt;

use self::search::{Allowed, Best, Request};
use self::text_table::TextTable;
use super::host::RequestHost;
use super::matcher::RouteMatcher;
use super::method::MethodSet;
use super::path;
use crate::compiled::{Route, RouteIndex};
use crate::head::RequestHead;

#[cfg(doc)]
use super::Precedence;

/// An item of a [`RouteTable`]: something that matches requests.
pub trait Candidate {
    /// Smaller is tried first, before everything else.
    fn order(&self) -> i32;

    /// The match criteria.
    fn matcher(&self) -> &RouteMatcher;
}

impl Candidate for Route {
    fn order(&self) -> i32 {
        self.order
    }

    fn matcher(&self) -> &RouteMatcher {
        &self.matcher
    }
}

/// An order and a matcher.
impl Candidate for (i32, RouteMatcher) {
    fn order(&self) -> i32 {
        self.0
    }

    fn matcher(&self) -> &RouteMatcher {
        &self.1
    }
}

/// The result of [`RouteTable::find`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The route that takes the request.
    Matched(RouteIndex),
    /// Some routes would take the request if its method were one of these. There is no route for its host
    /// and path that takes all methods but rejects the request for another reason.
    MethodNotAllowed(MethodSet),
    /// No route matches the request.
    NotFound,
}

/// An index over routes, to find the one that takes a request.
///
/// It does not hold the routes: it is built from a list, and looks into that list again when it finds.
///
/// ```
/// use proxy_model::RequestHead;
/// use proxy_model::compiled::RouteIndex;
/// use proxy_model::matching::{Lookup, PathTemplate, RouteMatcher, RouteMatcherParts, RouteTable};
///
/// struct Get(&'static str);
///
/// impl RequestHead for Get {
///     fn method(&self) -> &str { "GET" }
///     fn path(&self) -> &str { self.0 }
///     fn query(&self) -> Option<&str> { None }
///     fn authority(&self) -> &str { "example.com" }
///     fn is_https(&self) -> bool { true }
///     fn for_each_header(&self, _name: &str, _each: &mut dyn FnMut(&[u8]) -> bool) {}
/// }
///
/// let route = |path: &str| {
///     let path = PathTemplate::parse(path)?;
///     let parts = RouteMatcherParts { path, ..RouteMatcherParts::default() };
///     Ok::<_, proxy_model::matching::TemplateError>((0, RouteMatcher::new(parts)))
/// };
/// let routes = [route("/{**rest}")?, route("/users/{id:int}")?];
/// let table = RouteTable::build(&routes);
/// assert_eq!(table.find(&routes, &Get("/users/7")), Lookup::Matched(RouteIndex(1)));
/// assert_eq!(table.find(&routes, &Get("/users/me")), Lookup::Matched(RouteIndex(0)));
/// # Ok::<(), proxy_model::matching::TemplateError>(())
/// ```
#[derive(Clone)]
pub struct RouteTable {
    nodes: Box<[TrieNode]>,
    /// The entries of all nodes: those that end at a node together, then those that catch all from there on.
    entries: Box<[Entry]>,
    /// The next node, by a node and a literal segment.
    literals: TextTable,
    /// The root of a trie, by a [scope](host_scope) and a name.
    hosts: TextTable,
    /// The root for requests to any host.
    any_host: Option<NodeIndex>,
    /// Roots for requests to any host on a port, by port.
    any_host_on_port: Box<[(u16, NodeIndex)]>,
    /// The numbers of labels that suffixes in wildcards have, as bits; longer ones share the last bit.
    suffix_labels: u128,
    /// True if a name has a pattern with a port.
    has_ports: bool,
    /// True if any pattern has a host or a port.
    has_hosts: bool,
    /// Number of segments on the way to the deepest node.
    depth: usize,
}

type NodeIndex = u32;

/// A node of a trie, reached by a number of segments.
#[derive(Clone, Debug)]
struct TrieNode {
    /// The best rank in the subtrie that begins here.
    best: u32,
    /// The child for any segment that is not empty.
    any: Option<NodeIndex>,
    /// True if there are children for literals.
    has_literals: bool,
    /// The range of entries whose templates end at this node: start, and end (exclusive).
    ends: (u32, u32),
    /// The range of entries whose templates match any rest of the path from here.
    rests: (u32, u32),
}

/// A route at a node, with the criteria that can be checked without reading the route.
#[derive(Clone, Copy, Debug)]
struct Entry {
    rank: u32,
    route: u32,
    /// One bit for each standard method that it takes.
    methods: u8,
    /// True if the entry may accept a method that is not among the bits.
    has_other_methods: bool,
    /// True if the template has conditions that the trie does not express.
    has_path_conditions: bool,
    /// True if there are conditions on headers or the query.
    has_conditions: bool,
}

/// Returns the scope of a name in the table of hosts: a whole name or the suffix of a wildcard, on one port
/// or on any.
fn host_scope(is_suffix: bool, port: Option<u16>) -> u32 {
    let kind = u32::from(is_suffix) << 17;
    match port {
        Some(port) => kind | 1 << 16 | u32::from(port),
        None => kind,
    }
}

/// The bit of suffixes with this many labels.
fn label_bit(labels: usize) -> u128 {
    1 << labels.min(127)
}

impl RouteTable {
    /// Builds the index over `routes`, whose positions are their [`RouteIndex`].
    pub fn build<C: Candidate>(routes: &[C]) -> Self {
        build::build(routes)
    }

    /// Finds the route that takes a request. `routes` is the list that the table was built from.
    pub fn find<C: Candidate, H: RequestHead + ?Sized>(&self, routes: &[C], head: &H) -> Lookup {
        if let Some(path) = head.plain_path() {
            let request = Request::new(self, routes, head, None);
            return self.find_along(&request, path::relevant_bytes(path));
        }
        let encoded = path::relevant(head.path());
        let text = path::decode(encoded);
        let request = Request::new(self, routes, head, Some((encoded, &text)));
        self.find_along(&request, text.as_bytes())
    }

    /// Finds the route along a decoded path.
    #[inline]
    fn find_along<C: Candidate, H: RequestHead + ?Sized>(
        &self,
        request: &Request<'_, C, H>,
        path: &[u8],
    ) -> Lookup {
        let mut best = Best::new(request);
        let head = request.head;
        self.for_each_root(head, &mut |root| request.walk(root, path, &mut best));
        if let Some(route) = best.route() {
            return Lookup::Matched(RouteIndex(route));
        }
        if !best.rejected_method() {
            return Lookup::NotFound;
        }
        let mut allowed = Allowed::new(request);
        self.for_each_root(head, &mut |root| request.walk(root, path, &mut allowed));
        match allowed.methods() {
            Some(methods) => Lookup::MethodNotAllowed(methods),
            None => Lookup::NotFound,
        }
    }

    fn entries(&self, (start, end): (u32, u32)) -> &[Entry] {
        &self.entries[start as usize..end as usize]
    }

    /// Shows `each` the root of every trie whose host pattern matches.
    #[inline]
    fn for_each_root<H: RequestHead + ?Sized>(&self, head: &H, each: &mut impl FnMut(NodeIndex)) {
        // Many configurations name no hosts: then the request's host need not be read.
        if self.has_hosts {
            let host = RequestHost::parse(head.authority(), head.is_https());
            self.for_each_root_of_host(&host, each);
        }
        if let Some(root) = self.any_host {
            each(root);
        }
    }

    /// Calls `each` with the roots of the tries for the host of the request that are for some hosts or
    /// ports only.
    fn for_each_root_of_host(&self, host: &RequestHost<'_>, each: &mut impl FnMut(NodeIndex)) {
        let port = host.port().filter(|_| self.has_ports);
        let mut look_up = |is_suffix, name: &str| {
            if let Some(port) = port
                && let Some(root) = self
                    .hosts
                    .get(host_scope(is_suffix, Some(port)), name.as_bytes())
            {
                each(root);
            }
            if let Some(root) = self.hosts.get(host_scope(is_suffix, None), name.as_bytes()) {
                each(root);
            }
        };
        if host.may_be_known() && !self.hosts.is_empty() {
            look_up(false, host.name());
        }
        if self.suffix_labels != 0 {
            for (labels, suffix) in host.suffixes() {
                if self.suffix_labels & label_bit(labels) != 0 {
                    look_up(true, suffix);
                }
            }
        }
        if let Some(port) = host.port()
            && let Ok(position) = self.any_host_on_port.binary_search_by_key(&port, |on| on.0)
        {
            each(self.any_host_on_port[position].1);
        }
    }
}

impl fmt::Debug for RouteTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteTable")
            .field("entries", &self.entries.len())
            .field("nodes", &self.nodes.len())
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}
