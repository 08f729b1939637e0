//! The export of metrics: at an interval, the text of an OpenMetrics exposition becomes one message.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use log_sink::Seldom;
use prost::Message;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tracing::warn;

use crate::exposition;
use crate::messages::{KeyValue, Resource, Scope, nanoseconds};
use crate::metric_messages::{ExportMetricsServiceRequest, ResourceMetrics, ScopeMetrics};
use crate::settings::MetricsSettings;
use crate::transport::{SetupError, Transport};

/// Shortest time between two warnings about a collector.
const WARN_PAUSE: Duration = Duration::from_secs(60);

/// Returns the text of an OpenMetrics exposition.
type Read = dyn Fn() -> String + Send + Sync;

/// A running export of metrics.
///
/// Dropping it ends the export; [`shutdown`](Self::shutdown) sends the last values first.
#[derive(Debug)]
pub struct MetricsExport {
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl MetricsExport {
    /// Starts a task that exports the metrics that `read` returns as OpenMetrics text, such as that of
    /// `ProxyCollector::to_text`. `read` is called on a thread that may block. Call it within a Tokio runtime.
    ///
    /// # Errors
    ///
    /// A certificate cannot be read, or the HTTP client cannot be set up.
    pub fn start(
        settings: &MetricsSettings,
        read: impl Fn() -> String + Send + Sync + 'static,
    ) -> Result<Self, SetupError> {
        let transport = Transport::new(&settings.collector)?;
        let attributes = settings.resource.iter();
        let (end, ended) = oneshot::channel();
        let exporter = MetricsExporter {
            transport,
            read: Arc::new(read),
            resource: Resource {
                attributes: attributes
                    .map(|(name, value)| KeyValue::text(name, value))
                    .collect(),
            },
            limit: settings.limit,
            begun: SystemTime::now(),
        };
        let task = tokio::spawn(exporter.run(settings.interval, ended));
        Ok(Self {
            end: Some(end),
            task,
        })
    }

    /// Sends the last values, for at most `limit`. Returns false if that took longer.
    pub async fn shutdown(mut self, limit: Duration) -> bool {
        drop(self.end.take());
        timeout(limit, &mut self.task).await.is_ok()
    }
}

impl Drop for MetricsExport {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct MetricsExporter {
    transport: Transport,
    read: Arc<Read>,
    resource: Resource,
    /// The limit of the delivery of one message.
    limit: Duration,
    begun: SystemTime,
}

impl MetricsExporter {
    /// Sends the values at each interval, and once at the end. A message that the collector does not take is dropped:
    /// the next one has all of it.
    async fn run(self, interval: Duration, mut ended: oneshot::Receiver<()>) {
        let mut ticks = interval_at(Instant::now() + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_last = false;
        while !is_last {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = &mut ended => is_last = true,
            }
            if let Err(reason) = self.export().await {
                static SELDOM: Seldom = Seldom::new(WARN_PAUSE);
                if let Some(left_out) = SELDOM.pass() {
                    let endpoint = self.transport.endpoint();
                    warn!(
                        target: "proxy::telemetry",
                        endpoint,
                        reason,
                        left_out,
                        "the collector did not take the metrics"
                    );
                }
            }
        }
    }

    async fn export(&self) -> Result<(), String> {
        let read = Arc::clone(&self.read);
        let text = tokio::task::spawn_blocking(move || read()).await;
        let text = text.map_err(|error| error.to_string())?;
        let now = SystemTime::now();
        let times = (nanoseconds(self.begun), nanoseconds(now));
        let request = ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource.clone()),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(Scope {
                        name: "proxy-runtime".to_owned(),
                        version: env!("CARGO_PKG_VERSION").to_owned(),
                    }),
                    metrics: exposition::read(&text, times),
                }],
            }],
        };
        let body = self.transport.body(&request.encode_to_vec());
        let sent = timeout(self.limit, self.transport.send(body)).await;
        match sent {
            Ok(Ok(0)) => Ok(()),
            Ok(Ok(rejected)) => Err(format!("it rejected {rejected} data points")),
            Ok(Err(refused)) => Err(refused.reason),
            Err(_) => Err(format!("no response within {:?}", self.limit)),
        }
    }
}

impl fmt::Debug for MetricsExporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsExporter").finish_non_exhaustive()
    }
}
