//! Changes to request headers.

use http::{HeaderName, HeaderValue};

use super::SetOrAppend;
use super::forwarded::{Forwarded, XForwarded};

/// A change to a request's headers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RequestTransform {
    /// Sets or appends a fixed value. An empty value is sent as such.
    Header {
        /// The header.
        name: HeaderName,
        /// The header's value.
        value: HeaderValue,
        /// The choice between replacing existing values and adding to them.
        action: SetOrAppend,
    },
    /// Sets or appends the value of a route parameter; does nothing when the route matched without that parameter.
    RouteValue {
        /// The header.
        name: HeaderName,
        /// The parameter, compared ignoring case.
        parameter: Box<str>,
        /// The choice between replacing existing values and adding to them.
        action: SetOrAppend,
    },
    /// Removes all values.
    Remove(HeaderName),
    /// Writes or removes an `X-Forwarded-*` header.
    XForwarded(XForwarded),
    /// Writes or removes the header `Forwarded` (RFC 7239).
    Forwarded(Forwarded),
    /// Replaces the header by the client's certificate (DER, base64); removes it when the client showed none.
    ClientCert(HeaderName),
}
