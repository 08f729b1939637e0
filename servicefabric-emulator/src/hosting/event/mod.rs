//! What happens on a node.

mod text;

use std::sync::Arc;

use serde::Serialize;

use super::health::{HealthEntity, HealthReport};
use super::key::{PackageKey, ProcessKey, ReplicaKey, TypeKey};
use super::moment::{Moment, Span};

/// An event and when it happened. Its text is one line: the time, then the event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Logged {
    /// When.
    pub at: Moment,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What an operation on a package is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Bringing the package to the node.
    Download,
    /// Setting it up.
    Activation,
}

/// What is deactivated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeactivationTarget {
    /// An application with all its packages.
    Application(Arc<str>),
    /// One package instance.
    Package(PackageKey),
}

/// Why a replica could not be opened yet. It is asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deferral {
    /// The package is being downloaded or activated.
    PackageStarting,
    /// The package is active, but no process has registered the type.
    TypeNotRegistered,
    /// The type is disabled, and the replica exists here: it waits.
    TypeDisabled,
    /// The package, or its application, is being deactivated; that cannot be cancelled.
    Closing,
}

/// Why a replica will not be opened. The cluster may place it elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The type is disabled, and the replica is new here.
    TypeDisabled,
    /// It was asked for as often as `ReplicaOpenFailureMaxRetryThreshold` allows.
    TooManyRetries,
    /// The guest program that hosts it failed as often as `DeployedServiceFailoverContinuousFailureThreshold` says.
    HostKeepsFailing,
    /// The node stopped, and the replica had no persisted state.
    NodeStopped,
}

/// Something that happened on a node, in the order in which it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(
    tag = "event",
    rename_all = "snake_case",
    rename_all_fields = "snake_case"
)]
#[non_exhaustive]
pub enum Event {
    /// The node is up, empty but for the persisted replicas, which wait.
    NodeStarted,
    /// The node went down. All that was on it is gone.
    NodeStopped,

    /// A replica shall run here.
    ReplicaPlaced {
        /// The replica.
        replica: ReplicaKey,
        /// The package instance that shall host it.
        package: PackageKey,
        /// Its service type.
        service_type: Arc<str>,
    },
    /// It cannot be opened yet. Said once per reason, not at each retry.
    PlacementDeferred {
        /// The replica.
        replica: ReplicaKey,
        /// Why.
        reason: Deferral,
        /// When it is asked for again.
        retry_at: Option<Moment>,
    },
    /// It will not be opened: the node has forgotten it.
    PlacementRefused {
        /// The replica.
        replica: ReplicaKey,
        /// Why.
        reason: Refusal,
    },
    /// It is hosted by a process.
    ReplicaOpened {
        /// The replica.
        replica: ReplicaKey,
        /// The process.
        process: ProcessKey,
        /// The id of that process.
        process_id: u64,
    },
    /// Its process is gone; it waits to be opened again.
    ReplicaDown {
        /// The replica.
        replica: ReplicaKey,
        /// The process that hosted it.
        process: ProcessKey,
    },
    /// It was closed on request: the node has forgotten it.
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
        /// What is attempted.
        phase: Phase,
        /// 1 for the first of the operation.
        attempt: u32,
    },
    /// It failed; there will be another.
    AttemptFailed {
        /// The package instance.
        package: PackageKey,
        /// The version.
        version: Arc<str>,
        /// What was attempted.
        phase: Phase,
        /// How many failures count so far in this phase of the operation.
        failures: u32,
        /// When the next begins.
        retry_at: Option<Moment>,
    },
    /// It failed, and that was the last one: the operation is given up.
    OperationAbandoned {
        /// The package instance.
        package: PackageKey,
        /// The version.
        version: Arc<str>,
        /// What was attempted.
        phase: Phase,
        /// How many failures there were.
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
    /// Another version takes the place of a running package.
    UpgradeStarted {
        /// The package instance.
        package: PackageKey,
        /// The version that runs.
        from: Arc<str>,
        /// The version that is wanted.
        to: Arc<str>,
    },
    /// The new version could not be downloaded; the old one runs on.
    UpgradeAbandoned {
        /// The package instance.
        package: PackageKey,
        /// The version that runs on.
        version: Arc<str>,
    },

    /// A setup entry point runs.
    SetupStarted {
        /// The code package.
        process: ProcessKey,
    },
    /// It ended.
    SetupFinished {
        /// The code package.
        process: ProcessKey,
        /// Its exit code.
        exit_code: i32,
    },
    /// A main entry point runs.
    ProcessStarted {
        /// The code package.
        process: ProcessKey,
        /// Its process.
        process_id: u64,
    },
    /// It could not be started.
    ProcessStartFailed {
        /// The code package.
        process: ProcessKey,
    },
    /// It ended by itself, or was killed.
    ProcessExited {
        /// The code package.
        process: ProcessKey,
        /// Its process.
        process_id: u64,
        /// Its exit code.
        exit_code: i32,
    },
    /// It, or its setup entry point, will be started again after a wait.
    ProcessBackingOff {
        /// The code package.
        process: ProcessKey,
        /// Failures since it was last well.
        failures: u32,
        /// How long it waits.
        wait: Span,
        /// When it is started; never, if the wait is infinite.
        restart_at: Option<Moment>,
    },
    /// It was sent Ctrl+C.
    ProcessStopping {
        /// The code package.
        process: ProcessKey,
        /// Its process.
        process_id: u64,
    },
    /// It has run long enough without failure to be considered well: its failures are forgotten.
    FailuresForgotten {
        /// The code package.
        process: ProcessKey,
    },

    /// A process registered a type.
    TypeRegistered {
        /// The type.
        service_type: TypeKey,
    },
    /// The process that had registered it is gone.
    TypeUnregistered {
        /// The type.
        service_type: TypeKey,
    },
    /// It has not been registered in time.
    TypeRegistrationTimedOut {
        /// The type.
        service_type: TypeKey,
    },
    /// It will be disabled unless something succeeds before.
    TypeDisableScheduled {
        /// The type.
        service_type: TypeKey,
        /// When.
        disable_at: Moment,
    },
    /// Something succeeded, or was given up, before.
    TypeDisableCancelled {
        /// The type.
        service_type: TypeKey,
    },
    /// It is blocklisted on the node: the failover manager is told.
    TypeDisabled {
        /// The type.
        service_type: TypeKey,
    },
    /// It is not blocklisted any more: the failover manager is told.
    TypeEnabled {
        /// The type.
        service_type: TypeKey,
    },

    /// What is not used will be deactivated unless it is used before.
    DeactivationScheduled {
        /// What.
        target: DeactivationTarget,
        /// When.
        due: Moment,
    },
    /// It is used again, or gone another way.
    DeactivationCancelled {
        /// What.
        target: DeactivationTarget,
    },
    /// From here on it cannot be cancelled.
    DeactivationStarted {
        /// What.
        target: DeactivationTarget,
    },
    /// The attempt failed; there will be another.
    DeactivationFailed {
        /// What.
        package: PackageKey,
        /// How many attempts have failed.
        failures: u32,
        /// When the next begins.
        retry_at: Option<Moment>,
    },
    /// It is gone from the node.
    Deactivated {
        /// What.
        target: DeactivationTarget,
    },

    /// A report for the health store.
    Health {
        /// What it is about.
        entity: HealthEntity,
        /// The property.
        property: Arc<str>,
        /// What is said.
        report: HealthReport,
    },
}
