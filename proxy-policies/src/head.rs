//! Heads of requests as policies see them, whatever lane they are on, and the answers of policies.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use proxy_runtime::Cause;
use proxy_runtime::filter::{Reply, RequestEdit};

/// The head of a received request.
pub(crate) trait Head {
    fn method(&self) -> &str;

    /// The path, as received.
    fn path(&self) -> &str;

    /// The first value of a header, by its name in lower case.
    fn header(&self, name: &str) -> Option<&[u8]>;

    /// The query, as received.
    fn query(&self) -> Option<&str>;

    /// Host and port as the client named them; empty if it named none.
    fn authority(&self) -> &str;

    /// Calls `see` with all headers but `Host`.
    fn each_header(&self, see: &mut dyn FnMut(&str, &[u8]));

    /// Returns true if a header has more than one line.
    fn is_repeated(&self, name: &str) -> bool;

    /// Returns true if `Connection` names the header, which is not forwarded therefore.
    fn is_for_connection(&self, name: &str) -> bool;

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

    fn query(&self) -> Option<&str> {
        RequestEdit::query(self)
    }

    fn authority(&self) -> &str {
        RequestEdit::authority(self)
    }

    fn each_header(&self, see: &mut dyn FnMut(&str, &[u8])) {
        self.headers().for_each(|(name, value)| see(name, value));
    }

    fn is_repeated(&self, name: &str) -> bool {
        self.header_values(name).nth(1).is_some()
    }

    fn is_for_connection(&self, name: &str) -> bool {
        RequestEdit::is_for_connection(self, name)
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

/// The response of a policy.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
    /// The cause of an error, if another than the client is responsible.
    cause: Option<Cause>,
    detail: Option<&'static str>,
}

impl Answer {
    /// Returns true if there is a header of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known == name)
    }

    /// The cause of an error.
    #[cfg(all(test, feature = "redis"))]
    pub(crate) fn cause(&self) -> Option<Cause> {
        self.cause
    }

    pub(crate) fn new(status: StatusCode) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            cause: None,
            detail: None,
        }
    }

    /// Sets the cause that logs and metrics name.
    pub(crate) fn because(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// Sets a sentence for people, in the form that the proxy gives to errors.
    pub(crate) fn saying(mut self, text: &'static str) -> Self {
        self.detail = Some(text);
        self
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
        if let Some(cause) = self.cause {
            reply = reply.because(cause);
        }
        match self.detail {
            Some(detail) => reply.with_detail(detail),
            None if self.body.is_empty() => reply,
            None => reply.with_body(self.body),
        }
    }
}

#[cfg(test)]
impl Answer {
    pub(crate) fn into_response(self) -> http::Response<Bytes> {
        let body = match self.detail {
            Some(detail) => Bytes::from(format!("{detail}\n")),
            None => self.body,
        };
        let mut response = http::Response::new(body);
        *response.status_mut() = self.status;
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_spellings_that_programs_take_for_a_name_imitate_it() {
        for (received, expected) in [
            ("x_user", true),
            ("X_User", true),
            ("x-user", false),
            ("x_users", false),
            ("xuser", false),
        ] {
            assert_eq!(imitates(received, "X-User"), expected, "{received}");
        }
    }
}
