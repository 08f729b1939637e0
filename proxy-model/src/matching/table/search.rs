//! One request's way through the tries.

use std::cell::OnceCell;

use super::{Candidate, Entry, NodeIndex, RouteTable};
use crate::head::RequestHead;
use crate::matching::path::{self, DecodedPath};
use crate::matching::{MethodSet, method};

/// A request, and the values already computed from it.
pub(super) struct Request<'a, C, H: ?Sized> {
    table: &'a RouteTable,
    routes: &'a [C],
    pub(super) head: &'a H,
    /// The relevant part of the path, encoded and decoded, if that is not the same.
    path: Option<(&'a str, &'a str)>,
    /// The path's segments, for routes that look at more than the tries do.
    segments: OnceCell<DecodedPath<'a>>,
    /// The bit of the method, if it is a standard one.
    method: u8,
}

/// The action at each node that a request leads to.
pub(super) trait Visitor {
    /// Entries of this rank or a greater one are of no interest.
    fn bound(&self) -> u32;

    /// Visits entries that the trie allows, sorted by rank.
    fn visit(&mut self, entries: &[Entry]);
}

impl<'a, C: Candidate, H: RequestHead + ?Sized> Request<'a, C, H> {
    /// Creates the request of a search. `path` is the relevant part of the path, encoded and decoded;
    /// `None` if there is nothing to decode.
    #[inline]
    pub(super) fn new(
        table: &'a RouteTable,
        routes: &'a [C],
        head: &'a H,
        path: Option<(&'a str, &'a str)>,
    ) -> Self {
        Self {
            table,
            routes,
            head,
            path,
            segments: OnceCell::new(),
            method: method::standard_bit(head.method()),
        }
    }

    /// Visits the entries of a node from which `path` is left, and of every node after it.
    pub(super) fn walk(&self, index: NodeIndex, path: &[u8], visitor: &mut impl Visitor) {
        let node = &self.table.nodes[index as usize];
        if node.best >= visitor.bound() {
            return;
        }
        if path.is_empty() {
            visitor.visit(self.table.entries(node.ends));
        } else if node.has_literals || node.any.is_some() {
            let (segment, path) = path::first_segment(path);
            // Literals first: what they lead to is mostly better, which spares the rest.
            if node.has_literals
                && let Some(next) = self.table.literals.get(index, segment)
            {
                self.walk(next, path, visitor);
            }
            if let Some(next) = node.any
                && !segment.is_empty()
            {
                self.walk(next, path, visitor);
            }
        }
        visitor.visit(self.table.entries(node.rests));
    }

    fn route(&self, entry: &Entry) -> &C {
        &self.routes[entry.route as usize]
    }

    fn takes_method(&self, entry: &Entry) -> bool {
        entry.methods & self.method != 0
            || (entry.has_other_methods && self.route(entry).matcher().takes_method(self.head))
    }

    fn takes_path(&self, entry: &Entry) -> bool {
        !entry.has_path_conditions || self.route(entry).matcher().takes_path(self.segments())
    }

    #[cold]
    fn segments(&self) -> &DecodedPath<'a> {
        let (encoded, text) = self.path.unwrap_or_else(|| {
            let path = path::relevant(self.head.path());
            (path, path)
        });
        // One segment more than the deepest node has shows that the path goes on.
        let cut = || DecodedPath::new(encoded, text, self.table.depth + 1);
        self.segments.get_or_init(cut)
    }

    fn takes_rest(&self, entry: &Entry) -> bool {
        !entry.has_conditions || self.route(entry).matcher().takes_rest(self.head)
    }
}

/// Finds the entry of the smallest rank that takes the request.
pub(super) struct Best<'r, 'a, C, H: ?Sized> {
    request: &'r Request<'a, C, H>,
    found: Option<Entry>,
    rejected_method: bool,
}

impl<'r, 'a, C: Candidate, H: RequestHead + ?Sized> Best<'r, 'a, C, H> {
    pub(super) fn new(request: &'r Request<'a, C, H>) -> Self {
        Self {
            request,
            found: None,
            rejected_method: false,
        }
    }

    /// The position of the route that was found.
    pub(super) fn route(&self) -> Option<u32> {
        self.found.map(|entry| entry.route)
    }

    /// Returns true if an entry was skipped because of its methods.
    pub(super) fn rejected_method(&self) -> bool {
        self.rejected_method
    }
}

impl<C: Candidate, H: RequestHead + ?Sized> Visitor for Best<'_, '_, C, H> {
    fn bound(&self) -> u32 {
        self.found.map_or(u32::MAX, |entry| entry.rank)
    }

    fn visit(&mut self, entries: &[Entry]) {
        let bound = self.bound();
        for entry in entries.iter().take_while(|entry| entry.rank < bound) {
            if !self.request.takes_method(entry) {
                self.rejected_method = true;
            } else if self.request.takes_path(entry) && self.request.takes_rest(entry) {
                self.found = Some(*entry);
                return;
            }
        }
    }
}

/// Collects the methods that would have been taken, for a request that no entry takes.
pub(super) struct Allowed<'r, 'a, C, H: ?Sized> {
    request: &'r Request<'a, C, H>,
    methods: MethodSet,
    all: bool,
}

impl<'r, 'a, C: Candidate, H: RequestHead + ?Sized> Allowed<'r, 'a, C, H> {
    pub(super) fn new(request: &'r Request<'a, C, H>) -> Self {
        Self {
            request,
            methods: MethodSet::default(),
            all: false,
        }
    }

    /// The methods, if the method is all that was wrong.
    pub(super) fn methods(self) -> Option<MethodSet> {
        // Where some route takes all methods, no other method would help.
        (!self.all && !self.methods.takes_all()).then_some(self.methods)
    }
}

impl<C: Candidate, H: RequestHead + ?Sized> Visitor for Allowed<'_, '_, C, H> {
    fn bound(&self) -> u32 {
        u32::MAX
    }

    fn visit(&mut self, entries: &[Entry]) {
        for entry in entries {
            if !self.request.takes_path(entry) {
                continue;
            }
            let methods = self.request.route(entry).matcher().methods();
            if methods.takes_all() {
                self.all = true;
            } else if self.request.takes_rest(entry) {
                self.methods.extend(methods);
            }
        }
    }
}
