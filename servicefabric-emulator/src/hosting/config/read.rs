//! Parsing of settings in TOML and JSON.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{HostingConfig, SettingValue};

/// Deserialises a table of settings by name (`DeactivationScanInterval = 1800`), with lengths of time in
/// seconds or as texts. The rest are the defaults. The error has all problems. Warnings are lost:
/// [`HostingConfig::from_settings`] returns them.
impl<'de> Deserialize<'de> for HostingConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SettingsReader)
    }
}

struct SettingsReader;

impl<'de> Visitor<'de> for SettingsReader {
    type Value = HostingConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of hosting settings")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<HostingConfig, M::Error> {
        let mut settings: Vec<(String, SettingValue)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, SettingValue>()? {
            if settings.iter().any(|(known, _)| *known == name) {
                return Err(M::Error::custom(format_args!(
                    "setting `{name}` is given twice"
                )));
            }
            settings.push((name, value));
        }
        let pairs = settings.iter().map(|(name, value)| (name.as_str(), value));
        HostingConfig::from_settings(pairs)
            .map(|(config, _)| config)
            .map_err(|errors| {
                let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                M::Error::custom(texts.join("; "))
            })
    }
}
