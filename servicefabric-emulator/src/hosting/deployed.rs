//! The state of a node, for queries.

use std::sync::Arc;

use serde::Serialize;

use super::description::{HostType, Placement};
use super::key::PackageKey;
use super::timestamp::Timestamp;

/// The status of a deployed application, package or code package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DeploymentStatus {
    /// The deployment is being downloaded to the node.
    Downloading,
    /// The deployment is being set up.
    Activating,
    /// The deployment is ready to be used.
    Active,
    /// Another version is replacing the deployment.
    Upgrading,
    /// The deployment is being removed.
    Deactivating,
    /// The process ended with code 0 and need not run again (code packages only).
    RanToCompletion,
}

/// An application on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedApplication {
    /// The name.
    pub name: Arc<str>,
    /// The status.
    pub status: DeploymentStatus,
    /// The number of replicas that its packages host.
    pub usage: u32,
    /// The time since which no replica uses it, if none does.
    pub unused_since: Option<Timestamp>,
    /// The time of the scheduled deactivation, which a use before then cancels.
    pub deactivation: Option<Timestamp>,
}

/// A package instance on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedPackage {
    /// The name and activation id.
    pub key: PackageKey,
    /// The version of its manifest.
    pub version: Arc<str>,
    /// The status.
    pub status: DeploymentStatus,
    /// The number of replicas that the package hosts.
    pub usage: u32,
    /// The time since which it hosts no replica, if it hosts none and is tracked for deactivation (from the
    /// end of its download).
    pub unused_since: Option<Timestamp>,
    /// The time of the scheduled deactivation, which a use before then cancels.
    pub deactivation: Option<Timestamp>,
    /// The time of the next download or activation attempt, while one is pending after a failure.
    pub next_attempt: Option<Timestamp>,
}

/// The status of the process of an entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum EntryPointStatus {
    /// The process waits for its turn, or for the end of a back-off.
    Pending,
    /// The process is being started.
    Starting,
    /// The process runs.
    Started,
    /// The process has been asked to stop.
    Stopping,
    /// The process does not run and will not be started.
    Stopped,
}

/// Statistics of the processes of an entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct EntryPointStatistics {
    /// The last exit code.
    pub last_exit_code: i32,
    /// The time of the last start or attempted start.
    pub last_activation: Option<Timestamp>,
    /// The time of the last exit.
    pub last_exit: Option<Timestamp>,
    /// The time of the last successful start.
    pub last_successful_activation: Option<Timestamp>,
    /// The time of the last exit with code 0.
    pub last_successful_exit: Option<Timestamp>,
    /// The number of starts.
    pub activation_count: u32,
    /// The number of failed starts.
    pub activation_failure_count: u32,
    /// The number of failed starts since the process last ran well.
    pub continuous_activation_failure_count: u32,
    /// The number of exits.
    pub exit_count: u32,
    /// The number of exits with a code other than 0.
    pub exit_failure_count: u32,
    /// The number of such exits since the process last ran well.
    pub continuous_exit_failure_count: u32,
}

/// An entry point of a code package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedEntryPoint {
    /// The program.
    pub location: Arc<str>,
    /// The id of the process, while there is one. The id is synthetic and never reused on a node.
    pub process_id: Option<u64>,
    /// The status.
    pub status: EntryPointStatus,
    /// The time of the next start, while one is pending.
    pub next_activation: Option<Timestamp>,
    /// The number of runs so far.
    pub instance_id: u64,
    /// The statistics.
    pub statistics: EntryPointStatistics,
}

/// A code package on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedCodePackage {
    /// The package instance.
    pub package: PackageKey,
    /// The name.
    pub name: Arc<str>,
    /// The version.
    pub version: Arc<str>,
    /// The kind of host: process or container.
    pub host_type: HostType,
    /// The status.
    pub status: DeploymentStatus,
    /// The setup entry point, if it has one.
    pub setup: Option<DeployedEntryPoint>,
    /// The main entry point.
    pub main: DeployedEntryPoint,
}

/// The status of a service type: whether its replicas can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum TypeStatus {
    /// No process has registered the type, and replicas wait.
    Enabled,
    /// No process has registered the type, and it will be disabled unless an operation succeeds before then.
    DisableScheduled,
    /// The type is blocklisted: new replicas are rejected.
    Disabled,
    /// A process has registered the type, and replicas open.
    Registered,
}

/// A service type on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedServiceType {
    /// The package instance.
    pub package: PackageKey,
    /// The name.
    pub service_type: Arc<str>,
    /// The code package that hosts it.
    pub code_package: Arc<str>,
    /// The status.
    pub status: TypeStatus,
    /// The time at which the type will be disabled, while that is scheduled.
    pub disable_at: Option<Timestamp>,
}

/// The status of a replica on the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SlotStatus {
    /// The replica waits for its service type. The node polls it again at `next_poll`.
    Waiting,
    /// The process hosts the replica.
    Open,
}

/// A replica on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployedReplica {
    /// The placement as requested.
    pub placement: Placement,
    /// The status.
    pub status: SlotStatus,
    /// The time of the next attempt to open the replica.
    pub next_poll: Option<Timestamp>,
    /// The code package that hosts it, or will. Unknown while the package is not on the node.
    pub code_package: Option<Arc<str>>,
    /// The process that hosts it, while it is open.
    pub process_id: Option<u64>,
}
