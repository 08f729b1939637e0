//! One request's way through the tries.

use super::{Candidate, Entry, NodeIndex, RouteTable};
use crate::head::RequestHead;
use crate::matching::MethodSet;
use crate::matching::path::DecodedPath;

/// A request, and what has been worked out about it.
pub(super) struct Request<'a, C, H: ?Sized> {
    pub(super) table: &'a RouteTable,
    pub(super) routes: &'a [C],
    pub(super) head: &'a H,
    pub(super) path: &'a DecodedPath<'a>,
    /// The bit of the method, if it is a standard one.
    pub(super) method: u8,
}

/// What happens at the nodes that a request leads to.
pub(super) trait Visitor {
    /// Entries of this rank or a greater one are of no interest.
    fn bound(&self) -> u32;

    /// Looks at entries that the trie allows, sorted by rank.
    fn visit(&mut self, entries: &[Entry]);
}

impl<C: Candidate, H: RequestHead + ?Sized> Request<'_, C, H> {
    /// Visits the entries of a node that `depth` segments lead to, and of every node after it.
    pub(super) fn walk(&self, index: NodeIndex, depth: usize, visitor: &mut impl Visitor) {
        let node = &self.table.nodes[index as usize];
        if node.best >= visitor.bound() {
            return;
        }
        if depth == self.path.count() {
            visitor.visit(self.table.entries(node.ends));
        } else {
            let segment = self.path.segment(depth);
            // Literals first: what they lead to is mostly better, which spares the rest.
            if node.has_literals
                && let Some(next) = self.table.literals.get(index, segment)
            {
                self.walk(next, depth + 1, visitor);
            }
            if let Some(next) = node.any
                && !segment.is_empty()
            {
                self.walk(next, depth + 1, visitor);
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
        !entry.has_path_conditions || self.route(entry).matcher().takes_path(self.path)
    }

    fn takes_rest(&self, entry: &Entry) -> bool {
        !entry.has_conditions || self.route(entry).matcher().takes_rest(self.head)
    }
}

/// Finds the entry of the smallest rank that takes the request.
pub(super) struct Best<'r, C, H: ?Sized> {
    request: &'r Request<'r, C, H>,
    found: Option<Entry>,
    refused_method: bool,
}

impl<'r, C: Candidate, H: RequestHead + ?Sized> Best<'r, C, H> {
    pub(super) fn new(request: &'r Request<'r, C, H>) -> Self {
        Self {
            request,
            found: None,
            refused_method: false,
        }
    }

    /// The position of the route that was found.
    pub(super) fn route(&self) -> Option<u32> {
        self.found.map(|entry| entry.route)
    }

    /// Whether an entry was passed over because of its methods.
    pub(super) fn refused_method(&self) -> bool {
        self.refused_method
    }
}

impl<C: Candidate, H: RequestHead + ?Sized> Visitor for Best<'_, C, H> {
    fn bound(&self) -> u32 {
        self.found.map_or(u32::MAX, |entry| entry.rank)
    }

    fn visit(&mut self, entries: &[Entry]) {
        let bound = self.bound();
        for entry in entries.iter().take_while(|entry| entry.rank < bound) {
            if !self.request.takes_method(entry) {
                self.refused_method = true;
            } else if self.request.takes_path(entry) && self.request.takes_rest(entry) {
                self.found = Some(*entry);
                return;
            }
        }
    }
}

/// Collects the methods that would have been taken, for a request that no entry takes.
pub(super) struct Allowed<'r, C, H: ?Sized> {
    request: &'r Request<'r, C, H>,
    methods: MethodSet,
    all: bool,
}

impl<'r, C: Candidate, H: RequestHead + ?Sized> Allowed<'r, C, H> {
    pub(super) fn new(request: &'r Request<'r, C, H>) -> Self {
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

impl<C: Candidate, H: RequestHead + ?Sized> Visitor for Allowed<'_, C, H> {
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
