//! The server's HTTP/2, over the `h2` crate.
//!
//! One task a connection, and all of its streams are polled in it ([`Streams`](streams::Streams)): no stream is a task,
//! their timeouts share one timer, what serves one has its memory from those that have ended ([`blocks`]), and what many of
//! them have to say leaves with one write. `h2` reads and writes frames,
//! keeps the windows, and ends connections that flood it; clocks, limits and the drain are here ([`driver`]).
//!
//! As on HTTP/1.1 there are two lanes, of which [`engine`](crate::server::engine#four-relays) has a table. On the raw one, if the server's
//! service is a [`ProxyService`](crate::ProxyService), each request that passed the checks is first offered to
//! [`engine::forward_stream`](crate::server::engine::forward_stream) with the [`Client`]. What that declines takes the typed one: it becomes
//! an `http` request for the service ([`typed`]).
//!
//! # Resets
//!
//! A client that resets a stream, or whose connection ends, has what is done for it dropped: the request is cancelled at the
//! destination. One that does so too often is told to calm down ([`resets`]). A stream whose client does not take its
//! response is reset with `CANCEL` ([`room`]), whatever goes on beside it. A response that breaks off is reset with
//! `INTERNAL_ERROR`. A request whose response is complete before its body is is reset with `NO_ERROR` (RFC 9113 section 8.1), once
//! nobody reads the body any more.

mod backlog;
mod blocks;
mod body;
mod client;
mod connection;
mod deadlines;
mod driver;
mod fields;
mod frames;
mod hpack;
#[cfg(test)]
pub(crate) mod peer;
mod ready;
mod resets;
mod room;
mod streams;
#[cfg(feature = "testing")]
mod trial;
mod tunnel;
mod typed;
mod watch;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) use self::backlog::Backlog;
use self::blocks::Blocks;
pub(crate) use self::body::BodyReader;
pub(crate) use self::client::Client;
use self::connection::{Accepted, Connection};
pub(crate) use self::fields::date;
pub(crate) use self::room::{Room, Untaken, Waiting, poll_room};
use self::streams::Ending;
#[cfg(feature = "testing")]
pub use self::trial::FrameTrial;
use super::access_log::Draft;
use super::connection::{ConnectionIo, ConnectionState, RequestRecord, Transport};
use super::edge;
use super::handler::{Handler, Served};
use super::http1::said_length;
use crate::forward::spare::{self, Kind};
use crate::http1::FieldClass;
use crate::server::engine::forward_stream;

/// Serves HTTP/2 until the connection ends.
///
/// Cancel safe: dropped, it closes the connection.
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
    if state.worker.access_log.is_some() {
        record.draft = Some(Box::new(Draft::new(&head, state.info)));
    }
    let admission = edge::admit_http2(&mut head, limits, state.info.rules).and_then(|classes| {
        if classes.contains(FieldClass::ContentLength) {
            edge::admit_length(said_length(&head.headers), limits)?;
        }
        Ok(classes)
    });
    let mut client = Client {
        body: (!body.is_end_stream()).then_some(body),
        respond,
        record,
        deadline,
        has_reset: false,
    };
    let served = Rc::clone(served);
    async move {
        if let (&Ok(classes), Some(engine)) = (&admission, served.handler.engine())
            && forward_stream(&head, classes, &mut client, engine).await
        {
            // The next response is made of it.
            spare::give_back(Kind::Request, head.headers, head.extensions);
            let has_unread = client.body.is_some_and(|body| !body.is_end_stream());
            if has_unread {
                client.record.connection.unread.store(true, Relaxed);
            }
            drop(open);
            return match client.has_reset {
                true => Ending::Reset,
                false => Ending::Settled,
            };
        }
        // Boxed, so that requests on the raw lane have no room for it.
        let ending = Box::pin(typed::serve(
            head,
            client,
            admission.map(drop),
            &served.handler,
        ))
        .await;
        drop(open);
        ending
    }
}
