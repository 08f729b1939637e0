//! The differences between two documents.

use serde::Serialize;
use serde_json::Value;

use super::FieldChange;

/// Returns the fields in which `after` differs from `before`. Named parts of lists are compared by name.
pub(super) fn fields<T: Serialize>(before: Option<&T>, after: &T) -> Vec<FieldChange> {
    // Resources are maps with text keys, which always serialise.
    let value = |resource: &T| serde_json::to_value(resource).unwrap_or_default();
    let mut changes = Vec::new();
    let before = before.map_or_else(|| Value::Object(serde_json::Map::new()), value);
    compare("", &before, &value(after), &mut changes);
    changes
}

fn compare(path: &str, before: &Value, after: &Value, changes: &mut Vec<FieldChange>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                match new.get(key) {
                    Some(other) => compare(&join(path, key), value, other, changes),
                    None => changes.push(change(join(path, key), Some(value), None)),
                }
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                // A new part is reported as one change, a whole resource field by field.
                if value.is_object() && path.is_empty() {
                    compare(
                        &join(path, key),
                        &Value::Object(serde_json::Map::new()),
                        value,
                        changes,
                    );
                } else {
                    changes.push(change(join(path, key), None, Some(value)));
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if are_named(old) && are_named(new) => {
            lists(path, old, new, changes);
        }
        (old, new) if old != new => {
            changes.push(change(path.to_owned(), Some(old), Some(new)));
        }
        _ => {}
    }
}

fn lists(path: &str, old: &[Value], new: &[Value], changes: &mut Vec<FieldChange>) {
    let mut by_name: std::collections::HashMap<String, &Value> = old
        .iter()
        .filter_map(|part| Some((name(part)?.to_ascii_lowercase(), part)))
        .collect();
    let mut added = Vec::new();
    for part in new {
        let Some(name) = name(part) else { continue };
        let here = format!("{path}[{name}]");
        match by_name.remove(&name.to_ascii_lowercase()) {
            Some(before) => compare(&here, before, part, changes),
            None => added.push(change(here, None, Some(part))),
        }
    }
    for part in old {
        let Some(name) = name(part) else { continue };
        if by_name.contains_key(&name.to_ascii_lowercase()) {
            changes.push(change(format!("{path}[{name}]"), Some(part), None));
        }
    }
    changes.append(&mut added);
}

fn are_named(list: &[Value]) -> bool {
    list.iter().all(|part| name(part).is_some())
}

fn name(part: &Value) -> Option<&str> {
    part.get("name")?.as_str()
}

/// Joins a path and a key. `properties` is omitted, since it is in every path.
fn join(path: &str, key: &str) -> String {
    match (path, key) {
        ("", key) => key.to_owned(),
        (path, "properties") => path.to_owned(),
        ("properties", key) => key.to_owned(),
        (path, key) => format!("{path}.{key}"),
    }
}

fn change(path: String, from: Option<&Value>, to: Option<&Value>) -> FieldChange {
    FieldChange {
        path,
        from: from.cloned(),
        to: to.cloned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fields;

    #[test]
    fn parts_are_compared_by_name() {
        let before = json!({"name": "lb", "properties": {"rules": [
            {"name": "a", "properties": {"port": 1}}, {"name": "b", "properties": {"port": 2}}
        ]}});
        let after = json!({"name": "lb", "properties": {"rules": [
            {"name": "C", "properties": {"port": 3}}, {"name": "A", "properties": {"port": 9}}
        ]}});
        let told: Vec<_> = fields(Some(&before), &after)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            told,
            [
                r#"~ rules[A].name: "a" -> "A""#,
                "~ rules[A].port: 1 -> 9",
                r#"- rules[b]: {"name":"b","properties":{"port":2}}"#,
                r#"+ rules[C]: {"name":"C","properties":{"port":3}}"#,
            ]
        );
    }

    #[test]
    fn what_is_new_is_told_field_by_field() {
        let after = json!({"name": "ip", "properties": {"method": "Static", "tags": {"a": "b"}}});
        let told: Vec<_> = fields(None, &after)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            told,
            [
                r#"+ name: "ip""#,
                r#"+ method: "Static""#,
                r#"+ tags: {"a":"b"}"#
            ]
        );
    }
}
