//! Operations on single replicas and processes.

use super::entity::{Intent, ReplicaRole, ReplicaStatus};
use super::error::{ErrorCode, FabricError};
use super::identity::{PartitionId, ReplicaRef};
use super::nodes::no_node;
use super::state::Cluster;
use crate::hosting::{DEACTIVATED_EXIT_CODE, ProcessKey, Span};

impl Cluster {
    /// Closes a replica of a stateful service and opens it again.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`, `FABRIC_E_REPLICA_DOES_NOT_EXIST`, `FABRIC_E_INVALID_FOR_STATELESS_SERVICES`.
    pub fn restart_replica(&mut self, node: &str, replica: ReplicaRef) -> Result<(), FabricError> {
        self.check_on_node(node, replica)?;
        self.check_stateful(replica.partition)?;
        let service = self.existing_partition(replica.partition)?.service.clone();
        if self.existing_service(&service)?.has_persisted_state {
            self.went_down(replica);
            self.close_in_hosting(replica, node);
            // Another replica may become the primary while this one restarts.
            self.elect(replica.partition);
            self.place_existing(replica);
        } else {
            self.drop_replica(replica);
        }
        self.settle();
        Ok(())
    }

    /// Removes a replica or an instance, which is then replaced. Unless `force` is set, an instance is
    /// drained first if its service has a close delay, and a primary hands over.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`, `FABRIC_E_REPLICA_DOES_NOT_EXIST`.
    pub fn remove_replica(
        &mut self,
        node: &str,
        replica: ReplicaRef,
        force: bool,
    ) -> Result<(), FabricError> {
        self.check_on_node(node, replica)?;
        if force {
            // A forced removal aborts the workload, like the loss of a process.
            self.end_workload(replica, true);
            self.drop_replica(replica);
        } else {
            // A primary hands over first, so that the partition stays available.
            self.hand_over(replica, |_| true);
            self.close(replica);
        }
        self.settle();
        Ok(())
    }

    /// Moves the primary to `node`; `None`: to a node with a secondary. A secondary swaps roles with the
    /// primary. On any other node a replica is built first, and the present primary is removed after the
    /// takeover.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_PARTITION_NOT_FOUND`, `FABRIC_E_INVALID_FOR_STATELESS_SERVICES`, `FABRIC_E_NODE_NOT_FOUND`;
    /// `E_INVALIDARG` if there is no secondary, or the node cannot take the primary.
    pub fn move_primary(
        &mut self,
        partition: PartitionId,
        node: Option<&str>,
    ) -> Result<(), FabricError> {
        self.check_stateful(partition)?;
        self.check_nodes([node])?;
        let found = self.existing_partition(partition)?;
        let mut secondaries = found.replicas.values().filter(|replica| {
            replica.role == ReplicaRole::ActiveSecondary
                && replica.status == ReplicaStatus::Ready
                && replica.intent == Intent::Stay
        });
        let heir = secondaries.find(|replica| node.is_none_or(|node| *replica.node == *node));
        if let Some(heir) = heir.map(|replica| replica.key) {
            // A ready secondary only swaps roles with the primary, which copies no state.
            self.promote(partition, heir);
            self.settle();
            return Ok(());
        }
        // A new primary is built only on a node that the request names.
        let primary = found.primary().filter(|_| node.is_some());
        let moved = primary.map(|replica| replica.key);
        self.move_replica(partition, moved, node, ReplicaRole::Primary)
    }

    /// Moves a secondary to another node; `None`: any.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_PARTITION_NOT_FOUND`, `FABRIC_E_INVALID_FOR_STATELESS_SERVICES`, `FABRIC_E_NODE_NOT_FOUND`;
    /// `E_INVALIDARG` when there is no secondary, or the other node cannot take it.
    pub fn move_secondary(
        &mut self,
        partition: PartitionId,
        from: &str,
        to: Option<&str>,
    ) -> Result<(), FabricError> {
        self.check_stateful(partition)?;
        self.check_nodes([Some(from), to])?;
        let found = self.existing_partition(partition)?;
        let mut secondaries = found.replicas.values().filter(|replica| {
            *replica.node == *from && replica.role != ReplicaRole::Primary && replica.is_counted()
        });
        let moved = secondaries.next().map(|replica| replica.key);
        self.move_replica(partition, moved, to, ReplicaRole::IdleSecondary)
    }

    /// Moves an instance from one node to another; `None`: any.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_PARTITION_NOT_FOUND`, `FABRIC_E_INVALID_FOR_STATEFUL_SERVICES`, `FABRIC_E_NODE_NOT_FOUND`;
    /// `E_INVALIDARG` when there is no instance, or the other node cannot take it.
    pub fn move_instance(
        &mut self,
        partition: PartitionId,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<(), FabricError> {
        self.check_nodes([from, to])?;
        let found = self.existing_partition(partition)?;
        if self.is_stateful(partition) {
            return Err(FabricError::new(
                ErrorCode::InvalidForStatefulServices,
                format!("partition '{partition}' is one of a stateful service"),
            ));
        }
        let instances = found.replicas.values().filter(|replica| {
            replica.is_counted() && from.is_none_or(|from| *replica.node == *from)
        });
        let moved = self.choose_victim(instances).map(|replica| replica.key);
        self.move_replica(partition, moved, to, ReplicaRole::None)
    }

    pub(super) fn move_replica(
        &mut self,
        partition: PartitionId,
        moved: Option<ReplicaRef>,
        to: Option<&str>,
        role: ReplicaRole,
    ) -> Result<(), FabricError> {
        let found = self.existing_partition(partition)?;
        let Some(moved) = moved else {
            return Err(FabricError::invalid_argument(format!(
                "partition '{partition}' has nothing there that could be moved"
            )));
        };
        let target = self.choose_node(found, to);
        let Some(target) = target.filter(|target| to.is_none_or(|to| **target == *to)) else {
            return Err(FabricError::invalid_argument(format!(
                "no node can take the replica of partition '{partition}'"
            )));
        };
        // One more instance for a moment: the old one leaves when it is no longer counted.
        if let Some(replica) = self.replica_mut(moved) {
            replica.intent = Intent::Leave;
        }
        // The replica becomes the primary only after the state is copied to it.
        let built_as = match role {
            ReplicaRole::Primary => ReplicaRole::IdleSecondary,
            role => role,
        };
        let placed = self.place(partition, &target, built_as);
        if role == ReplicaRole::Primary
            && let Some(heir) = placed.and_then(|placed| self.replica_mut(placed))
        {
            heir.heir = true;
        }
        // A replica with state leaves later, in `let_leavers_go`, after its replacement is ready.
        if role == ReplicaRole::None {
            self.close(moved);
        }
        self.settle();
        Ok(())
    }

    /// Removes an instance from the naming service and closes it after `delay`, like a scale-in or an
    /// upgrade.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_REPLICA_DOES_NOT_EXIST`; `FABRIC_E_INVALID_FOR_STATEFUL_SERVICES` for a replica of a
    /// stateful service, which is moved instead; `FABRIC_E_NOT_READY` when the instance is not ready, or
    /// drained already.
    pub fn drain_instance(&mut self, instance: ReplicaRef, delay: Span) -> Result<(), FabricError> {
        let found = self.existing_replica(instance)?;
        if self.is_stateful(instance.partition) {
            return Err(FabricError::new(
                ErrorCode::InvalidForStatefulServices,
                format!(
                    "replica {instance} keeps state: only instances of stateless services are drained"
                ),
            ));
        }
        if !found.is_resolvable() {
            return Err(FabricError::new(
                ErrorCode::NotReady,
                format!("instance {instance} is not in service"),
            ));
        }
        self.drain(instance, delay, Intent::Leave);
        self.settle();
        Ok(())
    }

    /// Restarts the process of a code package. `instance_id` is the intended run; 0: the present one.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`; `FABRIC_E_CODE_PACKAGE_NOT_FOUND` when no such process runs;
    /// `FABRIC_E_INSTANCE_ID_MISMATCH` when another run of it does.
    pub fn restart_code_package(
        &mut self,
        node: &str,
        process: &ProcessKey,
        instance_id: u64,
    ) -> Result<(), FabricError> {
        let entry = self.existing_node(node)?;
        // Instance id 0 matches every run of the code package.
        if instance_id != 0 {
            let packages = entry.host.code_packages(&process.package.application);
            let mut runs = packages.iter().filter(|found| {
                found.package == process.package && found.name == process.code_package
            });
            let run = runs.next().map(|found| found.main.instance_id);
            if let Some(run) = run.filter(|run| *run != instance_id) {
                return Err(FabricError::new(
                    ErrorCode::InstanceIdMismatch,
                    format!("the code package '{process}' has the instance id {run}"),
                ));
            }
        }
        self.crash_code_package(node, process, DEACTIVATED_EXIT_CODE)
    }

    /// Ends the process of a code package with an exit code: a crash, unless the code is 0.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`; `FABRIC_E_CODE_PACKAGE_NOT_FOUND` when no such process runs.
    pub fn crash_code_package(
        &mut self,
        node: &str,
        process: &ProcessKey,
        exit_code: i32,
    ) -> Result<(), FabricError> {
        let entry = self.existing_node(node)?;
        entry
            .host
            .exit(process, exit_code)
            .map_err(|error| FabricError::new(ErrorCode::CodePackageNotFound, error.to_string()))?;
        self.unheard = true;
        self.settle();
        Ok(())
    }

    fn check_on_node(&self, node: &str, key: ReplicaRef) -> Result<(), FabricError> {
        self.check_nodes([Some(node)])?;
        let replica = self.existing_replica(key)?;
        if *replica.node == *node {
            return Ok(());
        }
        Err(FabricError::new(
            ErrorCode::ReplicaDoesNotExist,
            format!(
                "replica {key} is not on node '{node}' but on '{}'",
                replica.node
            ),
        ))
    }

    fn check_nodes<const N: usize>(&self, nodes: [Option<&str>; N]) -> Result<(), FabricError> {
        for node in nodes.into_iter().flatten() {
            self.node(node).ok_or_else(|| no_node(node))?;
        }
        Ok(())
    }

    fn check_stateful(&self, partition: PartitionId) -> Result<(), FabricError> {
        self.existing_partition(partition)?;
        if self.is_stateful(partition) {
            return Ok(());
        }
        Err(FabricError::new(
            ErrorCode::InvalidForStatelessServices,
            format!("partition '{partition}' is one of a stateless service"),
        ))
    }
}
