//! Free text for policies and extensions.

use std::collections::HashMap;

use super::Scope;
use crate::config::Metadata;
use crate::id::ClusterId;
use crate::problem::pointer_to;
use crate::suggest::shortened;

/// Rejects keys that differ only in case. Policies look up keys ignoring case, and so does the reader of a
/// written configuration file, which would reject the file.
pub(super) fn check(metadata: Option<&Metadata>, scope: &mut Scope<'_>) {
    let Some(metadata) = metadata.filter(|metadata| metadata.len() > 1) else {
        return;
    };
    let mut seen: HashMap<ClusterId, &str> = HashMap::with_capacity(metadata.len());
    for key in metadata.keys() {
        // Compared as ids are.
        let first = *seen.entry(ClusterId::from(key.as_str())).or_insert(key);
        if !std::ptr::eq(first, key.as_str()) {
            let (key_shown, first) = (shortened(key), shortened(first));
            scope.error(
                &pointer_to("Metadata", key),
                "duplicate_key",
                format!("the key `{key_shown}` is there already, as `{first}`"),
            );
        }
    }
}
