use std::time::Duration;

use super::{ANSWER, FIRST_CHUNK, PARTIAL};
use crate::raw::{RawOrigin, chunk};

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Sends chunks of 16 KiB until the client disconnects.
#[track_caller]
pub fn endless_body() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        connection.write_all(CHUNKED).await?;
        let chunk = chunk(vec![b'x'; 16 * 1024]);
        loop {
            connection.write_all(&chunk).await?;
        }
    })
}

/// Sends `pieces` chunks of [`PARTIAL`], a pause on tokio's clock before each, and a proper end.
#[track_caller]
pub fn slow_body(pieces: usize, pause: Duration) -> RawOrigin {
    RawOrigin::script(move |mut connection| async move {
        loop {
            connection.read_whole_request().await?;
            connection.write_all(CHUNKED).await?;
            for _ in 0..pieces {
                tokio::time::sleep(pause).await;
                connection.write_all(chunk(PARTIAL)).await?;
            }
            connection.write_all(chunk("")).await?;
        }
    })
}

/// Sends `count` chunks of `size` bytes (at least 1) and a proper end.
#[track_caller]
pub fn many_chunks(count: usize, size: usize) -> RawOrigin {
    RawOrigin::script(move |mut connection| async move {
        let chunk_bytes = chunk(vec![b'x'; size.max(1)]);
        // Several chunks per write, so that a million of them do not need a million writes.
        let batch = 1 + 16 * 1024 / chunk_bytes.len();
        loop {
            connection.read_whole_request().await?;
            connection.write_all(CHUNKED).await?;
            let mut left = count;
            while left > 0 {
                let now = left.min(batch);
                connection.write_all(chunk_bytes.repeat(now)).await?;
                left -= now;
            }
            connection.write_all(chunk("")).await?;
        }
    })
}

/// Sends [`PARTIAL`] as the first chunk, then a chunk whose size is not a number, and closes.
#[track_caller]
pub fn malformed_chunk() -> RawOrigin {
    RawOrigin::answering_once([FIRST_CHUNK, b"zz\r\nhello\r\n0\r\n\r\n"].concat())
}

/// Begins a chunk with an extension that never ends, until the client disconnects.
#[track_caller]
pub fn endless_chunk_extension() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        connection.write_all([CHUNKED, b"5;a="].concat()).await?;
        loop {
            connection.write_all([b'a'; 4096]).await?;
        }
    })
}

/// Sends a complete response with [`PARTIAL`] as body and, in the same segment, an unrequested
/// second response. Keeps the connection open.
#[track_caller]
pub fn body_longer_than_told() -> RawOrigin {
    let unasked = b"HTTP/1.1 200 OK\r\nX-Evil: 1\r\nContent-Length: 4\r\n\r\nevil";
    RawOrigin::answering([ANSWER, unasked].concat())
}

/// Sends [`PARTIAL`] as the only chunk and these trailer fields, announced by `Trailer`.
#[track_caller]
pub fn trailers(fields: &[(&str, &str)]) -> RawOrigin {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let lines: String = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    RawOrigin::answering(format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: {}\r\n\r\n5\r\n{PARTIAL}\r\n0\r\n{lines}\r\n",
        names.join(", ")
    ))
}
