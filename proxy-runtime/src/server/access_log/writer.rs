//! Writes lines on a thread of its own.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use super::AccessLogSink;
use super::format::{AccessLogFormat, QueryLogging, write_line};
use super::record::AccessRecord;
use crate::observe::targets;

/// Lines that may wait to be written. 8192: about 2 MiB, and a second of the load that a busy core produces.
pub const DEFAULT_CAPACITY: usize = 8192;

/// Writes records as lines of text, on a thread of its own: a slow disk never slows a request down.
///
/// When more lines wait than there is capacity for, further ones are dropped, counted, and reported with a warning when
/// writing goes on.
///
/// The thread writes what waits, and flushes, whenever nothing more waits. It ends when the last owner of this value is
/// gone; lines that were logged before are written, provided that the process lives on for that long. Call
/// [`finish`](Self::finish) at the end of a program.
#[derive(Debug)]
pub struct AccessLogWriter {
    format: AccessLogFormat,
    query: QueryLogging,
    lines: SyncSender<String>,
    dropped: Arc<AtomicU64>,
    thread: thread::JoinHandle<()>,
}

impl AccessLogWriter {
    /// Starts a thread that writes lines to `output`, with [`DEFAULT_CAPACITY`].
    ///
    /// # Errors
    ///
    /// The system has no thread to give.
    pub fn start(
        output: impl Write + Send + 'static,
        format: AccessLogFormat,
        query: QueryLogging,
    ) -> io::Result<Self> {
        Self::with_capacity(output, format, query, DEFAULT_CAPACITY)
    }

    /// The same, where `capacity` lines may wait.
    ///
    /// # Errors
    ///
    /// The system has no thread to give.
    pub fn with_capacity(
        output: impl Write + Send + 'static,
        format: AccessLogFormat,
        query: QueryLogging,
        capacity: usize,
    ) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(capacity.max(1));
        let dropped = Arc::new(AtomicU64::new(0));
        let writing = Writing {
            output: BufWriter::with_capacity(64 * 1024, output),
            dropped: dropped.clone(),
            reported: 0,
            failed: false,
        };
        let thread = thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || writing.run(&waiting))?;
        Ok(Self {
            format,
            query,
            lines,
            dropped,
            thread,
        })
    }

    /// Lines that were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Waits until everything that was logged is written. Blocks the thread.
    pub fn finish(self) {
        drop(self.lines);
        // A panic of the output has been reported by the panic hook.
        let _ = self.thread.join();
    }
}

impl AccessLogSink for AccessLogWriter {
    fn log(&self, record: &AccessRecord<'_>) {
        let mut line = String::with_capacity(320);
        write_line(&mut line, record, self.format, self.query);
        match self.lines.try_send(line) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped.fetch_add(1, Relaxed);
            }
        }
    }
}

/// The thread's side.
struct Writing<W: Write> {
    output: BufWriter<W>,
    dropped: Arc<AtomicU64>,
    /// Of the dropped ones, those that were reported.
    reported: u64,
    failed: bool,
}

impl<W: Write> Writing<W> {
    fn run(mut self, waiting: &Receiver<String>) {
        while let Ok(line) = waiting.recv() {
            self.write(&line);
            while let Ok(line) = waiting.try_recv() {
                self.write(&line);
            }
            let result = self.output.flush();
            self.note(&result);
            self.report_dropped();
        }
    }

    fn write(&mut self, line: &str) {
        let result = self.output.write_all(line.as_bytes());
        self.note(&result);
    }

    /// One message when writing begins to fail, one when it goes on: the log's own trouble must not flood another.
    fn note(&mut self, result: &io::Result<()>) {
        match result {
            Err(error) if !self.failed => {
                tracing::warn!(target: targets::ACCESS, %error, "the access log cannot be written");
                self.failed = true;
            }
            Ok(()) if self.failed => {
                tracing::info!(target: targets::ACCESS, "the access log can be written again");
                self.failed = false;
            }
            _ => {}
        }
    }

    fn report_dropped(&mut self) {
        let dropped = self.dropped.load(Relaxed);
        if dropped > self.reported {
            tracing::warn!(
                target: targets::ACCESS,
                lines = dropped - self.reported,
                "lines of the access log were dropped: they came faster than they could be written"
            );
            self.reported = dropped;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, UNIX_EPOCH};

    use http::Version;
    use parking_lot::{Mutex, MutexGuard};

    use super::*;
    use crate::server::Outcome;

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl Output {
        fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
            self.0.lock()
        }
    }

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Says when it is asked to write, and writes when it is told to.
    struct Gate {
        entered: mpsc::Sender<()>,
        open: Receiver<()>,
        output: Output,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.entered.send(()).unwrap();
            // Disconnected: open for good.
            let _ = self.open.recv();
            self.output.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

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
            refusal: None,
            user_agent: None,
        }
    }

    #[test]
    fn lines_are_written_in_order() {
        let output = Output::default();
        let log =
            AccessLogWriter::start(output.clone(), AccessLogFormat::Text, QueryLogging::Names)
                .unwrap();
        log.log(&record("/1"));
        log.log(&record("/2"));
        log.finish();
        let text = String::from_utf8(output.lock().clone()).unwrap();
        let paths: Vec<_> = text.lines().map(|line| line.contains("/1 HTTP")).collect();
        assert_eq!(paths, [true, false], "{text}");
    }

    #[test]
    fn lines_beyond_the_capacity_are_dropped_and_counted() {
        let output = Output::default();
        let (entered, writing) = mpsc::channel();
        let (open, gate) = mpsc::channel();
        let gate = Gate {
            entered,
            open: gate,
            output: output.clone(),
        };
        let log =
            AccessLogWriter::with_capacity(gate, AccessLogFormat::Text, QueryLogging::Names, 2)
                .unwrap();
        log.log(&record("/1"));
        writing.recv().unwrap();
        // The thread holds the first line; two more may wait.
        for path in ["/2", "/3", "/4", "/5"] {
            log.log(&record(path));
        }
        assert_eq!(log.dropped(), 2);
        drop(open);
        log.finish();
        let text = String::from_utf8(output.lock().clone()).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
