//! Parsing of annotation values.

use std::ops::RangeInclusive;

use super::AnnotationError;
use crate::service::Service;

/// Returns the value as written.
pub(super) fn raw<'a>(service: &'a Service, key: &str) -> Option<&'a str> {
    service.annotations.get(key).map(String::as_str)
}

/// Returns the trimmed value, unless it is empty.
pub(super) fn filled<'a>(service: &'a Service, key: &str) -> Option<&'a str> {
    raw(service, key)
        .map(str::trim)
        .filter(|value| !value.is_empty())
}

/// Returns true if the value is exactly `true`.
pub(super) fn is_true(service: &Service, key: &str) -> bool {
    raw(service, key) == Some("true")
}

/// Parses a whole number within limits.
pub(super) fn number(
    service: &Service,
    key: &str,
    unit: &str,
    limits: RangeInclusive<u32>,
) -> Result<Option<u32>, AnnotationError> {
    let Some(value) = raw(service, key) else {
        return Ok(None);
    };
    match value.trim().parse() {
        Ok(number) if limits.contains(&number) => Ok(Some(number)),
        _ => {
            let (from, to) = (limits.start(), limits.end());
            let why = match *to {
                u32::MAX => format!("write a whole number of {unit}, at least {from}"),
                _ => format!("write a whole number of {unit} from {from} to {to}"),
            };
            Err(AnnotationError::new(key, value, why))
        }
    }
}
