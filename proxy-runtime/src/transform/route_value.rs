//! Values that transforms take from the path of a request.

use http::HeaderValue;
use proxy_model::matching::RouteValues;

use crate::http1::is_authority;

/// The reason why a transform has no value to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// The route matched without the parameter: the header stays unchanged.
    NotThere,
    /// The value cannot be written. The header that the client sent is removed where the transform sets
    /// it: it must not be believed.
    NotToBeWritten,
}

/// Returns the value of a route parameter as a header value, without surrounding white space.
///
/// # Errors
///
/// The parameter has no value, or one that a header may not contain, since it comes from the client's path.
pub(crate) fn route_value(values: &RouteValues, parameter: &str) -> Result<HeaderValue, NoValue> {
    let value = values.get(parameter).ok_or(NoValue::NotThere)?;
    let value = value.as_bytes().trim_ascii();
    HeaderValue::from_bytes(value).map_err(|_| NoValue::NotToBeWritten)
}

/// The value of a route parameter as `Host`, which must be a host and port (RFC 9110 section 7.2): the
/// path is the client's, and other text would be rejected or read in several ways.
///
/// # Errors
///
/// Fails if there is none, or none that is a host.
pub(crate) fn route_host(values: &RouteValues, parameter: &str) -> Result<HeaderValue, NoValue> {
    let value = route_value(values, parameter)?;
    match is_authority(value.as_bytes()) {
        true => Ok(value),
        false => Err(NoValue::NotToBeWritten),
    }
}
