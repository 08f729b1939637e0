//! The health states that a response includes.

use super::HealthState;

/// A bit mask of health states, as in queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateFilter(u32);

impl StateFilter {
    /// The default of the query, which includes all states for most queries.
    pub const DEFAULT: Self = Self(0);
    /// No state.
    pub const NONE: Self = Self(1);
    /// The state Ok.
    pub const OK: Self = Self(2);
    /// The state Warning.
    pub const WARNING: Self = Self(4);
    /// The state Error.
    pub const ERROR: Self = Self(8);
    /// All states.
    pub const ALL: Self = Self(0xFFFF);

    /// Creates a filter from the mask of a request. Unknown bits are ignored.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns true if no filter was given.
    pub const fn is_default(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the filter includes a state. The default includes all.
    pub const fn admits(self, state: HealthState) -> bool {
        let bit = match state {
            HealthState::Ok => Self::OK.0,
            HealthState::Warning => Self::WARNING.0,
            HealthState::Error => Self::ERROR.0,
        };
        self.is_default() || self.0 & bit != 0
    }
}
