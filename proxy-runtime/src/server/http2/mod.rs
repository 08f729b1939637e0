//! The HTTP/2 server, based on the `h2` crate.
//!
//! One task per connection polls all of its streams ([`Streams`](streams::Streams)): a stream is no
//! task. Timeouts share one timer, futures of ended streams leave their memory to new ones
//! ([`blocks`]), and the output of several streams is written with one call. `h2` reads and writes
//! frames, handles flow control, and closes connections that flood it; timeouts, limits and the
//! drain are here ([`driver`]).
//!
//! There are two paths, as [on HTTP/1.1](crate::server::http1#two-paths). On the byte
//! path, if the service of the server is a [`ProxyService`](crate::ProxyService), each
//! valid request is first offered to [`Http2Downstream::forward`] with the [`StreamClient`]. Requests that
//! it declines take the `http` path: they become an `http` request for the service ([`typed`]).
//!
//! # Resets
//!
//! A client that resets a stream, or whose connection ends, cancels the request at the destination.
//! A client that does so too often gets `ENHANCE_YOUR_CALM` ([`resets`]). A stream whose client
//! does not receive its response is reset with `CANCEL` ([`room`]), whatever happens on other
//! streams. A response that ends early is reset with `INTERNAL_ERROR`. A stream whose response is
//! complete before its request body is reset with `NO_ERROR` (RFC 9113 section 8.1), once the body
//! is not read any more.

mod backlog;
mod blocks;
mod body;
mod client;
mod connection;
mod deadlines;
mod driver;
mod fields;
mod frames;
#[cfg(feature = "testing")]
mod harness;
mod hpack;
#[cfg(test)]
pub(crate) mod peer;
mod ready;
mod resets;
mod room;
mod streams;
mod tunnel;
mod typed;
mod watch;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::header::HOST;
use http::request::Parts;

pub(crate) use self::backlog::Backlog;
use self::blocks::Blocks;
pub(crate) use self::body::StreamReader;
pub(crate) use self::client::StreamClient;
use self::connection::{Accepted, Connection};
pub(crate) use self::fields::{StreamResponseContext, date, prepare_head};
#[cfg(feature = "testing")]
pub use self::harness::FrameHarness;
pub(crate) use self::room::{Room, StreamSend, Unsent, compact, poll_room};
use self::streams::Ending;
use super::access_log::Draft;
use super::connection::{ConnectionIo, ConnectionState, RequestRecord, Transport};
use super::handler::{Handler, Served};
use super::http1::declared_length;
use super::validation;
use crate::forward::exchange::downstream::Record;
use crate::forward::recycled::{self, Kind};
use crate::http1::FieldClass;
use crate::server::engine::{Forwarded, Http2Downstream};

/// Serves HTTP/2 until the connection ends.
///
/// Cancel safe: dropping the future closes the connection.
pub(crate) async fn serve<T, H>(
    io: ConnectionIo<T>,
    served: Rc<Served<H>>,
    state: Arc<ConnectionState>,
) where
    T: Transport,
    H: Handler,
{
    state.set_http2();
    let serve = {
        let state = Arc::clone(&state);
        let served = Rc::clone(&served);
        move |accepted| begin(accepted, &state, &served)
    };
    let blocks = Blocks::of(&served.blocks, &serve);
    let connection = Connection::new(io, &state, serve, blocks);
    driver::drive(connection, Arc::clone(&state)).await;
}

/// The host that a request names.
fn named_authority(head: &Parts) -> &[u8] {
    match (head.uri.authority(), head.headers.get(HOST)) {
        (Some(authority), _) => authority.as_str().as_bytes(),
        (None, Some(host)) => host.as_bytes(),
        (None, None) => b"",
    }
}

/// Begins to serve a stream.
fn begin<H>(
    accepted: Accepted,
    state: &Arc<ConnectionState>,
    served: &Rc<Served<H>>,
) -> impl Future<Output = Ending> + use<H>
where
    H: Handler,
{
    let limits = &state.worker.limits;
    if state.begin_request() >= limits.requests_per_connection {
        state.retire();
    }
    let open = state.enter_stream();
    let Accepted {
        request,
        respond,
        deadline,
    } = accepted;
    let (mut head, body) = request.into_parts();
    let mut record = RequestRecord::new(Arc::clone(state));
    // First, so that neither the log nor a service sees fields that clients must not set.
    record.report_client(validation::resolve_map_client(
        &mut head.headers,
        &state.info,
    ));
    if state.worker.access_log.is_some() {
        record.draft = Some(Box::new(Draft::new(&head, *record.info())));
    }
    let admission =
        validation::validate_http2(&mut head, limits, state.info.rules).and_then(|classes| {
            // `h2` compares the length with the frames, and does not know the limit.
            if classes.contains(FieldClass::ContentLength) {
                validation::validate_length(declared_length(&head.headers), limits)?;
            }
            state.validate(named_authority(&head))?;
            Ok(classes)
        });
    let mut client = StreamClient {
        body: (!body.is_end_stream()).then_some(body),
        respond,
        record,
        deadline,
        has_reset: false,
    };
    let served = Rc::clone(served);
    async move {
        let found = 'offered: {
            let (&Ok(classes), Some(engine)) = (&admission, served.handler.engine()) else {
                break 'offered None;
            };
            let Some(down) = Http2Downstream::new(&head, classes, &mut client) else {
                break 'offered None;
            };
            if let Forwarded::Typed(found) = down.forward(engine).await {
                if let Some(index) = found
                    && client.record.wants_info()
                {
                    client.record.left(engine.info(index));
                }
                break 'offered found;
            }
            // The next response reuses the memory.
            recycled::release(Kind::Request, head.headers, head.extensions);
            let has_unread = client.body.is_some_and(|body| !body.is_end_stream());
            if has_unread {
                client.record.connection.unread.store(true, Relaxed);
            }
            drop(open);
            return match client.has_reset {
                true => Ending::Reset,
                false => Ending::Settled,
            };
        };
        // Boxed, so that requests on the byte path have no memory for it.
        let ending = Box::pin(typed::serve(
            head,
            client,
            admission.map(drop),
            (&served.handler, found),
        ))
        .await;
        drop(open);
        ending
    }
}
