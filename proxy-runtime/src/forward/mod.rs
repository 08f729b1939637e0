//! The way of a request to a destination and back.
//!
//! ```text
//! head ─▶ route ─▶ layers ─▶ cluster ─▶ checks ─▶ filters ─▶ pick ─▶ connection ─▶ head, changed ─▶ send
//!                                                             ▲         │ none to be had: once to another destination
//!                                                             └─────────┘
//! client ◀─ layers ◀─ body, streamed and counted ◀─ head, changed ◀─ filters ◀─ response
//! ```
//!
//! Requests of the tower service take the exchange that clients of the server take as well. What is rejected before
//! it gets a local reply.
//!
//! # What is tried twice
//!
//! An attempt that brought no byte of a response may be repeated, at most twice: any request of which
//! nothing was processed, and one without a body whose method is idempotent (RFC 9110 section 9.2.2).
//! The next attempt goes to the same destination over a new connection if this one had a pooled one,
//! else to another destination.
//!
//! # Errors
//!
//! Failures are named as in YARP ([`ForwardErrorKind`](crate::ForwardErrorKind)) and answered as
//! there: 502, or 504 when it took too long, 400, 408 or 413 when it is the client's fault, 503 when
//! there is no destination. After the response has begun, it is cut off visibly
//! ([`ProxyBody`](crate::ProxyBody)). Clients are told the status and nothing else.
//!
//! # Limits
//!
//! Nothing is buffered beyond what a connection reads at a time. A response head may have 64 KiB and
//! 1,000 fields. Interim responses (1xx) are not passed on here, except `100 Continue`,
//! which is asked for and waited for: the client's body is not read before the destination wants it;
//! more than 16 of them before the final one are 502. Trailers of a client are sent on wherever its
//! body is: in HTTP/1.1 that is in chunks, and a body whose length was told has none (RFC 9110 section
//! 6.5).
//!
//! A destination of HTTP/1.1 that answers before it has all of the request still gets the rest of it,
//! for as long as the client takes the response. The client's upload then waits for its download.
//!
//! The activity timeout of a cluster counts as long as the proxy waits for the destination or for the
//! client's upload. Only the server can notice a client that does not take its response: a body that
//! is not polled cannot look at a clock. The server of this crate gives it up by its own data rate or,
//! if that is not set, by the activity timeout.

mod body_frames;
mod body_kind;
mod downstream;
pub(crate) mod exchange;
mod exchange_plan;
mod handshake;
mod head_lines;
mod layered;
mod pipeline;
pub(crate) mod plan;
pub(crate) mod recycled;
mod reply;
pub(crate) mod response;
mod route_context;
mod same_name;
mod sent_request;
mod service;
mod service_download;
mod switch;
#[cfg(test)]
mod tests;
pub(crate) mod typed;
mod upgrade;
mod websocket;

pub(crate) use self::body_kind::BodyKind;
#[cfg(any(test, all(feature = "http2", feature = "server")))]
pub(crate) use self::body_kind::body_kind_of;
pub(crate) use self::layered::rest_of_route;
pub(crate) use self::plan::{check_body, check_head, check_length, check_path};
pub(crate) use self::reply::reply;
pub use self::route_context::RouteContext;
pub(crate) use self::sent_request::sent_request;
pub use self::service::ResponseFuture;
pub use crate::response::{BodyEnd, BodyError, ExchangeInfo};
