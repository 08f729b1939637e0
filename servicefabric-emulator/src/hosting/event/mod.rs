//! The events of a node.

mod text;

use std::sync::Arc;

use serde::Serialize;

use super::health::{HealthEntity, HealthReport};
use super::key::{PackageKey, ProcessKey, ReplicaKey, TypeKey};
use super::timestamp::{Span, Timestamp};

/// An event with its time. Its text is one line: the time, then the event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Logged {
    /// The time.
    pub at: Timestamp,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// The phase of an operation on a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The package is downloaded to the node.
    Download,
    /// The package is set up.
    Activation,
}

/// The target of a deactivation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeactivationTarget {
    /// An application with all its packages.
    Application(Arc<str>),
    /// One package instance.
    Package(PackageKey),
}

/// The reason why a replica could not be opened yet. The node retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deferral {
    /// The package is being downloaded or activated.
    PackageStarting,
    /// The package is active, but no process has registered the type.
    TypeNotRegistered,
    /// The type is disabled, and the replica's state is on this node: it waits.
    TypeDisabled,
    /// The package, or its application, is being deactivated, which cannot be cancelled.
    Closing,
}

/// The reason for rejecting a replica. The cluster may place it elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    /// The type is disabled, and the replica is new on this node.
    TypeDisabled,
    /// The attempts to open it have reached `ReplicaOpenFailureMaxRetryThreshold`.
    TooManyRetries,
    /// The guest program that hosts the replica has failed as often as
    /// `DeployedServiceFailoverContinuousFailureThreshold` allows.
    HostKeepsFailing,
    /// The node stopped, and the replica had no persisted state.
    NodeStopped,
}

/// An event on a node. Events are in the order in which they happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(
    tag = "event",
    rename_all = "snake_case",
    rename_all_fields = "snake_case"
)]
#[non_exhaustive]
pub enum Event {
    /// The node is up. It is empty except for persisted replicas, which wait.
    NodeStarted,
    /// The node went down, and everything on it is lost.
    NodeStopped,

    /// A replica is placed on this node.
    ReplicaPlaced {
        /// The replica.
        replica: ReplicaKey,
        /// The package instance that will host it.
        package: PackageKey,
        /// The service type.
        service_type: Arc<str>,
    },
    /// The replica cannot be opened yet. Logged once per reason, not at each retry.
    PlacementDeferred {
        /// The replica.
        replica: ReplicaKey,
        /// The reason.
        reason: Deferral,
        /// The time of the next attempt.
        retry_at: Option<Timestamp>,
    },
    /// The replica is rejected, and the node has forgotten it.
    #[serde(rename = "placement_refused")]
    PlacementRejected {
        /// The replica.
        replica: ReplicaKey,
        /// The reason.
        reason: Rejection,
    },
    /// A process hosts the replica.
    ReplicaOpened {
        /// The replica.
        replica: ReplicaKey,
        /// The process.
        process: ProcessKey,
        /// The id of that process.
        process_id: u64,
    },
    /// The process of the replica has ended, and the replica waits to be opened again.
    ReplicaDown {
        /// The replica.
        replica: ReplicaKey,
        /// The process that hosted it.
        process: ProcessKey,
    },
    /// The replica was closed on request, and the node has forgotten it.
    ReplicaClosed {
        /// The replica.
        replica: ReplicaKey,
    },

    /// An application is set up on the node, and tracked for deactivation.
    ApplicationActivated {
        /// The application.
        application: Arc<str>,
    },
    /// An attempt to download or activate a package begins.
    AttemptStarted {
        /// The package instance.
        package: PackageKey,
        /// The version.
        version: Arc<str>,
        /// The phase.
        phase: Phase,
        /// The number of the attempt in the operation, from 1.
        attempt: u32,
    },
    /// An attempt failed, and another will follow.
    AttemptFailed {
        /// The package instance.
        package: PackageKey,
        /// The version.
        version: Arc<str>,
        /// The phase.
        phase: Phase,
        /// The number of failures that count so far in this phase of the operation.
        failures: u32,
        /// The time of the next attempt.
        retry_at: Option<Timestamp>,
    },
    /// The last attempt failed, and the operation is abandoned.
    OperationAbandoned {
        /// The package instance.
        package: PackageKey,
        /// The version.
        version: Arc<str>,
        /// The phase.
        phase: Phase,
        /// The number of failures.
        failures: u32,
    },
    /// The package is on the node, and tracked for deactivation.
    PackageDownloaded {
        /// The package instance.
        package: PackageKey,
        /// The version.
        version: Arc<str>,
    },
    /// The package is set up; its processes are started.
    PackageActivated {
        /// The package instance.
        package: PackageKey,
        /// The version.
        version: Arc<str>,
    },
    /// Another version begins to replace a running package.
    UpgradeStarted {
        /// The package instance.
        package: PackageKey,
        /// The version that runs.
        from: Arc<str>,
        /// The new version.
        to: Arc<str>,
    },
    /// The new version could not be downloaded, and the old one keeps running.
    UpgradeAbandoned {
        /// The package instance.
        package: PackageKey,
        /// The version that keeps running.
        version: Arc<str>,
    },

    /// A setup entry point runs.
    SetupStarted {
        /// The code package.
        process: ProcessKey,
    },
    /// The setup entry point ended.
    SetupFinished {
        /// The code package.
        process: ProcessKey,
        /// The exit code.
        exit_code: i32,
    },
    /// A main entry point runs.
    ProcessStarted {
        /// The code package.
        process: ProcessKey,
        /// The id of the process.
        process_id: u64,
    },
    /// The process could not be started.
    ProcessStartFailed {
        /// The code package.
        process: ProcessKey,
    },
    /// The process ended by itself, or was killed.
    ProcessExited {
        /// The code package.
        process: ProcessKey,
        /// The id of the process.
        process_id: u64,
        /// The exit code.
        exit_code: i32,
    },
    /// The process, or its setup entry point, will be restarted after a wait.
    ProcessBackingOff {
        /// The code package.
        process: ProcessKey,
        /// The number of failures since the process last ran well.
        failures: u32,
        /// The wait.
        wait: Span,
        /// The time of the restart. `None` if the wait is infinite.
        restart_at: Option<Timestamp>,
    },
    /// The process was sent Ctrl+C.
    ProcessStopping {
        /// The code package.
        process: ProcessKey,
        /// The id of the process.
        process_id: u64,
    },
    /// The process has run long enough without failure, and its failures are reset.
    FailuresForgotten {
        /// The code package.
        process: ProcessKey,
    },

    /// A process registered a type.
    TypeRegistered {
        /// The type.
        service_type: TypeKey,
    },
    /// The process that had registered the type has ended.
    TypeUnregistered {
        /// The type.
        service_type: TypeKey,
    },
    /// The type has not been registered in time.
    TypeRegistrationTimedOut {
        /// The type.
        service_type: TypeKey,
    },
    /// The type will be disabled unless an operation succeeds before then.
    TypeDisableScheduled {
        /// The type.
        service_type: TypeKey,
        /// The time of the disabling.
        disable_at: Timestamp,
    },
    /// The disabling was cancelled by a success, or because the operation was abandoned.
    TypeDisableCancelled {
        /// The type.
        service_type: TypeKey,
    },
    /// The type is blocklisted on the node, and the failover manager is notified.
    TypeDisabled {
        /// The type.
        service_type: TypeKey,
    },
    /// The type is no longer blocklisted, and the failover manager is notified.
    TypeEnabled {
        /// The type.
        service_type: TypeKey,
    },

    /// An unused target will be deactivated unless it is used before then.
    DeactivationScheduled {
        /// The target.
        target: DeactivationTarget,
        /// The time of the deactivation.
        due: Timestamp,
    },
    /// The deactivation was cancelled: the target is used again, or was removed for another reason.
    DeactivationCancelled {
        /// The target.
        target: DeactivationTarget,
    },
    /// The deactivation begins, and can no longer be cancelled.
    DeactivationStarted {
        /// The target.
        target: DeactivationTarget,
    },
    /// The attempt failed, and another will follow.
    DeactivationFailed {
        /// The package.
        package: PackageKey,
        /// The number of failed attempts.
        failures: u32,
        /// The time of the next attempt.
        retry_at: Option<Timestamp>,
    },
    /// The target was removed from the node.
    Deactivated {
        /// The target.
        target: DeactivationTarget,
    },

    /// A report for the health store.
    Health {
        /// The entity.
        entity: HealthEntity,
        /// The property.
        property: Arc<str>,
        /// The report.
        report: HealthReport,
    },
}
