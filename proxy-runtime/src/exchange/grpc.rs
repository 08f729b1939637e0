//! Local replies to gRPC clients: a gRPC status in place of an HTTP status.

use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Converts the head of a local reply to the response of a gRPC call: trailers without a message, as "gRPC over
/// HTTP2" requires for calls that fail at once. Returns the HTTP status, which is 200.
#[cold]
pub(crate) fn for_call(status: StatusCode, fields: &mut HeaderMap) -> StatusCode {
    // A response of trailers alone has no body.
    fields.remove(CONTENT_LENGTH);
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    // A layer may have said more about it.
    if !fields.contains_key(GRPC_STATUS) {
        fields.insert(GRPC_STATUS, code(status).into());
        let reason = status.canonical_reason().unwrap_or_default();
        let message = format!("{} {reason}", status.as_u16());
        if let Ok(message) = HeaderValue::from_str(message.trim_end()) {
            fields.insert(GRPC_MESSAGE, message);
        }
    }
    StatusCode::OK
}

/// The code for a status: the one that clients of gRPC take it for themselves ("HTTP to gRPC Status
/// Code Mapping"), or a nearer one where that has none.
fn code(status: StatusCode) -> u16 {
    const UNKNOWN: u16 = 2;
    const PERMISSION_DENIED: u16 = 7;
    const RESOURCE_EXHAUSTED: u16 = 8;
    const UNIMPLEMENTED: u16 = 12;
    const INTERNAL: u16 = 13;
    const UNAVAILABLE: u16 = 14;
    const UNAUTHENTICATED: u16 = 16;
    match status.as_u16() {
        400 | 417 | 421 | 508 => INTERNAL,
        401 => UNAUTHENTICATED,
        403 => PERMISSION_DENIED,
        404 | 405 | 501 => UNIMPLEMENTED,
        // Of 429 the mapping makes UNAVAILABLE, which clients retry at once.
        413 | 414 | 429 | 431 => RESOURCE_EXHAUSTED,
        502..=504 => UNAVAILABLE,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_layer_says_of_it_stays() {
        let mut fields = HeaderMap::new();
        fields.insert(GRPC_STATUS, 8.into());
        assert_eq!(for_call(StatusCode::SERVICE_UNAVAILABLE, &mut fields), 200);
        assert_eq!(fields[GRPC_STATUS], "8");
        assert!(
            !fields.contains_key(GRPC_MESSAGE),
            "it is not the status of HTTP"
        );
    }

    #[test]
    fn a_failure_is_told_in_the_words_of_grpc() {
        for (status, expected) in [
            (400, "13"),
            (401, "16"),
            (403, "7"),
            (404, "12"),
            (405, "12"),
            (408, "2"),
            (413, "8"),
            (429, "8"),
            (431, "8"),
            (500, "2"),
            (502, "14"),
            (503, "14"),
            (504, "14"),
            (508, "13"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let mut fields = HeaderMap::new();
            fields.insert(CONTENT_LENGTH, 5.into());
            fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            assert_eq!(for_call(status, &mut fields), 200);
            assert_eq!(fields[GRPC_STATUS], expected, "{status}");
            assert_eq!(fields[CONTENT_TYPE], "application/grpc");
            assert!(!fields.contains_key(CONTENT_LENGTH));
        }
        let mut fields = HeaderMap::new();
        for_call(StatusCode::BAD_GATEWAY, &mut fields);
        assert_eq!(fields[GRPC_MESSAGE], "502 Bad Gateway");
    }
}
