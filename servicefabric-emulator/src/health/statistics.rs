//! Counts of entities by their health.

use super::{EntityKind, HealthState};

/// The numbers of entities in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Ok.
    pub ok: u64,
    /// Warning.
    pub warning: u64,
    /// Error.
    pub error: u64,
}

impl Counts {
    fn slot(&mut self, state: HealthState) -> &mut u64 {
        match state {
            HealthState::Ok => &mut self.ok,
            HealthState::Warning => &mut self.warning,
            HealthState::Error => &mut self.error,
        }
    }

    /// Returns the total.
    pub fn total(self) -> u64 {
        self.ok + self.warning + self.error
    }

    /// Returns the worst state. Ok if the counts are zero.
    pub fn worst(self) -> HealthState {
        match self {
            Self { error: 1.., .. } => HealthState::Error,
            Self { warning: 1.., .. } => HealthState::Warning,
            Self { .. } => HealthState::Ok,
        }
    }
}

/// The counts of all kinds of entities below one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics([Counts; EntityKind::ALL.len()]);

impl Statistics {
    /// Returns the counts of one kind.
    pub fn of(&self, kind: EntityKind) -> Counts {
        self.0[kind as usize]
    }

    /// Returns the worst state of all kinds.
    pub fn worst(&self) -> HealthState {
        let worst = self.0.iter().map(|counts| counts.worst()).max();
        worst.unwrap_or(HealthState::Ok)
    }

    pub(crate) fn add(&mut self, kind: EntityKind, state: HealthState) {
        *self.0[kind as usize].slot(state) += 1;
    }

    pub(crate) fn remove(&mut self, kind: EntityKind, state: HealthState) {
        let slot = self.0[kind as usize].slot(state);
        *slot = slot.saturating_sub(1);
    }
}
