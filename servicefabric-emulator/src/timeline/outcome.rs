//! The outcome of a script.

use std::fmt;

use serde::Serialize;

use super::script::Script;
use crate::hosting::{
    DeployedApplication, DeployedCodePackage, DeployedPackage, DeployedReplica,
    DeployedServiceType, EntryPointStatus, Logged, Node, SlotStatus, StandingHealth, Timestamp,
};

/// The outcome of a script.
///
/// Its text has a line for each event, and several for each state, all of which begin with their time; lines
/// of states go on with `=`. As JSON it is an object with `log` and `states`; times are numbers of seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// The title of the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The warnings about the script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The events in order.
    pub log: Vec<Entry>,
    /// The states at the times that the script requests.
    pub states: Vec<State>,
    /// The end time of the script.
    pub until: Timestamp,
    /// The time at which the run was cut off because of too many events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off_at: Option<Timestamp>,
}

impl Timeline {
    pub(super) fn new(script: &Script) -> Self {
        Self {
            title: script.title.clone(),
            warnings: script.warnings.clone(),
            log: Vec::new(),
            states: Vec::new(),
            until: script.until,
            cut_off_at: None,
        }
    }
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Entry {
    /// An event of the node.
    Event(Logged),
    /// The node rejected an instruction of the script.
    Rejected(Rejected),
}

impl Entry {
    /// Returns the time of the entry.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Event(logged) => logged.at,
            Self::Rejected(rejected) => rejected.at,
        }
    }
}

/// An instruction that a node rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// The time.
    pub at: Timestamp,
    /// The reason.
    #[serde(rename = "refused")]
    pub rejected: String,
}

/// The state of a node at a time, after all events at that time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct State {
    /// The time.
    pub at: Timestamp,
    /// True if the node is up.
    pub up: bool,
    /// The applications.
    pub applications: Vec<DeployedApplication>,
    /// The package instances.
    pub packages: Vec<DeployedPackage>,
    /// The code packages.
    pub code_packages: Vec<DeployedCodePackage>,
    /// The service types.
    pub service_types: Vec<DeployedServiceType>,
    /// The replicas.
    pub replicas: Vec<DeployedReplica>,
    /// The current health reports.
    pub health: Vec<StandingHealth>,
}

impl State {
    pub(super) fn of(node: &Node) -> Self {
        let applications = node.applications();
        let names = || applications.iter().map(|application| &*application.name);
        Self {
            at: node.now(),
            up: node.is_up(),
            packages: names().flat_map(|name| node.packages(name)).collect(),
            code_packages: names().flat_map(|name| node.code_packages(name)).collect(),
            service_types: names().flat_map(|name| node.service_types(name)).collect(),
            replicas: node.replicas(),
            health: node.health(),
            applications,
        }
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(title) = &self.title {
            writeln!(f, "# {title}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "# warning: {warning}")?;
        }
        let mut states = self.states.iter().peekable();
        for entry in &self.log {
            // A state follows the events of the same moment.
            while let Some(state) = states.next_if(|state| state.at < entry.at()) {
                state.fmt(f)?;
            }
            writeln!(f, "{entry}")?;
        }
        for state in states {
            state.fmt(f)?;
        }
        match self.cut_off_at {
            Some(at) => writeln!(f, "{at:>10}  (cut off: too much happens)"),
            None => writeln!(f, "{:>10}  (end)", self.until),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(logged) => logged.fmt(f),
            Self::Rejected(rejected) => write!(
                f,
                "{:>10}  instruction rejected: {}",
                rejected.at, rejected.rejected
            ),
        }
    }
}

/// Writes the state, line by line.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        let mut line = |text: String| writeln!(f, "{at:>10}  = {text}");
        if !self.up {
            line("node is down".to_owned())?;
        } else if self.applications.is_empty() {
            line("node is empty".to_owned())?;
        }
        for application in &self.applications {
            let DeployedApplication {
                name,
                status,
                usage,
                ..
            } = application;
            let end = Ending(application.unused_since, application.deactivation);
            line(format!(
                "application {name}: {status:?}, usage {usage}{end}"
            ))?;
        }
        for package in &self.packages {
            let DeployedPackage {
                key,
                version,
                status,
                usage,
                next_attempt,
                ..
            } = package;
            let end = Ending(package.unused_since, package.deactivation);
            let next =
                next_attempt.map_or_else(String::new, |at| format!(", next attempt at {at}"));
            line(format!(
                "package {key} {version}: {status:?}, usage {usage}{end}{next}"
            ))?;
        }
        for code in &self.code_packages {
            line(process(code))?;
        }
        for service_type in &self.service_types {
            let DeployedServiceType {
                package,
                service_type: name,
                status,
                disable_at,
                ..
            } = service_type;
            let when = disable_at.map_or_else(String::new, |at| format!(", at {at}"));
            line(format!("type {package}:{name}: {status:?}{when}"))?;
        }
        for replica in &self.replicas {
            let key = &replica.placement.replica;
            let text = match (replica.status, replica.next_poll) {
                (SlotStatus::Open, _) => format!("replica {key}: Open"),
                (SlotStatus::Waiting, Some(at)) => {
                    format!("replica {key}: Waiting, asked again at {at}")
                }
                (SlotStatus::Waiting, None) => format!("replica {key}: Waiting"),
            };
            line(text)?;
        }
        Ok(())
    }
}

fn process(code: &DeployedCodePackage) -> String {
    let DeployedCodePackage {
        package,
        name,
        main,
        ..
    } = code;
    let counts = &main.statistics;
    let failures = counts
        .continuous_exit_failure_count
        .saturating_add(counts.continuous_activation_failure_count);
    let mut text = format!("process {package}:{name}: {:?}", main.status);
    if let Some(id) = main
        .process_id
        .filter(|_| main.status == EntryPointStatus::Started)
    {
        text.push_str(&format!(" as {id}"));
    }
    if let Some(at) = main.next_activation {
        text.push_str(&format!(", next start at {at}"));
    }
    if failures > 0 {
        text.push_str(&format!(", {failures} failures in a row"));
    }
    text
}

/// The time since which an entity is unused, and the time of its deactivation.
struct Ending(Option<Timestamp>, Option<Timestamp>);

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(since) = self.0 {
            write!(f, ", unused since {since}")?;
        }
        match self.1 {
            Some(at) => write!(f, ", deactivated at {at}"),
            None => Ok(()),
        }
    }
}
