//! Metrics of an OpenMetrics exposition as messages of OTLP.
//!
//! The text is the only source of metrics, so that a collector and Prometheus get the same. A collector that exposes
//! what it gets adds the suffixes again that are left out here: `_total`, and that of the unit.

use std::collections::HashMap;

use crate::messages::KeyValue;
use crate::metric_messages::{
    CUMULATIVE, Data, Gauge, HistogramData, HistogramPoint, Metric, NumberPoint, Sum,
};

/// The suffixes of units, and the units as UCUM has them.
const UNITS: [(&str, &str); 2] = [("_seconds", "s"), ("_bytes", "By")];

/// Names that OpenTelemetry's conventions write with dots.
const CONVENTIONAL: [&str; 2] = ["http_", "network_"];

/// The times of a point: the start of the program, and now.
type Times = (u64, u64);

/// A metric whose samples are being read.
#[derive(Default)]
struct Family {
    name: String,
    help: String,
    kind: String,
    numbers: Vec<NumberPoint>,
    /// Histograms by their labels, in the order of the text.
    histograms: Vec<(String, HistogramPoint)>,
    positions: HashMap<String, usize>,
}

/// Reads the metrics of a text. Lines that are not understood are left out.
pub(crate) fn read(text: &str, times: Times) -> Vec<Metric> {
    let mut metrics = Vec::new();
    let mut family = Family::default();
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# ") {
            let mut words = described.splitn(3, ' ');
            let (Some(what), Some(name)) = (words.next(), words.next()) else {
                continue;
            };
            if name != family.name && matches!(what, "HELP" | "TYPE") {
                metrics.extend(std::mem::take(&mut family).finish());
                family.name = name.to_owned();
            }
            let rest = words.next().unwrap_or_default();
            match what {
                "HELP" => family.help = rest.to_owned(),
                "TYPE" => family.kind = rest.to_owned(),
                _ => {}
            }
        } else if let Some(sample) = Sample::read(line) {
            family.add(&sample, times);
        }
    }
    metrics.extend(family.finish());
    metrics
}

impl Family {
    fn add(&mut self, sample: &Sample<'_>, (start, now): Times) {
        let Some(suffix) = sample.name.strip_prefix(&*self.name) else {
            return;
        };
        match (&*self.kind, suffix) {
            ("gauge", "") | ("counter", "_total") => self.numbers.push(NumberPoint {
                start_time_unix_nano: start,
                time_unix_nano: now,
                as_double: Some(sample.value),
                attributes: sample.attributes(),
            }),
            ("histogram", "_sum") => self.histogram(sample, start, now).sum = Some(sample.value),
            ("histogram", "_count") => {
                self.histogram(sample, start, now).count = whole(sample.value);
            }
            ("histogram", "_bucket") => {
                let bound = sample
                    .label("le")
                    .and_then(|bound| bound.parse::<f64>().ok());
                let point = self.histogram(sample, start, now);
                // In the text each bucket includes those below.
                let below: u64 = point.bucket_counts.iter().sum();
                point
                    .bucket_counts
                    .push(whole(sample.value).saturating_sub(below));
                if let Some(bound) = bound.filter(|bound| bound.is_finite()) {
                    point.explicit_bounds.push(bound);
                }
            }
            _ => {}
        }
    }

    /// The histogram with the labels of a sample.
    fn histogram(&mut self, sample: &Sample<'_>, start: u64, now: u64) -> &mut HistogramPoint {
        let others = sample.labels.iter().filter(|(name, _)| *name != "le");
        let key: String = others
            .map(|(name, value)| format!("{name}={value};"))
            .collect();
        let position = *self.positions.entry(key.clone()).or_insert_with(|| {
            let point = HistogramPoint {
                start_time_unix_nano: start,
                time_unix_nano: now,
                attributes: sample.attributes(),
                ..HistogramPoint::default()
            };
            self.histograms.push((key, point));
            self.histograms.len() - 1
        });
        &mut self.histograms[position].1
    }

    fn finish(self) -> Option<Metric> {
        let data = match &*self.kind {
            "gauge" => Data::Gauge(Gauge {
                data_points: self.numbers,
            }),
            "counter" => Data::Sum(Sum {
                data_points: self.numbers,
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
            "histogram" => Data::Histogram(HistogramData {
                data_points: self
                    .histograms
                    .into_iter()
                    .map(|(_, point)| point)
                    .collect(),
                aggregation_temporality: CUMULATIVE,
            }),
            _ => return None,
        };
        let is_empty = match &data {
            Data::Gauge(gauge) => gauge.data_points.is_empty(),
            Data::Sum(sum) => sum.data_points.is_empty(),
            Data::Histogram(histogram) => histogram.data_points.is_empty(),
        };
        let mut units = UNITS.iter();
        let unit = units.find(|(suffix, _)| self.name.ends_with(suffix));
        let name = match unit {
            Some((suffix, _)) => self.name.trim_end_matches(suffix),
            None => &self.name,
        };
        (!is_empty).then(|| Metric {
            name: conventional(name),
            description: self.help,
            unit: unit.map_or_else(String::new, |(_, unit)| (*unit).to_owned()),
            data: Some(data),
        })
    }
}

/// A line of a value.
struct Sample<'t> {
    name: &'t str,
    labels: Vec<(&'t str, String)>,
    value: f64,
}

impl<'t> Sample<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let (name, rest) = line.split_at(line.find(['{', ' '])?);
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest)?,
            None => (Vec::new(), rest),
        };
        let value = value.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Self {
            name,
            labels,
            value,
        })
    }

    fn label(&self, name: &str) -> Option<&str> {
        let mut labels = self.labels.iter();
        let found = labels.find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let labels = self.labels.iter().filter(|(name, _)| *name != "le");
        labels
            .map(|(name, value)| KeyValue::text(&conventional(name), value))
            .collect()
    }
}

/// Reads labels up to the closing brace. Returns the rest of the line as well.
fn labels(mut text: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = rest.char_indices();
        let end = loop {
            match characters.next()? {
                (end, '"') => break end,
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.push((name, value));
        let rest = &rest[end + 1..];
        text = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// A name with dots, if OpenTelemetry's conventions have it.
fn conventional(name: &str) -> String {
    let is_conventional = CONVENTIONAL.iter().any(|prefix| name.starts_with(prefix));
    if !is_conventional {
        return name.to_owned();
    }
    // These words have a line of their own.
    name.replace('_', ".")
        .replace("active.requests", "active_requests")
        .replace("status.code", "status_code")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are whole, and not negative"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP http_server_request_duration_seconds From here to there.\n\
# TYPE http_server_request_duration_seconds histogram\n\
# UNIT http_server_request_duration_seconds seconds\n\
http_server_request_duration_seconds_sum{http_route=\"r\\\"1\",http_response_status_code=\"200\"} 1.5\n\
http_server_request_duration_seconds_count{http_route=\"r\\\"1\",http_response_status_code=\"200\"} 3\n\
http_server_request_duration_seconds_bucket{le=\"0.5\",http_route=\"r\\\"1\",http_response_status_code=\"200\"} 2\n\
http_server_request_duration_seconds_bucket{le=\"+Inf\",http_route=\"r\\\"1\",http_response_status_code=\"200\"} 3\n\
# HELP proxy_errors Errors.\n\
# TYPE proxy_errors counter\n\
proxy_errors_total{cluster=\"a,b}\",error_type=\"x\\\\y\\nz\"} 7\n\
# TYPE http_server_active_requests gauge\n\
http_server_active_requests 0\n\
# TYPE proxy_unused counter\n\
garbage {\n\
# EOF\n";

    #[test]
    fn a_text_becomes_metrics_of_each_kind() {
        let metrics = read(TEXT, (1, 2));
        let names: Vec<_> = metrics.iter().map(|metric| &*metric.name).collect();
        assert_eq!(
            names,
            [
                "http.server.request.duration",
                "proxy_errors",
                "http.server.active_requests"
            ]
        );
        let Some(Data::Histogram(durations)) = &metrics[0].data else {
            panic!("{metrics:?}");
        };
        assert_eq!(
            (&*metrics[0].unit, durations.aggregation_temporality),
            ("s", CUMULATIVE)
        );
        assert_eq!(metrics[0].description, "From here to there.");
        let [point] = &durations.data_points[..] else {
            panic!("{durations:?}");
        };
        assert_eq!((point.count, point.sum), (3, Some(1.5)));
        assert_eq!(point.bucket_counts, [2, 1]);
        assert_eq!(point.explicit_bounds, [0.5]);
        assert_eq!(
            point.attributes,
            [
                KeyValue::text("http.route", "r\"1"),
                KeyValue::text("http.response.status_code", "200"),
            ]
        );
        let Some(Data::Sum(errors)) = &metrics[1].data else {
            panic!("{metrics:?}");
        };
        assert!(errors.is_monotonic);
        assert_eq!(errors.data_points[0].as_double, Some(7.0));
        assert_eq!(
            errors.data_points[0].attributes,
            [
                KeyValue::text("cluster", "a,b}"),
                KeyValue::text("error_type", "x\\y\nz"),
            ]
        );
        let Some(Data::Gauge(active)) = &metrics[2].data else {
            panic!("{metrics:?}");
        };
        let point = &active.data_points[0];
        assert_eq!(point.as_double, Some(0.0));
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1, 2));
    }

    #[test]
    fn a_text_that_breaks_off_anywhere_is_read_as_far_as_it_goes() {
        for end in (0..TEXT.len()).filter(|end| TEXT.is_char_boundary(*end)) {
            let _ = read(&TEXT[..end], (1, 2));
            let _ = read(&TEXT[end..], (1, 2));
        }
    }
}
