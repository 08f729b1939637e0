//! Faulty origins, each with one fault.
//!
//! All listen on `127.0.0.1` without TLS and speak HTTP/1.1, except those in [`h2`]. Bodies of
//! responses are or begin with [`PARTIAL`]. Each function documents the effect that a client sees;
//! the tests of this module verify it on the wire.
//!
//! | subject | origins |
//! |---|---|
//! | connecting | [`RefusingPort`], [`UnansweredPort`], [`resets_on_accept`] |
//! | silence | [`never_answers`], [`never_reads`], [`stops_mid_head`], [`stops_mid_body`] |
//! | the end of a connection | [`closes_before_answer`], [`resets_before_answer`] |
//! | the end of a connection | [`closes_mid_body`], [`resets_mid_body`], [`closes_mid_chunk`] |
//! | the end of a connection | [`resets_mid_chunk`], [`ends_body_by_close`] |
//! | heads | [`garbage`], [`head_of_bytes`], [`head_with_fields`], [`endless_head`] |
//! | bodies | [`endless_body`], [`slow_body`], [`many_chunks`], [`malformed_chunk`] |
//! | bodies | [`endless_chunk_extension`], [`body_longer_than_told`], [`trailers`] |
//! | interim responses | [`continues`], [`never_continues`], [`rejects_expectation`] |
//! | interim responses | [`early_hints`], [`endless_interim`], [`switches_unasked`] |
//! | responses before the request is complete | [`answers_early`], [`answers_early_and_resets`] |
//! | pooled connections | [`closes_after_answer`], [`closes_at_next_request`], [`resets_at_next_request`] |
//! | half-closed connections | [`answers_after_half_close`] |
//!
//! ```
//! use testkit::client::{ClientError, Connection};
//! use testkit::faults;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ClientError> {
//! let origin = faults::resets_mid_body();
//! let error = Connection::http1(origin.addr()).await?.get("/").await.unwrap_err();
//! assert_eq!(error.truncated().unwrap().text(), faults::PARTIAL);
//! # Ok(())
//! # }
//! ```

mod body;
mod early;
mod ending;
pub mod h2;
mod head;
mod interim;
mod port;
mod reuse;
mod silence;

#[cfg(test)]
mod tests;

pub use self::body::{
    body_longer_than_told, endless_body, endless_chunk_extension, malformed_chunk, many_chunks,
    slow_body, trailers,
};
pub use self::early::{answers_after_half_close, answers_early, answers_early_and_resets};
pub use self::ending::{
    closes_before_answer, closes_mid_body, closes_mid_chunk, ends_body_by_close,
    resets_before_answer, resets_mid_body, resets_mid_chunk, resets_on_accept,
};
pub use self::head::{endless_head, garbage, head_of_bytes, head_with_fields};
pub use self::interim::{
    continues, early_hints, endless_interim, never_continues, rejects_expectation, switches_unasked,
};
pub use self::port::{RefusingPort, UnansweredPort};
pub use self::reuse::{closes_after_answer, closes_at_next_request, resets_at_next_request};
pub use self::silence::{never_answers, never_reads, stops_mid_body, stops_mid_head};

/// The body of responses, or its beginning if the rest never arrives.
pub const PARTIAL: &str = "hello";

/// A complete keep-alive response with [`PARTIAL`] as body.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A response that declares more bytes than it sends.
const TOO_SHORT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello";

/// The head and first chunk of a response without a last chunk.
const FIRST_CHUNK: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
