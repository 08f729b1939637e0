use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode, header};
use serde::Serialize;

/// A response of the admin API.
#[derive(Debug)]
pub(super) struct AdminResponse {
    status: StatusCode,
    body: Bytes,
    headers: Vec<(HeaderName, &'static str)>,
}

impl AdminResponse {
    pub(super) fn new(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            body: body.into(),
            headers: vec![(header::CONTENT_TYPE, content_type)],
        }
    }

    pub(super) fn text(body: impl Into<Bytes>) -> Self {
        Self::new("text/plain; charset=utf-8", body)
    }

    pub(super) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self::new("application/json", body),
            Err(error) => Self::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    pub(super) fn error(status: StatusCode, message: &str) -> Self {
        let body = serde_json::json!({ "error": message }).to_string();
        Self::new("application/json", body).with_status(status)
    }

    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(super) fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(super) fn into_response(self, head_only: bool) -> Response<Bytes> {
        let length = self.body.len();
        let mut response = Response::new(if head_only { Bytes::new() } else { self.body });
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        for (name, value) in self.headers {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        response
    }
}
