//! Writes requests in `http` types for a destination.

use http::header::COOKIE;
use http::{HeaderMap, HeaderName};

use super::fields::{Copied, write_length};
use super::operation::{Changes, FieldOperation, FieldValue, Removed};
use super::request::OutgoingTarget;
use super::{CHUNKED, END, put};
use crate::http1::field::{ClassSet, FieldClass, classify};
use crate::http1::framing::Framing;

/// A request in `http` types, of any HTTP version, as it is forwarded.
///
/// If it has a `Connection`, that names only fields that are left out in any case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: OutgoingTarget<'a>,
    pub(crate) host: FieldValue<'a>,
    pub(crate) fields: &'a HeaderMap,
    /// The framing of the body: [`Length`](Framing::Length), [`Chunked`](Framing::Chunked) or [`None`](Framing::None).
    pub(crate) framing: Framing,
    /// The fields that are forwarded.
    pub(crate) copied: Copied<'a>,
    /// The operations of the route.
    pub(crate) operations: &'a [FieldOperation<'a>],
    /// True to write `TE: trailers`.
    pub(crate) accepts_trailers: bool,
    /// A line that is always added, preceded by CRLF; or empty.
    pub(crate) last: &'a [u8],
}

/// The classes that are not copied: fields about the connection, and those that are written separately.
const DROPPED: ClassSet = ClassSet::CONNECTION.with(FieldClass::ContentLength);

/// Appends the head of a request to `out`, as [`write_request`](super::write_request) does. The crumbs into which
/// HTTP/2 may cut `Cookie` are joined (RFC 9113 section 8.2.3).
pub(crate) fn write_stream_request(request: &StreamRequest<'_>, out: &mut Vec<u8>) {
    put(out, &[request.method.as_bytes(), b" "]);
    request.target.write(out);
    put(out, &[b" HTTP/1.1\r\nHost: ", request.host.as_bytes()]);
    let removed = Removed::new(request.operations);
    let dropped = request.copied.dropping(DROPPED);
    let mut last: Option<&HeaderName> = None;
    for (name, value) in request.fields {
        let bytes = name.as_str().as_bytes();
        let class = classify(bytes);
        if dropped.contains(class)
            || removed.has_name(bytes, class)
            || !request.copied.has_name(bytes)
        {
            continue;
        }
        // A map has the values of a name one after the other.
        let is_crumb = class == FieldClass::Credentials && last == Some(name) && *name == COOKIE;
        match is_crumb {
            true => put(out, &[b"; ", value.as_bytes()]),
            false => put(out, &[b"\r\n", bytes, b": ", value.as_bytes()]),
        }
        last = Some(name);
    }
    match request.framing {
        Framing::Length(length) => write_length(length, out),
        Framing::Chunked => out.extend_from_slice(CHUNKED),
        _ => {}
    }
    if request.accepts_trailers {
        out.extend_from_slice(b"\r\nConnection: TE\r\nTE: trailers");
    }
    removed.write(out);
    out.extend_from_slice(request.last);
    out.extend_from_slice(END);
}

#[cfg(test)]
mod tests {
    use super::super::FieldName;
    use super::*;

    fn written(request: &StreamRequest<'_>) -> String {
        let mut out = Vec::new();
        write_stream_request(request, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let fields = fields.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                http::HeaderValue::from_static(value),
            )
        });
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(name, value);
        }
        map
    }

    fn request(fields: &HeaderMap) -> StreamRequest<'_> {
        StreamRequest {
            method: "GET",
            target: OutgoingTarget::new(b"/a", Some(b"b=c")).unwrap(),
            host: FieldValue::from_static("h"),
            fields,
            framing: Framing::None,
            copied: Copied::All,
            operations: &[],
            accepts_trailers: false,
            last: &[],
        }
    }

    #[test]
    fn fields_of_connections_stay_behind_and_crumbs_are_joined() {
        let fields = map(&[
            ("host", "other"),
            ("cookie", "a=1"),
            ("te", "trailers"),
            ("x-a", "1"),
            ("content-length", "007"),
            ("proxy-authorization", "secret"),
            ("x-a", "2"),
            ("cookie", "b=2"),
        ]);
        assert_eq!(
            written(&request(&fields)),
            "GET /a?b=c HTTP/1.1\r\nHost: h\r\ncookie: a=1; b=2\r\nx-a: 1\r\nx-a: 2\r\n\r\n"
        );
    }

    #[test]
    fn the_body_is_framed_as_it_is_sent() {
        let fields = HeaderMap::new();
        let mut request = request(&fields);
        request.framing = Framing::Length(12);
        assert!(written(&request).ends_with("\r\nContent-Length: 12\r\n\r\n"));
        request.framing = Framing::Chunked;
        request.accepts_trailers = true;
        assert!(
            written(&request).ends_with(
                "\r\nTransfer-Encoding: chunked\r\nConnection: TE\r\nTE: trailers\r\n\r\n"
            )
        );
    }

    #[test]
    fn the_route_has_its_say() {
        let fields = map(&[("x-old", "1"), ("cookie", "a"), ("x-keep", "2")]);
        let [old, cookie, new] = ["X-Old", "Cookie", "X-New"].map(|n| FieldName::new(n).unwrap());
        let value = FieldValue::from_static("v");
        let mut request = request(&fields);
        let operations = [
            FieldOperation::Remove(&cookie),
            FieldOperation::Set(&old, value),
            FieldOperation::Append(&new, value),
        ];
        request.operations = &operations;
        assert_eq!(
            written(&request),
            "GET /a?b=c HTTP/1.1\r\nHost: h\r\nx-keep: 2\r\nX-Old: v\r\nX-New: v\r\n\r\n"
        );
        let names = [FieldName::new("X-Keep").unwrap()];
        request.operations = &[];
        for (copied, expected) in [(Copied::None, ""), (Copied::Only(&names), "x-keep: 2\r\n")] {
            request.copied = copied;
            let expected = format!("GET /a?b=c HTTP/1.1\r\nHost: h\r\n{expected}\r\n");
            assert_eq!(written(&request), expected);
        }
    }
}
