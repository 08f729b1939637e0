//! Service Fabric: section `ServiceFabricDiscovery`.

use std::path::Path;

use discovery_core::Runner;
use discovery_servicefabric::health::HealthReport;
use discovery_servicefabric::options::Section;
use discovery_servicefabric::{ServiceFabricDiscoverer, Verdict};
use program_kit::{Failure, with_causes};
use proxy_model::json::ObjectReader;
use proxy_model::{CompileOptions, Problem, pointer_to};
use serde_json::{Value, json};

use super::{Answer, NotServed};

/// The name of the section.
pub(crate) const SECTION: &str = "ServiceFabricDiscovery";

/// A cluster to discover.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServiceFabricSource(Section);

impl ServiceFabricSource {
    pub(super) fn read(section: &mut ObjectReader<'_, '_>) -> Self {
        Self(Section::read(section))
    }

    pub(super) fn runner(&self, options: &CompileOptions) -> Result<Runner, Failure> {
        Ok(self.discoverer()?.runner().compile_options(options.clone()))
    }

    pub(super) async fn ask(&self, options: &CompileOptions) -> Result<Answer, Failure> {
        let discoverer = self.discoverer()?;
        let runner = discoverer.runner().compile_options(options.clone());
        let once = runner.run_once().await;
        let reports = once
            .report
            .as_deref()
            .map_or_else(Vec::new, |report| discoverer.health_reports(report));
        let decisions = discoverer.decisions().decisions.into_iter();
        let not_served = decisions
            .filter(|decision| decision.verdict != Verdict::Served)
            .map(|decision| NotServed {
                name: decision.name.to_string(),
                reasons: decision.reasons,
            });
        Ok(Answer {
            source: "servicefabric".to_owned(),
            once,
            not_served: not_served.collect(),
            health_reports: reports.iter().map(described).collect(),
        })
    }

    pub(super) fn persist(&self) -> Option<&Path> {
        self.0.options.persist.as_deref()
    }

    pub(super) fn unusable(&self) -> Option<Problem> {
        let error = self.0.connect().err()?;
        let pointer = pointer_to("", SECTION);
        Some(Problem::error(
            pointer,
            "unusable_connection",
            with_causes(&error),
        ))
    }

    fn discoverer(&self) -> Result<ServiceFabricDiscoverer, Failure> {
        match self.0.connect() {
            Ok(discovery) => Ok(discovery
                .unsupported(proxy_runtime::unsupported)
                .discoverer()),
            Err(error) => Err(Failure::new(format!("{SECTION}: {}", with_causes(&error)))),
        }
    }
}

/// Returns a report in the form of the cluster's REST API, with its entity.
fn described(report: &HealthReport) -> Value {
    json!({
        "entity": report.entity.to_string(),
        "health": &report.information,
        "immediate": report.immediate,
    })
}
