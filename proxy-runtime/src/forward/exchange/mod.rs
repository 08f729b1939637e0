//! The exchange of a request and its response with a destination.
//!
//! # The path of a request
//!
//! A request with its client is a [`Downstream`]. All that the three kinds of clients share is written once over this
//! trait, and compiled for each.
//!
//! ```text
//! server/http1/requests.rs ─▶ server/engine/http1: Http1Downstream ─┐
//! server/http2/mod.rs ──────▶ server/engine/http2: Http2Downstream ─┼─▶ forward
//! tower::Service, layers ───▶ forward/downstream: ServiceDownstream ┘      │
//!                                                                          ▼
//!  1 generation       the configuration: in the server one atomic load
//!  2 resolved_route   find route and cluster, or leave the request to the form of a service
//!  3 recorder         start counting
//!  4 filtering        ask policies, which may wait (in connect), and filters; one may reply
//!  5 connect          pick a destination, take an idle connection, serialise the head
//!  6 relay            transfer both directions at once, whichever ends first:
//!                       poll_upload    head and body ─▶ destination    (outbound; body, frames_upload)
//!                       poll_head      response head ─▶ filters ─▶ client
//!                       poll_body      response body ─▶ client    (body, incoming)
//!                       poll_expired   timeouts, disconnected and slow clients
//!                     no byte of a response? connect::again, then step 6: at most three attempts
//!  7 finish           return the connection to its pool, carry a tunnel, record the end, or send a local reply
//! ```
//!
//! Destinations have one form: a connection of HTTP/1.1 (`upstream/http1`), or a stream of HTTP/2 that implements one
//! for one request (`upstream/http2/message_io`).
//!
//! [`Flow`](flow::Flow) is the state of one exchange; the thread reuses it. The route's transforms were compiled when
//! the configuration was published ([`CompiledTransforms`](crate::transform::CompiledTransforms)); the
//! changes of filters are an overlay until the head is serialised. All changes of a route are made:
//! method, path, query, fields, trailers of responses.
//!
//! The caller of a tower service polls the exchange by the future of the response, and then by the response's body
//! ([`Exchange`](crate::response::Exchange)): there is no task. Dropping either cancels the request.
//!
//! # What leaves the byte path
//!
//! Nothing was read or written before. The server makes requests of the tower service of these, which is the third
//! kind of client:
//!
//! - requests without a route, of routes that reject all requests, reply themselves or lead to no cluster;
//! - HTTP/1.0, `Upgrade`, `CONNECT`, `TRACE` and `Expect`;
//! - of routes with layers;
//! - requests whose method a route changes from or to `HEAD` or `TRACE`: their responses have another
//!   shape;
//! - a `Content-Length` that exceeds the limit;
//! - requests that [have come back](crate::state::RouteState::is_loop) to the proxy.
//!
//! # Expect
//!
//! The body of a request with `Expect: 100-continue` is held back ([`Outbound`](outbound::Outbound)) until the
//! destination asks for it or answers with a success, for `continue_timeout` at most. After any other response it is
//! not sent, and the connection closes. A stream of HTTP/2 needs no asking: a destination that does not want the body
//! resets it.
//!
//! # Interim responses
//!
//! Clients of HTTP/1.1 and HTTP/2 get them. The caller of a tower service does not, and so neither does the client of
//! a route with layers: RFC 9110 section 15.2 asks proxies to forward them, but an `http::Response` is the final one,
//! and has no place for others. The same section lets user agents ignore them, so that no program may depend on them.
//!
//! # Rules and their tests
//!
//! | rule | test |
//! |---|---|
//! | which failure is retried, where, how often | `retry::tests::each_failure_has_one_verdict` |
//! | a connection that dies first is replaced, with a body that goes on | `forward::tests::retry` |
//! | the head for another destination | `readdress::tests::it_is_the_head_that_would_have_been_written` |
//! | the same changes of heads as bytes and as maps | `server::engine::tests::same_head` |
//! | the same messages for all clients and destinations | `tests/it/server/ways.rs`, `ways_http2.rs` |
//! | limits of bodies | `server::engine::tests::rejections` |
//! | limits of responses, timeouts, clients that leave: answer, log and counters | `server::engine::tests::accounts` |
//! | clients and destinations that are slow | `server::engine::tests::activity` |
//! | responses before the end of their request | `server::engine::tests::early` |
//!
//! # Files of one GET
//!
//! The 97 files whose code runs for a keep-alive GET of HTTP/1.1 over a pooled connection, without
//! filters and transforms, as `-C instrument-coverage` counts them:
//!
//! - exchange: this folder: `mod`, `resolved_route`, `recorder`, `filtering`, `connect`, `readdress`, `flow`,
//!   `outbound`, `relay`, `finish`, `body`; `server/engine/`: `current`, `outgoing`, `client_head`, `http1/`: `mod`,
//!   `upload`, `download`
//! - client: `server/http1/`: `requests`, `client`, `clock`; `server/validation/mod`; `server/connection/`: `io`,
//!   `state`, `record`, `holding`, `pace`; `server/`: `limits`, `metrics`, `mode`, `shared`
//! - parser and writer: `http1/`: `bytes`, `field`, `span`, `limits`, `pooled_table`; `http1/block/`; `http1/head/`:
//!   `request`, `request_line`, `target`, `authority`, `lines`, `table`, `view`, `response`, `status_line`, `length`,
//!   `connection`; `http1/rewrite/`: `mod`, `fields`, `operation`, `request`, `response`
//! - route, destination: `proxy/`: `service`, `shared`; `state/`: `generation`, `route`; `strict_path`; `contain`;
//!   `cluster`; `balance/registry`; `live/`: `available`, `cluster`, `destination`; `exchange/`: `pick`, `connect`,
//!   `count`; `head/address_text`; `transform/`: `compiled`, `forwarded`; `retry`; `progress/deadlines`
//! - destination's connection: `upstream/`: `mod`, `pool`, `destination`, `lease`, `slot`, `queue`, `protocol`,
//!   `transport`, `io`; `upstream/http1/`: `mod`, `early`, `response_head`
//! - bytes, counters: `stream/`: `byte_stream`, `socket`, `read_buffer`, `write`, `recycled`; `local_pool`;
//!   `observe/`: `metrics`, `counter`, `per_worker`, `series`, `labels`, `histogram`

pub(crate) mod body;
mod connect;
pub(crate) mod downstream;
pub(crate) mod failure;
pub(crate) mod filtering;
mod finish;
mod flow;
pub(crate) mod frames_upload;
pub(crate) mod incoming;
#[cfg(test)]
pub(crate) mod lane;
pub(crate) mod outbound;
pub(crate) mod readdress;
mod recorder;
mod relay;
pub(crate) mod resolved_route;

use std::future::poll_fn;
use std::ops::Deref;

use http::StatusCode;
use proxy_model::compiled::RouteIndex;
use tokio::time::Instant;

use self::connect::Again;
use self::downstream::{Downstream, ExchangeStateOf, Upload};
use self::failure::Failure;
use self::filtering::Filtering;
use self::flow::ExchangeProgress;
use self::recorder::Recorder;
use self::relay::Relay;
use self::resolved_route::ResolvedRoute;
use crate::error::ForwardErrorKind;
use crate::local_pool::Recycle;
use crate::progress::Stage;
use crate::proxy::ProxyService;
use crate::state::Generation;
use crate::transform::Invalid;

/// The result of offering a request to the exchange.
#[cfg_attr(
    not(feature = "server"),
    expect(dead_code, reason = "for the clients of a server")
)]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Forwarded {
    /// The request has to be one of the tower service: nothing was read or written. With the request's route, if
    /// that was looked for and found.
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

/// Forwards a request.
///
/// Cancel-safe: if dropped, the request is cancelled at the destination, and the client's
/// connection or stream cannot be used any more.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn holds its arguments twice, for which idle connections would have memory"
)]
pub(crate) fn forward<D: Downstream, G: Deref<Target = Generation>>(
    mut down: D,
    service: &ProxyService,
    generation: G,
) -> impl Future<Output = Forwarded> {
    async move {
        let route = match down.route(service, &generation) {
            Ok(route) => route,
            Err(index) => return Forwarded::Typed(index),
        };
        #[cfg(test)]
        lane::is_exchange();
        // All reads of the head happen before the first await: nearly always there is an idle connection.
        let mut recorder = route.recorder(&down, Instant::now());
        let (mut filtering, said) = match route.is_guarded() {
            false => (Filtering::default(), Ok(())),
            true => Filtering::ask(&route, &down),
        };
        if let Some(trace) = recorder.trace() {
            filtering.trace(trace);
        }
        // A block of its own, so that waiting connections need no memory for its variables.
        let (mut link, since) = 'connected: {
            let connecting =
                said.and_then(|()| route.connect_now(&down, filtering.edits(), &mut recorder));
            let unconnected = match connecting {
                Ok(link) => break 'connected (link, recorder.started()),
                Err(unconnected) => unconnected,
            };
            // Boxed, since it is rarely needed.
            let connecting = route.connect(unconnected, &mut down, &mut filtering, &mut recorder);
            let unconnected = match Box::pin(connecting).await {
                Ok(link) => break 'connected (link, Instant::now()),
                Err(unconnected) => unconnected,
            };
            let has_more = down.skip_request();
            let given_up = route.give_up(&mut down, recorder, filtering, unconnected, has_more);
            return Box::pin(given_up).await;
        };
        let head = std::mem::replace(&mut link.head, Err(Invalid));
        let mut flow = 'begun: {
            let rejected = match route.begin(&mut down, head, since, &recorder) {
                Ok(flow) => break 'begun flow,
                Err(rejection) => {
                    // It can be reused, since nothing was sent over it.
                    link.lease.release(Instant::now());
                    drop(link.picked);
                    Box::pin(route.reject(&mut down, recorder, filtering, rejection, true))
                }
            };
            return rejected.await;
        };
        let failure = loop {
            let Some(connection) = link.lease.raw() else {
                // The connection speaks HTTP/2, though its cluster must not.
                break Some(Failure::UNSPOKEN);
            };
            if connection.keeps(route.method) {
                flow.keep_request();
            }
            if flow.outbound.is_gated() && connection.is_stream() {
                // A destination that does not want the body resets the stream.
                flow.outbound.open_gate();
            }
            let mut relay = Relay {
                down: &mut down,
                flow: &mut flow,
                route: &route,
                picked: &link.picked,
                filtering: &mut filtering,
                connection,
            };
            match poll_fn(|cx| relay.poll_head(cx)).await {
                Ok(status) => {
                    // A block for the same reason.
                    {
                        let answered = relay.filtering.answered();
                        let now = answered.unwrap_or_else(Instant::now);
                        let elapsed = recorder.answered_over(&link.picked.in_flight, status, now);
                        let over = (&*relay.connection, relay.flow.progress.limit(false));
                        route.log(relay.down, status, &recorder, over, now);
                        if answered.is_none() && !relay.down.has_switched() {
                            relay.flow.begun(now, elapsed);
                        }
                    }
                    if relay.down.has_switched() {
                        return Box::pin(route.carry(&mut down, link, flow, recorder)).await;
                    }
                    match poll_fn(|cx| relay.poll_body(cx)).await {
                        Ok(true) => {}
                        Ok(false) => {
                            // The client has its response, and the request counts as ended. Its upload continues.
                            relay.answered_early();
                            recorder.end_early(Instant::now());
                            poll_fn(|cx| relay.poll_rest(cx)).await;
                        }
                        Err(failure) => break Some(failure),
                    }
                    break None;
                }
                Err(failed) => {
                    // The bytes of this attempt count for its own destination, not for the next one.
                    flow.count(&link.picked.in_flight, down.record());
                    // Boxed, since it is rarely needed.
                    let edits = filtering.edits();
                    let again =
                        route.again(&mut down, link, &mut flow, (edits, failed), &mut recorder);
                    let unconnected = match Box::pin(again).await {
                        Again::Sends(fresh) => {
                            link = fresh;
                            continue;
                        }
                        Again::Fails(failed, over) => {
                            link = over;
                            break Some(failed);
                        }
                        Again::Unconnected(unconnected) => unconnected,
                    };
                    let has_more = flow.outbound.stage() != Stage::Done;
                    let given_up =
                        route.give_up(&mut down, recorder, filtering, unconnected, has_more);
                    return Box::pin(given_up).await;
                }
            }
        };
        let (now, elapsed) = flow.ended();
        let ended = route.finish(&mut down, link, flow, failure.as_ref(), now);
        match failure {
            None => {
                recorder.end_well(now, elapsed);
                Forwarded::Served { keep: ended.keep }
            }
            Some(failure) => {
                let failed = route.fail(&mut down, recorder, filtering, failure, ended);
                Box::pin(failed).await
            }
        }
    }
}

impl<'a> ResolvedRoute<'a> {
    /// Returns the state of the exchange, which begins with a serialised head.
    #[inline]
    fn begin<D: Downstream>(
        &self,
        down: &mut D,
        head: Result<Vec<u8>, Invalid>,
        since: Instant,
        recorder: &Recorder<'_>,
    ) -> Result<Box<ExchangeStateOf<D>>, (ForwardErrorKind, StatusCode)> {
        let head =
            head.map_err(|Invalid| (ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY))?;
        let progress = ExchangeProgress::new(self.deadlines(self.head_due(down, recorder)), since);
        let mut flow: Box<ExchangeStateOf<D>> = D::flows().acquire().unwrap_or_default();
        flow.begin(head, progress);
        let begun = down.begin_upload(self, &mut flow.upload, &mut flow.outbound);
        if let Err(broken) = begun {
            if broken.is_malformed() {
                down.note_malformed();
            }
            return Err(broken.rejection());
        }
        // A body that arrived with the head is not waited for, so it has no rate.
        if flow.upload.needs_more()
            && let Some(rate) = down.data_rate()
            && !down.may_upload_slowly()
        {
            flow.outbound.pace(rate);
        }
        Ok(flow)
    }
}
