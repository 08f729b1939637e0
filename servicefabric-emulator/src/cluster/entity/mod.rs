//! The entities of a cluster. Every field is readable; none can be changed from outside.

mod application;
mod application_type;
mod deployed;
mod node;
mod partition;
mod replica;
mod service;

pub use self::application::{
    Application, ApplicationStatus, ApplicationUpgrade, FailureAction, FailureReason,
    UpgradeDomainProgress, UpgradeDomainState, UpgradeMode, UpgradeState,
};
pub use self::application_type::{
    ApplicationType, ApplicationTypeStatus, CodePackage, EndpointResource, Extension,
    ServiceManifest, ServiceType,
};
pub use self::deployed::{DeployedApplication, DeployedReplica};
pub use self::node::{Deactivation, DeactivationIntent, Node, NodeStatus, NodeStatusFilter};
pub(in crate::cluster) use self::partition::Vitals;
pub use self::partition::{Epoch, Partition, PartitionInformation, PartitionStatus};
pub(in crate::cluster) use self::replica::Intent;
pub use self::replica::{Replica, ReplicaRole, ReplicaStatus};
pub(in crate::cluster) use self::service::PartitionIndex;
pub use self::service::{
    PartitionKey, PartitionScheme, Service, ServiceKind, ServiceScale, ServiceStatus,
};

/// Gives an enumeration its words of the wire format.
macro_rules! wire_words {
    ($type:ty { $($variant:ident = $word:literal),* $(,)? }) => {
        impl $type {
            /// Returns the word in responses.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Parses the word, in any case. `None` for an unknown one.
            pub fn from_word(word: &str) -> Option<Self> {
                $(if word.eq_ignore_ascii_case($word) {
                    return Some(Self::$variant);
                })*
                None
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use wire_words;
