//! Clusters that each have a part of a key space.

use serde::{Deserialize, Serialize};

use crate::id::ClusterId;

/// Extension: clusters that each serve some values of a key, which every request carries.
///
/// A request is answered with 400 if it has no key, several different keys, or a key that belongs to no
/// partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct PartitionedClusters {
    /// The part of a request that holds its key.
    pub key: PartitionKey,
    /// The conversion of a key to a number. Used only by partitions with ranges.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub hash: PartitionHash,
    /// The partitions: all have a range of numbers that overlaps with no other, or all have a name.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub partitions: Vec<PartitionedCluster>,
}

/// The part of a request that holds its partition key. Exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct PartitionKey {
    /// The value of the header of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The value of the query parameter of this name, after decoding. Names are compared ignoring case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_parameter: Option<String>,
    /// The value of the parameter of this name in the route's path, after decoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_value: Option<String>,
}

/// The conversion of a request's key to the number that is looked up in ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PartitionHash {
    /// No conversion: the key is a signed 64-bit decimal number.
    #[default]
    None,
    /// A hash: the key's bytes are hashed with the 64-bit FNV-1a, into the numbers from the lowest of all
    /// ranges to the highest.
    Fnv1a64,
}

/// One cluster's part of the key space: a range of numbers or a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct PartitionedCluster {
    /// The cluster. Several partitions may name the same one.
    pub cluster_id: ClusterId,
    /// The least number of the range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_key: Option<i64>,
    /// The greatest number of the range, which belongs to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_key: Option<i64>,
    /// The key itself, which must be equal. Excludes `LowKey` and `HighKey`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Default for PartitionedCluster {
    /// No cluster, and no keys.
    fn default() -> Self {
        Self {
            cluster_id: ClusterId::from(String::new()),
            low_key: None,
            high_key: None,
            name: None,
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
