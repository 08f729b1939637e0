//! Consul's data, in its own terms.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer};

/// The tags of each service of a datacenter: the union of the tags of all its instances, healthy or not.
pub type ServiceTags = BTreeMap<String, Vec<String>>;

/// The status of a check, or of an instance with all its checks. The worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HealthStatus {
    /// The status `passing`.
    Passing,
    /// The status `warning`: the instance works, but needs attention.
    Warning,
    /// The status `critical`, or an unknown status.
    Critical,
    /// An instance or node that an operator has taken out of service.
    Maintenance,
}

impl HealthStatus {
    /// Consul's name for the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Warning => "warning",
            Self::Critical => "critical",
            Self::Maintenance => "maintenance",
        }
    }

    fn parse(word: &str) -> Self {
        match word {
            "passing" => Self::Passing,
            "warning" => Self::Warning,
            "maintenance" => Self::Maintenance,
            _ => Self::Critical,
        }
    }
}

impl fmt::Display for HealthStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for HealthStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(Self::parse(&word))
    }
}

/// A node: a machine with an agent, or an external one that was registered.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct Node {
    /// The node's name, unique in its datacenter.
    #[serde(rename = "Node")]
    pub name: String,
    /// Address of the node.
    pub address: String,
    /// The datacenter of the node.
    pub datacenter: String,
    /// Free text by key.
    #[serde(deserialize_with = "null_as_default")]
    pub meta: BTreeMap<String, String>,
}

/// An instance of a service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct Service {
    /// The id, unique only on its node.
    #[serde(rename = "ID")]
    pub id: String,
    /// The service's name.
    #[serde(rename = "Service")]
    pub name: String,
    /// Free text.
    #[serde(deserialize_with = "null_as_default")]
    pub tags: Vec<String>,
    /// Address of the instance. Empty for the address of its node.
    pub address: String,
    /// The instance's port. 0 if it has none.
    pub port: u16,
    /// Free text by key.
    #[serde(deserialize_with = "null_as_default")]
    pub meta: BTreeMap<String, String>,
    /// The instance's share of the requests.
    #[serde(deserialize_with = "null_as_default")]
    pub weights: ServiceWeights,
    /// Addresses for clients in other networks: `wan`, `lan`.
    #[serde(deserialize_with = "null_as_default")]
    pub tagged_addresses: BTreeMap<String, TaggedAddress>,
}

/// The address of an instance for clients in another network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct TaggedAddress {
    /// The IP address or name.
    pub address: String,
    /// The port.
    pub port: u16,
}

/// An instance's share of the requests, by its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct ServiceWeights {
    /// The weight of an instance whose checks all pass.
    pub passing: u32,
    /// The weight of an instance with a check that warns.
    pub warning: u32,
}

impl Default for ServiceWeights {
    fn default() -> Self {
        Self {
            passing: 1,
            warning: 1,
        }
    }
}

/// A check of an instance or of a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct Check {
    /// The node that it runs on.
    #[serde(default)]
    pub node: String,
    /// The id of the instance, unique on its node.
    #[serde(rename = "CheckID", default)]
    pub id: String,
    /// The status.
    pub status: HealthStatus,
    /// The instance that it is for; empty: for the node, and so for all instances on it.
    #[serde(rename = "ServiceID", default)]
    pub service_id: String,
    /// The service of the checked instance; empty for a check of a node.
    #[serde(default)]
    pub service_name: String,
    /// The tags of that instance.
    #[serde(default, deserialize_with = "null_as_default")]
    pub service_tags: Vec<String>,
    /// Moves when anything in the check does.
    #[serde(default)]
    pub modify_index: u64,
}

/// The id of Consul's check for a node in maintenance.
const NODE_MAINTENANCE: &str = "_node_maintenance";
const SERVICE_MAINTENANCE: &str = "_service_maintenance:";

/// An instance with its node and its checks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct HealthEntry {
    /// The node that the instance is on.
    #[serde(deserialize_with = "null_as_default")]
    pub node: Node,
    /// The instance.
    #[serde(deserialize_with = "null_as_default")]
    pub service: Service,
    /// The checks of both. An instance without any counts as passing.
    #[serde(deserialize_with = "null_as_default")]
    pub checks: Vec<Check>,
}

impl HealthEntry {
    /// The address of the instance: its own, or that of its node.
    pub fn address(&self) -> &str {
        match self.service.address.is_empty() {
            true => &self.node.address,
            false => &self.service.address,
        }
    }

    /// The worst of its checks.
    pub fn status(&self) -> HealthStatus {
        let statuses = self.checks.iter().map(|check| {
            let is_maintenance =
                check.id == NODE_MAINTENANCE || check.id.starts_with(SERVICE_MAINTENANCE);
            match is_maintenance {
                true => HealthStatus::Maintenance,
                false => check.status,
            }
        });
        statuses.max().unwrap_or(HealthStatus::Passing)
    }
}

/// Reads `null` as the default, since Consul writes it for empty values.
pub(super) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(checks: &serde_json::Value) -> HealthEntry {
        let entry = json!({
            "Node": {"ID": "x", "Node": "n1", "Address": "10.0.0.1", "Datacenter": "sas", "Meta": null, "TaggedAddresses": null},
            "Service": {
                "ID": "web-1", "Service": "web", "Tags": null, "Address": "", "Port": 80, "Meta": null,
                "Weights": {"Passing": 3, "Warning": 1}, "EnableTagOverride": false, "Proxy": {"Mode": ""},
            },
            "Checks": checks,
        });
        serde_json::from_value(entry).unwrap()
    }

    #[test]
    fn the_worst_check_is_the_status() {
        let check = |id: &str, status: &str| json!({"Node": "n1", "CheckID": id, "Status": status});
        for (checks, status) in [
            (json!(null), HealthStatus::Passing),
            (json!([]), HealthStatus::Passing),
            (
                json!([check("serfHealth", "passing"), check("c", "warning")]),
                HealthStatus::Warning,
            ),
            (
                json!([check("a", "critical"), check("c", "warning")]),
                HealthStatus::Critical,
            ),
            (
                json!([check("a", "brand-new-word")]),
                HealthStatus::Critical,
            ),
            (
                json!([check("_node_maintenance", "critical")]),
                HealthStatus::Maintenance,
            ),
            (
                json!([check("_service_maintenance:web-1", "critical")]),
                HealthStatus::Maintenance,
            ),
        ] {
            assert_eq!(entry(&checks).status(), status, "{checks}");
        }
    }

    #[test]
    fn an_instance_without_an_address_is_where_its_node_is() {
        let mut entry = entry(&json!([]));
        assert_eq!(entry.address(), "10.0.0.1");
        entry.service.address = "10.9.9.9".to_owned();
        assert_eq!(entry.address(), "10.9.9.9");
        assert_eq!(
            entry.service.weights,
            ServiceWeights {
                passing: 3,
                warning: 1
            }
        );
    }
}
