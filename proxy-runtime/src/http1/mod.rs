//! HTTP/1.1 messages: heads, body framing, and forwarded heads.
//!
//! Pure functions and state machines over byte slices: no I/O, no clock, no allocation per message,
//! and a limit on everything that a peer can make grow. Other modules handle connections.
//!
//! | task | items |
//! |---|---|
//! | the head of a request, of a response | [`parse_request`], [`parse_response`] into a [`HeadTable`] |
//! | body framing | [`Framing`] |
//! | chunks | [`ChunkTracker`] tracks received chunks, [`ChunkHead`] writes chunks |
//! | forwarded heads | [`write_request`], [`write_response`], [`write_trailers`] |
//! | routing | [`RequestView`], which is a [`RequestHead`](proxy_model::RequestHead) |
//!
#![cfg_attr(feature = "testing", doc = "```")]
#![cfg_attr(not(feature = "testing"), doc = "```ignore")]
//! use proxy_runtime::http1::{
//!     Framing, HeadLimits, HeadTable, RequestRewrite, Status, parse_request, write_request,
//! };
//!
//! let received = b"GET /a?b HTTP/1.1\r\nHost: shop.example\r\nConnection: keep-alive\r\n\r\n";
//! let mut table = HeadTable::new();
//! let Status::Complete(request) = parse_request(received, &HeadLimits::default(), &mut table)? else {
//!     panic!("the head is complete");
//! };
//! assert_eq!(request.framing(), Framing::None);
//! assert!(request.is_persistent());
//!
//! let mut out = Vec::with_capacity(1024);
//! write_request(received, &request, &table, &RequestRewrite::default(), &mut out);
//! assert_eq!(out, b"GET /a?b HTTP/1.1\r\nHost: shop.example\r\n\r\n");
//! # Ok::<(), proxy_runtime::http1::Rejection>(())
//! ```
//!
//! # One meaning
//!
//! A message that two programs could interpret differently is not forwarded; [`Rejection`] has the
//! reason and the status. RFC 9112 allows recipients to be lenient. The choices made here:
//!
//! | RFC 9112 | leniency allowed for | here |
//! |---|---|---|
//! | 2.2 | a line that ends in LF | rejected, in heads, chunks and trailers |
//! | 2.2 | empty lines before a request | one CRLF is skipped; none before a response |
//! | 2.2, 5.2 | folded lines, lines that begin with white space | rejected, in responses too |
//! | 2.3 | versions 1.2 to 1.9 | rejected with 505 |
//! | 3, 4 | other white space in the start line | rejected |
//! | 3.2 | bytes that should be percent-encoded | rejected, except those that browsers leave unencoded, see below |
//! | 3.2 | an empty `Host`, or no host and port | rejected; IPv6 in brackets, and names of letters, digits, `-._~` |
//! | 3.2.2 | `Host` that differs from an absolute target | the target wins, and becomes `Host` |
//! | 4 | no space after the status | accepted, and written correctly |
//! | 5.1 | white space before the colon | rejected, in responses too |
//! | 5 | tabs around `Content-Length` or `Transfer-Encoding` | rejected: llhttp and others read them differently |
//! | 5 | obs-text in values (RFC 9110 section 5.5) | passed on: unambiguous and common |
//! | 6.1 | `Transfer-Encoding` in HTTP/1.0, or with a `Content-Length` | rejected |
//! | 6.1 | codings other than one final `chunked`; several lines | rejected, with 501 if valid |
//! | 6.3 | equal lengths given twice | rejected |
//! | 6.3 | leading zeros of a length | accepted, and written without |
//! | 6.3 | a body declared by a 204 | none is read, and the connection is closed; in 1xx rejected |
//! | 7.1 | leading zeros of a size | up to 16 digits in total |
//! | 7.1.1 | white space around extensions; any length | rejected; 16 KiB per body |
//! | 7.1.2 | forbidden trailers | rejected if they frame or route a message, otherwise dropped |
//! | 9.3 | `keep-alive` in HTTP/1.0 | honoured |
//!
//! Browsers leave `[`, `]`, `|` and `^` unencoded, and in queries also `{`, `}`, `\` and the
//! backtick: these are accepted, and no byte beyond ASCII. `Host`, `Content-Length` and
//! `Transfer-Encoding` frame or route a message; RFC 9110 section 6.5.1 lists other forbidden
//! trailers.
//!
//! Names with `_` that imitate fields of the proxy (`X_Forwarded_For`) are rejected in requests,
//! since programs behind it may confuse them. Paths are bytes here: routing handles dot segments
//! and percent-encoding, and [`RawRequest::has_plain_path`] tells if there are any.

mod block;
mod bytes;
mod chunked;
mod field;
mod framing;
mod head;
mod limits;
mod pooled_table;
mod rejection;
mod rewrite;
mod span;

#[cfg(all(feature = "http2", feature = "server"))]
pub(crate) use self::bytes::{is_path_and_query, is_plain_path};
pub use self::chunked::{CHUNK_END, ChunkHead, ChunkTracker, LAST_CHUNK, Progress};
pub(crate) use self::field::is;
#[cfg(all(feature = "http2", feature = "server"))]
pub(crate) use self::field::is_imitation;
pub use self::field::{ClassSet, Field, FieldClass};
pub(crate) use self::field::{classify, has_underscore, is_dropped_from_trailers};
pub use self::framing::Framing;
pub(crate) use self::head::is_authority;
#[cfg(feature = "server")]
pub(crate) use self::head::read_request;
pub use self::head::{
    HeadTable, Method, RawRequest, RawResponse, RequestInfo, RequestView, Status, TargetForm,
    Version, parse_request, parse_response,
};
pub use self::limits::HeadLimits;
pub(crate) use self::pooled_table::PooledTable;
pub use self::rejection::Rejection;
#[cfg(feature = "server")]
pub(crate) use self::rewrite::{Changes, write_changed_request};
pub use self::rewrite::{
    Copied, FieldName, FieldOperation, FieldValue, OutgoingConnection, OutgoingMethod,
    OutgoingTarget, RequestRewrite, ResponseRewrite, write_request, write_response, write_trailers,
};
pub(crate) use self::rewrite::{StreamRequest, kept_fields, write_stream_request};
pub use self::span::Span;
