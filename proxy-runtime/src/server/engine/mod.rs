//! The raw lane: requests that are forwarded as the bytes or the frames that they came in, to destinations of HTTP/1.1.
//!
//! ```text
//! head, parsed in place ─▶ route ─▶ cluster ─▶ filters ─▶ pick ─▶ connection ─▶ head, rewritten into one buffer
//!                                                                               │ with what came of the body, one write
//! client ◀─ head, rewritten, with what came of the body ◀─ filters ◀─ head, parsed in place ◀─ destination
//! client ◀─ reads, passed on whole; their framing is only followed ◀─ destination
//! ```
//!
//! That is HTTP/1.1 on both sides. There is no `HeaderMap`, no task, no timer and no allocation for such a request. It costs two
//! reads and two writes, and what it needs to know of the configuration was compiled when that was published ([`HeadPlan`]).
//! Filters of a route see heads where they are, and what they change is an overlay until the head is written ([`filtering`]).
//! Streams of HTTP/2 have their own picture ([`http2`]): `h2` makes a map of a request's fields and wants one for the response.
//!
//! Both directions of an exchange are one state machine in the connection's task ([`relay`]): the request's body goes
//! on while the response comes, in whatever order they end, and a request without a body never gets there.
//!
//! # Four relays
//!
//! A request takes the *raw lane*, which is this module and makes no `http::Request` of it, or the *typed lane*, over `http` types
//! ([`forward`](crate::forward)): so it does with layers, and in servers of others. Both have the same routes, pools, limits, ends
//! and counters ([`exchange`](crate::exchange)).
//!
//! | relay | lane | carries | chosen for | entry | accounts |
//! |---|---|---|---|---|---|
//! | `server/engine/run.rs` | raw | bytes of HTTP/1.1 | what a client of HTTP/1.1 sends, but for the list below | [`forward`] | [`Tally`](tally::Tally) |
//! | `server/engine/http2/run.rs` | raw | streams of `h2` | what a client of HTTP/2 sends, but for the list below | [`forward_stream`] | `Tally` |
//! | `forward/direct.rs` | typed | `http` types; the head is written straight to a destination of HTTP/1.1 | what has a [`HeadPlan`], no filters and a plain head ([`typed::written_target`](crate::forward::typed::written_target)), wants no switch of protocols, and goes to a cluster of HTTP/1.1 | `Direct::run` | `response::Account` |
//! | `forward/send.rs` | typed | `http` types, to any destination | all else | `Sending::run` | `Account` |
//!
//! The accounts of the raw lane are on the stack of who forwards; those of the typed lane go with the response's body
//! ([`ProxyBody`](crate::response::ProxyBody)), which the server drops. The server's own, the access log's line among them, are the
//! [`RequestRecord`](crate::server::connection::RequestRecord) on either lane.
//!
//! # What leaves the raw lane
//!
//! Nothing was read or written by then. The typed lane gets, with its route if that was found:
//!
//! - what the edge refuses, and in HTTP/1.1 paths with dot segments, which are written anew;
//! - HTTP/1.0, switches of protocols, `CONNECT` and `Expect`;
//! - what no route takes, and what a route takes that refuses all or leads to no cluster, or to none for this request;
//! - routes with layers, and on HTTP/2 those with filters, which are shown heads in `http` types there;
//! - routes with changes that operations on bytes cannot make, so that there is no [`HeadPlan`]: of trailers, of the method, and
//!   of `Host` by a value of the route's template;
//! - clusters of which a destination is, or may be, spoken to in another version than HTTP/1.1;
//! - a `Content-Length` that is no number, or more than the request may have.
//!
//! Changes of path and query are made on either lane.

mod answer;
mod begin;
mod body;
mod client_head;
mod connect;
mod current;
mod download;
mod failure;
mod filtering;
mod flow;
#[cfg(feature = "http2")]
mod http2;
mod outbound;
mod outgoing;
mod progress;
mod readdress;
mod relay;
mod request;
mod resolved_route;
mod run;
mod settle;
mod tally;
#[cfg(test)]
mod tests;
mod upload;

pub(crate) use self::current::Engine;
#[cfg(feature = "http2")]
pub(crate) use self::http2::forward as forward_stream;
pub(crate) use self::run::forward;
use crate::proxy::FoundRoute;

/// What became of a request that the raw lane was offered.
#[derive(Debug)]
pub(crate) enum Forwarded {
    /// Not: nothing was read or written, and it is one for the typed lane, with its route, if that was looked for and found.
    Typed(Option<FoundRoute>),
    /// The whole response was written.
    Served {
        /// Whether the next request may follow: the connection was not announced to close, and the request's body was
        /// read to its end.
        keep: bool,
    },
    /// The client went away or is too slow, or the response broke off after it had begun.
    Gone,
}
