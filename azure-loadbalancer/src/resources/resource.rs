//! The common fields of all resources and their parts.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::ArmId;
use super::open_enum::open_enum;

/// A resource, or a part of one such as a rule: the common fields around its properties.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resource<P> {
    /// The id, which the resource manager sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ArmId>,
    /// The name within the resource group, or within the parent resource.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub name: String,
    /// The type, such as `Microsoft.Network/loadBalancers`. The resource manager sets it.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The region, such as `westeurope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The tags. The resource manager compares keys ignoring case.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub tags: BTreeMap<String, String>,
    /// The etag, for `If-Match`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The SKU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sku: Option<Sku>,
    /// The availability zones.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub zones: Vec<String>,
    /// The properties of this kind of resource.
    #[serde(default, deserialize_with = "null_as_default")]
    #[serde(bound(deserialize = "P: Default + Deserialize<'de>"))]
    pub properties: P,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl<P: Default> Resource<P> {
    /// Creates a part with only this name and its properties.
    pub fn named(name: impl Into<String>, properties: P) -> Self {
        Self {
            name: name.into(),
            properties,
            ..Self::default()
        }
    }
}

impl<P> Resource<P> {
    /// Returns the value of a tag, whose key is compared ignoring case.
    pub fn tag(&self, key: &str) -> Option<&str> {
        self.tags
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(key))
            .map(|(_, value)| value.as_str())
    }

    /// Returns true if the name is this one, ignoring case.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// A reference to a resource or to a part of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubResource {
    /// The id of the other resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ArmId>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl SubResource {
    /// Creates a reference to this id.
    pub fn to(id: ArmId) -> Self {
        Self {
            id: Some(id),
            other: Map::new(),
        }
    }

    /// Returns true if `reference` is present and leads to `id`.
    pub fn leads_to(reference: Option<&Self>, id: &ArmId) -> bool {
        reference.and_then(|reference| reference.id.as_ref()) == Some(id)
    }
}

/// The SKU of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sku {
    /// The name. Absent: basic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<SkuName>,
    /// All other fields, such as the tier.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Sku {
    /// Creates the SKU with this name, in the tier that the resource manager chooses.
    pub fn named(name: SkuName) -> Self {
        Self {
            name: Some(name),
            other: Map::new(),
        }
    }
}

open_enum! {
    /// The name of a SKU.
    SkuName {
        /// The old SKU, retired in September 2025.
        Basic = "Basic",
        /// The current SKU.
        Standard = "Standard",
    }
}

open_enum! {
    /// The state of the last write.
    ProvisioningState {
        /// The write succeeded.
        Succeeded = "Succeeded",
        /// The write failed, and the resource may not work.
        Failed = "Failed",
        /// The write was cancelled by another operation.
        Canceled = "Canceled",
        /// The resource is being created.
        Creating = "Creating",
        /// The resource is being changed.
        Updating = "Updating",
        /// The resource is being deleted.
        Deleting = "Deleting",
    }
}

impl ProvisioningState {
    /// Clears the state of a failed write, so that the planned resource differs from the current one: the
    /// resource manager repairs such a resource when it is written again, and rejects references to it until
    /// then.
    pub(crate) fn clear_failed(state: &mut Option<Self>) {
        state.take_if(|state| matches!(state, Self::Failed | Self::Canceled));
    }
}

/// Deserialises `null` as the default: the resource manager and its clients write either.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
