//! Instructions by function, and heap blocks, as recorded by callgrind.

use std::collections::{BTreeMap, HashMap};

/// The allocation functions. A call of one by another inside of the C library is no second block.
const ALLOCATORS: [&str; 5] = [
    "malloc",
    "calloc",
    "realloc",
    "aligned_alloc",
    "posix_memalign",
];

/// Parts of function names that only the forwarding thread uses. System calls cannot be attributed
/// this way: the C library does not make them.
const SERVER: [&str; 3] = [
    "proxy_runtime::server::",
    "proxy_runtime::forward::",
    "h2_alone::",
];

/// The execution profile of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Profile {
    /// Instructions of each function, without its callees.
    pub(super) costs: BTreeMap<String, f64>,
    /// Number of allocated heap blocks.
    pub(super) blocks: f64,
}

impl Profile {
    /// Reads a file of callgrind, with instructions as its first event.
    ///
    /// A line is a position with its cost; the line after `calls=` is the cost of the callee, which
    /// is counted there already. A name is written once after a number in parentheses, and later as
    /// the number alone.
    pub(super) fn parse(file: &str) -> Self {
        let mut names: HashMap<&str, String> = HashMap::new();
        let mut profile = Self::default();
        let (mut current, mut callee) = (String::new(), String::new());
        let mut of_callee = false;
        for line in file.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                current = resolve(name, &mut names);
            } else if let Some(name) = line.strip_prefix("cfn=") {
                callee = resolve(name, &mut names);
            } else if let Some(calls) = line.strip_prefix("calls=") {
                of_callee = true;
                let from_outside = !ALLOCATORS.contains(&current.as_str());
                if from_outside && ALLOCATORS.contains(&callee.as_str()) {
                    profile.blocks += first_number(calls).unwrap_or_default();
                }
            } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
                let cost = line.split_once(' ');
                let cost = cost.and_then(|(_position, cost)| first_number(cost));
                if !std::mem::take(&mut of_callee)
                    && let Some(cost) = cost
                {
                    *profile.costs.entry(current.clone()).or_default() += cost;
                }
            }
        }
        profile
    }

    /// Instructions of the server's own functions, to find the serving thread.
    pub(super) fn of_server(&self) -> f64 {
        let functions = self.costs.iter();
        let of_server = functions.filter(|(name, _)| SERVER.iter().any(|of| name.contains(of)));
        of_server.map(|(_, cost)| cost).sum()
    }

    pub(super) fn total(&self) -> f64 {
        self.costs.values().sum()
    }

    /// The cost per request.
    pub(super) fn per_request(mut self, requests: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let requests = requests as f64;
        for cost in self.costs.values_mut() {
            *cost /= requests;
        }
        self.blocks /= requests;
        self
    }

    /// The most expensive functions in order: those above a `share` of the total.
    pub(super) fn above(&self, share: f64) -> Vec<(&str, f64)> {
        let least = self.total() * share;
        let mut most: Vec<_> = self
            .costs
            .iter()
            .filter(|(_, cost)| **cost >= least)
            .map(|(name, cost)| (name.as_str(), *cost))
            .collect();
        most.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        most
    }

    /// The changes since `before`, the greatest growth first. Functions that `before` does not have
    /// are new, or were too small to be recorded.
    pub(super) fn growth(&self, before: &BTreeMap<String, f64>) -> Vec<(String, f64)> {
        let gone = before.keys().filter(|name| !self.costs.contains_key(*name));
        let mut changes: Vec<_> = self
            .costs
            .keys()
            .chain(gone)
            .map(|name| {
                let [now, then] =
                    [&self.costs, before].map(|costs| costs.get(name).copied().unwrap_or_default());
                (name.clone(), now - then)
            })
            .collect();
        changes.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        changes
    }
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Resolves `(12) name` or `(12)`, and remembers the name.
fn resolve<'a>(text: &'a str, names: &mut HashMap<&'a str, String>) -> String {
    let Some((number, name)) = text.split_once(')') else {
        return plain(text);
    };
    let name = name.trim();
    if name.is_empty() {
        return names.get(number).cloned().unwrap_or_default();
    }
    let name = plain(name);
    names.insert(number, name.clone());
    name
}

/// A name without parts that differ between builds: hashes of the function and of crates, and the
/// suffix that callgrind appends to recursive functions.
fn plain(name: &str) -> String {
    let name = match name.rsplit_once('\'') {
        Some((before, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => before,
        _ => name,
    };
    let name = match name.rsplit_once("::h") {
        Some((before, hash)) if is_hash(hash) => before,
        _ => name,
    };
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        rest = match after.split_once(']') {
            Some((hash, after)) if is_hash(hash) => after,
            _ => {
                plain.push('[');
                after
            }
        };
    }
    plain + rest
}

fn is_hash(text: &str) -> bool {
    (14..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# callgrind format
version: 1
events: Ir

ob=(1) /usr/bin/gateway
fl=(1) ???
fn=(1) gateway::serve::h0123456789abcdef
0 100
+4 20
cfn=(2) core::fmt::write'2
calls=3 0
0 900
cfn=(4) realloc
calls=2 0
0 50
* 5
fn=(2)
0 600
-8 300
fn=(3) memcpy
0 75
fn=(4)
0 20
cfn=(5) malloc
calls=2 0
0 30
fn=(5)
0 30
totals: 1150
";

    fn costs(costs: &[(&str, f64)]) -> BTreeMap<String, f64> {
        let each = costs.iter().map(|(name, cost)| ((*name).to_owned(), *cost));
        each.collect()
    }

    #[test]
    fn a_function_has_its_own_instructions_and_not_those_of_what_it_calls() {
        let profile = Profile::parse(FILE);
        let expected = costs(&[
            ("core::fmt::write", 900.0),
            ("gateway::serve", 125.0),
            ("malloc", 30.0),
            ("memcpy", 75.0),
            ("realloc", 20.0),
        ]);
        assert_eq!(profile.costs, expected);
        assert!((profile.total() - 1150.0).abs() < 1e-9);
    }

    #[test]
    fn a_block_is_counted_where_a_program_asks_for_it() {
        let profile = Profile::parse(FILE);
        assert!((profile.blocks - 2.0).abs() < 1e-9, "{}", profile.blocks);
        let each = profile.per_request(4);
        assert!((each.blocks - 0.5).abs() < 1e-9, "{}", each.blocks);
        assert_eq!(each.above(0.5), [("core::fmt::write", 225.0)]);
    }

    #[test]
    fn who_forwards_is_known_by_its_functions() {
        assert!(Profile::parse(FILE).of_server() < 1e-9);
        let worker = Profile::parse(
            "fn=(1) proxy_runtime::server::http1::serve\n0 7\n\
             fn=(2) <proxy_runtime::server::connection::io::ConnectionIo<T>>::read\n0 5\n\
             fn=(3) proxy_runtime::proxy::driver::run\n0 90\n",
        );
        assert!((worker.of_server() - 12.0).abs() < 1e-9);
    }

    #[test]
    fn growth_names_what_is_new_and_what_is_gone() {
        let now = Profile {
            costs: costs(&[("a", 10.0), ("new", 7.0)]),
            blocks: 0.0,
        };
        let growth = now.growth(&costs(&[("a", 12.0), ("gone", 9.0)]));
        let growth: Vec<_> = growth
            .iter()
            .map(|(name, change)| (name.as_str(), *change))
            .collect();
        assert_eq!(growth, [("new", 7.0), ("a", -2.0), ("gone", -9.0)]);
    }

    #[test]
    fn a_name_is_the_same_in_every_build() {
        for (name, expected) in [
            (
                "tokio::runtime::park::h0123456789abcdef",
                "tokio::runtime::park",
            ),
            (
                "<hyper[9a8b7c6d5e4f3a2b]::Conn as core[0123456789abcdef]::Future>::poll",
                "<hyper::Conn as core::Future>::poll",
            ),
            ("read_head'2", "read_head"),
            ("<[u8]>::len", "<[u8]>::len"),
            ("x::hello", "x::hello"),
            ("__memcpy_avx_unaligned_erms", "__memcpy_avx_unaligned_erms"),
        ] {
            assert_eq!(plain(name), expected);
        }
    }
}
