//! The keys of the committed schema, by their place in a configuration.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::docs::root;

/// A key of the schema.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The type, in the words of the tables.
    pub(crate) kind: &'static str,
    /// The allowed values, if they are listed.
    pub(crate) choices: Vec<String>,
    /// The range of whole numbers, if both ends are given.
    pub(crate) range: Option<(i64, i64)>,
    pub(crate) description: String,
}

/// Keys by place: `/Listeners/{id}/Tls/Certificates/{n}/KeyFile`.
pub(crate) fn keys() -> BTreeMap<String, Key> {
    let text =
        std::fs::read_to_string(root().join("proxy-gateway/schema.json")).expect("it is committed");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut walk = Walk {
        document: &document,
        keys: BTreeMap::new(),
    };
    walk.node(&document, "");
    assert!(
        walk.keys.len() > 100,
        "only {} keys: the walk is broken",
        walk.keys.len()
    );
    walk.keys
}

struct Walk<'a> {
    document: &'a Value,
    keys: BTreeMap<String, Key>,
}

impl<'a> Walk<'a> {
    fn node(&mut self, node: &'a Value, place: &str) {
        let node = self.resolved(node);
        for (name, property) in node["properties"].as_object().into_iter().flatten() {
            let below = format!("{place}/{name}");
            self.keys.insert(below.clone(), self.key(property));
            self.node(property, &below);
        }
        // A transform may have any of these keys, as far as a schema can express.
        for name in node["propertyNames"]["enum"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let name = name.as_str().expect("keys are texts");
            let key = Key {
                kind: "",
                choices: Vec::new(),
                range: None,
                description: String::new(),
            };
            self.keys.insert(format!("{place}/{name}"), key);
        }
        if node["additionalProperties"].is_object() {
            self.node(&node["additionalProperties"], &format!("{place}/{{id}}"));
        }
        if node["items"].is_object() {
            self.node(&node["items"], &format!("{place}/{{n}}"));
        }
    }

    /// Returns the node behind references and `null`s.
    fn resolved(&self, mut node: &'a Value) -> &'a Value {
        loop {
            if let Some(reference) = node["$ref"].as_str() {
                let pointer = reference.trim_start_matches('#');
                node = self
                    .document
                    .pointer(pointer)
                    .expect("references lead somewhere");
            } else if let Some(choice) = node["anyOf"].as_array()
                && let Some(other) = choice.iter().find(|one| one["type"] != "null")
            {
                node = other;
            } else {
                return node;
            }
        }
    }

    fn key(&self, property: &'a Value) -> Key {
        let node = self.resolved(property);
        let described = [property, node]
            .iter()
            .find_map(|node| node["description"].as_str());
        let listed = node["enum"].as_array().into_iter().flatten();
        let explained = node["oneOf"].as_array().into_iter().flatten();
        let choices = listed.chain(explained.map(|one| &one["const"]));
        Key {
            kind: self.kind(node),
            choices: choices
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            range: node["minimum"].as_i64().zip(node["maximum"].as_i64()),
            description: described.unwrap_or_default().to_owned(),
        }
    }

    fn kind(&self, node: &'a Value) -> &'static str {
        let is = |kind: &str| {
            node["type"] == kind
                || node["type"]
                    .as_array()
                    .is_some_and(|kinds| kinds.iter().any(|one| one == kind))
        };
        let is_time = node["pattern"]
            .as_str()
            .is_some_and(|pattern| pattern.contains("ms|us"));
        if is_time {
            "time"
        } else if is("boolean") {
            "boolean"
        } else if is("integer") || is("number") {
            "number"
        } else if is("array") {
            "list"
        } else if is("object") && node["properties"].is_object() {
            "section"
        } else if is("object") && self.resolved(&node["additionalProperties"])["type"] == "object" {
            "sections by id"
        } else if is("object") && node["additionalProperties"]["type"] == "integer" {
            "numbers by key"
        } else if is("object") {
            "texts by key"
        } else {
            "text"
        }
    }
}
