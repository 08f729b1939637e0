//! Properties of names.

use crate::cluster::FabricName;
use crate::hosting::Moment;

/// A property of a name.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Property {
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: PropertyValue,
    /// A word of the one who put it that says what the value means; empty for none.
    pub custom_type: String,
    /// The name that it belongs to.
    pub parent: FabricName,
    /// When it was last put.
    pub modified_at: Moment,
    /// Grows with each change in the whole naming service.
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
    /// The word for its kind in answers.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Binary(_) => "Binary",
            Self::Int64(_) => "Int64",
            Self::Double(_) => "Double",
            Self::String(_) => "String",
            Self::Guid(_) => "Guid",
        }
    }

    /// Its size in bytes, as the naming service keeps it: texts in UTF-16 with a zero at the end.
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
    /// What to ask for the next page with; empty on the last.
    pub continuation_token: String,
}

/// A step of a batch. A batch is done as a whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub enum PropertyOperation {
    /// Puts a property.
    Put {
        /// Its name.
        name: String,
        /// Its value.
        value: PropertyValue,
        /// What the value means; empty for nothing.
        custom_type: String,
    },
    /// Reads a property.
    Get {
        /// Its name.
        name: String,
        /// Whether its value is wanted.
        include_value: bool,
    },
    /// Deletes a property.
    Delete {
        /// Its name.
        name: String,
    },
    /// Goes on only if a property is there, or is not.
    CheckExists {
        /// Its name.
        name: String,
        /// Whether it has to be there.
        exists: bool,
    },
    /// Goes on only if a property has this sequence number.
    CheckSequence {
        /// Its name.
        name: String,
        /// The number.
        sequence_number: i64,
    },
    /// Goes on only if a property has this value.
    CheckValue {
        /// Its name.
        name: String,
        /// The value.
        value: PropertyValue,
    },
}

/// What a batch read: the step, and the property that it found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PropertyResult {
    /// The number of the step, from 0.
    pub operation: usize,
    /// The property.
    pub property: Property,
    /// Whether its value was asked for.
    pub include_value: bool,
}

/// How a batch went.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchOutcome {
    /// All was done.
    Done(Vec<PropertyResult>),
    /// Nothing was done.
    Failed {
        /// The number of the step that failed, from 0.
        operation: usize,
        /// Why.
        error: crate::cluster::FabricError,
    },
}
