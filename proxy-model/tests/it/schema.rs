//! The JSON Schema: committed, fresh, and in step with the reader.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own functions as well"
)]

use std::collections::{BTreeMap, BTreeSet};

use proxy_model::config::ProxyConfig;
use proxy_model::json::{Node, parse_document};
use serde_json::{Value, json};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.json");
const REFRESH: &str = "UPDATE_SCHEMA=1 cargo test -p proxy-model --all-features --test it schema::";
const SAMPLE: &str = include_str!("data/appsettings.json");

/// A key that no object has, and that is near to none.
const STRANGER: &str = "stranger in the file";

#[test]
fn the_committed_schema_is_fresh() {
    let fresh = proxy_model::schema();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let text = serde_json::to_string_pretty(&fresh).unwrap();
        std::fs::write(COMMITTED, text + "\n").unwrap();
    }
    let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
    let committed: Value = serde_json::from_str(&committed).unwrap_or_default();
    assert!(
        committed == fresh,
        "schema.json is stale; refresh it with\n\n    {REFRESH}\n"
    );
}

#[test]
fn the_sample_has_every_key_and_reader_and_schema_know_the_same() {
    let schema = proxy_model::schema();
    let sample = section(&parse_document(SAMPLE).unwrap());
    let mut seen = BTreeMap::new();
    let mut visit = Visit {
        schema: &schema,
        sample: &sample,
        objects: &mut seen,
    };
    visit.object("", resolve(&schema, &schema), &sample);

    for (name, object) in &seen {
        assert_eq!(
            object.in_sample, object.in_schema,
            "{name}: keys of the sample and of the schema"
        );
        assert_eq!(
            object.in_reader, object.in_schema,
            "{name}: keys of the reader and of the schema"
        );
    }
    let defined = schema["$defs"].as_object().unwrap();
    let with_keys = defined
        .values()
        .filter(|definition| definition.get("properties").is_some());
    assert_eq!(seen.len(), with_keys.count() + 1, "{:?}", seen.keys());
}

#[test]
fn the_sample_uses_every_key_of_transforms() {
    let schema = proxy_model::schema();
    let known = schema["$defs"]["Transform"]["propertyNames"]["enum"]
        .as_array()
        .unwrap();
    let known: BTreeSet<&str> = known.iter().map(|key| key.as_str().unwrap()).collect();
    let sample = section(&parse_document(SAMPLE).unwrap());
    let routes = sample["Routes"].as_object().unwrap().values();
    let transforms = routes
        .filter_map(|route| route["Transforms"].as_array())
        .flatten();
    let used: BTreeSet<&str> = transforms
        .flat_map(|transform| transform.as_object().unwrap().keys())
        .map(String::as_str)
        .collect();
    assert_eq!(used, known);
}

#[test]
fn every_key_is_described() {
    fn check(place: &str, schema: &Value) {
        for (key, value) in schema["properties"].as_object().into_iter().flatten() {
            let is_described = value.get("description").is_some() || key == "$schema";
            assert!(is_described, "{place}/{key}");
        }
    }
    let schema = proxy_model::schema();
    check("", &schema);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        check(name, definition);
    }
}

/// The known keys of one kind of object.
#[derive(Default)]
struct Keys {
    in_schema: BTreeSet<String>,
    in_sample: BTreeSet<String>,
    in_reader: BTreeSet<String>,
}

struct Visit<'a> {
    schema: &'a Value,
    sample: &'a Value,
    /// By the text of their schema's description, which no two have in common.
    objects: &'a mut BTreeMap<String, Keys>,
}

impl Visit<'_> {
    /// Visits an object of the sample and everything below it.
    fn object(&mut self, pointer: &str, schema: &Value, value: &Value) {
        let Some(entries) = value.as_object() else {
            if let Some(elements) = value.as_array() {
                for (i, element) in elements.iter().enumerate() {
                    let schema = resolve(self.schema, &schema["items"]);
                    self.object(&format!("{pointer}/{i}"), schema, element);
                }
            }
            return;
        };
        let properties = schema["properties"].as_object();
        if let Some(properties) = properties {
            let reader = self.reader_keys(pointer);
            let name = schema["description"].as_str().unwrap().to_owned();
            let keys = self.objects.entry(name).or_default();
            keys.in_schema
                .extend(properties.keys().filter(|key| *key != "$schema").cloned());
            keys.in_sample
                .extend(entries.keys().filter(|key| *key != "$schema").cloned());
            keys.in_reader.extend(reader);
        }
        for (key, value) in entries {
            let below = match properties {
                Some(properties) => &properties[key],
                None => &schema["additionalProperties"],
            };
            let below = resolve(self.schema, below);
            self.object(
                &format!("{pointer}/{}", key.replace('/', "~1")),
                below,
                value,
            );
        }
    }

    /// The keys that the reader names when it finds one that it does not know.
    fn reader_keys(&self, pointer: &str) -> Vec<String> {
        let mut document = self.sample.clone();
        document.pointer_mut(pointer).unwrap()[STRANGER] = json!(1);
        let problems = ProxyConfig::from_json(&document.to_string()).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems}");
        let problem = problems.into_iter().next().unwrap();
        assert_eq!(problem.pointer, format!("{pointer}/{STRANGER}"));
        let names = problem.message.split('`').skip(1).step_by(2);
        names
            .filter(|name| *name != "$schema")
            .map(str::to_owned)
            .collect()
    }
}

/// Follows references and the choice between a value and null.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return resolve(
            root,
            root.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        );
    }
    match schema["anyOf"].as_array() {
        Some(choices) => resolve(root, &choices[0]),
        None => schema,
    }
}

fn section(document: &Node) -> Value {
    value(document.get("ReverseProxy").unwrap())
}

fn value(node: &Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Boolean(boolean) => json!(boolean),
        Node::Number(number) => json!(number),
        Node::Text(text) => json!(text),
        Node::List(nodes) => nodes.iter().map(value).collect(),
        Node::Object(object) => Value::Object(
            object
                .iter()
                .map(|(key, node)| (key.to_owned(), value(node)))
                .collect(),
        ),
    }
}
