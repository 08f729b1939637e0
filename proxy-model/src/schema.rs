//! The JSON Schema of the section `ReverseProxy`.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::config::ProxyConfig;
use crate::transform::transform_keys;

/// The JSON Schema (draft 2020-12) of the section `ReverseProxy`, for editors.
///
/// It is stricter than the reader: keys and names are in the usual case, and numbers are not in quotes.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<ProxyConfig>().to_value();
    close_objects(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), json!("ReverseProxy"));
        if let Some(Value::Object(keys)) = root.get_mut("properties") {
            keys.insert("$schema".to_owned(), json!({ "type": "string" }));
        }
    }
    schema
}

/// Rejects unknown keys, like the reader, in each object with listed keys.
fn close_objects(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), json!(false));
            }
            map.values_mut().for_each(close_objects);
        }
        Value::Array(values) => values.iter_mut().for_each(close_objects),
        _ => {}
    }
}

/// A transform in the schema.
pub(crate) struct Transform;

impl JsonSchema for Transform {
    fn schema_name() -> Cow<'static, str> {
        "Transform".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let keys: Vec<&str> = transform_keys().into_iter().collect();
        json_schema!({
            "description": "One transform: a key that says which, and the keys that go with it.",
            "type": "object",
            "propertyNames": { "enum": keys },
            "additionalProperties": { "type": ["string", "boolean", "number"] },
            "minProperties": 1
        })
    }
}

/// A list of TLS versions in the schema.
pub(crate) struct SslProtocols;

impl JsonSchema for SslProtocols {
    fn schema_name() -> Cow<'static, str> {
        "SslProtocols".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "array", "items": { "enum": ["None", "Tls12", "Tls13"] } },
                { "type": "string" }
            ]
        })
    }
}

/// An HTTP version in the schema.
pub(crate) struct HttpVersionName;

impl JsonSchema for HttpVersionName {
    fn schema_name() -> Cow<'static, str> {
        "HttpVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A version of HTTP.",
            "enum": ["1.0", "1.1", "2", "2.0", "3", "3.0"]
        })
    }
}
