//! The timers of a node, in the order in which they fire.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::hosting::key::{PackageKey, ProcessKey, ReplicaKey, TypeKey};
use crate::hosting::timestamp::Timestamp;

/// The precedence of timers that are due at the same time.
///
/// So a restart that comes exactly at the end of the grace interval saves the service type, and a placement
/// exactly at the instant of the deactivation comes too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Process starts, registrations, deactivations that finish.
    Process,
    /// Attempts to download or activate, and their ends.
    Attempt,
    /// A waiting replica is polled.
    Poll,
    /// A service type is disabled.
    Disable,
    /// A service type was not registered in time.
    RegistrationTimeout,
    /// The failures of a process are reset.
    Reset,
    /// An unused package or application is deactivated.
    Deactivation,
    /// The scan for unused packages.
    Scan,
    /// A process ends by itself: an event from outside, which comes after all timers of its instant.
    Outside,
}

/// The event that a timer triggers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Timer {
    SetupEnds(ProcessKey),
    Start(ProcessKey),
    Register(ProcessKey),
    ProcessesStopped(PackageKey),
    AttemptStarts(PackageKey),
    AttemptEnds(PackageKey),
    Poll(ReplicaKey),
    Disable(TypeKey),
    RegistrationTimeout(TypeKey),
    Reset(ProcessKey),
    DeactivatePackage(PackageKey),
    DeactivateApplication(Arc<str>),
    RetryDeactivation(PackageKey),
    Scan,
    LifeEnds(ProcessKey, i32),
}

impl Timer {
    fn class(&self) -> Class {
        match self {
            Self::SetupEnds(_) | Self::Start(_) | Self::Register(_) | Self::ProcessesStopped(_) => {
                Class::Process
            }
            Self::AttemptStarts(_) | Self::AttemptEnds(_) => Class::Attempt,
            Self::Poll(_) => Class::Poll,
            Self::Disable(_) => Class::Disable,
            Self::RegistrationTimeout(_) => Class::RegistrationTimeout,
            Self::Reset(_) => Class::Reset,
            Self::DeactivatePackage(_)
            | Self::DeactivateApplication(_)
            | Self::RetryDeactivation(_) => Class::Deactivation,
            Self::Scan => Class::Scan,
            Self::LifeEnds(..) => Class::Outside,
        }
    }
}

/// A timer that was set. Its number is unique, so that the owner can tell if the firing timer is its current
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimerId {
    due: Timestamp,
    class: Class,
    sequence: u64,
}

impl TimerId {
    pub(super) fn due(self) -> Timestamp {
        self.due
    }
}

/// The timers of a node. Cancelled ones are removed at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Timers {
    queue: BTreeMap<TimerId, Timer>,
    sequence: u64,
}

impl Timers {
    /// Sets a timer. Without a time, sets none.
    pub(super) fn set(&mut self, due: Option<Timestamp>, timer: Timer) -> Option<TimerId> {
        let id = TimerId {
            due: due?,
            class: timer.class(),
            sequence: self.sequence,
        };
        self.sequence += 1;
        self.queue.insert(id, timer);
        Some(id)
    }

    /// Cancels a timer and clears the owner's reference. Returns true if it was set.
    pub(super) fn cancel(&mut self, owned: &mut Option<TimerId>) -> bool {
        owned
            .take()
            .is_some_and(|id| self.queue.remove(&id).is_some())
    }

    /// Takes the next timer that is due until `to`.
    pub(super) fn pop(&mut self, to: Timestamp) -> Option<(TimerId, Timer)> {
        let first = self.queue.first_entry()?;
        (first.key().due <= to).then(|| first.remove_entry())
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.queue.first_key_value().map(|(id, _)| id.due)
    }

    #[cfg(test)]
    pub(super) fn ids(&self) -> impl Iterator<Item = TimerId> {
        self.queue.keys().copied()
    }

    /// Removes all timers. The numbering continues.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
    }
}
