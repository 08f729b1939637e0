//! Events of a watch.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::Value;

use super::client::KubernetesError;
use crate::sources::FromDocument;
use crate::text::Misread;

/// Applies an event. Returns true if the documents have changed.
pub(super) fn apply<T: FromDocument>(
    documents: &mut BTreeMap<String, Value>,
    version: &mut Option<String>,
    call: &str,
    mut event: Value,
) -> Result<bool, KubernetesError> {
    let object = event.get_mut("object").map(Value::take).unwrap_or_default();
    let kind = event["type"].as_str().unwrap_or_default();
    if kind == "ERROR" {
        let status = object["code"]
            .as_u64()
            .and_then(|code| u16::try_from(code).ok());
        return Err(KubernetesError::Rejected {
            call: call.to_owned(),
            status: status
                .and_then(|code| StatusCode::from_u16(code).ok())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            message: object["message"]
                .as_str()
                .unwrap_or("the watch has ended with an error")
                .to_owned(),
        });
    }
    if let Some(new) = object["metadata"]["resourceVersion"].as_str() {
        *version = Some(new.to_owned());
    }
    let Some(key) = key(&object) else {
        // A bookmark has only a version.
        return Ok(false);
    };
    match kind {
        "ADDED" | "MODIFIED" => {
            // For an object that was never read, a placeholder is better than nothing.
            let known = documents.contains_key(&key);
            if let Err(error) = T::from_document(&object)
                && (known || T::unreadable(&object, &error.to_string()).is_none())
            {
                tracing::warn!(%error, object = key, "an object cannot be read; its last form stays in force");
                return Ok(false);
            }
            Ok(documents.insert(key, object.clone()).as_ref() != Some(&object))
        }
        "DELETED" => Ok(documents.remove(&key).is_some()),
        _ => Ok(false),
    }
}

/// Reads an object, or its placeholder if it is invalid.
pub(super) fn object<T: FromDocument>(document: &Value) -> Result<T, Misread> {
    T::from_document(document)
        .or_else(|error| T::unreadable(document, &error.to_string()).ok_or(error))
}

/// Returns the key of an object: its namespace and name.
pub(super) fn key(object: &Value) -> Option<String> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().filter(|name| !name.is_empty())?;
    Some(format!(
        "{}/{name}",
        metadata["namespace"].as_str().unwrap_or_default()
    ))
}
