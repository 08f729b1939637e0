//! Which health states an answer is to have.

use super::HealthState;

/// A bit mask of health states, as queries have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateFilter(u32);

impl StateFilter {
    /// What is usual for the question, which is all for most.
    pub const DEFAULT: Self = Self(0);
    /// Nothing.
    pub const NONE: Self = Self(1);
    /// What is Ok.
    pub const OK: Self = Self(2);
    /// What is Warning.
    pub const WARNING: Self = Self(4);
    /// What is Error.
    pub const ERROR: Self = Self(8);
    /// Everything.
    pub const ALL: Self = Self(0xFFFF);

    /// The mask of a request; bits that mean nothing are ignored.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Whether nothing was said.
    pub const fn is_default(self) -> bool {
        self.0 == 0
    }

    /// Whether something of this state belongs to the answer. Nothing said means everything.
    pub const fn admits(self, state: HealthState) -> bool {
        let bit = match state {
            HealthState::Ok => Self::OK.0,
            HealthState::Warning => Self::WARNING.0,
            HealthState::Error => Self::ERROR.0,
        };
        self.is_default() || self.0 & bit != 0
    }
}
