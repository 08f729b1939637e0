//! The raw lane: requests that are forwarded as the bytes or the frames that they came in, to destinations of HTTP/1.1.
//!
//! # The path of a request
//!
//! A request and its client are a [`Downstream`](downstream::Downstream), and everything that is the same for both versions of HTTP
//! is written once over that trait and compiled for each version.
//!
//! ```text
//! server/http1/requests.rs ─▶ Http1Downstream ─┐
//!                                              ├─▶ exchange::forward
//! server/http2/mod.rs ──────▶ Http2Downstream ─┘      │
//!                                                     ▼
//!  1 current          the configuration, by one atomic read
//!  2 resolved_route   route and cluster; a request that is not for this lane leaves here
//!  3 tally            counting begins
//!  4 filtering        filters see the head; one of them may answer
//!  5 connect          a destination is picked, an idle connection taken, the head written (outgoing)
//!  6 relay            both directions are polled together, in whatever order they end:
//!                       poll_upload    head and body ─▶ destination          (http1::upload, http2::upload)
//!                       poll_head      head of the response, filters, client (client_head)
//!                       poll_body      body ─▶ client                        (http1::download, http2::download)
//!                     whoever waits polls poll_expired: deadlines, a client that has gone or is too slow
//!                       └─ no byte of a response came: connect::again, and 6 once more, three attempts at most
//!  7 settle           the connection goes back to its pool, counters and log are told; or the proxy answers itself
//! ```
//!
//! The state of one exchange is a [`Flow`](flow::Flow), which the thread keeps for the next one. A request of HTTP/1.1 without filters
//! that uses an idle connection has no `HeaderMap`, task, timer or allocation of its own: its head is parsed where it was read,
//! written once into the buffer that is sent, and its body passed on as it came, while its framing is followed. It costs two
//! reads and two writes. What a route does to heads was compiled when its configuration was published ([`HeadPlan`]); what filters
//! change is an overlay until the head is written. For HTTP/2, `h2` makes a map of a request's fields and wants one for the
//! response, and the framing of bodies changes on the way.
//!
//! # Two lanes
//!
//! A request takes the *raw lane*, which is this module and makes no `http::Request` of it, or the *typed lane*, over `http` types
//! ([`forward`](crate::forward)): so it does with layers, and in servers of others. Both have the same routes, pools, limits, ends
//! and counters ([`exchange`](crate::exchange)), and the same rule for retries ([`retry`](crate::retry)).
//!
//! The raw lane counts on the stack of who forwards ([`Tally`](tally::Tally)). The account of the typed lane goes with the response's
//! body ([`ProxyBody`](crate::response::ProxyBody)), which the server drops. The server's own counts, the access log's line among
//! them, are the [`RequestRecord`](crate::server::connection::RequestRecord) on either lane.
//!
//! # What leaves the raw lane
//!
//! Nothing was read or written by then. The typed lane gets, with its route if that was found:
//!
//! - what the edge refuses, and in HTTP/1.1 paths with dot segments, which are written in another form;
//! - HTTP/1.0, switches of protocols, `CONNECT` and `Expect`;
//! - what no route takes, and what a route takes that refuses all or leads to no cluster, or to none for this request;
//! - routes with layers;
//! - requests whose method a route changes from or to `HEAD` or `TRACE`, to which responses have another shape;
//! - clusters of which a destination is, or may be, spoken to in another version than HTTP/1.1;
//! - a `Content-Length` that is no number, or more than the request may have;
//! - requests that [have come back](crate::state::RouteState::is_loop) to the proxy.
//!
//! Everything that routes change is changed on either lane: method, path, query, fields, trailers of responses.
//!
//! [`HeadPlan`]: crate::transform::HeadPlan

mod client_head;
mod connect;
mod current;
mod downstream;
mod exchange;
mod failure;
mod filtering;
mod flow;
mod http1;
#[cfg(feature = "http2")]
mod http2;
mod outbound;
mod outgoing;
mod readdress;
mod relay;
mod resolved_route;
mod settle;
mod tally;
#[cfg(test)]
mod tests;

pub(crate) use self::current::Engine;
pub(crate) use self::http1::Http1Downstream;
#[cfg(feature = "http2")]
pub(crate) use self::http2::Http2Downstream;

/// What became of a request that the raw lane was offered.
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
