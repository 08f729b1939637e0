//! Metrics for Prometheus.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, MetricEncoder,
    NoLabelSet,
};
use prometheus_client::metrics::MetricType;

use prometheus_client::registry::{Registry, Unit};
use proxy_model::compiled::{Cluster, RouteTarget};

use crate::cluster::ClusterState;
use crate::health::Health;
use crate::live::DestinationState;
use crate::observe::{ConnectPhase, HistogramCounts, Labels, SeriesTable};
use crate::proxy::{Proxy, Shared};
use crate::state::Generation;

/// The label value for everything beyond the limit of series.
const OTHER: &str = "_OTHER";

type Label<'a> = (&'static str, &'a str);

/// The metrics of one proxy, read at each scrape.
///
/// | metric | type | labels |
/// |---|---|---|
/// | `http_server_request_duration_seconds` | histogram | `http_route`, and those of HTTP below |
/// | `proxy_route_fixed_response` | gauge | `http_route`, `http_response_status_code` |
/// | `http_client_request_duration_seconds` | histogram | `cluster`, and those of HTTP below |
/// | `proxy_added_duration_seconds` | histogram | `cluster` |
/// | `proxy_first_byte_duration_seconds` | histogram | `cluster` |
/// | `proxy_connect_duration_seconds` | histogram | `cluster`, `phase` |
/// | `http_server_active_requests` | gauge | |
/// | `proxy_errors_total` | counter | `cluster`, `error_type` |
/// | `proxy_failures_total` | counter | `cluster`, `cause`, `side` |
/// | `proxy_config_generation` | gauge | |
/// | `proxy_config_reload_total` | counter | `result` |
/// | `proxy_policy_decisions_total` | counter | `kind`, `policy`, `outcome` |
/// | `proxy_name_failures_total` | counter | |
/// | `proxy_name_stale_total` | counter | |
/// | `proxy_names_unresolved` | gauge | |
/// | `proxy_cluster_available_destinations` | gauge | `cluster` |
/// | `proxy_destination_health` | gauge | `cluster`, `destination` |
/// | `proxy_destination_inflight` | gauge | `cluster`, `destination` |
/// | `proxy_destination_requests_total` | counter | `cluster`, `destination` |
/// | `proxy_destination_errors_total` | counter | `cluster`, `destination` |
/// | `proxy_destination_duration_seconds` | histogram | `cluster`, `destination` |
/// | `proxy_destination_sent_bytes_total` | counter | `cluster`, `destination` |
/// | `proxy_destination_received_bytes_total` | counter | `cluster`, `destination` |
/// | `proxy_pool_connections` | gauge | `cluster`, `destination` |
/// | `proxy_pool_connects_total` | counter | `cluster`, `destination`, `result` |
///
/// The labels of HTTP are `http_request_method`, `network_protocol_version` and
/// `http_response_status_code`. `http_route` is the id of the route, empty if none matched;
/// `cluster` is empty if none was chosen.
///
/// Names follow the conventions of OpenTelemetry for HTTP where they exist. Unknown methods are
/// `_OTHER`. Per route and cluster there are at most 64 combinations of method, version and status;
/// further ones are counted as `_OTHER`. Series of removed routes, clusters and destinations are
/// removed as well. A destination that was not used yet has its health alone.
#[derive(Clone, Debug)]
pub struct ProxyCollector {
    shared: Arc<Shared>,
    /// Number of configurations that were rejected before they reached the proxy.
    rejected_before: u64,
}

impl Proxy {
    /// Returns a collector of the metrics, for the program's own registry.
    pub fn collector(&self) -> ProxyCollector {
        ProxyCollector::new(Arc::clone(self.shared()))
    }
}

impl ProxyCollector {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            rejected_before: 0,
        }
    }

    /// Adds configurations that were rejected earlier, such as by the merge, to those that the
    /// proxy rejected.
    #[cfg(feature = "admin")]
    pub(crate) fn rejected_before(mut self, count: u64) -> Self {
        self.rejected_before = count;
        self
    }

    /// Returns the metrics as OpenMetrics text, version 1.0.0. The content type is
    /// `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    pub fn to_text(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)
            .expect("writing to a String cannot fail");
        text
    }
}

impl Collector for ProxyCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // One generation for the whole page, so that its parts agree.
        let generation = self.shared.load_full();
        let mut page = Page {
            encoder,
            shared: &self.shared,
            rejected_before: self.rejected_before,
            generation: &generation,
        };
        page.proxy()?;
        page.durations()?;
        page.waits()?;
        page.connect_times()?;
        page.fixed_responses()?;
        page.errors()?;
        page.policies()?;
        page.clusters()?;
        page.destinations()
    }
}

/// The state of one scrape.
struct Page<'a, 'e> {
    encoder: DescriptorEncoder<'e>,
    shared: &'a Shared,
    rejected_before: u64,
    generation: &'a Generation,
}

impl Page<'_, '_> {
    fn proxy(&mut self) -> fmt::Result {
        let metrics = self.shared.metrics();
        let active = "Requests whose response has not ended.";
        let mut family = self.family("http_server_active_requests", active, MetricType::Gauge)?;
        family.encode_gauge(&metrics.active_requests.get())?;

        let number = "Number of the configuration that serves, from 1.";
        let generation = self.generation.number();
        let mut family = self.family("proxy_config_generation", number, MetricType::Gauge)?;
        family.encode_gauge(&generation)?;

        let rejected = metrics.rejected_reloads.get() + self.rejected_before;
        let reloads = "Configurations that came after the first.";
        // The encoder adds `_total` to the name of a counter.
        let mut family = self.family("proxy_config_reload", reloads, MetricType::Counter)?;
        for (result, number) in [("success", metrics.reloads.get()), ("failure", rejected)] {
            count(&mut family, &[("result", result)], &number)?;
        }
        self.names()
    }

    fn names(&mut self) -> fmt::Result {
        let upstreams = self.shared.upstreams();
        let counts = upstreams.name_counts();
        let help = "Look-ups of destinations' names that failed.";
        let mut family = self.family("proxy_name_failures", help, MetricType::Counter)?;
        family.encode_counter::<NoLabelSet, _, f64>(&counts.failures, None)?;

        let help = "Times that addresses of an earlier look-up were used.";
        let mut family = self.family("proxy_name_stale", help, MetricType::Counter)?;
        family.encode_counter::<NoLabelSet, _, f64>(&counts.stale, None)?;

        let help = "Destinations' names whose last look-up failed.";
        let unresolved = upstreams.unresolved().len() as u64;
        let mut family = self.family("proxy_names_unresolved", help, MetricType::Gauge)?;
        family.encode_gauge(&unresolved)
    }

    fn durations(&mut self) -> fmt::Result {
        let (shared, generation) = (self.shared, self.generation);
        let mut family = self.encoder.encode_descriptor(
            "http_server_request_duration",
            "From the head of the request to the end of the response.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        // Requests without a route have an empty label.
        durations(&mut family, ("http_route", ""), &shared.metrics().unrouted)?;
        let routes = generation
            .snapshot()
            .routes()
            .iter()
            .zip(generation.routes());
        for (route, state) in routes {
            let label = ("http_route", route.id().as_str());
            durations(&mut family, label, state.metrics().durations())?;
        }

        let mut family = self.encoder.encode_descriptor(
            "http_client_request_duration",
            "From the pick of a destination to the head of its response.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (cluster, state) in generation.clusters() {
            let label = ("cluster", cluster.id().as_str());
            durations(&mut family, label, &state.live().metrics().requests)?;
        }
        Ok(())
    }

    fn waits(&mut self) -> fmt::Result {
        let generation = self.generation;
        let of_all = |state: &ClusterState| {
            let metrics = state.live().metrics();
            metrics.waits.of_all(&metrics.requests)
        };
        let mut family = self.encoder.encode_descriptor(
            "proxy_added_duration",
            "From the head of the request until a connection to its destination was ready.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (cluster, state) in generation.clusters() {
            if let Some((added, _)) = of_all(state) {
                histogram(&mut family, &[("cluster", cluster.id().as_str())], &added)?;
            }
        }
        let mut family = self.encoder.encode_descriptor(
            "proxy_first_byte_duration",
            "From the head of the request to the head of the destination's response.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (cluster, state) in generation.clusters() {
            if let Some((_, first_byte)) = of_all(state) {
                histogram(
                    &mut family,
                    &[("cluster", cluster.id().as_str())],
                    &first_byte,
                )?;
            }
        }
        Ok(())
    }

    fn connect_times(&mut self) -> fmt::Result {
        let generation = self.generation;
        let mut family = self.encoder.encode_descriptor(
            "proxy_connect_duration",
            "The phases of opening connections to destinations: name, tcp and tls.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (cluster, state) in generation.clusters() {
            let times = &state.live().metrics().connect_times;
            for phase in ConnectPhase::ALL {
                let labels = [
                    ("cluster", cluster.id().as_str()),
                    ("phase", phase.as_str()),
                ];
                if let Some(counts) = times.counts(phase) {
                    histogram(&mut family, &labels, &counts)?;
                }
            }
        }
        Ok(())
    }

    fn fixed_responses(&mut self) -> fmt::Result {
        let generation = self.generation;
        let help = "1 for a route that answers its requests with a fixed response, by its status.";
        // Tells a configured error response from a failure.
        let mut family = self.family("proxy_route_fixed_response", help, MetricType::Gauge)?;
        for route in generation.snapshot().routes() {
            let RouteTarget::Respond(fixed) = route.target() else {
                continue;
            };
            let status = fixed.status();
            let labels = [
                ("http_route", route.id().as_str()),
                ("http_response_status_code", status.as_str()),
            ];
            gauge(&mut family, &labels, &1)?;
        }
        Ok(())
    }

    fn errors(&mut self) -> fmt::Result {
        let (shared, generation) = (self.shared, self.generation);
        let help = "Requests that could not be forwarded, or not to their end.";
        let mut family = self.family("proxy_errors", help, MetricType::Counter)?;
        // Errors without a cluster have an empty label.
        let unrouted = ("", &shared.metrics().errors);
        let clusters = generation
            .clusters()
            .map(|(cluster, state)| (cluster.id().as_str(), &state.live().metrics().errors));
        for (cluster, errors) in std::iter::once(unrouted).chain(clusters) {
            for (kind, errors) in errors.iter() {
                let labels = [("cluster", cluster), ("error_type", kind.as_str())];
                count(&mut family, &labels, &errors)?;
            }
        }
        self.causes()
    }

    fn causes(&mut self) -> fmt::Result {
        let (shared, generation) = (self.shared, self.generation);
        let help =
            "Failed requests and rejections by their cause, and the side that is responsible.";
        let mut family = self.family("proxy_failures", help, MetricType::Counter)?;
        let unrouted = ("", &shared.metrics().errors);
        let clusters = generation
            .clusters()
            .map(|(cluster, state)| (cluster.id().as_str(), &state.live().metrics().errors));
        for (cluster, errors) in std::iter::once(unrouted).chain(clusters) {
            for (cause, failures) in errors.causes() {
                let labels = [
                    ("cluster", cluster),
                    ("cause", cause.as_str()),
                    ("side", cause.side().as_str()),
                ];
                count(&mut family, &labels, &failures)?;
            }
        }
        Ok(())
    }

    fn policies(&mut self) -> fmt::Result {
        let Some(source) = self.shared.policies() else {
            return Ok(());
        };
        let help = "Decisions of policies about requests.";
        let mut family = self.family("proxy_policy_decisions", help, MetricType::Counter)?;
        for decided in source.counts() {
            let labels = [
                ("kind", decided.kind.section()),
                ("policy", &*decided.name),
                ("outcome", decided.outcome),
            ];
            count(&mut family, &labels, &decided.count)?;
        }
        Ok(())
    }

    fn clusters(&mut self) -> fmt::Result {
        let generation = self.generation;
        let help = "Destinations that may be picked.";
        let name = "proxy_cluster_available_destinations";
        let mut family = self.family(name, help, MetricType::Gauge)?;
        for (cluster, state) in generation.clusters() {
            let available = state.available(cluster).members().len();
            gauge(
                &mut family,
                &[("cluster", cluster.id().as_str())],
                &available,
            )?;
        }
        Ok(())
    }

    fn destinations(&mut self) -> fmt::Result {
        self.health()?;
        self.destination_gauges(
            "proxy_destination_inflight",
            "Requests in flight at the destination.",
            |destination| i64::from(destination.in_flight()),
        )?;
        self.destination_gauges(
            "proxy_pool_connections",
            "Open connections to the destination, used and idle.",
            |destination| destination.metrics().open_connections.get(),
        )?;
        self.destination_counters(
            "proxy_destination_requests",
            "Requests that were sent to the destination.",
            None,
            |destination| destination.metrics().requests(),
        )?;
        self.destination_counters(
            "proxy_destination_errors",
            "Requests to the destination that could not be forwarded, or not to their end.",
            None,
            |destination| destination.metrics().errors.total(),
        )?;
        // The encoder adds `_bytes` to the name.
        self.destination_counters(
            "proxy_destination_sent",
            "Bytes of request bodies that were sent to the destination.",
            Some(&Unit::Bytes),
            |destination| destination.metrics().bytes_sent(),
        )?;
        self.destination_counters(
            "proxy_destination_received",
            "Bytes of response bodies that were received from the destination.",
            Some(&Unit::Bytes),
            |destination| destination.metrics().bytes_received(),
        )?;
        self.latencies()?;
        self.connects()
    }

    fn latencies(&mut self) -> fmt::Result {
        let generation = self.generation;
        let mut family = self.encoder.encode_descriptor(
            "proxy_destination_duration",
            "From the pick of the destination to the head of its response.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        each_used_destination(generation, |labels, destination| {
            let Some(counts) = destination.metrics().latency() else {
                return Ok(());
            };
            histogram(&mut family, &labels, &counts)
        })
    }

    fn connects(&mut self) -> fmt::Result {
        let generation = self.generation;
        let help = "Connections to the destination that were opened, or could not be.";
        let mut family = self.family("proxy_pool_connects", help, MetricType::Counter)?;
        each_used_destination(generation, |labels, destination| {
            let metrics = destination.metrics();
            for (result, counter) in [
                ("success", &metrics.connects),
                ("failure", &metrics.connect_failures),
            ] {
                let [cluster, destination] = labels;
                let labels = [cluster, destination, ("result", result)];
                count(&mut family, &labels, &counter.get())?;
            }
            Ok(())
        })
    }

    fn health(&mut self) -> fmt::Result {
        let generation = self.generation;
        let help = "1: its health checks found it healthy; -1: unhealthy; 0: nothing is known.";
        let mut family = self.family("proxy_destination_health", help, MetricType::Gauge)?;
        each_destination(generation, |labels, cluster, destination| {
            let health: i64 = match destination.overall_health(cluster) {
                Health::Healthy => 1,
                Health::Unhealthy => -1,
                Health::Unknown => 0,
            };
            gauge(&mut family, &labels, &health)
        })
    }

    fn destination_gauges(
        &mut self,
        name: &'static str,
        help: &'static str,
        value: impl Fn(&DestinationState) -> i64,
    ) -> fmt::Result {
        let generation = self.generation;
        let mut family = self.family(name, help, MetricType::Gauge)?;
        each_used_destination(generation, |labels, destination| {
            gauge(&mut family, &labels, &value(destination))
        })
    }

    fn destination_counters(
        &mut self,
        name: &'static str,
        help: &'static str,
        unit: Option<&Unit>,
        value: impl Fn(&DestinationState) -> u64,
    ) -> fmt::Result {
        let generation = self.generation;
        let mut family = self
            .encoder
            .encode_descriptor(name, help, unit, MetricType::Counter)?;
        each_used_destination(generation, |labels, destination| {
            count(&mut family, &labels, &value(destination))
        })
    }

    fn family(
        &mut self,
        name: &'static str,
        help: &'static str,
        r#type: MetricType,
    ) -> Result<MetricEncoder<'_>, fmt::Error> {
        self.encoder.encode_descriptor(name, help, None, r#type)
    }
}

/// Like [`each_destination`], for those that were used since they were added.
fn each_used_destination(
    generation: &Generation,
    mut each: impl FnMut([Label<'_>; 2], &DestinationState) -> fmt::Result,
) -> fmt::Result {
    each_destination(generation, |labels, _, destination| {
        let metrics = destination.metrics();
        let is_used = metrics.requests() > 0
            || metrics.connects.get() > 0
            || metrics.connect_failures.get() > 0;
        match is_used {
            true => each(labels, destination),
            false => Ok(()),
        }
    })
}

/// Calls `each` with the labels of every destination, its cluster, and its state.
fn each_destination(
    generation: &Generation,
    mut each: impl FnMut([Label<'_>; 2], &Cluster, &DestinationState) -> fmt::Result,
) -> fmt::Result {
    for (cluster, state) in generation.clusters() {
        for (destination, live) in cluster.destinations().iter().zip(state.destinations()) {
            let labels = [
                ("cluster", cluster.id().as_str()),
                ("destination", destination.id().as_str()),
            ];
            each(labels, cluster, live)?;
        }
    }
    Ok(())
}

fn durations(family: &mut MetricEncoder<'_>, owner: Label<'_>, table: &SeriesTable) -> fmt::Result {
    let mut result = Ok(());
    // The callback cannot stop the iteration, so the first error is kept.
    table.for_each(|labels, counts| {
        if result.is_ok() {
            result = duration(family, owner, labels, counts);
        }
    });
    result
}

fn duration(
    family: &mut MetricEncoder<'_>,
    owner: Label<'_>,
    labels: Option<Labels>,
    counts: &HistogramCounts,
) -> fmt::Result {
    let status = labels.map(|labels| labels.status().to_string());
    let labels = [
        owner,
        ("http_request_method", labels.map_or(OTHER, Labels::method)),
        (
            "network_protocol_version",
            labels.map_or(OTHER, Labels::protocol),
        ),
        (
            "http_response_status_code",
            status.as_deref().unwrap_or(OTHER),
        ),
    ];
    histogram(family, &labels, counts)
}

fn histogram(
    family: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    counts: &HistogramCounts,
) -> fmt::Result {
    let buckets = counts.exposed();
    let sum = counts.sum().as_secs_f64();
    family
        .encode_family(labels)?
        .encode_histogram::<NoLabelSet>(sum, counts.count(), &buckets, None)
}

fn count(
    family: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    value: &impl EncodeCounterValue,
) -> fmt::Result {
    let mut series = family.encode_family(labels)?;
    // The types are those of an exemplar, of which there is none.
    series.encode_counter::<NoLabelSet, _, f64>(value, None)
}

fn gauge(
    family: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    value: &impl EncodeGaugeValue,
) -> fmt::Result {
    family.encode_family(labels)?.encode_gauge(value)
}
