//! The way of a request to a destination and back.
//!
//! ```text
//! head ─▶ route ─▶ layers ─▶ cluster ─▶ checks ─▶ filters ─▶ pick ─▶ connection ─▶ head, changed ─▶ send
//!                                                             ▲         │ none to be had: once to another destination
//!                                                             └─────────┘
//! client ◀─ layers ◀─ body, streamed and counted ◀─ head, changed ◀─ filters ◀─ response
//! ```
//!
//! # What is tried twice
//!
//! A request is sent again if it is known that no destination has it: a pooled connection turned out to be closed
//! before a byte was sent, or the destination said in HTTP/2 that it has not looked at the request (RFC 9113 section 8.7)
//! and the request has no body. It then goes to the same destination over a new connection, once. If no connection can be
//! opened at all, it goes to another destination of the cluster, once, unless it took
//! [`connect_timeout`](crate::upstream::UpstreamOptions::connect_timeout) to find out.
//!
//! Destinations close idle connections when they like. If a pooled connection of HTTP/1.1 is closed without a byte of a response, a
//! request that has no body and an idempotent method (RFC 9110 section 9.2.2) goes to the same destination once more as well.
//! Nothing else is ever served twice.
//!
//! # Errors
//!
//! What goes wrong is named as in YARP ([`ForwardErrorKind`](crate::ForwardErrorKind)) and answered as there: 502, or 504 when it took too long, 400,
//! 408 or 413 when it is the client's fault, 503 when there is no destination. After the response has begun, it is cut off
//! visibly ([`ProxyBody`](crate::ProxyBody)). Clients are told the status and nothing else.
//!
//! # Limits
//!
//! Nothing is buffered beyond what a connection reads at a time. A response head may have 64 KiB and, in HTTP/1.1, 1,000
//! fields. Interim responses (1xx) are not passed on here, but for `100 Continue`, which is asked for and waited for: the
//! client's body is not read before the destination wants it; more than 16 of them before the final one are 502. Trailers
//! of a client are sent on wherever its body is: in HTTP/1.1 that is in chunks, and a body whose length was told has none
//! (RFC 9110 section 6.5).
//!
//! A destination of HTTP/1.1 that answers before it has all of the request still gets the rest of it, for as long as the
//! client takes the response. The client's upload then waits for its download.
//!
//! The activity timeout of a cluster counts as long as the proxy waits for the destination or for the client's upload. A
//! client that does not take its response is the server's to notice: a body that nobody polls cannot look at a clock. The
//! server of this crate gives it up by its own data rate or, where it asks for none, by the activity timeout.

// This is the typed lane. `server/engine/mod.rs` says which requests take the other one.

mod answered;
mod downstream;
pub(crate) mod exchange;
mod exchange_plan;
pub(crate) mod filtering;
mod handshake;
mod layered;
mod pipeline;
mod plan;
mod request;
pub(crate) mod response;
mod route_context;
mod same_name;
mod send;
mod service;
pub(crate) mod spare;
#[cfg(test)]
mod tests;
pub(crate) mod typed;
mod upgrade;
mod websocket;

pub(crate) use self::layered::rest_of_route;
pub(crate) use self::plan::{check_head, check_path};
#[cfg(all(feature = "http2", feature = "server"))]
pub(crate) use self::request::body_kind_of;
pub(crate) use self::request::{BodyKind, OutgoingHead};
#[cfg(test)]
pub(crate) use self::response::pass_on;
pub use self::route_context::RouteContext;
pub use self::service::ResponseFuture;
pub use crate::response::{BodyEnd, BodyError, ExchangeInfo};
