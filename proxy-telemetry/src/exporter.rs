//! The task that sends spans in batches.

use std::sync::Arc;
use std::time::Duration;

use log_sink::Seldom;
use prost::Message;
use proxy_runtime::trace::TraceSpan;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::warn;

use crate::messages::{
    ExportTraceServiceRequest, KeyValue, Resource, ResourceSpans, Scope, ScopeSpans,
};
use crate::settings::Settings;
use crate::tracer::OtlpTracer;
use crate::transport::{Refused, Transport};

/// Shortest time between two warnings about a collector.
const WARN_PAUSE: Duration = Duration::from_secs(60);

/// Pauses before a batch is sent again: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// Collects spans into batches and sends them, one batch at a time.
pub(crate) struct Exporter {
    transport: Transport,
    queue: mpsc::UnboundedReceiver<Vec<TraceSpan>>,
    tracer: Arc<OtlpTracer>,
    resource: Resource,
    batch_size: usize,
    delay: Duration,
    limit: Duration,
}

impl Exporter {
    pub(crate) fn new(
        settings: &Settings,
        transport: Transport,
        queue: mpsc::UnboundedReceiver<Vec<TraceSpan>>,
        tracer: Arc<OtlpTracer>,
    ) -> Self {
        let attributes = settings.resource.iter();
        Self {
            transport,
            queue,
            tracer,
            resource: Resource {
                attributes: attributes
                    .map(|(name, value)| KeyValue::text(name, value))
                    .collect(),
            },
            batch_size: settings.batch_size,
            delay: settings.delay,
            limit: settings.export_limit,
        }
    }

    /// Sends batches until the queue is closed and empty.
    pub(crate) async fn run(mut self) {
        while let Some(spans) = self.batch().await {
            let count = spans.len();
            let body = self.encoded(spans);
            match self.deliver(body).await {
                Ok(rejected) => {
                    let rejected = rejected.min(count);
                    self.tracer.delivered(count - rejected);
                    self.tracer.lost(rejected);
                }
                Err(reason) => {
                    static SELDOM: Seldom = Seldom::new(WARN_PAUSE);
                    self.tracer.lost(count);
                    if let Some(left_out) = SELDOM.pass() {
                        let dropped = self.tracer.dropped();
                        warn!(
                            target: "proxy::telemetry",
                            endpoint = self.transport.endpoint(),
                            reason,
                            dropped,
                            left_out,
                            "the collector did not accept spans, which are dropped"
                        );
                    }
                }
            }
        }
    }

    /// Waits for a batch: until it is full, or for the delay after its first span. `None` at the end.
    async fn batch(&mut self) -> Option<Vec<TraceSpan>> {
        let mut batch = self.queue.recv().await?;
        let due = Instant::now() + self.delay;
        while batch.len() < self.batch_size {
            match timeout_at(due, self.queue.recv()).await {
                Ok(Some(spans)) => batch.extend(spans),
                // Closed, or due: what is there is sent.
                Ok(None) | Err(_) => break,
            }
        }
        Some(batch)
    }

    fn encoded(&self, spans: Vec<TraceSpan>) -> Vec<u8> {
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(Scope {
                        name: "proxy-runtime".to_owned(),
                        version: env!("CARGO_PKG_VERSION").to_owned(),
                    }),
                    spans: spans.into_iter().map(Into::into).collect(),
                }],
            }],
        };
        request.encode_to_vec()
    }

    /// Sends a batch, and retries if the collector requests it. Returns the number of spans that the collector
    /// rejected.
    async fn deliver(&self, body: Vec<u8>) -> Result<usize, String> {
        let body = self.transport.body(&body);
        let due = Instant::now() + self.limit;
        let (mut pause, longest) = PAUSES;
        loop {
            let Refused { reason, again } = match self.transport.send(body.clone()).await {
                Ok(rejected) => return Ok(rejected),
                Err(refused) => refused,
            };
            let Some(asked) = again else {
                return Err(reason);
            };
            let wait = asked.unwrap_or(pause);
            if Instant::now() + wait >= due || self.queue.is_closed() {
                return Err(reason);
            }
            sleep(wait).await;
            pause = longest.min(pause * 2);
        }
    }
}
