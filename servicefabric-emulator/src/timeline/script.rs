//! A parsed script.

use std::collections::BTreeSet;

use super::problem::ScriptErrors;
use super::read::read;
use crate::hosting::{
    Behaviour, HostingConfig, Node, NodeError, PackageDescription, PackageKey, Placement,
    ProcessKey, ReplicaKey, Timestamp,
};

/// A parsed script: circumstances, and events with their times. See the [module](super) for the format.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    pub(super) title: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) config: HostingConfig,
    pub(super) packages: Vec<ScriptPackage>,
    /// The steps, ordered by time.
    pub(super) steps: Vec<Step>,
    pub(super) show: BTreeSet<Timestamp>,
    pub(super) until: Timestamp,
}

impl Script {
    /// Parses a script, as JSON if its text begins with a brace, else as TOML.
    ///
    /// # Errors
    ///
    /// All errors, each with its line (in TOML), its place, and a suggested correction.
    pub fn read(text: &str) -> Result<Self, ScriptErrors> {
        read(text)
    }

    /// Returns the title.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Returns the warnings: doubtful parts that are not errors.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The settings.
    pub fn config(&self) -> &HostingConfig {
        &self.config
    }

    /// Returns the end time.
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// Returns the initial node of the script.
    pub(super) fn node(&self) -> Node {
        let mut node = Node::new("node", self.config.clone());
        for package in &self.packages {
            node.declare(package.description.clone());
            node.script(&package.key, package.behaviour.clone());
        }
        node
    }
}

/// A package of a script.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptPackage {
    pub(super) label: String,
    pub(super) key: PackageKey,
    pub(super) description: PackageDescription,
    pub(super) behaviour: Behaviour,
}

/// An instruction and its time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) at: Timestamp,
    pub(super) instruction: Instruction,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Instruction {
    Place(Placement),
    Close(ReplicaKey),
    Activate(PackageKey),
    Exit(ProcessKey, i32),
    Upgrade(PackageKey, PackageDescription),
    Behave(PackageKey, Behaviour),
    Stop,
    Start,
    Restart,
}

impl Instruction {
    pub(super) fn apply(&self, node: &mut Node) -> Result<(), NodeError> {
        match self {
            Self::Place(placement) => node.place(placement.clone()),
            Self::Close(replica) => node.close(replica),
            Self::Activate(package) => node.activate(package),
            Self::Exit(process, exit_code) => node.exit(process, *exit_code),
            Self::Upgrade(package, description) => {
                node.declare(description.clone());
                node.upgrade(package)
            }
            Self::Behave(package, behaviour) => {
                node.script(package, behaviour.clone());
                Ok(())
            }
            Self::Stop => {
                node.stop();
                Ok(())
            }
            Self::Start => {
                node.start();
                Ok(())
            }
            Self::Restart => {
                node.restart();
                Ok(())
            }
        }
    }
}
