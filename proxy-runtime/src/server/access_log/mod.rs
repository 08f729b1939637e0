//! The access log: one record for each finished request.

mod field;
mod format;
mod record;
mod sampling;
mod tail;
mod template;
mod writer;

use std::fmt;

pub use self::format::{AccessLogFormat, QueryLogging};
pub use self::record::AccessRecord;
pub(crate) use self::record::Draft;
pub use self::tail::RequestTail;
pub use self::template::{AccessLogTemplate, InvalidTemplate};
pub use self::writer::AccessLogWriter;
pub use log_sink::Output as LogOutput;

/// Receives the record of each finished request.
///
/// Called on the thread that serves the connection, after the end of the response body or of the
/// tunnel: it must not block or take long. [`AccessLogWriter`] passes text to its own thread. Other
/// implementations should do the same, and drop records that they cannot store.
pub trait AccessLogSink: fmt::Debug + Send + Sync {
    /// Receives the record of one finished request.
    fn log(&self, record: &AccessRecord<'_>);
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::{StatusCode, Version};

    use super::AccessRecord;
    use crate::server::Outcome;

    /// The record of a request that was served without error.
    pub(crate) fn record() -> AccessRecord<'static> {
        AccessRecord {
            time: UNIX_EPOCH + Duration::from_millis(1_500),
            remote: Some("192.0.2.7:4711".parse().unwrap()),
            tls: true,
            method: "GET",
            host: b"t.example",
            path: "/a",
            query: Some("user=me&token=s3cret&flag&"),
            version: Version::HTTP_11,
            status: Some(StatusCode::OK),
            bytes_received: 0,
            bytes_sent: 12,
            duration: Duration::from_micros(1_234),
            outcome: Outcome::Complete,
            exchange: None,
            body_error: None,
            rejection: None,
            disconnected: None,
            user_agent: Some(b"curl/8"),
        }
    }
}
