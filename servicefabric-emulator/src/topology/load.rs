//! Reading.

use super::{Topology, TopologyError};

impl Topology {
    /// Reads a topology that is written as TOML.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Syntax`], with line and column. What makes no sense is found by [`check`](Self::check).
    pub fn from_toml(text: &str) -> Result<Self, TopologyError> {
        toml::from_str(text).map_err(|error| TopologyError::Syntax(error.to_string()))
    }

    /// Reads a topology that is written as JSON.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Syntax`], with line and column. What makes no sense is found by [`check`](Self::check).
    pub fn from_json(text: &str) -> Result<Self, TopologyError> {
        serde_json::from_str(text).map_err(|error| TopologyError::Syntax(error.to_string()))
    }
}
