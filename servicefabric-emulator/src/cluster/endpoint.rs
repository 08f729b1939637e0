//! Addresses of replicas: generated from ports of their node, published by a workload, or overridden by a
//! test.

use std::collections::BTreeSet;

use super::effect::{Effect, OpenedReplica};
use super::entity::{EndpointResource, Intent, ReplicaRole, ReplicaStatus};
use super::error::{ErrorCode, FabricError};
use super::identity::ReplicaRef;
use super::state::Cluster;
use super::timer::ClusterTimer;
use crate::hosting::Span;

/// The maximum length of an address, in bytes.
const MAX_ADDRESS: usize = 64 * 1024;

/// The pool of ports for endpoints without a fixed one.
#[derive(Clone, Debug)]
pub(super) struct PortPool {
    first: u16,
    next: u32,
    last: u16,
    free: BTreeSet<u16>,
}

impl PortPool {
    pub(super) fn new((first, last): (u16, u16)) -> Self {
        Self {
            first,
            next: u32::from(first),
            last,
            free: BTreeSet::new(),
        }
    }

    /// Returns a free port, as long as there is one.
    fn take(&mut self) -> u16 {
        // Unused ports come first, so that a released port is not reused at once.
        if let Ok(port) = u16::try_from(self.next)
            && port <= self.last
        {
            self.next += 1;
            return port;
        }
        // A node of an emulated cluster may have more replicas than ports: then some share one. No program
        // listens on it.
        self.free.pop_first().unwrap_or(self.first)
    }

    fn give_back(&mut self, port: u16) {
        self.free.insert(port);
    }
}

impl Cluster {
    /// Requires a [published](Self::publish_address) address before a replica becomes ready, from now on.
    /// Replicas that are ready keep their addresses.
    pub fn attach_workloads(&mut self) {
        self.workloads = true;
    }

    /// Publishes the address of a replica that now listens, usually
    /// `{"Endpoints":{"http":"http://127.0.0.1:8080"}}`.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_REPLICA_DOES_NOT_EXIST` if it no longer exists, `FABRIC_E_NOT_READY` if it is not being
    /// opened, `FABRIC_E_VALUE_TOO_LARGE` for more than 64 KiB.
    pub fn publish_address(
        &mut self,
        replica: ReplicaRef,
        address: &str,
    ) -> Result<(), FabricError> {
        if address.len() > MAX_ADDRESS {
            return Err(FabricError::new(
                ErrorCode::ValueTooLarge,
                "an address has at most 65536 bytes",
            ));
        }
        let found = self.existing_replica(replica)?;
        match found.status {
            ReplicaStatus::InBuild => self.become_ready(replica, address.to_owned()),
            ReplicaStatus::Ready => self.show_address(replica, address.to_owned()),
            ReplicaStatus::Standby | ReplicaStatus::Down | ReplicaStatus::Dropped => {
                return Err(FabricError::new(
                    ErrorCode::NotReady,
                    format!("replica {replica} is not being opened"),
                ));
            }
        }
        self.settle();
        Ok(())
    }

    /// Reports that a replica could not be opened. It is dropped, and another one is placed after the retry
    /// interval of the reconfiguration agent.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_REPLICA_DOES_NOT_EXIST` if it no longer exists.
    pub fn open_failed(&mut self, replica: ReplicaRef, reason: &str) -> Result<(), FabricError> {
        let node = self.existing_replica(replica)?.node.clone();
        self.say_open_failed(replica.partition, replica, reason);
        // The node is left out for a while, so that the next attempt runs on another one.
        self.reject(replica.partition, node.clone());
        self.close_in_hosting(replica, &node);
        self.forget_replica(replica);
        self.settle();
        Ok(())
    }

    /// Handles a replica that hosting has opened: requests its workload, or generates an address.
    pub(super) fn open(&mut self, key: ReplicaRef) {
        let listeners = self.listeners_of(key);
        let now = self.now;
        if let Some(replica) = self.replica_mut(key) {
            replica.opened = true;
            if replica.status == ReplicaStatus::Down {
                // The replica has returned, and is rebuilt from the others.
                replica.status = ReplicaStatus::InBuild;
                replica.since = now;
                self.dirty.insert(key.partition);
            }
        }
        if self.workloads {
            if let Some(opened) = self.opened_replica(key, listeners) {
                self.want(Effect::Open(opened));
            }
            return;
        }
        if let Some(address) = self.make_address(key, &listeners) {
            self.become_ready(key, address);
        }
    }

    /// Returns the listeners of a replica, from the version of its package on its node.
    fn listeners_of(&self, key: ReplicaRef) -> Vec<EndpointResource> {
        let found = self.replica(key).and_then(|replica| {
            let service = self
                .services
                .get(&self.partitions.get(&key.partition)?.service)?;
            let version = self.version_on(&replica.node, &service.application)?;
            let application = self.applications.get(&service.application)?;
            let declared = self.types.get(&(application.type_name.clone(), version))?;
            let (manifest, service_type) = declared.service_type(&service.type_name)?;
            let endpoints = manifest.endpoints.iter();
            let endpoints =
                endpoints.filter(|endpoint| service_type.listeners.contains(&endpoint.name));
            Some(endpoints.cloned().collect())
        });
        found.unwrap_or_default()
    }

    fn opened_replica(
        &self,
        key: ReplicaRef,
        listeners: Vec<EndpointResource>,
    ) -> Option<OpenedReplica> {
        let replica = self.replica(key)?;
        let partition = self.partitions.get(&key.partition)?;
        let service = self.services.get(&partition.service)?;
        let entry = self.nodes.get(&replica.node)?;
        Some(OpenedReplica {
            replica: key,
            partition: partition.information.clone(),
            node: replica.node.clone(),
            node_address: entry.node.address.clone(),
            service: service.name.clone(),
            service_type: service.type_name.clone(),
            application: service.application.clone(),
            code_version: self.version_on(&replica.node, &service.application)?,
            kind: service.kind,
            role: replica.role,
            listeners,
        })
    }

    /// Generates an address for each listener, with the port of the manifest or one of the node.
    fn make_address(&mut self, key: ReplicaRef, listeners: &[EndpointResource]) -> Option<String> {
        let replica = self
            .partitions
            .get_mut(&key.partition)?
            .replicas
            .get_mut(&key.replica)?;
        let entry = self.nodes.get_mut(&replica.node)?;
        let mut endpoints = Vec::new();
        for listener in listeners {
            let port = listener.port.unwrap_or_else(|| {
                let port = entry.ports.take();
                replica.ports.push(port);
                port
            });
            let (protocol, path) = (&listener.protocol, &listener.path);
            let url = format!("{protocol}://{}:{port}{path}", entry.node.address);
            endpoints.push(format!("{}:{}", quoted(&listener.name), quoted(&url)));
        }
        Some(format!("{{\"Endpoints\":{{{}}}}}", endpoints.join(",")))
    }

    /// Returns the ports of a replica to its node.
    pub(super) fn release_ports(&mut self, key: ReplicaRef) {
        let replica = self.partitions.get_mut(&key.partition);
        let Some(replica) = replica.and_then(|found| found.replicas.get_mut(&key.replica)) else {
            return;
        };
        if let Some(entry) = self.nodes.get_mut(&replica.node) {
            for port in replica.ports.drain(..) {
                entry.ports.give_back(port);
            }
        }
    }

    /// Makes a replica ready that listens at this address.
    pub(super) fn become_ready(&mut self, key: ReplicaRef, address: String) {
        let now = self.now;
        let Some(partition) = self.partitions.get_mut(&key.partition) else {
            return;
        };
        let alone = partition.primary().is_none();
        let stateful = partition.epoch_of_stateful();
        let Some(replica) = partition.replicas.get_mut(&key.replica) else {
            return;
        };
        replica.last_in_build = now.since(replica.since);
        replica.status = ReplicaStatus::Ready;
        replica.since = now;
        if replica.intent == Intent::Upgrade {
            replica.intent = Intent::Stay;
        }
        // While a fault overrides the address, the real one is only stored.
        match &mut replica.hidden_address {
            Some(hidden) => *hidden = address,
            None => replica.address = address,
        }
        let before = replica.role;
        // A partition without a primary takes its first ready replica.
        if stateful && alone {
            replica.role = ReplicaRole::Primary;
        } else if stateful && replica.role != ReplicaRole::Primary {
            replica.role = ReplicaRole::ActiveSecondary;
        }
        let role = replica.role;
        // The first primary and the replacement of a lost one are new configurations.
        if stateful && (alone || partition.epoch.configuration_version == 0) {
            partition.epoch.configuration_version += 1;
        }
        partition.lookup += 1;
        if role != before {
            self.want(Effect::Role { replica: key, role });
        }
        self.say_replica_is_open(key);
        self.dirty.insert(key.partition);
    }

    /// Shows another address of a ready replica.
    fn show_address(&mut self, key: ReplicaRef, address: String) {
        if let Some(partition) = self.partitions.get_mut(&key.partition)
            && let Some(replica) = partition.replicas.get_mut(&key.replica)
        {
            replica.address = address;
            partition.lookup += 1;
        }
    }

    /// Shows this address in place of the published one: any text, even an empty one. `None` ends the
    /// override.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_REPLICA_DOES_NOT_EXIST`.
    pub fn override_address(
        &mut self,
        replica: ReplicaRef,
        address: Option<&str>,
    ) -> Result<(), FabricError> {
        self.existing_replica(replica)?;
        let partition = self.partitions.get_mut(&replica.partition);
        let found = partition.and_then(|found| found.replicas.get_mut(&replica.replica));
        let Some(found) = found else {
            return Ok(());
        };
        let shown = match (address, found.hidden_address.take()) {
            (Some(address), hidden) => {
                // A second override keeps the real address that the first one hid.
                found.hidden_address = Some(hidden.unwrap_or_else(|| found.address.clone()));
                address.to_owned()
            }
            (None, Some(hidden)) => hidden,
            (None, None) => return Ok(()),
        };
        self.show_address(replica, shown);
        Ok(())
    }

    /// Changes the generated address of a replica every `period`. Zero ends that.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_REPLICA_DOES_NOT_EXIST`; `E_INVALIDARG` for a period below 100 ms that is not zero.
    pub fn flap_address(&mut self, replica: ReplicaRef, period: Span) -> Result<(), FabricError> {
        self.existing_replica(replica)?;
        if period != Span::ZERO && period < Span::from_millis(100) {
            return Err(FabricError::invalid_argument(
                "an address changes every 100 ms at most",
            ));
        }
        let partition = self.partitions.get_mut(&replica.partition);
        let found = partition.and_then(|found| found.replicas.get_mut(&replica.replica));
        let Some(found) = found else {
            return Ok(());
        };
        let before = found.flapping.take();
        if period != Span::ZERO {
            found.flapping = Some(period);
            // A pending timer continues with the new period.
            if before.is_none() {
                self.plan(period, ClusterTimer::Flap(replica));
            }
        }
        Ok(())
    }

    pub(super) fn flap(&mut self, key: ReplicaRef) {
        let Some(replica) = self.replica(key) else {
            return;
        };
        let Some(period) = replica.flapping else {
            return;
        };
        if replica.status == ReplicaStatus::Ready && replica.hidden_address.is_none() {
            self.release_ports(key);
            let listeners = self.listeners_of(key);
            // The ports released just now are used last, so that the address changes.
            if let Some(address) = self.make_address(key, &listeners) {
                self.show_address(key, address);
            }
        }
        self.plan(period, ClusterTimer::Flap(key));
    }
}

/// Returns a text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_given_once_while_there_are_enough() {
        let mut pool = PortPool::new((20_000, 20_002));
        let taken: Vec<u16> = (0..3).map(|_| pool.take()).collect();
        assert_eq!(taken, [20_000, 20_001, 20_002]);
        assert_eq!(pool.take(), 20_000, "all are taken: one is shared");
        pool.give_back(20_001);
        assert_eq!(pool.take(), 20_001);
    }

    #[test]
    fn a_pool_that_ends_at_the_last_port_does_not_overflow() {
        let mut pool = PortPool::new((65_535, 65_535));
        assert_eq!(pool.take(), 65_535);
        assert_eq!(pool.take(), 65_535);
    }
}
