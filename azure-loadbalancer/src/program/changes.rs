//! Differences for people: names in place of ids, without fields that only the resource manager uses.

use azure_loadbalancer::plan::FieldChange;
use serde_json::Value;

/// The width of a line, and the maximum number of listed values.
const WIDTH: usize = 100;
const SHOWN: usize = 8;
/// The fields that do not interest a reader of a plan.
const NOISE: [&str; 6] = [
    "id",
    "etag",
    "type",
    "provisioningState",
    "resourceGuid",
    "name",
];

/// Returns the lines of a difference. Empty if it is irrelevant to a reader.
pub(super) fn lines(change: &FieldChange) -> Vec<String> {
    let field = change.path.rsplit('.').next().unwrap_or_default();
    if NOISE.contains(&field) {
        return Vec::new();
    }
    let path = &change.path;
    let shown = |value: &Value| brief(value);
    let text = match (&change.from, &change.to) {
        (None, Some(to)) if is_nothing(to) => return Vec::new(),
        (None, Some(to)) => format!("+ {path}: {}", shown(to)),
        // The former content of a removed part is not listed.
        (Some(Value::Object(_)), None) => format!("- {path}"),
        (Some(from), None) => format!("- {path}: {}", shown(from)),
        (Some(Value::Array(from)), Some(Value::Array(to))) => {
            format!("~ {path}: {}", between(from, to))
        }
        (Some(from), Some(to)) => format!("~ {path}: {} -> {}", shown(from), shown(to)),
        (None, None) => format!("  {path}"),
    };
    wrapped(&text)
}

/// Returns a value in a few words.
pub(super) fn brief(value: &Value) -> String {
    match value {
        Value::String(text) => last_of_id(text).to_owned(),
        Value::Array(items) => list(items.iter()),
        Value::Object(fields) => {
            if let (Some(Value::String(id)), 1) = (fields.get("id"), fields.len()) {
                return last_of_id(id).to_owned();
            }
            let mut shown = Vec::new();
            for (key, field) in fields {
                match field {
                    _ if NOISE.contains(&key.as_str()) || is_nothing(field) => {}
                    Value::Object(_) if key == "properties" => shown.push(brief(field)),
                    Value::Object(inner) if !inner.contains_key("id") => {
                        shown.push(format!("{key} ({})", brief(field)));
                    }
                    _ => shown.push(format!("{key} {}", brief(field))),
                }
            }
            let named = fields.get("name").and_then(Value::as_str);
            match (named, shown.is_empty()) {
                (Some(name), true) => name.to_owned(),
                (_, _) => shown.join(", "),
            }
        }
        other => other.to_string(),
    }
}

/// Describes which values are added and removed.
fn between(from: &[Value], to: &[Value]) -> String {
    let gone: Vec<_> = from.iter().filter(|one| !to.contains(one)).collect();
    let new: Vec<_> = to.iter().filter(|one| !from.contains(one)).collect();
    match (gone.is_empty(), new.is_empty()) {
        (true, true) => "in another order".to_owned(),
        (true, false) => format!("with {}", list(new.into_iter())),
        (false, true) => format!("without {}", list(gone.into_iter())),
        (false, false) => format!(
            "with {}, without {}",
            list(new.into_iter()),
            list(gone.into_iter())
        ),
    }
}

fn list<'v>(values: impl ExactSizeIterator<Item = &'v Value>) -> String {
    let more = values.len().saturating_sub(SHOWN);
    let mut shown: Vec<_> = values.take(SHOWN).map(named).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(" ")
}

/// Returns a part of a list with its name, if it has one.
fn named(value: &Value) -> String {
    match value.get("name").and_then(Value::as_str) {
        Some(name) if brief(value) != name => format!("{name} ({})", brief(value)),
        _ => brief(value),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        _ => false,
    }
}

fn last_of_id(text: &str) -> &str {
    match text.starts_with("/subscriptions/") {
        true => text.rsplit('/').next().unwrap_or(text),
        false => text,
    }
}

/// Wraps a text to readable lines, with the continuation lines indented.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let length = line.chars().count() + word.chars().count();
        if !line.is_empty() && length >= WIDTH {
            lines.push(std::mem::take(&mut line));
            line.push_str("     ");
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(path: &str, from: Option<Value>, to: Option<Value>) -> Vec<String> {
        let path = path.to_owned();
        lines(&FieldChange { path, from, to })
    }

    #[test]
    fn ids_are_names_and_etags_are_left_out() {
        let id =
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/publicIPAddresses/web";
        let part = json!({"name": "a", "etag": "W/1", "id": id, "properties": {
            "frontendPort": 80, "provisioningState": "Succeeded", "publicIPAddress": {"id": id}, "probes": []}});
        assert_eq!(
            change("frontends[a]", None, Some(part.clone())),
            ["+ frontends[a]: frontendPort 80, publicIPAddress web"]
        );
        assert_eq!(change("frontends[a]", Some(part), None), ["- frontends[a]"]);
        assert_eq!(change("etag", Some(json!("a")), Some(json!("b"))), [""; 0]);
        assert_eq!(
            change(
                "frontend.publicIPAddress.id.x",
                Some(json!(id)),
                Some(json!("b"))
            ),
            ["~ frontend.publicIPAddress.id.x: web -> b"]
        );
        assert_eq!(
            change("to", Some(json!(["1", "2"])), Some(json!(["2", "3"]))),
            ["~ to: with 3, without 1"]
        );
    }

    #[test]
    fn no_line_is_long_and_no_list_is() {
        let many: Vec<_> = (0..1_000).map(|n| format!("10.0.{n}.0/24")).collect();
        let lines = change("rule.sources", None, Some(json!(many)));
        assert!(lines.len() > 1, "{lines:?}");
        assert!(
            lines.iter().all(|line| line.len() <= WIDTH + 8),
            "{lines:?}"
        );
        assert!(
            lines.last().is_some_and(|line| line.ends_with("992 more")),
            "{lines:?}"
        );
    }
}
