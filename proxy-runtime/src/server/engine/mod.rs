//! The byte path (byte path): requests that are forwarded as bytes or frames to destinations of
//! HTTP/1.1.
//!
//! # The path of a request
//!
//! A request with its client is a [`Downstream`](downstream::Downstream). All that both versions of
//! HTTP share is written once over this trait, and compiled for each version.
//!
//! ```text
//! server/http1/requests.rs ─▶ http1::Http1Downstream ─┐
//!                                                     ├─▶ exchange::forward
//! server/http2/mod.rs ──────▶ http2::Http2Downstream ─┘        │
//!                                                              ▼
//!  1 current          read the configuration: one atomic load
//!  2 resolved_route   find route and cluster, or leave the request to the http path
//!  3 recorder         start counting
//!  4 filtering        call request filters; one may reply
//!  5 connect          pick a destination, take an idle connection, serialise the head (outgoing)
//!  6 relay            transfer both directions at once, whichever ends first:
//!                       poll_upload    head and body ─▶ destination    (outbound, upload)
//!                       poll_head      response head ─▶ filters ─▶ client    (client_head)
//!                       poll_body      response body ─▶ client    (download)
//!                       poll_expired   timeouts, disconnected and slow clients
//!                     no byte of a response? connect::again, then step 6: at most three attempts
//!  7 finish           return the connection to its pool, record the end, or send a local reply
//! ```
//!
//! [`Flow`](flow::Flow) is the state of one exchange; the thread reuses it. A request of HTTP/1.1
//! without filters over an idle connection needs no `HeaderMap`, task, timer or allocation: its
//! head is parsed in place and serialised once, and its body is forwarded unchanged while its
//! framing is tracked. It costs two reads and two writes. The route's transforms were compiled when
//! the configuration was published ([`CompiledTransforms`]); the changes of filters are an overlay until the
//! head is serialised. On HTTP/2, `h2` parses request heads into maps, and response heads become
//! maps.
//!
//! # Files of one GET
//!
//! The files whose code runs for a keep-alive GET of HTTP/1.1 over a pooled connection, without
//! filters and transforms, as `-C instrument-coverage` counts them:
//!
//! | part | files |
//! |---|---|
//! | this folder | `exchange`, `current`, `resolved_route`, `recorder`, `filtering`, `connect`, `outgoing`, `readdress`, `flow`, `outbound`, `relay`, `client_head`, `finish`, `http1/`: `mod`, `upload`, `download`, `body` |
//! | client | `server/http1/`: `requests`, `client`, `clock`; `server/validation/mod`; `server/connection/`: `io`, `state`, `record`, `holding`, `pace`; `server/`: `limits`, `metrics`, `mode`, `shared` |
//! | parser and writer | `http1/`: `bytes`, `field`, `span`, `limits`, `pooled_table`; `http1/block/`; `http1/head/`: `request`, `request_line`, `target`, `authority`, `lines`, `table`, `view`, `response`, `status_line`, `length`, `connection`; `http1/rewrite/`: `mod`, `fields`, `operation`, `request`, `response` |
//! | route, destination | `proxy/`: `service`, `shared`; `state/`: `generation`, `route`; `strict_path`; `contain`; `cluster`; `balance/registry`; `live/`: `available`, `cluster`, `destination`; `exchange/`: `pick`, `connect`, `count`; `head/address_text`; `transform/`: `compiled`, `forwarded`; `retry`; `progress/deadlines` |
//! | destination's connection | `upstream/`: `mod`, `pool`, `destination`, `lease`, `slot`, `queue`, `protocol`, `transport`, `io`; `upstream/http1/`: `mod`, `early`, `response_head` |
//! | bytes, counters | `stream/`: `byte_stream`, `socket`, `read_buffer`, `write`, `recycled`; `local_pool`; `observe/`: `metrics`, `counter`, `per_worker`, `series`, `labels`, `histogram` |
//!
//! # Two paths
//!
//! The other path is the *`http` path* (typed path, [`forward`](crate::forward)), which makes an
//! `http::Request` of each request: for routes with layers, and in servers of other crates. Both
//! have the same routes, pools, limits, timeouts and counters ([`exchange`](crate::exchange)), and
//! the same retry rule ([`retry`](crate::retry)).
//!
//! The [`Recorder`](recorder::Recorder) of the byte path lives on the stack of the exchange. The
//! account of the typed path belongs to the response body
//! ([`ProxyBody`](crate::response::ProxyBody)). The server's own counters and the access log use
//! the [`RequestRecord`](crate::server::connection::RequestRecord) on both.
//!
//! # What leaves the byte path
//!
//! Nothing was read or written before. These take the typed path:
//!
//! - requests that validation rejects, and in HTTP/1.1 paths with dot segments, which must be
//!   normalised;
//! - HTTP/1.0, `Upgrade`, `CONNECT` and `Expect`;
//! - requests without a route, and of routes that reject all requests or lead to no cluster;
//! - routes with layers;
//! - requests whose method a route changes from or to `HEAD` or `TRACE`: their responses have another
//!   shape;
//! - clusters with a destination that speaks, or may speak, another version than HTTP/1.1;
//! - a `Content-Length` that is malformed or exceeds the limit;
//! - requests that [have come back](crate::state::RouteState::is_loop) to the proxy.
//!
//! Both paths make all changes of a route: method, path, query, fields, trailers of responses.
//!
//! [`CompiledTransforms`]: crate::transform::CompiledTransforms

mod client_head;
mod connect;
mod current;
mod downstream;
mod exchange;
mod failure;
mod filtering;
mod finish;
mod flow;
mod http1;
#[cfg(feature = "http2")]
mod http2;
mod outbound;
mod outgoing;
mod readdress;
mod recorder;
mod relay;
mod resolved_route;
#[cfg(test)]
mod tests;

use proxy_model::compiled::RouteIndex;

pub(crate) use self::current::Engine;
pub(crate) use self::http1::Http1Downstream;
#[cfg(feature = "http2")]
pub(crate) use self::http2::Http2Downstream;

/// The result of offering a request to the byte path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Forwarded {
    /// The typed path has to forward the request: nothing was read or written. With the request's route, if that was
    /// looked for and found.
    Typed(Option<RouteIndex>),
    /// The whole response was written.
    Served {
        /// True if the next request may follow: the connection was not announced to close, and the
        /// request's body was read to its end.
        keep: bool,
    },
    /// The client disconnected or is too slow, or the response was cut after it had begun.
    Disconnected,
}
