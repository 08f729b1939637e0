//! The server's record of one request, on both paths: its counters, and its line for the access log.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;

use super::request_body::BodyMeter;
use super::state::ConnectionState;
use crate::connection::ConnectionInfo;
use crate::error::{Cause, ForwardErrorKind, TOO_LARGE};
use crate::forward::exchange::downstream::Record;
use crate::head::AddressText;
use crate::http1::FieldValue;
use crate::observe::targets;
use crate::response::ExchangeInfo;
use crate::server::access_log::Draft;
use crate::server::metrics::WorkerMetrics;
use crate::server::outcome::Outcome;
use crate::server::validation::RequestRejection;

/// A request that is being served: it counts as active as long as this lives, from the end of its head, and is logged
/// when this is dropped, wherever that happens, unless it was before.
pub(crate) struct RequestRecord {
    pub(crate) connection: Arc<ConnectionState>,
    /// The client, if a trusted proxy has reported it.
    client: Option<Box<ReportedClient>>,
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

/// The client of a request behind a trusted proxy.
struct ReportedClient {
    info: ConnectionInfo,
    text: Option<AddressText>,
}

/// The reason in the access log for a request whose body was rejected.
pub(super) const BODY_REJECTED: &str = "the request's body was rejected";

impl RequestRecord {
    /// Creates the record of a request that `connection` has counted with
    /// [`begin_request`](ConnectionState::begin_request).
    pub(crate) fn new(connection: Arc<ConnectionState>) -> Self {
        let metrics = connection.metrics();
        WorkerMetrics::add(&metrics.requests);
        WorkerMetrics::add(&metrics.active_requests);
        Self {
            connection,
            client: None,
            meter: None,
            draft: None,
            received: 0,
            sent: 0,
            outcome: Outcome::Aborted,
            has_slow_upload: false,
        }
    }

    /// Notes the client that a trusted proxy reports.
    pub(crate) fn report_client(&mut self, info: Option<Box<ConnectionInfo>>) {
        self.client = info.map(|info| {
            let text = info.remote.map(|remote| AddressText::new(remote.ip()));
            Box::new(ReportedClient { info: *info, text })
        });
    }

    /// The facts about the connection of the client: its own, or those that a trusted proxy reports.
    #[inline]
    pub(crate) fn info(&self) -> &ConnectionInfo {
        match &self.client {
            None => &self.connection.info,
            Some(client) => &client.info,
        }
    }

    /// Returns the client's address without port, for header fields to destinations.
    #[inline]
    pub(crate) fn remote_value(&self) -> Option<FieldValue<'_>> {
        match &self.client {
            None => self.connection.remote_value(),
            Some(client) => {
                let text = client.text.as_ref()?;
                Some(FieldValue::checked(text.as_bytes()))
            }
        }
    }

    /// Notes that the server rejects the request itself.
    pub(crate) fn rejected(&mut self, rejection: RequestRejection) {
        // A failure of the service is no rejection.
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

    fn log(&mut self) {
        if let (Some(mut draft), Some(log)) =
            (self.draft.take(), &self.connection.worker.access_log)
        {
            if self.outcome == Outcome::Aborted {
                draft.dropped();
            }
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

impl Record for RequestRecord {
    #[inline]
    fn wants_info(&self) -> bool {
        self.draft.is_some()
    }

    #[cold]
    fn answered(&mut self, status: StatusCode, info: ExchangeInfo) {
        if let Some(draft) = &mut self.draft {
            draft.answered(status, Some(info));
        }
    }

    #[cold]
    fn left(&mut self, info: ExchangeInfo) {
        if let Some(draft) = &mut self.draft {
            draft.left(info);
        }
    }

    #[inline]
    fn moved(&mut self, received: u64, sent: u64) {
        self.received = received;
        self.sent = sent;
    }

    #[inline]
    fn completed(&mut self) {
        self.outcome = Outcome::Complete;
    }

    fn completed_early(&mut self) {
        self.outcome = Outcome::Complete;
        // The client has its response, so the line does not wait for the rest of the upload.
        self.log();
    }

    fn replied(&mut self, sent: u64) {
        self.sent = sent;
        self.outcome = Outcome::Complete;
    }

    fn failed(&mut self, kind: ForwardErrorKind) {
        self.outcome = Outcome::Failed;
        if let Some(draft) = &mut self.draft {
            draft.failed(Some(kind));
        }
    }

    #[cold]
    fn disconnected(&mut self, cause: Cause) {
        if let Some(draft) = &mut self.draft {
            draft.disconnected(cause);
        }
    }

    fn upload_is_too_slow(&mut self) {
        self.has_slow_upload = true;
        WorkerMetrics::add(&self.connection.metrics().slow_clients);
    }

    #[cold]
    fn body_rejected(&mut self, status: StatusCode, allowed: u64) {
        let limits = &self.connection.worker.limits;
        let is_ours = match status {
            StatusCode::REQUEST_TIMEOUT => self.has_slow_upload,
            // A limit of the route is no rejection by the server.
            TOO_LARGE => limits.body_bytes == Some(allowed),
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => true,
            _ => false,
        };
        if is_ours {
            self.rejected(RequestRejection::new(status, BODY_REJECTED));
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
