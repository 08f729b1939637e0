//! The access log: one record for each finished request.

mod format;
mod record;
mod writer;

use std::fmt;

pub use self::format::{AccessLogFormat, QueryLogging};
pub use self::record::AccessRecord;
pub(crate) use self::record::Draft;
pub use self::writer::AccessLogWriter;
pub use log_sink::{Capacity as LogCapacity, Output as LogOutput};

/// Receives the record of each finished request.
///
/// Called on the thread that serves the connection, after the end of the response body or of the
/// tunnel: it must not block or take long. [`AccessLogWriter`] passes text to its own thread. Other
/// implementations should do the same, and drop records that they cannot store.
pub trait AccessLogSink: fmt::Debug + Send + Sync {
    /// Receives the record of one finished request.
    fn log(&self, record: &AccessRecord<'_>);
}
