use super::{FIRST_CHUNK, TOO_SHORT};
use crate::raw::RawOrigin;

/// Resets each connection as soon as it is accepted.
///
/// A client may notice when it connects, writes or reads.
#[track_caller]
pub fn resets_on_accept() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        connection.reset();
        Ok(())
    })
}

/// Reads the request with its body and closes without a response (FIN).
#[track_caller]
pub fn closes_before_answer() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        Ok(())
    })
}

/// Reads the request with its body and resets.
#[track_caller]
pub fn resets_before_answer() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        connection.reset();
        Ok(())
    })
}

/// Declares 100 bytes, sends [`PARTIAL`](super::PARTIAL), and closes (FIN).
#[track_caller]
pub fn closes_mid_body() -> RawOrigin {
    RawOrigin::answering_once(TOO_SHORT)
}

/// Declares 100 bytes, sends [`PARTIAL`](super::PARTIAL), and resets. The sent part can still be
/// read.
#[track_caller]
pub fn resets_mid_body() -> RawOrigin {
    answers_and_resets(TOO_SHORT)
}

/// Sends [`PARTIAL`](super::PARTIAL) as the first chunk and closes (FIN) without a last one.
#[track_caller]
pub fn closes_mid_chunk() -> RawOrigin {
    RawOrigin::answering_once(FIRST_CHUNK)
}

/// Sends [`PARTIAL`](super::PARTIAL) as the first chunk and resets. The sent part can still be
/// read.
#[track_caller]
pub fn resets_mid_chunk() -> RawOrigin {
    answers_and_resets(FIRST_CHUNK)
}

/// Sends [`PARTIAL`](super::PARTIAL) without framing and closes: a body that ends with the
/// connection, which HTTP/1.1 allows (RFC 9112 6.3).
#[track_caller]
pub fn ends_body_by_close() -> RawOrigin {
    RawOrigin::answering_once(&b"HTTP/1.1 200 OK\r\nX-Framing: none\r\n\r\nhello"[..])
}

#[track_caller]
fn answers_and_resets(answer: &'static [u8]) -> RawOrigin {
    RawOrigin::script(move |mut connection| async move {
        connection.read_whole_request().await?;
        connection.write_all(answer).await?;
        connection.reset();
        Ok(())
    })
}
