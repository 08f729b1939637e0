//! The tracer of the proxy: the sampler, and a queue in front of the exporter.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use proxy_runtime::trace::{Decision, TraceSpan, Tracer};
use tokio::sync::mpsc;

use crate::sampler::Sampler;
use crate::settings::Settings;

/// Decides about traces, and queues their spans.
pub(crate) struct OtlpTracer {
    sampler: Sampler,
    /// `None` after the end.
    queue: Mutex<Option<mpsc::UnboundedSender<Vec<TraceSpan>>>>,
    /// Number of spans in the queue and in the batch that is sent now.
    waiting: AtomicUsize,
    most: usize,
    dropped: AtomicU64,
}

impl OtlpTracer {
    /// A tracer, and the end of its queue.
    pub(crate) fn new(settings: &Settings) -> (Self, mpsc::UnboundedReceiver<Vec<TraceSpan>>) {
        // Its length is limited by `waiting`, which counts spans in place of traces.
        let (queue, receiver) = mpsc::unbounded_channel();
        let tracer = Self {
            sampler: settings.sampler,
            queue: Mutex::new(Some(queue)),
            waiting: AtomicUsize::new(0),
            most: settings.queue_size,
            dropped: AtomicU64::new(0),
        };
        (tracer, receiver)
    }

    /// Takes no more spans.
    pub(crate) fn close(&self) {
        *self.queue.lock() = None;
    }

    /// Notes spans that were delivered.
    pub(crate) fn delivered(&self, spans: usize) {
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
    }

    /// Notes spans that were not delivered.
    pub(crate) fn lost(&self, spans: usize) {
        self.delivered(spans);
        self.dropped.fetch_add(spans as u64, Ordering::Relaxed);
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Tracer for OtlpTracer {
    fn decide(&self, trace_id: [u8; 16], caller: Option<bool>) -> Decision {
        self.sampler.decide(trace_id, caller)
    }

    fn finished(&self, spans: Vec<TraceSpan>) {
        let count = spans.len();
        let before = self.waiting.fetch_add(count, Ordering::Relaxed);
        if before + count > self.most {
            return self.lost(count);
        }
        // Held for a push: the exporter takes it once, at the end.
        let sent = self.queue.lock().as_ref().map(|queue| queue.send(spans));
        if !matches!(sent, Some(Ok(()))) {
            self.lost(count);
        }
    }
}

impl fmt::Debug for OtlpTracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpTracer")
            .field("sampler", &self.sampler)
            .field("waiting", &self.waiting)
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}
