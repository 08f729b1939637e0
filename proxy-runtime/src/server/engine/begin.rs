//! From the head of a request to what is relayed.

use http::StatusCode;
use tokio::time::Instant;

use super::body::Body;
use super::connect::Link;
use super::flow::Flow;
use super::progress::Progress;
use super::request::Run;
use super::upload::Broken;
use crate::error::ForwardErrorKind;
use crate::server::http1::{Client, Transport};
use crate::server::metrics::WorkerMetrics;
use crate::transform::Invalid;

impl Run<'_> {
    /// Consumes the client's head, and looks at what came of the body.
    #[inline]
    pub(super) fn begin<T: Transport>(
        &self,
        client: &mut Client<T>,
        link: &mut Link,
        since: Instant,
        head_due: Option<Instant>,
    ) -> Result<Box<Flow>, (ForwardErrorKind, StatusCode)> {
        let body = Body::new(self.request.framing());
        client.input.consume(self.request.head_length());
        let head = std::mem::replace(&mut link.head, Err(Invalid))
            .map_err(|Invalid| (ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY))?;
        let progress = Progress::new(self.deadlines(head_due), since);
        let mut flow = Flow::lend();
        flow.begin(head, body, self.asked(), progress);
        flow.is_last = !self.request.is_persistent();
        if flow.upload.needs_more() {
            self.begin_upload(client, &mut flow)?;
        }
        Ok(flow)
    }

    pub(super) fn begin_upload<T: Transport>(
        &self,
        client: &mut Client<T>,
        flow: &mut Flow,
    ) -> Result<(), (ForwardErrorKind, StatusCode)> {
        flow.upload
            .allow(self.allowed(client.state.worker.limits.body_bytes));
        let limits = &client.state.worker.limits;
        flow.limits = limits.head();
        let begun = flow
            .upload
            .begin(&client.input, &flow.limits, &mut client.table);
        begun.map_err(|broken| match broken {
            Broken::Client {
                status,
                is_malformed,
            } => {
                if is_malformed {
                    WorkerMetrics::add(&client.state.metrics().malformed);
                }
                (ForwardErrorKind::RequestBodyClient, status)
            }
            Broken::Destination { .. } => (
                ForwardErrorKind::RequestBodyDestination,
                StatusCode::BAD_GATEWAY,
            ),
        })?;
        if flow.upload.needs_more()
            && let Some(rate) = limits.data_rate
        {
            flow.upload.outbound.pace(rate);
        }
        Ok(())
    }
}
