//! The health of the whole cluster in one response, restricted to the requested parts.

use super::{EntityKey, HealthState, HealthStore, StateFilter};
use crate::cluster::{FabricName, PartitionId, ReplicaRef};

/// The parts of the cluster that a [`ClusterHealthChunk`] includes.
///
/// Each list selects entities: the first filter that applies to an entity decides by its state. A filter that
/// names an entity takes precedence over one for all. Without a state, a filter that names an entity includes
/// every state, and one for all includes none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkQuery {
    /// The nodes.
    pub nodes: Vec<NodeFilter>,
    /// The applications, and their parts.
    pub applications: Vec<ApplicationFilter>,
}

macro_rules! filters {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            /// The states to include.
            pub state: StateFilter,
            $($(#[$field_doc])* pub $field: $type,)*
        }
    )*};
}

filters! {
    /// A filter for nodes.
    NodeFilter {
        /// The name; `None` for all.
        name: Option<String>,
    }
    /// A filter for applications.
    ApplicationFilter {
        /// The name; `None` for all.
        name: Option<FabricName>,
        /// The application type.
        type_name: Option<String>,
        /// The services.
        services: Vec<ServiceFilter>,
        /// The deployments.
        deployed_applications: Vec<DeployedApplicationFilter>,
    }
    /// A filter for services.
    ServiceFilter {
        /// The name; `None` for all.
        name: Option<FabricName>,
        /// The partitions.
        partitions: Vec<PartitionFilter>,
    }
    /// A filter for partitions.
    PartitionFilter {
        /// The id; `None` for all.
        id: Option<PartitionId>,
        /// The replicas.
        replicas: Vec<ReplicaFilter>,
    }
    /// A filter for replicas.
    ReplicaFilter {
        /// The id; `None` for all.
        id: Option<i64>,
    }
    /// A filter for deployed applications.
    DeployedApplicationFilter {
        /// The node; `None` for all.
        node: Option<String>,
        /// The packages.
        packages: Vec<PackageFilter>,
    }
    /// A filter for deployed service packages.
    PackageFilter {
        /// The service manifest; `None` for all.
        manifest: Option<String>,
        /// The activation id; `None` for all.
        activation_id: Option<String>,
    }
}

/// The health of the cluster, and of the selected entities.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterHealthChunk {
    /// The state of the cluster.
    pub state: HealthState,
    /// The nodes.
    pub nodes: Vec<NodeChunk>,
    /// The applications.
    pub applications: Vec<ApplicationChunk>,
}

/// A node of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeChunk {
    /// The state.
    pub state: HealthState,
    /// The name.
    pub name: String,
}

/// An application of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplicationChunk {
    /// The state.
    pub state: HealthState,
    /// The name.
    pub name: FabricName,
    /// The name of the application type.
    pub type_name: String,
    /// The services.
    pub services: Vec<ServiceChunk>,
    /// The deployments on nodes.
    pub deployed_applications: Vec<DeployedApplicationChunk>,
}

/// A service of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceChunk {
    /// The state.
    pub state: HealthState,
    /// The name.
    pub name: FabricName,
    /// The partitions.
    pub partitions: Vec<PartitionChunk>,
}

/// A partition of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionChunk {
    /// The state.
    pub state: HealthState,
    /// The id.
    pub id: PartitionId,
    /// The replicas.
    pub replicas: Vec<ReplicaChunk>,
}

/// A replica of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicaChunk {
    /// The state.
    pub state: HealthState,
    /// The id.
    pub id: i64,
}

/// A deployed application of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeployedApplicationChunk {
    /// The state.
    pub state: HealthState,
    /// The node.
    pub node: String,
    /// The packages.
    pub packages: Vec<PackageChunk>,
}

/// A deployed service package of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackageChunk {
    /// The state.
    pub state: HealthState,
    /// The service manifest.
    pub manifest: String,
    /// The activation id. Empty for the shared activation.
    pub activation_id: String,
}

/// The parts of a filter that decide on its use.
trait Filter {
    fn state(&self) -> StateFilter;
    fn is_specific(&self) -> bool;
}

macro_rules! specific {
    ($($filter:ident by $($field:ident)||+;)*) => {$(
        impl Filter for $filter {
            fn state(&self) -> StateFilter { self.state }
            fn is_specific(&self) -> bool { $(self.$field.is_some())||+ }
        }
    )*};
}

specific! {
    NodeFilter by name;
    ApplicationFilter by name || type_name;
    ServiceFilter by name;
    PartitionFilter by id;
    ReplicaFilter by id;
    DeployedApplicationFilter by node;
    PackageFilter by manifest || activation_id;
}

/// Returns the filter that decides on an entity, if it includes it.
fn choose<F: Filter>(
    filters: &[F],
    is_about: impl Fn(&F) -> bool,
    state: HealthState,
) -> Option<&F> {
    let mut specific = filters.iter().filter(|filter| filter.is_specific());
    let chosen = specific
        .find(|filter| is_about(filter))
        .or_else(|| filters.iter().find(|filter| !filter.is_specific()))?;
    // A filter without states admits only an entity that it names.
    if chosen.state().is_default() {
        return chosen.is_specific().then_some(chosen);
    }
    chosen.state().admits(state).then_some(chosen)
}

/// Returns true if the filter names the entity, or none at all.
fn wants<T: PartialEq + ?Sized, W: std::borrow::Borrow<T>>(wanted: &Option<W>, found: &T) -> bool {
    wanted
        .as_ref()
        .is_none_or(|wanted| wanted.borrow() == found)
}

impl HealthStore {
    /// Returns the health of the cluster and of the entities that `query` selects. `type_of` returns the type
    /// of an application.
    pub(crate) fn chunk<'a>(
        &self,
        query: &ChunkQuery,
        type_of: impl Fn(&FabricName) -> &'a str,
    ) -> ClusterHealthChunk {
        let mut chunk = ClusterHealthChunk {
            state: self.state(&EntityKey::Cluster).unwrap_or(HealthState::Ok),
            nodes: Vec::new(),
            applications: Vec::new(),
        };
        for (key, state) in self.children(&EntityKey::Cluster) {
            match key {
                EntityKey::Node(name) => {
                    let is_about = |filter: &NodeFilter| wants::<str, _>(&filter.name, name);
                    if choose(&query.nodes, is_about, state).is_some() {
                        chunk.nodes.push(NodeChunk {
                            state,
                            name: name.to_string(),
                        });
                    }
                }
                EntityKey::Application(name) => {
                    let type_name = type_of(name);
                    let is_about = |filter: &ApplicationFilter| {
                        wants(&filter.name, name) && wants::<str, _>(&filter.type_name, type_name)
                    };
                    if let Some(filter) = choose(&query.applications, is_about, state) {
                        let found = self.application_chunk(key, filter, state, name, type_name);
                        chunk.applications.push(found);
                    }
                }
                _ => {}
            }
        }
        chunk
    }

    fn application_chunk(
        &self,
        key: &EntityKey,
        filter: &ApplicationFilter,
        state: HealthState,
        name: &FabricName,
        type_name: &str,
    ) -> ApplicationChunk {
        let mut chunk = ApplicationChunk {
            state,
            name: name.clone(),
            type_name: type_name.to_owned(),
            services: Vec::new(),
            deployed_applications: Vec::new(),
        };
        // Without inner filters, no children are listed.
        if filter.services.is_empty() && filter.deployed_applications.is_empty() {
            return chunk;
        }
        for (key, state) in self.children(key) {
            match key {
                EntityKey::Service(name) => {
                    let is_about = |filter: &ServiceFilter| wants(&filter.name, name);
                    if let Some(filter) = choose(&filter.services, is_about, state) {
                        let partitions = self.partition_chunks(key, filter);
                        chunk.services.push(ServiceChunk {
                            state,
                            name: name.clone(),
                            partitions,
                        });
                    }
                }
                EntityKey::DeployedApplication { node, .. } => {
                    let is_about =
                        |filter: &DeployedApplicationFilter| wants::<str, _>(&filter.node, node);
                    let filters = &filter.deployed_applications;
                    if let Some(filter) = choose(filters, is_about, state) {
                        let packages = self.package_chunks(key, filter);
                        let node = node.to_string();
                        let found = DeployedApplicationChunk {
                            state,
                            node,
                            packages,
                        };
                        chunk.deployed_applications.push(found);
                    }
                }
                _ => {}
            }
        }
        chunk
    }

    fn partition_chunks(&self, service: &EntityKey, filter: &ServiceFilter) -> Vec<PartitionChunk> {
        let mut chunks = Vec::new();
        if filter.partitions.is_empty() {
            return chunks;
        }
        for (key, state) in self.children(service) {
            let EntityKey::Partition(id) = key else {
                continue;
            };
            let is_about = |filter: &PartitionFilter| wants(&filter.id, id);
            if let Some(filter) = choose(&filter.partitions, is_about, state) {
                let replicas = self.replica_chunks(key, filter);
                chunks.push(PartitionChunk {
                    state,
                    id: *id,
                    replicas,
                });
            }
        }
        chunks
    }

    fn replica_chunks(&self, partition: &EntityKey, filter: &PartitionFilter) -> Vec<ReplicaChunk> {
        let mut chunks = Vec::new();
        if filter.replicas.is_empty() {
            return chunks;
        }
        for (key, state) in self.children(partition) {
            let EntityKey::Replica(ReplicaRef { replica: id, .. }) = key else {
                continue;
            };
            let is_about = |filter: &ReplicaFilter| wants(&filter.id, id);
            if choose(&filter.replicas, is_about, state).is_some() {
                chunks.push(ReplicaChunk { state, id: *id });
            }
        }
        chunks
    }

    fn package_chunks(
        &self,
        deployed: &EntityKey,
        filter: &DeployedApplicationFilter,
    ) -> Vec<PackageChunk> {
        let mut chunks = Vec::new();
        for (key, state) in self.children(deployed) {
            let EntityKey::DeployedServicePackage { package, .. } = key else {
                continue;
            };
            let is_about = |filter: &PackageFilter| {
                wants::<str, _>(&filter.manifest, &package.manifest)
                    && wants::<str, _>(&filter.activation_id, &package.activation_id)
            };
            if choose(&filter.packages, is_about, state).is_some() {
                chunks.push(PackageChunk {
                    state,
                    manifest: package.manifest.to_string(),
                    activation_id: package.activation_id.to_string(),
                });
            }
        }
        chunks
    }
}
