//! Shared parts of tests: configurations, and a view of the log.

use std::sync::Arc;

use parking_lot::Mutex;
use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Snapshot};

/// The configuration that `json` writes: what is in the section `ReverseProxy`.
#[track_caller]
pub(crate) fn config(json: &str) -> ProxyConfig {
    ProxyConfig::from_json(json).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The same, compiled.
#[track_caller]
pub(crate) fn snapshot(json: &str) -> Arc<Snapshot> {
    compiled(config(json))
}

/// `config`, compiled.
#[track_caller]
pub(crate) fn compiled(config: ProxyConfig) -> Arc<Snapshot> {
    match Snapshot::compile(config, &CompileOptions::default()) {
        Ok((snapshot, _)) => Arc::new(snapshot),
        Err(problems) => panic!("{problems}"),
    }
}

/// An event of `tracing`, as text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Logged {
    pub(crate) target: &'static str,
    pub(crate) level: tracing::Level,
    /// The fields as `name=value`, including the message.
    pub(crate) fields: String,
}

/// Keeps the events of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Logged>>>);

impl Log {
    /// Begins to keep the events of this thread, until the guard is dropped.
    pub(crate) fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let guard = tracing::subscriber::set_default(log.clone());
        // A test on another thread that reaches an event for the first time just before registers it as one without
        // a listener, and may be about to say so only now. After a moment every such registration is over, and making a
        // subscriber makes tracing check all of them again.
        std::thread::park_timeout(std::time::Duration::from_millis(100));
        drop(tracing::Dispatch::new(Self::default()));
        (log, guard)
    }

    /// Takes the events of a target out.
    pub(crate) fn take(&self, target: &str) -> Vec<Logged> {
        let mut events = self.0.lock();
        let (wanted, others) = events.drain(..).partition(|event| event.target == target);
        *events = others;
        wanted
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct FixtureFields(String);
        impl tracing::field::Visit for FixtureFields {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{field}={value:?} "));
            }
        }
        let mut fields = FixtureFields(String::new());
        event.record(&mut fields);
        self.0.lock().push(Logged {
            target: event.metadata().target(),
            level: *event.metadata().level(),
            fields: fields.0,
        });
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
