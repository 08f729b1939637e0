//! Keys with colons, as .NET's configuration spells keys of objects in each other: `Routes:r:Order`.

use indexmap::map::Entry;

use super::node::{Key, Node, Object};
use super::overlay::with_indices;
use crate::problem::{Problem, Problems, pointer_to};

/// The deepest nesting of a document whose keys are taken apart, as deep as the parser reads.
pub(super) const MOST_LEVELS: usize = 128;

/// The character between the parts of a key (`ConfigurationPath.KeyDelimiter` of .NET).
pub(super) const DELIMITER: char = ':';

/// Objects whose keys are ids of objects. YARP cannot have such an id with a colon; here `10.0.0.1:8080` is one.
const BY_ID: [&str; 4] = ["Routes", "Clusters", "Destinations", "Listeners"];

/// Objects whose keys are names of texts.
const BY_NAME: [&str; 1] = ["Metadata"];

impl Node {
    /// Returns this document with each key that has colons as objects in each other, as .NET reads it:
    /// `"ReverseProxy:Routes:r:Order": 1` sets `Order` of the route `r`.
    ///
    /// A colon stays part of a key of `Metadata`, and of an id in `Routes`, `Clusters`, `Destinations` and
    /// `Listeners` whose value is an object. A value that is written twice is reported by readers, as a
    /// duplicate key. Problems are keys that are too deep (`too_deep`) and values in the place of an object
    /// (`conflicting_value`).
    #[must_use]
    pub fn nested(self, problems: &mut Problems) -> Self {
        if !self.has_flat_keys(None) {
            return self;
        }
        self.taken_apart(None, "", 0, problems)
    }

    fn has_flat_keys(&self, parent: Option<&str>) -> bool {
        match self {
            Self::Object(object) => object.iter().any(|(key, node)| {
                parts(key, parent, node.is_container()).is_some() || node.has_flat_keys(Some(key))
            }),
            Self::List(nodes) => nodes.iter().any(|node| node.has_flat_keys(None)),
            _ => false,
        }
    }

    fn taken_apart(
        self,
        parent: Option<&str>,
        pointer: &str,
        level: usize,
        problems: &mut Problems,
    ) -> Self {
        match self {
            Self::Object(object) => {
                let mut out = Object {
                    entries: Default::default(),
                    repeated: object.repeated,
                };
                for (key, node) in object.entries {
                    let parts = parts(key.as_str(), parent, node.is_container());
                    let depth = level + parts.as_ref().map_or(1, Vec::len);
                    let place = pointer_to(pointer, key.as_str());
                    if depth > MOST_LEVELS {
                        let message = format!("the key leads deeper than {MOST_LEVELS} levels");
                        problems.push(Problem::error(place, "too_deep", message));
                        continue;
                    }
                    match parts {
                        None => {
                            let node =
                                node.taken_apart(Some(key.as_str()), &place, depth, problems);
                            out.join(key, node, pointer, problems);
                        }
                        Some(parts) => {
                            let parent = parts.last().copied();
                            let node = node.taken_apart(parent, &place, depth, problems);
                            let (first, node) = chain(&parts, node);
                            out.join(Key::new(first), node, pointer, problems);
                        }
                    }
                }
                Self::Object(out)
            }
            Self::List(nodes) => {
                let nodes = nodes.into_iter().enumerate().map(|(index, node)| {
                    let place = pointer_to(pointer, &index.to_string());
                    node.taken_apart(None, &place, level + 1, problems)
                });
                Self::List(nodes.collect())
            }
            scalar => scalar,
        }
    }
}

/// Returns `node` under all but the first of `parts`, and that first one.
fn chain<'k>(parts: &[&'k str], node: Node) -> (&'k str, Node) {
    let (first, rest) = parts.split_first().unwrap_or((&"", &[]));
    let node = rest.iter().rev().fold(node, |node, key| {
        let mut object = Object::default();
        object.entries.insert(Key::new(*key), node);
        Node::Object(object)
    });
    (first, node)
}

/// Returns the parts of a key of an object, if it has several. `parent` is the key of the object itself.
pub(super) fn parts<'k>(
    key: &'k str,
    parent: Option<&str>,
    is_container: bool,
) -> Option<Vec<&'k str>> {
    if !key.contains(DELIMITER) {
        return None;
    }
    let is_in = |names: &[&str]| {
        parent.is_some_and(|parent| names.iter().any(|name| name.eq_ignore_ascii_case(parent)))
    };
    if is_in(&BY_NAME) || is_container && is_in(&BY_ID) {
        return None;
    }
    Some(key.split(DELIMITER).collect())
}

impl Object {
    /// Adds a value of the same document. What is in both places is a repeated key.
    pub(super) fn join(&mut self, key: Key, node: Node, pointer: &str, problems: &mut Problems) {
        let repeated = match self.entries.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(node);
                return;
            }
            Entry::Occupied(mut entry) => {
                let place = pointer_to(pointer, entry.key().as_str());
                let spelled = entry.key().as_str().to_owned();
                let value = entry.get_mut();
                match (std::mem::replace(value, Node::Null), node) {
                    (Node::Null, Node::Null) => Some(spelled),
                    (Node::Null, one) | (one, Node::Null) => {
                        *value = one;
                        None
                    }
                    (here, there) if here.is_container() && there.is_container() => {
                        let mut here = with_indices(here);
                        for (key, node) in with_indices(there).entries {
                            here.join(key, node, &place, problems);
                        }
                        *value = Node::Object(here).into_list();
                        None
                    }
                    (here, there) if here.is_container() || there.is_container() => {
                        *value = if here.is_container() { here } else { there };
                        problems.push(conflict(place));
                        None
                    }
                    (here, _) => {
                        *value = here;
                        Some(spelled)
                    }
                }
            }
        };
        self.repeated.extend(repeated);
    }
}

/// The problem of a text or number in the place of an object or a list.
pub(super) fn conflict(pointer: String) -> Problem {
    let message = "there are keys below this value; .NET keeps both and reads the keys alone";
    Problem::error(pointer, "conflicting_value", message)
        .with_suggestion("remove the value, or write what it replaces key by key")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::{ObjectReader, parse_document};

    fn nested(text: &str) -> (Node, Problems) {
        let mut problems = Problems::new();
        let node = parse_document(text).unwrap().nested(&mut problems);
        (node, problems)
    }

    #[test]
    fn keys_with_colons_are_objects_in_each_other() {
        for (text, expected) in [
            (r#"{"a:b:c": 1}"#, r#"{"a": {"b": {"c": 1}}}"#),
            (
                r#"{"a:b": 1, "A": {"c": 2}, "a:C2:x": {"y:z": 3}}"#,
                r#"{"a": {"b": 1, "c": 2, "C2": {"x": {"y": {"z": 3}}}}}"#,
            ),
            (r#"{"a:0": "x", "a:1": "y"}"#, r#"{"a": ["x", "y"]}"#),
            (r#"{"a": ["x"], "a:1": "y"}"#, r#"{"a": ["x", "y"]}"#),
            (r#"{"a": [{"b:c": 1}]}"#, r#"{"a": [{"b": {"c": 1}}]}"#),
            (r#"{"a:b": null, "a": {}}"#, r#"{"a": {"b": null}}"#),
            // A gap is kept: the number is where problems are.
            (r#"{"a:5": "x"}"#, r#"{"a": {"5": "x"}}"#),
        ] {
            let (node, problems) = nested(text);
            assert!(problems.is_empty(), "{text}: {problems}");
            assert_eq!(node, parse_document(expected).unwrap(), "{text}");
        }
    }

    #[test]
    fn colons_in_ids_and_names_of_texts_stay() {
        for text in [
            r#"{"Destinations": {"10.0.0.1:8080": {"Address": "http://a"}}}"#,
            r#"{"metadata": {"a:b": "c"}}"#,
            r#"{"Routes": {"fabric:/App": {"Match": {}}}}"#,
        ] {
            assert_eq!(nested(text).0, parse_document(text).unwrap(), "{text}");
        }
        let (node, _) = nested(r#"{"Routes": {"r:Order": 1, "R": {"ClusterId": "c"}}}"#);
        let expected = r#"{"Routes": {"r": {"Order": 1, "ClusterId": "c"}}}"#;
        assert_eq!(node, parse_document(expected).unwrap());
    }

    #[test]
    fn a_value_in_two_places_is_a_duplicate_key() {
        let (node, problems) = nested(r#"{"a": {"Order": 1}, "a:order": 2}"#);
        assert!(problems.is_empty());
        let mut problems = Problems::new();
        ObjectReader::read(node.get("a").unwrap(), "/a", &mut problems, |a| {
            a.allow_unknown();
        });
        assert_eq!(problems.iter().next().unwrap().code, "duplicate_key");
        let (node, problems) = nested(r#"{"a": "text", "a:b": 2}"#);
        let problem = problems.iter().next().unwrap();
        assert_eq!(
            (&*problem.pointer, &*problem.code),
            ("/a", "conflicting_value")
        );
        assert_eq!(node, parse_document(r#"{"a": {"b": 2}}"#).unwrap());
    }

    #[test]
    fn depth_is_bounded() {
        let (_, problems) = nested(&format!(r#"{{"{}": 1}}"#, "a:".repeat(200)));
        assert_eq!(problems.iter().next().unwrap().code, "too_deep");
        let deep = format!("{}1{}", r#"{"a:b": "#.repeat(100), "}".repeat(100));
        assert_eq!(nested(&deep).1.iter().next().unwrap().code, "too_deep");
    }

    proptest! {
        #[test]
        fn a_document_taken_apart_has_nothing_left_to_take_apart(
            keys in prop::collection::vec("[ab:]{1,6}", 1..8),
        ) {
            let entries: Vec<_> = keys.iter().enumerate().map(|(i, key)| format!("\"{key}\": {i}")).collect();
            let (once, _) = nested(&format!("{{{}}}", entries.join(",")));
            let mut problems = Problems::new();
            prop_assert_eq!(once.clone().nested(&mut problems), once);
            prop_assert!(problems.is_empty());
        }
    }
}
