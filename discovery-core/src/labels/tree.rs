//! Labels as a tree: dotted keys, with `[n]` for positions in a list.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use indexmap::IndexMap;
use proxy_model::{Problem, Problems, Severity, nearest, pointer_to};

use super::node::LabelNode;
use super::rules::{LabelRules, fold};
use crate::discovery::Labels;

/// Maximum number of labels of a service. Further ones are rejected, since each one costs memory while the
/// service is served.
const MAX_LABELS: usize = 10_000;
/// Maximum number of parts of one key. Longer keys are rejected, which also limits recursion over the tree.
const MAX_DEPTH: usize = 32;
/// Problems of one service beyond this number are counted only.
const MAX_PROBLEMS: usize = 100;

/// The labels of one service as a tree.
///
/// The tree records which keys were read. It can then report the unknown labels, and suggest the names that
/// were probably intended.
///
/// ```
/// use discovery_core::Labels;
/// use discovery_core::labels::{LabelRules, LabelTree};
///
/// let labels: Labels = [("acme.port", "8080"), ("acme.hots", "a.example"), ("other", "1")]
///     .map(|(key, value)| (key.to_owned(), value.to_owned()))
///     .into();
/// let rules = LabelRules::new("acme.");
/// let tree = LabelTree::new(&labels, &rules);
/// assert_eq!(tree.root().integer::<u16>("Port"), Some(8080));
/// assert_eq!(tree.root().list("Hosts"), None);
///
/// let problems = tree.finish();
/// assert_eq!(problems.iter().next().unwrap().pointer, "/acme.hots");
/// assert_eq!(problems.iter().next().unwrap().suggestion.as_deref(), Some("did you mean `acme.Hosts`?"));
/// ```
#[derive(Debug)]
pub struct LabelTree<'a> {
    rules: &'a LabelRules,
    root: Node<'a>,
    problems: RefCell<Problems>,
    unmentioned: Cell<usize>,
}

/// One part of the keys.
#[derive(Debug, Default)]
pub(super) struct Node<'a> {
    /// The label that ends here.
    pub(super) leaf: Option<Leaf<'a>>,
    /// The children with a name, in the order of the labels. Keys are folded if case is ignored.
    pub(super) named: IndexMap<String, (&'a str, Self)>,
    /// The children with a position, in numeric order.
    pub(super) indexed: BTreeMap<u32, Self>,
    /// Names of children that a reader has asked for; other names are unknown.
    asked: RefCell<Vec<Box<str>>>,
    /// True if the node was read as a list.
    pub(super) is_list: Cell<bool>,
    /// True if unknown labels here and below are errors, independent of the rules.
    pub(super) rejects_unknown: Cell<bool>,
}

/// A label.
#[derive(Debug)]
pub(super) struct Leaf<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
    /// The start of each part of the key, from the prefix on.
    starts: Vec<usize>,
    read: Cell<bool>,
}

impl<'a> Leaf<'a> {
    /// The key from its part at `depth` on.
    pub(super) fn tail(&self, depth: usize) -> &'a str {
        self.starts.get(depth).map_or("", |&at| &self.key[at..])
    }

    pub(super) fn mark_read(&self) {
        self.read.set(true);
    }
}

impl<'a> LabelTree<'a> {
    /// Sorts the labels that have the prefix into a tree.
    pub fn new(labels: &'a Labels, rules: &'a LabelRules) -> Self {
        let mut tree = Self {
            rules,
            root: Node::default(),
            problems: RefCell::new(Problems::new()),
            unmentioned: Cell::new(0),
        };
        let mut count = 0;
        for (key, value) in labels {
            let Some(rest) = rules.strip_prefix(key) else {
                continue;
            };
            count += 1;
            if count > MAX_LABELS {
                tree.report(Problem::error(
                    "",
                    "too_many_labels",
                    format!("more than {MAX_LABELS} labels"),
                ));
                break;
            }
            tree.insert(key, rest, value);
        }
        tree
    }

    fn insert(&mut self, key: &'a str, rest: &'a str, value: &'a str) {
        let pointer = pointer_to("", key);
        let mut parts = match split(rest) {
            Ok(parts) => parts,
            Err(reason) => {
                let severity = self.rules.malformed;
                self.report(problem(severity, pointer, "invalid_label", reason));
                return;
            }
        };
        self.rules.resolve(&mut parts);
        let offset = key.len() - rest.len();
        let mut node = &mut self.root;
        for &(_, part) in &parts {
            node = match index(part) {
                Some(position) => node.indexed.entry(position).or_default(),
                None => {
                    let folded = fold(part, self.rules.ignore_key_case);
                    &mut node
                        .named
                        .entry(folded)
                        .or_insert((part, Node::default()))
                        .1
                }
            };
        }
        if let Some(first) = &node.leaf {
            let message = format!("has the same meaning as the label `{}`", first.key);
            self.report(Problem::error(pointer, "duplicate_label", message));
            return;
        }
        node.leaf = Some(Leaf {
            key,
            value,
            starts: parts.iter().map(|&(at, _)| offset + at).collect(),
            read: Cell::new(false),
        });
    }

    /// The node at which reading begins: the part behind the prefix.
    pub fn root(&self) -> LabelNode<'_> {
        LabelNode::new(self, Some(&self.root), 0)
    }

    /// Returns true if keys match in any case.
    pub(super) fn ignores_case(&self) -> bool {
        self.rules.ignore_key_case
    }

    /// Reports that a label is wrong. The pointer is its key.
    pub(super) fn report(&self, problem: Problem) {
        let mut problems = self.problems.borrow_mut();
        if problems.len() < MAX_PROBLEMS {
            problems.push(problem);
        } else {
            self.unmentioned.set(self.unmentioned.get() + 1);
        }
    }

    /// Finds the child of `node` called `name`, and marks it as read.
    pub(super) fn find<'t>(&self, node: &'t Node<'a>, name: &str) -> Option<&'t Node<'a>> {
        let mut asked = node.asked.borrow_mut();
        if !asked.iter().any(|known| **known == *name) {
            asked.push(name.into());
        }
        let folded = fold(name, self.rules.ignore_key_case);
        node.named.get(&folded).map(|(_, child)| child)
    }

    /// Returns true if the child of `node` called `name` was read.
    pub(super) fn was_asked(&self, node: &Node<'_>, name: &str) -> bool {
        let fold = |name: &str| fold(name, self.rules.ignore_key_case);
        let asked = node.asked.borrow();
        asked.iter().any(|known| fold(known) == fold(name))
    }

    /// Returns true if a problem is severe enough to reject the service. Labels that were not read do not
    /// count yet.
    pub fn has_errors(&self) -> bool {
        self.problems.borrow().has_errors()
    }

    /// The pointers of the errors that were reported so far.
    pub fn error_pointers(&self) -> Vec<String> {
        let problems = self.problems.borrow();
        problems
            .errors()
            .map(|problem| problem.pointer.clone())
            .collect()
    }

    /// Returns all problems: those reported while reading, and one for each label that was not read.
    pub fn finish(self) -> Problems {
        self.diagnose(&self.root, &self.rules.prefix, self.rules.unknown);
        let mut problems = self.problems.into_inner();
        let unmentioned = self.unmentioned.get();
        if unmentioned > 0 {
            problems.push(Problem::warning(
                "",
                "too_many_problems",
                format!("{unmentioned} more problems are not listed"),
            ));
        }
        problems
    }

    /// Reports unread labels below `node`, whose keys begin with `path`. Unknown names are as bad as `severity`.
    fn diagnose(&self, node: &Node<'_>, path: &str, severity: Severity) {
        if let Some(leaf) = node.leaf.as_ref().filter(|leaf| !leaf.read.get()) {
            let message = "a value was not expected here".to_owned();
            self.report(unknown(self.rules.unknown, leaf.key, message));
        }
        let severity = match node.rejects_unknown.get() {
            true => Severity::Error,
            false => severity,
        };
        for (name, child) in node.named.values() {
            if self.was_asked(node, name) || child.is_read() {
                self.diagnose(child, &format!("{path}{name}."), severity);
                continue;
            }
            let near = node.nearest(name);
            child.for_each_leaf(&mut |leaf| {
                let message = format!("`{path}{name}` is not known");
                let problem = unknown(severity, leaf.key, message);
                self.report(match &near {
                    Some(near) => problem.with_suggestion(format!("did you mean `{path}{near}`?")),
                    None if node.is_list.get() => {
                        problem.with_suggestion("a list is written `[0]`, `[1]`, …")
                    }
                    None => problem,
                });
            });
        }
        for (position, child) in &node.indexed {
            self.diagnose(child, &format!("{path}[{position}]."), severity);
        }
    }
}

fn unknown(severity: Severity, key: &str, message: String) -> Problem {
    problem(severity, pointer_to("", key), "unknown_label", message)
}

fn problem(severity: Severity, pointer: String, code: &'static str, message: String) -> Problem {
    match severity {
        Severity::Warning => Problem::warning(pointer, code, message),
        Severity::Error => Problem::error(pointer, code, message),
    }
}

impl<'a> Node<'a> {
    /// Returns true if there are keys below. A place that has only a value cannot be descended into.
    pub(super) fn has_children(&self) -> bool {
        !self.named.is_empty() || !self.indexed.is_empty()
    }

    /// The name read here that `name` is probably a misspelling of.
    pub(super) fn nearest(&self, name: &str) -> Option<String> {
        let asked = self.asked.borrow();
        nearest(name, asked.iter().map(|known| &**known)).map(str::to_owned)
    }

    /// Visits the labels here and below.
    pub(super) fn for_each_leaf<'t>(&'t self, visit: &mut dyn FnMut(&'t Leaf<'a>)) {
        if let Some(leaf) = &self.leaf {
            visit(leaf);
        }
        for (_, child) in self.named.values() {
            child.for_each_leaf(visit);
        }
        for child in self.indexed.values() {
            child.for_each_leaf(visit);
        }
    }

    /// Returns the node for the next part of a key, without marking it as read.
    pub(super) fn next(&self, part: &str, ignore_case: bool) -> Option<&Self> {
        match index(part) {
            Some(position) => self.indexed.get(&position),
            None => {
                let (_, child) = self.named.get(&fold(part, ignore_case))?;
                Some(child)
            }
        }
    }

    /// Returns true if a label here or below was read. The parent was then walked through without reading
    /// this name.
    fn is_read(&self) -> bool {
        let mut read = !self.asked.borrow().is_empty();
        self.for_each_leaf(&mut |leaf| read |= leaf.read.get());
        read
    }
}

/// The parts of a key with their positions. Dots separate, and a bracket begins a part of its own.
fn split(rest: &str) -> Result<Vec<(usize, &str)>, String> {
    let mut parts = Vec::new();
    let mut start = 0;
    let bytes = rest.as_bytes();
    for at in 0..=bytes.len() {
        let at_dot = bytes.get(at).is_none_or(|&b| b == b'.');
        let at_bracket = at > start && bytes.get(at) == Some(&b'[');
        if !at_dot && !at_bracket {
            continue;
        }
        if start == at {
            return Err("two dots with nothing between, or a dot at the end".to_owned());
        }
        if parts.len() == MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} parts"));
        }
        parts.push((start, &rest[start..at]));
        start = if at_dot { at + 1 } else { at };
    }
    Ok(parts)
}

/// The position that `[7]` means.
fn index(part: &str) -> Option<u32> {
    let digits = part.strip_prefix('[')?.strip_suffix(']')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}
