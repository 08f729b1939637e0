//! Small responses that arrive completely.

use bytes::Bytes;

use crate::http1::{Framing, RawResponse};
use crate::stream::ReadBuffer;

/// The largest response, head and body, that is copied into one block. The block lives as long as
/// the HPACK table (RFC 7541 section 2.3.2) keeps one of its fields, so it must be small.
const MOST: usize = 512;

/// A response in one shared block of memory.
struct Small {
    bytes: [u8; MOST],
    length: usize,
}

impl AsRef<[u8]> for Small {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Takes a small response with its body from `input`, if it is complete and has a body of known
/// length.
pub(super) fn take_whole(response: &RawResponse, input: &mut ReadBuffer) -> Option<Bytes> {
    let content = match response.framing() {
        // Without content the head is enough.
        Framing::Length(length) => usize::try_from(length).ok().filter(|length| *length > 0)?,
        _ => return None,
    };
    let length = response.head_length().checked_add(content)?;
    let mut bytes = [0; MOST];
    bytes
        .get_mut(..length)?
        .copy_from_slice(input.filled().get(..length)?);
    input.consume(length);
    Some(Bytes::from_owner(Small { bytes, length }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{HeadTable, Method, RequestInfo, Status, parse_response};
    use crate::upstream::response_limits as limits;

    fn taken(text: &str) -> (Option<Bytes>, String) {
        let mut input = ReadBuffer::with(text.as_bytes());
        let asked = RequestInfo {
            method: Method::Get,
            upgrade: false,
        };
        let mut table = HeadTable::new();
        let parsed = parse_response(input.filled(), asked, &limits(), &mut table);
        let Ok(Status::Complete(response)) = parsed else {
            panic!("{parsed:?} of {text}");
        };
        let taken = take_whole(&response, &mut input);
        (taken, String::from_utf8_lossy(input.filled()).into_owned())
    }

    #[test]
    fn a_small_response_that_has_come_is_taken_and_no_more() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(taken(text), (Some(Bytes::from(text)), String::new()));
        let (whole, rest) = taken(&format!("{text}!"));
        assert_eq!((whole.as_deref(), &*rest), (Some(text.as_bytes()), "!"));
    }

    #[test]
    fn any_other_is_left_where_it_is() {
        let head = |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let most = MOST - head(100).len();
        let of = |length| head(length) + &"x".repeat(length);
        assert!(taken(&of(most)).0.is_some());
        for text in [
            of(most + 1),
            head(0),
            head(3) + "ok",
            head(usize::MAX >> 8) + "ok",
            "HTTP/1.1 200 OK\r\n\r\nok".to_owned(),
            "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n".to_owned(),
        ] {
            assert_eq!(taken(&text), (None, text.clone()));
        }
    }
}
