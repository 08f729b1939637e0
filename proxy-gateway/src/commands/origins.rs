//! The values of a configuration with their origins, for `check --origins`.

use std::fmt::Write;

use proxy_model::json::{Layered, Node};
use proxy_runtime::admin::redact;
use serde::Serialize;
use serde_json::Value;

use crate::check::SECTION;
use crate::settings::sections::{Kinship, kinship};

/// The placeholder for a secret.
const REDACTED: &str = "(redacted)";

/// Endings of keys that sound like secrets and hold the name of one, or the place where it is.
const NAMES: [&str; 5] = ["File", "Path", "Policy", "Name", "Provider"];

/// A value and its origin.
#[derive(Serialize)]
pub(super) struct Shown {
    pointer: String,
    value: Value,
    origin: String,
    /// The layers below that have a value there too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    over: Vec<String>,
}

/// Returns the values of our sections, without secrets.
pub(super) fn values(document: &Layered) -> Vec<Shown> {
    let mut shown = to_value(&document.node);
    hide_by_key(&mut shown);
    if let Value::Object(root) = &mut shown {
        let is_ours = |key: &str| proxy_model::same_id(key, SECTION);
        let section = root.iter_mut().find(|(key, _)| is_ours(key));
        if let Some((_, section)) = section {
            redact(section);
        }
    }
    let all = document.values().into_iter();
    let ours = all.filter(|value| {
        let section = value.pointer.split('/').nth(1).unwrap_or_default();
        matches!(kinship(section), Kinship::Ours)
    });
    ours.map(|value| Shown {
        // Something that was hidden as a whole has no values in it.
        value: shown
            .pointer(&value.pointer)
            .cloned()
            .unwrap_or_else(|| REDACTED.into()),
        pointer: value.pointer,
        origin: value.origin,
        over: value.over,
    })
    .collect()
}

/// Formats values for people, one per line.
pub(super) fn readable(values: &[Shown]) -> String {
    let mut text = String::new();
    for value in values {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{} = {}  ({}",
            value.pointer, value.value, value.origin
        );
        if !value.over.is_empty() {
            let _ = write!(text, ", over {}", value.over.join(" and "));
        }
        text.push_str(")\n");
    }
    text
}

fn to_value(node: &Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Boolean(value) => (*value).into(),
        Node::Number(number) => Value::Number(number.clone()),
        Node::Text(text) => text.as_str().into(),
        Node::List(nodes) => nodes.iter().map(to_value).collect(),
        Node::Object(object) => Value::Object(
            object
                .iter()
                .map(|(key, node)| (key.to_owned(), to_value(node)))
                .collect(),
        ),
    }
}

/// Hides values whose keys sound like secrets: `AuthKey`, `Token`.
fn hide_by_key(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    // Their keys are names of users, which say nothing about their values.
                    Value::Object(users) if key.eq_ignore_ascii_case("Users") => {
                        users.values_mut().for_each(|user| *user = REDACTED.into());
                    }
                    Value::Object(_) => hide_by_key(value),
                    _ if sounds_secret(key) => *value = REDACTED.into(),
                    _ => hide_by_key(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide_by_key),
        _ => {}
    }
}

fn sounds_secret(key: &str) -> bool {
    let is_name = NAMES.iter().any(|end| {
        let start = key.len().checked_sub(end.len());
        start
            .and_then(|start| key.get(start..))
            .is_some_and(|tail| tail.eq_ignore_ascii_case(end))
    });
    let key = key.to_ascii_lowercase();
    let words = [
        "authkey",
        "credential",
        "passphrase",
        "passw",
        "secret",
        "token",
        "apikey",
    ];
    let is_key = key.ends_with("keys") || key == "key";
    !is_name && (is_key || words.iter().any(|word| key.contains(word)))
}

#[cfg(test)]
mod tests {
    use proxy_model::json::{Layer, Setting};

    use super::*;

    fn shown(file: &str, settings: &[(&str, &str)]) -> String {
        let setting = |(key, value): &(&str, &str)| Setting {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
            origin: format!("variable {}", key.replace(':', "__")),
        };
        let layers = vec![
            Layer::File {
                name: "a.json".to_owned(),
                text: file.to_owned(),
            },
            Layer::Settings(settings.iter().map(setting).collect()),
        ];
        readable(&values(&Layered::new(layers).unwrap()))
    }

    #[test]
    fn values_are_shown_with_the_layers_that_have_them() {
        let text = shown(
            "{ \"ReverseProxy\": { \"Routes\": { \"r\": {\n\"Order\": 1, \"ClusterId\": \"c\" } } }, \"Logging\": 1 }",
            &[("ReverseProxy:Routes:R:order", "2")],
        );
        assert_eq!(
            text,
            "/ReverseProxy/Routes/r/Order = \"2\"  (variable ReverseProxy__Routes__R__order, over a.json:2)\n\
             /ReverseProxy/Routes/r/ClusterId = \"c\"  (a.json:2)\n"
        );
    }

    /// Secrets must not show, whichever layer they come from and however the keys are spelled.
    #[test]
    fn secrets_do_not_show() {
        let text = shown(
            r#"{
                "reverseproxy": {
                    "routes": { "r": { "transforms": [ { "requestheader": "Authorization", "set": "hunter2" } ],
                        "metadata": { "api-key": "hunter2" } } },
                    "clusters": { "c": { "HttpClient": { "WebProxy": { "Address": "http://user:hunter2@proxy" } } } }
                },
                "SerfDiscovery": { "AuthKey": "hunter2", "AuthKeyFile": "/run/key" },
                "Server": { "AffinityKeys": ["hunter2"] },
                "ConsulDiscovery": { "token": "hunter2" },
                "Policies": { "Authorization": { "s": { "Basic": { "users": { "ann": "hunter2" } } } } }
            }"#,
            &[
                ("ReverseProxy:Routes:r:Match:Headers:0:Name", "X-Api-Key"),
                ("ReverseProxy:Routes:r:Match:Headers:0:Values:0", "hunter2"),
                ("ReverseProxy:Routes:r:Match:Headers:0:Values:4", "hunter2"),
                ("ReverseProxy:Routes:r:Transforms:0:Append", "hunter2"),
                ("ServiceFabricDiscovery:Security:Token", "hunter2"),
                ("Policies:Authorization:s:Basic:Users:bob", "hunter2"),
            ],
        );
        assert!(!text.contains("hunter2"), "{text}");
        assert!(
            text.contains("/SerfDiscovery/AuthKeyFile = \"/run/key\""),
            "{text}"
        );
        assert!(
            text.contains("/SerfDiscovery/AuthKey = \"(redacted)\"  (a.json:7)"),
            "{text}"
        );
    }
}
