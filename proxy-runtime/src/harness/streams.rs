//! Streams of HTTP/2 to destinations, as the exchange sees them.

use http::{HeaderMap, Request, StatusCode};

use crate::upstream::{response_text, stream_request, upload};

/// The adapter of streams to the form of HTTP/1.1.
#[derive(Debug)]
pub struct StreamHarness;

impl StreamHarness {
    /// Converts an HTTP/1.1 head to an HTTP/2 request. `None` if it is not valid there.
    pub fn request(head: &[u8], is_tls: bool) -> Option<Request<()>> {
        stream_request(head, is_tls)
    }

    /// Converts a response to an HTTP/1.1 head.
    pub fn response(status: StatusCode, fields: &HeaderMap) -> Vec<u8> {
        response_text(status, fields, b"")
    }

    /// Returns the content and the trailers of a chunked request body that arrives in these parts. `None` if it is
    /// malformed or has not ended.
    pub fn upload(parts: &[&[u8]]) -> Option<(Vec<u8>, Option<HeaderMap>)> {
        upload(parts)
    }
}
