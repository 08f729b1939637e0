//! Reading of untrusted JSON, without panics.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::rejection::Rejection;

pub(super) type Object = Map<String, Value>;

/// The maximum length of a resource name, which has letters, digits and `_.-`.
const LONGEST_NAME: usize = 80;

/// Parses a body as an object.
pub(super) fn object(bytes: &[u8]) -> Result<Object, Rejection> {
    let invalid = |message: String| Rejection::bad("InvalidRequestContent", message);
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(invalid("The request content is not an object.".to_owned())),
        Err(error) => Err(invalid(format!(
            "The request content was invalid and could not be deserialized: {error}."
        ))),
    }
}

/// Returns the object at `name`, created if it is missing.
pub(super) fn object_at<'a>(from: &'a mut Object, name: &str) -> Result<&'a mut Object, Rejection> {
    let slot = from.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Object::new());
    }
    slot.as_object_mut().ok_or_else(|| {
        Rejection::bad(
            "InvalidRequestFormat",
            format!("`{name}` is not an object."),
        )
    })
}

/// Returns the `id` of a reference: `{"id": "…"}`.
pub(super) fn id_of(reference: &Value) -> Option<&str> {
    reference["id"].as_str()
}

/// Returns the form in which ids are compared.
pub(super) fn key(id: &str) -> String {
    id.trim_end_matches('/').to_ascii_lowercase()
}

/// Returns the children of `properties` in the list `collection`.
pub(super) fn children<'a>(resource: &'a Value, collection: &str) -> &'a [Value] {
    resource["properties"][collection]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

/// Returns the name of a child. Empty if it has none.
pub(super) fn name(child: &Value) -> &str {
    child["name"].as_str().unwrap_or_default()
}

/// Keeps only the fields of each child that a client may write. Checks that names are present, valid and
/// unique.
pub(super) fn tidy_children(
    properties: &mut Object,
    collection: &str,
    server_set: &[&str],
) -> Result<(), Rejection> {
    let invalid = |message: String| Rejection::bad("InvalidRequestFormat", message);
    let slot = properties.entry(collection).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Array(Vec::new());
    }
    let Some(items) = slot.as_array_mut() else {
        return Err(invalid(format!("`{collection}` is not a list.")));
    };
    let mut names = BTreeSet::new();
    for item in items {
        let Some(child) = item.as_object_mut() else {
            return Err(invalid(format!(
                "`{collection}` has an item that is no object."
            )));
        };
        let name = child
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        check_name(name)?;
        if !names.insert(name.to_ascii_lowercase()) {
            let message = format!("`{collection}` has two items named `{name}`.");
            return Err(Rejection::bad("InvalidRequestFormat", message)
                .with_detail("DuplicateResourceName", format!("`{name}` is used twice.")));
        }
        for key in ["id", "etag", "type"] {
            child.remove(key);
        }
        let inner = object_at(child, "properties")?;
        inner.remove("provisioningState");
        for key in server_set {
            inner.remove(*key);
        }
        drop_nulls(inner);
    }
    Ok(())
}

/// Removes `null` values, which clients write for unset fields.
pub(super) fn drop_nulls(object: &mut Object) {
    object.retain(|_, value| !value.is_null());
}

/// Checks that Azure accepts a name.
pub(super) fn check_name(name: &str) -> Result<(), Rejection> {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let is_valid = (1..=LONGEST_NAME).contains(&name.len())
        && name.chars().all(inner)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if is_valid {
        return Ok(());
    }
    let message = format!(
        "Resource name `{name}` is invalid. The name can be up to {LONGEST_NAME} characters long. It must begin with a word \
         character, and it must end with a word character. It may contain word characters or '.', '-', '_'."
    );
    Err(Rejection::bad("InvalidResourceName", message))
}

/// Checks that a number of the body is in a range.
pub(super) fn number_in(
    object: &Value,
    field: &str,
    range: std::ops::RangeInclusive<u64>,
    of: &str,
) -> Result<Option<u64>, Rejection> {
    let value = &object[field];
    if value.is_null() {
        return Ok(None);
    }
    match value.as_u64().filter(|number| range.contains(number)) {
        Some(number) => Ok(Some(number)),
        None => Err(Rejection::bad(
            "InvalidRequestFormat",
            format!(
                "`{field}` of {of} is {value}, which is not a number from {} to {}.",
                range.start(),
                range.end()
            ),
        )),
    }
}

/// Checks that a text of the body is one of a few.
pub(super) fn one_of(
    object: &Value,
    field: &str,
    allowed: &[&str],
    of: &str,
) -> Result<(), Rejection> {
    let value = &object[field];
    let known = |text: &str| allowed.iter().any(|one| one.eq_ignore_ascii_case(text));
    if value.is_null() || value.as_str().is_some_and(known) {
        return Ok(());
    }
    Err(Rejection::bad(
        "InvalidRequestFormat",
        format!(
            "`{field}` of {of} is {value}, which is none of {}.",
            allowed.join(", ")
        ),
    ))
}

/// The last segment of an id.
pub(super) fn last_segment(id: &str) -> &str {
    id.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
}
