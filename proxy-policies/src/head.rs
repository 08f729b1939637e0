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

    /// Removes a header of the request, and those that programs take for it: `X_User` is `X-User` to CGI and WSGI.
    fn remove(&mut self, name: &str);

    /// Removes a header of the response.
    fn remove_on_response(&mut self, name: &'static str);

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
        let received = self.headers().map(|(received, _)| received);
        let imitations: Vec<_> = received
            .filter(|received| imitates(received, name))
            .map(str::to_owned)
            .collect();
        for imitation in imitations {
            let _ = RequestEdit::remove(self, imitation);
        }
        let _ = RequestEdit::remove(self, name);
    }

    fn remove_on_response(&mut self, name: &'static str) {
        let _ = RequestEdit::remove_on_response(self, name);
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
        let received = self.parts.headers.keys();
        let imitations: Vec<_> = received
            .filter(|received| imitates(received.as_str(), name))
            .cloned()
            .collect();
        for imitation in imitations {
            self.parts.headers.remove(imitation);
        }
        self.parts.headers.remove(name);
    }

    fn remove_on_response(&mut self, name: &'static str) {
        self.notes.0.push((name, Note::Remove));
    }

    fn set_on_response(&mut self, name: &'static str, value: HeaderValue) {
        self.notes.0.push((name, Note::Set(value)));
    }

    fn append_on_response(&mut self, name: &'static str, value: HeaderValue) {
        self.notes.0.push((name, Note::Append(value)));
    }
}

/// True for another spelling of a name that programs which read `_` as `-` take for it.
fn imitates(received: &str, name: &str) -> bool {
    let dashed = |byte: u8| match byte {
        b'_' => b'-',
        other => other.to_ascii_lowercase(),
    };
    received.contains('_')
        && !received.eq_ignore_ascii_case(name)
        && received.bytes().map(dashed).eq(name.bytes().map(dashed))
}

/// Changes of a response that were decided with its request.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<(&'static str, Note)>);

#[derive(Debug)]
enum Note {
    Remove,
    Set(HeaderValue),
    Append(HeaderValue),
}

impl Notes {
    pub(crate) fn apply(self, headers: &mut HeaderMap) {
        for (name, note) in self.0 {
            let name = HeaderName::from_static(name);
            // The map holds 32,768 fields, more than a head may have.
            match note {
                Note::Remove => drop(headers.remove(name)),
                Note::Set(value) => drop(headers.try_insert(name, value)),
                Note::Append(value) => drop(headers.try_append(name, value)),
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_removed_in_every_spelling_that_programs_take_for_it() {
        let request = http::Request::builder()
            .header("x-user", "a")
            .header("x_user", "b")
            .header("X_User", "c")
            .header("x-users", "d")
            .header("xuser", "e");
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let mut notes = Notes::default();
        let mut head = TypedHead {
            parts: &mut parts,
            notes: &mut notes,
        };
        head.remove("X-User");
        let left: Vec<_> = parts.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-users", "xuser"]);
    }
}
