//! Typed reading of a label tree.

use std::fmt::Display;
use std::str::FromStr;

use proxy_model::config::Metadata;
use proxy_model::{ParseTimeSpanError, Problem, TimeSpan, pointer_to};

use super::tree::{LabelTree, Leaf, Node};

/// Code of problems with a label's value.
const INVALID: &str = "invalid_label";

/// A place in a [`LabelTree`]. It exists even without labels; all values read from it are then unset.
///
/// The getters take the name of a label below this place. A missing or empty label is unset; an invalid one
/// is unset too, and is reported with its key.
#[derive(Clone, Copy, Debug)]
pub struct LabelNode<'t> {
    tree: &'t LabelTree<'t>,
    node: Option<&'t Node<'t>>,
    depth: usize,
}

impl<'t> LabelNode<'t> {
    pub(super) fn new(tree: &'t LabelTree<'t>, node: Option<&'t Node<'t>>, depth: usize) -> Self {
        Self { tree, node, depth }
    }

    /// Returns true if there are labels here or below.
    pub fn exists(&self) -> bool {
        self.node.is_some()
    }

    /// Returns the place called `name` below this one.
    pub fn child(&self, name: &str) -> Self {
        let node = self.node.and_then(|node| self.tree.find(node, name));
        Self::new(self.tree, node, self.depth + 1)
    }

    /// Every place below `name`, with its name as written, in the order of the labels: `Routes.<name>`.
    pub fn named(&self, name: &str) -> Vec<(&'t str, Self)> {
        let Some(node) = self.child(name).node else {
            return Vec::new();
        };
        node.named
            .values()
            .filter(|(_, child)| child.has_children())
            .map(|(name, child)| (*name, Self::new(self.tree, Some(child), self.depth + 2)))
            .collect()
    }

    /// Returns the elements of the list called `name`, in numeric order of `[n]`, independent of the order
    /// of the labels. A gap in the numbers is not an element.
    pub fn elements(&self, name: &str) -> Vec<(u32, Self)> {
        let Some(node) = self.child(name).node else {
            return Vec::new();
        };
        node.is_list.set(true);
        node.indexed
            .iter()
            .filter(|(_, child)| child.has_children())
            .map(|(&index, child)| (index, Self::new(self.tree, Some(child), self.depth + 2)))
            .collect()
    }

    /// Returns all labels below `name` as one flat map: `Metadata.a.b` is the entry `a.b`.
    pub fn map(&self, name: &str) -> Option<Metadata> {
        let child = self.child(name);
        let map = child.entries();
        (!map.is_empty()).then_some(map)
    }

    /// Returns all labels below this place as one flat map.
    pub fn entries(&self) -> Metadata {
        let mut map = Metadata::new();
        let Some(node) = self.node else { return map };
        let depth = self.depth;
        node.for_each_leaf(&mut |leaf| {
            let key = leaf.tail(depth);
            if !key.is_empty() {
                leaf.mark_read();
                map.insert(key.to_owned(), leaf.value.to_owned());
            }
        });
        map
    }

    /// Returns the label's value unchanged, even if it is empty.
    pub fn raw(&self, name: &str) -> Option<&'t str> {
        self.leaf(name).map(|leaf| leaf.value)
    }

    /// The label's value.
    pub fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(|(_, value)| value.to_owned())
    }

    /// Returns the value as a boolean, `true` or `false` in any case.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        let (leaf, value) = self.value(name)?;
        let value = value.trim();
        if value.eq_ignore_ascii_case("true") {
            Some(true)
        } else if value.eq_ignore_ascii_case("false") {
            Some(false)
        } else {
            self.invalid(leaf, "neither `true` nor `false`");
            None
        }
    }

    /// A whole number in decimal, with an optional sign, in the range of `T`.
    pub fn integer<T>(&self, name: &str) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        let (leaf, value) = self.value(name)?;
        match value.trim().parse() {
            Ok(number) => Some(number),
            Err(error) => {
                self.invalid(leaf, &format!("not such a number: {error}"));
                None
            }
        }
    }

    /// A length of time: `00:00:10` or `10s`.
    pub fn time_span(&self, name: &str) -> Option<TimeSpan> {
        let (leaf, value) = self.value(name)?;
        match value.trim().parse() {
            Ok(span) => Some(span),
            Err(error) => {
                let error: ParseTimeSpanError = error;
                let problem = Problem::error(pointer_to("", leaf.key), INVALID, error.to_string());
                self.tree
                    .report(problem.with_suggestion(error.suggestion()));
                None
            }
        }
    }

    /// Texts separated by commas. Spaces around them and empty ones are dropped.
    pub fn list(&self, name: &str) -> Option<Vec<String>> {
        let (_, value) = self.value(name)?;
        let list: Vec<_> = value
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect();
        (!list.is_empty()).then_some(list)
    }

    /// One of several names, in any case.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let (leaf, value) = self.value(name)?;
        let value = value.trim();
        let found = choices
            .iter()
            .find(|(choice, _)| choice.eq_ignore_ascii_case(value));
        if found.is_none() {
            let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
            self.invalid(leaf, &format!("not one of {}", names.join(", ")));
        }
        found.map(|&(_, choice)| choice)
    }

    /// Reports that the label called `name` is wrong for a reason of the dialect's own.
    pub fn report_error(&self, name: &str, code: &'static str, message: impl Into<String>) {
        let pointer = match self.leaf(name) {
            Some(leaf) => pointer_to("", leaf.key),
            None => self.pointer(),
        };
        self.tree.report(Problem::error(pointer, code, message));
    }

    /// Makes unknown labels here and below an error, in places where a misspelt label would change the meaning of
    /// others.
    pub fn reject_unknown(&self) {
        if let Some(node) = self.node {
            node.rejects_unknown.set(true);
        }
    }

    /// Reports a problem of the dialect, with its pointer unchanged.
    pub fn report(&self, problem: Problem) {
        self.tree.report(problem);
    }

    /// Reports that the labels here are wrong together.
    pub fn report_here(&self, code: &'static str, message: impl Into<String>) {
        self.tree
            .report(Problem::error(self.pointer(), code, message));
    }

    /// Returns true if there are labels here or below that are not empty.
    pub(super) fn has_text(&self) -> bool {
        has_text(self.node)
    }

    /// Returns the names below this place that were not read so far and have labels that are not empty, each
    /// with the read name that was probably meant.
    pub(super) fn unread(&self) -> Vec<(&'t str, Option<String>)> {
        let Some(node) = self.node else {
            return Vec::new();
        };
        let unread = node
            .named
            .values()
            .filter(|(name, child)| !self.tree.was_asked(node, name) && has_text(Some(child)));
        unread
            .map(|(name, _)| (*name, node.nearest(name)))
            .collect()
    }

    /// Returns the pointer to the label at `path` from here, or to the first label below the last existing
    /// part of it. Does not mark labels as read.
    pub fn locate<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> String {
        let mut node = self.node;
        for part in path {
            let next = node.and_then(|node| node.next(part, self.tree.ignores_case()));
            if next.is_none() {
                break;
            }
            node = next;
        }
        pointer(node)
    }

    /// The first label here or below, which is as near as a pointer to several labels can be.
    fn pointer(&self) -> String {
        pointer(self.node)
    }

    fn leaf(&self, name: &str) -> Option<&'t Leaf<'t>> {
        let leaf = self.child(name).node?.leaf.as_ref()?;
        leaf.mark_read();
        Some(leaf)
    }

    fn value(&self, name: &str) -> Option<(&'t Leaf<'t>, &'t str)> {
        let leaf = self.leaf(name)?;
        (!leaf.value.trim().is_empty()).then_some((leaf, leaf.value))
    }

    fn invalid(&self, leaf: &Leaf<'_>, reason: &str) {
        let value: String = leaf.value.chars().take(64).collect();
        self.tree.report(Problem::error(
            pointer_to("", leaf.key),
            INVALID,
            format!("`{value}` is {reason}"),
        ));
    }
}

fn has_text(node: Option<&Node<'_>>) -> bool {
    let mut found = false;
    if let Some(node) = node {
        node.for_each_leaf(&mut |leaf| found |= !leaf.value.trim().is_empty());
    }
    found
}

fn pointer(node: Option<&Node<'_>>) -> String {
    let mut first = None;
    if let Some(node) = node {
        node.for_each_leaf(&mut |leaf| {
            first.get_or_insert(leaf.key);
        });
    }
    first.map_or_else(String::new, |key| pointer_to("", key))
}
