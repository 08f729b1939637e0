//! Consul: section `ConsulDiscovery`.

use std::path::Path;

use discovery_consul::ConsulDiscoverer;
use discovery_consul::options::Section;
use discovery_core::runner::Once;
use discovery_core::{Runner, ServiceOutcome};
use program_kit::{Failure, with_causes};
use proxy_model::json::ObjectReader;
use proxy_model::{CompileOptions, Problem, pointer_to};

use super::{Answer, NotServed};

/// The name of the section.
pub(crate) const SECTION: &str = "ConsulDiscovery";

/// A cluster to discover.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConsulSource(Section);

impl ConsulSource {
    pub(super) fn read(section: &mut ObjectReader<'_, '_>) -> Self {
        Self(Section::read(section))
    }

    pub(super) fn runner(&self, options: &CompileOptions) -> Result<Runner, Failure> {
        Ok(self.discoverer()?.runner().compile_options(options.clone()))
    }

    pub(super) async fn ask(&self, options: &CompileOptions) -> Result<Answer, Failure> {
        let runner = self.runner(options)?;
        let once = runner.run_once().await;
        Ok(Answer {
            source: self.0.options.name.to_string(),
            not_served: self.not_served(&once),
            once,
            health_reports: Vec::new(),
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

    fn discoverer(&self) -> Result<ConsulDiscoverer, Failure> {
        self.0
            .connect()
            .map_err(|error| Failure::new(format!("{SECTION}: {}", with_causes(&error))))
    }

    /// Returns the services that are not enabled: most of a catalog, and the first thing to check for a
    /// missing service.
    fn not_served(&self, once: &Once) -> Vec<NotServed> {
        let services = once.report.iter().flat_map(|report| &report.services);
        services
            .filter(|service| service.outcome == ServiceOutcome::NotEnabled)
            .map(|service| NotServed {
                name: service.name.to_string(),
                reasons: vec![format!(
                    "no instance has the tag `{}enable=true`",
                    self.0.options.services.label_prefix
                )],
            })
            .collect()
    }
}
