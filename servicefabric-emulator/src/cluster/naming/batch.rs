//! Batches: several steps on the properties of a name, as one operation.

use super::store::no_property;
use super::{BatchOutcome, Property, PropertyOperation, PropertyResult};
use crate::cluster::{Cluster, ErrorCode, FabricError, FabricName};
use crate::hosting::Timestamp;

/// The maximum number of steps of a batch.
const MAX_STEPS: usize = 1000;

impl Cluster {
    /// Runs all steps, or none of them. Each step sees the effects of those before it.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NAME_DOES_NOT_EXIST`; `E_INVALIDARG` for a batch without steps or with more than 1000. A
    /// failing step is reported as [`BatchOutcome::Failed`].
    pub fn submit_batch(
        &mut self,
        name: &FabricName,
        operations: &[PropertyOperation],
    ) -> Result<BatchOutcome, FabricError> {
        if operations.is_empty() || operations.len() > MAX_STEPS {
            return Err(FabricError::invalid_argument(format!(
                "a batch has 1 to {MAX_STEPS} steps"
            )));
        }
        // A failed step restores the properties.
        let before = self.names.entry(name)?.clone();
        let sequence = self.names.sequence;
        let mut results = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            match self.do_step(name, operation) {
                Ok(None) => {}
                Ok(Some((property, include_value))) => {
                    results.push(PropertyResult {
                        operation: index,
                        property,
                        include_value,
                    });
                }
                Err(error) => {
                    self.names.names.insert(name.clone(), before);
                    self.names.sequence = sequence;
                    return Ok(BatchOutcome::Failed {
                        operation: index,
                        error,
                    });
                }
            }
        }
        Ok(BatchOutcome::Done(results))
    }

    fn do_step(
        &mut self,
        name: &FabricName,
        operation: &PropertyOperation,
    ) -> Result<Option<(Property, bool)>, FabricError> {
        let now: Timestamp = self.now();
        match operation {
            PropertyOperation::Put {
                name: property,
                value,
                custom_type,
            } => {
                self.names.check_put(name, property, value)?;
                self.names
                    .put(name, property, value.clone(), custom_type, now);
            }
            PropertyOperation::Get {
                name: property,
                include_value,
            } => {
                let found = self.property(name, property)?.clone();
                return Ok(Some((found, *include_value)));
            }
            PropertyOperation::Delete { name: property } => self.delete_property(name, property)?,
            PropertyOperation::CheckExists {
                name: property,
                exists,
            } => {
                if self.property(name, property).is_ok() != *exists {
                    return Err(check_failed(
                        name,
                        property,
                        "exists or not as was expected",
                    ));
                }
            }
            PropertyOperation::CheckSequence {
                name: property,
                sequence_number,
            } => {
                let found = self.names.entry(name)?.properties.get(property);
                let found = found.ok_or_else(|| no_property(name, property))?;
                if found.sequence_number != *sequence_number {
                    return Err(check_failed(
                        name,
                        property,
                        "has the sequence number that was expected",
                    ));
                }
            }
            PropertyOperation::CheckValue {
                name: property,
                value,
            } => {
                if self.property(name, property)?.value != *value {
                    return Err(check_failed(
                        name,
                        property,
                        "has the value that was expected",
                    ));
                }
            }
        }
        Ok(None)
    }
}

fn check_failed(name: &FabricName, property: &str, expected: &str) -> FabricError {
    let shown: String = property.chars().take(120).collect();
    FabricError::new(
        ErrorCode::PropertyCheckFailed,
        format!("it is not so that property '{shown}' of '{name}' {expected}"),
    )
}
