//! From a request's head to the end of its response: the raw lane's loop for HTTP/1.1.

use std::future::poll_fn;

use tokio::time::Instant;

use super::connect::Again;
use super::failure::Failure;
use super::filtering::Filtering;
use super::relay::Relay;
use super::request::{self, view_of};
use super::{Engine, Forwarded};
use crate::http1::RawRequest;
use crate::progress::Stage;
use crate::server::http1::{Client, Transport};

/// Forwards the request at the front of the client's input.
///
/// Cancel-safe: dropped, the request is cancelled at the destination, and the client's connection is of no further use.
pub(crate) async fn forward<T: Transport>(
    client: &mut Client<T>,
    request: &RawRequest,
    engine: &Engine,
) -> Forwarded {
    let generation = engine.current();
    let run = match request::run(client, request, engine, &generation) {
        Ok(run) => run,
        Err(index) => return Forwarded::Typed(index.map(|index| generation.found(index))),
    };
    #[cfg(test)]
    super::tests::lane::is_raw();
    // All that looks at the head is done here, without waiting for anything: nearly always there is an idle connection.
    let now = Instant::now();
    let mut tally = run.tally(&view_of(client, request), now);
    let (mut filtering, said) = match run.filters() {
        None => (Filtering::default(), Ok(())),
        Some(filters) => Filtering::ask(filters, &run, client, view_of(client, request)),
    };
    // What is not needed any more has an end of its own, so that waiting connections have no room for it.
    let (mut link, since) = 'connected: {
        let connecting = said.and_then(|()| {
            let view = view_of(client, request);
            run.connect_now(client, &view, filtering.edits(), &mut tally)
        });
        let unconnected = match connecting {
            Ok(link) => break 'connected (link, tally.started()),
            unconnected => unconnected,
        };
        // Boxed, since it is seldom needed.
        let edits = filtering.edits();
        let connecting = run.connect(unconnected, client, edits, &mut tally);
        let unconnected = match Box::pin(connecting).await {
            Ok(link) => break 'connected (link, Instant::now()),
            Err(unconnected) => unconnected,
        };
        let has_more = run.skip_request(client);
        return Box::pin(run.give_up(client, tally, filtering, unconnected, has_more)).await;
    };
    let mut flow = match run.begin(client, &mut link, since, run.head_due(&tally)) {
        Ok(flow) => flow,
        Err(refusal) => {
            // Nothing was sent over it.
            link.lease.give_back(Instant::now());
            drop(link.picked);
            return Box::pin(run.refuse(client, tally, filtering, refusal, true)).await;
        }
    };
    let failure = loop {
        let Some(connection) = link.lease.raw() else {
            // It speaks HTTP/2, though its cluster does not.
            break Some(Failure::UNSPOKEN);
        };
        if connection.keep(run.request.method()).if_sent {
            flow.upload.keep();
        }
        let peer = connection.peer;
        let mut relay = Relay {
            client: &mut *client,
            flow: &mut flow,
            run: &run,
            flight: &link.picked.in_flight,
            filtering: &mut filtering,
            io: &mut connection.io,
            input: &mut connection.input,
        };
        match poll_fn(|cx| relay.poll_head(cx)).await {
            Ok(status) => {
                let now = Instant::now();
                let elapsed = tally.answered_over(&link.picked.in_flight, status, now);
                run.log(relay.client, status, &tally, peer);
                relay.flow.begun(now, elapsed);
                match poll_fn(|cx| relay.poll_body(cx)).await {
                    Ok(true) => {}
                    Ok(false) => {
                        relay.answered_early();
                        tally.end_early(Instant::now());
                        poll_fn(|cx| relay.poll_rest(cx)).await;
                    }
                    Err(failure) => break Some(failure),
                }
                break None;
            }
            Err(failed) => {
                flow.count(&link.picked.in_flight, client.record.as_mut());
                // Boxed, since it is seldom needed.
                let edits = filtering.edits();
                let again = run.again(client, link, &mut flow, (edits, failed), &mut tally);
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
                let has_more = flow.upload.outbound.stage() != Stage::Done;
                return Box::pin(run.give_up(client, tally, filtering, unconnected, has_more))
                    .await;
            }
        }
    };
    let (now, elapsed) = flow.ended();
    let ended = run.settle(client, link, flow, failure.is_none(), now);
    match failure {
        None => {
            tally.end_well(now, elapsed);
            Forwarded::Served { keep: ended.keep }
        }
        Some(failure) => Box::pin(run.fail(client, tally, filtering, failure, ended)).await,
    }
}
