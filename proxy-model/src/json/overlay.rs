//! Merges two documents: defaults, and the changes of an environment.

use indexmap::map::Entry;

use super::flat::conflict;
use super::node::{Key, Node, Object};
use crate::problem::{Problem, Problems, pointer_to};

impl Node {
    /// Returns this document with `above` on top of it, as .NET merges `appsettings.Production.json` with
    /// `appsettings.json`.
    ///
    /// .NET's providers hold values by their path, and of several providers the last that has a path
    /// counts (`ConfigurationRoot`). So objects are merged key by key, ignoring case; a key keeps its place
    /// and the spelling that it has here. Lists are merged element by element, since an element's path ends
    /// with its position: a shorter list replaces the beginning of a longer one. A text or `null` replaces
    /// a text, but removes no object and no list.
    ///
    /// Where that may surprise, there is a problem in `problems`: the warnings `merged_list` and
    /// `null_over_section`, and the error `conflicting_value`.
    ///
    /// ```
    /// use proxy_model::Problems;
    /// use proxy_model::json::parse_document;
    ///
    /// let below = parse_document(r#"{ "Destinations": { "one": { "Address": "http://a" } } }"#)?;
    /// let above = parse_document(r#"{ "destinations": { "ONE": { "address": "http://b" } } }"#)?;
    /// let merged = parse_document(r#"{ "Destinations": { "one": { "Address": "http://b" } } }"#)?;
    /// let mut problems = Problems::new();
    /// assert_eq!(below.overlaid(above, &mut problems), merged);
    /// assert!(problems.is_empty());
    /// # Ok::<(), Problems>(())
    /// ```
    #[must_use]
    pub fn overlaid(self, above: Self, problems: &mut Problems) -> Self {
        overlaid(self, above, "", problems)
    }

    /// Returns true for an object and a list.
    pub(super) fn is_container(&self) -> bool {
        matches!(self, Self::Object(_) | Self::List(_))
    }

    fn is_empty_container(&self) -> bool {
        match self {
            Self::Object(object) => object.is_empty(),
            Self::List(nodes) => nodes.is_empty(),
            _ => false,
        }
    }

    /// Returns an object whose keys are the positions of a list as that list.
    pub(super) fn into_list(self) -> Self {
        match self {
            Self::Object(object) => object.into_list(),
            node => node,
        }
    }
}

// Documents have a limited depth, and so has this recursion.
fn overlaid(below: Node, above: Node, pointer: &str, problems: &mut Problems) -> Node {
    match (below, above) {
        (Node::Object(below), Node::Object(above)) => {
            Node::Object(below.overlaid(above, pointer, problems))
        }
        (Node::List(below), Node::List(above)) => lists(below, above, pointer, problems),
        (below, Node::Null) if below.is_container() => {
            if !below.is_empty_container() {
                let message = "`null` removes no keys: those of the layers below stay, as in .NET";
                problems.push(Problem::warning(pointer, "null_over_section", message));
            }
            below
        }
        (below, above) if below.is_container() && above.is_container() => {
            let above = with_indices(above);
            let merged = with_indices(below).overlaid(above, pointer, problems);
            merged.into_list()
        }
        (below, above) if below.is_container() => {
            // `above` is a text, number or boolean.
            drop(above);
            problems.push(conflict(pointer.to_owned()));
            below
        }
        (below, above) => {
            if above.is_container() && !matches!(below, Node::Null) {
                problems.push(conflict(pointer.to_owned()));
            }
            above
        }
    }
}

/// Merges lists by position. Warns if parts of the lower one stay.
fn lists(below: Vec<Node>, above: Vec<Node>, pointer: &str, problems: &mut Problems) -> Node {
    let left = below.len().saturating_sub(above.len());
    let is_mixed = below.iter().zip(&above).any(|(b, a)| keeps_keys(b, a));
    if left > 0 || is_mixed {
        let message = match (left, is_mixed) {
            (0, _) => "elements keep keys of the list below, since .NET merges lists by position"
                .to_owned(),
            _ => format!(
                "{left} of {} elements of the list below stay, since .NET merges lists by position",
                below.len()
            ),
        };
        problems.push(Problem::warning(pointer, "merged_list", message));
    }
    let mut above = above.into_iter();
    let mut merged: Vec<Node> = below
        .into_iter()
        .enumerate()
        .map(|(index, node)| match above.next() {
            Some(above) => {
                let pointer = pointer_to(pointer, &index.to_string());
                overlaid(node, above, &pointer, problems)
            }
            None => node,
        })
        .collect();
    merged.extend(above);
    Node::List(merged)
}

/// Returns true if a merge of two elements has keys of the lower one that the upper one does not set.
fn keeps_keys(below: &Node, above: &Node) -> bool {
    match (below, above) {
        (Node::Object(below), Node::Object(above)) => below
            .iter()
            .any(|(key, node)| above.get(key).is_none_or(|above| keeps_keys(node, above))),
        // A shorter list in an element has a warning of its own.
        _ => false,
    }
}

/// Returns a list or object as an object.
pub(super) fn with_indices(node: Node) -> Object {
    match node {
        Node::Object(object) => object,
        Node::List(nodes) => {
            let entries = nodes.into_iter().enumerate();
            Object {
                entries: entries
                    .map(|(index, node)| (Key::new(index.to_string()), node))
                    .collect(),
                repeated: Vec::new(),
            }
        }
        _ => Object::default(),
    }
}

impl Object {
    fn overlaid(mut self, above: Self, pointer: &str, problems: &mut Problems) -> Self {
        for (key, node) in above.entries {
            match self.entries.entry(key) {
                Entry::Occupied(mut entry) => {
                    let pointer = pointer_to(pointer, entry.key().as_str());
                    let below = entry.insert(Node::Null);
                    entry.insert(overlaid(below, node, &pointer, problems));
                }
                Entry::Vacant(entry) => {
                    entry.insert(node);
                }
            }
        }
        self.repeated.extend(above.repeated);
        self
    }

    /// Returns the list whose positions are the keys, or this object if they are not `0`, `1`, … in order.
    fn into_list(mut self) -> Node {
        let is_number = |key: &Key| key.as_str().parse::<u32>().is_ok();
        if self.entries.is_empty()
            || !self.repeated.is_empty()
            || !self.entries.keys().all(is_number)
        {
            return Node::Object(self);
        }
        self.entries
            .sort_by_cached_key(|key, _| key.as_str().parse::<u32>().unwrap_or_default());
        let mut keys = self.entries.keys().enumerate();
        if keys.all(|(index, key)| key.as_str() == index.to_string()) {
            return Node::List(self.entries.into_values().collect());
        }
        Node::Object(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_document;

    fn merged(below: &str, above: &str) -> (Node, Vec<(String, String)>) {
        let [below, above] = [below, above].map(|text| parse_document(text).unwrap());
        let mut problems = Problems::new();
        let node = below.overlaid(above, &mut problems);
        let codes = problems
            .iter()
            .map(|problem| (problem.pointer.clone(), problem.code.to_string()));
        (node, codes.collect())
    }

    /// The table follows the paths of .NET's providers: each line is what the binder sees of both.
    #[test]
    fn layers_are_merged_as_dot_net_merges_them() {
        for (below, above, expected, problem) in [
            (
                r#"{"a": 1, "b": 2}"#,
                r#"{"B": 3, "c": 4}"#,
                r#"{"a": 1, "b": 3, "c": 4}"#,
                None,
            ),
            (
                r#"{"a": {"b": 1}}"#,
                r#"{"a": {"c": 2}}"#,
                r#"{"a": {"b": 1, "c": 2}}"#,
                None,
            ),
            (
                r#"{"a": [1, 2, 3]}"#,
                r#"{"a": [4]}"#,
                r#"{"a": [4, 2, 3]}"#,
                Some("merged_list"),
            ),
            (
                r#"{"a": [1, 2]}"#,
                r#"{"a": [3, 4, 5]}"#,
                r#"{"a": [3, 4, 5]}"#,
                None,
            ),
            (
                r#"{"a": [{"b": 1}]}"#,
                r#"{"a": [{"c": 2}]}"#,
                r#"{"a": [{"b": 1, "c": 2}]}"#,
                Some("merged_list"),
            ),
            (
                r#"{"a": [{"b": 1}]}"#,
                r#"{"a": [{"B": 2}]}"#,
                r#"{"a": [{"b": 2}]}"#,
                None,
            ),
            (
                r#"{"a": [1, 2]}"#,
                r#"{"a": []}"#,
                r#"{"a": [1, 2]}"#,
                Some("merged_list"),
            ),
            // By position, as variables of the environment set elements: no warning, since nothing surprises.
            (
                r#"{"a": [1, 2]}"#,
                r#"{"a": {"1": 3}}"#,
                r#"{"a": [1, 3]}"#,
                None,
            ),
            (
                r#"{"a": [1, 2]}"#,
                r#"{"a": {"3": 5, "2": 4}}"#,
                r#"{"a": [1, 2, 4, 5]}"#,
                None,
            ),
            (
                r#"{"a": [1]}"#,
                r#"{"a": {"7": 2}}"#,
                r#"{"a": {"0": 1, "7": 2}}"#,
                None,
            ),
            (
                r#"{"a": {"1": 2}}"#,
                r#"{"a": [1]}"#,
                r#"{"a": [1, 2]}"#,
                None,
            ),
            (
                r#"{"a": [1]}"#,
                r#"{"a": {"x": 2}}"#,
                r#"{"a": {"0": 1, "x": 2}}"#,
                None,
            ),
            (r#"{"a": 2}"#, r#"{"a": null}"#, r#"{"a": null}"#, None),
            (
                r#"{"a": null}"#,
                r#"{"a": {"b": 1}}"#,
                r#"{"a": {"b": 1}}"#,
                None,
            ),
            (
                r#"{"a": {"b": 1}}"#,
                r#"{"a": null}"#,
                r#"{"a": {"b": 1}}"#,
                Some("null_over_section"),
            ),
            (
                r#"{"a": {"b": 1}}"#,
                r#"{"a": 2}"#,
                r#"{"a": {"b": 1}}"#,
                Some("conflicting_value"),
            ),
            (
                r#"{"a": 2}"#,
                r#"{"a": {"b": 1}}"#,
                r#"{"a": {"b": 1}}"#,
                Some("conflicting_value"),
            ),
            ("{}", r#"{"a": 1}"#, r#"{"a": 1}"#, None),
            (r#"{"a": {}}"#, r#"{"a": null}"#, r#"{"a": {}}"#, None),
        ] {
            let (node, problems) = merged(below, above);
            assert_eq!(
                node,
                parse_document(expected).unwrap(),
                "{below} with {above}"
            );
            let expected = problem.map(|code| ("/a".to_owned(), code.to_owned()));
            assert_eq!(problems, Vec::from_iter(expected), "{below} with {above}");
        }
    }
}
