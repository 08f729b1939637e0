//! The head of a request in HTTP/1.1, as that of a stream.

use bytes::Bytes;
use h2::ext::Protocol;
use http::header::{HOST, SEC_WEBSOCKET_KEY};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version};

use super::message_upload::UploadBody;
use crate::head::headers::{strip_for_http2, take_apart_if_long};
use crate::http1::{Framing, HeadLimits, PooledTable, Status, parse_request};
use crate::upstream::http1::to_map;

/// The head of a request for a stream.
pub(super) struct StreamHead {
    pub(super) request: Request<()>,
    /// The length of the head in HTTP/1.1.
    pub(super) length: usize,
    /// The body that follows the head in HTTP/1.1.
    pub(super) upload: UploadBody,
}

impl StreamHead {
    /// Reads a head in HTTP/1.1 that the proxy has written. `None` if it makes no request of HTTP/2.
    pub(super) fn read(head: &[u8], is_tls: bool) -> Option<Self> {
        // The proxy wrote this head itself, so the limits for clients do not apply.
        let limits = HeadLimits::default()
            .with_bytes(head.len())
            .with_request_line(head.len())
            .with_fields(usize::MAX);
        let mut table = PooledTable::default();
        let Ok(Status::Complete(raw)) = parse_request(head, &limits, &mut table) else {
            return None;
        };
        let text = Bytes::copy_from_slice(head);
        let mut fields = to_map(table.fields(), &text).ok()?;
        // `:authority` takes its place (RFC 9113 section 8.3.1).
        let host = fields.remove(HOST)?;
        let mut tunnel = None;
        if let Some(protocol) = raw.upgrade() {
            let protocol = std::str::from_utf8(protocol.get(head)).ok()?;
            tunnel = Some(Protocol::from(protocol));
            // RFC 8441 section 5: the proof is for HTTP/1.1.
            fields.remove(SEC_WEBSOCKET_KEY);
        }
        // HTTP/2 has no fields of a connection (RFC 9113 section 8.2.2).
        strip_for_http2(&mut fields);
        take_apart_if_long(&mut fields);
        let method = head.split(|byte| *byte == b' ').next()?;
        let target = raw.target();
        let target = text.slice(target.start() as usize..target.end() as usize);
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(match is_tls {
            true => Scheme::HTTPS,
            false => Scheme::HTTP,
        });
        uri.authority = Some(Authority::try_from(host.as_bytes()).ok()?);
        uri.path_and_query = Some(PathAndQuery::from_maybe_shared(target).ok()?);
        let mut request = Request::new(());
        *request.method_mut() = Method::from_bytes(method).ok()?;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = Uri::from_parts(uri).ok()?;
        *request.headers_mut() = fields;
        let is_tunnel = tunnel.is_some();
        if let Some(protocol) = tunnel {
            // RFC 8441 section 4.
            *request.method_mut() = Method::CONNECT;
            request.extensions_mut().insert(protocol);
        }
        Some(Self {
            length: raw.head_length(),
            upload: match raw.framing() {
                _ if is_tunnel => UploadBody::Tunnel,
                Framing::Chunked => UploadBody::Chunks(Box::default()),
                Framing::Length(length) => UploadBody::Length(length),
                Framing::None | Framing::UntilClose | Framing::Tunnel => UploadBody::Length(0),
            },
            request,
        })
    }
}

/// Converts an HTTP/1.1 head to the request of a stream.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn stream_request(head: &[u8], is_tls: bool) -> Option<Request<()>> {
    Some(StreamHead::read(head, is_tls)?.request)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "GET /a?b HTTP/1.1\r\nHost: h:81\r\n";

    #[test]
    fn a_head_becomes_fields_without_those_of_a_connection() {
        let lines = "Connection: TE, x-hop\r\nTE: trailers\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\
                     Transfer-Encoding: chunked\r\nx-a: 1\r\nx-a: 2\r\n";
        let head = format!("{START}{lines}\r\nbody");
        let read = StreamHead::read(head.as_bytes(), true).unwrap();
        assert_eq!(read.length, head.len() - 4);
        assert!(matches!(read.upload, UploadBody::Chunks(_)));
        assert_eq!(read.request.uri(), "https://h:81/a?b");
        let fields = read.request.headers().iter();
        let mut fields: Vec<_> = fields
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        fields.sort_unstable();
        assert_eq!(fields, [("te", "trailers"), ("x-a", "1"), ("x-a", "2")]);
    }

    #[test]
    fn a_websocket_is_asked_for_with_connect() {
        let lines = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\
                     Sec-WebSocket-Version: 13\r\n";
        let head = format!("{START}{lines}\r\n");
        let read = StreamHead::read(head.as_bytes(), false).unwrap();
        assert!(matches!(read.upload, UploadBody::Tunnel));
        assert_eq!(read.request.method(), Method::CONNECT);
        let protocol = read.request.extensions().get::<Protocol>().unwrap();
        assert_eq!(protocol.as_str(), "websocket");
        let fields = read.request.headers();
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["sec-websocket-version"]);
    }

    #[test]
    fn what_cannot_be_said_is_no_request() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: not a host\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",
            "",
        ] {
            assert!(StreamHead::read(head.as_bytes(), false).is_none(), "{head}");
        }
    }

    /// The sender of HTTP/2 heads keeps values, and a value that shares memory keeps the whole head.
    #[test]
    fn values_of_a_long_head_share_no_memory() {
        for (length, is_shared) in [(100, true), (20_000, false)] {
            let lines = format!("x-id: 1\r\nx-long: {}\r\n", "x".repeat(length));
            let head = format!("{START}{lines}\r\n");
            let request = stream_request(head.as_bytes(), false).unwrap();
            let [id, long] = ["x-id", "x-long"].map(|name| request.headers()[name].as_bytes());
            let apart = (long.as_ptr() as usize).wrapping_sub(id.as_ptr() as usize);
            assert_eq!(apart == "1\r\nx-long: ".len(), is_shared, "{length}");
        }
    }
}
