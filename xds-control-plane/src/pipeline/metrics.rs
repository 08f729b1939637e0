//! The state of the sources, for Prometheus.

use std::collections::BTreeMap;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::PipelineStatus;

impl super::Pipeline {
    /// Registers the state of the sources and of services that are not served as requested, with names that
    /// begin with `xds_`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("xds");
        registry.register_collector(Box::new(StatusCollector(self.status())));
    }
}

/// A collector that reads the numbers on each scrape.
#[derive(Debug)]
struct StatusCollector(watch::Receiver<Arc<PipelineStatus>>);

impl Collector for StatusCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let status = Arc::clone(&self.0.borrow());
        let of_source = |of: fn(&crate::sources::SourceStatus) -> Option<f64>| {
            let sources = status.sources.iter();
            let values =
                sources.filter_map(move |source| Some((source.name.to_string(), of(source)?)));
            values.collect::<Vec<_>>()
        };
        family(
            &mut encoder,
            "source_ready",
            "Whether the source was read once",
            "source",
            of_source(|source| Some(f64::from(u8::from(source.is_ready)))),
        )?;
        family(
            &mut encoder,
            "source_failing",
            "Whether the source cannot be read at the moment",
            "source",
            of_source(|source| Some(f64::from(u8::from(source.failure.is_some())))),
        )?;
        family(
            &mut encoder,
            "source_problems",
            "Problems with parts of the source's data",
            "source",
            of_source(|source| Some(source.problems.len() as f64)),
        )?;
        family(
            &mut encoder,
            "source_age_seconds",
            "Since the source was last read",
            "source",
            of_source(|source| Some(source.last_ok?.age().as_secs_f64())),
        )?;
        let mut warnings: BTreeMap<&str, usize> = BTreeMap::new();
        for warning in &status.warnings {
            *warnings.entry(warning.code).or_default() += 1;
        }
        let warnings = warnings
            .into_iter()
            .map(|(code, count)| (code.to_owned(), count as f64));
        family(
            &mut encoder,
            "warnings",
            "Parts that are served in another form than requested",
            "code",
            warnings.collect(),
        )?;
        let quarantined = ConstGauge::new(status.not_as_wanted().len() as f64);
        let name = "quarantined_services";
        let help = "Services that are not served as requested";
        quarantined.encode(encoder.encode_descriptor(
            name,
            help,
            None,
            quarantined.metric_type(),
        )?)?;
        let is_kept = ConstGauge::new(f64::from(u8::from(status.is_kept)));
        let help = "1 if the served resources are those stored by the previous process";
        is_kept.encode(encoder.encode_descriptor(
            "serves_kept",
            help,
            None,
            is_kept.metric_type(),
        )?)
    }
}

fn family(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    values: Vec<(String, f64)>,
) -> Result<(), std::fmt::Error> {
    let kind = ConstGauge::new(0.0).metric_type();
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (value, number) in values {
        let labels = [(label, value.as_str())];
        ConstGauge::new(number).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
