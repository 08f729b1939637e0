//! The head of a request as it is written.

use http::header::{HOST, HeaderName, HeaderValue};
use http::{Version, request};

use super::super::web_proxy::AbsoluteForm;

/// Writes the head of a request without a body. A forward proxy needs the target in `absolute` form, and perhaps
/// credentials.
pub(super) fn write(head: &request::Parts, absolute: Option<&AbsoluteForm>, out: &mut Vec<u8>) {
    out.extend_from_slice(head.method.as_str().as_bytes());
    out.push(b' ');
    match absolute {
        None => write_target(head, out),
        Some(absolute) => write_absolute(head, absolute, out),
    }
    out.extend_from_slice(match head.version {
        Version::HTTP_10 => b" HTTP/1.0\r\n",
        _ => b" HTTP/1.1\r\n",
    });
    // RFC 9110 section 7.2: the first one, so that it is seen as soon as possible.
    if let Some(host) = head.headers.get(HOST) {
        write_field(&HOST, host, out);
    }
    if let Some(absolute) = absolute {
        out.extend_from_slice(&absolute.lines);
    }
    for (name, value) in &head.headers {
        if *name != HOST {
            write_field(name, value, out);
        }
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

/// The target in absolute form. `*` is written as no path (RFC 9112 section 3.2.4).
#[cold]
fn write_absolute(head: &request::Parts, absolute: &AbsoluteForm, out: &mut Vec<u8>) {
    out.extend_from_slice(&absolute.prefix);
    if head.uri.path() != "*" {
        write_target(head, out);
    }
}

fn write_field(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) {
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

    fn written(request: request::Builder) -> String {
        let (head, ()) = request.body(()).unwrap().into_parts();
        let mut out = Vec::new();
        write(&head, None, &mut out);
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
            written(request),
            "GET /a?b HTTP/1.1\r\nhost: shop.example:81\r\nx-name: Value, as it  is\r\n\
             x-name: again\r\ncookie: a=b\r\n\r\n"
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
            assert_eq!(written(request), head);
        }
        let absolute = Request::get("http://h.example");
        assert_eq!(written(absolute), "GET / HTTP/1.1\r\n\r\n");
    }

    #[test]
    fn the_old_version_is_said() {
        let request = Request::get("/").version(Version::HTTP_10);
        assert_eq!(written(request), "GET / HTTP/1.0\r\n\r\n");
    }

    #[test]
    fn a_forward_proxy_gets_absolute_targets_and_its_credentials() {
        let absolute = AbsoluteForm {
            prefix: b"http://d.example:81".to_vec(),
            lines: b"proxy-authorization: Basic eA==\r\n".to_vec(),
        };
        for (target, expected) in [
            ("/a?b", "http://d.example:81/a?b"),
            ("?x", "http://d.example:81/?x"),
            ("*", "http://d.example:81"),
        ] {
            let target = PathAndQuery::try_from(target).unwrap();
            let request = Request::get(Uri::from(target)).header("host", "shop.example");
            let (head, ()) = request.body(()).unwrap().into_parts();
            let mut out = Vec::new();
            write(&head, Some(&absolute), &mut out);
            assert_eq!(
                String::from_utf8(out).unwrap(),
                format!(
                    "GET {expected} HTTP/1.1\r\nhost: shop.example\r\n\
                     proxy-authorization: Basic eA==\r\n\r\n"
                )
            );
        }
    }
}
