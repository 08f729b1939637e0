//! An access log writer with its own thread.

use std::io;
use std::time::Duration;

use log_sink::{Capacity, Event, LogWriter, Output};

use super::AccessLogSink;
use super::format::{AccessLogFormat, QueryLogging, write_line};
use super::record::AccessRecord;
use super::sampling::Sampling;
use crate::observe::targets;

/// Writes records as lines of text on its own thread: a slow disk or a blocked pipe never delays a
/// request.
///
/// Lines beyond the [capacity](Capacity) of the queue are dropped, counted, and reported with a
/// warning when writing continues. A write error is reported once, and so is its end.
///
/// The thread ends when the last owner is dropped and the queue is written, if the process lives
/// that long. Call [`flush`](Self::flush) at the end of a program.
#[derive(Debug)]
pub struct AccessLogWriter {
    format: AccessLogFormat,
    query: QueryLogging,
    sampling: Sampling,
    lines: LogWriter,
}

impl AccessLogWriter {
    /// Starts a thread that writes lines to `output`.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be created.
    pub fn start(output: Output, format: AccessLogFormat, query: QueryLogging) -> io::Result<Self> {
        let capacity = Capacity::default();
        let lines = LogWriter::start("access-log", output, capacity, |event| report(&event))?;
        Ok(Self {
            format,
            query,
            sampling: Sampling::of(1.0),
            lines,
        })
    }

    /// Sets the part of requests to write, from 0 to 1: every tenth with 0.1. Requests with an error, a
    /// rejection, an early end or a status of 500 and above are all written. Default: 1.
    #[must_use]
    pub fn with_sampling(mut self, part: f64) -> Self {
        self.sampling = Sampling::of(part);
        self
    }

    /// Number of lines that were dropped because the queue was full, or lost because of write
    /// errors.
    pub fn dropped(&self) -> u64 {
        self.lines.dropped()
    }

    /// Reopens the file under its name before the next line is written. Other outputs ignore it.
    pub fn reopen(&self) {
        self.lines.reopen();
    }

    /// Blocks until all records are written, at most for `within`. Returns false if some are not.
    pub fn flush(&self, within: Duration) -> bool {
        self.lines.flush(within)
    }
}

impl AccessLogSink for AccessLogWriter {
    fn log(&self, record: &AccessRecord<'_>) {
        if !self.sampling.takes(record) {
            return;
        }
        let mut line = String::with_capacity(320);
        write_line(&mut line, record, &self.format, self.query);
        self.lines.write(line.into_bytes());
    }
}

/// Reports a change of state once: errors of this log must not flood another.
fn report(event: &Event<'_>) {
    match event {
        Event::Failed(error) => {
            tracing::warn!(target: targets::ACCESS, %error, "the access log cannot be written");
        }
        Event::Recovered => {
            tracing::info!(target: targets::ACCESS, "the access log can be written again");
        }
        Event::Dropped(lines) => tracing::warn!(
            target: targets::ACCESS,
            lines,
            "lines of the access log are missing: they came faster than they could be written, or writing failed"
        ),
        Event::Reopened => {
            tracing::info!(target: targets::ACCESS, "the file of the access log was opened again");
        }
        Event::NotReopened(error) => tracing::warn!(
            target: targets::ACCESS,
            %error,
            "the file of the access log cannot be opened again; the old one is written on"
        ),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::Version;

    use super::*;
    use crate::server::Outcome;

    fn record(path: &str) -> AccessRecord<'_> {
        AccessRecord {
            time: UNIX_EPOCH,
            remote: None,
            tls: false,
            method: "GET",
            host: b"t",
            path,
            query: None,
            version: Version::HTTP_11,
            status: None,
            bytes_received: 0,
            bytes_sent: 0,
            duration: Duration::ZERO,
            outcome: Outcome::Aborted,
            exchange: None,
            body_error: None,
            rejection: None,
            disconnected: None,
            user_agent: None,
        }
    }

    #[test]
    fn records_are_lines_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let output = Output::file(&path).unwrap();
        let log =
            AccessLogWriter::start(output, AccessLogFormat::Text, QueryLogging::Names).unwrap();
        log.log(&record("/1"));
        log.log(&record("/2"));
        // A guard against a hang.
        assert!(log.flush(Duration::from_secs(60)));
        let text = std::fs::read_to_string(&path).unwrap();
        let paths: Vec<_> = text.lines().map(|line| line.contains("/1 HTTP")).collect();
        assert_eq!(paths, [true, false], "{text}");
        assert_eq!(log.dropped(), 0);
    }
}
