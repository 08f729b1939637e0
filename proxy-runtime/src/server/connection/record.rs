//! What the server keeps of one request while it is served, whichever path it takes: its counts, and the draft of its line in the
//! access log.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;

use super::request_body::BodyMeter;
use super::state::ConnectionState;
use crate::observe::targets;
use crate::response::ExchangeInfo;
use crate::server::access_log::Draft;
use crate::server::metrics::WorkerMetrics;
use crate::server::outcome::Outcome;
use crate::server::validation::RequestRejection;

/// A request that is being served: it counts as active as long as this lives, from the end of its head, and is logged when this is
/// dropped, wherever that happens, unless it was before.
pub(crate) struct RequestRecord {
    pub(crate) connection: Arc<ConnectionState>,
    pub(crate) meter: Option<Arc<BodyMeter>>,
    pub(crate) draft: Option<Box<Draft>>,
    /// Bytes of the request's body that came, besides those that the meter counts.
    pub(crate) received: u64,
    /// Bytes of the response's body that were handed over.
    pub(crate) sent: u64,
    pub(crate) outcome: Outcome,
    /// The client was given up since it sent its request too slowly.
    has_slow_upload: bool,
}

/// Why a request is rejected whose body was.
pub(super) const BODY_REJECTED: &str = "the request's body was rejected";

impl RequestRecord {
    /// Of the request that `connection` has counted with [`begin_request`](ConnectionState::begin_request).
    pub(crate) fn new(connection: Arc<ConnectionState>) -> Self {
        let metrics = connection.metrics();
        WorkerMetrics::add(&metrics.requests);
        WorkerMetrics::add(&metrics.active_requests);
        Self {
            connection,
            meter: None,
            draft: None,
            received: 0,
            sent: 0,
            outcome: Outcome::Aborted,
            has_slow_upload: false,
        }
    }

    /// Notes that the client sends its request more slowly than the server lets it.
    pub(crate) fn upload_is_too_slow(&mut self) {
        self.has_slow_upload = true;
        WorkerMetrics::add(&self.connection.metrics().slow_clients);
    }

    /// Notes that a request is rejected with this status for its body, of which so many bytes were allowed, if it is the server
    /// that rejects it: what its route or its cluster does not take is counted there.
    #[cold]
    pub(crate) fn body_rejected(&mut self, status: StatusCode, allowed: u64) {
        let limits = &self.connection.worker.limits;
        let is_ours = match status {
            StatusCode::REQUEST_TIMEOUT => self.has_slow_upload,
            StatusCode::PAYLOAD_TOO_LARGE => limits.body_bytes == Some(allowed),
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => true,
            _ => false,
        };
        if is_ours {
            self.rejected(RequestRejection::new(status, BODY_REJECTED));
        }
    }

    /// Notes the response of whoever forwarded the request, and what there is to say of that.
    pub(crate) fn answered(&mut self, status: StatusCode, info: Option<ExchangeInfo>) {
        if let Some(draft) = &mut self.draft {
            draft.answered(status, info);
        }
    }

    /// Notes that the server rejects the request itself.
    pub(crate) fn rejected(&mut self, rejection: RequestRejection) {
        if rejection.status != StatusCode::INTERNAL_SERVER_ERROR {
            WorkerMetrics::add(&self.connection.metrics().rejected);
        }
        tracing::debug!(
            target: targets::SERVER,
            status = rejection.status.as_u16(),
            reason = rejection.reason,
            "request rejected"
        );
        if let Some(draft) = &mut self.draft {
            draft.rejected(rejection.status, rejection.reason);
        }
    }

    /// The client has its whole response, whatever there is left of its request: that is logged.
    pub(crate) fn complete(&mut self) {
        self.outcome = Outcome::Complete;
        self.log();
    }

    fn log(&mut self) {
        if let (Some(draft), Some(log)) = (self.draft.take(), &self.connection.worker.access_log) {
            let metered = self.meter.as_ref().map_or(0, |meter| meter.received());
            let received = self.received + metered;
            draft.finish(log.as_ref(), received, self.sent, self.outcome);
        }
    }

    /// Lets the tunnel that the connection becomes finish the log's line.
    pub(crate) fn hand_to_tunnel(&mut self) {
        self.connection.tunnel.store(true, Relaxed);
        if let Some(draft) = self.draft.take() {
            self.connection.log_with_tunnel(draft);
        }
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        self.connection.end_request();
        WorkerMetrics::subtract(&self.connection.worker.metrics.active_requests);
        self.log();
    }
}
