//! One call: a free slot, a token, an exchange with a time limit, and its result.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::error::{ConsulError, ConsulErrorKind};
use super::query::{Answer, Meta, Query};
use super::{ConsulClient, Shared};

/// The characters that are not encoded in a part of a path or a query (RFC 3986, section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The limits of concurrent calls. Blocking ones leave a quarter of the connections to the others, which
/// would otherwise never get one.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) all: Semaphore,
    pub(super) blocking: Semaphore,
}

/// The turn of one call.
struct Turn<'b> {
    _connection: SemaphorePermit<'b>,
    _blocking: Option<SemaphorePermit<'b>>,
}

impl Budget {
    async fn turn(&self, is_blocking: bool) -> Turn<'_> {
        const OPEN: &str = "nobody closes it";
        // In this order: who waits to block does not hold a connection meanwhile.
        let blocking = match is_blocking {
            true => Some(self.blocking.acquire().await.expect(OPEN)),
            false => None,
        };
        Turn {
            _connection: self.all.acquire().await.expect(OPEN),
            _blocking: blocking,
        }
    }
}

/// A builder of a request to the agent.
#[derive(Debug)]
pub(super) struct Call {
    method: Method,
    /// Method and path, for messages.
    name: String,
    path: String,
    parameters: String,
    body: Bytes,
    wait: Option<Duration>,
}

impl Call {
    /// Creates a call of `/v1/…`. The parts of the path are escaped, and separated by slashes.
    pub(super) fn new<'p>(method: Method, parts: impl IntoIterator<Item = &'p str>) -> Self {
        let mut path = String::from("/v1");
        for part in parts {
            // A URL has no other way to contain `.` or `..` as a part, and proxies would resolve them.
            let part = utf8_percent_encode(part, UNRESERVED).to_string();
            let part = match &*part {
                "." => "%2E".to_owned(),
                ".." => "%2E%2E".to_owned(),
                _ => part,
            };
            let _ = write!(path, "/{part}");
        }
        let name = discovery_core::text::shortened(&format!("{method} {path}"), 200);
        Self {
            method,
            name,
            path,
            parameters: String::new(),
            body: Bytes::new(),
            wait: None,
        }
    }

    pub(super) fn get<'p>(parts: impl IntoIterator<Item = &'p str>) -> Self {
        Self::new(Method::GET, parts)
    }

    pub(super) fn put<'p>(parts: impl IntoIterator<Item = &'p str>) -> Self {
        Self::new(Method::PUT, parts)
    }

    /// Adds a parameter without a value: `?recurse`.
    pub(super) fn flag(mut self, name: &str) -> Self {
        self.parameters
            .push(if self.parameters.is_empty() { '?' } else { '&' });
        self.parameters.push_str(name);
        self
    }

    pub(super) fn parameter(self, name: &str, value: &str) -> Self {
        let mut call = self.flag(name);
        let _ = write!(
            call.parameters,
            "={}",
            utf8_percent_encode(value, UNRESERVED)
        );
        call
    }

    pub(super) fn query(mut self, query: &Query) -> Self {
        if let Some(datacenter) = &query.datacenter {
            self = self.parameter("dc", datacenter);
        }
        if let Some(mode) = query.consistency.parameter() {
            self = self.flag(mode);
        }
        if let Some(filter) = &query.filter {
            self = self.parameter("filter", filter);
        }
        if let Some(blocking) = query.blocking {
            self = self.parameter("index", &blocking.index.to_string());
            self = self.parameter("wait", &format!("{}ms", blocking.wait.as_millis()));
            self.wait = Some(blocking.wait);
        }
        self
    }

    pub(super) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Returns the error for a malformed response.
    fn malformed(&self, message: impl Into<String>) -> ConsulError {
        ConsulError::new(ConsulErrorKind::Malformed, &self.name, message)
    }
}

impl ConsulClient {
    /// Makes a call whose response is JSON.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        call: Call,
    ) -> Result<Answer<T>, ConsulError> {
        let response = self.shared.exchange(&call).await?;
        if !response.status().is_success() {
            return Err(self.shared.rejected(&call, &response));
        }
        decode(&call, &response)
    }

    /// Makes a call for which 404 is a good response: the requested entity does not exist.
    pub(super) async fn json_if_found<T: DeserializeOwned>(
        &self,
        call: Call,
    ) -> Result<Answer<Option<T>>, ConsulError> {
        let response = self.shared.exchange(&call).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(Answer::new(None, Meta::of(response.headers()))),
            status if status.is_success() => Ok(decode(&call, &response)?.map(Some)),
            _ => Err(self.shared.rejected(&call, &response)),
        }
    }

    /// Makes a call whose response has no content.
    pub(super) async fn done(&self, call: Call) -> Result<(), ConsulError> {
        let response = self.shared.exchange(&call).await?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(self.shared.rejected(&call, &response)),
        }
    }
}

fn decode<T: DeserializeOwned>(
    call: &Call,
    response: &Response<Bytes>,
) -> Result<Answer<T>, ConsulError> {
    match serde_json::from_slice(response.body()) {
        Ok(value) => Ok(Answer::new(value, Meta::of(response.headers()))),
        Err(error) => Err(call
            .malformed("the response is not one of Consul")
            .with_source(error)),
    }
}

impl Shared {
    /// Sends a request when there is a free slot, and waits for the whole response. The time limit counts
    /// from then on.
    async fn exchange(&self, call: &Call) -> Result<Response<Bytes>, ConsulError> {
        let _turn = self.budget.turn(call.wait.is_some()).await;
        let request = self.request(call).await?;
        // A server adds up to a sixteenth to the wait. After a longer silence the connection is closed: it
        // would hang forever.
        let wait = call.wait.unwrap_or_default();
        let limit = wait + wait / 16 + self.options.request_timeout;
        let exchange = self.transport.send(request, self.options.max_body);
        match timeout(limit, exchange).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(ConsulError::of_transport(&call.name, error)),
            Err(_) => Err(ConsulError::timed_out(&call.name, limit)),
        }
    }

    async fn request(&self, call: &Call) -> Result<Request<Bytes>, ConsulError> {
        let mut uri = format!("{}{}{}", self.base, call.path, call.parameters);
        let edition = [
            ("ns", &self.options.namespace),
            ("partition", &self.options.partition),
        ];
        for (name, value) in edition {
            if let Some(value) = value {
                uri.push(if uri.contains('?') { '&' } else { '?' });
                let _ = write!(uri, "{name}={}", utf8_percent_encode(value, UNRESERVED));
            }
        }
        let mut request = Request::builder().method(&call.method).uri(uri);
        let token = self.tokens.current().await.map_err(|error| {
            let message = "there is no token to send";
            ConsulError::new(ConsulErrorKind::NoToken, &call.name, message).with_source(error)
        })?;
        if let Some(token) = token {
            request = request.header("x-consul-token", token.header());
        }
        let request = request.body(call.body.clone());
        request.map_err(|error| {
            let message = "the call cannot be made into a request";
            ConsulError::new(ConsulErrorKind::Rejected, &call.name, message).with_source(error)
        })
    }

    fn rejected(&self, call: &Call, response: &Response<Bytes>) -> ConsulError {
        let body = match self.tokens.known() {
            Some(token) => token.removed_from(response.body()),
            None => response.body().to_vec(),
        };
        let error = ConsulError::of_status(&call.name, response.status(), &body);
        if error.kind() == ConsulErrorKind::Denied {
            self.tokens.rejected();
        }
        error
    }
}
