//! A request as Consul takes it apart.

use std::borrow::Cow;
use std::time::Duration;

use http::Request;
use percent_encoding::percent_decode_str;
use tokio::time::Instant;

/// A request that was made, for a test to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenRequest {
    /// `GET`, `PUT` or `DELETE`.
    pub method: String,
    /// The path after `/v1/`, with nothing escaped.
    pub path: String,
    /// The parameters in their order, with nothing escaped. A flag has an empty value.
    pub parameters: Vec<(String, String)>,
    /// The token in the header.
    pub token: Option<String>,
    /// The time of the request.
    pub at: Instant,
}

impl SeenRequest {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let decoded = |text: &str| -> String {
            let decoded: Cow<'_, str> = percent_decode_str(text).decode_utf8_lossy();
            decoded.into_owned()
        };
        let uri = request.uri();
        let path = uri.path();
        let parameters = uri.query().unwrap_or_default().split('&');
        let parameters = parameters.filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key), decoded(value))
        });
        let token = request.headers().get("x-consul-token");
        Self {
            method: request.method().to_string(),
            path: decoded(path.strip_prefix("/v1/").unwrap_or(path)),
            parameters: parameters.collect(),
            token: token.and_then(|token| Some(token.to_str().ok()?.to_owned())),
            at: Instant::now(),
        }
    }

    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The index that it waits on; 0: it does not wait.
    pub fn index(&self) -> u64 {
        let index = self.parameter("index").and_then(|text| text.parse().ok());
        index.unwrap_or(0)
    }

    /// The time for which the query waits.
    pub(super) fn wait(&self) -> Duration {
        let text = self.parameter("wait").unwrap_or("5m");
        let milliseconds = text.strip_suffix("ms").and_then(|text| text.parse().ok());
        milliseconds.map_or(Duration::from_secs(300), Duration::from_millis)
    }
}
