//! Requests to create and change entities of a cluster.

use indexmap::IndexMap;

use super::entity::{FailureAction, PartitionScheme, ServiceScale, UpgradeMode};
use super::name::FabricName;
use crate::hosting::{ActivationMode, Span};

/// An application to create.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplicationCreation {
    /// The name of the application.
    pub name: FabricName,
    /// The name of the application type.
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

    /// Sets the parameters.
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
    /// The name, which lies below that of the application.
    pub name: FabricName,
    /// The name of the service type.
    pub type_name: String,
    /// The partition scheme.
    pub scheme: PartitionScheme,
    /// The number of replicas or instances, and with it the kind of the service: stateless or stateful.
    pub scale: ServiceScale,
    /// The placement constraints. `None`: those of the service type.
    pub placement_constraints: Option<String>,
    /// The activation mode: one package activation for all partitions, or one for each.
    pub activation_mode: ActivationMode,
    /// The time for which an instance stays reachable after the naming service has dropped it.
    pub instance_close_delay: Span,
    /// The time to wait for a replica that is down before it is replaced.
    pub replica_restart_wait: Span,
    /// The name in the cluster's DNS service. Empty: none. It is stored and shown, but not resolved.
    pub dns_name: String,
}

/// The time to wait for a replica that is down before it is replaced. Default: 30 minutes.
pub(crate) const DEFAULT_RESTART_WAIT: Span = Span::from_secs(30 * 60);

impl ServiceCreation {
    /// Creates a service with a single partition.
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

    /// Sets the partition scheme.
    #[must_use]
    pub fn with_scheme(mut self, scheme: PartitionScheme) -> Self {
        self.scheme = scheme;
        self
    }
}

/// Changes of a service. A field that is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceUpdate {
    /// The number of instances of each partition of a stateless service; -1: one on every node.
    pub instance_count: Option<i32>,
    /// The number of replicas of each partition of a stateful service.
    pub target_replica_set_size: Option<u32>,
    /// The number of replicas below which a partition takes no writes.
    pub min_replica_set_size: Option<u32>,
    /// The placement constraints.
    pub placement_constraints: Option<String>,
    /// The time for which an instance stays reachable after the naming service has dropped it.
    pub instance_close_delay: Option<Span>,
    /// The time to wait for a replica that is down before it is replaced.
    pub replica_restart_wait: Option<Span>,
}

/// A request to upgrade an application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpgradeRequest {
    /// The new version of its type.
    pub to_version: String,
    /// The new parameters; all of them, not only those that change.
    pub parameters: IndexMap<String, String>,
    /// The mode: how the upgrade advances from domain to domain.
    pub mode: UpgradeMode,
    /// The time between the last replica of a domain being ready and the health check that precedes the next
    /// domain.
    pub wait: Span,
    /// The maximum time per domain of a monitored upgrade. An unmonitored upgrade waits without limit.
    pub domain_timeout: Span,
    /// The maximum time of a monitored upgrade. An unmonitored upgrade waits without limit.
    pub timeout: Span,
    /// The action after a monitored upgrade has failed.
    pub failure_action: FailureAction,
}

impl UpgradeRequest {
    /// Creates an unmonitored upgrade that continues automatically.
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

    /// Sets the parameters.
    #[must_use]
    pub fn with_parameters(mut self, parameters: IndexMap<String, String>) -> Self {
        self.parameters = parameters;
        self
    }

    /// Sets the mode.
    #[must_use]
    pub fn with_mode(mut self, mode: UpgradeMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the wait between domains.
    #[must_use]
    pub fn with_wait(mut self, wait: Span) -> Self {
        self.wait = wait;
        self
    }

    /// Sets the time limit of each domain.
    #[must_use]
    pub fn with_domain_timeout(mut self, timeout: Span) -> Self {
        self.domain_timeout = timeout;
        self
    }

    /// Sets the time limit of all domains together.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Span) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the action after a failure.
    #[must_use]
    pub fn with_failure_action(mut self, action: FailureAction) -> Self {
        self.failure_action = action;
        self
    }
}
