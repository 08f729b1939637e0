#![doc = include_str!("../../docs/hosting.md")]

mod backoff;
mod behaviour;
mod config;
mod deployed;
mod description;
mod event;
mod health;
mod key;
mod node;
mod timestamp;

pub use self::backoff::BackoffMode;
pub use self::behaviour::{Attempts, Behaviour, Failures, Life, ProcessBehaviour, Registration};
pub(crate) use self::config::suggest::closest;
pub use self::config::{HostingConfig, Profile, SettingError, SettingValue};
pub use self::deployed::{
    DeployedApplication, DeployedCodePackage, DeployedEntryPoint, DeployedPackage, DeployedReplica,
    DeployedServiceType, DeploymentStatus, EntryPointStatistics, EntryPointStatus, SlotStatus,
    TypeStatus,
};
pub use self::description::{
    CodePackageDescription, HostType, PackageDescription, Placement, ReplicaKind, Role,
};
pub use self::event::{DeactivationTarget, Deferral, Event, Logged, Phase, Rejection};
pub use self::health::{HealthEntity, HealthReport, HealthState, SOURCE, StandingHealth};
pub use self::key::{ActivationMode, PackageKey, ProcessKey, ReplicaKey, TypeKey};
pub use self::node::{ABORTED_EXIT_CODE, DEACTIVATED_EXIT_CODE, Node, NodeError};
pub use self::timestamp::{Span, Timestamp};
