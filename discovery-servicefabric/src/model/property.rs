//! Properties that the naming service keeps for a name.

use serde::Deserialize;

use super::wire::{self, words};

words! {
    /// The kind of a property's value.
    PropertyKind, Invalid {
        /// Not known.
        Invalid,
        /// Bytes, as a list of numbers.
        Binary,
        /// A 64-bit number, as a text.
        Int64,
        /// A number.
        Double,
        /// A text.
        String,
        /// A GUID, as a text.
        Guid,
    }
}

/// A property of a name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct Property {
    /// The property's name.
    #[serde(deserialize_with = "wire::nullable")]
    pub name: String,
    /// The property's value, if it was requested.
    pub value: Option<PropertyValue>,
}

impl Property {
    /// The value, if it is a text.
    pub fn as_text(&self) -> Option<&str> {
        let value = self.value.as_ref()?;
        if value.kind != PropertyKind::String {
            return None;
        }
        value.data.as_str()
    }
}

/// A value with its kind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[non_exhaustive]
pub struct PropertyValue {
    /// The kind of the value.
    pub kind: PropertyKind,
    /// The value in its wire format.
    pub data: serde_json::Value,
}
