//! The request that a destination would get.

use http::header::HOST;
use http::{HeaderName, HeaderValue, Request};
use proxy_model::compiled::Destination;
use serde::Serialize;

/// A request in the form that a destination receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ForwardedRequest {
    /// The method.
    pub method: String,
    /// The whole URL.
    pub uri: String,
    /// The headers in the order of HTTP/1.1, `Host` first, with conventional capitals. Bytes that
    /// are not UTF-8 appear as `U+FFFD`.
    pub headers: Vec<(String, String)>,
}

/// The request in the form that `destination` would receive over HTTP/1.1.
pub(super) fn forwarded(request: &Request<()>, destination: &Destination) -> ForwardedRequest {
    let address = destination.address();
    let authority = String::from_utf8_lossy(address.authority().as_bytes());
    // HTTP/1.1 sends `Host` first.
    let (host, others): (Vec<_>, Vec<_>) = request
        .headers()
        .iter()
        .partition(|(name, _)| **name == HOST);
    let shown = |(name, value): (&HeaderName, &HeaderValue)| {
        (
            spelled(name),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    };
    ForwardedRequest {
        method: request.method().to_string(),
        uri: format!(
            "{}://{authority}{}",
            address.scheme().as_str(),
            request.uri()
        ),
        headers: host.into_iter().chain(others).map(shown).collect(),
    }
}

/// The conventional spelling of a header name: `X-Forwarded-For`.
fn spelled(name: &HeaderName) -> String {
    let mut is_first = true;
    let capitals = name.as_str().chars().map(|c| {
        let spelled = if is_first { c.to_ascii_uppercase() } else { c };
        is_first = c == '-';
        spelled
    });
    capitals.collect()
}
