//! The log of a test: events of the thread that runs it, servers included.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

thread_local! {
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Starts to keep the events of the control plane, for each thread its own.
pub(crate) fn record() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Recorder).unwrap());
}

/// Returns the lines of this thread that contain `text`.
pub(crate) fn lines_with(text: &str) -> Vec<String> {
    LINES.with_borrow(|lines| {
        let wanted = lines.iter().filter(|line| line.contains(text));
        wanted.cloned().collect()
    })
}

struct Recorder;

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "xds::server"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                write!(self.0, "{field}={value:?} ").unwrap();
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        LINES.with_borrow_mut(|lines| lines.push(line.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
