//! xDS: section `XdsDiscovery`.

use std::path::Path;

use discovery_core::Runner;
use discovery_xds::{Section, XdsDiscoverer};
use program_kit::{Failure, with_causes};
use proxy_model::json::ObjectReader;
use proxy_model::{CompileOptions, Problem, pointer_to};

use super::Answer;

/// The name of the section.
pub(crate) const SECTION: &str = "XdsDiscovery";

/// The control planes to follow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct XdsSource(Section);

impl XdsSource {
    pub(super) fn read(section: &mut ObjectReader<'_, '_>) -> Self {
        Self(Section::read(section))
    }

    pub(super) fn runner(&self, options: &CompileOptions) -> Result<Runner, Failure> {
        Ok(self.discoverer()?.runner().compile_options(options.clone()))
    }

    pub(super) async fn ask(&self, options: &CompileOptions) -> Result<Answer, Failure> {
        let runner = self.runner(options)?;
        Ok(Answer {
            source: self.0.options.name.to_string(),
            once: runner.run_once().await,
            not_served: Vec::new(),
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

    fn discoverer(&self) -> Result<XdsDiscoverer, Failure> {
        self.0
            .connect()
            .map_err(|error| Failure::new(format!("{SECTION}: {}", with_causes(&error))))
    }
}
