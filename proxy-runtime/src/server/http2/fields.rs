//! The fields that the server adds to and removes from a response.

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, DATE, HeaderMap, HeaderValue, TE};
use http::response::Parts;

use crate::exchange::grpc;
use crate::head::LocalReplyMark;
use crate::head::headers::{strip_for_http2, take_apart_if_long};
use crate::server::http1::date::write_date;

/// The properties of a request that its response depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamResponseContext {
    pub(crate) is_head: bool,
    /// True for a gRPC call.
    pub(crate) is_call: bool,
}

impl StreamResponseContext {
    /// Returns true for a local reply to a gRPC call, which has no body.
    pub(crate) fn gets_status_only(self, head: &Parts) -> bool {
        self.is_call && head.extensions.get::<LocalReplyMark>().is_some()
    }
}

/// Prepares the head of a response with a body of this `length`, if that is known. Returns true if the head is all
/// of the response; `is_empty`: it has no body.
pub(crate) fn prepare_head(
    head: &mut Parts,
    response_context: StreamResponseContext,
    length: Option<u64>,
    is_empty: bool,
) -> bool {
    if response_context.gets_status_only(head) {
        head.status = grpc::for_call(head.status, &mut head.headers);
        prepare_fields(&mut head.headers);
        return true;
    }
    prepare_fields(&mut head.headers);
    let has_none = response_context.is_head
        || matches!(
            head.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
    let is_end = has_none || is_empty;
    // RFC 9110 section 8.6 forbids a length in 204.
    if !head.headers.contains_key(CONTENT_LENGTH)
        && head.status != StatusCode::NO_CONTENT
        && let Some(length) = length
        // A length of 0 says no more than the end of the stream.
        && (length > 0 || !is_end)
    {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    is_end
}

/// Prepares the fields of a response for HTTP/2: removes hop-by-hop fields (RFC 9113 section
/// 8.2.2), and adds a date.
pub(crate) fn prepare_fields(headers: &mut HeaderMap) {
    strip_for_http2(headers);
    headers.remove(TE);
    if !headers.contains_key(DATE) {
        headers.insert(DATE, date());
    }
    take_apart_if_long(headers);
}

/// The fields that `Connection` names as hop-by-hop (RFC 9110 section 7.6.1).
pub(crate) fn date() -> HeaderValue {
    let mut text = Vec::new();
    write_date(&mut text);
    HeaderValue::from_maybe_shared(Bytes::from(text)).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use http::header::{CONNECTION, HeaderName};

    use super::*;
    use crate::head::headers::MOST_SHARED;

    /// Returns for each value whether it shares the memory of the head after [`prepare_fields`].
    fn is_shared(length: usize) -> Vec<bool> {
        let head = Bytes::from(vec![b'x'; length]);
        let mut headers = HeaderMap::new();
        for (name, range) in [("x-short", 0..8), ("x-long", 8..length)] {
            let value = HeaderValue::from_maybe_shared(head.slice(range)).unwrap();
            headers.insert(name, value);
        }
        prepare_fields(&mut headers);
        assert_eq!(headers["x-short"], "xxxxxxxx");
        assert_eq!(headers["x-long"].len(), length - 8);
        let memory = head.as_ptr_range();
        let values = ["x-short", "x-long"].map(|name| headers[name].as_bytes().as_ptr());
        values.iter().map(|value| memory.contains(value)).collect()
    }

    #[test]
    fn values_of_a_long_head_have_memory_of_their_own() {
        assert_eq!(is_shared(MOST_SHARED / 2), [true, true]);
        assert_eq!(is_shared(MOST_SHARED), [false, false]);
        assert_eq!(is_shared(64 * 1024), [false, false]);
    }

    #[test]
    fn heads_say_whether_a_body_follows() {
        let get = StreamResponseContext {
            is_head: false,
            is_call: false,
        };
        let head = StreamResponseContext {
            is_head: true,
            ..get
        };
        let call = StreamResponseContext {
            is_call: true,
            ..get
        };
        for (response_context, status, is_own, length, is_empty, expected) in [
            (get, 200, false, Some(5), false, (200, false, Some("5"))),
            (get, 200, false, None, false, (200, false, None)),
            (get, 200, false, Some(0), true, (200, true, None)),
            (get, 204, true, Some(5), false, (204, true, None)),
            (get, 304, false, Some(5), false, (304, true, Some("5"))),
            (head, 200, true, Some(5), false, (200, true, Some("5"))),
            (call, 502, true, Some(5), false, (200, true, None)),
            (call, 502, false, Some(5), false, (502, false, Some("5"))),
        ] {
            let mut response = http::Response::new(());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            if is_own {
                LocalReplyMark::mark(&mut response);
            }
            let (mut parts, ()) = response.into_parts();
            let is_end = prepare_head(&mut parts, response_context, length, is_empty);
            let said = parts.headers.get(CONTENT_LENGTH);
            let said = said.map(|said| said.to_str().unwrap());
            let seen = (parts.status.as_u16(), is_end, said);
            assert_eq!(seen, expected, "{response_context:?} {status} {is_own}");
        }
    }

    #[test]
    fn fields_of_a_connection_go_and_a_date_comes() {
        let mut headers = HeaderMap::new();
        for name in ["keep-alive", "te", "upgrade", "x-hop", "x-also", "x-stays"] {
            headers.insert(name, HeaderValue::from_static("x"));
        }
        for named in ["close, X-Hop", "x-also,, not a name"] {
            headers.append(CONNECTION, HeaderValue::from_static(named));
        }
        prepare_fields(&mut headers);
        let date = headers.remove(DATE).unwrap();
        assert!(date.as_bytes().ends_with(b" GMT"));
        let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-stays"]);

        let own = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
        headers.insert(DATE, own.clone());
        prepare_fields(&mut headers);
        assert_eq!(headers[DATE], own);
    }
}
