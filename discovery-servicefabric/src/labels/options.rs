//! The options of a program for all services whose labels do not override them.

use proxy_model::Severity;
use proxy_model::config::{PartitionHash, PartitionKey, RouteHeader};
use serde::{Deserialize, Serialize};

/// The options for turning services into configuration, where their labels do not override them.
///
/// The defaults are those of YARP: one cluster for each service, with every replica that is ready, over
/// `https` only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LabelOptions {
    /// True to allow unencrypted destinations: `DiscoverInsecureHttpDestinations`. Default: false.
    pub insecure_http: bool,
    /// The replicas of a stateful service that become destinations. Default: [`ReplicaSelection::All`].
    pub replica_selection: ReplicaSelection,
    /// The handling of partitions. Default: [`PartitionMode::Merge`].
    pub partition_mode: PartitionMode,
    /// The part of a request that holds its key under [`PartitionMode::Key`]. Default: none, so that labels
    /// have to name it.
    pub partition_key: PartitionKey,
    /// The conversion of a key to a number under [`PartitionMode::Key`]. Default: none.
    pub partition_hash: PartitionHash,
    /// The handling of replicas with several endpoints. Default: [`ListenerMode::One`].
    pub listener_mode: ListenerMode,
    /// The routing of reads of stateful services to secondaries. Default: [`RoleRouting::Off`].
    pub role_routing: RoleRouting,
    /// The header that marks a read under [`RoleRouting::Header`]. Default: none, so that labels have to
    /// name it.
    pub read_header: Option<RouteHeader>,
    /// True to serve a service without routes under its own name, `/<application>/<service>`. Default:
    /// false.
    pub default_route: bool,
    /// True to begin the paths of routes with the service's name, which is removed before requests are
    /// forwarded. Default: false.
    pub path_prefix: bool,
    /// Severity of an unknown label. An error rejects the service. Default: warning.
    pub unknown_labels: Severity,
    /// Maximum number of clusters, routes, destinations and entries of routes that one service may become.
    /// A service with more is rejected. Default: 50,000.
    pub max_generated: usize,
}

/// The replicas of a stateful service that become destinations, if they are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ReplicaSelection {
    /// All replicas, with any role.
    #[default]
    All,
    /// The primary.
    PrimaryOnly,
    /// The active secondaries.
    SecondaryOnly,
}

/// The handling of a service's partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum PartitionMode {
    /// One cluster has the replicas of all partitions.
    #[default]
    Merge,
    /// Each partition is a cluster, which requests select by the query parameter `PartitionID`.
    PerPartition,
    /// Each partition is a cluster, which is selected by a key that requests carry.
    Key,
}

/// The handling of replicas with several endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ListenerMode {
    /// One endpoint is chosen.
    #[default]
    One,
    /// One endpoint is chosen, and each listener has a cluster too.
    PerListener,
}

/// The routing of requests that only read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RoleRouting {
    /// Reads are routed like other requests.
    #[default]
    Off,
    /// GET, HEAD and OPTIONS requests go to secondaries.
    Methods,
    /// Requests with a certain header go to secondaries.
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
    /// Enables or disables unencrypted destinations.
    #[must_use]
    pub fn with_insecure_http(mut self, allowed: bool) -> Self {
        self.insecure_http = allowed;
        self
    }

    /// Sets the replicas of a stateful service that become destinations.
    #[must_use]
    pub fn with_replica_selection(mut self, selection: ReplicaSelection) -> Self {
        self.replica_selection = selection;
        self
    }

    /// Sets the handling of partitions.
    #[must_use]
    pub fn with_partition_mode(mut self, mode: PartitionMode) -> Self {
        self.partition_mode = mode;
        self
    }

    /// Sets the part of a request that holds its key under [`PartitionMode::Key`], and its conversion to a
    /// number.
    #[must_use]
    pub fn with_partition_key(mut self, key: PartitionKey, hash: PartitionHash) -> Self {
        self.partition_key = key;
        self.partition_hash = hash;
        self
    }

    /// Sets the handling of replicas with several endpoints.
    #[must_use]
    pub fn with_listener_mode(mut self, mode: ListenerMode) -> Self {
        self.listener_mode = mode;
        self
    }

    /// Sets the routing of reads to secondaries.
    #[must_use]
    pub fn with_role_routing(mut self, routing: RoleRouting) -> Self {
        self.role_routing = routing;
        self
    }

    /// Sets the header that marks a read under [`RoleRouting::Header`].
    #[must_use]
    pub fn with_read_header(mut self, header: RouteHeader) -> Self {
        self.read_header = Some(header);
        self
    }

    /// Enables or disables the default route of a service without routes, under its own name.
    #[must_use]
    pub fn with_default_route(mut self, enabled: bool) -> Self {
        self.default_route = enabled;
        self
    }

    /// Enables or disables paths that begin with the service's name.
    #[must_use]
    pub fn with_path_prefix(mut self, enabled: bool) -> Self {
        self.path_prefix = enabled;
        self
    }

    /// Sets the severity of an unknown label.
    #[must_use]
    pub fn with_unknown_labels(mut self, severity: Severity) -> Self {
        self.unknown_labels = severity;
        self
    }

    /// Sets the maximum number of clusters, routes, destinations and entries of routes that one service may
    /// become.
    #[must_use]
    pub fn with_max_generated(mut self, most: usize) -> Self {
        self.max_generated = most;
        self
    }
}
