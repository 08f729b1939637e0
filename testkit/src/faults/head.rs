use crate::raw::{self, RawOrigin};

/// The start of a valid response with [`PARTIAL`](super::PARTIAL) as body.
const START: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n";

/// Sends bytes that are not HTTP, and closes.
#[track_caller]
pub fn garbage() -> RawOrigin {
    RawOrigin::answering_once(&b"\x16\x03\x01\x02\x00\xff\xfe\x00\r\n\x80garbage\r\n\r\n"[..])
}

/// Sends a head of exactly `length` bytes, most of them in one field; otherwise valid, with
/// [`PARTIAL`](super::PARTIAL) as body.
#[track_caller]
pub fn head_of_bytes(length: usize) -> RawOrigin {
    let mut answer = raw::head_of_bytes(START, length);
    answer.extend(super::PARTIAL.as_bytes());
    RawOrigin::answering(answer)
}

/// Sends `fields` short fields and `Content-Length`; otherwise valid, with
/// [`PARTIAL`](super::PARTIAL) as body.
#[track_caller]
pub fn head_with_fields(fields: usize) -> RawOrigin {
    let mut answer = raw::head_with_fields(START, fields);
    answer.extend(super::PARTIAL.as_bytes());
    RawOrigin::answering(answer)
}

/// Sends a head that never ends: field after field until the client disconnects.
#[track_caller]
pub fn endless_head() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        connection.write_all(b"HTTP/1.1 200 OK\r\n").await?;
        loop {
            connection
                .write_all(b"X-More: and more and more\r\n".repeat(64))
                .await?;
        }
    })
}
