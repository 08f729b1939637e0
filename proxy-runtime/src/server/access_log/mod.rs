//! One line for each finished request.

mod format;
mod record;
mod writer;

use std::fmt;

pub use self::format::{AccessLogFormat, QueryLogging};
pub use self::record::AccessRecord;
pub(crate) use self::record::Draft;
pub use self::writer::AccessLogWriter;
pub use log_sink::{Capacity as LogCapacity, Output as LogOutput};

/// Takes the record of each finished request.
///
/// It is called on the thread that serves the connection, after the response's body has ended, or after a tunnel has:
/// it must neither block nor take long. [`AccessLogWriter`] hands text to a thread of its own; an implementation that
/// sends records elsewhere should do likewise, and drop what it cannot take.
pub trait AccessLogSink: fmt::Debug + Send + Sync {
    /// Takes the record of one finished request.
    fn log(&self, record: &AccessRecord<'_>);
}
