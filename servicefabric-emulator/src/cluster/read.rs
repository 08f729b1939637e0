//! Queries of a cluster.

use std::ops::Bound::{Excluded, Unbounded};

use super::entity::{
    Application, ApplicationType, Node, NodeStatusFilter, Partition, Replica, Service,
    ServiceManifest, ServiceType,
};
use super::error::{ErrorCode, FabricError};
use super::identity::{PartitionId, ReplicaRef};
use super::name::FabricName;
use super::page::{Page, PageRequest};
use super::state::Cluster;
use crate::health::{
    ChunkQuery, ClusterHealthChunk, EntityHealth, EntityKey, HealthQuery, HealthState, HealthStore,
};

/// Lists are ordered by name, by id, or by both. A page begins after its token, whatever has changed
/// meanwhile. Tokens that are not in the form of a key are rejected.
impl Cluster {
    /// The nodes, by name.
    pub fn nodes(&self, filter: NodeStatusFilter, page: &PageRequest) -> Page<&Node> {
        // The token is the last name of the previous page.
        let bound = page.lower_bound().map_or(Unbounded, Excluded);
        let nodes = self
            .nodes
            .range::<str, _>((bound, Unbounded))
            .map(|(_, entry)| &entry.node);
        let nodes = nodes.filter(|node| filter.admits(node.status));
        Page::take(nodes, page, |node| node.name.to_string())
    }

    /// A node.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name).map(|entry| &entry.node)
    }

    /// Returns the application types in all versions, by name and version, optionally of one name and in one
    /// version.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` for a token that no page gave.
    pub fn application_types(
        &self,
        name: Option<&str>,
        version: Option<&str>,
        page: &PageRequest,
    ) -> Result<Page<&ApplicationType>, FabricError> {
        let bound = match page.lower_bound() {
            None => Unbounded,
            Some(token) => {
                let key = token.split_once(TYPE_TOKEN_SEPARATOR);
                let (name, version) = key.ok_or_else(|| wrong_token(token))?;
                Excluded((name.to_owned(), version.to_owned()))
            }
        };
        let types = self.types.range((bound, Unbounded)).map(|(_, found)| found);
        let types = types.filter(|found| {
            name.is_none_or(|name| found.name == name)
                && version.is_none_or(|version| found.version == version)
        });
        Ok(Page::take(types, page, |found| {
            format!("{}{TYPE_TOKEN_SEPARATOR}{}", found.name, found.version)
        }))
    }

    /// An application type in one version.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_TYPE_NOT_FOUND`.
    pub fn application_type(
        &self,
        name: &str,
        version: &str,
    ) -> Result<&ApplicationType, FabricError> {
        let found = self.types.get(&(name.to_owned(), version.to_owned()));
        found.ok_or_else(|| {
            FabricError::new(
                ErrorCode::ApplicationTypeNotFound,
                format!("there is no application type '{name}' in version '{version}'"),
            )
        })
    }

    /// The service types of an application type, with the manifests that declare them.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_TYPE_NOT_FOUND`.
    pub fn service_types(
        &self,
        application_type: &str,
        version: &str,
    ) -> Result<Vec<(&ServiceManifest, &ServiceType)>, FabricError> {
        let found = self.application_type(application_type, version)?;
        Ok(found.service_types().collect())
    }

    /// Returns the applications, by name, optionally of one type.
    pub fn applications(&self, type_name: Option<&str>, page: &PageRequest) -> Page<&Application> {
        let bound = page.lower_bound().map_or(Unbounded, Excluded);
        let applications = self.applications.range::<str, _>((bound, Unbounded));
        let applications = applications
            .map(|(_, found)| found)
            .filter(|found| type_name.is_none_or(|wanted| found.type_name == wanted));
        Page::take(applications, page, |found| found.name.to_string())
    }

    /// An application.
    pub fn application(&self, name: &FabricName) -> Option<&Application> {
        self.applications.get(name)
    }

    /// Returns the services of an application, by name, optionally of one type.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_NOT_FOUND`.
    pub fn services(
        &self,
        application: &FabricName,
        type_name: Option<&str>,
        page: &PageRequest,
    ) -> Result<Page<&Service>, FabricError> {
        let application = self.existing_application(application)?;
        let bound = page.lower_bound().map_or(Unbounded, Excluded);
        let services = application.services.range::<str, _>((bound, Unbounded));
        let services = services
            .filter_map(|name| self.services.get(name))
            .filter(|found| type_name.is_none_or(|wanted| found.type_name == wanted));
        Ok(Page::take(services, page, |found| found.name.to_string()))
    }

    /// A service, by its name.
    pub fn service(&self, name: &FabricName) -> Option<&Service> {
        self.services.get(name)
    }

    /// The partitions of a service, by id.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_SERVICE_DOES_NOT_EXIST`; `E_INVALIDARG` for a token that no page gave.
    pub fn partitions(
        &self,
        service: &FabricName,
        page: &PageRequest,
    ) -> Result<Page<&Partition>, FabricError> {
        let service = self.existing_service(service)?;
        let bound = match page.lower_bound() {
            None => Unbounded,
            Some(token) => Excluded(
                token
                    .parse::<PartitionId>()
                    .map_err(|_| wrong_token(token))?,
            ),
        };
        let ids = service.partitions.range((bound, Unbounded));
        let partitions = ids.filter_map(|id| self.partitions.get(id));
        Ok(Page::take(partitions, page, |found| found.id.to_string()))
    }

    /// A partition.
    pub fn partition(&self, id: PartitionId) -> Option<&Partition> {
        self.partitions.get(&id)
    }

    /// The replicas or instances of a partition, by id.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_PARTITION_NOT_FOUND`; `E_INVALIDARG` for a token that no page gave.
    pub fn replicas(
        &self,
        partition: PartitionId,
        page: &PageRequest,
    ) -> Result<Page<&Replica>, FabricError> {
        let partition = self.existing_partition(partition)?;
        let bound = match page.lower_bound() {
            None => Unbounded,
            Some(token) => Excluded(token.parse::<i64>().map_err(|_| wrong_token(token))?),
        };
        let replicas = partition
            .replicas
            .range((bound, Unbounded))
            .map(|(_, found)| found);
        Ok(Page::take(replicas, page, |found| {
            found.key.replica.to_string()
        }))
    }

    /// A replica or an instance.
    pub fn replica(&self, key: ReplicaRef) -> Option<&Replica> {
        self.partitions
            .get(&key.partition)?
            .replicas
            .get(&key.replica)
    }

    /// The replicas on a node, in the order of their keys.
    pub fn replicas_on(&self, node: &str) -> impl Iterator<Item = &Replica> {
        let keys = self
            .nodes
            .get(node)
            .into_iter()
            .flat_map(|entry| &entry.replicas);
        keys.filter_map(|key| self.replica(*key))
    }

    /// The health store.
    pub fn health_store(&self) -> &HealthStore {
        &self.health
    }

    /// Returns the aggregated health of an entity. Ok for an unknown one.
    pub fn health_state(&self, entity: &EntityKey) -> HealthState {
        self.health.state(entity).unwrap_or(HealthState::Ok)
    }

    /// The health of an entity.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_HEALTH_ENTITY_NOT_FOUND`.
    pub fn health(
        &self,
        entity: &EntityKey,
        query: &HealthQuery,
    ) -> Result<EntityHealth, FabricError> {
        self.health.health(entity, query).ok_or_else(|| {
            FabricError::new(
                ErrorCode::HealthEntityNotFound,
                format!("there is no {entity}"),
            )
        })
    }

    /// Returns the health of the whole cluster, and of the entities that `query` selects.
    pub fn health_chunk(&self, query: &ChunkQuery) -> ClusterHealthChunk {
        self.health.chunk(query, |name| {
            self.applications
                .get(name)
                .map_or("", |found| found.type_name.as_str())
        })
    }

    pub(super) fn existing_application(
        &self,
        name: &FabricName,
    ) -> Result<&Application, FabricError> {
        self.applications.get(name).ok_or_else(|| {
            FabricError::new(
                ErrorCode::ApplicationNotFound,
                format!("there is no application '{name}'"),
            )
        })
    }

    pub(super) fn existing_service(&self, name: &FabricName) -> Result<&Service, FabricError> {
        self.services.get(name).ok_or_else(|| {
            FabricError::new(
                ErrorCode::ServiceDoesNotExist,
                format!("there is no service '{name}'"),
            )
        })
    }

    pub(super) fn existing_partition(&self, id: PartitionId) -> Result<&Partition, FabricError> {
        self.partitions.get(&id).ok_or_else(|| {
            FabricError::new(
                ErrorCode::PartitionNotFound,
                format!("there is no partition '{id}'"),
            )
        })
    }
}

/// The separator of name and version in the tokens of application types. Neither can contain it.
const TYPE_TOKEN_SEPARATOR: char = '+';

fn wrong_token(token: &str) -> FabricError {
    let shown: String = token.chars().take(120).collect();
    FabricError::invalid_argument(format!("'{shown}' is not a ContinuationToken of this list"))
}
