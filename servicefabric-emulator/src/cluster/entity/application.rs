//! Applications, and their upgrades.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::wire_words;
use crate::cluster::FabricName;
use crate::hosting::Timestamp;

/// An application: one instance of an [`ApplicationType`](super::ApplicationType).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Application {
    /// The name, e.g. `fabric:/Shop`.
    pub name: FabricName,
    /// The name of the application type.
    pub type_name: String,
    /// The version of its type. During an upgrade, the old one.
    pub type_version: String,
    /// The parameters that differ from the defaults of the type.
    pub parameters: IndexMap<String, String>,
    /// The status.
    pub status: ApplicationStatus,
    /// The time of creation.
    pub created_at: Timestamp,
    /// Names of its services.
    pub services: BTreeSet<FabricName>,
    /// The upgrade in progress, or the last one.
    pub upgrade: Option<ApplicationUpgrade>,
}

/// The status of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationStatus {
    /// The application runs.
    Ready,
    /// The application is being upgraded.
    Upgrading,
    /// The application is being created.
    Creating,
    /// The application is being deleted.
    Deleting,
    /// The application could not be created.
    Failed,
}

wire_words!(ApplicationStatus {
    Ready = "Ready",
    Upgrading = "Upgrading",
    Creating = "Creating",
    Deleting = "Deleting",
    Failed = "Failed",
});

/// A rolling upgrade: one upgrade domain after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplicationUpgrade {
    /// The state of the upgrade.
    pub state: UpgradeState,
    /// The mode: how the upgrade advances from domain to domain.
    pub mode: UpgradeMode,
    /// The former version of the type.
    pub from_version: String,
    /// The former parameters.
    pub from_parameters: IndexMap<String, String>,
    /// The new version of the type.
    pub to_version: String,
    /// The new parameters.
    pub to_parameters: IndexMap<String, String>,
    /// The domains in the order in which they are upgraded.
    pub domains: Vec<UpgradeDomainProgress>,
    /// The start time.
    pub started_at: Timestamp,
    /// The time at which the upgrade was completed or rolled back.
    pub finished_at: Option<Timestamp>,
    /// The start time of the current or last domain. Before the first domain, the start time of the upgrade.
    pub domain_started_at: Timestamp,
    /// The end time of that domain. `None` while it is in progress.
    pub domain_finished_at: Option<Timestamp>,
    /// The reason for a failure or rollback, as text. Empty if there was none.
    pub failure: String,
    /// The reason as a code.
    pub failure_reason: FailureReason,
    /// The time of the failure, or of the request to roll back.
    pub failed_at: Option<Timestamp>,
}

/// The reason for the failure of an upgrade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureReason {
    /// The upgrade has not failed.
    #[default]
    None,
    /// A client requested the rollback.
    Interrupted,
    /// The application was unhealthy.
    HealthCheck,
    /// A domain exceeded its time limit.
    UpgradeDomainTimeout,
    /// The upgrade exceeded its time limit.
    OverallUpgradeTimeout,
}

wire_words!(FailureReason {
    None = "None",
    Interrupted = "Interrupted",
    HealthCheck = "HealthCheck",
    UpgradeDomainTimeout = "UpgradeDomainTimeout",
    OverallUpgradeTimeout = "OverallUpgradeTimeout",
});

/// The action after a monitored upgrade has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureAction {
    /// The upgrade is rolled back automatically.
    #[default]
    Rollback,
    /// The upgrade stops and then continues in manual mode, waiting before each domain. A client can resume
    /// it or roll it back.
    Manual,
}

wire_words!(FailureAction {
    Rollback = "Rollback",
    Manual = "Manual",
});

/// One domain of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpgradeDomainProgress {
    /// Name of the upgrade domain.
    pub name: String,
    /// The state of the upgrade in this domain.
    pub state: UpgradeDomainState,
}

/// The state of an upgrade in one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeDomainState {
    /// The upgrade of this domain has not begun.
    Pending,
    /// The replicas are being closed and reopened.
    InProgress,
    /// The domain is complete.
    Completed,
}

wire_words!(UpgradeDomainState {
    Pending = "Pending",
    InProgress = "InProgress",
    Completed = "Completed",
});

/// The state of an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeState {
    /// The new version is being rolled out.
    RollingForwardInProgress,
    /// The rollout waits for a request to continue with the next domain.
    RollingForwardPending,
    /// The new version has been rolled out everywhere.
    RollingForwardCompleted,
    /// The upgrade is being rolled back.
    RollingBackInProgress,
    /// The upgrade has been rolled back everywhere.
    RollingBackCompleted,
}

wire_words!(UpgradeState {
    RollingForwardInProgress = "RollingForwardInProgress",
    RollingForwardPending = "RollingForwardPending",
    RollingForwardCompleted = "RollingForwardCompleted",
    RollingBackInProgress = "RollingBackInProgress",
    RollingBackCompleted = "RollingBackCompleted",
});

impl UpgradeState {
    /// Returns true if the upgrade has ended.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::RollingForwardCompleted | Self::RollingBackCompleted
        )
    }
}

/// The mode in which an upgrade advances from domain to domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpgradeMode {
    /// The upgrade does not check health.
    #[default]
    UnmonitoredAuto,
    /// The upgrade waits for [`resume_upgrade`](crate::cluster::Cluster::resume_upgrade) before each domain
    /// except the first.
    UnmonitoredManual,
    /// The upgrade checks the application's health after each domain, and is rolled back if it is Error.
    Monitored,
}

wire_words!(UpgradeMode {
    UnmonitoredAuto = "UnmonitoredAuto",
    UnmonitoredManual = "UnmonitoredManual",
    Monitored = "Monitored",
});
