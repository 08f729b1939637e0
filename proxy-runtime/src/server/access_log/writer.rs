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
    use std::io::Write;
    use std::sync::mpsc;
    use std::time::UNIX_EPOCH;

    use http::Version;
    use tracing::Level;

    use super::*;
    use crate::fixtures::Log;
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

    /// A pipe without a reader until the sender is dropped.
    struct UnreadPipe(mpsc::Receiver<()>);

    impl Write for UnreadPipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn records_that_nobody_reads_are_dropped_and_counted() {
        let (unread, pipe) = mpsc::channel();
        let (format, query) = (AccessLogFormat::Text, QueryLogging::Names);
        let output = Output::stream(UnreadPipe(pipe));
        let log = AccessLogWriter::start(output, format, query).unwrap();
        let path = format!("/{}", "a".repeat(4000));
        // More than the queue takes.
        let most = Capacity::default().lines + 1;
        let logged = (1..=2 * most).find(|_| {
            log.log(&record(&path));
            log.dropped() > 0
        });
        assert!(logged.is_some_and(|logged| logged > 1), "{logged:?}");
        assert!(!log.flush(Duration::ZERO));
        drop(unread);
        assert!(log.flush(Duration::from_secs(60)));
        assert_eq!(log.dropped(), 1);
    }

    #[test]
    fn each_change_of_state_is_one_line() {
        let (log, _guard) = Log::start();
        let error = io::Error::other("no room");
        for (event, level, text) in [
            (Event::Failed(&error), Level::WARN, "error=no room"),
            (Event::Recovered, Level::INFO, "can be written again"),
            (Event::Dropped(17), Level::WARN, "lines=17"),
            (Event::Reopened, Level::INFO, "was opened again"),
            (
                Event::NotReopened(&error),
                Level::WARN,
                "the old one is written on",
            ),
        ] {
            report(&event);
            let [line] = &log.take(targets::ACCESS)[..] else {
                panic!("{event:?}: not one line");
            };
            assert_eq!(line.level, level, "{event:?}");
            assert!(line.fields.contains(text), "{event:?}: {line:?}");
        }
    }
}
