//! One document on top of another: defaults and what an environment changes of them.

use indexmap::map::Entry;

use super::node::{Node, Object};

impl Node {
    /// Returns this document with `above` on top of it, as `appsettings.Production.json` lies on
    /// `appsettings.json`.
    ///
    /// Objects are merged key by key, ignoring case; a key keeps its place and the spelling that it has
    /// here. Everything else is replaced, `null` included. Lists are replaced too: .NET replaces their
    /// elements by position, which leaves a longer list's tail unexpectedly.
    ///
    /// ```
    /// use proxy_model::json::parse_document;
    ///
    /// let below = parse_document(r#"{ "Destinations": { "one": { "Address": "http://a" } } }"#)?;
    /// let above = parse_document(r#"{ "destinations": { "ONE": { "address": "http://b" } } }"#)?;
    /// let merged = parse_document(r#"{ "Destinations": { "one": { "Address": "http://b" } } }"#)?;
    /// assert_eq!(below.overlaid(above), merged);
    /// # Ok::<(), proxy_model::Problems>(())
    /// ```
    #[must_use]
    pub fn overlaid(self, above: Self) -> Self {
        match (self, above) {
            (Self::Object(below), Self::Object(above)) => Self::Object(below.overlaid(above)),
            (_, above) => above,
        }
    }
}

impl Object {
    fn overlaid(mut self, above: Self) -> Self {
        for (key, node) in above.entries {
            match self.entries.entry(key) {
                Entry::Occupied(mut entry) => {
                    // Documents have a limited depth, and so has this recursion.
                    let below = entry.insert(Node::Null);
                    entry.insert(below.overlaid(node));
                }
                Entry::Vacant(entry) => {
                    entry.insert(node);
                }
            }
        }
        self.repeated.extend(above.repeated);
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::json::parse_document;

    #[test]
    fn objects_merge_and_everything_else_is_replaced() {
        for (below, above, expected) in [
            (
                r#"{"a": 1, "b": 2}"#,
                r#"{"B": 3, "c": 4}"#,
                r#"{"a": 1, "b": 3, "c": 4}"#,
            ),
            (
                r#"{"a": {"b": 1}}"#,
                r#"{"a": {"c": 2}}"#,
                r#"{"a": {"b": 1, "c": 2}}"#,
            ),
            (r#"{"a": [1, 2, 3]}"#, r#"{"a": [4]}"#, r#"{"a": [4]}"#),
            (r#"{"a": {"b": 1}}"#, r#"{"a": 2}"#, r#"{"a": 2}"#),
            (r#"{"a": 2}"#, r#"{"a": {"b": 1}}"#, r#"{"a": {"b": 1}}"#),
            (r#"{"a": 2}"#, r#"{"a": null}"#, r#"{"a": null}"#),
            ("{}", r#"{"a": 1}"#, r#"{"a": 1}"#),
        ] {
            let [below, above, expected] =
                [below, above, expected].map(|text| parse_document(text).unwrap());
            assert_eq!(below.overlaid(above), expected);
        }
    }
}
