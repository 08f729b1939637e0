//! Streams of HTTP/2 to destinations, as the exchange sees them.

use http::{HeaderMap, Request, StatusCode};

use crate::upstream::{response_text, stream_request, upload};

/// The adapter of streams to the form of HTTP/1.1.
#[derive(Debug)]
pub struct StreamHarness;

impl StreamHarness {
    /// Returns the request that a head in HTTP/1.1 becomes. `None` if it makes no request of HTTP/2.
    pub fn request(head: &[u8], is_tls: bool) -> Option<Request<()>> {
        stream_request(head, is_tls)
    }

    /// Returns the head in HTTP/1.1 that a response becomes.
    pub fn response(status: StatusCode, fields: &HeaderMap) -> Vec<u8> {
        response_text(status, fields, b"")
    }

    /// Returns the content and the trailers of a chunked request body that arrives in these parts. `None` if it is
    /// malformed or has not ended.
    pub fn upload(parts: &[&[u8]]) -> Option<(Vec<u8>, Option<HeaderMap>)> {
        upload(parts)
    }
}
