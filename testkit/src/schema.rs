//! Checks of JSON documents against their published JSON Schema.

use std::collections::BTreeSet;

use serde_json::Value;

/// Checks a value against a schema. Supports the keywords of JSON Schema that the schemas of this
/// project use; the only supported `pattern` is `^(/.*)?$`.
///
/// # Errors
///
/// Returns the first location that violates the schema.
///
/// # Panics
///
/// Panics if the schema has an unknown keyword, or refers to a missing definition.
pub fn check(schema: &Value, value: &Value) -> Result<(), String> {
    Checker { root: schema }.check(schema, value, "")
}

struct Checker<'s> {
    root: &'s Value,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let words = schema.as_object().expect("a schema is an object");
        for (word, wanted) in words {
            let holds = match word.as_str() {
                "items" | "properties" | "additionalProperties" | "$ref" => {
                    self.check_below(schema, word, value, at)?;
                    true
                }
                "anyOf" => {
                    let mut forms = list(wanted).iter();
                    forms.any(|form| self.check(form, value, at).is_ok())
                }
                word => holds(word, wanted, value)
                    .unwrap_or_else(|| panic!("{at}: the schema says `{word}`")),
            };
            if !holds {
                return Err(format!("{at}: {value} is not {word} {wanted}"));
            }
        }
        Ok(())
    }

    /// Checks the members of a value, or the value against a definition.
    fn check_below(
        &self,
        schema: &Value,
        word: &str,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let wanted = &schema[word];
        match word {
            "$ref" => {
                let pointer = wanted.as_str().expect("a reference is a text");
                let pointer = pointer.trim_start_matches('#');
                let definition = self.root.pointer(pointer).expect("a definition");
                self.check(definition, value, at)?;
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(wanted, item, &format!("{at}[{index}]"))?;
                }
            }
            _ => {
                for (key, found) in value.as_object().into_iter().flatten() {
                    let at = format!("{at}.{key}");
                    let own = schema["properties"].get(key);
                    match (word, own) {
                        ("properties", Some(described)) => self.check(described, found, &at)?,
                        ("properties", None) | (_, Some(_)) => {}
                        (_, None) if *wanted == Value::Bool(false) => {
                            return Err(format!("{at}: there is no such key"));
                        }
                        (_, None) => self.check(wanted, found, &at)?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns true if a value satisfies a keyword that concerns only the value itself. Returns `None`
/// if the keyword is unknown.
fn holds(word: &str, wanted: &Value, value: &Value) -> Option<bool> {
    let number = |value: &Value| value.as_f64();
    let limit = || number(wanted).expect("a limit is a number");
    let length = value.as_str().map(|text| text.chars().count() as f64);
    let items = value.as_array().map(|items| items.len() as f64);
    Some(match word {
        "$schema" | "$defs" | "title" | "description" | "default" => true,
        "type" => match wanted {
            Value::Array(names) => names.iter().any(|name| is(value, name)),
            name => is(value, name),
        },
        "enum" => list(wanted).contains(value),
        "const" => wanted == value,
        "minimum" => number(value).is_none_or(|value| value >= limit()),
        "maximum" => number(value).is_none_or(|value| value <= limit()),
        "minLength" => length.is_none_or(|length| length >= limit()),
        "maxLength" => length.is_none_or(|length| length <= limit()),
        "minItems" => items.is_none_or(|items| items >= limit()),
        "maxItems" => items.is_none_or(|items| items <= limit()),
        "uniqueItems" => value.as_array().is_none_or(|items| {
            let distinct: BTreeSet<String> = items.iter().map(Value::to_string).collect();
            distinct.len() == items.len()
        }),
        "pattern" => {
            assert_eq!(wanted, "^(/.*)?$");
            let text = value.as_str().unwrap_or_default();
            text.is_empty() || text.starts_with('/')
        }
        "required" => value.as_object().is_none_or(|object| {
            let mut names = list(wanted).iter().filter_map(Value::as_str);
            names.all(|name| object.contains_key(name))
        }),
        _ => return None,
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn is(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap_or_default() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("no type {other}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check;

    #[test]
    fn a_value_is_what_every_word_says() {
        let schema = json!({
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"type": ["integer", "null"], "minimum": 1}, "b": {"$ref": "#/$defs/names"}},
            "additionalProperties": false,
            "$defs": {"names": {"type": "array", "items": {"type": "string", "maxLength": 2}, "minItems": 1}},
        });
        for good in [json!({"a": 1}), json!({"a": null, "b": ["xy"]})] {
            assert_eq!(check(&schema, &good), Ok(()), "{good}");
        }
        for (bad, place) in [
            (json!([]), ": [] is not type"),
            (json!({}), "is not required"),
            (json!({"a": 0}), ".a: 0 is not minimum 1"),
            (json!({"a": "1"}), ".a: \"1\" is not type"),
            (json!({"a": 1, "b": []}), ".b: [] is not minItems 1"),
            (
                json!({"a": 1, "b": ["x", "xyz"]}),
                ".b[1]: \"xyz\" is not maxLength 2",
            ),
            (json!({"a": 1, "c": 1}), ".c: there is no such key"),
        ] {
            let error = check(&schema, &bad).expect_err("it is something else");
            assert!(error.contains(place), "{bad}: {error}");
        }
        let either = json!({"anyOf": [{"const": 1}, {"enum": ["x"]}]});
        assert_eq!(check(&either, &json!("x")), Ok(()));
        check(&either, &json!("y")).expect_err("it is neither");
    }
}
