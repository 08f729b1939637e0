//! Applications, and their upgrades.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::wire_words;
use crate::cluster::FabricName;
use crate::hosting::Moment;

/// An application: one instance of an [`ApplicationType`](super::ApplicationType).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Application {
    /// Its name, e.g. `fabric:/Shop`.
    pub name: FabricName,
    /// Its type.
    pub type_name: String,
    /// The version of its type; during an upgrade still the old one.
    pub type_version: String,
    /// The parameters that differ from the defaults of the type.
    pub parameters: IndexMap<String, String>,
    /// What is going on with it.
    pub status: ApplicationStatus,
    /// When it was created.
    pub created_at: Moment,
    /// Names of its services.
    pub services: BTreeSet<FabricName>,
    /// The upgrade that is under way, or the last one.
    pub upgrade: Option<ApplicationUpgrade>,
}

/// The status of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationStatus {
    /// It runs.
    Ready,
    /// It is being upgraded.
    Upgrading,
    /// It is being created.
    Creating,
    /// It is being deleted.
    Deleting,
    /// It could not be created.
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
    /// How far it is.
    pub state: UpgradeState,
    /// How it goes on from domain to domain.
    pub mode: UpgradeMode,
    /// The version of the type before.
    pub from_version: String,
    /// The parameters before.
    pub from_parameters: IndexMap<String, String>,
    /// The version of the type that is rolled out.
    pub to_version: String,
    /// The parameters that are rolled out.
    pub to_parameters: IndexMap<String, String>,
    /// The domains in the order in which they are upgraded.
    pub domains: Vec<UpgradeDomainProgress>,
    /// When it began.
    pub started_at: Moment,
    /// When it was completed or rolled back.
    pub finished_at: Option<Moment>,
    /// When the domain that it is at, or was at last, began; before the first, when the upgrade began.
    pub domain_started_at: Moment,
    /// When that domain was done; `None` while it is not.
    pub domain_finished_at: Option<Moment>,
    /// Why it failed or was rolled back, in words; empty when it was not.
    pub failure: String,
    /// The same in one word.
    pub failure_reason: FailureReason,
    /// When it failed, or was asked to roll back.
    pub failed_at: Option<Moment>,
}

/// Why an upgrade does not go on as it was meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureReason {
    /// It does.
    #[default]
    None,
    /// Somebody asked for it to be rolled back.
    Interrupted,
    /// The application was not healthy.
    HealthCheck,
    /// A domain took longer than it may.
    UpgradeDomainTimeout,
    /// All domains together took longer than they may.
    OverallUpgradeTimeout,
}

wire_words!(FailureReason {
    None = "None",
    Interrupted = "Interrupted",
    HealthCheck = "HealthCheck",
    UpgradeDomainTimeout = "UpgradeDomainTimeout",
    OverallUpgradeTimeout = "OverallUpgradeTimeout",
});

/// What becomes of a monitored upgrade that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureAction {
    /// It is taken back by itself.
    #[default]
    Rollback,
    /// It stops where it is, and goes on as one that waits before each domain: it can be continued or taken back.
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
    /// How far this domain is.
    pub state: UpgradeDomainState,
}

/// How far an upgrade is in one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeDomainState {
    /// Not begun.
    Pending,
    /// Its replicas are being closed and opened again.
    InProgress,
    /// Done.
    Completed,
}

wire_words!(UpgradeDomainState {
    Pending = "Pending",
    InProgress = "InProgress",
    Completed = "Completed",
});

/// How far an upgrade is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeState {
    /// It rolls out.
    RollingForwardInProgress,
    /// It waits to be told to go on with the next domain.
    RollingForwardPending,
    /// It has been rolled out everywhere.
    RollingForwardCompleted,
    /// It is being taken back.
    RollingBackInProgress,
    /// It has been taken back everywhere.
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
    /// Whether nothing more will happen.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::RollingForwardCompleted | Self::RollingBackCompleted
        )
    }
}

/// How an upgrade goes on from domain to domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpgradeMode {
    /// Without looking at health.
    #[default]
    UnmonitoredAuto,
    /// It waits for [`resume_upgrade`](crate::cluster::Cluster::resume_upgrade) before each domain but the first.
    UnmonitoredManual,
    /// It looks at the application's health after each domain, and is taken back when that is Error.
    Monitored,
}

wire_words!(UpgradeMode {
    UnmonitoredAuto = "UnmonitoredAuto",
    UnmonitoredManual = "UnmonitoredManual",
    Monitored = "Monitored",
});
