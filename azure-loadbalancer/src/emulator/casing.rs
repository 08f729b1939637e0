//! Random letter case of ids, as Azure writes them at times.

use serde_json::Value;

/// Changes the letter case of references to other resources, each at random.
///
/// The resource's own id, and those of its parts, stay.
pub(super) fn scramble(value: &mut Value, random: &mut fastrand::Rng) {
    scramble_inside(&mut value["properties"], random, false);
}

fn scramble_inside(value: &mut Value, random: &mut fastrand::Rng, is_part: bool) {
    match value {
        Value::Array(items) => {
            for item in items {
                scramble_inside(item, random, true);
            }
        }
        Value::Object(fields) => {
            // A part has a name; a reference has only an id.
            let is_reference = !(is_part && fields.contains_key("name"));
            for (name, field) in fields {
                match field {
                    Value::String(id) if name == "id" && is_reference => {
                        *id = in_some_case(id, random)
                    }
                    _ => scramble_inside(field, random, false),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn in_some_case(id: &str, random: &mut fastrand::Rng) -> String {
    let segments = id.split('/').map(|segment| match random.u8(0..4) {
        0 => segment.to_ascii_uppercase(),
        1 => segment.to_ascii_lowercase(),
        _ => segment.to_owned(),
    });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_references_change_and_only_their_case() {
        let original = json!({
            "id": "/Subscriptions/S/lb", "name": "lb",
            "properties": { "rules": [{
                "id": "/Subscriptions/S/lb/rules/R", "name": "R",
                "properties": { "probe": { "id": "/Subscriptions/S/lb/probes/P" }, "pools": [{ "id": "/A/B" }] },
            }] },
        });
        let mut random = fastrand::Rng::with_seed(7);
        let mut changed = false;
        for _ in 0..20 {
            let mut value = original.clone();
            scramble(&mut value, &mut random);
            changed |= value != original;
            assert_eq!(value["id"], original["id"]);
            let (rule, before) = (
                &value["properties"]["rules"][0],
                &original["properties"]["rules"][0],
            );
            assert_eq!(rule["id"], before["id"]);
            assert_eq!(
                value.to_string().to_lowercase(),
                original.to_string().to_lowercase()
            );
        }
        assert!(changed);
    }
}
