//! Serf: section `SerfDiscovery`.

use std::collections::BTreeMap;
use std::path::Path;

use discovery_core::Runner;
use discovery_serf::SerfDiscoverer;
use discovery_serf::options::Section;
use program_kit::{Failure, with_causes};
use proxy_model::config::{ClusterConfig, ProxyConfig};
use proxy_model::json::ObjectReader;
use proxy_model::{CompileOptions, Problem, Snapshot, pointer_to};

use super::{Answer, NotServed};
use crate::check::compile_options;

/// The name of the section.
pub(crate) const SECTION: &str = "SerfDiscovery";

/// A cluster to discover.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SerfSource(Section);

impl SerfSource {
    pub(super) fn read(section: &mut ObjectReader<'_, '_>) -> Self {
        let read = Section::read(section);
        judge_policy(section, &read.options.generate.load_balancing_policy);
        Self(read)
    }

    pub(super) fn runner(&self, options: &CompileOptions) -> Result<Runner, Failure> {
        Ok(self.discoverer()?.runner().compile_options(options.clone()))
    }

    pub(super) async fn ask(&self, options: &CompileOptions) -> Result<Answer, Failure> {
        let discoverer = self.discoverer()?;
        let runner = discoverer.runner().compile_options(options.clone());
        Ok(Answer {
            source: "serf".to_owned(),
            once: runner.run_once().await,
            not_served: not_served(&discoverer),
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

    fn discoverer(&self) -> Result<SerfDiscoverer, Failure> {
        self.0
            .connect()
            .map_err(|error| Failure::new(format!("{SECTION}: {}", with_causes(&error))))
    }
}

/// Reports an unknown load balancing policy: every service would be rejected for it.
fn judge_policy(section: &mut ObjectReader<'_, '_>, policy: &str) {
    let cluster = ClusterConfig {
        load_balancing_policy: Some(policy.to_owned()),
        ..ClusterConfig::default()
    };
    let mut config = ProxyConfig::default();
    config.clusters.insert("any".into(), cluster);
    let Err(problems) = Snapshot::compile(config, &compile_options()) else {
        return;
    };
    let pointer = section.pointer_to("LoadBalancingPolicy");
    for mut problem in problems {
        problem.pointer.clone_from(&pointer);
        section.problems().push(problem);
    }
}

/// Returns the members that are no destinations.
fn not_served(discoverer: &SerfDiscoverer) -> Vec<NotServed> {
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for left_out in discoverer.left_out() {
        let of_member = reasons.entry(left_out.member.to_string()).or_default();
        of_member.push(left_out.reason);
    }
    let all = reasons.into_iter();
    all.map(|(name, reasons)| NotServed { name, reasons })
        .collect()
}
