//! `/api/v1/config`: the active configuration without secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use proxy_model::Snapshot;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::status::secret::{REDACTED, sounds_secret};
use crate::status::shown_url::shown_url;

#[derive(Serialize)]
pub(super) struct ConfigView {
    revision: String,
    #[serde(rename = "ReverseProxy")]
    config: Value,
    /// Names of policies by section. Their settings may hold secrets.
    #[serde(rename = "Policies", skip_serializing_if = "BTreeMap::is_empty")]
    policies: BTreeMap<&'static str, Vec<Arc<str>>>,
}

pub(super) fn of(snapshot: &Snapshot) -> ConfigView {
    let mut config = serde_json::to_value(snapshot.config()).unwrap_or_else(|error| {
        // Plain data always serialises.
        json!({ "error": error.to_string() })
    });
    redact(&mut config);
    let mut policies = BTreeMap::<_, Vec<_>>::new();
    for policy in snapshot.config().policies.iter() {
        let of_section = policies.entry(policy.kind.section()).or_default();
        of_section.push(Arc::clone(&policy.name));
    }
    ConfigView {
        revision: snapshot.revision().to_string(),
        config,
        policies,
    }
}

/// Returns a part of the configuration without secrets.
pub(super) fn of_part(part: &impl Serialize) -> Value {
    // Plain data always serialises.
    let mut part = serde_json::to_value(part).unwrap_or_default();
    redact(&mut part);
    part
}

/// Replaces possible secrets of a configuration with a placeholder. These are values of headers, query
/// parameters and metadata whose names sound like secrets, and credentials in URLs and query strings.
pub fn redact(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            // A name decides about the values next to it.
            let is_secret = names_secret(entries);
            let key = entries
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case("Key"));
            let has_secret_key = key.is_some_and(|(_, key)| keys_secret(key));
            for (key, value) in entries.iter_mut() {
                match value {
                    value if is_secret && is_content(key) => hide(value),
                    value if has_secret_key && key.eq_ignore_ascii_case("Partitions") => {
                        hide_names(value)
                    }
                    Value::Object(metadata) if key.eq_ignore_ascii_case("Metadata") => {
                        for (name, value) in metadata {
                            if sounds_secret(name) {
                                hide(value);
                            } else {
                                redact(value);
                            }
                        }
                    }
                    value => redact(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        // Any text may be a URL with credentials.
        Value::String(text) => *text = shown_url(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// True if this object is a condition on, or a transform of, a field whose name sounds like a
/// secret.
fn names_secret(entries: &Map<String, Value>) -> bool {
    entries.iter().any(|(key, value)| {
        let names = [
            "Name",
            "RequestHeader",
            "ResponseHeader",
            "ResponseTrailer",
            "QueryValueParameter",
        ];
        names.iter().any(|name| name.eq_ignore_ascii_case(key))
            && value.as_str().is_some_and(sounds_secret)
    })
}

/// True if the partition key is a header or query parameter whose name sounds like a secret.
fn keys_secret(key: &Value) -> bool {
    let names = ["Header", "QueryParameter"];
    let is_name = |key: &str| names.iter().any(|name| name.eq_ignore_ascii_case(key));
    let mut entries = key.as_object().into_iter().flatten();
    entries.any(|(key, value)| is_name(key) && value.as_str().is_some_and(sounds_secret))
}

/// Hides the names of partitions: they are the values that keys of requests must equal.
fn hide_names(partitions: &mut Value) {
    for partition in partitions.as_array_mut().into_iter().flatten() {
        for (key, name) in partition.as_object_mut().into_iter().flatten() {
            if key.eq_ignore_ascii_case("Name") {
                hide(name);
            }
        }
    }
}

/// True if this key of a condition or transform holds the value of the named field.
fn is_content(key: &str) -> bool {
    ["Values", "Set", "Append"]
        .iter()
        .any(|name| name.eq_ignore_ascii_case(key))
}

fn hide(value: &mut Value) {
    match value {
        // A condition may list several values.
        Value::Array(items) => items.iter_mut().for_each(hide),
        value => *value = REDACTED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_there_by_name() {
        use proxy_model::config::{PolicyConfig, PolicyConfigs, PolicyKind, ProxyConfig};
        let mut config = ProxyConfig::default();
        let mut policies = PolicyConfigs::default();
        for (kind, name) in [
            (PolicyKind::Authorization, "staff"),
            (PolicyKind::RateLimiter, "few"),
            (PolicyKind::Authorization, "Fallback"),
        ] {
            policies.insert(PolicyConfig {
                kind,
                name: name.into(),
                settings: json!({ "users": { "ann": "$2b$04$secret" } }),
                timeout: None,
            });
        }
        config.policies = Arc::new(policies);
        let (snapshot, _) = Snapshot::compile(config, &Default::default()).unwrap();
        let view = serde_json::to_value(of(&snapshot)).unwrap();
        assert_eq!(
            view["Policies"],
            json!({ "Authorization": ["staff", "Fallback"], "RateLimiter": ["few"] })
        );
        let view = serde_json::to_value(of(&Snapshot::default())).unwrap();
        assert_eq!(view.get("Policies"), None);
    }

    #[test]
    fn what_may_be_a_secret_is_hidden() {
        let mut value = json!({
            "AuthorizationPolicy": "staff",
            "Metadata": { "api-key": "k", "team": "blue" },
            "Match": {
                "Headers": [
                    { "Name": "X-Api-Key", "Values": ["k", "l"] },
                    { "Name": "X-Canary", "Values": ["1"] },
                ],
                "QueryParameters": [{ "Name": "token", "Values": ["t"] }],
            },
            "HealthCheck": { "Active": { "Path": "/health", "Query": "?token=x&deep=1" } },
            "SessionAffinity": { "AffinityKeyName": "k", "Cookie": { "Path": "/" } },
            "WebProxy": { "Address": "http://user:pass@proxy:3128/x" },
            "PartitionedClusters": {
                "Key": { "Header": "X-Api-Key" },
                "Partitions": [{ "ClusterId": "c", "Name": "k" }],
            },
            "Transforms": [
                { "RequestHeader": "Authorization", "Set": "Basic abc" },
                { "requestheader": "X-Auth", "append": "abc" },
                { "RequestHeader": "X-Team", "Set": "blue" },
                { "QueryValueParameter": "sig", "Set": "abc" },
            ],
        });
        redact(&mut value);
        assert_eq!(
            value,
            json!({
                "AuthorizationPolicy": "staff",
                "Metadata": { "api-key": REDACTED, "team": "blue" },
                "Match": {
                    "Headers": [
                        { "Name": "X-Api-Key", "Values": [REDACTED, REDACTED] },
                        { "Name": "X-Canary", "Values": ["1"] },
                    ],
                    "QueryParameters": [{ "Name": "token", "Values": [REDACTED] }],
                },
                "HealthCheck": { "Active": { "Path": "/health", "Query": "?token=(redacted)&deep=1" } },
                "SessionAffinity": { "AffinityKeyName": "k", "Cookie": { "Path": "/" } },
                "WebProxy": { "Address": "http://(redacted)@proxy:3128/x" },
                "PartitionedClusters": {
                    "Key": { "Header": "X-Api-Key" },
                    "Partitions": [{ "ClusterId": "c", "Name": REDACTED }],
                },
                "Transforms": [
                    { "RequestHeader": "Authorization", "Set": REDACTED },
                    { "requestheader": "X-Auth", "append": REDACTED },
                    { "RequestHeader": "X-Team", "Set": "blue" },
                    { "QueryValueParameter": "sig", "Set": REDACTED },
                ],
            })
        );
    }
}
