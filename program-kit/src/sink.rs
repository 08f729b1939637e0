//! Standard error as the log of a program: no caller waits for a slow reader.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use log_sink::{Capacity, Event, LogWriter, Output, escape_controls};
use tracing::Level;
use tracing::subscriber::with_default;

/// The log target.
const TARGET: &str = "program::log";

/// The maximum time that a program waits for its log at its end.
pub(crate) const LAST_FLUSH: Duration = Duration::from_secs(3);

/// The maximum time that a program waits for its log if it has to end at once.
pub(crate) const SHORT_FLUSH: Duration = Duration::from_millis(250);

static SINK: OnceLock<Sink> = OnceLock::new();

/// The log of the process.
#[derive(Debug)]
struct Sink {
    lines: LogWriter,
    is_json: bool,
    is_coloured: bool,
}

/// Starts the thread that writes standard error. A second call has no effect.
pub(crate) fn start(is_json: bool, is_coloured: bool) -> io::Result<()> {
    let lines = LogWriter::start("log", Output::stderr(), Capacity::default(), |event| {
        report(&event);
    })?;
    let sink = Sink {
        lines,
        is_json,
        is_coloured,
    };
    // A second sink is dropped, and its thread ends.
    let _ = SINK.set(sink);
    Ok(())
}

/// Reports dropped lines in the log itself, once that works again.
fn report(event: &Event<'_>) {
    if let Event::Dropped(lines) = event {
        tracing::warn!(
            target: TARGET,
            lines,
            "lines of this log are missing: they arrived faster than they could be written, or writing failed"
        );
    }
}

/// Prints a sentence for people on standard error. With a JSON log it is an event, whatever the filter.
///
/// It does not block once [`Logging`](crate::Logging) has started.
pub fn say(text: &str) {
    say_as(Level::INFO, text);
}

pub(crate) fn say_as(level: Level, text: &str) {
    match SINK.get() {
        // The exit code carries the result if the text cannot be read.
        None => drop(io::stderr().write_all(escape_lines(text).as_bytes())),
        Some(sink) if sink.is_json => {
            let unfiltered = tracing_subscriber::fmt()
                .json()
                .with_max_level(Level::INFO)
                .with_writer(|| EventLine)
                .finish();
            with_default(unfiltered, || match level {
                Level::ERROR => tracing::error!(target: "program", "{text}"),
                _ => tracing::info!(target: "program", "{text}"),
            });
        }
        Some(sink) => {
            sink.lines.write(escape_lines(text).into_bytes());
        }
    }
}

/// Returns text of several lines without control characters except the line ends: text from outside cannot
/// move a terminal's cursor. JSON stays JSON.
pub fn escape_lines(text: &str) -> String {
    let mut lines = String::with_capacity(text.len() + 1);
    for line in text.lines() {
        lines.push_str(&escape_controls(line));
        lines.push('\n');
    }
    lines
}

/// Returns the number of lines of the log that were dropped or could not be written.
pub fn dropped_lines() -> u64 {
    SINK.get().map_or(0, |sink| sink.lines.dropped())
}

/// Waits until all logged lines are written, at most for `within`. Blocks the thread.
pub(crate) fn flush(within: Duration) {
    if let Some(sink) = SINK.get() {
        // A failure cannot be reported any more.
        sink.lines.flush(within);
    }
}

/// A writer that takes the text of one event in one call.
#[derive(Debug)]
pub(crate) struct EventLine;

impl Write for EventLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(sink) = SINK.get() {
            let text = String::from_utf8_lossy(bytes);
            let line = one_line(&text, sink.is_coloured);
            sink.lines.write(line.into_bytes());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the text of an event as one line with its end, whatever its values. Colours are kept; those of
/// values were escaped when the event was formatted.
fn one_line(text: &str, is_coloured: bool) -> String {
    let mut rest = text.strip_suffix('\n').unwrap_or(text);
    let mut line = String::with_capacity(rest.len() + 1);
    if is_coloured {
        while let Some(at) = rest.find('\x1b') {
            line.push_str(&escape_controls(&rest[..at]));
            rest = &rest[at..];
            // One byte long if it is only a control character.
            let (sequence, behind) = rest.split_at(colour(rest).unwrap_or(1));
            let shown = match sequence.len() {
                1 => escape_controls(sequence),
                _ => Cow::Borrowed(sequence),
            };
            line.push_str(&shown);
            rest = behind;
        }
    }
    line.push_str(&escape_controls(rest));
    line.push('\n');
    line
}

/// Returns the length of the escape sequence for a colour or a style at the beginning of `text`.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|character: char| !matches!(character, '0'..='9' | ';'))?;
    parameters[end..].starts_with('m').then_some(end + 3)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event = "INFO health id=a\nINFO forged \x1b]0;title\x07\n";
        assert_eq!(
            one_line(event, false),
            "INFO health id=a\\u000aINFO forged \\u001b]0;title\\u0007\n"
        );
    }

    /// Text that a subscriber writes.
    #[derive(Clone, Default)]
    struct Text(Arc<Mutex<Vec<u8>>>);

    impl Write for Text {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn dropped_lines_are_reported_with_their_number() {
        let text = Text::default();
        let writer = text.clone();
        let log = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        with_default(log, || {
            report(&Event::Recovered);
            report(&Event::Dropped(17));
        });
        let text = String::from_utf8(text.0.lock().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.contains("WARN program::log: lines of this log are missing"),
            "{text}"
        );
        assert!(text.contains("lines=17"), "{text}");
    }

    #[test]
    fn colours_stay_and_other_sequences_do_not() {
        assert_eq!(
            one_line("\x1b[1;32m INFO\x1b[0m a\x1b[2Jb\x1b\n", true),
            "\x1b[1;32m INFO\x1b[0m a\\u001b[2Jb\\u001b\n"
        );
        assert_eq!(one_line("\x1b[1mb\n", false), "\\u001b[1mb\n");
    }
}
