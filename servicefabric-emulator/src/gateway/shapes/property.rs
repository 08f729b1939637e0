use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Wide;
use crate::cluster::{BatchOutcome, Property, PropertyOperation, PropertyValue};
use crate::gateway::wire::{ClockStart, text};

/// `PropertyValue`, in requests and responses.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "Kind", content = "Data")]
pub(crate) enum ValueBody {
    Binary(Vec<u8>),
    Int64(Wide),
    Double(f64),
    String(String),
    Guid(String),
}

impl From<ValueBody> for PropertyValue {
    fn from(body: ValueBody) -> Self {
        match body {
            ValueBody::Binary(bytes) => Self::Binary(bytes),
            ValueBody::Int64(number) => Self::Int64(number.0),
            ValueBody::Double(number) => Self::Double(number),
            ValueBody::String(text) => Self::String(text),
            ValueBody::Guid(text) => Self::Guid(text),
        }
    }
}

impl From<&PropertyValue> for ValueBody {
    fn from(value: &PropertyValue) -> Self {
        match value {
            PropertyValue::Binary(bytes) => Self::Binary(bytes.clone()),
            PropertyValue::Int64(number) => Self::Int64(Wide(*number)),
            PropertyValue::Double(number) => Self::Double(*number),
            PropertyValue::String(text) => Self::String(text.clone()),
            PropertyValue::Guid(text) => Self::Guid(text.clone()),
        }
    }
}

/// `PropertyInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct PropertyInfo<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<ValueBody>,
    metadata: PropertyMetadata<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct PropertyMetadata<'a> {
    type_id: &'static str,
    custom_type_id: &'a str,
    parent: &'a str,
    size_in_bytes: usize,
    last_modified_utc_timestamp: String,
    sequence_number: String,
}

impl<'a> PropertyInfo<'a> {
    pub(crate) fn new(property: &'a Property, with_value: bool, epoch: ClockStart) -> Self {
        Self {
            name: &property.name,
            value: with_value.then(|| ValueBody::from(&property.value)),
            metadata: PropertyMetadata {
                type_id: property.value.kind(),
                custom_type_id: &property.custom_type,
                parent: property.parent.as_str(),
                size_in_bytes: property.value.size(),
                last_modified_utc_timestamp: epoch.date(property.modified_at),
                sequence_number: text(property.sequence_number),
            },
        }
    }
}

/// `PropertyBatchOperation`.
#[derive(Debug, Deserialize)]
#[serde(tag = "Kind", rename_all_fields = "PascalCase")]
pub(crate) enum OperationBody {
    Put {
        property_name: String,
        value: ValueBody,
        #[serde(default)]
        custom_type_id: Option<String>,
    },
    Get {
        property_name: String,
        #[serde(default)]
        include_value: bool,
    },
    Delete {
        property_name: String,
    },
    CheckExists {
        property_name: String,
        exists: bool,
    },
    CheckSequence {
        property_name: String,
        sequence_number: Wide,
    },
    CheckValue {
        property_name: String,
        value: ValueBody,
    },
}

impl From<OperationBody> for PropertyOperation {
    fn from(body: OperationBody) -> Self {
        match body {
            OperationBody::Put {
                property_name: name,
                value,
                custom_type_id,
            } => Self::Put {
                name,
                value: value.into(),
                custom_type: custom_type_id.unwrap_or_default(),
            },
            OperationBody::Get {
                property_name: name,
                include_value,
            } => Self::Get {
                name,
                include_value,
            },
            OperationBody::Delete {
                property_name: name,
            } => Self::Delete { name },
            OperationBody::CheckExists {
                property_name: name,
                exists,
            } => Self::CheckExists { name, exists },
            OperationBody::CheckSequence {
                property_name: name,
                sequence_number,
            } => Self::CheckSequence {
                name,
                sequence_number: sequence_number.0,
            },
            OperationBody::CheckValue {
                property_name: name,
                value,
            } => Self::CheckValue {
                name,
                value: value.into(),
            },
        }
    }
}

/// `SuccessfulPropertyBatchInfo`, `FailedPropertyBatchInfo`.
#[derive(Debug, Serialize)]
#[serde(tag = "Kind", rename_all_fields = "PascalCase")]
pub(crate) enum BatchInfo<'a> {
    Successful {
        /// The properties that were read, by the number of the step.
        properties: BTreeMap<String, PropertyInfo<'a>>,
    },
    Failed {
        error_message: String,
        operation_index: usize,
    },
}

impl<'a> BatchInfo<'a> {
    pub(crate) fn new(outcome: &'a BatchOutcome, epoch: ClockStart) -> Self {
        match outcome {
            BatchOutcome::Done(results) => Self::Successful {
                properties: results
                    .iter()
                    .map(|result| {
                        let info = PropertyInfo::new(&result.property, result.include_value, epoch);
                        (text(result.operation), info)
                    })
                    .collect(),
            },
            BatchOutcome::Failed { operation, error } => Self::Failed {
                error_message: error.to_string(),
                operation_index: *operation,
            },
        }
    }
}
