//! Opening and closing of replicas. The node polls each waiting replica periodically.

use super::Node;
use super::error::NodeError;
use super::state::{PackageState, Slot};
use super::timers::Timer;
use crate::hosting::config::Profile;
use crate::hosting::deployed::{SlotStatus, TypeStatus};
use crate::hosting::description::{Placement, ReplicaKind};
use crate::hosting::event::{Deferral, Event, Rejection};
use crate::hosting::key::{PackageKey, ReplicaKey};
use crate::hosting::timestamp::Span;

/// The node's response to a request for a replica.
enum PlacementResult {
    Open,
    Reject(Rejection),
    Defer(Deferral),
    /// The package is not on the node and must be downloaded.
    Start,
}

impl Node {
    /// Places a replica: the node downloads and activates its package if needed, and opens the replica as
    /// soon as its type is registered.
    ///
    /// # Errors
    /// The package or the type is unknown, the replica is here already, or the node is down.
    pub fn place(&mut self, placement: Placement) -> Result<(), NodeError> {
        self.check_up()?;
        if self
            .description(&placement.package)?
            .host_of(&placement.service_type)
            .is_none()
        {
            return Err(NodeError::UnknownType {
                service_type: placement.service_type.to_string(),
                package: placement.package,
            });
        }
        let replica = placement.replica.clone();
        if self.slots.contains_key(&replica) {
            return Err(NodeError::ReplicaExists { replica });
        }
        self.emit(Event::ReplicaPlaced {
            replica: replica.clone(),
            package: placement.package.clone(),
            service_type: placement.service_type.clone(),
        });
        self.slots_of
            .entry(placement.package.clone())
            .or_default()
            .insert(replica.clone());
        let slot = Slot {
            placement,
            status: SlotStatus::Waiting,
            poll: None,
            deferrals: 0,
            deferral: None,
        };
        self.slots.insert(replica.clone(), slot);
        self.poll(&replica);
        Ok(())
    }

    /// Closes a replica, open or not. The node forgets it, and no longer uses its package for it.
    ///
    /// # Errors
    /// There is no such replica.
    pub fn close(&mut self, replica: &ReplicaKey) -> Result<(), NodeError> {
        if !self.slots.contains_key(replica) {
            return Err(NodeError::UnknownReplica {
                replica: replica.clone(),
            });
        }
        self.remove_slot(replica);
        Ok(())
    }

    pub(super) fn remove_slot(&mut self, replica: &ReplicaKey) {
        let Some(slot) = self.take_slot(replica) else {
            return;
        };
        self.emit(Event::ReplicaClosed {
            replica: replica.clone(),
        });
        if slot.status == SlotStatus::Open {
            self.decrement_usage(&slot.placement.package);
        } else {
            // It may have been the last reason to keep an upgraded package.
            self.catch_up_deactivation(&slot.placement.package);
        }
    }

    /// Returns true if replicas of a package instance wait to be opened.
    pub(super) fn has_waiting(&self, package: &PackageKey) -> bool {
        let mut replicas = self.slots_of.get(package).into_iter().flatten();
        replicas.any(|replica| self.waiting(replica).is_some())
    }

    fn take_slot(&mut self, replica: &ReplicaKey) -> Option<Slot> {
        let mut slot = self.slots.remove(replica)?;
        self.timers.cancel(&mut slot.poll);
        let package = &slot.placement.package;
        if let Some(replicas) = self.slots_of.get_mut(package) {
            replicas.remove(replica);
            if replicas.is_empty() {
                self.slots_of.remove(package);
            }
        }
        Some(slot)
    }

    /// Tries to open a replica that waits.
    pub(super) fn poll(&mut self, replica: &ReplicaKey) {
        let Some(placement) = self.waiting(replica).map(|slot| slot.placement.clone()) else {
            return;
        };
        let mut answer = self.answer(&placement);
        if matches!(answer, PlacementResult::Start) {
            self.start_operation(&placement.package);
            if self.waiting(replica).is_none() {
                // The replica was opened on the way, since everything succeeded.
                return;
            }
            answer = self.answer(&placement);
        }
        match answer {
            PlacementResult::Open => self.open(replica),
            PlacementResult::Reject(reason) => self.reject(replica, reason),
            PlacementResult::Defer(reason) => self.defer(&placement, reason),
            // The operation was abandoned at once.
            PlacementResult::Start => self.defer(&placement, Deferral::PackageStarting),
        }
    }

    fn waiting(&self, replica: &ReplicaKey) -> Option<&Slot> {
        self.slots
            .get(replica)
            .filter(|slot| slot.status == SlotStatus::Waiting)
    }

    /// Returns true if a replica has left its state on this node.
    pub(super) fn is_stored(&self, replica: &ReplicaKey) -> bool {
        self.slots.get(replica).is_some_and(|slot| {
            slot.placement.persisted && slot.placement.kind == ReplicaKind::Existing
        })
    }

    fn answer(&self, placement: &Placement) -> PlacementResult {
        let key = &placement.package;
        if self
            .applications
            .get(&key.application)
            .is_some_and(|application| application.closing)
        {
            return PlacementResult::Defer(Deferral::Closing);
        }
        let Some(package) = self.packages.get(key) else {
            return PlacementResult::Start;
        };
        if package.state == PackageState::Deactivating {
            return PlacementResult::Defer(Deferral::Closing);
        }
        match package
            .service_type(&placement.service_type)
            .map(|known| known.status)
        {
            Some(TypeStatus::Registered) => PlacementResult::Open,
            // A new replica may go to another node. An existing one waits, since its state is here.
            Some(TypeStatus::Disabled) if placement.kind == ReplicaKind::New => {
                PlacementResult::Reject(Rejection::TypeDisabled)
            }
            Some(TypeStatus::Disabled) => PlacementResult::Defer(Deferral::TypeDisabled),
            _ if package.state == PackageState::Active => {
                PlacementResult::Defer(Deferral::TypeNotRegistered)
            }
            _ => PlacementResult::Defer(Deferral::PackageStarting),
        }
    }

    fn open(&mut self, replica: &ReplicaKey) {
        let Some(slot) = self.slots.get_mut(replica) else {
            return;
        };
        slot.status = SlotStatus::Open;
        slot.deferrals = 0;
        slot.deferral = None;
        self.timers.cancel(&mut slot.poll);
        if slot.placement.persisted {
            // Its state is on this node from now on. The replica waits for this node, whatever happens to its
            // process.
            slot.placement.kind = ReplicaKind::Existing;
        }
        let placement = slot.placement.clone();
        let package = &self.packages[&placement.package];
        let hosted = package
            .service_type(&placement.service_type)
            .expect("only a registered type opens replicas");
        let process = placement.package.process(&package.about(hosted.code).name);
        let process_id = package.codes[hosted.code]
            .main
            .process_id
            .expect("the process of a registered type runs");
        self.emit(Event::ReplicaOpened {
            replica: replica.clone(),
            process,
            process_id,
        });
        self.increment_usage(&placement.package);
    }

    pub(super) fn reject(&mut self, replica: &ReplicaKey, reason: Rejection) {
        let slot = self.take_slot(replica);
        self.emit(Event::PlacementRejected {
            replica: replica.clone(),
            reason,
        });
        if let Some(slot) = slot {
            self.catch_up_deactivation(&slot.placement.package);
        }
    }

    fn defer(&mut self, placement: &Placement, reason: Deferral) {
        if self.config.profile == Profile::Runtime64 {
            self.block_when_asked(&placement.package.service_type(&placement.service_type));
        }
        let limit = self.config.replica_open_failure_max_retry_threshold;
        let replica = &placement.replica;
        let retry_at = self.now.after(self.poll_interval());
        let Some(slot) = self.slots.get_mut(replica) else {
            return;
        };
        slot.deferrals = slot.deferrals.saturating_add(1);
        // The first poll is no retry: this many deferrals are as many failed retries and one more.
        if placement.kind == ReplicaKind::New && limit.is_some_and(|limit| slot.deferrals > limit) {
            self.reject(replica, Rejection::TooManyRetries);
            return;
        }
        self.timers.cancel(&mut slot.poll);
        slot.poll = self.timers.set(retry_at, Timer::Poll(replica.clone()));
        // Only a new reason is logged.
        if slot.deferral.replace(reason) != Some(reason) {
            self.emit(Event::PlacementDeferred {
                replica: replica.clone(),
                reason,
                retry_at,
            });
        }
    }

    /// Returns the poll interval. It is never zero, since polls without a pause would stop the clock.
    fn poll_interval(&self) -> Span {
        // Without a wait, the polls of one moment would never end.
        self.config
            .rap_message_retry_interval
            .max(self.config.minimum_interval_between_rap_message_retry)
            .max(Span::from_millis(1))
    }

    /// Opens all replicas that wait for a type which was just registered.
    pub(super) fn open_waiting(&mut self, package: &PackageKey, service_type: &str) {
        for replica in self.replicas_of(package, service_type, SlotStatus::Waiting) {
            self.open(&replica);
        }
    }

    /// Lets the replicas of a type wait again after its process has ended.
    pub(super) fn replicas_down(
        &mut self,
        package: &PackageKey,
        service_type: &str,
        code_package: &str,
    ) {
        let retry_at = self.now.after(self.poll_interval());
        for replica in self.replicas_of(package, service_type, SlotStatus::Open) {
            let Some(slot) = self.slots.get_mut(&replica) else {
                continue;
            };
            slot.status = SlotStatus::Waiting;
            slot.poll = self.timers.set(retry_at, Timer::Poll(replica.clone()));
            self.emit(Event::ReplicaDown {
                replica,
                process: package.process(code_package),
            });
            self.decrement_usage(package);
        }
    }

    /// Returns the replicas of a type in a package instance with this status, ordered by key.
    pub(super) fn replicas_of(
        &self,
        package: &PackageKey,
        service_type: &str,
        status: SlotStatus,
    ) -> Vec<ReplicaKey> {
        let replicas = self.slots_of.get(package).into_iter().flatten();
        replicas
            .filter(|replica| {
                let slot = &self.slots[*replica];
                slot.status == status && *slot.placement.service_type == *service_type
            })
            .cloned()
            .collect()
    }
}
