//! The fields that the server adds to and removes from a response.

use bytes::Bytes;
use http::header::{DATE, HeaderMap, HeaderValue, TE};

use crate::head::headers::{strip_for_http2, take_apart_if_long};
use crate::server::http1::date::write_date;

/// Prepares the fields of a response for HTTP/2: removes hop-by-hop fields (RFC 9113 section
/// 8.2.2), and adds a date.
pub(crate) fn settle(headers: &mut HeaderMap) {
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

    /// Returns for each value whether it shares the memory of the head after [`settle`].
    fn is_shared(length: usize) -> Vec<bool> {
        let head = Bytes::from(vec![b'x'; length]);
        let mut headers = HeaderMap::new();
        for (name, range) in [("x-short", 0..8), ("x-long", 8..length)] {
            let value = HeaderValue::from_maybe_shared(head.slice(range)).unwrap();
            headers.insert(name, value);
        }
        settle(&mut headers);
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
    fn fields_of_a_connection_go_and_a_date_comes() {
        let mut headers = HeaderMap::new();
        for name in ["keep-alive", "te", "upgrade", "x-hop", "x-also", "x-stays"] {
            headers.insert(name, HeaderValue::from_static("x"));
        }
        for named in ["close, X-Hop", "x-also,, not a name"] {
            headers.append(CONNECTION, HeaderValue::from_static(named));
        }
        settle(&mut headers);
        let date = headers.remove(DATE).unwrap();
        assert!(date.as_bytes().ends_with(b" GMT"));
        let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-stays"]);

        let own = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
        headers.insert(DATE, own.clone());
        settle(&mut headers);
        assert_eq!(headers[DATE], own);
    }
}
