//! What services ask for in their annotations, read once and typed.

pub mod keys;

use crate::service::Service;

/// An annotation, or a field of the specification, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {value:?}: {why}")]
pub struct AnnotationError {
    /// The key of the annotation, or the path of the field.
    pub key: String,
    /// What it says.
    pub value: String,
    /// Why that cannot be used, and what can.
    pub why: String,
}

impl AnnotationError {
    pub(crate) fn new(
        key: impl Into<String>,
        value: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
            why: why.into(),
        }
    }
}

/// Whether a service is to be reachable from the virtual network only: exactly `true` is internal.
pub fn is_internal(service: &Service) -> bool {
    service.annotations.get(keys::INTERNAL).map(String::as_str) == Some("true")
}

/// The resource group of the service's public address, if it names one.
pub fn resource_group(service: &Service) -> Option<&str> {
    let group = service.annotations.get(keys::RESOURCE_GROUP)?.trim();
    (!group.is_empty()).then_some(group)
}
