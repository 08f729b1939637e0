//! Properties of names.

use crate::cluster::FabricName;
use crate::hosting::Timestamp;

/// A property of a name.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Property {
    /// The name.
    pub name: String,
    /// The value.
    pub value: PropertyValue,
    /// The writer's own name for the type of the value. Empty if there is none.
    pub custom_type: String,
    /// The name that it belongs to.
    pub parent: FabricName,
    /// The time of the last write.
    pub modified_at: Timestamp,
    /// The number that grows with each change in the whole naming service.
    pub sequence_number: i64,
}

/// The value of a property.
#[derive(Clone, Debug, PartialEq)]
pub enum PropertyValue {
    /// Bytes.
    Binary(Vec<u8>),
    /// A whole number.
    Int64(i64),
    /// A number.
    Double(f64),
    /// A text.
    String(String),
    /// A GUID, as text.
    Guid(String),
}

impl PropertyValue {
    /// Returns the word for its kind in responses.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Binary(_) => "Binary",
            Self::Int64(_) => "Int64",
            Self::Double(_) => "Double",
            Self::String(_) => "String",
            Self::Guid(_) => "Guid",
        }
    }

    /// Returns the size in bytes as the naming service stores the value: strings in UTF-16 with a final zero.
    pub fn size(&self) -> usize {
        match self {
            Self::Binary(bytes) => bytes.len(),
            Self::Int64(_) | Self::Double(_) => 8,
            Self::String(text) => (text.encode_utf16().count() + 1) * 2,
            Self::Guid(_) => 16,
        }
    }
}

/// Names below a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubNames {
    /// The names, in their order.
    pub names: Vec<FabricName>,
    /// The token to request the next page with. Empty on the last page.
    pub continuation_token: String,
}

/// A step of a batch, which takes effect as a whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub enum PropertyOperation {
    /// Writes a property.
    Put {
        /// The name of the property.
        name: String,
        /// The value.
        value: PropertyValue,
        /// The application's own name for the type of the value. Empty if there is none.
        custom_type: String,
    },
    /// Reads a property.
    Get {
        /// The name of the property.
        name: String,
        /// True if the value is requested too.
        include_value: bool,
    },
    /// Deletes a property.
    Delete {
        /// The name of the property.
        name: String,
    },
    /// Checks that a property exists, or that it does not. The batch fails otherwise.
    CheckExists {
        /// The name of the property.
        name: String,
        /// True if the property must exist, false if it must not.
        exists: bool,
    },
    /// Checks that a property has this sequence number. The batch fails otherwise.
    CheckSequence {
        /// The name of the property.
        name: String,
        /// The number.
        sequence_number: i64,
    },
    /// Checks that a property has this value. The batch fails otherwise.
    CheckValue {
        /// The name of the property.
        name: String,
        /// The value.
        value: PropertyValue,
    },
}

/// A property that a batch has read, and the step that read it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PropertyResult {
    /// The number of the step, from 0.
    pub operation: usize,
    /// The property.
    pub property: Property,
    /// True if the value was requested too.
    pub include_value: bool,
}

/// The outcome of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchOutcome {
    /// All steps succeeded.
    Done(Vec<PropertyResult>),
    /// The batch failed and changed nothing.
    Failed {
        /// The number of the step that failed, from 0.
        operation: usize,
        /// The reason.
        error: crate::cluster::FabricError,
    },
}
