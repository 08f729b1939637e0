//! Properties of a service's name, which override its labels.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use discovery_core::Labels;
use proxy_model::{Problem, Problems, pointer_to};

use super::{PREFIX, canonical};
use crate::calls::{CallError, ClusterCalls};
use crate::model::Property;

/// The most labels that properties may add.
const MAX_OVERRIDES: usize = 5_000;

/// The longest value. The naming service itself allows more.
const MAX_VALUE: usize = 64 << 10;

/// The labels with the properties of the service's name applied. A name without properties, or one that the naming
/// service does not know, overrides nothing.
pub(super) async fn overridden(
    calls: &dyn ClusterCalls,
    service_id: &str,
    labels: Arc<Labels>,
    problems: &mut Problems,
) -> Result<Arc<Labels>, CallError> {
    let mut properties = match calls.properties(service_id).await {
        Ok(properties) => properties,
        Err(error) if error.is_gone() => return Ok(labels),
        Err(error) => return Err(error),
    };
    properties.retain(|property| canonical(&property.name).starts_with(PREFIX));
    if properties.is_empty() {
        return Ok(labels);
    }
    // The naming service lists them as it likes, and the result must not depend on it.
    properties.sort_by(|a, b| a.name.cmp(&b.name));
    let mut changed = Labels::clone(&labels);
    let left_out = properties.len().saturating_sub(MAX_OVERRIDES);
    if left_out > 0 {
        let message = format!("{left_out} properties beyond {MAX_OVERRIDES} are ignored");
        problems.push(Problem::warning("", "too_many_overrides", message));
    }
    let mut overridden: HashMap<Cow<'_, str>, &str> = HashMap::new();
    for property in properties.iter().take(MAX_OVERRIDES) {
        let key = canonical(&property.name);
        if let Some(first) = overridden.insert(key.clone(), &property.name) {
            // As for labels, it is unknown which of them is intended.
            let message = format!(
                "the properties `{first}` and `{}` are the same label",
                property.name
            );
            problems.push(Problem::error(
                pointer_to("", &key),
                "duplicate_label",
                message,
            ));
            continue;
        }
        match usable(property) {
            Ok(text) => {
                changed.insert(key.into_owned(), text.to_owned());
            }
            Err(why) => {
                let message = format!("the property `{}` is ignored: {why}", property.name);
                let pointer = pointer_to("", &key);
                problems.push(Problem::warning(pointer, "unusable_override", message));
            }
        }
    }
    Ok(Arc::new(changed))
}

fn usable(property: &Property) -> Result<&str, String> {
    let text = property.as_text().ok_or_else(|| {
        let kind = property.value.as_ref().map(|value| value.kind.as_str());
        format!("it is no text, but {}", kind.unwrap_or("nothing"))
    })?;
    if text.len() > MAX_VALUE {
        return Err(format!("its value has more than {MAX_VALUE} bytes"));
    }
    Ok(text)
}
