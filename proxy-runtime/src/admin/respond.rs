//! HTTP responses of the admin API.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode, header};
use serde::Serialize;

/// The content security policy: the page loads no foreign resource and cannot be framed.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// A response of the admin API.
#[derive(Debug)]
pub(super) struct AdminResponse {
    status: StatusCode,
    body: Bytes,
    headers: Vec<(HeaderName, &'static str)>,
}

impl AdminResponse {
    fn new(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            body: body.into(),
            headers: vec![(header::CONTENT_TYPE, content_type)],
        }
    }

    pub(super) fn asset(content_type: &'static str, body: &'static str) -> Self {
        Self::new(content_type, Bytes::from_static(body.as_bytes()))
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

    /// Sets a header and replaces an earlier value.
    pub(super) fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.retain(|(set, _)| *set != name);
        self.headers.push((name, value));
        self
    }

    /// Compresses the body, which has to be text, if that makes it smaller.
    pub(super) fn gzipped(mut self) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory does not fail.
        let written = match encoder.write_all(&self.body) {
            Ok(()) => encoder.finish(),
            Err(error) => Err(error),
        };
        if let Ok(packed) = written
            && packed.len() < self.body.len()
        {
            self.body = packed.into();
            self.headers.push((header::CONTENT_ENCODING, "gzip"));
        }
        self.headers.push((header::VARY, "Accept-Encoding"));
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
        // HEAD gets the length that GET would have (RFC 9110 section 9.3.2).
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        for (name, value) in [
            (header::CACHE_CONTROL, "no-store"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::REFERRER_POLICY, "no-referrer"),
            // No foreign page may load a response as an image or a script.
            (RESOURCE_POLICY, "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
