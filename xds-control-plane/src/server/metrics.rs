use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use super::protocol::{Heard, StreamProtocol};
use super::wire::Response;
use crate::snapshot::{ResourceType, Snapshot, Subscription};

/// The counters of the server. Handles are plain atomics.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    streams: Family<StreamLabels, Gauge>,
    opened: Family<StreamLabels, Counter>,
    withheld: Gauge,
    turned_away: Counter,
    connections_turned_away: Counter,
    responses: Family<TypeLabels, Counter>,
    resources_sent: Family<TypeLabels, Counter>,
    bytes: Family<TypeLabels, Counter>,
    acknowledged: Family<TypeLabel, Counter>,
    rejected: Family<TypeLabel, Counter>,
    fetches: Family<TypeLabels, Counter>,
    snapshots: Counter,
    resources: Family<TypeLabel, Gauge>,
    published: Mutex<Option<Instant>>,
    last_change: Gauge<f64, AtomicU64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabel {
    r#type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabels {
    r#type: &'static str,
    via: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StreamLabels {
    via: &'static str,
    protocol: &'static str,
}

impl Metrics {
    pub(crate) fn register(self: &std::sync::Arc<Self>, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("xds");
        registry.register("streams", "Streams that are open", self.streams.clone());
        registry.register("streams_opened", "Streams opened", self.opened.clone());
        registry.register(
            "withheld_streams",
            "Streams whose client has rejected a cluster, and gets no routes to it",
            self.withheld.clone(),
        );
        registry.register(
            "streams_turned_away",
            "Streams rejected since their peer has too many",
            self.turned_away.clone(),
        );
        registry.register(
            "connections_turned_away",
            "Connections closed since their peer has too many",
            self.connections_turned_away.clone(),
        );
        registry.register(
            "responses",
            "Responses sent on streams",
            self.responses.clone(),
        );
        registry.register(
            "resources_sent",
            "Resources in responses sent",
            self.resources_sent.clone(),
        );
        registry.register(
            "sent_bytes",
            "Bytes of responses, before they are framed",
            self.bytes.clone(),
        );
        registry.register(
            "acknowledgements",
            "Responses that clients accepted",
            self.acknowledged.clone(),
        );
        // From the start, so that queries see the first rejection as an increase.
        for resource_type in ResourceType::MAKE_BEFORE_BREAK {
            drop(self.rejected.get_or_create(&type_label(resource_type)));
        }
        registry.register(
            "refusals",
            "Responses that clients rejected (NACK)",
            self.rejected.clone(),
        );
        registry.register(
            "fetches",
            "Unary calls and polls answered",
            self.fetches.clone(),
        );
        registry.register("snapshots", "Snapshots published", self.snapshots.clone());
        registry.register(
            "resources",
            "Resources in the newest snapshot",
            self.resources.clone(),
        );
        registry.register(
            "snapshot_timestamp_seconds",
            "When the newest snapshot was published, since 1970",
            self.last_change.clone(),
        );
        registry.register_collector(Box::new(Age(std::sync::Arc::clone(self))));
    }

    pub(crate) fn opened(&self, protocol: StreamProtocol, subscription: Subscription) {
        let labels = stream_labels(protocol, subscription);
        self.opened.get_or_create(&labels).inc();
        self.streams.get_or_create(&labels).inc();
    }

    pub(crate) fn closed(&self, protocol: StreamProtocol, subscription: Subscription) {
        let labels = stream_labels(protocol, subscription);
        self.streams.get_or_create(&labels).dec();
    }

    /// Counts a client that lacks a cluster that it rejected, or no longer does.
    pub(crate) fn withholds(&self, withholds: bool) {
        if withholds {
            self.withheld.inc();
        } else {
            self.withheld.dec();
        }
    }

    pub(crate) fn connection_turned_away(&self) {
        self.connections_turned_away.inc();
    }

    pub(crate) fn turned_away(&self) {
        self.turned_away.inc();
    }

    /// Counts a response of this many bytes on a stream.
    pub(crate) fn sent(&self, response: &Response, bytes: usize) {
        let labels = type_labels(response.reply.resource_type, response.subscription);
        self.responses.get_or_create(&labels).inc();
        self.resources_sent
            .get_or_create(&labels)
            .inc_by(response.reply.resources.len() as u64);
        self.bytes.get_or_create(&labels).inc_by(bytes as u64);
    }

    pub(crate) fn heard(&self, resource_type: ResourceType, heard: &Heard) {
        let family = match heard {
            Heard::Acknowledged(_) => &self.acknowledged,
            Heard::Rejected(..) => &self.rejected,
            Heard::Asked | Heard::Stale => return,
        };
        family.get_or_create(&type_label(resource_type)).inc();
    }

    /// Counts a unary call or a poll.
    pub(crate) fn fetched(&self, resource_type: ResourceType, subscription: Subscription) {
        let labels = type_labels(resource_type, subscription);
        self.fetches.get_or_create(&labels).inc();
    }

    pub(crate) fn published(&self, snapshot: &Snapshot) {
        self.snapshots.inc();
        for resource_type in ResourceType::MAKE_BEFORE_BREAK {
            let count = snapshot.resources(resource_type).len();
            self.resources
                .get_or_create(&type_label(resource_type))
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let since_epoch = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap_or_default();
        self.last_change.set(since_epoch.as_secs_f64());
        *self.lock() = Some(Instant::now());
    }

    /// The age of the newest snapshot.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.lock().map(|published| published.elapsed())
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Option<Instant>> {
        self.published.lock()
    }
}

/// A metric that is computed when it is read.
#[derive(Debug)]
struct Age(std::sync::Arc<Metrics>);

impl Collector for Age {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(age) = self.0.age() else {
            return Ok(());
        };
        let gauge = ConstGauge::new(age.as_secs_f64());
        let metric = encoder.encode_descriptor(
            "snapshot_age_seconds",
            "How old the newest snapshot is",
            None,
            gauge.metric_type(),
        )?;
        gauge.encode(metric)
    }
}

fn type_label(resource_type: ResourceType) -> TypeLabel {
    TypeLabel {
        r#type: short(resource_type),
    }
}

fn type_labels(resource_type: ResourceType, subscription: Subscription) -> TypeLabels {
    TypeLabels {
        r#type: short(resource_type),
        via: via(subscription),
    }
}

fn stream_labels(protocol: StreamProtocol, subscription: Subscription) -> StreamLabels {
    StreamLabels {
        via: via(subscription),
        protocol: match protocol {
            StreamProtocol::Sotw => "sotw",
            StreamProtocol::Delta => "delta",
        },
    }
}

fn short(resource_type: ResourceType) -> &'static str {
    match resource_type {
        ResourceType::Cluster => "cds",
        ResourceType::Endpoint => "eds",
        ResourceType::Listener => "lds",
        ResourceType::Route => "rds",
    }
}

fn via(subscription: Subscription) -> &'static str {
    match subscription {
        Subscription::Aggregated => "aggregated",
        Subscription::Separate => "separate",
        Subscription::Rest => "rest",
    }
}
