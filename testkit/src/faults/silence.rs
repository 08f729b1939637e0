use super::{FIRST_CHUNK, TOO_SHORT};
use crate::raw::RawOrigin;

/// Accepts, reads everything, and never responds.
#[track_caller]
pub fn never_answers() -> RawOrigin {
    RawOrigin::script(|mut connection| async move { connection.never_answer().await })
}

/// Accepts without reading: sent bytes fill the buffers of the sockets, and then the sender waits.
#[track_caller]
pub fn never_reads() -> RawOrigin {
    RawOrigin::script(|mut connection| async move { connection.hold().await })
}

/// Sends a status line and half a field, and then nothing.
#[track_caller]
pub fn stops_mid_head() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        connection
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Le")
            .await?;
        connection.never_answer().await
    })
}

/// Sends [`PARTIAL`](super::PARTIAL) of a body of 100 bytes (or of a chunked body, if `chunked`),
/// and then nothing.
#[track_caller]
pub fn stops_mid_body(chunked: bool) -> RawOrigin {
    let answer = if chunked { FIRST_CHUNK } else { TOO_SHORT };
    RawOrigin::script(move |mut connection| async move {
        connection.read_whole_request().await?;
        connection.write_all(answer).await?;
        connection.never_answer().await
    })
}
