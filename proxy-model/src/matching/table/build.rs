//! Building the tries.

use std::collections::HashMap;

use super::text_table::TextTable;
use super::{Candidate, Entry, NodeIndex, RouteTable, TrieNode, host_scope, label_bit};
use crate::matching::RouteMatcher;
use crate::matching::host::{HostPattern, HostRank, Name};
use crate::matching::precedence::Precedence;
use crate::matching::template::Shape;

/// A node that still grows.
struct Growing {
    best: u32,
    any: Option<NodeIndex>,
    has_literals: bool,
    ends: Vec<Entry>,
    rests: Vec<Entry>,
}

#[derive(Default)]
struct Builder<'a> {
    nodes: Vec<Growing>,
    literals: HashMap<(NodeIndex, &'a str), NodeIndex>,
    roots: HashMap<(Option<&'a Name>, Option<u16>), NodeIndex>,
    depth: usize,
}

/// A route under one of its host patterns.
struct Placement<'a> {
    precedence: Precedence,
    route: u32,
    matcher: &'a RouteMatcher,
    host: Option<&'a HostPattern>,
}

pub(super) fn build<C: Candidate>(routes: &[C]) -> RouteTable {
    let mut placements: Vec<Placement<'_>> = (routes.iter().enumerate())
        .flat_map(|(route, candidate)| placements(number(route), candidate))
        .collect();
    placements.sort_unstable_by_key(|placement| (placement.precedence, placement.route));
    let mut builder = Builder::default();
    for (rank, placement) in placements.iter().enumerate() {
        builder.insert(number(rank), placement);
    }
    builder.finish()
}

fn placements<C: Candidate>(route: u32, candidate: &C) -> impl Iterator<Item = Placement<'_>> {
    let matcher = candidate.matcher();
    let hosts = matcher.hosts();
    let no_host = hosts.is_empty().then_some(None);
    no_host
        .into_iter()
        .chain(hosts.iter().map(Some))
        .map(move |host| Placement {
            precedence: matcher.precedence_with(
                candidate.order(),
                host.map_or(HostRank::NO_PATTERN, HostPattern::rank),
            ),
            route,
            matcher,
            host,
        })
}

fn number(position: usize) -> u32 {
    u32::try_from(position).expect("2³² routes or nodes are more than a configuration holds")
}

impl<'a> Builder<'a> {
    fn insert(&mut self, rank: u32, placement: &Placement<'a>) {
        let matcher = placement.matcher;
        let entry = Entry {
            rank,
            route: placement.route,
            methods: matcher.methods().standard_bits(),
            has_other_methods: matcher.methods().takes_custom() || matcher.accepts_preflight(),
            has_path_conditions: matcher.path().is_conditional(),
            has_conditions: !matcher.headers().is_empty() || !matcher.query().is_empty(),
        };
        let mut node = self.root(placement.host);
        for (depth, shape) in matcher.path().shape().enumerate() {
            self.reach(node, entry, depth);
            if shape == Shape::Rest {
                self.nodes[node as usize].rests.push(entry);
                return;
            }
            if depth >= matcher.path().required() {
                // Nothing required follows, so the path may end here.
                self.nodes[node as usize].ends.push(entry);
            }
            node = match shape {
                Shape::Literal(literal) => self.literal(node, literal),
                Shape::Any | Shape::Rest => self.any(node),
            };
        }
        self.reach(node, entry, matcher.path().shape().len());
        self.nodes[node as usize].ends.push(entry);
    }

    fn reach(&mut self, node: NodeIndex, entry: Entry, depth: usize) {
        let node = &mut self.nodes[node as usize];
        node.best = node.best.min(entry.rank);
        self.depth = self.depth.max(depth);
    }

    fn root(&mut self, host: Option<&'a HostPattern>) -> NodeIndex {
        let key = match host.map(|host| (host.name(), host.port())) {
            // `*` is ranked before no pattern, but takes the same requests.
            None | Some((Name::Any, None)) => (None, None),
            Some((Name::Any, port)) => (None, port),
            Some((name, port)) => (Some(name), port),
        };
        let nodes = &mut self.nodes;
        *self.roots.entry(key).or_insert_with(|| grow(nodes))
    }

    fn literal(&mut self, node: NodeIndex, literal: &'a str) -> NodeIndex {
        let nodes = &mut self.nodes;
        nodes[node as usize].has_literals = true;
        *(self.literals.entry((node, literal))).or_insert_with(|| grow(nodes))
    }

    fn any(&mut self, node: NodeIndex) -> NodeIndex {
        if let Some(next) = self.nodes[node as usize].any {
            return next;
        }
        let next = grow(&mut self.nodes);
        self.nodes[node as usize].any = Some(next);
        next
    }

    fn finish(self) -> RouteTable {
        let mut entries = Vec::new();
        // The entries of all nodes are in one list, so that a search reads memory that lies together.
        let mut store = |some: &[Entry]| {
            let start = number(entries.len());
            entries.extend_from_slice(some);
            (start, number(entries.len()))
        };
        let nodes = (self.nodes.iter())
            .map(|node| TrieNode {
                best: node.best,
                any: node.any,
                has_literals: node.has_literals,
                ends: store(&node.ends),
                rests: store(&node.rests),
            })
            .collect();
        let literals = (self.literals.iter()).map(|((node, text), next)| (*node, *text, *next));
        let mut any_host_on_port: Vec<(u16, NodeIndex)> = (self.roots.iter())
            .filter_map(|((name, port), root)| Some((port.filter(|_| name.is_none())?, *root)))
            .collect();
        any_host_on_port.sort_unstable();
        let named: Vec<(u32, &str, NodeIndex)> = (self.roots.iter())
            .filter_map(|((name, port), root)| {
                let (is_suffix, text) = match (*name)? {
                    Name::Exact(text) => (false, text),
                    Name::Suffix(text) => (true, text),
                    Name::Any => return None,
                };
                Some((host_scope(is_suffix, *port), &**text, *root))
            })
            .collect();
        let suffix_labels = (self.roots.keys())
            .filter_map(|(name, _)| match (*name)? {
                Name::Suffix(text) => Some(label_bit(text.split('.').count())),
                Name::Exact(_) | Name::Any => None,
            })
            .fold(0, |all, bit| all | bit);
        RouteTable {
            nodes,
            entries: entries.into(),
            literals: TextTable::build(literals),
            has_ports: self
                .roots
                .keys()
                .any(|(name, port)| name.is_some() && port.is_some()),
            has_hosts: self.roots.keys().any(|key| *key != (None, None)),
            hosts: TextTable::build(named.into_iter()),
            any_host: self.roots.get(&(None, None)).copied(),
            any_host_on_port: any_host_on_port.into(),
            suffix_labels,
            depth: self.depth,
        }
    }
}

/// Adds a node.
fn grow(nodes: &mut Vec<Growing>) -> NodeIndex {
    let index = number(nodes.len());
    nodes.push(Growing {
        best: u32::MAX,
        any: None,
        has_literals: false,
        ends: Vec::new(),
        rests: Vec::new(),
    });
    index
}
