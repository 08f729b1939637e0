//! What a filter says to a request.

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::head::headers;

/// What becomes of a request after a filter has seen it.
#[derive(Clone, Debug)]
#[must_use]
pub enum Flow {
    /// It goes on.
    Continue,
    /// It is answered.
    Respond(Reply),
}

impl From<Reply> for Flow {
    fn from(reply: Reply) -> Self {
        Self::Respond(reply)
    }
}

/// The response of a filter: a status, few headers, a short body.
#[derive(Clone, Debug)]
#[must_use]
pub struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Reply {
    /// A response without headers and body. With a 1xx status, which answers nothing, it is sent as 500.
    pub fn new(status: StatusCode) -> Self {
        let status = if status.is_informational() {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            status
        };
        Self {
            status,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    /// Adds a header behind those that are there. Those of the connection and `Content-Length` are not sent.
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        // The map takes 32,768 fields, which is more than any client reads.
        let _ = self.headers.try_append(name, value);
        self
    }

    /// Sets the body. A status that has none, 204 or 304, is sent without.
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn into_response(self) -> Response<Bytes> {
        let Self {
            status,
            mut headers,
            body,
        } = self;
        headers::strip_hop_by_hop(&mut headers);
        headers.remove(CONTENT_LENGTH);
        let is_bodiless = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let body = if is_bodiless { Bytes::new() } else { body };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}
