//! The JSON Schema of topology files accepts exactly what the reader accepts.

use std::collections::BTreeSet;

use serde_json::Value;
use testkit::schema::check;

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
        check(&schema, &written).unwrap_or_else(|error| panic!("{error}"));
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
        check(&schema, &written).expect_err(text);
    }
}
