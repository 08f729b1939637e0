//! Cycles of files and folders.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use crate::module_direction::tree::{Use, folder};

/// The groups of more than one name that reach each other.
fn knots<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let graph: DiGraphMap<&str, ()> = pairs.collect();
    let groups = tarjan_scc(&graph).into_iter();
    let groups = groups.filter(|group| group.len() > 1);
    groups.map(|group| group.into_iter().collect()).collect()
}

/// Top-level modules that depend on each other.
pub(crate) fn across_folders(uses: &BTreeSet<Use>) -> Vec<String> {
    let ends = |one: &Use| (folder(&one.from).to_owned(), folder(&one.to).to_owned());
    let pairs: Vec<_> = uses
        .iter()
        .map(ends)
        .filter(|(from, to)| from != to)
        .collect();
    let knots = knots(pairs.iter().map(|(from, to)| (from.as_str(), to.as_str())));
    let describe = |knot: &BTreeSet<&str>| {
        let names: Vec<_> = knot.iter().copied().collect();
        let among = |one: &&Use| {
            let (from, to) = ends(one);
            from != to && knot.contains(from.as_str()) && knot.contains(to.as_str())
        };
        format!(
            "{} folders need one another: {}{}",
            names.len(),
            names.join(", "),
            edges(uses.iter().filter(among))
        )
    };
    knots.iter().map(describe).collect()
}

/// Files that depend on each other, in groups of more than `limit`.
pub(crate) fn among_files(uses: &BTreeSet<Use>, limit: usize) -> Vec<String> {
    let knots = knots(uses.iter().map(|one| (one.from.as_str(), one.to.as_str())));
    let large = knots.iter().filter(|knot| knot.len() > limit);
    large
        .map(|knot| {
            let among =
                |one: &&Use| knot.contains(one.from.as_str()) && knot.contains(one.to.as_str());
            format!(
                "{} files need one another; {limit} is the limit{}",
                knot.len(),
                edges(uses.iter().filter(among))
            )
        })
        .collect()
}

/// The edges, grouped by pair of folders, the fewest first: cutting there is cheapest.
fn edges<'a>(uses: impl Iterator<Item = &'a Use>) -> String {
    let mut by_pair: BTreeMap<_, Vec<&Use>> = BTreeMap::new();
    for one in uses {
        let pair = (folder(&one.from), folder(&one.to));
        by_pair.entry(pair).or_default().push(one);
    }
    let mut pairs: Vec<_> = by_pair.into_values().collect();
    pairs.sort_by_key(Vec::len);
    let all = pairs.into_iter().flatten();
    all.map(|Use { from, to, path }| format!("\n  {from} names `{path}` of {to}"))
        .collect()
}
