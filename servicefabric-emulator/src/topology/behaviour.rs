//! The scripted behaviour of packages on nodes.

use serde::{Deserialize, Serialize};

use super::application::Deployed;
use super::error::Problems;
use super::plan::{PlannedScript, TypesByName};
use super::{NodeDescription, Topology};
use crate::cluster::FabricName;
use crate::hosting::{Attempts, Behaviour, Failures, Life, ProcessBehaviour, Registration, Span};

/// The scripted behaviour of a service package.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BehaviourDescription {
    /// The application. Default: all.
    pub application: Option<String>,
    /// The service manifest. Required.
    pub manifest: String,
    /// The node. Default: all.
    pub node: Option<String>,
    /// The code package with these lives. Default: the one that hosts service types.
    pub code_package: Option<String>,
    /// The duration of a download.
    pub download_time: Span,
    /// The number of downloads that fail before one succeeds.
    pub download_failures: u32,
    /// The duration of an activation.
    pub activation_time: Span,
    /// The number of activations that fail before one succeeds.
    pub activation_failures: u32,
    /// The run time of the setup entry point.
    pub setup_time: Span,
    /// The time after which a started process registers its service types. Infinite: never.
    pub registration_delay: Span,
    /// The lives of a process, one after the other: `["5s", "20s"]`, or `{ lasts = "5s", exit_code = 3 }`.
    /// After the last one it keeps running.
    pub lives: Vec<LifeDescription>,
    /// True if the lives repeat after the last one.
    pub repeat: bool,
}

/// The life of a process: its length and its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LifeDescription {
    /// A crash after this time, with exit code 1.
    Crash(Span),
    /// An exit after this time with this code.
    Exit {
        /// The length of the life.
        lasts: Span,
        /// The exit code.
        exit_code: i32,
    },
}

/// Checks the described behaviours.
pub(super) fn plan(
    topology: &Topology,
    nodes: &[NodeDescription],
    types: &TypesByName<'_>,
    deployed: &Deployed,
    problems: &mut Problems,
) -> Vec<PlannedScript> {
    let mut scripts = Vec::new();
    for (index, described) in topology.behaviours.iter().enumerate() {
        let at = format!("behaviours[{index}]");
        if let Some(script) = described.plan(&at, nodes, types, deployed, problems) {
            scripts.push(script);
        }
    }
    scripts
}

impl BehaviourDescription {
    fn plan(
        &self,
        at: &str,
        nodes: &[NodeDescription],
        types: &TypesByName<'_>,
        deployed: &Deployed,
        problems: &mut Problems,
    ) -> Option<PlannedScript> {
        let all = types.values().flatten();
        let manifests = || {
            all.clone()
                .flat_map(|planned| &planned.application_type.service_manifests)
        };
        let Some(manifest) = manifests().find(|manifest| manifest.name == self.manifest) else {
            let known = manifests().map(|manifest| manifest.name.as_str());
            problems.unknown(
                format!("{at}.manifest"),
                "service manifest",
                &self.manifest,
                known,
            );
            return None;
        };
        if let Some(node) = &self.node {
            let names = || nodes.iter().filter_map(|node| node.name.as_deref());
            if !names().any(|name| name == node) {
                problems.unknown(format!("{at}.node"), "node", node, names());
            }
        }
        let application = self.application.as_deref().map(|written| {
            if written.starts_with("fabric:/") {
                written.to_owned()
            } else {
                format!("fabric:/{written}")
            }
        });
        if let Some(name) = &application {
            let names = || {
                deployed
                    .applications
                    .iter()
                    .map(|found| found.name.as_str())
            };
            if !names().any(|known| known == name) {
                problems.unknown(format!("{at}.application"), "application", name, names());
            }
        }
        let host = manifest
            .code_packages
            .iter()
            .find(|code| !code.hosts.is_empty());
        let code_package = match &self.code_package {
            None => host.map(|code| code.name.clone())?,
            Some(wanted) => {
                let names = || manifest.code_packages.iter().map(|code| code.name.as_str());
                if !names().any(|name| name == wanted) {
                    problems.unknown(
                        format!("{at}.code_package"),
                        "code package",
                        wanted,
                        names(),
                    );
                }
                wanted.clone()
            }
        };
        let zero = self
            .lives
            .iter()
            .position(|life| life.lasts() == Span::ZERO);
        if let Some(index) = zero {
            problems.add(
                format!("{at}.lives[{index}]"),
                "a process lives for at least a millisecond",
                "write for example \"5s\"",
            );
        }
        Some(PlannedScript {
            node: self.node.clone(),
            application: application.and_then(|name| FabricName::parse(&name).ok()),
            manifest: self.manifest.clone(),
            behaviour: self.behaviour(&code_package),
        })
    }

    fn behaviour(&self, code_package: &str) -> Behaviour {
        let attempts = |time: Span, failures: u32| Attempts {
            time,
            failures: Failures::First(failures),
            ..Attempts::default()
        };
        let registration = if self.registration_delay.is_infinite() {
            Registration::Never
        } else {
            Registration::After(self.registration_delay)
        };
        let process = ProcessBehaviour {
            setup_time: self.setup_time,
            registration,
            lives: self.lives.iter().map(|life| life.life()).collect(),
            repeat: self.repeat,
            ..ProcessBehaviour::default()
        };
        Behaviour::default()
            .with_download(attempts(self.download_time, self.download_failures))
            .with_activation(attempts(self.activation_time, self.activation_failures))
            .with_process(code_package, process)
    }
}

impl LifeDescription {
    fn lasts(self) -> Span {
        match self {
            Self::Crash(lasts) | Self::Exit { lasts, .. } => lasts,
        }
    }

    fn life(self) -> Life {
        match self {
            Self::Crash(lasts) => Life::crashing_after(lasts),
            Self::Exit { lasts, exit_code } => Life { lasts, exit_code },
        }
    }
}
