//! What a cluster can be asked to create and change.

use indexmap::IndexMap;

use super::entity::{FailureAction, PartitionScheme, ServiceScale, UpgradeMode};
use super::name::FabricName;
use crate::hosting::{ActivationMode, Span};

/// An application to create.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplicationCreation {
    /// Its name.
    pub name: FabricName,
    /// Its type.
    pub type_name: String,
    /// The version of its type.
    pub type_version: String,
    /// Parameters that differ from the defaults of the type.
    pub parameters: IndexMap<String, String>,
}

impl ApplicationCreation {
    /// An application with the default parameters.
    pub fn new(name: FabricName, type_name: &str, type_version: &str) -> Self {
        Self {
            name,
            type_name: type_name.to_owned(),
            type_version: type_version.to_owned(),
            parameters: IndexMap::new(),
        }
    }

    /// The same with these parameters.
    #[must_use]
    pub fn with_parameters(mut self, parameters: IndexMap<String, String>) -> Self {
        self.parameters = parameters;
        self
    }
}

/// A service to create.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceCreation {
    /// The application that it belongs to.
    pub application: FabricName,
    /// Its name, which lies below that of the application.
    pub name: FabricName,
    /// Its type.
    pub type_name: String,
    /// How it is divided.
    pub scheme: PartitionScheme,
    /// How many replicas or instances; it also says whether the service keeps state.
    pub scale: ServiceScale,
    /// Which nodes it may be on; `None`: what its type says.
    pub placement_constraints: Option<String>,
    /// Whether each partition has a package activation of its own.
    pub activation_mode: ActivationMode,
    /// How long an instance is still reachable after it was taken out of the naming service.
    pub instance_close_delay: Span,
    /// How long a replica that is down is waited for before another one takes its place.
    pub replica_restart_wait: Span,
    /// The name that the DNS service of the cluster has for it; empty for none. It is kept and shown, not resolved.
    pub dns_name: String,
}

/// How long a replica that is down is waited for when nothing else is said: 30 minutes.
pub(crate) const DEFAULT_RESTART_WAIT: Span = Span::from_secs(30 * 60);

impl ServiceCreation {
    /// A service that is not divided.
    pub fn new(
        application: FabricName,
        name: FabricName,
        type_name: &str,
        scale: ServiceScale,
    ) -> Self {
        Self {
            application,
            name,
            type_name: type_name.to_owned(),
            scheme: PartitionScheme::Singleton,
            scale,
            placement_constraints: None,
            activation_mode: ActivationMode::SharedProcess,
            instance_close_delay: Span::ZERO,
            replica_restart_wait: DEFAULT_RESTART_WAIT,
            dns_name: String::new(),
        }
    }

    /// The same with these partitions.
    #[must_use]
    pub fn with_scheme(mut self, scheme: PartitionScheme) -> Self {
        self.scheme = scheme;
        self
    }
}

/// What is to change about a service; `None` for what stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceUpdate {
    /// Instances of each partition of a stateless service; -1: one on every node.
    pub instance_count: Option<i32>,
    /// Replicas of each partition of a stateful service.
    pub target_replica_set_size: Option<u32>,
    /// Replicas below which a partition takes no writes.
    pub min_replica_set_size: Option<u32>,
    /// Which nodes it may be on.
    pub placement_constraints: Option<String>,
    /// How long an instance is still reachable after it was taken out of the naming service.
    pub instance_close_delay: Option<Span>,
    /// How long a replica that is down is waited for.
    pub replica_restart_wait: Option<Span>,
}

/// An upgrade of an application to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpgradeRequest {
    /// The version of its type that it is to have.
    pub to_version: String,
    /// The parameters that it is to have; all of them, not only those that change.
    pub parameters: IndexMap<String, String>,
    /// How the upgrade goes on from domain to domain.
    pub mode: UpgradeMode,
    /// How long after the last replica of a domain is ready the next domain begins, and the health is looked at.
    pub wait: Span,
    /// How long a domain may take before a monitored upgrade fails; an unmonitored one waits for ever.
    pub domain_timeout: Span,
    /// How long all domains together may take before a monitored upgrade fails; an unmonitored one waits for ever.
    pub timeout: Span,
    /// What becomes of a monitored upgrade that fails.
    pub failure_action: FailureAction,
}

impl UpgradeRequest {
    /// An upgrade without monitoring that goes on by itself.
    pub fn new(to_version: &str) -> Self {
        Self {
            to_version: to_version.to_owned(),
            parameters: IndexMap::new(),
            mode: UpgradeMode::UnmonitoredAuto,
            wait: Span::ZERO,
            domain_timeout: Span::INFINITE,
            timeout: Span::INFINITE,
            failure_action: FailureAction::Rollback,
        }
    }

    /// The same with these parameters.
    #[must_use]
    pub fn with_parameters(mut self, parameters: IndexMap<String, String>) -> Self {
        self.parameters = parameters;
        self
    }

    /// The same in another mode.
    #[must_use]
    pub fn with_mode(mut self, mode: UpgradeMode) -> Self {
        self.mode = mode;
        self
    }

    /// The same with a wait between domains.
    #[must_use]
    pub fn with_wait(mut self, wait: Span) -> Self {
        self.wait = wait;
        self
    }

    /// The same with a time limit for each domain.
    #[must_use]
    pub fn with_domain_timeout(mut self, timeout: Span) -> Self {
        self.domain_timeout = timeout;
        self
    }

    /// The same with a time limit for all domains together.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Span) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same with another end for when it fails.
    #[must_use]
    pub fn with_failure_action(mut self, action: FailureAction) -> Self {
        self.failure_action = action;
        self
    }
}
