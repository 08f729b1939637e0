//! The configuration that serves, with secrets left out.

use proxy_model::Snapshot;
use serde::Serialize;
use serde_json::{Value, json};

/// What stands in place of a secret.
const REDACTED: &str = "(redacted)";

#[derive(Serialize)]
pub(super) struct ConfigView {
    revision: String,
    #[serde(rename = "ReverseProxy")]
    config: Value,
}

pub(super) fn of(snapshot: &Snapshot) -> ConfigView {
    let mut config = serde_json::to_value(snapshot.config()).unwrap_or_else(|error| {
        // Plain data always serialises.
        json!({ "error": error.to_string() })
    });
    redact(&mut config, None);
    ConfigView {
        revision: snapshot.revision().to_string(),
        config,
    }
}

/// Hides what may be a secret: values whose key sounds like one, passwords in URLs, and values that transforms put into
/// headers that carry credentials.
fn redact(value: &mut Value, key: Option<&str>) {
    match value {
        Value::Object(entries) => {
            let credentials = entries.iter().any(|(key, value)| {
                is_header_transform(key) && value.as_str().is_some_and(sounds_secret)
            });
            for (key, value) in entries.iter_mut() {
                let sets = key.eq_ignore_ascii_case("Set") || key.eq_ignore_ascii_case("Append");
                if credentials && sets {
                    *value = REDACTED.into();
                } else {
                    redact(value, Some(key));
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, key)),
        Value::String(text) => {
            if key.is_some_and(sounds_secret) {
                REDACTED.clone_into(text);
            } else if let Some(hidden) = without_password(text) {
                *text = hidden;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_header_transform(key: &str) -> bool {
    ["RequestHeader", "ResponseHeader", "QueryValueParameter"]
        .iter()
        .any(|name| name.eq_ignore_ascii_case(key))
}

fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let sounds = [
        "password",
        "secret",
        "token",
        "authorization",
        "api-key",
        "apikey",
        "api_key",
        "credential",
        "cookie",
    ];
    // `SessionAffinity.Cookie` and its fields are attributes, not contents.
    name != "cookie"
        && sounds.iter().any(|word| name.contains(word))
        && name != "usedefaultcredentials"
}

/// `text` without the user information of a URL, if it is a URL that has one.
fn without_password(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let (_, host) = authority.rsplit_once('@')?;
    let after = &rest[authority.len()..];
    Some(format!("{scheme}://{REDACTED}@{host}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_hidden() {
        let mut value = json!({
            "Metadata": { "api-key": "k", "team": "blue" },
            "WebProxy": { "Address": "http://user:pass@proxy:3128/x", "UseDefaultCredentials": true },
            "Transforms": [
                { "RequestHeader": "Authorization", "Set": "Basic abc" },
                { "RequestHeader": "X-Team", "Set": "blue" },
            ],
        });
        redact(&mut value, None);
        assert_eq!(
            value,
            json!({
                "Metadata": { "api-key": REDACTED, "team": "blue" },
                "WebProxy": {
                    "Address": "http://(redacted)@proxy:3128/x",
                    "UseDefaultCredentials": true
                },
                "Transforms": [
                    { "RequestHeader": "Authorization", "Set": REDACTED },
                    { "RequestHeader": "X-Team", "Set": "blue" },
                ],
            })
        );
    }
}
