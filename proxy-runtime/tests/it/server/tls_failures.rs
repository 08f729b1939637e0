//! The failed handshakes of this process, from the server's log.

use std::collections::HashSet;
use std::fmt::{self, Write};
use std::net::SocketAddr;
use std::sync::Once;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Maximum of kept lines.
const MOST: usize = 1000;

static FAILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Starts to record the log of all servers of the process: workers have their own threads.
pub(crate) fn record() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Recorder).unwrap());
}

/// The log lines about failed handshakes of these clients, for the message of an assertion.
pub(crate) fn explain(clients: &HashSet<SocketAddr>) -> String {
    let failed = FAILED.lock();
    let mut text = String::from("handshakes that failed in this process:");
    for line in failed.iter() {
        let is_of = |client: &SocketAddr| line.contains(&format!("Some({client})"));
        let whose = match clients.iter().any(is_of) {
            true => "a client of this test",
            false => "a stranger",
        };
        write!(text, "\n{whose}: {line}").unwrap();
    }
    text
}

struct Recorder;

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "proxy::tls"
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
        let mut failed = FAILED.lock();
        if failed.len() < MOST && line.0.contains("handshake failed") {
            failed.push(line.0);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
