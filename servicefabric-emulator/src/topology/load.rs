//! Parsing of topologies.

use super::{Topology, TopologyError};

impl Topology {
    /// Parses a topology in TOML.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Syntax`], with line and column. [`check`](Self::check) finds invalid values.
    pub fn from_toml(text: &str) -> Result<Self, TopologyError> {
        toml::from_str(text).map_err(|error| TopologyError::Syntax(error.to_string()))
    }

    /// Parses a topology in JSON.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Syntax`], with line and column. [`check`](Self::check) finds invalid values.
    pub fn from_json(text: &str) -> Result<Self, TopologyError> {
        serde_json::from_str(text).map_err(|error| TopologyError::Syntax(error.to_string()))
    }
}
