//! The sources of services that sections of the configuration enable, beside the files themselves.

mod allowed;
mod consul;
mod serf;
mod service_fabric;
mod xds;

use std::path::PathBuf;

use discovery_core::merge::MergeSource;
use discovery_core::runner::Once;
use discovery_core::{Merge, Runner};
use program_kit::Failure;
use proxy_model::CompileOptions;
use proxy_model::json::ObjectReader;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::allowed::Allowed;
use self::consul::ConsulSource;
use self::serf::SerfSource;
use self::service_fabric::ServiceFabricSource;
use self::xds::XdsSource;

pub(crate) use self::consul::SECTION as CONSUL;
pub(crate) use self::serf::SECTION as SERF;
pub(crate) use self::service_fabric::SECTION as SERVICE_FABRIC;
pub(crate) use self::xds::SECTION as XDS;

/// The enabled sources.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sources {
    service_fabric: Option<ServiceFabricSource>,
    serf: Option<SerfSource>,
    consul: Option<ConsulSource>,
    xds: Option<XdsSource>,
    /// The policies that discovered services may name.
    pub(crate) allowed: Allowed,
}

/// The response of a source to a single poll.
pub(crate) struct Answer {
    pub(crate) source: String,
    pub(crate) once: Once,
    /// The health reports that the source would get about its services.
    pub(crate) health_reports: Vec<Value>,
    /// The parts that are not served, with the reasons.
    pub(crate) not_served: Vec<NotServed>,
}

/// A part of a source that is not served.
#[derive(Serialize)]
pub(crate) struct NotServed {
    pub(crate) name: String,
    pub(crate) reasons: Vec<String>,
}

impl Sources {
    /// Reads the sections of a document. All problems are added to its problems.
    pub(crate) fn read(document: &mut ObjectReader<'_, '_>) -> Self {
        Self {
            service_fabric: document.object(SERVICE_FABRIC, ServiceFabricSource::read),
            serf: document.object(SERF, SerfSource::read),
            consul: document.object(CONSUL, ConsulSource::read),
            xds: document.object(XDS, XdsSource::read),
            allowed: Allowed::read(document),
        }
    }

    /// Returns true if the files are the only source.
    pub(crate) fn is_empty(&self) -> bool {
        let has_registry = self.service_fabric.is_some() || self.serf.is_some();
        !has_registry && self.consul.is_none() && self.xds.is_none()
    }

    /// Adds the sources to a merge, and starts polling them.
    ///
    /// # Errors
    ///
    /// A certificate or a key that a section names cannot be used.
    pub(crate) fn start(
        &self,
        mut merge: Merge,
        options: &CompileOptions,
    ) -> Result<Merge, Failure> {
        if let Some(source) = &self.service_fabric {
            let options = self.allowed.options(SERVICE_FABRIC, options);
            let runner = source.runner(&options)?;
            merge = merge.source(self.started(runner, SERVICE_FABRIC, options));
        }
        if let Some(source) = &self.serf {
            let options = self.allowed.options(SERF, options);
            let runner = source.runner(&options)?;
            merge = merge.source(self.started(runner, SERF, options));
        }
        if let Some(source) = &self.consul {
            let options = self.allowed.options(CONSUL, options);
            let runner = source.runner(&options)?;
            merge = merge.source(self.started(runner, CONSUL, options));
        }
        if let Some(source) = &self.xds {
            let options = self.allowed.options(XDS, options);
            let runner = source.runner(&options)?;
            merge = merge.source(self.started(runner, XDS, options));
        }
        Ok(merge)
    }

    /// Starts a runner whose services may name the policies of its section.
    fn started(
        &self,
        runner: Runner,
        section: &'static str,
        options: CompileOptions,
    ) -> MergeSource {
        let runner = runner.filter(self.allowed.filter(section));
        MergeSource::new(runner.start()).with_compile_options(options)
    }

    /// Polls each source once, without reporting anything to it.
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start). The error of a source that does not respond is in its result.
    pub(crate) async fn ask(&self, options: &CompileOptions) -> Result<Vec<Answer>, Failure> {
        let mut answers = Vec::new();
        if let Some(source) = &self.service_fabric {
            let options = self.allowed.options(SERVICE_FABRIC, options);
            answers.push(source.ask(&options).await?);
        }
        if let Some(source) = &self.serf {
            let options = self.allowed.options(SERF, options);
            answers.push(source.ask(&options).await?);
        }
        if let Some(source) = &self.consul {
            let options = self.allowed.options(CONSUL, options);
            answers.push(source.ask(&options).await?);
        }
        if let Some(source) = &self.xds {
            let options = self.allowed.options(XDS, options);
            answers.push(source.ask(&options).await?);
        }
        Ok(answers)
    }

    /// Returns the files in which sources store discovered services, with the names of their sections.
    pub(crate) fn kept(&self) -> Vec<(&'static str, PathBuf)> {
        let service_fabric = self.service_fabric.as_ref();
        let paths = [
            (
                SERVICE_FABRIC,
                service_fabric.and_then(ServiceFabricSource::persist),
            ),
            (SERF, self.serf.as_ref().and_then(SerfSource::persist)),
            (CONSUL, self.consul.as_ref().and_then(ConsulSource::persist)),
            (XDS, self.xds.as_ref().and_then(XdsSource::persist)),
        ];
        let paths = paths.into_iter();
        paths
            .filter_map(|(section, path)| Some((section, path?.to_owned())))
            .collect()
    }

    /// Returns the problems that keep sources from being polled on this machine: files that cannot be used.
    pub(crate) fn unusable(&self) -> Vec<proxy_model::Problem> {
        let service_fabric = self.service_fabric.as_ref();
        let service_fabric = service_fabric.and_then(ServiceFabricSource::unusable);
        let serf = self.serf.as_ref().and_then(SerfSource::unusable);
        let consul = self.consul.as_ref().and_then(ConsulSource::unusable);
        let xds = self.xds.as_ref().and_then(XdsSource::unusable);
        [service_fabric, serf, consul, xds]
            .into_iter()
            .flatten()
            .collect()
    }
}
