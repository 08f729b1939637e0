//! The spelling of keys in the document, for pointers that were made by other means.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::node::{Node, numbered};
use crate::problem::pointer_to;

/// Writes pointers with the spelling of a document, which may have an object or a text where the model has a list.
pub(crate) struct Speller<'n> {
    root: &'n Node,
    lists: &'static [&'static str],
    /// The keys of lists that are written as objects, in order, by the list's pointer.
    keys: HashMap<String, Vec<&'n str>>,
}

impl<'n> Speller<'n> {
    /// Creates a speller for pointers into `root`. The values of the keys `lists` are lists.
    pub(crate) fn new(root: &'n Node, lists: &'static [&'static str]) -> Self {
        Self {
            root,
            lists,
            keys: HashMap::new(),
        }
    }

    /// Returns `pointer` in the spelling of the document: with its keys, with its number of a list's
    /// element, and only up to the text that contains several elements.
    pub(crate) fn spelled(&mut self, pointer: &str) -> String {
        let mut out = String::with_capacity(pointer.len());
        let mut node = Some(self.root);
        let mut parent = "";
        for token in pointer.split('/').skip(1) {
            let index = self
                .lists
                .contains(&parent)
                .then(|| token.parse::<usize>().ok())
                .flatten();
            parent = token;
            let key = token.replace("~1", "/").replace("~0", "~");
            let key = match (node, index) {
                (Some(Node::Text(_)), Some(_)) => break,
                (Some(object @ Node::Object(_)), Some(index)) => {
                    self.element(object, &out, index).map_or(key, str::to_owned)
                }
                _ => key,
            };
            let found = node.and_then(|node| node.entry(&key));
            match found {
                Some((ref spelled, _)) => out = pointer_to(&out, spelled),
                None => {
                    out.push('/');
                    out.push_str(token);
                }
            }
            node = found.map(|(_, node)| node);
        }
        out
    }

    /// Returns the key of an element of a list. The list is the `object` found at `pointer`.
    fn element(&mut self, object: &'n Node, pointer: &str, index: usize) -> Option<&'n str> {
        // Sorted once, not for each of the problems in it.
        let keys = match self.keys.entry(pointer.to_owned()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let elements = numbered(object).unwrap_or_default();
                entry.insert(elements.into_iter().map(|(key, _)| key).collect())
            }
        };
        keys.get(index).copied()
    }
}
