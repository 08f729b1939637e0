//! The hosting settings of a topology.

use indexmap::IndexMap;

use super::error::Problems;
use super::{Scalar, Topology};
use crate::hosting::{HostingConfig, SettingValue};

impl Topology {
    /// Returns warnings: settings that are valid, but may not be intended.
    pub fn warnings(&self) -> Vec<String> {
        let settings = values(&self.hosting);
        let settings = settings.iter().map(|(name, value)| (name.as_str(), value));
        HostingConfig::from_settings(settings).map_or_else(|_| Vec::new(), |(_, warnings)| warnings)
    }
}

pub(super) fn config(written: &IndexMap<String, Scalar>, problems: &mut Problems) -> HostingConfig {
    let settings = values(written);
    let settings = settings.iter().map(|(name, value)| (name.as_str(), value));
    HostingConfig::from_settings(settings).map_or_else(
        |errors| {
            for error in errors {
                problems.add("hosting", error.to_string(), "");
            }
            HostingConfig::default()
        },
        |(config, _)| config,
    )
}

fn values(written: &IndexMap<String, Scalar>) -> Vec<(String, SettingValue)> {
    let values = written.iter().map(|(name, value)| {
        let value = match value {
            Scalar::Bool(value) => SettingValue::Bool(*value),
            Scalar::Integer(value) => SettingValue::Integer(*value),
            Scalar::Float(value) => SettingValue::Number(*value),
            Scalar::Text(value) => SettingValue::Text(value.clone()),
        };
        (name.clone(), value)
    });
    values.collect()
}
