//! Services and their partitions.

use std::collections::{BTreeMap, BTreeSet};

use super::constraint::Constraint;
use super::entity::{
    Application, ApplicationType, Epoch, Partition, PartitionIndex, PartitionInformation,
    PartitionScheme, PartitionStatus, Service, ServiceKind, ServiceManifest, ServiceScale,
    ServiceStatus, ServiceType, Vitals,
};
use super::error::{ErrorCode, FabricError};
use super::identity::{PartitionId, ReplicaRef};
use super::name::FabricName;
use super::request::{ServiceCreation, ServiceUpdate};
use super::state::Cluster;
use crate::health::EntityKey;
use crate::hosting::Span;

/// The maximum number of partitions of a service.
const MAX_PARTITIONS: usize = 10_000;
/// The maximum number of partitions of a cluster.
const MAX_ALL_PARTITIONS: usize = 200_000;
/// The maximum number of replicas and instances of a cluster: about 350 MB.
pub(crate) const MAX_REPLICAS: usize = 100_000;

impl Cluster {
    /// Creates a service. Its replicas are placed at once, and are ready when hosting has opened them.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_NOT_FOUND`, `FABRIC_E_SERVICE_TYPE_NOT_FOUND`,
    /// `FABRIC_E_SERVICE_ALREADY_EXISTS`; `E_INVALIDARG` for a name that is not below that of the
    /// application, for counts, partitions and constraints that make no sense, and for a kind that is not
    /// that of the type.
    pub fn create_service(&mut self, creation: ServiceCreation) -> Result<(), FabricError> {
        self.add_service(creation)?;
        self.settle();
        Ok(())
    }

    /// Creates a service. The caller lets its replicas be placed.
    pub(super) fn add_service(&mut self, creation: ServiceCreation) -> Result<(), FabricError> {
        // All checks come before the first change, so that a failed creation leaves nothing behind.
        let application = self.existing_application(&creation.application)?;
        let name = creation.name.clone();
        if !name.is_below(&application.name) {
            return Err(FabricError::invalid_argument(format!(
                "the name '{name}' does not lie below that of its application '{}'",
                application.name
            )));
        }
        if self.services.contains_key(&name) {
            return Err(FabricError::new(
                ErrorCode::ServiceAlreadyExists,
                format!("there is a service '{name}' already"),
            ));
        }
        let declared = self.application_type(&application.type_name, &application.type_version)?;
        let (manifest, service_type) =
            declared.service_type(&creation.type_name).ok_or_else(|| {
                FabricError::new(
                    ErrorCode::ServiceTypeNotFound,
                    format!(
                        "application type '{}' has no service type '{}'",
                        declared.name, creation.type_name
                    ),
                )
            })?;
        self.check_survives_upgrade(application, declared, manifest, service_type)?;
        check_scale(creation.scale)?;
        if kind_of(creation.scale) != service_type.kind {
            return Err(FabricError::invalid_argument(format!(
                "service type '{}' is {}",
                service_type.name, service_type.kind
            )));
        }
        let parts = divide(&creation.scheme)?;
        if self.partitions.len() + parts.len() > MAX_ALL_PARTITIONS {
            return Err(FabricError::new(
                ErrorCode::Fail,
                format!("the cluster would have more than {MAX_ALL_PARTITIONS} partitions"),
            ));
        }
        let wanted = wanted_replicas(creation.scale, parts.len(), self.nodes.len());
        let wanted = self.check_wanted(0, wanted)?;
        let declared_constraints = &service_type.placement_constraints;
        let constraints = creation
            .placement_constraints
            .as_ref()
            .unwrap_or(declared_constraints);
        let mut service = Service {
            name: name.clone(),
            application: creation.application.clone(),
            type_name: creation.type_name,
            manifest_name: manifest.name.clone(),
            manifest_version: manifest.version.clone(),
            kind: service_type.kind,
            has_persisted_state: service_type.has_persisted_state,
            status: ServiceStatus::Active,
            scheme: creation.scheme,
            scale: creation.scale,
            placement_constraints: constraints.clone(),
            activation_mode: creation.activation_mode,
            instance_close_delay: creation.instance_close_delay,
            replica_restart_wait: creation.replica_restart_wait,
            dns_name: creation.dns_name,
            created_at: self.now,
            partitions: BTreeSet::new(),
            listeners: service_type.listeners.clone(),
            by_key: PartitionIndex::default(),
            constraint: Constraint::parse(constraints)?,
        };
        self.wanted_replicas = wanted;
        let key = EntityKey::Service(name.clone());
        let above = EntityKey::Application(creation.application.clone());
        self.health.insert(key, Some(above));
        self.say_service_was_created(&name);
        self.names.insert_system(&name, self.now);
        for (index, information) in parts.into_iter().enumerate() {
            // The time of creation is part of the id: a service that is created again gets new partitions.
            let id = PartitionId::derive(name.as_str(), self.now.as_millis(), index);
            service.partitions.insert(id);
            service.by_key.insert(id, &information);
            self.add_partition(id, &service, information);
        }
        if let Some(application) = self.applications.get_mut(&creation.application) {
            application.services.insert(name.clone());
        }
        self.services.insert(name, service);
        Ok(())
    }

    /// Returns the number of replicas that all services need if one of them changes from `before` to `after`.
    /// Fails above the limit.
    fn check_wanted(&self, before: usize, after: usize) -> Result<usize, FabricError> {
        let wanted = self.wanted_replicas.saturating_sub(before) + after;
        // A service may always shrink, even in a cluster over the limit.
        if after > before && wanted > MAX_REPLICAS {
            return Err(FabricError::new(
                ErrorCode::Fail,
                format!(
                    "the cluster would have {wanted} replicas and instances, more than {MAX_REPLICAS}"
                ),
            ));
        }
        Ok(wanted)
    }

    /// Checks that a service created during an upgrade has its type in both versions, since the upgrade ends
    /// in one of them.
    fn check_survives_upgrade(
        &self,
        application: &Application,
        declared: &ApplicationType,
        manifest: &ServiceManifest,
        service_type: &ServiceType,
    ) -> Result<(), FabricError> {
        let Some(run) = self.upgrades.get(&application.name) else {
            return Ok(());
        };
        // The upgrade may still end in either version.
        for version in run.versions() {
            let other = self.application_type(&application.type_name, version)?;
            let found = other.service_type(&service_type.name);
            let stays = found.is_some_and(|(other, found)| {
                other.name == manifest.name && found.kind == service_type.kind
            });
            if !stays {
                return Err(FabricError::new(
                    ErrorCode::ServiceTypeNotFound,
                    format!(
                        "application '{}' is being upgraded, and service type '{}' of '{}' is not in version '{version}' as it is in '{}'",
                        application.name, service_type.name, declared.name, declared.version
                    ),
                ));
            }
        }
        Ok(())
    }

    fn add_partition(
        &mut self,
        id: PartitionId,
        service: &Service,
        information: PartitionInformation,
    ) {
        let epoch = match service.kind {
            ServiceKind::Stateless => Epoch::default(),
            ServiceKind::Stateful => Epoch {
                configuration_version: 0,
                data_loss_version: self.next_instance_id(),
            },
        };
        let partition = Partition {
            id,
            service: service.name.clone(),
            kind: service.kind,
            information,
            status: PartitionStatus::NotReady,
            scale: service.scale,
            epoch,
            last_quorum_loss: Span::ZERO,
            replicas: BTreeMap::new(),
            created_as: self.next_instance_id(),
            lookup: 0,
            quorum_lost_at: None,
            reconfigured_at: None,
            status_override: None,
            vitals: Vitals::Unknown,
        };
        let above = EntityKey::Service(service.name.clone());
        self.health.insert(EntityKey::Partition(id), Some(above));
        self.partitions.insert(id, partition);
        self.follow_scale(id, service.scale);
    }

    /// Marks a partition for reconciliation, and records if it needs an instance on every node.
    fn follow_scale(&mut self, id: PartitionId, scale: ServiceScale) {
        if matches!(
            scale,
            ServiceScale::Stateless {
                instance_count: -1,
                ..
            }
        ) {
            self.everywhere.insert(id);
        } else {
            self.everywhere.remove(&id);
        }
        self.dirty.insert(id);
    }

    /// Changes a service. Replicas are added, removed and moved to match the new counts and constraints.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_SERVICE_DOES_NOT_EXIST`, `FABRIC_E_INVALID_FOR_STATELESS_SERVICES`,
    /// `FABRIC_E_INVALID_FOR_STATEFUL_SERVICES`; `E_INVALIDARG` for counts and constraints that make no sense.
    pub fn update_service(
        &mut self,
        name: &FabricName,
        update: ServiceUpdate,
    ) -> Result<(), FabricError> {
        let service = self.existing_service(name)?;
        let scale = updated_scale(service.scale, &update)?;
        check_scale(scale)?;
        let count = |scale| wanted_replicas(scale, service.partitions.len(), self.nodes.len());
        let wanted = self.check_wanted(count(service.scale), count(scale))?;
        let constraint = update
            .placement_constraints
            .as_deref()
            .map(Constraint::parse);
        let constraint = constraint.transpose()?;
        let Some(service) = self.services.get_mut(name) else {
            return Ok(());
        };
        self.wanted_replicas = wanted;
        service.scale = scale;
        let is_moved = constraint.is_some();
        if let (Some(constraint), Some(text)) = (constraint, update.placement_constraints) {
            service.constraint = constraint;
            service.placement_constraints = text;
        }
        if let Some(delay) = update.instance_close_delay {
            service.instance_close_delay = delay;
        }
        if let Some(wait) = update.replica_restart_wait {
            service.replica_restart_wait = wait;
        }
        let ids: Vec<PartitionId> = service.partitions.iter().copied().collect();
        for id in ids {
            if let Some(partition) = self.partitions.get_mut(&id) {
                partition.scale = scale;
            }
            self.follow_scale(id, scale);
        }
        self.settle();
        if is_moved {
            self.leave_forbidden_nodes(name);
        }
        Ok(())
    }

    /// Moves replicas from nodes that the constraints of a service no longer allow. Replicas that no other
    /// node can take stay.
    fn leave_forbidden_nodes(&mut self, name: &FabricName) {
        let Some(service) = self.services.get(name) else {
            return;
        };
        let partitions = service.partitions.iter();
        let replicas = partitions.filter_map(|id| self.partitions.get(id));
        let replicas = replicas.flat_map(|partition| partition.replicas.values());
        let misplaced = replicas.filter(|replica| {
            let node = self.node(&replica.node);
            replica.is_counted() && node.is_some_and(|node| !service.constraint.admits(node))
        });
        let misplaced: Vec<_> = misplaced
            .map(|replica| (replica.key, replica.role))
            .collect();
        for (key, role) in misplaced {
            // A replica stays if no admitted node can take it.
            let _ = self.move_replica(key.partition, Some(key), None, role);
        }
    }

    /// Deletes a service: its replicas are closed at once.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_SERVICE_DOES_NOT_EXIST`.
    pub fn delete_service(&mut self, name: &FabricName) -> Result<(), FabricError> {
        self.existing_service(name)?;
        self.remove_service(name);
        self.settle();
        Ok(())
    }

    pub(super) fn remove_service(&mut self, name: &FabricName) {
        let Some(service) = self.services.get(name) else {
            return;
        };
        let application = service.application.clone();
        let wanted = wanted_replicas(service.scale, service.partitions.len(), self.nodes.len());
        self.wanted_replicas = self.wanted_replicas.saturating_sub(wanted);
        for id in service.partitions.clone() {
            let replicas = self.partitions.get(&id).map(|found| found.replicas.keys());
            let keys: Vec<ReplicaRef> = replicas
                .into_iter()
                .flatten()
                .map(|replica| ReplicaRef {
                    partition: id,
                    replica: *replica,
                })
                .collect();
            for key in keys {
                self.drop_replica(key);
            }
            self.partitions.remove(&id);
            self.resolve_cache.forget(id);
            self.dirty.remove(&id);
            self.unplaced.remove(&id);
            self.everywhere.remove(&id);
            self.rejected.retain(|(partition, _), _| *partition != id);
        }
        self.services.remove(name);
        if let Some(application) = self.applications.get_mut(&application) {
            application.services.remove(name);
        }
        self.health.remove(&EntityKey::Service(name.clone()));
        self.names.remove_system(name);
    }
}

fn kind_of(scale: ServiceScale) -> ServiceKind {
    match scale {
        ServiceScale::Stateless { .. } => ServiceKind::Stateless,
        ServiceScale::Stateful { .. } => ServiceKind::Stateful,
    }
}

fn check_scale(scale: ServiceScale) -> Result<(), FabricError> {
    match scale {
        ServiceScale::Stateless { instance_count, .. } if instance_count < -1 => Err(
            FabricError::invalid_argument("InstanceCount is -1, or 0 and more"),
        ),
        ServiceScale::Stateful { target, min } if min < 1 || target < min => {
            Err(FabricError::invalid_argument(
                "replica set sizes have to be: 1 <= MinReplicaSetSize <= TargetReplicaSetSize",
            ))
        }
        _ => Ok(()),
    }
}

fn updated_scale(scale: ServiceScale, update: &ServiceUpdate) -> Result<ServiceScale, FabricError> {
    match scale {
        ServiceScale::Stateless {
            instance_count,
            min_instance_count,
        } => {
            if update.target_replica_set_size.is_some() || update.min_replica_set_size.is_some() {
                return Err(FabricError::new(
                    ErrorCode::InvalidForStatelessServices,
                    "a stateless service has no replica set",
                ));
            }
            Ok(ServiceScale::Stateless {
                instance_count: update.instance_count.unwrap_or(instance_count),
                min_instance_count,
            })
        }
        ServiceScale::Stateful { target, min } => {
            if update.instance_count.is_some() {
                return Err(FabricError::new(
                    ErrorCode::InvalidForStatefulServices,
                    "a stateful service has no instances",
                ));
            }
            Ok(ServiceScale::Stateful {
                target: update.target_replica_set_size.unwrap_or(target),
                min: update.min_replica_set_size.unwrap_or(min),
            })
        }
    }
}

/// Returns the number of replicas of this number of partitions: at most one per partition on each node.
pub(crate) fn wanted_replicas(scale: ServiceScale, partitions: usize, nodes: usize) -> usize {
    let each = match scale {
        ServiceScale::Stateless { instance_count, .. } => {
            usize::try_from(instance_count).unwrap_or(nodes)
        }
        ServiceScale::Stateful { target, .. } => target as usize,
    };
    partitions.saturating_mul(each.min(nodes))
}

/// Checks that a service can be partitioned by a scheme.
pub(crate) fn check_scheme(scheme: &PartitionScheme) -> Result<(), FabricError> {
    divide(scheme).map(drop)
}

/// Returns the keys of each partition.
fn divide(scheme: &PartitionScheme) -> Result<Vec<PartitionInformation>, FabricError> {
    let too_many = |count: usize| {
        let error = format!("a service has 1 to {MAX_PARTITIONS} partitions, not {count}");
        Err(FabricError::invalid_argument(error))
    };
    match scheme {
        PartitionScheme::Singleton => Ok(vec![PartitionInformation::Singleton]),
        PartitionScheme::Named(names) => {
            let distinct: BTreeSet<&String> = names.iter().collect();
            if names.is_empty() || names.len() > MAX_PARTITIONS {
                return too_many(names.len());
            }
            if distinct.len() < names.len() || names.iter().any(String::is_empty) {
                return Err(FabricError::invalid_argument(
                    "the names of partitions are not empty, and none occurs twice",
                ));
            }
            Ok(names
                .iter()
                .cloned()
                .map(PartitionInformation::Named)
                .collect())
        }
        PartitionScheme::Int64Range { low, high, count } => {
            let size = usize::try_from(*count).unwrap_or(usize::MAX);
            if size == 0 || size > MAX_PARTITIONS {
                return too_many(size);
            }
            // The full range has more keys than `i64` can count.
            let keys = i128::from(*high) - i128::from(*low) + 1;
            if keys < i128::from(*count) {
                return Err(FabricError::invalid_argument(format!(
                    "the keys from {low} to {high} are not enough for {count} partitions"
                )));
            }
            Ok(ranges(*low, keys, i128::from(*count)))
        }
    }
}

/// Divides `keys` keys from `low` into ranges. If they do not divide evenly, the first partitions have one
/// more.
fn ranges(low: i64, keys: i128, count: i128) -> Vec<PartitionInformation> {
    let (each, rest) = (keys / count, keys % count);
    let begin = |index: i128| i128::from(low) + index * each + index.min(rest);
    // Both bounds lie between the lowest and the highest key, which are 64-bit numbers.
    let narrow = |key: i128| i64::try_from(key).unwrap_or(i64::MAX);
    let ranges = (0..count).map(|index| PartitionInformation::Int64Range {
        low: narrow(begin(index)),
        high: narrow(begin(index + 1) - 1),
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(low: i64, high: i64, count: u32) -> Vec<(i64, i64)> {
        let parts = divide(&PartitionScheme::Int64Range { low, high, count }).unwrap();
        let ends = parts.into_iter().map(|part| match part {
            PartitionInformation::Int64Range { low, high } => (low, high),
            other => panic!("{other:?}"),
        });
        ends.collect()
    }

    #[test]
    fn ranges_cover_all_keys_once() {
        assert_eq!(ends(0, 9, 3), [(0, 3), (4, 6), (7, 9)]);
        assert_eq!(ends(5, 5, 1), [(5, 5)]);
        assert_eq!(ends(i64::MIN, i64::MAX, 1), [(i64::MIN, i64::MAX)]);
        assert_eq!(ends(i64::MIN, i64::MAX, 2), [(i64::MIN, -1), (0, i64::MAX)]);
        assert_eq!(ends(-1, 1, 3), [(-1, -1), (0, 0), (1, 1)]);
    }

    #[test]
    fn schemes_that_make_no_sense_are_rejected() {
        for scheme in [
            PartitionScheme::Int64Range {
                low: 0,
                high: 1,
                count: 3,
            },
            PartitionScheme::Int64Range {
                low: 1,
                high: 0,
                count: 1,
            },
            PartitionScheme::Int64Range {
                low: i64::MIN,
                high: i64::MAX,
                count: 0,
            },
            PartitionScheme::Int64Range {
                low: i64::MIN,
                high: i64::MAX,
                count: u32::MAX,
            },
            PartitionScheme::Named(vec![]),
            PartitionScheme::Named(vec![String::new()]),
            PartitionScheme::Named(vec!["a".to_owned(), "a".to_owned()]),
        ] {
            assert_eq!(
                divide(&scheme).unwrap_err().code,
                ErrorCode::InvalidArgument,
                "{scheme:?}"
            );
        }
    }
}
