//! Stopping and starting of a node.

use super::Node;
use crate::hosting::deployed::{SlotStatus, TypeStatus};
use crate::hosting::description::ReplicaKind;
use crate::hosting::event::{Event, Rejection};
use crate::hosting::health::HealthEntity;
use crate::hosting::key::{PackageKey, ReplicaKey};

impl Node {
    /// Takes the node down. Everything on it is lost, except for replicas with persisted state, which return
    /// as existing ones at [`start`](Self::start). Does nothing if the node is down.
    pub fn stop(&mut self) {
        if !self.up {
            return;
        }
        self.up = false;
        self.timers.clear();
        self.scan = None;
        self.emit(Event::NodeStopped);
        let replicas: Vec<ReplicaKey> = self.slots.keys().cloned().collect();
        for replica in &replicas {
            self.lose_replica(replica);
        }
        // The failover manager forgets the blocked types of this node.
        let keys: Vec<PackageKey> = self.packages.keys().cloned().collect();
        for key in &keys {
            for service_type in &self.packages[key].types.clone() {
                if service_type.status == TypeStatus::Disabled {
                    self.emit(Event::TypeEnabled {
                        service_type: key.service_type(&service_type.name),
                    });
                }
            }
        }
        self.packages.clear();
        self.applications.clear();
        let mut entities: Vec<HealthEntity> = self
            .health
            .keys()
            .map(|(entity, _)| entity.clone())
            .collect();
        entities.dedup();
        for entity in &entities {
            self.retract_all(entity);
        }
    }

    fn lose_replica(&mut self, replica: &ReplicaKey) {
        let Some(slot) = self.slots.get_mut(replica) else {
            return;
        };
        slot.poll = None;
        slot.deferrals = 0;
        slot.deferral = None;
        let was = std::mem::replace(&mut slot.status, SlotStatus::Waiting);
        let persisted = slot.placement.persisted;
        if persisted {
            slot.placement.kind = ReplicaKind::Existing;
        }
        let placement = slot.placement.clone();
        if was == SlotStatus::Open {
            let package = &self.packages[&placement.package];
            let hosted = package
                .service_type(&placement.service_type)
                .expect("an open replica has its type");
            let process = placement.package.process(&package.about(hosted.code).name);
            self.emit(Event::ReplicaDown {
                replica: replica.clone(),
                process,
            });
        }
        if !persisted {
            self.reject(replica, Rejection::NodeStopped);
        }
    }

    /// Brings a stopped node up again. Replicas with persisted state are opened at once, and scan intervals
    /// start now. Does nothing if the node is up.
    pub fn start(&mut self) {
        if self.up {
            return;
        }
        self.up = true;
        self.started_at = self.now;
        self.emit(Event::NodeStarted);
        let replicas: Vec<ReplicaKey> = self.slots.keys().cloned().collect();
        for replica in &replicas {
            self.poll(replica);
        }
    }

    /// Stops and starts the node at the same instant.
    pub fn restart(&mut self) {
        self.stop();
        self.start();
    }
}
