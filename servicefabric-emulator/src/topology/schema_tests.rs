//! The JSON Schema of topology files accepts exactly what the reader accepts.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Topology;

const EXAMPLES: [&str; 5] = [
    include_str!("../../topologies/minimal.toml"),
    include_str!("../../topologies/shop.toml"),
    include_str!("../../topologies/partitions.toml"),
    include_str!("../../topologies/broken-labels.toml"),
    include_str!("../../topologies/thousand-services.toml"),
];

fn schema() -> Value {
    serde_json::from_str(include_str!("../../schema/topology.json")).unwrap()
}

/// The definitions, each with a text that has an unknown key there: the reader's error lists the known ones.
const PLACES: &[(&str, &str)] = &[
    ("", "x = 1"),
    ("cluster", "cluster.x = 1"),
    ("application_type", "application_types = [{ x = 1 }]"),
    (
        "service_type",
        "application_types = [{ service_types.A.x = 1 }]",
    ),
    (
        "endpoint",
        "application_types = [{ service_types.A.endpoints.e.x = 1 }]",
    ),
    ("manifest", "application_types = [{ manifests.A.x = 1 }]"),
    (
        "code_package",
        "application_types = [{ manifests.A.code_packages.B.x = 1 }]",
    ),
    ("application", "applications.A.x = 1"),
    ("service", "applications.A.services.B.x = 1"),
    (
        "ranges",
        "applications.A.services.B.partitions.ranges.x = 1",
    ),
    ("behaviour", "behaviours = [{ x = 1 }]"),
];

#[test]
fn the_schema_has_the_keys_that_the_reader_knows() {
    let schema = schema();
    for (definition, text) in PLACES {
        let error = Topology::from_toml(text).unwrap_err().to_string();
        let known: BTreeSet<&str> = match error.split_once("available keys: ") {
            Some((_, listed)) => listed.trim().split(", ").collect(),
            None => {
                let listed = error.split("expected ").nth(1).unwrap_or_default();
                listed.split('`').skip(1).step_by(2).collect()
            }
        };
        let described = if definition.is_empty() {
            &schema
        } else {
            &schema["$defs"][definition]
        };
        let described = described["properties"].as_object().unwrap();
        let described: BTreeSet<&str> = described.keys().map(String::as_str).collect();
        assert!(!known.is_empty(), "{definition}: {error}");
        assert_eq!(described, known, "{definition}");
    }
    // A node has one of two forms, whose keys the reader does not list, so they are taken from the writer.
    let node = serde_json::to_value(super::NodeDescription::default()).unwrap();
    let known: BTreeSet<&String> = node.as_object().unwrap().keys().collect();
    let described = schema["$defs"]["node"]["properties"].as_object().unwrap();
    assert_eq!(described.keys().collect::<BTreeSet<_>>(), known);
}

#[test]
fn what_the_examples_write_is_what_the_schema_describes() {
    let schema = schema();
    for text in EXAMPLES {
        Topology::from_toml(text).unwrap();
        let written: Value = toml::from_str(text).unwrap();
        check(&schema, &schema, &written, "").unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn defaults_are_those_of_the_reader() {
    let schema = schema();
    let described = schema["$defs"]["cluster"]["properties"]
        .as_object()
        .unwrap();
    let mut written = serde_json::Map::new();
    for (key, property) in described {
        // Its default depends on the pace of time.
        if key == "start" {
            continue;
        }
        written.insert(key.clone(), property["default"].clone());
    }
    let text = serde_json::json!({ "cluster": written }).to_string();
    assert_eq!(Topology::from_json(&text).unwrap(), Topology::default());
}

#[test]
fn what_is_wrong_is_not_what_the_schema_describes() {
    let schema = schema();
    for text in [
        "x = 1",
        "cluster.nodes = 0",
        "cluster.nodes = [{ x = 1 }]",
        "cluster.resolve_cache = true",
        "cluster.ports = [1]",
        "application_types = [{}]",
        "application_types = [{ name = \"T\", service_types.W.kind = \"half\" }]",
        "application_types = [{ name = \"T\", service_types.W.labels.A = [1] }]",
        "application_types = [{ name = \"T\", service_types.W.endpoints.e.protocol = \"gopher\" }]",
        "application_types = [{ name = \"T\", service_types.W.endpoints.e.path = \"x\" }]",
        "applications.A = {}",
        "applications.A = { type = \"T\", services.S = { type = \"W\", instances = -2 } }",
        "applications.A = { type = \"T\", services.S = { type = \"W\", partitions.names = [] } }",
        "applications.A = { type = \"T\", services.S = { type = \"W\", partitions = \"two\" } }",
        "behaviours = [{ manifest = \"M\", lives = [{ lasts = 1 }] }]",
    ] {
        let written: Value = toml::from_str(text).unwrap();
        check(&schema, &schema, &written, "").expect_err(text);
    }
}

/// Checks a value against a schema. Supports only the keywords of JSON Schema that this schema uses.
fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    for (word, wanted) in schema.as_object().unwrap() {
        let holds = match word.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" => true,
            "$ref" => {
                let pointer = wanted.as_str().unwrap().trim_start_matches('#');
                check(root, root.pointer(pointer).unwrap(), value, at)?;
                true
            }
            "type" => match wanted {
                Value::Array(names) => names.iter().any(|name| is(value, name)),
                name => is(value, name),
            },
            "anyOf" => {
                let mut forms = wanted.as_array().unwrap().iter();
                forms.any(|form| check(root, form, value, at).is_ok())
            }
            "enum" => wanted.as_array().unwrap().contains(value),
            "const" => wanted == value,
            "minimum" => value.as_f64().is_none_or(|value| value >= number(wanted)),
            "maximum" => value.as_f64().is_none_or(|value| value <= number(wanted)),
            "minLength" => length(value).is_none_or(|length| length >= number(wanted)),
            "maxLength" => length(value).is_none_or(|length| length <= number(wanted)),
            "pattern" => {
                assert_eq!(wanted, "^(/.*)?$");
                let text = value.as_str().unwrap_or_default();
                text.is_empty() || text.starts_with('/')
            }
            "minItems" => items(value).is_none_or(|items| items >= number(wanted)),
            "maxItems" => items(value).is_none_or(|items| items <= number(wanted)),
            "uniqueItems" => value.as_array().is_none_or(|items| {
                let distinct: BTreeSet<String> = items.iter().map(Value::to_string).collect();
                distinct.len() == items.len()
            }),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, item, &format!("{at}[{index}]"))?;
                }
                true
            }
            "required" => value.as_object().is_none_or(|object| {
                let mut names = wanted.as_array().unwrap().iter();
                names.all(|name| object.contains_key(name.as_str().unwrap()))
            }),
            "properties" => {
                for (key, described) in wanted.as_object().unwrap() {
                    if let Some(found) = value.get(key) {
                        check(root, described, found, &format!("{at}.{key}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                for (key, found) in value.as_object().into_iter().flatten() {
                    let at = format!("{at}.{key}");
                    if schema["properties"].get(key).is_none() {
                        if *wanted == Value::Bool(false) {
                            return Err(format!("{at}: there is no such key"));
                        }
                        check(root, wanted, found, &at)?;
                    }
                }
                true
            }
            other => panic!("{at}: the schema says `{other}`"),
        };
        if !holds {
            return Err(format!("{at}: {value} is not {word} {wanted}"));
        }
    }
    Ok(())
}

fn is(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("no type {other}"),
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn length(value: &Value) -> Option<f64> {
    value.as_str().map(|text| text.chars().count() as f64)
}

fn items(value: &Value) -> Option<f64> {
    value.as_array().map(|items| items.len() as f64)
}
