//! Where two values of the configuration differ.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::problem::pointer_to;
use crate::suggest::shortened;

/// One key whose value differs.
///
/// Shown as `Match/Path /a → /b`. Values of transforms and metadata are not shown, since they may be secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FieldChange {
    /// Where it is, as a JSON pointer from the route, cluster or destination.
    pub pointer: String,
    /// The value before, as JSON; `None` if it was not set.
    pub before: Option<Value>,
    /// The value after, as JSON; `None` if it is not set.
    pub after: Option<Value>,
}

impl FieldChange {
    /// Whether its values may be secrets, which logs and pages should not show.
    pub fn may_be_secret(&self) -> bool {
        ["/Transforms", "/Metadata", "/HttpClient/WebProxy"]
            .iter()
            .any(|place| self.pointer.starts_with(place))
    }
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
        Value::String(text) => shortened(text),
        value => shortened(&value.to_string()),
    }
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
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) {
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
