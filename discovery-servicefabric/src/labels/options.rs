//! What a program decides for all services, where their labels do not say otherwise.

use proxy_model::Severity;
use proxy_model::config::{PartitionHash, PartitionKey, RouteHeader};
use serde::{Deserialize, Serialize};

/// How services become configuration where their labels leave it open.
///
/// The defaults are those of YARP: one cluster for each service, with every replica that is ready, over `https` only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelOptions {
    /// Whether destinations may be spoken to in the clear: `DiscoverInsecureHttpDestinations`. Default false.
    pub insecure_http: bool,
    /// Which replicas of a stateful service become destinations. Default [`ReplicaSelection::All`].
    pub replica_selection: ReplicaSelection,
    /// What becomes of partitions. Default [`PartitionMode::Merge`].
    pub partition_mode: PartitionMode,
    /// Where requests have their key under [`PartitionMode::Key`]. Default nowhere: labels have to say it.
    pub partition_key: PartitionKey,
    /// How a key becomes a number under [`PartitionMode::Key`]. Default not at all.
    pub partition_hash: PartitionHash,
    /// What becomes of replicas that have several endpoints. Default [`ListenerMode::One`].
    pub listener_mode: ListenerMode,
    /// Whether reads of stateful services go to secondaries. Default [`RoleRouting::Off`].
    pub role_routing: RoleRouting,
    /// What tells a read under [`RoleRouting::Header`]. Default nothing: labels have to say it.
    pub read_header: Option<RouteHeader>,
    /// Whether a service without routes is served under its own name, `/<application>/<service>`. Default false.
    pub default_route: bool,
    /// Whether the paths of routes begin with the service's name, which is taken off before requests are forwarded.
    /// Default false.
    pub path_prefix: bool,
    /// How bad a label is that means nothing. Default a warning; an error refuses the service.
    pub unknown_labels: Severity,
    /// How many clusters, routes, destinations and entries of routes one service may become; more are refused.
    /// Default 50,000.
    pub max_generated: usize,
}

/// Which replicas of a stateful service become destinations, if they are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ReplicaSelection {
    /// All of them, whatever their role.
    #[default]
    All,
    /// The primary.
    PrimaryOnly,
    /// The active secondaries.
    SecondaryOnly,
}

/// What becomes of the partitions of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum PartitionMode {
    /// One cluster has the replicas of all of them.
    #[default]
    Merge,
    /// Each is a cluster, which requests choose by the query parameter `PartitionID`.
    PerPartition,
    /// Each is a cluster, which is chosen by a key that requests carry.
    Key,
}

/// What becomes of replicas that have several endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ListenerMode {
    /// One endpoint is chosen.
    #[default]
    One,
    /// Besides that, each listener has a cluster.
    PerListener,
}

/// Whether requests that only read go to secondaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RoleRouting {
    /// They do not.
    #[default]
    Off,
    /// GET, HEAD and OPTIONS do.
    Methods,
    /// Those with a certain header do.
    Header,
}

impl Default for LabelOptions {
    fn default() -> Self {
        Self {
            insecure_http: false,
            replica_selection: ReplicaSelection::default(),
            partition_mode: PartitionMode::default(),
            partition_key: PartitionKey::default(),
            partition_hash: PartitionHash::default(),
            listener_mode: ListenerMode::default(),
            role_routing: RoleRouting::default(),
            read_header: None,
            default_route: false,
            path_prefix: false,
            unknown_labels: Severity::Warning,
            max_generated: 50_000,
        }
    }
}

impl LabelOptions {
    /// Sets whether destinations may be spoken to in the clear.
    #[must_use]
    pub fn with_insecure_http(mut self, allowed: bool) -> Self {
        self.insecure_http = allowed;
        self
    }

    /// Sets which replicas of a stateful service become destinations.
    #[must_use]
    pub fn with_replica_selection(mut self, selection: ReplicaSelection) -> Self {
        self.replica_selection = selection;
        self
    }

    /// Sets what becomes of partitions.
    #[must_use]
    pub fn with_partition_mode(mut self, mode: PartitionMode) -> Self {
        self.partition_mode = mode;
        self
    }

    /// Sets where requests have their key under [`PartitionMode::Key`], and how it becomes a number.
    #[must_use]
    pub fn with_partition_key(mut self, key: PartitionKey, hash: PartitionHash) -> Self {
        self.partition_key = key;
        self.partition_hash = hash;
        self
    }

    /// Sets what becomes of replicas that have several endpoints.
    #[must_use]
    pub fn with_listener_mode(mut self, mode: ListenerMode) -> Self {
        self.listener_mode = mode;
        self
    }

    /// Sets whether reads go to secondaries.
    #[must_use]
    pub fn with_role_routing(mut self, routing: RoleRouting) -> Self {
        self.role_routing = routing;
        self
    }

    /// Sets what tells a read under [`RoleRouting::Header`].
    #[must_use]
    pub fn with_read_header(mut self, header: RouteHeader) -> Self {
        self.read_header = Some(header);
        self
    }

    /// Sets whether a service without routes is served under its own name.
    #[must_use]
    pub fn with_default_route(mut self, enabled: bool) -> Self {
        self.default_route = enabled;
        self
    }

    /// Sets whether the paths of routes begin with the service's name.
    #[must_use]
    pub fn with_path_prefix(mut self, enabled: bool) -> Self {
        self.path_prefix = enabled;
        self
    }

    /// Sets how bad a label is that means nothing.
    #[must_use]
    pub fn with_unknown_labels(mut self, severity: Severity) -> Self {
        self.unknown_labels = severity;
        self
    }

    /// Sets how many clusters, routes, destinations and entries of routes one service may become.
    #[must_use]
    pub fn with_max_generated(mut self, most: usize) -> Self {
        self.max_generated = most;
        self
    }
}
