//! The loop of an exchange, from the request head to the end of the response.

use std::future::poll_fn;

use http::StatusCode;
use tokio::time::Instant;

use super::connect::Again;
use super::downstream::{Downstream, ExchangeStateOf, Upload};
use super::failure::Failure;
use super::filtering::Filtering;
use super::flow::ExchangeProgress;
use super::recorder::Recorder;
use super::relay::Relay;
use super::resolved_route::ResolvedRoute;
use super::{Engine, Forwarded};
use crate::error::ForwardErrorKind;
use crate::local_pool::Recycle;
use crate::progress::Stage;
use crate::server::metrics::WorkerMetrics;
use crate::transform::Invalid;

/// Forwards a request.
///
/// Cancel-safe: if dropped, the request is cancelled at the destination, and the client's
/// connection or stream cannot be used any more.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn holds its arguments twice, for which idle connections would have memory"
)]
pub(super) fn forward<D: Downstream>(
    mut down: D,
    engine: &Engine,
) -> impl Future<Output = Forwarded> {
    async move {
        let generation = engine.current();
        let route = match ResolvedRoute::of_request(&down, engine, &generation) {
            Ok(route) => route,
            Err(index) => return Forwarded::Typed(index),
        };
        #[cfg(test)]
        super::tests::lane::is_raw();
        // All reads of the head happen before the first await: nearly always there is an idle connection.
        let mut recorder = route.recorder(&down, Instant::now());
        let (mut filtering, said) = match route.filters() {
            None => (Filtering::default(), Ok(())),
            Some(filters) => Filtering::ask(filters, &route, &down),
        };
        // A block of its own, so that waiting connections need no memory for its variables.
        let (mut link, since) = 'connected: {
            let connecting =
                said.and_then(|()| route.connect_now(&down, filtering.edits(), &mut recorder));
            let unconnected = match connecting {
                Ok(link) => break 'connected (link, recorder.started()),
                Err(unconnected) => unconnected,
            };
            // Boxed, since it is rarely needed.
            let edits = filtering.edits();
            let connecting = route.connect(unconnected, &mut down, edits, &mut recorder);
            let unconnected = match Box::pin(connecting).await {
                Ok(link) => break 'connected (link, Instant::now()),
                Err(unconnected) => unconnected,
            };
            let has_more = down.skip_request();
            let given_up = route.give_up(&mut down, recorder, filtering, unconnected, has_more);
            return Box::pin(given_up).await;
        };
        let head = std::mem::replace(&mut link.head, Err(Invalid));
        let mut flow = match route.begin(&mut down, head, since, &recorder) {
            Ok(flow) => flow,
            Err(rejection) => {
                // It can be reused, since nothing was sent over it.
                link.lease.release(Instant::now());
                drop(link.picked);
                let rejected = route.reject(&mut down, recorder, filtering, rejection, true);
                return Box::pin(rejected).await;
            }
        };
        let failure = loop {
            let Some(connection) = link.lease.raw() else {
                // The connection speaks HTTP/2, though its cluster must not.
                break Some(Failure::UNSPOKEN);
            };
            if connection.keep(route.method).if_sent {
                flow.keep_request();
            }
            let mut relay = Relay {
                down: &mut down,
                flow: &mut flow,
                route: &route,
                flight: &link.picked.in_flight,
                filtering: &mut filtering,
                connection,
            };
            match poll_fn(|cx| relay.poll_head(cx)).await {
                Ok(status) => {
                    let now = Instant::now();
                    let elapsed = recorder.answered_over(&link.picked.in_flight, status, now);
                    route.log(relay.down, status, &recorder, relay.connection.peer);
                    relay.flow.begun(now, elapsed);
                    match poll_fn(|cx| relay.poll_body(cx)).await {
                        Ok(true) => {}
                        Ok(false) => {
                            relay.answered_early();
                            recorder.end_early(Instant::now());
                            poll_fn(|cx| relay.poll_rest(cx)).await;
                        }
                        Err(failure) => break Some(failure),
                    }
                    break None;
                }
                Err(failed) => {
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
        let progress = ExchangeProgress::new(self.deadlines(self.head_due(recorder)), since);
        let mut flow: Box<ExchangeStateOf<D>> = D::flows().acquire().unwrap_or_default();
        flow.begin(head, progress);
        let begun = down.begin_upload(self, &mut flow.upload, &mut flow.outbound);
        if let Err(broken) = begun {
            if broken.is_malformed() {
                WorkerMetrics::add(&down.state().metrics().malformed);
            }
            return Err(broken.rejection());
        }
        if flow.upload.needs_more()
            && let Some(rate) = down.state().worker.limits.data_rate
            && !down.may_upload_slowly()
        {
            flow.outbound.pace(rate);
        }
        Ok(flow)
    }
}
