#![doc = include_str!("../README.md")]

mod exporter;
mod exposition;
mod messages;
mod metric_messages;
mod metrics;
mod sampler;
mod settings;
#[cfg(test)]
mod tests;
mod tracer;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use proxy_runtime::trace::Tracer;

pub use self::metrics::MetricsExport;
pub use self::settings::{InvalidSettings, MetricsSettings, Settings};
pub use self::transport::SetupError;

use self::exporter::Exporter;
use self::tracer::OtlpTracer;
use self::transport::Transport;

/// A running export of spans.
///
/// Dropping it ends the export without sending what waits; [`shutdown`](Self::shutdown) sends it first.
#[derive(Debug)]
pub struct Telemetry {
    tracer: Arc<OtlpTracer>,
    exporter: tokio::task::JoinHandle<()>,
}

impl Telemetry {
    /// Starts a task that exports spans. Call it within a Tokio runtime.
    ///
    /// # Errors
    ///
    /// A certificate cannot be read, or the HTTP client cannot be set up.
    pub fn start(settings: &Settings) -> Result<Self, SetupError> {
        let transport = Transport::new(&settings.collector)?;
        let (tracer, queue) = OtlpTracer::new(settings);
        let tracer = Arc::new(tracer);
        let exporter = Exporter::new(settings, transport, queue, Arc::clone(&tracer));
        Ok(Self {
            tracer,
            exporter: tokio::spawn(exporter.run()),
        })
    }

    /// The tracer for [`ProxyBuilder::tracer`](proxy_runtime::ProxyBuilder::tracer).
    pub fn tracer(&self) -> Arc<dyn Tracer> {
        Arc::clone(&self.tracer) as _
    }

    /// A counter of spans that were not delivered: the queue was full, or the collector did not take them.
    pub fn dropped_spans(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        let tracer = Arc::clone(&self.tracer);
        move || tracer.dropped()
    }

    /// Sends the spans that wait, for at most `limit`. Returns false if some are left.
    pub async fn shutdown(mut self, limit: Duration) -> bool {
        self.tracer.close();
        let ended = tokio::time::timeout(limit, &mut self.exporter).await;
        ended.is_ok()
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.exporter.abort();
    }
}
