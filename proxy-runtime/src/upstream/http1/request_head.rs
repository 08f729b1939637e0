//! The head of a request as it is written.

use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{Version, request};

use super::Http1Error;

/// The framing of a request body, which defines its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestFraming {
    /// The request has no body.
    None,
    /// The body has this number of bytes.
    Length(u64),
    /// The body is sent in chunks.
    Chunked,
}

impl RequestFraming {
    /// Returns the framing that the head declares. `is_empty`: the body is known to be empty.
    pub(super) fn of(head: &request::Parts, is_empty: bool) -> Result<Self, Http1Error> {
        if is_empty {
            return Ok(Self::None);
        }
        if head.version == Version::HTTP_11 && head.headers.contains_key(TRANSFER_ENCODING) {
            return Ok(Self::Chunked);
        }
        let length = head.headers.get(CONTENT_LENGTH);
        let length = length.and_then(crate::head::headers::parse_length);
        length.map(Self::Length).ok_or(Http1Error::Request)
    }
}

/// Writes the head. Fields are unchanged except those about framing, which are written from `framing`, so that they
/// match the body as sent.
pub(super) fn write(head: &request::Parts, framing: RequestFraming, out: &mut Vec<u8>) {
    out.extend_from_slice(head.method.as_str().as_bytes());
    out.push(b' ');
    write_target(head, out);
    out.extend_from_slice(match head.version {
        Version::HTTP_10 => b" HTTP/1.0\r\n",
        _ => b" HTTP/1.1\r\n",
    });
    // RFC 9110 section 7.2: the first one, so that it is seen as soon as possible.
    if let Some(host) = head.headers.get(HOST) {
        write_field(&HOST, host, out);
    }
    let mut has_length = false;
    for (name, value) in &head.headers {
        if *name == CONTENT_LENGTH {
            has_length = true;
        } else if *name != HOST && *name != TRANSFER_ENCODING {
            write_field(name, value, out);
        }
    }
    match framing {
        RequestFraming::None if has_length => write_field(&CONTENT_LENGTH, &0.into(), out),
        RequestFraming::None => {}
        RequestFraming::Length(length) => write_field(&CONTENT_LENGTH, &length.into(), out),
        RequestFraming::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    out.extend_from_slice(b"\r\n");
}

/// The target in origin form, which always has a path (RFC 9112 section 3.2.1), or `*`.
fn write_target(head: &request::Parts, out: &mut Vec<u8>) {
    let path = head.uri.path();
    if !path.starts_with('/') && path != "*" {
        out.push(b'/');
    }
    out.extend_from_slice(path.as_bytes());
    if let Some(query) = head.uri.query() {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
}

pub(super) fn write_field(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use http::uri::PathAndQuery;
    use http::{Request, Uri};

    use super::*;

    fn written(request: request::Builder, framing: RequestFraming) -> String {
        let (head, ()) = request.body(()).unwrap().into_parts();
        let mut out = Vec::new();
        write(&head, framing, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fields_are_as_they_are_and_host_is_first() {
        let request = Request::get("/a?b")
            .header("X-Name", "Value, as it  is")
            .header("cookie", "a=b")
            .header("host", "shop.example:81")
            .header("x-name", "again");
        assert_eq!(
            written(request, RequestFraming::None),
            "GET /a?b HTTP/1.1\r\nhost: shop.example:81\r\nx-name: Value, as it  is\r\n\
             x-name: again\r\ncookie: a=b\r\n\r\n"
        );
    }

    #[test]
    fn what_is_said_of_the_body_is_what_is_done() {
        let request = || {
            Request::post("/")
                .header("content-length", "7")
                .header("content-length", "8")
                .header("transfer-encoding", "gzip")
        };
        for (framing, said) in [
            (RequestFraming::None, "content-length: 0\r\n"),
            (RequestFraming::Length(5), "content-length: 5\r\n"),
            (RequestFraming::Chunked, "transfer-encoding: chunked\r\n"),
        ] {
            assert_eq!(
                written(request(), framing),
                format!("POST / HTTP/1.1\r\n{said}\r\n")
            );
        }
        assert_eq!(
            written(Request::post("/"), RequestFraming::None),
            "POST / HTTP/1.1\r\n\r\n"
        );
    }

    #[test]
    fn there_is_always_a_path() {
        for (target, expected) in [
            ("?x", "/?x"),
            ("/", "/"),
            ("/a?", "/a?"),
            ("*", "*"),
            ("/%2e?a=/b", "/%2e?a=/b"),
        ] {
            let target = PathAndQuery::try_from(target).unwrap();
            let request = Request::get(Uri::from(target));
            let head = format!("GET {expected} HTTP/1.1\r\n\r\n");
            assert_eq!(written(request, RequestFraming::None), head);
        }
        let absolute = Request::get("http://h.example");
        assert_eq!(
            written(absolute, RequestFraming::None),
            "GET / HTTP/1.1\r\n\r\n"
        );
    }

    #[test]
    fn the_old_version_is_said() {
        let request = Request::get("/").version(Version::HTTP_10);
        assert_eq!(
            written(request, RequestFraming::None),
            "GET / HTTP/1.0\r\n\r\n"
        );
    }
}
