//! HTTP/1.1 on the wire: heads, framing of bodies, and heads as they are sent on.
//!
//! Pure functions and state machines over slices of bytes: no I/O, no clock, no allocation per message, and a bound on
//! everything that a peer can make grow. A connection is somebody else's affair; this module says what the bytes mean.
//!
//! | for | there is |
//! |---|---|
//! | the head of a request, of a response | [`parse_request`], [`parse_response`] into a [`HeadTable`] |
//! | where a body ends | [`Framing`] |
//! | chunks | [`ChunkTracker`] follows those that come, [`ChunkHead`] writes those that do not |
//! | a head as it is sent on | [`write_request`], [`write_response`], [`write_trailers`] |
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
//! # Ok::<(), proxy_runtime::http1::Refusal>(())
//! ```
//!
//! # One meaning
//!
//! A message that two programs could read in two ways is not passed on; [`Refusal`] says why, and what to answer. RFC 9112
//! lets a recipient forgive a good deal. This is what was made of each such choice:
//!
//! | RFC 9112 | may be forgiven | here |
//! |---|---|---|
//! | 2.2 | a line that ends in LF | refused, in heads, chunks and trailers |
//! | 2.2 | empty lines before a request | one CRLF is left out; none before a response |
//! | 2.2, 5.2 | folded lines, lines that begin with white space | refused, in responses too |
//! | 2.3 | versions 1.2 to 1.9 | refused, 505 |
//! | 3, 4 | other white space in the start line | refused |
//! | 3.2 | bytes that should be percent-encoded | refused, but for `[`, `]`, `\|`, `^`, and in queries `{`, `}`, `\` and the backtick, which browsers leave as they are; no byte beyond ASCII |
//! | 3.2 | an empty `Host`, a `Host` that is no host and port | refused; IPv6 in brackets, names of letters, digits, `-`, `.`, `_`, `~` |
//! | 3.2.2 | `Host` that differs from an absolute target | the target counts, and becomes `Host` |
//! | 4 | no space behind the status | taken, and written as it should be |
//! | 5.1 | white space before the colon | refused, in responses too |
//! | 5 | tabs around the value of `Content-Length` or `Transfer-Encoding` | refused: llhttp and others read them differently |
//! | 5 | obs-text in values (RFC 9110 section 5.5) | passed on: one meaning, and much in use |
//! | 6.1 | `Transfer-Encoding` in HTTP/1.0, or beside a `Content-Length` | refused |
//! | 6.1 | codings besides one final `chunked`; several lines | refused, 501 if it is well-formed |
//! | 6.3 | equal lengths given twice | refused |
//! | 6.3 | zeros in front of a length | taken, and written without |
//! | 6.3 | a body announced by a 204 | there is none, and the connection is not used again; by 1xx it is refused |
//! | 7.1 | zeros in front of a size | up to 16 digits in all |
//! | 7.1.1 | white space around extensions; any length | refused; 16 KiB a body |
//! | 7.1.2 | `Host`, `Content-Length`, `Transfer-Encoding` in trailers | refused; others that RFC 9110 section 6.5.1 forbids are left out |
//! | 9.3 | `keep-alive` of HTTP/1.0 | honoured |
//!
//! Besides, names with `_` that imitate fields of the proxy are refused in requests (`X_Forwarded_For`), since programs
//! behind it may take one for the other. Paths are read as bytes: dot segments and percent-encoding are left to who routes,
//! and [`RawRequest::has_plain_path`] says when there is nothing to do.

mod block;
mod bytes;
mod chunked;
mod field;
mod framing;
mod head;
mod lent_table;
mod limits;
mod refusal;
mod rewrite;
mod span;

#[cfg(all(feature = "http2", feature = "server"))]
pub(crate) use self::bytes::{is_path_and_query, is_plain_path};
pub use self::chunked::{CHUNK_END, ChunkHead, ChunkTracker, LAST_CHUNK, Progress};
#[cfg(feature = "server")]
pub(crate) use self::field::is;
#[cfg(all(feature = "http2", feature = "server"))]
pub(crate) use self::field::is_imitation;
pub use self::field::{ClassSet, Field, FieldClass};
pub(crate) use self::field::{classify, has_underscore, is_dropped_from_trailers};
pub use self::framing::Framing;
#[cfg(all(feature = "server", feature = "http2"))]
pub(crate) use self::head::is_authority;
#[cfg(feature = "server")]
pub(crate) use self::head::read_request;
pub use self::head::{
    Asked, HeadTable, Method, RawRequest, RawResponse, RequestView, Status, TargetForm, Version,
    parse_request, parse_response,
};
pub(crate) use self::lent_table::LentTable;
pub use self::limits::HeadLimits;
pub use self::refusal::Refusal;
#[cfg(feature = "server")]
pub(crate) use self::rewrite::{Changes, write_changed_request};
pub use self::rewrite::{
    Copied, FieldName, FieldOperation, FieldValue, OutgoingConnection, OutgoingMethod,
    OutgoingTarget, RequestRewrite, ResponseRewrite, write_request, write_response, write_trailers,
};
#[cfg(feature = "server")]
pub(crate) use self::rewrite::{StreamRequest, kept_fields, write_stream_request};
pub use self::span::Span;
