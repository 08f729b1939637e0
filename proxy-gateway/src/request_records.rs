//! The receiver of the records of requests: the access log, the latest requests for the admin page, or both.

use std::sync::Arc;

use proxy_runtime::server::{AccessLogSink, AccessLogWriter, AccessRecord, RequestTail};

#[derive(Debug)]
struct Both(Arc<AccessLogWriter>, Arc<RequestTail>);

impl AccessLogSink for Both {
    fn log(&self, record: &AccessRecord<'_>) {
        self.0.log(record);
        self.1.log(record);
    }
}

/// Returns the receiver. `None` if there is neither a log nor a tail of requests.
pub(crate) fn sink(
    log: Option<&Arc<AccessLogWriter>>,
    requests: Option<&Arc<RequestTail>>,
) -> Option<Arc<dyn AccessLogSink>> {
    match (log, requests) {
        (Some(log), Some(requests)) => Some(Arc::new(Both(Arc::clone(log), Arc::clone(requests)))),
        (Some(log), None) => Some(Arc::clone(log) as _),
        (None, Some(requests)) => Some(Arc::clone(requests) as _),
        (None, None) => None,
    }
}
