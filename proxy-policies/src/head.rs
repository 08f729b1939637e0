//! Heads of requests as policies see them, whatever lane they are on, and the answers of policies.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, request};
use proxy_runtime::ProxyBody;
use proxy_runtime::filter::{Reply, RequestEdit};

/// The head of a received request.
pub(crate) trait Head {
    fn method(&self) -> &str;

    /// The path, as received.
    fn path(&self) -> &str;

    /// The first value of a header, by its name in lower case.
    fn header(&self, name: &str) -> Option<&[u8]>;

    /// The target and all headers, if they are there in `http` types.
    fn whole(&self) -> Option<(&Uri, &HeaderMap)>;

    /// Appends a header of the request for the destination.
    fn append(&mut self, name: HeaderName, value: HeaderValue);

    /// Sets a header of the request for the destination.
    fn set(&mut self, name: &str, value: HeaderValue);

    /// Removes a header of the request.
    fn remove(&mut self, name: &str);

    /// Sets a header of the response, local replies included.
    fn set_on_response(&mut self, name: &'static str, value: HeaderValue);

    /// Appends a line to a header of the response, local replies included.
    fn append_on_response(&mut self, name: &'static str, value: HeaderValue);
}

impl Head for RequestEdit<'_> {
    fn method(&self) -> &str {
        RequestEdit::method(self)
    }

    fn path(&self) -> &str {
        RequestEdit::path(self)
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        RequestEdit::header(self, name)
    }

    fn whole(&self) -> Option<(&Uri, &HeaderMap)> {
        None
    }

    fn append(&mut self, name: HeaderName, value: HeaderValue) {
        let _ = RequestEdit::append(self, name.as_str(), value);
    }

    fn set(&mut self, name: &str, value: HeaderValue) {
        // Configuration names no protected header; one that slipped through is left as it is.
        let _ = RequestEdit::set(self, name, value);
    }

    fn remove(&mut self, name: &str) {
        let _ = RequestEdit::remove(self, name);
    }

    fn set_on_response(&mut self, name: &'static str, value: HeaderValue) {
        let _ = RequestEdit::set_on_response(self, name, value);
    }

    fn append_on_response(&mut self, name: &'static str, value: HeaderValue) {
        let _ = RequestEdit::append_on_response(self, name, value);
    }
}

/// A head in `http` types, and what its response is to say.
pub(crate) struct TypedHead<'a> {
    pub(crate) parts: &'a mut request::Parts,
    pub(crate) notes: &'a mut Notes,
}

impl Head for TypedHead<'_> {
    fn method(&self) -> &str {
        self.parts.method.as_str()
    }

    fn path(&self) -> &str {
        self.parts.uri.path()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.parts.headers.get(name).map(HeaderValue::as_bytes)
    }

    fn whole(&self) -> Option<(&Uri, &HeaderMap)> {
        Some((&self.parts.uri, &self.parts.headers))
    }

    fn append(&mut self, name: HeaderName, value: HeaderValue) {
        let _ = self.parts.headers.try_append(name, value);
    }

    fn set(&mut self, name: &str, value: HeaderValue) {
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
            // The map holds 32,768 fields, more than a head may have.
            let _ = self.parts.headers.try_insert(name, value);
        }
    }

    fn remove(&mut self, name: &str) {
        self.parts.headers.remove(name);
    }

    fn set_on_response(&mut self, name: &'static str, value: HeaderValue) {
        self.notes.0.push((name, value, false));
    }

    fn append_on_response(&mut self, name: &'static str, value: HeaderValue) {
        self.notes.0.push((name, value, true));
    }
}

/// Changes of a response that were decided with its request.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<(&'static str, HeaderValue, bool)>);

impl Notes {
    pub(crate) fn apply(self, headers: &mut HeaderMap) {
        for (name, value, appends) in self.0 {
            let name = HeaderName::from_static(name);
            let _ = match appends {
                true => headers.try_append(name, value).map(drop),
                false => headers.try_insert(name, value).map(drop),
            };
        }
    }
}

/// The response of a policy.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Answer {
    pub(crate) fn new(status: StatusCode) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// Sets a short text for people.
    pub(crate) fn saying(mut self, text: &'static str) -> Self {
        self.push_named(http::header::CONTENT_TYPE, TEXT);
        self.with_body(Bytes::from_static(text.as_bytes()))
    }

    /// Sets the body.
    pub(crate) fn with_body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    /// Adds a header, whose name is in lower case.
    pub(crate) fn push(&mut self, name: &'static str, value: HeaderValue) {
        self.push_named(HeaderName::from_static(name), value);
    }

    /// Adds a header.
    pub(crate) fn push_named(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.push((name, value));
    }

    pub(crate) fn into_reply(self) -> Reply {
        let mut reply = Reply::new(self.status);
        for (name, value) in self.headers {
            reply = reply.with_header(name, value);
        }
        match self.body.is_empty() {
            true => reply,
            false => reply.with_body(self.body),
        }
    }

    pub(crate) fn into_response(self, notes: Notes) -> Response<ProxyBody> {
        let mut response = Response::new(ProxyBody::text(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        notes.apply(headers);
        response
    }
}

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
