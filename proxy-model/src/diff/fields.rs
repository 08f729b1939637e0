//! The fields in which two values of the configuration differ.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::problem::pointer_to;
use crate::suggest::shortened;

/// One key whose value differs.
///
/// A change is shown as `Match/Path /a → /b`. Values that [may be secrets](Self::may_be_secret) are not
/// shown, nor is the user of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FieldChange {
    /// The place of the field, as a JSON pointer from the route, cluster or destination.
    pub pointer: String,
    /// The value before, as JSON; `None` if it was not set.
    pub before: Option<Value>,
    /// The value after, as JSON; `None` if it is not set.
    pub after: Option<Value>,
}

impl FieldChange {
    /// Returns true if the values may be secrets, which logs and pages should not show: transforms,
    /// metadata, conditions on headers and query parameters, keys of partitions, the proxy for a cluster,
    /// and the query of health probes.
    pub fn may_be_secret(&self) -> bool {
        may_be_secret(&self.pointer)
    }
}

fn may_be_secret(pointer: &str) -> bool {
    [
        "/Transforms",
        "/Metadata",
        "/Match/Headers",
        "/Match/QueryParameters",
        "/PartitionedClusters/Partitions",
        "/HttpClient/WebProxy",
        "/HealthCheck/Active/Query",
    ]
    .iter()
    .any(|place| pointer.starts_with(place))
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.pointer.strip_prefix('/').unwrap_or(&self.pointer);
        f.write_str(&shortened(name))?;
        if self.may_be_secret() {
            return f.write_str(match (&self.before, &self.after) {
                (None, _) => " added",
                (_, None) => " removed",
                _ => " changed",
            });
        }
        match (&self.before, &self.after) {
            (None, Some(after)) => write!(f, " = {}", shown(after)),
            (Some(before), None) => write!(f, " no longer {}", shown(before)),
            (before, after) => write!(
                f,
                " {} → {}",
                before.as_ref().map_or_else(String::new, shown),
                after.as_ref().map_or_else(String::new, shown)
            ),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => address(text),
        value => shortened(&value.to_string()),
    }
}

/// Returns a text for people, without the user and password if it is a URL.
///
/// Programs disagree on the end of the user in a malformed URL, so everything up to the last `@` is left
/// out, even if the scheme is missing. Only a path may contain an `@`.
pub(super) fn address(text: &str) -> String {
    let Some((before, host)) = text.rsplit_once('@').filter(|_| !text.starts_with('/')) else {
        return shortened(text);
    };
    match before.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) && rest.starts_with(['/', '\\']) => {
            shortened(&format!("{scheme}://…@{host}"))
        }
        _ => shortened(&format!("…@{host}")),
    }
}

/// RFC 3986 section 3.1; white space before it is what some parsers pass over.
fn is_scheme(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && (text.bytes()).all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// The keys, at any depth, in which `old` and `new` differ. Lists are compared whole.
pub(super) fn changed_fields<T: Serialize>(old: &T, new: &T) -> Vec<FieldChange> {
    let json =
        |value: &T| serde_json::to_value(value).expect("keys are text and no number is infinite");
    let mut changes = Vec::new();
    compare(
        String::new(),
        Some(&json(old)),
        Some(&json(new)),
        &mut changes,
    );
    changes
}

fn compare(
    pointer: String,
    old: Option<&Value>,
    new: Option<&Value>,
    changes: &mut Vec<FieldChange>,
) {
    if old == new {
        return;
    }
    // Objects that are added or removed as a whole are compared by field as well, to find secrets in them.
    // If nothing was found, only the whole can be named.
    let empty = Map::new();
    let objects = match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => Some((old, new)),
        (Some(Value::Object(old)), None) => Some((old, &empty)),
        (None, Some(Value::Object(new))) => Some((&empty, new)),
        _ => None,
    };
    let is_whole = old.is_none() || new.is_none();
    if let Some((old, new)) = objects
        && !(is_whole && (may_be_secret(&pointer) || old.is_empty() && new.is_empty()))
    {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            compare(
                pointer_to(&pointer, key),
                old.get(key),
                new.get(key),
                changes,
            );
        }
        return;
    }
    changes.push(FieldChange {
        pointer,
        before: old.cloned(),
        after: new.cloned(),
    });
}
