//! What is on a node, for those who ask.

use std::sync::Arc;

use serde::Serialize;

use super::description::{HostType, Placement};
use super::key::PackageKey;
use super::moment::Moment;

/// How far a deployed application, package or code package has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DeploymentStatus {
    /// It is on its way to the node.
    Downloading,
    /// It is being set up.
    Activating,
    /// It is ready to be used.
    Active,
    /// Another version of it is taking its place.
    Upgrading,
    /// It is going away.
    Deactivating,
    /// Its process ended with code 0 and need not run again (code packages only).
    RanToCompletion,
}

/// An application on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedApplication {
    /// Its name.
    pub name: Arc<str>,
    /// How far it is.
    pub status: DeploymentStatus,
    /// How many replicas its packages host.
    pub usage: u32,
    /// Since when it hosts none, if it hosts none.
    pub unused_since: Option<Moment>,
    /// When it will be deactivated unless it is used before.
    pub deactivation: Option<Moment>,
}

/// A package instance on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedPackage {
    /// Its name and activation id.
    pub key: PackageKey,
    /// The version of its manifest.
    pub version: Arc<str>,
    /// How far it is.
    pub status: DeploymentStatus,
    /// How many replicas it hosts.
    pub usage: u32,
    /// Since when it hosts none, if it hosts none and is tracked for deactivation (from the end of its download on).
    pub unused_since: Option<Moment>,
    /// When it will be deactivated unless it is used before.
    pub deactivation: Option<Moment>,
    /// When the next download or activation is attempted, while one is awaited after a failure.
    pub next_attempt: Option<Moment>,
}

/// What the process of an entry point does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum EntryPointStatus {
    /// It waits for its turn, or for the end of a back-off.
    Pending,
    /// It is being started.
    Starting,
    /// It runs.
    Started,
    /// It has been asked to end.
    Stopping,
    /// It does not run and will not be started.
    Stopped,
}

/// What has happened to the processes of an entry point so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct EntryPointStatistics {
    /// The last exit code.
    pub last_exit_code: i32,
    /// When it was last started, or the attempt was made.
    pub last_activation: Option<Moment>,
    /// When it last ended.
    pub last_exit: Option<Moment>,
    /// When a start last succeeded.
    pub last_successful_activation: Option<Moment>,
    /// When it last ended with code 0.
    pub last_successful_exit: Option<Moment>,
    /// How often it was started.
    pub activation_count: u32,
    /// How many of the starts failed.
    pub activation_failure_count: u32,
    /// How many starts have failed since it was last well.
    pub continuous_activation_failure_count: u32,
    /// How often it ended.
    pub exit_count: u32,
    /// How often it ended with a code other than 0.
    pub exit_failure_count: u32,
    /// How often it has so ended since it was last well.
    pub continuous_exit_failure_count: u32,
}

/// An entry point of a code package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedEntryPoint {
    /// Its program.
    pub location: Arc<str>,
    /// Its process, while there is one. Made up, and never used twice on a node.
    pub process_id: Option<u64>,
    /// What it does.
    pub status: EntryPointStatus,
    /// When it will be started again, while that is awaited.
    pub next_activation: Option<Moment>,
    /// Grows with each run; 0 before the first.
    pub instance_id: u64,
    /// What has happened to it.
    pub statistics: EntryPointStatistics,
}

/// A code package on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedCodePackage {
    /// The instance that it is part of.
    pub package: PackageKey,
    /// Its name.
    pub name: Arc<str>,
    /// Its version.
    pub version: Arc<str>,
    /// What runs it.
    pub host_type: HostType,
    /// How far it is.
    pub status: DeploymentStatus,
    /// The setup entry point, if it has one.
    pub setup: Option<DeployedEntryPoint>,
    /// The main entry point.
    pub main: DeployedEntryPoint,
}

/// Whether replicas of a service type can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum TypeStatus {
    /// No process has registered it; replicas wait.
    Enabled,
    /// The same, and it will be disabled unless something succeeds before.
    DisableScheduled,
    /// It is blocklisted: new replicas are refused.
    Disabled,
    /// A process has registered it: replicas open.
    Registered,
}

/// A service type on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedServiceType {
    /// The instance that it is part of.
    pub package: PackageKey,
    /// Its name.
    pub service_type: Arc<str>,
    /// The code package that hosts it.
    pub code_package: Arc<str>,
    /// Whether replicas can be opened.
    pub status: TypeStatus,
    /// When it will be disabled, while that is scheduled.
    pub disable_at: Option<Moment>,
}

/// Whether a replica runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SlotStatus {
    /// It waits for its service type; the node is asked again at `next_poll`.
    Waiting,
    /// Its process hosts it.
    Open,
}

/// A replica on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedReplica {
    /// What was asked for.
    pub placement: Placement,
    /// Whether it runs.
    pub status: SlotStatus,
    /// When the node is asked again whether it can be opened.
    pub next_poll: Option<Moment>,
    /// The code package that hosts it, or shall; unknown while the package is not on the node.
    pub code_package: Option<Arc<str>>,
    /// The process that hosts it, while it is open.
    pub process_id: Option<u64>,
}
