//! Parameters of route templates.

use std::sync::Arc;

use super::constraint::Constraint;
use super::write_escaped;

/// A part of a template that takes its text from the path.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: Arc<str>,
    /// Position among all parameters of the template.
    pub(super) index: usize,
    pub(super) optional: bool,
    pub(super) default: Option<Box<str>>,
    pub(super) constraints: Box<[Constraint]>,
}

impl Parameter {
    /// Returns true if a path may leave out the parameter.
    pub(super) fn may_be_missing(&self) -> bool {
        self.optional || self.default.is_some()
    }

    /// Returns true if the constraints allow the value in a path, which is `None` if the path leaves it
    /// out.
    pub(super) fn accepts(&self, value: Option<&str>) -> bool {
        let value = value.or(self.default.as_deref());
        // An optional parameter may be missing, independent of its constraints.
        (self.optional && value.is_none_or(str::is_empty))
            || self
                .constraints
                .iter()
                .all(|constraint| constraint.accepts(value))
    }

    /// Writes what [`accepts`](Self::accepts) depends on, and `kind`.
    pub(super) fn write_signature(&self, kind: &str, signature: &mut String) {
        signature.push('{');
        signature.push_str(kind);
        for constraint in &self.constraints {
            signature.push(':');
            write_escaped(constraint.as_str(), signature);
        }
        if let (Some(default), false) = (&self.default, self.constraints.is_empty()) {
            signature.push('=');
            write_escaped(default, signature);
        }
        signature.push('}');
    }
}
