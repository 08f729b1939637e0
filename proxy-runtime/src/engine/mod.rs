//! Forwards HTTP/1.1 requests as bytes, where that is all there is to do with them.
//!
//! ```text
//! head, parsed in place ─▶ route ─▶ cluster ─▶ filters ─▶ pick ─▶ connection ─▶ head, rewritten into one buffer
//!                                                                               │ with what came of the body, one write
//! client ◀─ head, rewritten, with what came of the body ◀─ filters ◀─ head, parsed in place ◀─ destination
//! client ◀─ reads, passed on whole; their framing is only followed ◀─ destination
//! ```
//!
//! There is no `HeaderMap`, no task, no timer and no allocation for a request. It costs two reads and two writes, and
//! what it needs to know of the configuration was compiled when that was published ([`HeadPlan`]).
//!
//! Whatever needs more goes the way over `http` types ([`forward`](crate::forward)), which has the same routes, pools,
//! limits and counters ([`exchange`](crate::exchange)): switches of protocols, `Expect`, HTTP/1.0 clients, HTTP/2 destinations, changes of trailers,
//! layers, and requests that are refused. The choice is made before anything is written.
//!
//! Filters of a route see heads where they are, and what they change is an overlay until the head is written ([`filtering`]).
//!
//! Both directions of an exchange are one state machine in the connection's task ([`exchange`]): the request's body goes
//! on while the response comes, in whatever order they end, and a request without a body never gets there.

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
mod plan;
mod progress;
mod relay;
mod request;
mod resolved_route;
mod run;
mod settle;
mod tally;
#[cfg(test)]
mod tests;
pub(crate) mod typed;
mod upload;

pub(crate) use self::current::Engine;
#[cfg(feature = "http2")]
pub(crate) use self::http2::forward as forward_stream;
pub(crate) use self::plan::HeadPlan;
pub(crate) use self::run::forward;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forwarded {
    /// Not: nothing was read or written, and it is one for the typed lane. Its route, if it was looked for, is to
    /// be asked for at once ([`Engine::take_route`]).
    Typed,
    /// The whole response was written.
    Served {
        /// Whether the next request may follow: the connection was not announced to close, and the request's body was
        /// read to its end.
        keep: bool,
    },
    /// The client went away or is too slow, or the response broke off after it had begun.
    Gone,
}
