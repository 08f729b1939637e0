//! The error of an annotation.

/// The error of an annotation, or of a field of the specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {value:?}: {why}")]
pub struct AnnotationError {
    /// The key of the annotation, or the path of the field.
    pub key: String,
    /// The value of the annotation.
    pub value: String,
    /// The reason why the value is invalid, and the valid values.
    pub why: String,
}

impl AnnotationError {
    pub(super) fn new(
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
